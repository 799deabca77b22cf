"""A fact in the ledger of a conversation and the one in its owner's profile that the same message
taught: what becomes of one becomes of the other. No function commits."""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from gateway.store.ledger_rows import ENTRY_COLUMNS, EntryRow, entries
from gateway.store.profile import (
    COLUMNS,
    ProfileRow,
    end_facts,
    profile_facts,
    rows_by_pk,
    source_content,
)
from gateway.store.profile_edits import purge_deleted
from gateway.store.profile_learning import tells_same
from gateway.store.rows import record
from gateway.store.transcript import messages


def memories_of(connection: Connection, entry: EntryRow, conversation_pk: int) -> list[ProfileRow]:
    """The facts of the profile that the message of a ledger's fact taught in such words, or about
    the same, whatever became of them; newest first. None for entries of another kind."""
    if entry.kind != "fact" or entry.source_pk is None:
        return []
    content = connection.execute(
        select(messages.c.content).where(messages.c.pk == entry.source_pk)
    ).scalar()
    rows = connection.execute(
        select(*COLUMNS)
        .where(profile_facts.c.conversation_pk == conversation_pk)
        .order_by(profile_facts.c.pk.desc())
    )
    taught = (record(ProfileRow, row) for row in rows)
    return [
        row
        for row in taught
        if source_content(row) == content and tells_same(row, entry.text, entry.about)
    ]


def entries_of(connection: Connection, fact: ProfileRow) -> list[EntryRow]:
    """The other way round: the facts of the ledger, whatever became of them, oldest first."""
    if fact.source is None:
        return []
    rows = connection.execute(
        select(*ENTRY_COLUMNS)
        .join(messages, messages.c.pk == entries.c.source_pk)
        .where(
            entries.c.conversation_pk == fact.conversation_pk,
            entries.c.kind == "fact",
            messages.c.content == source_content(fact),
        )
        .order_by(entries.c.pk)
    )
    told = (record(EntryRow, row) for row in rows)
    return [row for row in told if tells_same(fact, row.text, row.about)]


def withdraw_memories(
    connection: Connection, entry: EntryRow, conversation_pk: int, now_ms: int
) -> list[str]:
    """Delete what the message of a ledger's fact taught; the ids of the facts that stood.

    They are not learned again. What another conversation told, or its owner wrote, before they took
    its place stands again.
    """
    found = [
        row for row in memories_of(connection, entry, conversation_pk) if row.state != "deleted"
    ]
    end_facts(connection, [row.pk for row in found], "deleted", now_ms)
    stood = [row for row in found if row.state == "active"]
    for row in stood:
        before = _behind(connection, row)
        if before is not None:
            end_facts(connection, [before.pk], "active", None)
    for row in found[:1]:
        purge_deleted(connection, row.owner_pk)
    return [row.id for row in stood]


def bring_back_memories(
    connection: Connection, entry: EntryRow, conversation_pk: int, deleted_ms: int
) -> list[str]:
    """Undo `withdraw_memories` of the moment deleted_ms; the ids of the facts that stand again. One
    whose text no view shows any more has the words of the ledger."""
    for row in memories_of(connection, entry, conversation_pk):
        if (row.state, row.ended_ms) != ("deleted", deleted_ms):
            continue
        before = _behind(connection, row)
        if before is not None and before.state == "active":
            end_facts(connection, [before.pk], "replaced", deleted_ms)
        end_facts(connection, [row.pk], "active", None)
        if not row.text:
            connection.execute(
                update(profile_facts)
                .where(profile_facts.c.pk == row.pk)
                .values(text=entry.text, about=entry.about, origin="model")
            )
        return [row.id]
    return []


def _behind(connection: Connection, fact: ProfileRow) -> ProfileRow | None:
    """The newest of what a fact took the place of that another conversation told, or its owner
    wrote: an older word of the same conversation is no more in force than what replaced it."""
    at = rows_by_pk(connection, [fact.replaces_pk or 0])
    while at:
        row = at[0]
        if row.text and row.state != "deleted" and row.conversation_pk != fact.conversation_pk:
            return row
        at = rows_by_pk(connection, [row.replaces_pk or 0])
    return None
