"""Texts that are deleted and wait until no view shows them any more: facts of profiles, documents.

In the database in use they go then, or at once where their owner asks. A copy of it waits for no
view. What an undo would bring back (texts of chapters, gists and entries) waits for nothing: it is
kept, and by the words of a deleted entry it is known that it must not be told again.
"""

from __future__ import annotations

from sqlalchemy import Connection, inspect, select

from gateway.store.documents import ask_anew_showing, documents, purge_removed
from gateway.store.profile import profile_facts
from gateway.store.profile_edits import purge_deleted
from gateway.store.transcript import conversations


def empty_waiting(connection: Connection) -> int:
    """Empty all that waits, whatever shows it; how many texts there were. Views that show one see
    their memory anew at their next user message. A database from before there were such texts has
    none. Does not commit."""
    there = set(inspect(connection).get_table_names())
    gone = 0
    if profile_facts.name in there:
        gone += _empty_facts(connection)
    if documents.name in there:
        gone += _empty_documents(connection)
    return gone


def _empty_facts(connection: Connection) -> int:
    rows = connection.execute(
        select(profile_facts.c.owner_pk, profile_facts.c.pk).where(
            profile_facts.c.state == "deleted", profile_facts.c.text != ""
        )
    )
    waiting: dict[int, list[int]] = {}
    for owner_pk, pk in rows:
        waiting.setdefault(owner_pk, []).append(pk)
    gone = 0
    for owner_pk, pks in waiting.items():
        owned = select(conversations.c.pk).where(conversations.c.owner_pk == owner_pk)
        ask_anew_showing(connection, owned, "profile", pks)
        gone += purge_deleted(connection, owner_pk, at_once=True)
    return gone


def _empty_documents(connection: Connection) -> int:
    rows = connection.execute(
        select(documents.c.conversation_pk, documents.c.pk).where(
            documents.c.conversation_pk.is_not(None), documents.c.removed_ms.is_not(None)
        )
    )
    waiting: dict[int, list[int]] = {}
    for conversation_pk, pk in rows:
        waiting.setdefault(conversation_pk, []).append(pk)
    gone = 0
    for conversation_pk, pks in waiting.items():
        ask_anew_showing(connection, [conversation_pk], "documents", pks)
        gone += purge_removed(connection, conversation_pk, at_once=True)
    return gone
