"""What a fact of a ledger taught the profile follows its owner's hand: it goes, comes back and is
reworded with it. No function commits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from gateway.flows.hand import Hand
from gateway.store import documents, ledger
from gateway.store.ledger_rows import EntryRow, MarkRow
from gateway.store.profile import ProfileRow
from gateway.store.profile_ties import (
    bring_back_memories,
    memories_of,
    reword_memories,
    withdraw_memories,
)
from gateway.store.transcript import conversations

Ledger = Sequence[tuple[EntryRow, Sequence[MarkRow]]]
"""Every entry of a conversation with all its marks, as `ledger.all_entries` reads them."""


def edits_in(told: Ledger) -> Mapping[int, EntryRow]:
    """By the row number of an entry the one whose place it took by its owner's edit. Deletions
    change nothing of it."""
    before: dict[int, EntryRow] = {}
    for old, marks in told:
        by_owner = [mark for mark in marks if mark.origin == "owner"]
        newest = [m for m in by_owner if m.mark in ("superseded", "restored")]
        if newest and newest[-1].mark == "superseded" and newest[-1].by_pk is not None:
            before[newest[-1].by_pk] = old
    return before


def wordings(
    connection: Connection,
    hand: Hand,
    row: EntryRow,
    edits: Mapping[int, EntryRow] | None = None,
) -> list[EntryRow]:
    """An entry, and those whose place it took by its owner's edits, newest first. edits: where they
    are known, so that the ledger is not read for each of many entries."""
    before = edits
    if before is None:
        before = edits_in(ledger.all_entries(connection, hand.conversation.pk))
    steps = [row]
    while (old_row := before.get(steps[-1].pk)) is not None and old_row not in steps:
        steps.append(old_row)
    return steps


def withdraw(
    connection: Connection,
    hand: Hand,
    row: EntryRow,
    deleted: MarkRow | None = None,
    *,
    edits: Mapping[int, EntryRow] | None = None,
) -> list[str]:
    """The memories that go with an entry. deleted: the deletion that they go with, where it was an
    earlier one: with it they come back. edits: as `wordings` takes them."""
    if row.kind != "fact":
        return []
    told = wordings(connection, hand, row, edits)
    _renew_others(connection, hand, memories_of(connection, told, hand.conversation.pk))
    deleted_ms = hand.now_ms if deleted is None else deleted.created_ms
    return withdraw_memories(connection, told, hand.conversation.pk, deleted_ms)


def reword(
    connection: Connection, hand: Hand, told: Sequence[EntryRow], says: EntryRow, into: EntryRow
) -> None:
    """The memories that follow an edit from what `says` says to what `into` does. told: the
    `wordings` of the entry."""
    reworded = reword_memories(
        connection, told, hand.conversation.pk, says=says, into=into, now_ms=hand.now_ms
    )
    _renew_others(connection, hand, reworded)


def _renew_others(connection: Connection, hand: Hand, changed: Sequence[ProfileRow]) -> None:
    """With `now` every view of their owner that shows these memories is renewed at its next user
    message."""
    if changed and hand.now:
        owner = conversations.c.owner_pk == hand.conversation.owner_pk
        owned = select(conversations.c.pk).where(owner)
        documents.ask_anew_showing(connection, owned, "profile", [fact.pk for fact in changed])


def bring_back(
    connection: Connection,
    hand: Hand,
    row: EntryRow,
    deleted: MarkRow,
    *,
    edits: Mapping[int, EntryRow] | None = None,
) -> list[str]:
    """The memories that went with an entry; none where the entry went with a memory, which its
    owner deleted for good. edits: as `wordings` takes them."""
    if deleted.origin == "profile" or row.kind != "fact":
        return []
    told = wordings(connection, hand, row, edits)
    return bring_back_memories(connection, told, hand.conversation.pk, deleted.created_ms)
