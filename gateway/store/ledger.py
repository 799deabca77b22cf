"""The ledger: entries beside the chapters, and what became of each. No function commits.

Entries and marks are added, never rewritten. What they mean on a path: ledger_rows.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, insert, select

from gateway.store.ledger_rows import (
    BY_OWNER,
    ENTRY_COLUMNS,
    MARK_COLUMNS,
    EntryRow,
    EntryState,
    Kind,
    MarkName,
    MarkRow,
    Path,
    entries,
    marks,
    state_of,
)
from gateway.store.prepared import Prepared
from gateway.store.rows import new_pk, record
from gateway.store.transcript import Node

_ANY = Prepared(
    select(entries.c.pk).where(entries.c.conversation_pk == bindparam("conversation")).limit(1)
)


@dataclass(frozen=True, slots=True)
class Threads:
    """The threads of one path at one depth: open by number, closed newest first."""

    open: list[EntryRow]
    closed: list[EntryRow]


def read_threads(
    connection: Connection, conversation_pk: int, head: Node, *, up_to_depth: int
) -> Threads:
    """The threads on the path to head after the message at depth `up_to_depth`: opened by a chapter
    that ends there at the latest; closed by one that does."""
    states = states_on_path(
        connection, conversation_pk, head, up_to_depth=up_to_depth, kinds=["thread"]
    )
    live = [state.row for state in states if state.is_live]
    closed = [
        (state.closed.last_depth or state.row.last_depth, state.closed.pk, state.row)
        for state in states
        if state.closed is not None and state.deleted is None
    ]
    return Threads(
        sorted(live, key=lambda row: (row.number or 0, row.pk)),
        [row for _, _, row in sorted(closed, key=lambda item: item[:2], reverse=True)],
    )


def open_threads(
    connection: Connection, conversation_pk: int, head: Node, *, up_to_depth: int
) -> list[EntryRow]:
    """Those of `read_threads` that are open."""
    return read_threads(connection, conversation_pk, head, up_to_depth=up_to_depth).open


def pinned(
    connection: Connection, conversation_pk: int, head: Node, *, up_to_depth: int
) -> list[EntryRow]:
    """The entries that the owner pinned, live or superseded or closed, but not deleted; oldest
    first."""
    marked = select(marks.c.entry_pk).where(
        marks.c.conversation_pk == conversation_pk, marks.c.mark == "pinned"
    )
    states = states_on_path(
        connection, conversation_pk, head, up_to_depth=up_to_depth, where=entries.c.pk.in_(marked)
    )
    return [state.row for state in states if state.pinned is not None and state.deleted is None]


def facts(
    connection: Connection, conversation_pk: int, head: Node, *, up_to_depth: int
) -> list[EntryRow]:
    """The facts that hold, oldest first: superseded and deleted ones are left out."""
    states = states_on_path(
        connection, conversation_pk, head, up_to_depth=up_to_depth, kinds=["fact"]
    )
    return [state.row for state in states if state.is_live]


def facts_behind(connection: Connection, conversation_pk: int, depth: int) -> list[EntryRow]:
    """The facts of chapters that end deeper than `depth`, on any branch, that nothing deleted."""
    gone = select(marks.c.entry_pk).where(
        marks.c.conversation_pk == conversation_pk, marks.c.mark == "deleted"
    )
    where = (entries.c.last_depth > depth) & entries.c.pk.not_in(gone)
    return _select(connection, conversation_pk, ["fact"], where)


def entries_by_pk(connection: Connection, pks: Sequence[int]) -> list[EntryRow]:
    """These entries, in the order asked for; what a fold row names never changes."""
    if not pks:
        return []
    rows = connection.execute(select(*ENTRY_COLUMNS).where(entries.c.pk.in_(list(pks))))
    by_pk = {row[0]: record(EntryRow, row) for row in rows}
    return [by_pk[pk] for pk in pks if pk in by_pk]


def entry_by_id(connection: Connection, conversation_pk: int, id: str) -> EntryRow | None:
    """By its public id, within its conversation."""
    row = connection.execute(
        select(*ENTRY_COLUMNS).where(
            entries.c.conversation_pk == conversation_pk, entries.c.id == id
        )
    ).first()
    return None if row is None else record(EntryRow, row)


def states_on_path(
    connection: Connection,
    conversation_pk: int,
    head: Node,
    *,
    up_to_depth: int | None = None,
    kinds: Collection[Kind] = (),
    where: ColumnElement[bool] | None = None,
) -> list[EntryState]:
    """The entries on the path to head with what became of them there, oldest span first.

    up_to_depth: as the ledger stood after the chapters that end there at the latest, None: at
    head; kinds: only these, none: all.
    """
    path = Path(connection, head, up_to_depth)
    rows = _select(connection, conversation_pk, kinds, where)
    path.learn(row.last_depth for row in rows if row.last_depth <= head.depth)
    rows = [row for row in rows if path.holds(row.last_pk, row.last_depth)]
    told = marks_of(connection, conversation_pk, rows)
    return [
        state_of(row, [mark for mark in told.get(row.pk, ()) if path.counts(mark)]) for row in rows
    ]


def all_entries(
    connection: Connection, conversation_pk: int
) -> list[tuple[EntryRow, list[MarkRow]]]:
    """Every entry of a conversation on any branch with all its marks, oldest span first."""
    rows = _select(connection, conversation_pk, (), None)
    told = marks_of(connection, conversation_pk, rows)
    return [(row, told.get(row.pk, [])) for row in rows]


def changed_by_owner(
    connection: Connection, conversation_pk: int, sources: Collection[int]
) -> list[EntryState]:
    """What chapters of any branch told of these messages, by row number, and the owner deleted or
    put into other words, as all its marks leave it. Reads what the owner changed, no more."""
    changed = select(marks.c.entry_pk).where(
        marks.c.conversation_pk == conversation_pk,
        marks.c.mark.in_(("deleted", "superseded")),
        marks.c.origin.in_(BY_OWNER),
    )
    found = _select(connection, conversation_pk, (), entries.c.pk.in_(changed))
    said = set(sources)
    rows = [row for row in found if row.source_pk in said]
    told = marks_of(connection, conversation_pk, rows)
    return [state_of(row, told.get(row.pk, ())) for row in rows]


def states_by_pk(
    connection: Connection, conversation_pk: int, pks: Sequence[int]
) -> dict[int, EntryState]:
    """These entries of a conversation by row number, as all their marks leave them, on whichever
    branch."""
    rows = entries_by_pk(connection, pks)
    told = marks_of(connection, conversation_pk, rows)
    return {row.pk: state_of(row, told.get(row.pk, ())) for row in rows}


def has_entries(connection: Connection, conversation_pk: int) -> bool:
    """Whether the ledger of a conversation holds anything at all: a look that costs next to
    nothing."""
    return _ANY.first(connection, conversation=conversation_pk) is not None


def _select(
    connection: Connection,
    conversation_pk: int,
    kinds: Collection[Kind],
    where: ColumnElement[bool] | None,
) -> list[EntryRow]:
    asked = select(*ENTRY_COLUMNS).where(entries.c.conversation_pk == conversation_pk)
    if kinds:
        asked = asked.where(entries.c.kind.in_(list(kinds)))
    if where is not None:
        asked = asked.where(where)
    rows = connection.execute(asked.order_by(entries.c.last_depth, entries.c.pk))
    return [record(EntryRow, row) for row in rows]


def marks_of(
    connection: Connection, conversation_pk: int, rows: Sequence[EntryRow]
) -> dict[int, list[MarkRow]]:
    """The marks of these entries, oldest first, by the entry's row number."""
    if not rows:
        return {}
    wanted, kinds = {row.pk for row in rows}, {row.kind for row in rows}
    found: dict[int, list[MarkRow]] = {}
    asked = (
        select(*MARK_COLUMNS)
        .join(entries, entries.c.pk == marks.c.entry_pk)
        .where(marks.c.conversation_pk == conversation_pk, entries.c.kind.in_(kinds))
        .order_by(marks.c.pk)
    )
    for row in connection.execute(asked):
        mark = record(MarkRow, row)
        if mark.entry_pk in wanted:
            found.setdefault(mark.entry_pk, []).append(mark)
    return found


def add_entry(
    connection: Connection,
    conversation_pk: int,
    *,
    kind: Kind,
    text: str,
    last_pk: int,
    last_depth: int,
    origin: str,
    now_ms: int,
    **more: Any,
) -> EntryRow:
    """Write an entry; more: number, about, who, target, truth, chapter_pk, version_pk, gist_pk,
    source_pk. A thread without a number gets the next one of its conversation."""
    values = dict.fromkeys(_NULLABLE) | more
    if kind == "thread" and values["number"] is None:
        values["number"] = _next_number(connection, conversation_pk)
    made = connection.execute(
        insert(entries).values(
            id=f"led_{secrets.token_hex(8)}",
            conversation_pk=conversation_pk,
            kind=kind,
            text=text,
            last_pk=last_pk,
            last_depth=last_depth,
            origin=origin,
            created_ms=now_ms,
            **values,
        )
    )
    return entries_by_pk(connection, [new_pk(made)])[0]


_NULLABLE = (
    "number",
    "about",
    "who",
    "target",
    "truth",
    "chapter_pk",
    "version_pk",
    "gist_pk",
    "source_pk",
)


def _next_number(connection: Connection, conversation_pk: int) -> int:
    numbers = select(entries.c.number).where(
        entries.c.conversation_pk == conversation_pk, entries.c.number.is_not(None)
    )
    newest = connection.execute(numbers.order_by(entries.c.number.desc()).limit(1)).scalar()
    return (newest or 0) + 1


def add_mark(
    connection: Connection,
    conversation_pk: int,
    entry_pk: int,
    mark: MarkName,
    *,
    origin: str,
    now_ms: int,
    by_pk: int | None = None,
    chapter_pk: int | None = None,
    at: tuple[int, int] | None = None,
) -> int:
    """Say what became of an entry. at: (row number, depth) of the message from which on it counts,
    None: on every path (the owner's own act). origin: model, version, scrub, edit, or one of
    BY_OWNER."""
    made = connection.execute(
        insert(marks).values(
            conversation_pk=conversation_pk,
            entry_pk=entry_pk,
            mark=mark,
            by_pk=by_pk,
            chapter_pk=chapter_pk,
            last_pk=None if at is None else at[0],
            last_depth=None if at is None else at[1],
            origin=origin,
            created_ms=now_ms,
        )
    )
    return new_pk(made)
