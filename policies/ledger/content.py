"""What a text is about, comparable between a summarizer's words and a speaker's."""

import re

from policies.judge.numbers import values
from policies.judge.reading import HAN, HANGUL, fold, words
from policies.judge.roots import root
from policies.judge.terms import COMMON, DENSE, terms

_PAIRED = 0.6
"""How much less of a text must be held where words have no spaces: pairs of characters are shared
less, as in judge.grounding."""

_KANA = re.compile("[\u3041-\u309f\u30a1-\u30fa]")
_PAIR = re.compile(f"[{HAN}{HANGUL}]{{2}}")
_HAN_SIGN = re.compile(f"[{HAN}]")
_RUN = re.compile(f"([{HAN}]+)|[\u30a1-\u30fa\u30fc]+")
_SHORT = frozenset(
    "the has had was are and his her its not who she him you they them our for but any all can did"
    " may out off how why now too yet".split()
)


def content(text: str) -> frozenset[str]:
    """What a text is about: roots of English content words, stems, pairs of characters, numbers.

    Beside kana the words are written in Han and katakana, and what joins them in hiragana: there
    only the former count, a single Han character too.
    """
    folded = fold(text)
    found = {f"#{value}" for value in values(folded)}
    if _KANA.search(folded):
        for match in _RUN.finditer(folded):
            found.update(_pairs(match[1]) if match[1] else (match[0],))
        folded = DENSE.sub(" ", folded)
    plain = {word for word in words(folded) if word.isascii() and len(word) > 2}
    other = " ".join(word for word in words(folded) if not word.isascii())
    roots = {root(word) for word in plain - COMMON - _SHORT if not word.isdigit()}
    return frozenset(terms(other) | roots | found) - {""}


def _pairs(run: str) -> list[str]:
    return [run[at : at + 2] for at in range(len(run) - 1)] or [run]


def held_content(text: str) -> frozenset[str]:
    """The terms of what is to bear a text out: single Han characters are in every run of them."""
    return content(text) | frozenset(_HAN_SIGN.findall(fold(text)))


def is_borne(wanted: frozenset[str], held: frozenset[str], least: float, against: int = 0) -> bool:
    """Whether the terms held are at least this share of those wanted; against: so many more are
    reckoned as wanted."""
    pairs = sum(bool(_PAIR.fullmatch(term)) for term in wanted)
    least = least * _PAIRED if pairs * 2 > len(wanted) else least
    return bool(wanted) and len(wanted & held) >= least * (len(wanted) + against)
