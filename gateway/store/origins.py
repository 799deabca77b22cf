"""What background work asks about the conversation it belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, select

from gateway.store.tables.calls import Attempt
from gateway.store.tables.transcript import Conversation

attempts = Attempt.__table__  # type: ignore[attr-defined]
conversations = Conversation.__table__  # type: ignore[attr-defined]

_CONVERSATION = select(
    conversations.c.model, conversations.c.head_pk, conversations.c.private, conversations.c.id
).where(conversations.c.pk == bindparam("which"))
_LATEST = (
    select(attempts.c.backend, attempts.c.policy)
    .where(attempts.c.conversation_pk == bindparam("conversation"))
    .order_by(attempts.c.pk.desc())
    .limit(1)
)


@dataclass(frozen=True, slots=True)
class Origin:
    """id: of the conversation. model: last asked for. head_pk: the newest message. backend and
    policy: of the newest attempt, None where there is none. is_private: nothing of it may leave
    this machine."""

    id: str
    model: str
    head_pk: int | None
    backend: str | None
    policy: str | None
    is_private: bool = False


def find_origin(connection: Connection, conversation_pk: int) -> Origin | None:
    """The origin of a job; None where its conversation is gone."""
    found = connection.execute(_CONVERSATION, {"which": conversation_pk}).first()
    if found is None:
        return None
    latest = connection.execute(_LATEST, {"conversation": conversation_pk}).first()
    backend, policy = (None, None) if latest is None else (latest[0], latest[1])
    return Origin(found[3], found[0], found[1], backend, policy, bool(found[2]))


def owner_of(connection: Connection, conversation_pk: int) -> int | None:
    """The row number of a conversation's owner; None where the conversation is gone."""
    found = select(conversations.c.owner_pk).where(conversations.c.pk == conversation_pk)
    owner_pk: int | None = connection.execute(found).scalar()
    return owner_pk
