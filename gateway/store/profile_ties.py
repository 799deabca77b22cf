"""A fact in the ledger of a conversation and the one in its owner's profile that the same message
taught: what becomes of one becomes of the other. No function commits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import ColumnElement, Connection, select, update

from gateway.store import ledger
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
from gateway.store.profile_chains import chains_holding, link, settle_all
from gateway.store.profile_edits import edit_fact, purge_deleted
from gateway.store.profile_learning import takes_place_of, tells_about, tells_same_words
from gateway.store.rows import record
from gateway.store.shown import private_among
from gateway.store.transcript import messages

T = TypeVar("T")
Test = Callable[[ProfileRow, str, str | None], bool]
"""Whether a fact of the profile was learned so: the fact, a text, what it is about."""


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
    told = _taught_in(connection, conversation_pk, profile_facts.c.source.startswith(f"{content}:"))
    return _closest(told, lambda row, test: any(test(row, w.text, w.about) for w in wordings))


def _closest(rows: Sequence[T], is_told: Callable[[T, Test], bool]) -> list[T]:
    """Those of what one message taught that are told in the same words; where there are none, those
    that are about the same: two facts about one subject are two."""
    words = [row for row in rows if is_told(row, tells_same_words)]
    return words or [row for row in rows if is_told(row, tells_about)]


def entries_of(connection: Connection, fact: ProfileRow) -> list[EntryRow]:
    """The other way round: the facts of the ledger, whatever became of them, oldest first, and
    what took their place by their owner's edits."""
    found = _closest_entries(connection, fact)
    return sorted(found + _edited_into(connection, found), key=lambda row: row.pk)


def _closest_entries(connection: Connection, fact: ProfileRow) -> list[EntryRow]:
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
    return _closest(told, lambda row, test: test(fact, row.text, row.about))


def _edited_into(connection: Connection, rows: Sequence[EntryRow]) -> list[EntryRow]:
    """What took the place of these entries, step by step, beside them."""
    known = {row.pk for row in rows}
    fresh = set(known)
    while fresh:
        by = connection.execute(
            select(marks.c.by_pk).where(
                marks.c.entry_pk.in_(fresh),
                marks.c.mark == "superseded",
                marks.c.origin == "owner",
                marks.c.by_pk.is_not(None),
            )
        ).scalars()
        fresh = {pk for pk in by if pk not in known}
        known |= fresh
    return ledger.entries_by_pk(connection, sorted(known - {row.pk for row in rows}))


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
    connection: Connection, wordings: Sequence[EntryRow], conversation_pk: int, deleted_ms: int
) -> list[str]:
    """Delete what the message of a ledger's fact taught; the ids of the facts that stood.

    They are not learned again. What another conversation told, or its owner wrote, before they took
    its place stands again. deleted_ms: the moment of the deletion that they go with.
    """
    told = memories_of(connection, wordings, conversation_pk)
    found = [row for row in _with_retold(connection, told) if row.state != "deleted"]
    if not found:
        return []
    pks, owner_pk = [row.pk for row in found], found[0].owner_pk
    end_facts(connection, pks, "deleted", deleted_ms)
    settle_all(connection, owner_pk, pks)
    purge_deleted(connection, owner_pk)
    return [row.id for row in found if row.state == "active"]


def bring_back_memories(
    connection: Connection, wordings: Sequence[EntryRow], conversation_pk: int, deleted_ms: int
) -> list[str]:
    """Undo `withdraw_memories` of the moment deleted_ms; the ids of the facts that stand again: not
    what had given way to another that stands. The newest has the words of the ledger where no view
    shows its text any more; of the others those come back, behind it, that have theirs."""
    entry = wordings[0]
    told = memories_of(connection, wordings, conversation_pk)
    went = ("deleted", deleted_ms)
    found = [row for row in _with_retold(connection, told) if (row.state, row.ended_ms) == went]
    if not found:
        return []
    if not found[0].text:
        emptied = update(profile_facts).where(profile_facts.c.pk == found[0].pk)
        words = {"text": one_line(entry.text), "about": entry.about, "origin": entry.origin}
        connection.execute(emptied.values(**words))
    back = [row.pk for row in found[:1]] + [row.pk for row in found[1:] if row.text]
    end_facts(connection, back, "replaced", deleted_ms)
    _join_same(connection, rows_by_pk(connection, back[:1])[0], deleted_ms)
    stands = settle_all(connection, found[0].owner_pk, back)
    return [row.id for row in found if row.pk in stands]


def _with_retold(connection: Connection, told: Sequence[ProfileRow]) -> list[ProfileRow]:
    """These facts, and what the same conversation told in the same words once more, where its
    ledger holds both as one."""
    pks, again = {row.pk for row in told}, []
    for words in {_learned(row) for row in told}:
        same = profile_facts.c.source.endswith(f":{words}")
        again += _taught_in(connection, told[0].conversation_pk, same)
    again = [row for row in again if row.pk not in pks]
    return [*told, *(row for row in again if not _closest_entries(connection, row))]


def _taught_in(
    connection: Connection, conversation_pk: int | None, where: ColumnElement[bool]
) -> list[ProfileRow]:
    """Of what a conversation taught, whatever became of it, newest first."""
    rows = connection.execute(
        select(*COLUMNS)
        .where(profile_facts.c.conversation_pk == conversation_pk, where)
        .order_by(profile_facts.c.pk.desc())
    )
    return [record(ProfileRow, row) for row in rows]


def _learned(row: ProfileRow) -> str:
    """In which words, as a digest, whatever its owner made of these."""
    return (row.source or "").rpartition(":")[2]


def _join_same(connection: Connection, fact: ProfileRow, deleted_ms: int) -> None:
    """Put a fact that comes back into the chain of what was told, or written, about the same while
    it was deleted, as if it had never been away."""
    (own,) = chains_holding(connection, fact.owner_pk, [fact.pk])
    if any(row.state == "active" for row in own):
        return
    since = connection.execute(
        select(*COLUMNS)
        .where(
            profile_facts.c.owner_pk == fact.owner_pk,
            profile_facts.c.state == "active",
            profile_facts.c.created_ms >= deleted_ms,
        )
        .order_by(profile_facts.c.pk.desc())
    )
    others = [
        row for row in (record(ProfileRow, row) for row in since) if takes_place_of(row, fact)
    ]
    apart = private_among(connection, {row.conversation_pk or 0 for row in [fact, *others]})
    for other in others:
        (chain,) = chains_holding(connection, fact.owner_pk, [other.pk])
        beside = {(row.conversation_pk, row.created_ms) for row in chain}
        is_beside = any((row.conversation_pk, row.created_ms) in beside for row in own)
        if not is_beside and not apart & {other.conversation_pk, fact.conversation_pk}:
            link(connection, [*chain, *own])
            return
