"""An index in a dictionary, and the path that it is an index of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies.recall.passages import Chosen, Line, select
from policies.recall.places import pack_place
from policies.recall.query import build_query
from policies.recall.ranking import Ranking, rank
from policies.recall.terms import index_terms

FIRST_PK = 100


@dataclass
class Shelf:
    """lines: (role, text), oldest first; the message at depth d has pk 100 + d."""

    lines: Sequence[tuple[str, str]]
    postings: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    read: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for depth, (role, text) in enumerate(self.lines, 1):
            place = pack_place(FIRST_PK + depth, depth, text, role == "user")
            for term in index_terms(text):
                self.postings.setdefault(term, []).append((depth, place))

    def get(self, depths: Sequence[int]) -> Mapping[int, Line]:
        self.read += depths
        return {depth: Line(FIRST_PK + depth, self.lines[depth - 1][1]) for depth in depths}

    def rank(self, question: str, *, border: int | None = None, neighbours: bool = True) -> Ranking:
        return rank(
            build_query(question),
            self.postings,
            messages=len(self.lines),
            border=len(self.lines) if border is None else border,
            neighbours=neighbours,
        )

    def recall(
        self, question: str, *, border: int | None = None, budget: int = 1_500, line_chars: int = 30
    ) -> list[Chosen]:
        """As a turn does it: nothing below the floor."""
        ranking = self.rank(question, border=border)
        if not ranking.relevant:
            return []
        return select(
            build_query(question), ranking, self.get, budget=budget, line_chars=line_chars
        )


def chat(*texts: str) -> list[tuple[str, str]]:
    """Lines by turns, the user's first."""
    return [("user" if at % 2 == 0 else "assistant", text) for at, text in enumerate(texts)]


def small_talk(count: int) -> list[tuple[str, str]]:
    """Lines about nothing that a question below asks for, no two the same."""
    things = ("bread", "rain", "the bus", "laundry", "the radio", "a pencil", "soup", "the stairs")
    said = ("I noticed {0} again, number {1}.", "So {0} it is, {1} times now.")
    return chat(*(said[at % 2].format(things[at // 2 % 8], at) for at in range(count)))
