"""Subjects: of whom each clause of a telling tells, as the grammar of its language has it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from policies.judge.grammars import Grammar
from policies.judge.reading import sentences


@dataclass(frozen=True, slots=True)
class Clause:
    """What is told (rest) of one or two speakers (people)."""

    people: tuple[str, ...]
    rest: str


@dataclass(frozen=True)
class Names:
    """The folded names of those whose words are known, and how a language meets them."""

    all: tuple[str, ...]
    grammar: Grammar

    @cached_property
    def met(self) -> re.Pattern[str]:
        """Any of the names in any of its forms."""
        return re.compile("|".join(map(self.grammar.named, self._longest_first)))

    @cached_property
    def forms(self) -> dict[str, re.Pattern[str]]:
        """Each name in any of its forms."""
        return {name: re.compile(self.grammar.named(name)) for name in self.all}

    def fill(self, template: str) -> re.Pattern[str]:
        """Return a template of the grammar as a pattern of these names."""
        names = [re.escape(name) for name in self._longest_first]
        apart = "".join(f"(?<!{name}{link})" for name in names for link in self.grammar.links)
        return re.compile(template.format(name="|".join(names), apart=apart))

    @cached_property
    def _longest_first(self) -> list[str]:
        return sorted(self.all, key=lambda name: (-len(name), name))


def read_clauses(told: str, names: Names) -> Iterator[Clause]:
    """Yield the clauses of a folded telling whose subject is one or two of the names, in order.

    `They` stands for the two who were the subject of the clause before it.
    """
    grammar = names.grammar
    joint = names.fill(grammar.joint)
    start = names.fill(f"{grammar.lead}{grammar.subject}")
    pair: tuple[str, ...] = ()
    for sentence in sentences(told):
        for clause in joint.split(sentence):
            begun = start.match(clause)
            if begun is None:
                continue
            first, second = begun["first"], begun["second"]
            people = pair if begun["they"] else (first, second) if second else (first,)
            pair = people if len(people) == 2 else ()
            if people:
                rest = clause[begun.end() :].strip(" ,'、")
                yield from (Clause(people, part) for part in grammar.further.split(rest))
