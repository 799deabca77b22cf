"""Which of the messages that an index holds stand on one path: it holds those of all branches.

No function commits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from math import inf

from sqlalchemy import Connection, text

from gateway.store.prepared import Prepared
from gateway.store.search import WALK, Index, Posting
from gateway.store.transcript import Node, ancestor_at
from gateway.wire.json_text import dumps
from policies.recall.places import PK_AT

_DEPTHS = (
    "(SELECT CAST(value AS integer) FROM jsonb_array_elements_text(CAST(:depths AS jsonb)))"
    " AS d(value)"
)
# CROSS JOIN keeps SQLite from reading the whole conversation for each depth.
_AT_DEPTHS = Prepared(
    text(
        "SELECT m.depth, m.pk FROM json_each(:depths) d CROSS JOIN messages m"
        " ON m.conversation_pk = :conversation AND m.depth = d.value"
    ),
    postgresql=text(
        f"SELECT m.depth, m.pk FROM {_DEPTHS} JOIN messages m"
        " ON m.conversation_pk = :conversation AND m.depth = d.value"
    ),
)
_BEFORE_LONE = Prepared(
    text(
        "SELECT l.depth, m.parent_pk FROM (SELECT d.value AS depth, min(m.pk) AS pk"
        " FROM json_each(:depths) d CROSS JOIN messages m"
        " ON m.conversation_pk = :conversation AND m.depth = d.value + 1"
        " GROUP BY d.value HAVING count(*) = 1) l CROSS JOIN messages m ON m.pk = l.pk"
    ),
    postgresql=text(
        "SELECT l.depth, m.parent_pk FROM (SELECT d.value AS depth, min(m.pk) AS pk"
        f" FROM {_DEPTHS} JOIN messages m"
        " ON m.conversation_pk = :conversation AND m.depth = d.value + 1"
        " GROUP BY d.value HAVING count(*) = 1) l JOIN messages m ON m.pk = l.pk"
    ),
)
_STRETCH = Prepared(text(WALK + "SELECT depth, pk FROM walk WHERE depth <= :last"))
_Stretch = tuple[list[int], float, float]
"""Depths, and the row numbers between which those of the path lie."""

_REACH = 16
"""Depths on each side of one that are read with it where they are in doubt as well: a step from
parent to parent costs a seventh of what it does to reach the first (4 and 27 µs)."""


def keep_path(
    connection: Connection,
    index: Index,
    head: Node,
    border: int,
    lists: Mapping[str, Sequence[Posting]],
) -> Mapping[str, Sequence[Posting]]:
    """Of posting lists what stands on the path to head, down to depth border; empty ones go.

    What another branch says must neither hide a line of this one at its depth nor make its words
    seem common or take its place. Two reads of O(log n) rows where the index holds one line and
    the path follows it that far; else the cost is that of the lists, and of the forks among them
    (measured: 2 ms for a thousand postings of 6,000 messages).
    """
    if _is_one_line(connection, index, head, border):
        return lists
    depths = {depth for held in lists.values() for depth, _ in held if depth <= border}
    path = path_at(connection, index.conversation_pk, head, depths)
    kept = {
        term: [(depth, place) for depth, place in held if path.get(depth) == place >> PK_AT]
        for term, held in lists.items()
    }
    return {term: held for term, held in kept.items() if held}


def path_at(
    connection: Connection, conversation_pk: int, head: Node, depths: Collection[int]
) -> dict[int, int]:
    """The row number of the message at each of these depths on the path to head.

    A message that is alone at its depth is on every path that goes so deep, and so is the one that
    it follows: of many replies to one line the next line tells which was gone on from. Row numbers
    grow along a path, so that a few that are looked up tell the others of a branch apart.
    """
    said: defaultdict[int, list[int]] = defaultdict(list)
    asked = dumps(sorted(depth for depth in depths if 0 < depth <= head.depth))
    for depth, pk in _AT_DEPTHS.all(connection, conversation=conversation_pk, depths=asked):
        said[depth].append(pk)
    found = {depth: held[0] for depth, held in said.items() if len(held) == 1}
    forks = dumps([depth for depth in said if depth not in found and depth < head.depth])
    found.update(_BEFORE_LONE.all(connection, conversation=conversation_pk, depths=forks))
    waiting: list[_Stretch] = [(sorted(said.keys() - found.keys()), 0, inf)]
    while waiting:
        depths, low, high = waiting.pop()
        doubtful = []
        for depth in depths:
            may_be = [pk for pk in said[depth] if low < pk < high]
            if len(may_be) == 1:
                found[depth] = may_be[0]
            else:
                doubtful.append(depth)
        if doubtful:
            waiting += _split(connection, head, doubtful, found, (low, high))
    return found


def _split(
    connection: Connection,
    head: Node,
    doubtful: Sequence[int],
    found: dict[int, int],
    bounds: tuple[float, float],
) -> list[_Stretch]:
    """Look up the middle one of these depths, and those close by; what is left on either side."""
    middle = doubtful[len(doubtful) // 2]
    near = [depth for depth in doubtful if abs(depth - middle) <= _REACH]
    first, last = near[0], near[-1]
    known: dict[int, int] = dict(_STRETCH.all(connection, head=head.pk, first=first, last=last))
    found.update((depth, known[depth]) for depth in near)
    before = [depth for depth in doubtful if depth < first]
    after = [depth for depth in doubtful if depth > last]
    return [(before, bounds[0], known[first]), (after, known[last], bounds[1])]


def _is_one_line(connection: Connection, index: Index, head: Node, border: int) -> bool:
    """Whether all that the index holds down to this depth is on the path. Of what it holds it holds
    every ancestor: as many messages as its last one's depth are that one's path."""
    if index.messages > index.last_depth:
        return False
    depth = min(border, index.last_depth)
    return ancestor_at(connection, index.last_pk, depth) == ancestor_at(connection, head.pk, depth)
