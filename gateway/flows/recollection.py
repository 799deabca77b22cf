"""What of a conversation's past belongs beside its newest message: index read, lines chosen.

Reads only. What is shown where is for who asks. A reply that declines what it was asked for stays
in the transcript and in the index, and is no memory (law 7): it is passed over here, where few
messages have to be judged, and the next best one takes its place.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from gateway.store import paths, search
from gateway.store.search import Said
from gateway.store.transcript import Node
from gateway.wire.json_text import loads
from policies.messages import is_refusal_part, message_text
from policies.recall.passages import Chosen, Line, select
from policies.recall.query import Query, build_query
from policies.recall.ranking import NOTHING, Posting, rank

LINE_CHARS = 44
"""What is reckoned for saying who said a passage and when, in characters: what `prompts.notes` puts
around the line of an assistant at a depth of four digits."""
LONGEST_LIST = 1_000
"""Messages of one posting list that are read, the newest: what keeps a search's cost from growing
with the conversation. A word that more messages hold tells next to nothing."""
_GAP = 4
_LEADING, _ROUNDS = 5, 4
"""By the best five a ranking is relevant; each round leaves out all refusals found by then."""
_MOST_VERDICTS = 8_192
_verdicts: dict[int, bool] = {}
"""Whether replies decline, by the hashes of their texts (this process's own: they tell nothing of
what was said): to judge one takes some 100 us, and the same ones are found again and again."""


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
    path = _Path(connection, ask.head)
    chosen = _choose(ask, query, lists, path)
    return [_passage(path.rows[one.depth], one) for one in chosen if path.is_fit(one)]


def _choose(
    ask: Ask, query: Query, lists: Mapping[str, Sequence[Posting]], path: _Path
) -> list[Chosen]:
    """What is shown, by a ranking that none of the refusals found by it leads: one may be all that
    reached the floor, and what drew its neighbours up."""
    for _ in range(_ROUNDS):
        ranking = rank(
            query,
            lists,
            messages=ask.head.depth,  # how much of it was indexed by now is no matter
            border=min(ask.border, ask.head.depth),
            neighbours=ask.neighbours,
        )
        if ask.floor and not ranking.relevant:
            ranking = NOTHING
        chosen = select(
            query, ranking, path.read, budget=ask.budget, line_chars=ask.line_chars, taken=ask.taken
        )
        leading = {one.depth for one in ranking.scored[:_LEADING] if one.is_hit}
        if leading.isdisjoint(path.declined):
            break
        lists = _without(lists, path.declined)
    return chosen


def _without(
    lists: Mapping[str, Sequence[Posting]], depths: Collection[int]
) -> dict[str, list[Posting]]:
    kept = {term: [one for one in held if one[0] not in depths] for term, held in lists.items()}
    return {term: held for term, held in kept.items() if held}


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
    them. Replies that decline are left out, but for the one at this depth: what is asked for by
    itself is told as it was said.
    """
    first, last = max(1, depth - before), min(depth + after, border, head.depth)
    path = _Path(connection, head)
    lines = path.read(range(first, last + 1), asked=depth)
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
    """Messages of the path to head, read in runs: O(log n) rows to reach one, then its own.
    declined: the depths of the replies among them that are refusals."""

    connection: Connection
    head: Node
    rows: dict[int, Said] = field(default_factory=dict)
    declined: set[int] = field(default_factory=set)

    def read(self, depths: Sequence[int], asked: int | None = None) -> Mapping[int, Line]:
        """Those at these depths, without refusals (but for one that is asked for)."""
        for first, last in _runs(depth for depth in depths if depth not in self.rows):
            found = search.read_stretch(self.connection, self.head.pk, first, last)
            self.rows.update((row.depth, row) for row in found)
        lines = {}
        for depth in depths:
            if depth not in self.rows:
                continue
            row = self.rows[depth]
            message = loads(row.raw)
            text = message_text(message)
            if depth != asked and row.role == "assistant" and _declines(message, text):
                self.declined.add(depth)
            else:
                lines[depth] = Line(row.pk, text)
        return lines

    def is_fit(self, chosen: Chosen) -> bool:
        """Whether a part of a reply is no refusal by itself."""
        is_part_of_reply = not chosen.whole and self.rows[chosen.depth].role == "assistant"
        return not (is_part_of_reply and _sounds_declining(chosen.text))


def _declines(message: Mapping[str, Any], text: str) -> bool:
    """Whether a reply is a refusal, by its form or by what it says."""
    content = message.get("content")
    if isinstance(content, list) and any(is_refusal_part(part) for part in content):
        return True
    return _sounds_declining(text)


def _sounds_declining(text: str) -> bool:
    key = hash(text)
    known = _verdicts.get(key)
    if known is None:
        from policies.judge import declines_request

        if len(_verdicts) >= _MOST_VERDICTS:
            _verdicts.clear()
        known = _verdicts[key] = declines_request(text)
    return known


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
