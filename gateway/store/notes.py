"""Notes: what was recalled beside a message, in the views of one policy that stand on one fold.

Added, never updated: a prompt that showed a note shows the same bytes until the next fold. A row
counts on every path that holds its message. No function commits.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select

from gateway.store.prepared import Prepared
from gateway.store.rows import record
from gateway.store.tables import Note
from gateway.store.transcript import Node, on_path

notes = Note.__table__  # type: ignore[attr-defined]

LINES = "lines"
"""Kind of a note that stands inside its message."""

CALLS = "calls"
"""Kind of what stands behind its message: a model's own searches and their answers. A further
attempt at the same message that searches again adds a row of its own: `calls 2`, `calls 3`."""

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
    newest = _newest(connection, conversation_pk, policy, fold_pk, head)
    return 0 if newest is None else newest.before + newest.chars


def _newest(
    connection: Connection, conversation_pk: int, policy: str, fold_pk: int | None, head: Node
) -> NoteRow | None:
    rows = _NEWEST_FIRST.each(
        connection, conversation=conversation_pk, under=policy, fold=fold_pk or UNFOLDED, since=0
    )
    for row in rows:
        if on_path(connection, row[1], row[2], head):
            return _note(row)
    return None


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
    """Write a note for a message. kind: `LINES`, at most once a message and fold, or `CALLS`."""
    newest = _newest(connection, conversation_pk, policy, fold_pk, asked)
    body = {"before": 0 if newest is None else newest.before + newest.chars, **body}
    if kind == CALLS:
        rows = of_fold(connection, conversation_pk, policy, fold_pk, since=asked.depth)
        mine = sum(row.asked_pk == asked.pk and row.kind != LINES for row in rows)
        kind = CALLS if mine == 0 else f"{CALLS} {mine + 1}"
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
