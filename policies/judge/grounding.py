"""Grounding: names, numbers and rare words of a chapter must come from its source."""

import re

from policies.judge.heard import Heard
from policies.judge.numbers import spoken_values, values
from policies.judge.reading import CYRILLIC, fold, quotations, sentences, words
from policies.judge.terms import DENSE, HANGUL_LETTER, terms

_NAME = re.compile(r"(?<![\w'\-])[^\W\d_](?:[^\W\d_]|['\-](?=\w))+", re.UNICODE)
_CYRILLIC = re.compile(f"[{CYRILLIC}]")
_NO_NAMES = frozenset(
    "i i'm i'd i've i'll ok ai user users assistant chapter usuario usuaria asistente"
    " пользователь ассистент the a an of and in on at to".split()
)
_LEAST_TERMS = 8
_LEAST_SHARES = ((0, 0.25), (1_200, 0.33), (5_000, 0.42), (10_000, 0.49), (20_000, 0.54))
"""From so many characters of source: the share of a chapter's content words whose stem must stand
in it. The longer a source, the more of any text it holds by chance. Measured on LoCoMo: summaries
of spans of 2,500 / 6,000 / 12,000 / 25,000 characters have at least 0.40 / 0.61 / 0.68 / 0.72,
summaries of other people's talk at the median 0.19 / 0.30 / 0.40 / 0.47."""
_NAMELESS_SHARE = 0.55
_NAMELESS_SOURCE = 800
"""A telling that names nobody of those who spoke may be about anybody: of one from so many
characters of source more must stand there. Small models' essays on a conversation's theme have
0.17 to 0.44, hand-written chapters without a name 0.57 and more."""
_ROLES = frozenset(("user", "assistant", "tool", "function", "narrator"))
_DENSE_FACTOR = 0.6
"""Pairs of characters, where words have no spaces, are shared less: at least 0.17 in the
hand-written chapters of the tests, whose words have at least 0.45."""


def is_ungrounded(prose: str, heard: Heard) -> bool:
    """Say whether a prose tells too much that its source does not hold.

    Two invented names, dates or numbers that are a quarter of all, an invented quotation, or too
    few shared words: each is enough. Inflection, nicknames and number words are no inventions.
    """
    return _invents(prose, heard) or _misquotes(prose, heard) or _strays(prose, heard)


def _strays(prose: str, heard: Heard) -> bool:
    told = terms(fold(prose))
    size = len(heard.folded)
    nameless = size >= _NAMELESS_SOURCE and _names_nobody(prose, heard.speakers)
    if len(told) < _LEAST_TERMS:
        return nameless  # a title at best
    share = len(told & heard.terms) / len(told)
    least = next(floor for start, floor in reversed(_LEAST_SHARES) if size >= start)
    if nameless:
        least = max(least, _NAMELESS_SHARE)
    dense = sum(bool(DENSE.fullmatch(term) or HANGUL_LETTER.search(term)) for term in told)
    return share < (least * _DENSE_FACTOR if dense * 2 > len(told) else least)


def _names_nobody(prose: str, speakers: frozenset[str]) -> bool:
    """Whether all who spoke have names, and none is told; endings may be inflected."""
    if not speakers or speakers & _ROLES:
        return False
    told = fold(prose)
    firsts = (speaker.split()[0] for speaker in speakers)
    return not any(first[: max(2, len(first) - 1)] in told for first in firsts)


def _invents(prose: str, heard: Heard) -> bool:
    told_names = names_in(prose)
    invented = [name for name in told_names if not is_known_name(name, heard.words)]
    told_figures = values(fold(prose))
    strange_figures = {figure for figure in told_figures if len(figure) > 1}
    if strange_figures:
        strange_figures -= values(heard.folded) | spoken_values(heard.folded)
    strange = len(invented) + len(strange_figures)
    return strange >= 2 and strange * 4 >= len(told_names) + len(told_figures)


def names_in(text: str) -> set[str]:
    """Return the folded capitalised words that do not merely begin a sentence or a line."""
    found = set()
    for sentence in sentences(text):
        for match in _NAME.finditer(sentence):
            before = sentence[: match.start()].rstrip(" ")
            if (
                match.group()[0].isupper()
                and before
                and (before[-1].isalnum() or before[-1] in ",;&)")
            ):
                found.add(fold(match.group()).removesuffix("'s").removesuffix("'"))
    return found - _NO_NAMES


def is_known_name(name: str, heard: frozenset[str]) -> bool:
    """Say whether a folded name was heard, in whatever form: nicknames, plurals, endings."""
    if name in heard:
        return True
    if _CYRILLIC.search(name):
        stem = name[: max(3, len(name) - 2)]
        return any(
            word.startswith(stem) or (len(word) >= 4 and name.startswith(word[:-1]))
            for word in heard
        )
    # Nicknames and plurals: Mel for Melanie, Tuesdays for Tuesday.
    return any(
        len(word) >= 3
        and (
            (word.startswith(name) and len(name) >= 3)
            or (name.startswith(word) and len(name) <= len(word) + 2)
        )
        for word in heard
    )


def _misquotes(prose: str, heard: Heard) -> bool:
    """Half of the quotations of four words and more hold less than half of words ever heard."""
    judged = wrong = 0
    for quoted in quotations(prose):
        folded = fold(quoted)
        dense = "".join(DENSE.findall(folded))
        if len(dense) >= 6:
            told = terms(dense)
            judged, wrong = judged + 1, wrong + (len(told & heard.terms) * 2 < len(told))
        elif len(told_words := words(folded)) >= 4:
            met = sum(word in heard.words for word in told_words)
            judged, wrong = judged + 1, wrong + (met * 2 < len(told_words))
    return wrong > 0 and wrong * 2 >= judged
