"""Slots of servers as the rows know them: who was served where, and what is still to be wiped.

Every function takes a connection; none commits.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, func, insert, or_, select, update

from gateway.store.attempts import attempts
from gateway.store.conversations import outbox
from gateway.store.order import take_turn
from gateway.store.transcript import conversations

_NEWEST = 5_000
"""Attempts looked at: what is older than these was pushed out of its slot long ago."""


@dataclass(frozen=True, slots=True)
class Wipe:
    """One backend that held a deleted conversation, by its id, and has not been wiped."""

    pk: int
    conversation: str
    backend: str


@dataclass(frozen=True, slots=True)
class Deletion:
    """Word that a conversation was deleted, or (conversation_pk None) that of something which views
    showed the text is gone. entry: the row number of the word."""

    entry: int
    conversation_pk: int | None
    conversation: str


def newest_entry(connection: Connection) -> int:
    """The number of the newest word of a deletion, 0 where there is none."""
    return connection.execute(select(func.max(outbox.c.pk))).scalar() or 0


def deletions_after(connection: Connection, entry: int) -> list[Deletion]:
    """What was deleted or emptied since that word, by whichever program, wiped or not; oldest
    first."""
    rows = connection.execute(
        select(outbox.c.pk, outbox.c.conversation_pk, outbox.c.conversation_id)
        .where(outbox.c.pk > entry)
        .where(or_(outbox.c.conversation_pk.is_not(None), outbox.c.conversation_id == ""))
        .order_by(outbox.c.pk)
    )
    return [Deletion(*row) for row in rows]


def tell_of_emptied(connection: Connection, now_ms: int) -> None:
    """Word to programs beside this one that of something which views showed the text is gone: a
    memory that they keep may hold it still."""
    take_turn(connection)
    connection.execute(
        insert(outbox).values(conversation_id="", backend="", created_ms=now_ms, done_ms=now_ms)
    )


def slot_owners(connection: Connection) -> dict[str, dict[int, str]]:
    """For each backend and slot the id of the conversation whose turn was the newest there."""
    rows = connection.execute(
        select(attempts.c.backend, attempts.c.slot, conversations.c.id)
        .join(conversations, conversations.c.pk == attempts.c.conversation_pk)
        .where(attempts.c.slot.is_not(None))
        .order_by(attempts.c.pk.desc())
        .limit(_NEWEST)
    )
    owners: dict[str, dict[int, str]] = {}
    for backend, slot, conversation in rows:
        owners.setdefault(backend, {}).setdefault(slot, conversation)
    return owners


def open_wipes(connection: Connection) -> list[Wipe]:
    """What has not been wiped yet, oldest first."""
    rows = connection.execute(
        select(outbox.c.pk, outbox.c.conversation_id, outbox.c.backend)
        .where(outbox.c.done_ms.is_(None))
        .order_by(outbox.c.pk)
    )
    return [Wipe(*row) for row in rows]


def close_wipes(connection: Connection, pks: Collection[int], now_ms: int) -> None:
    """These were wiped now."""
    connection.execute(update(outbox).where(outbox.c.pk.in_(list(pks))).values(done_ms=now_ms))
