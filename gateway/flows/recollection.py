"""What of a conversation's past belongs beside its newest message: index read, lines chosen.

Reads only. What is shown where is for who asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection

from gateway.store import paths, search
from gateway.store.search import Said
from gateway.store.transcript import Node
from gateway.wire.json_text import loads
from policies.messages import message_text
from policies.recall.passages import Chosen, Line, select
from policies.recall.query import build_query
from policies.recall.ranking import NOTHING, rank

LINE_CHARS = 44
"""What is reckoned for saying who said a passage and when, in characters: what `prompts.notes` puts
around the line of an assistant at a depth of four digits."""
LONGEST_LIST = 1_000
"""Messages of one posting list that are read, the newest: what keeps a search's cost from growing
with the conversation. A word that more messages hold tells next to nothing."""
_GAP = 4


@dataclass(frozen=True, slots=True)
class Ask:
    """A search for one message.

    head: the node whose path is searched. border: the depth of the last message that the view does
    not show; nothing deeper comes back. question: the newest message's plain text; previous: that
    of the reply before it. budget: characters of all passages together, each with line_chars.
    taken: row numbers of messages that are shown already. floor: False returns whatever is found,
    however little it has to do with the question. neighbours: whether lines beside a hit count.
    """

    conversation_pk: int
    head: Node
    border: int
    question: str
    previous: str = ""
    budget: int = 1_500
    taken: frozenset[int] = frozenset()
    floor: bool = True
    neighbours: bool = True
    line_chars: int = LINE_CHARS


@dataclass(frozen=True, slots=True)
class Passage:
    """A line of the transcript, word for word. text: the whole message, or (whole is False) one
    unbroken part of it. hit: it holds words of the question; else it stands beside a hit."""

    pk: int
    id: str
    depth: int
    role: str
    name: str | None
    created_ms: int
    text: str
    whole: bool
    hit: bool
    score: float


def recall(connection: Connection, ask: Ask) -> list[Passage]:
    """The passages for a message, oldest first; none where nothing reaches the relevance floor.

    The cost is bounded by the query and the budget, not by the conversation.
    """
    index = search.find_index(connection, ask.conversation_pk)
    query = build_query(ask.question, ask.previous)
    if index is None or not query.terms or ask.budget <= ask.line_chars:
        return []
    border = min(ask.border, ask.head.depth)
    found = search.postings(connection, index, query.lookups, LONGEST_LIST)
    lists = paths.keep_path(connection, index, ask.head, border, found)
    ranking = rank(
        query,
        lists,
        messages=ask.head.depth,  # how much of it was indexed by now is no matter
        border=border,
        neighbours=ask.neighbours,
    )
    if ask.floor and not ranking.relevant:
        ranking = NOTHING
    path = _Path(connection, ask.head)
    chosen = select(
        query, ranking, path.read, budget=ask.budget, line_chars=ask.line_chars, taken=ask.taken
    )
    return [_passage(path.rows[one.depth], one) for one in chosen]


def expand(
    connection: Connection,
    head: Node,
    depth: int,
    *,
    before: int,
    after: int,
    border: int,
    budget: int,
) -> list[Passage]:
    """The lines around the message at this depth of the path to head, none deeper than border.

    Oldest first and whole; the nearest ones that fit the budget, in characters as `recall` counts
    them.
    """
    first, last = max(1, depth - before), min(depth + after, border, head.depth)
    path = _Path(connection, head)
    lines = path.read(range(first, last + 1))
    near: list[Passage] = []
    room = budget
    for at in sorted(lines, key=lambda at: (abs(at - depth), at)):
        text = lines[at].text
        if text and len(text) + LINE_CHARS <= room:
            room -= len(text) + LINE_CHARS
            near.append(_passage(path.rows[at], Chosen(at, lines[at].pk, text, True, False, 0.0)))
    return sorted(near, key=lambda passage: passage.depth)


@dataclass(slots=True)
class _Path:
    """Messages of the path to head, read in runs: O(log n) rows to reach one, then its own."""

    connection: Connection
    head: Node
    rows: dict[int, Said] = field(default_factory=dict)

    def read(self, depths: Sequence[int]) -> Mapping[int, Line]:
        for first, last in _runs(depth for depth in depths if depth not in self.rows):
            found = search.read_stretch(self.connection, self.head.pk, first, last)
            self.rows.update((row.depth, row) for row in found)
        return {
            depth: Line(self.rows[depth].pk, message_text(loads(self.rows[depth].raw)))
            for depth in depths
            if depth in self.rows
        }


def _runs(depths: Iterable[int]) -> list[tuple[int, int]]:
    """(first, last) of the stretches that these depths form, small gaps filled."""
    runs: list[tuple[int, int]] = []
    for depth in sorted(depths):
        if runs and depth - runs[-1][1] <= _GAP:
            runs[-1] = (runs[-1][0], depth)
        else:
            runs.append((depth, depth))
    return runs


def _passage(row: Said, chosen: Chosen) -> Passage:
    name = loads(row.raw).get("name")
    return Passage(
        pk=row.pk,
        id=row.id,
        depth=row.depth,
        role=row.role,
        name=name if isinstance(name, str) else None,
        created_ms=row.created_ms,
        text=chosen.text,
        whole=chosen.whole,
        hit=chosen.hit,
        score=round(chosen.score, 4),
    )
