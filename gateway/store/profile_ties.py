"""A fact in the ledger of a conversation and the one in its owner's profile that the same message
taught: what becomes of one becomes of the other. No function commits."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select, update

from gateway.store.ledger_rows import ENTRY_COLUMNS, EntryRow, entries, marks
from gateway.store.profile import (
    COLUMNS,
    ProfileRow,
    end_facts,
    fold_text,
    one_line,
    profile_facts,
    rows_by_pk,
    source_content,
)
from gateway.store.profile_edits import edit_fact, purge_deleted
from gateway.store.profile_learning import tells_same
from gateway.store.rows import record
from gateway.store.transcript import messages


def memories_of(
    connection: Connection, wordings: Sequence[EntryRow], conversation_pk: int
) -> list[ProfileRow]:
    """The facts of the profile that the message of a ledger's fact taught in such words, or about
    the same, whatever became of them; newest first. None for entries of another kind. wordings:
    the entry, then those whose place it took by its owner's edits."""
    entry = wordings[0]
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
        if source_content(row) == content
        and any(tells_same(row, told.text, told.about) for told in wordings)
    ]


def entries_of(connection: Connection, fact: ProfileRow) -> list[EntryRow]:
    """The other way round: the facts of the ledger, whatever became of them, oldest first, and
    what took their place by their owner's edits."""
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
    told = [record(EntryRow, row) for row in rows]
    found = [row for row in told if tells_same(fact, row.text, row.about)]
    edited = set(_edited_into(connection, fact.conversation_pk or 0, [row.pk for row in found]))
    return [row for row in told if row in found or row.pk in edited]


def _edited_into(connection: Connection, conversation_pk: int, pks: Sequence[int]) -> list[int]:
    """The row numbers of the entries that took the place of these, step by step."""
    found, fresh = list(pks), list(pks)
    while fresh:
        by = connection.execute(
            select(marks.c.by_pk).where(
                marks.c.conversation_pk == conversation_pk,
                marks.c.entry_pk.in_(fresh),
                marks.c.mark == "superseded",
                marks.c.origin == "owner",
                marks.c.by_pk.is_not(None),
            )
        ).scalars()
        fresh = [pk for pk in by if pk not in found]
        found += fresh
    return found


def reword_memories(
    connection: Connection,
    wordings: Sequence[EntryRow],
    conversation_pk: int,
    *,
    says: EntryRow,
    into: EntryRow,
    now_ms: int,
) -> list[ProfileRow]:
    """Say what a ledger's fact taught as `into` says it; the facts that were so reworded, as they
    were. What its owner has put into other words than those of `says` meanwhile stays."""
    found = []
    text, about = one_line(into.text), into.about
    for fact in memories_of(connection, wordings, conversation_pk):
        is_own = fact.origin == "owner" and fold_text(fact.text) != fold_text(says.text)
        if fact.state == "active" and not is_own and (fact.text, fact.about) != (text, about):
            edit_fact(connection, fact, text, about, now_ms)
            found.append(fact)
    return found


def withdraw_memories(
    connection: Connection, wordings: Sequence[EntryRow], conversation_pk: int, now_ms: int
) -> list[str]:
    """Delete what the message of a ledger's fact taught; the ids of the facts that stood.

    They are not learned again. What another conversation told, or its owner wrote, before they took
    its place stands again.
    """
    found = [
        row for row in memories_of(connection, wordings, conversation_pk) if row.state != "deleted"
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
    connection: Connection, wordings: Sequence[EntryRow], conversation_pk: int, deleted_ms: int
) -> list[str]:
    """Undo `withdraw_memories` of the moment deleted_ms; the ids of the facts that stand again: not
    what had given way to another that stands. One whose text no view shows any more has the words
    of the ledger."""
    entry = wordings[0]
    for row in memories_of(connection, wordings, conversation_pk):
        if (row.state, row.ended_ms) != ("deleted", deleted_ms):
            continue
        gave_way = _gave_way(connection, row)
        before = _behind(connection, row)
        if before is not None and before.state == "active":
            end_facts(connection, [before.pk], "replaced", deleted_ms)
        if gave_way:
            end_facts(connection, [row.pk], "replaced", deleted_ms)
        else:
            end_facts(connection, [row.pk], "active", None)
        if not row.text:
            connection.execute(
                update(profile_facts)
                .where(profile_facts.c.pk == row.pk)
                .values(text=entry.text, about=entry.about, origin=entry.origin)
            )
        return [] if gave_way else [row.id]
    return []


def _gave_way(connection: Connection, fact: ProfileRow) -> bool:
    """Whether another fact, which is not deleted, took the place of this one, or of one that is
    deleted since and had taken it."""
    fresh = {fact.pk}
    while fresh:
        by = connection.execute(
            select(profile_facts.c.pk, profile_facts.c.state).where(
                profile_facts.c.owner_pk == fact.owner_pk,
                profile_facts.c.replaces_pk.in_(fresh),
            )
        ).all()
        if any(row.state != "deleted" for row in by):
            return True
        fresh = {row.pk for row in by}
    return False


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
