"""Loops: a text that goes round instead of going on."""

import re
from collections import Counter

from policies.judge.reading import fold, is_unspaced, sentences, units

_TRIPLE = 3
_LONG_SENTENCE = 24
"""Letters from which a sentence said twice is no coincidence (a name or `Yes.` is shorter)."""
_REPEATED_SHARE = 0.30
"""Share of n-grams met before. Chapters written by hand stay under 0.12, loops start at 0.4."""
_LONG_RUN = {True: 22, False: 11}
"""Units (characters without spaces between words: True) of one run that comes twice; a run of
half the length, three times."""

_STUTTER = re.compile(
    r"\b((?:[^\W\d_][\w']{0,24} ){2,5}[^\W\d_][\w']{0,24}),? (?:and |or |y |и )?\1\b"
)
"""Three words and more, and at once the same again: `the boat's place and the boat's place`."""


def is_loop(prose: str) -> bool:
    """Say whether sentences or long runs of words come again and again."""
    folded = fold(prose)
    unspaced = is_unspaced(folded)
    said = Counter(
        "".join(filter(str.isalnum, sentence)) for sentence in sentences(folded.replace(";", "."))
    )
    if any(_is_circling(sentence, times, unspaced) for sentence, times in said.items()):
        return True
    row = units(folded)
    return (
        _repeated_share(row, 7 if unspaced else 3) > _REPEATED_SHARE
        or _repeats_run(row, _LONG_RUN[unspaced])
        or bool(_STUTTER.search(folded))
    )


def _is_circling(sentence: str, times: int, unspaced: bool) -> bool:
    long_enough = len(sentence) * (2 if unspaced else 1) >= _LONG_SENTENCE
    return (times >= _TRIPLE and len(sentence) >= _TRIPLE * 2) or (times == 2 and long_enough)


def _repeated_share(row: list[str], size: int) -> float:
    grams = [tuple(row[at : at + size]) for at in range(len(row) - size + 1)]
    # Below three dozen units one repeated name outweighs everything else.
    return 1 - len(set(grams)) / len(grams) if len(grams) >= 36 else 0.0


def _repeats_run(row: list[str], size: int) -> bool:
    half = size // 2 + 1
    return _most_met(row, size) >= 2 or _most_met(row, half) >= _TRIPLE


def _most_met(row: list[str], size: int) -> int:
    grams = Counter(tuple(row[at : at + size]) for at in range(len(row) - size + 1))
    return max(grams.values(), default=0)
