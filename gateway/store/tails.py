"""What the alignment of a history reads: the newest messages of a path, and who gave a reply."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, case, func, select, text, true

from gateway.store.prepared import Prepared
from gateway.store.rows import record
from gateway.store.tables.transcript import Conversation, Message

conversations = Conversation.__table__  # type: ignore[attr-defined]
messages = Message.__table__  # type: ignore[attr-defined]

# A history without an id is looked for in so many conversations of its owner, the newest first;
# and what was said in private, in so many private ones.
_RECENT = 200

_TAIL = Prepared(
    text(
        """
        WITH RECURSIVE walk(pk, parent_pk, depth) AS (
          SELECT pk, parent_pk, depth FROM messages WHERE pk = :head
          UNION ALL
          SELECT m.pk, m.parent_pk, m.depth FROM walk w JOIN messages m ON m.pk = w.parent_pk
          WHERE w.depth - 1 > :above
        )
        SELECT m.pk, m.parent_pk, m.depth, m.role, m.content, m.produced
        FROM walk w JOIN messages m ON m.pk = w.pk WHERE m.depth > :above ORDER BY m.depth
        """
    )
)


@dataclass(frozen=True, slots=True)
class TailNode:
    """A stored message without its text. content: the digest of the message alone."""

    pk: int
    parent_pk: int | None
    depth: int
    role: str
    content: str
    produced: bool


@dataclass(frozen=True, slots=True)
class StoredReply:
    """A stored message as it is told again on another branch."""

    raw: str
    produced: bool
    backend: str | None
    finish_reason: str | None
    partial: bool


def read_tail(connection: Connection, head_pk: int, above: int) -> list[TailNode]:
    """The messages of a path that are deeper than `above`, oldest first, without their texts."""
    return [record(TailNode, row) for row in _TAIL.all(connection, head=head_pk, above=above)]


def read_messages(connection: Connection, pks: Collection[int]) -> dict[int, StoredReply]:
    """Stored messages by their row numbers."""
    if not pks:
        return {}
    columns = (
        messages.c.raw,
        messages.c.produced,
        messages.c.backend,
        messages.c.finish_reason,
        messages.c.partial,
    )
    rows = connection.execute(select(messages.c.pk, *columns).where(messages.c.pk.in_(pks)))
    return {row[0]: record(StoredReply, row[1:]) for row in rows}


def conversations_by_contents(
    connection: Connection, owner_pk: int, contents: Sequence[str]
) -> list[int]:
    """The owner's conversations that hold one of these messages; those with most replies of the
    gateway's among them first, then those with most of them, then the newest. Looks into the newest
    200 conversations only."""
    recent = (
        select(conversations.c.pk, conversations.c.touched_ms)
        .where(conversations.c.owner_pk == owner_pk)
        .order_by(conversations.c.touched_ms.desc())
        .limit(_RECENT)
        .subquery()
    )
    given = func.sum(case((messages.c.produced == true(), 1), else_=0))
    hits = func.count(messages.c.content.distinct())
    rows = connection.execute(
        select(recent.c.pk)
        .join(messages, messages.c.conversation_pk == recent.c.pk)
        .where(messages.c.content.in_(contents))
        .group_by(recent.c.pk, recent.c.touched_ms)
        .order_by(given.desc(), hits.desc(), recent.c.touched_ms.desc())
        .limit(3)
    )
    return [row[0] for row in rows]


@dataclass(frozen=True, slots=True)
class HeldReply:
    """A reply as a conversation holds it. content, before: the digests of it alone and of the
    message before it, None where it stands first."""

    content: str
    before: str | None


# By the partial index: where an owner has no private conversation, nothing is read.
_HAS_PRIVATE = Prepared(
    text("SELECT 1 FROM conversations WHERE owner_pk = :owner AND private LIMIT 1")
)


def has_private(connection: Connection, owner_pk: int) -> bool:
    """Whether one of the owner's conversations is private."""
    return _HAS_PRIVATE.first(connection, owner=owner_pk) is not None


def find_replies(
    connection: Connection, owner_pk: int, contents: Collection[str], *, private: bool
) -> set[HeldReply]:
    """Which of these messages are the gateway's own replies, or stand behind one, in the owner's
    newest 200 private conversations; or are its own replies in the newest 200 others."""
    which = text("private") if private else text("NOT private")
    recent = (
        select(conversations.c.pk)
        .where(conversations.c.owner_pk == owner_pk, which)
        .order_by(conversations.c.touched_ms.desc())
        .limit(_RECENT)
        .subquery()
    )
    parents = messages.alias("parents")
    mark = messages.c.anchored if private else messages.c.produced
    rows = connection.execute(
        select(messages.c.content, parents.c.content)
        .join(recent, messages.c.conversation_pk == recent.c.pk)
        .outerjoin(parents, parents.c.pk == messages.c.parent_pk)
        .where(messages.c.content.in_(contents), mark == true())
    )
    return {HeldReply(*row) for row in rows}
