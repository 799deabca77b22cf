"""Inventions: fluent English about things and events that nobody in the source spoke of.

Grounding compares a whole text with its source; here each sentence answers for itself, by its
concrete words (see telling.py for those that are none). For English alone, in a source that is
English: other languages are left to the other rules. Measured on LoCoMo's three development
conversations, with the rules before it: of 81 session summaries it rejects none more, of the same
with two of its sentences replaced by invented events 59 more, of three sentences from another
session of the same two people 18 more; of 14 free paraphrases of short spans none.
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
_OUTLIER = 3
"""Unheard concrete words from which a sentence stands out, if they are three quarters of its own
and the rest of the text (of four such words and more) keeps to what was said: a teller who
paraphrases does so throughout, an invention is one sentence among copied words."""
_LONE = 4
_LONE_CHARS = 2_000
"""Unheard concrete words from which one sentence without a heard one is enough, and characters of
source from which it is: what was said at length gives a paraphrase some of its words."""
_TWICE = 3
"""The same for two such sentences, in any source."""
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

    A sentence of unheard things among others that keep to the source, several such sentences, a
    text with hardly a heard thing in it, or a speaker made another's kin: each is enough.
    Other words for what was said are no invention. Quotations are left to grounding.
    """
    told = fold(unquote(prose))
    if not is_english(told) or not _is_english_talk(heard.folded):
        return False
    claims = list(_claims(told, heard))
    everything = frozenset().union(*(claim.all for claim in claims))
    unheard = frozenset().union(*(claim.unheard for claim in claims))
    known = len(everything) - len(unheard)
    return (
        any(_stands_out(claim, everything, unheard) for claim in claims)
        or _are_strange(claims, len(heard.folded))
        or (len(told) >= _THIN_CHARS and known * _CHARS_PER_WORD < len(told))
        or _marries(told, heard)
    )


def _stands_out(claim: _Claims, everything: frozenset[str], unheard: frozenset[str]) -> bool:
    rest, strange = len(everything - claim.all), len(unheard - claim.unheard)
    return (
        len(claim.unheard) >= _OUTLIER
        and len(claim.unheard) * 4 >= len(claim.all) * 3
        and rest >= 4
        and strange * 4 <= rest
    )


def _are_strange(claims: list[_Claims], source_chars: int) -> bool:
    sizes = [len(claim.all) for claim in claims if claim.all == claim.unheard]
    return sum(size >= _TWICE for size in sizes) >= 2 or (
        source_chars >= _LONE_CHARS and max(sizes, default=0) >= _LONE
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
