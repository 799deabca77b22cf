"""Inventions: fluent English about things and events that nobody in the source spoke of.

Grounding compares a whole text with its source; here each sentence answers for itself, by its
concrete words (see telling.py for those that are none). For English alone, in a source that is
English: other languages are left to the other rules. Measured on LoCoMo's three development
conversations, with the rules before it: of 81 session summaries it rejects none more, of the same
with two of its sentences replaced by invented events 73 more, of three sentences from another
session of the same two people 21 more.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policies.judge.heard import Heard
from policies.judge.language import is_english, leans
from policies.judge.reading import fold, sentences, unquote, words
from policies.judge.roots import root
from policies.judge.telling import TELLING
from policies.judge.terms import COMMON

_LEAST_LETTERS = 4
_SHORT_FORM = 4
"""Letters by which two roots of five or more are taken for forms of one word (decide, decision)."""
_SENTENCE_LEAST = 3
"""Unheard concrete words from which a sentence is invented if they are two thirds of its own."""
_TEXT_LEAST = 5
"""Unheard concrete words from which a text is invented if they are half of its own."""
_THIN_CHARS = 150
_CHARS_PER_WORD = 250
"""Characters that must hold a heard concrete word. LoCoMo's session summaries hold one in 115 at
the least, and one in 25 is usual in chapters written by hand."""
_NUMBERS = frozenset(
    "three four five seven eight nine eleven twelve thirteen fourteen fifteen sixteen seventeen"
    " eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand"
    " million first second third fourth fifth sixth seventh eighth ninth tenth dozen".split()
)
"""Judged by their values, not as words."""
_KIN = (
    r"(?:wife|husband|brother|sister|son|daughter|mother|father|boyfriend|girlfriend|fiancee?"
    r"|spouse|cousin|uncle|aunt|nephew|niece|boss)"
)


@dataclass(frozen=True, slots=True)
class _Claims:
    """The roots of a sentence's concrete words: all, and those that nobody said."""

    all: frozenset[str]
    unheard: frozenset[str]


def is_invented(prose: str, heard: Heard) -> bool:
    """Say whether an English prose tells of what its English source does not speak of.

    One sentence mostly of unheard things, a text half of them, one with hardly a heard thing in
    it, or a speaker made another's kin: each is enough. Quotations are left to grounding.
    """
    told = fold(unquote(prose))
    if not is_english(told) or not _is_english_talk(heard.folded):
        return False
    claims = list(_claims(told, heard))
    return (
        any(
            len(claim.unheard) >= _SENTENCE_LEAST and len(claim.unheard) * 3 >= len(claim.all) * 2
            for claim in claims
        )
        or _is_strange(claims, len(told))
        or _marries(told, heard)
    )


def _is_strange(claims: list[_Claims], chars: int) -> bool:
    everything = frozenset().union(*(claim.all for claim in claims))
    unheard = frozenset().union(*(claim.unheard for claim in claims))
    known = len(everything) - len(unheard)
    return (len(unheard) >= _TEXT_LEAST and len(unheard) >= known) or (
        chars >= _THIN_CHARS and known * _CHARS_PER_WORD < chars
    )


def _is_english_talk(talk: str) -> bool:
    """What a part of the talk says in another language stands translated in its chapter."""
    english, spanish = leans(talk)
    plain = sum(map(str.isascii, talk))
    return is_english(talk) and spanish * 8 <= english and plain * 20 >= len(talk) * 19


def _claims(told: str, heard: Heard) -> Iterator[_Claims]:
    names = {root(part) for name in heard.speakers for part in words(name)}
    for sentence in sentences(told):
        roots = {
            root(part)
            for word in words(sentence)
            for part in word.replace("'s", "").split("-")
            if _may_be_concrete(part)
        }
        concrete = roots - TELLING - names
        yield _Claims(
            frozenset(concrete),
            frozenset(found for found in concrete if not _is_heard(found, heard)),
        )


def _may_be_concrete(word: str) -> bool:
    return (
        len(word) >= _LEAST_LETTERS
        and word.isalpha()
        and word not in COMMON
        and word not in _NUMBERS
    )


def _is_heard(found: str, heard: Heard) -> bool:
    return found in heard.roots or (
        len(found) > _SHORT_FORM and found[:_SHORT_FORM] in heard.root_heads
    )


def _marries(told: str, heard: Heard) -> bool:
    """A speaker called another's wife, son or boss, where nobody said such a word."""
    names = "|".join(re.escape(name) for name in sorted(heard.speakers, key=len, reverse=True))
    if not names:
        return False
    owner = rf"(?:his|her|their|(?:{names})'s)"
    tie = re.compile(
        rf"\b{owner} (?:\w+ )?({_KIN}),? (?:{names})\b|\b(?:{names}),? {owner} (?:\w+ )?({_KIN})\b,"
    )
    return any(root(first or second) not in heard.roots for first, second in tie.findall(told))
