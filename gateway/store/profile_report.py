"""Facts of a profile as they are told to people. No function commits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from gateway.clock import iso
from gateway.store.profile import ProfileRow
from gateway.store.profile_paths import left_behind
from gateway.store.transcript import conversations, owners


def describe_facts(connection: Connection, rows: Sequence[ProfileRow]) -> list[dict[str, Any]]:
    """Facts as they are told to people. conversation: where it was learned, null where its owner
    wrote it; private: what was learned there is shown there alone. on_path: false where the message
    that told it lies on a branch that is left: no view is offered it until that one is the newest
    again."""
    owner = {
        row.pk: row
        for row in connection.execute(
            select(owners.c.pk, owners.c.name, owners.c.user).where(
                owners.c.pk.in_(list({row.owner_pk for row in rows}))
            )
        )
    }
    chats = {
        row.pk: row
        for row in connection.execute(
            select(conversations.c.pk, conversations.c.id, conversations.c.private).where(
                conversations.c.pk.in_(list({row.conversation_pk or 0 for row in rows}))
            )
        )
    }
    left = left_behind(connection, rows)
    return [
        {
            **_describe(row, owner[row.owner_pk], chats.get(row.conversation_pk or 0)),
            "on_path": row.pk not in left,
        }
        for row in rows
    ]


def _describe(row: ProfileRow, owner: Any, chat: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "text": row.text,
        "about": row.about,
        "origin": row.origin,
        "conversation": None if chat is None else chat.id,
        "private": chat is not None and bool(chat.private),
        "owner": owner.name,
        "user": owner.user,
        "created_at": iso(row.created_ms),
    }
