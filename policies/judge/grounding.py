"""Grounding: names, numbers and rare words of a chapter must come from its source."""

import re
from collections.abc import Iterable

from policies.judge.numbers import spoken_values, values
from policies.judge.reading import (
    CYRILLIC,
    HAN,
    HANGUL,
    KANA,
    fold,
    quotations,
    sentences,
    unquote,
    words,
)

_NAME = re.compile(r"(?<![\w'\-])[^\W\d_](?:[^\W\d_]|['\-](?=\w))+", re.UNICODE)
_DENSE = re.compile(f"[{HAN}{KANA}]+")
_CYRILLIC = re.compile(f"[{CYRILLIC}]")
_HANGUL = re.compile(f"[{HANGUL}]")
_COMMON = frozenset(
    "about above after again against also although always another anything around becau"
    "se been before being"
    " between both came could does doing done down during each either else even ever ev"
    "ery everything finally"
    " from given gave goes going gone have having here hers herself himself into itself"
    " just like made make"
    " many more most much must myself never next none nothing once only other others ov"
    "er perhaps rather said"
    " same shall should since some someone something still such than that their theirs "
    "them themselves then"
    " there these they this those though through together told toward towards under unt"
    "il upon very want"
    " wanted wants were what when where whether which while whom whose will with within"
    " without would your"
    " agreed asked asks answered decided discussed explained explains mentioned replied"
    " says shared spoke talked talking"
    " thought thinks told tells conversation chapter summary user assistant"
    " para pero como cuando donde porque sobre entre hasta desde esta este esto estos estas aunque"
    " tambien mientras dijo pidio pregunto respondio explico conto quien cual cuyo tien"
    "e tenia habia"
    " было была были этот этого этой эти того тоже также когда потом после перед чтобы "
    "если который которая"
    " которые которого сказал сказала сказали спросил спросила ответил ответила рассказ"
    "ал рассказала"
    " ".split()
)
_LEAST_TERMS = 8
_LEAST_SHARES = ((0, 0.25), (2_000, 0.33), (5_000, 0.42), (10_000, 0.49), (20_000, 0.54))
"""From so many characters of source: the share of a chapter's content words whose stem must stand
in it. The longer a source, the more of any text it holds by chance. Measured on LoCoMo: summaries
of spans of 2,500 / 6,000 / 12,000 / 25,000 characters have at least 0.40 / 0.61 / 0.68 / 0.72,
summaries of other people's talk at the median 0.19 / 0.30 / 0.40 / 0.47."""
_DENSE_FACTOR = 0.6
"""Pairs of characters, where words have no spaces, are shared less: at least 0.17 in the
hand-written chapters of the tests, whose words have at least 0.45."""


def is_ungrounded(prose: str, lines: Iterable[str], names: Iterable[str]) -> bool:
    """Say whether a prose tells too much that its source does not hold.

    names: of the speakers, known without standing in a line. Two invented names, dates or
    numbers that are a quarter of all, an invented quotation, or too few shared words: each is
    enough. Inflection, nicknames and number words are no inventions.
    """
    heard = fold("\n".join([*names, *lines]))
    return _invents(prose, heard) or _misquotes(prose, heard) or _strays(prose, heard)


def terms(text: str) -> set[str]:
    """Return the stems of the content words of a folded text; pairs of characters where words
    have no spaces."""
    found: set[str] = set()
    for word in words(text):
        for run in _DENSE.findall(word):
            found.update(run[at : at + 2] for at in range(len(run) - 1))
        bare = _DENSE.sub("", word).removesuffix("'s")
        if _HANGUL.search(bare):
            found.update(bare[at : at + 2] for at in range(min(len(bare) - 1, 2)))
        elif len(bare) >= 4 and bare not in _COMMON:
            found.add(bare[:5])
    return found


def _strays(prose: str, heard: str) -> bool:
    told = terms(fold(prose))
    if len(told) < _LEAST_TERMS:
        return False
    known = terms(heard)
    share = len(told & known) / len(told)
    least = next(floor for size, floor in reversed(_LEAST_SHARES) if len(heard) >= size)
    dense = sum(bool(_DENSE.fullmatch(term) or _HANGUL.search(term)) for term in told)
    return share < (least * _DENSE_FACTOR if dense * 2 > len(told) else least)


def _invents(prose: str, heard: str) -> bool:
    heard_words = set(words(heard))
    heard_words.update(part for word in list(heard_words) for part in re.split("['-]", word))
    told_names = names_in(prose)
    invented = {name for name in told_names if not _is_known(name, heard_words)}
    folded = fold(prose)
    figures = values(folded)
    known_figures = values(heard) | spoken_values(heard)
    invented_figures = {figure for figure in figures - known_figures if len(figure) > 1}
    strange = len(invented) + len(invented_figures)
    return strange >= 2 and strange * 4 >= len(told_names) + len(figures)


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
    return {name for name in found if name not in ("i", "i'm", "i'd", "i've", "i'll", "ok", "ai")}


def _is_known(name: str, heard: set[str]) -> bool:
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


def _misquotes(prose: str, heard: str) -> bool:
    """Half of the quotations of four words and more hold less than half of words ever heard."""
    judged = wrong = 0
    heard_words = set(words(heard))
    heard_pairs = terms(heard)
    for quoted in quotations(prose):
        folded = fold(quoted)
        dense = "".join(_DENSE.findall(folded))
        if len(dense) >= 6:
            told = terms(dense)
            judged, wrong = judged + 1, wrong + (len(told & heard_pairs) * 2 < len(told))
        elif len(told_words := words(folded)) >= 4:
            met = sum(word in heard_words for word in told_words)
            judged, wrong = judged + 1, wrong + (met * 2 < len(told_words))
    return wrong > 0 and wrong * 2 >= judged


def unquoted_terms(text: str) -> set[str]:
    """Return the terms of a text outside its quotations."""
    return terms(fold(unquote(text)))
