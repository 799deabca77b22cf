"""Ownership: which matters of a talk were told by one speaker alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from policies.judge.reading import fold, quotations, sentences, units
from policies.judge.subjects import Names

_ASIDE = re.compile(r"\([^()]*\)")
_ACTED = re.compile(r"\*|^\W*\(")
_SPEECH = 3
"""Words (or characters, where words have no spaces) from which a quotation is no mere title; a
shorter one with a mark at its end is none either."""
_MARKS = ",.!?。、…—-"


@dataclass(frozen=True, slots=True)
class Ownership:
    """By speaker: alone, the matters that nobody else told; spoken, all that were spoken of."""

    alone: dict[str, set[str]]
    spoken: dict[str, set[str]]

    def find_foreign(self, person: str, matters: set[str]) -> list[set[str]]:
        """Return for each other speaker which of the matters are that speaker's alone.

        Nothing where the person spoke of them all, if only in asking.
        """
        found = [matters & own for name, own in self.alone.items() if name != person]
        return [strange if strange - self.spoken[person] else set() for strange in found]


def find_ownership(lines: Sequence[tuple[str, str]], names: Names) -> Ownership:
    """Return who told what; lines: speaker and text.

    A question, a sentence with `you` or with another's name in it may be about others: it gives
    its speaker nothing and takes nothing from them. What a narrator tells, or a line with stage
    directions or with speech in quotation marks, is nobody's own: it may be the act of anybody.
    """
    grammar = names.grammar
    told: dict[str, set[str]] = {name: set() for name in names.all}
    spoken: dict[str, set[str]] = {name: set() for name in names.all}
    shared = set().union(*map(grammar.matters, names.all))
    for speaker, text in lines:
        name = fold(speaker).strip()
        said = fold(text)
        narrates = name not in told or _narrates(said)
        shared |= grammar.matters(said if narrates else " ".join(_ASIDE.findall(said)))
        for sentence in () if narrates else sentences(_ASIDE.sub(" ", said)):
            matters = grammar.matters(sentence)
            spoken[name] |= matters
            if not (grammar.addressed.search(sentence) or names.met.search(sentence)):
                told[name] |= matters
    return Ownership(
        {
            name: own.difference(shared, *(other for by, other in told.items() if by != name))
            for name, own in told.items()
        },
        spoken,
    )


def _narrates(said: str) -> bool:
    return bool(_ACTED.search(said)) or any(
        quoted.endswith(tuple(_MARKS)) or len(units(quoted)) >= _SPEECH
        for quoted in quotations(said)
    )
