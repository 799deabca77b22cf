"""Notes: what was recalled beside a message, in the views of one policy that stand on one fold.

Added, never updated: a prompt that showed a note shows the same bytes until the next fold. A row
counts on every path that holds its message; it is added while no view of this policy has shown
anything behind that message, so that no view which was shown changes. No function commits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, text

from gateway.store.prepared import Prepared
from gateway.store.rows import record
from gateway.store.tables.memory import Note
from gateway.store.transcript import Node, on_path

notes = Note.__table__  # type: ignore[attr-defined]

LINES = "lines"
"""Kind of a note that stands inside its message, a question."""

CALLS = "calls"
"""Kind of what stands in front of its message, a reply: the searches that its model made for it,
with their answers. Another reply to the same question has its own."""

UNFOLDED = 0
"""What stands in `fold_pk` for a view that shows everything."""


@dataclass(frozen=True, slots=True)
class NoteRow:
    """A note as stored. body: JSON as `prompts/notes` reads it. chars: what it costs in a view;
    before: what the notes before it cost on its path."""

    pk: int
    asked_pk: int
    asked_depth: int
    kind: str
    body: dict[str, Any]
    chars: int

    @property
    def before(self) -> int:
        return int(self.body["before"])


_ROW = (
    notes.c.pk,
    notes.c.asked_pk,
    notes.c.asked_depth,
    notes.c.kind,
    notes.c.body,
    notes.c.chars,
)
_OF_FOLD = select(*_ROW).where(
    notes.c.conversation_pk == bindparam("conversation"),
    notes.c.policy == bindparam("under"),
    notes.c.fold_pk == bindparam("fold"),
    notes.c.asked_depth >= bindparam("since"),
)
_OLDEST_FIRST = Prepared(_OF_FOLD.order_by(notes.c.asked_depth, notes.c.pk))
_NEWEST_FIRST = Prepared(_OF_FOLD.order_by(notes.c.asked_depth.desc(), notes.c.pk.desc()))
_ADD = Prepared(
    insert(notes).returning(notes.c.pk),
    [column.name for column in notes.c if column.name != "pk"],
)


def _note(row: Any) -> NoteRow:
    values = list(row)
    values[4] = json.loads(values[4])
    return record(NoteRow, values)


# What stands behind a message is younger. The second half is for a message that somebody has
# answered already, under another policy or before the conversation came here.
_WAS_SHOWN = Prepared(
    text(
        "SELECT EXISTS (SELECT 1 FROM attempts WHERE asked_pk = :asked AND policy = :under)"
        " OR (EXISTS (SELECT 1 FROM messages WHERE conversation_pk = :conversation"
        " AND depth = :behind AND parent_pk = :asked)"
        " AND EXISTS (SELECT 1 FROM attempts WHERE conversation_pk = :conversation"
        " AND policy = :under AND asked_pk > :asked))"
    )
)


def was_shown(connection: Connection, conversation_pk: int, policy: str, asked: Node) -> bool:
    """Whether a view of this policy may have shown a message or something behind it: then no note
    can be added to it any more."""
    found = _WAS_SHOWN.scalar(
        connection,
        asked=asked.pk,
        under=policy,
        conversation=conversation_pk,
        behind=asked.depth + 1,
    )
    return bool(found)


_HAS_CHILD = Prepared(
    text(
        "SELECT 1 FROM messages WHERE conversation_pk = :conversation AND depth = :behind"
        " AND parent_pk = :asked LIMIT 1"
    )
)


def is_last(connection: Connection, conversation_pk: int, asked: Node) -> bool:
    """Whether nothing stands behind a message yet."""
    behind = asked.depth + 1
    values = {"conversation": conversation_pk, "behind": behind, "asked": asked.pk}
    return _HAS_CHILD.first(connection, **values) is None


def of_fold(
    connection: Connection,
    conversation_pk: int,
    policy: str,
    fold_pk: int | None,
    *,
    since: int = 0,
) -> list[NoteRow]:
    """The notes of a policy's views on one fold (None: on none), from depth `since` on, oldest
    first. On all branches: who shows them knows which of their messages stand on its path."""
    rows = _OLDEST_FIRST.all(
        connection,
        conversation=conversation_pk,
        under=policy,
        fold=fold_pk or UNFOLDED,
        since=since,
    )
    return [_note(row) for row in rows]


def cost(
    connection: Connection, conversation_pk: int, policy: str, fold_pk: int | None, head: Node
) -> int:
    """Characters that notes add to the view of a policy on one fold (None: on none) at a head.

    One statement where there are none, and a step up the path where there are.
    """
    rows = _NEWEST_FIRST.each(
        connection, conversation=conversation_pk, under=policy, fold=fold_pk or UNFOLDED, since=0
    )
    for row in rows:
        if on_path(connection, row[1], row[2], head):
            newest = _note(row)
            return newest.before + newest.chars
    return 0


_MARK = Prepared(
    text("UPDATE conversations SET noted = :yes WHERE pk = :conversation AND NOT noted")
)


def mark_noted(connection: Connection, conversation_pk: int) -> None:
    """Remember that a view of which nothing is folded holds notes: others need not look for any."""
    _MARK.run(connection, conversation=conversation_pk, yes=True)


def add(
    connection: Connection,
    conversation_pk: int,
    policy: str,
    fold_pk: int | None,
    asked: Node,
    *,
    kind: str,
    body: dict[str, Any],
    chars: int,
    now_ms: int,
) -> NoteRow:
    """Write a note for a message: `LINES` of a question or `CALLS` of a reply, once on a fold."""
    before = cost(connection, conversation_pk, policy, fold_pk, asked)
    body = {"before": before, **body}
    pk = _ADD.scalar(
        connection,
        conversation_pk=conversation_pk,
        policy=policy,
        fold_pk=fold_pk or UNFOLDED,
        asked_pk=asked.pk,
        asked_depth=asked.depth,
        kind=kind,
        body=json.dumps(body),
        chars=chars,
        created_ms=now_ms,
    )
    return NoteRow(int(pk), asked.pk, asked.depth, kind, body, chars)
