"""Which conversation people mean: by Foldgate's own id, or as one of an owner's clients calls it.

No function commits.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from gateway.errors import Conflict
from gateway.store.rows import record
from gateway.store.transcript import (
    CONVERSATION_COLUMNS,
    ConversationRow,
    aliases,
    conversations,
    find_conversation,
    find_owner,
    owners,
)

MOST_TOLD = 12
"""Candidates that an error names."""


def find_called(connection: Connection, owner: str, user: str, name: str) -> ConversationRow | None:
    """The conversation that this owner with this user calls so; None where there is none.

    Without a user, whoever holds the owner's key sees its users' conversations too: one of its own
    comes first, then the one of this id, then the one that a single user calls so. Raises Conflict
    where several users do: which of them is meant cannot be known, and may be about to be deleted.
    """
    owner_pk = find_owner(connection, owner, user)
    own = None if owner_pk is None else find_conversation(connection, owner_pk, name)
    if own is not None or user:
        return own
    of_users = (
        select(owners.c.user, *CONVERSATION_COLUMNS)
        .join(owners, owners.c.pk == conversations.c.owner_pk)
        .where(owners.c.name == owner)
        .order_by(owners.c.user)
    )
    called = select(aliases.c.conversation_pk).where(aliases.c.alias == name)
    found = (
        connection.execute(of_users.where(conversations.c.id == name)).all()
        or connection.execute(of_users.where(conversations.c.pk.in_(called))).all()
    )
    if len(found) > 1:
        candidates = [(row.user, row.id) for row in found]
        raise Conflict(_tell(owner, name, candidates), code="ambiguous_conversation")
    return record(ConversationRow, found[0][1:]) if found else None


def _tell(owner: str, name: str, found: Sequence[tuple[str, str]]) -> str:
    told = ", ".join(f"{user} ({id})" for user, id in found[:MOST_TOLD])
    more = f" and {len(found) - MOST_TOLD:,} more" if len(found) > MOST_TOLD else ""
    return (
        f"{len(found):,} users of {owner} call a conversation {name}: {told}{more}. "
        "Say which user's is meant, or name it by its own id."
    )
