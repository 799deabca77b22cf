"""Which facts of a profile were told on a branch that is in use: what was learned of a message that
an edit left behind stands aside while the newest branch of its conversation does not hold it.

No function commits.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, exists, select, tuple_

from gateway.store.ledger_rows import Path
from gateway.store.profile import ProfileRow, rows_by_pk, source_content
from gateway.store.shown import private_among
from gateway.store.transcript import Node, conversations, messages, node_by_pk

MOST_BEHIND = 20
"""Facts of one chain that are looked at for one that stands in the place of what stands aside."""

_MOST_ASKED = 200

_head = messages.alias("head")
_beside = messages.alias("beside")
_IS_FORK = exists().where(
    _beside.c.conversation_pk == messages.c.conversation_pk,
    _beside.c.depth == messages.c.depth,
    _beside.c.pk != messages.c.pk,
)
_PLACES = (
    select(
        messages.c.pk,
        messages.c.conversation_pk,
        messages.c.content,
        messages.c.depth,
        _head.c.pk,
        _head.c.depth,
        _IS_FORK,
    )
    .join(conversations, conversations.c.pk == messages.c.conversation_pk)
    .join(_head, _head.c.pk == conversations.c.head_pk)
)

Here = tuple[int, Node]
"""A conversation, and the end of the branch that is looked at in place of its newest one."""


def left_behind(
    connection: Connection, rows: Sequence[ProfileRow], here: Here | None = None
) -> set[int]:
    """The row numbers of the learned facts whose message lies on no branch in use: the newest one
    of its conversation, or the one of `here`. What its owner wrote or mended is never among them,
    nor what is told by no message that is there.

    One read, and where a message is not alone at its depth O(log n) rows more.
    """
    wanted: defaultdict[tuple[int, str], list[int]] = defaultdict(list)
    for row in rows:
        content = source_content(row)
        if row.origin == "model" and row.conversation_pk is not None and content is not None:
            wanted[row.conversation_pk, content].append(row.pk)
    if not wanted:
        return set()
    paths: dict[int, Path] = {}
    held: dict[tuple[int, str], bool] = {}
    for pk, chat, content, depth, head_pk, head_depth, is_fork in _places(connection, wanted):
        if here is not None and chat == here[0]:
            head_pk, head_depth = here[1].pk, here[1].depth
        is_held = depth <= head_depth
        if is_held and is_fork:
            if chat not in paths:
                paths[chat] = Path(connection, node_by_pk(connection, head_pk))
            is_held = paths[chat].holds(pk, depth)
        held[chat, content] = held.get((chat, content), False) or is_held
    return {pk for key, pks in wanted.items() if not held.get(key, True) for pk in pks}


def _places(connection: Connection, wanted: Collection[tuple[int, str]]) -> Iterator[Sequence[Any]]:
    """The messages of these contents, so many to a statement as one may hold."""
    place, keys = tuple_(messages.c.conversation_pk, messages.c.content), sorted(wanted)
    for start in range(0, len(keys), _MOST_ASKED):
        part = keys[start : start + _MOST_ASKED]
        yield from connection.execute(_PLACES.where(place.in_(part)))


def on_branches(
    connection: Connection, rows: Sequence[ProfileRow], conversation_pk: int, head: Node
) -> list[ProfileRow]:
    """The facts, each of which stands aside replaced by the newest behind it that does not, so that
    a return to an older branch tells again what was told there; nothing of another conversation
    that is private."""
    standing = {row.pk: row for row in rows}
    waiting = {pk: standing[pk] for pk in left_behind(connection, rows, (conversation_pk, head))}
    for pk in waiting:
        del standing[pk]
    for _ in range(MOST_BEHIND):
        pks = [row.replaces_pk for row in waiting.values() if row.replaces_pk is not None]
        if not pks:
            break
        behind = {row.pk: row for row in rows_by_pk(connection, pks)}
        gone = left_behind(connection, list(behind.values()), (conversation_pk, head))
        chats = {row.conversation_pk or 0 for row in behind.values()} - {conversation_pk}
        private = private_among(connection, chats)
        steps = {pk: behind.get(row.replaces_pk or 0) for pk, row in waiting.items()}
        waiting = {}
        for pk, step in steps.items():
            if step is None:
                continue
            is_told = step.state == "replaced" and bool(step.text)
            if is_told and step.pk not in gone and step.conversation_pk not in private:
                standing[pk] = step
            else:
                waiting[pk] = step
    return [standing[row.pk] for row in rows if row.pk in standing]
