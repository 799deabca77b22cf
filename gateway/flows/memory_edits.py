"""The owner's hand over memory: each change is a row of its own, and enters views at a fold."""

from __future__ import annotations

from sqlalchemy import Connection, select

from gateway.store import documents, profile
from gateway.store.profile import ProfileRow
from gateway.store.shown import folds_showing
from gateway.store.transcript import conversations


def announce_fact(connection: Connection, fact: ProfileRow, *, now: bool) -> None:
    """A fact of the profile is new or changed. now: each of the owner's conversations shows it at
    its next user message, not at its next fold."""
    if now:
        owned = select(conversations.c.pk).where(conversations.c.owner_pk == fact.owner_pk)
        documents.ask_anew(connection, list(connection.execute(owned).scalars()))


def delete_fact(connection: Connection, fact: ProfileRow, now_ms: int, *, now: bool) -> None:
    """Delete a fact of the profile. now: conversations that show it are without it at their next
    user message."""
    if now:
        owned = select(conversations.c.pk).where(conversations.c.owner_pk == fact.owner_pk)
        showing = folds_showing(connection, owned, "profile", [fact.pk])
        documents.ask_anew(connection, {one.conversation_pk for one in showing})
    profile.delete_fact(connection, fact, now_ms)
