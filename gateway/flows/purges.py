"""What views must not show any more: texts that were deleted, and facts that became private."""

from __future__ import annotations

from sqlalchemy import Connection, select

from gateway.flows.views import ViewCache
from gateway.store import documents, profile_edits
from gateway.store.transcript import ConversationRow, conversations
from gateway.store.wipes import tell_of_emptied


def purge_unshown(
    connection: Connection, conversation: ConversationRow, views: ViewCache, now_ms: int
) -> None:
    """Empty what was deleted and no view shows any more, forget it here, and leave word, at which
    the files are emptied of it too.

    It is asked whenever a view may have ceased to show something: a fold or a cut is written, or
    the newest branch is another one. Two looks by an index where nothing waits. The newest message
    must be the conversation's head already: what it sees is in force.
    """
    gone = profile_edits.purge_deleted(connection, conversation.owner_pk)
    gone += documents.purge_removed(connection, conversation.pk)
    if gone:
        views.forget(conversation.pk)
        tell_of_emptied(connection, now_ms)


def withdraw_facts(connection: Connection, conversation: ConversationRow) -> None:
    """After a conversation became private: what was learned in it before stands apart from what
    others told, and others that show it show their memory anew, without it, at their next user
    message."""
    profile_edits.release_facts(connection, conversation)
    pks = [fact.pk for fact in profile_edits.learned_in(connection, conversation.pk)]
    if not pks:
        return
    owned = select(conversations.c.pk).where(
        conversations.c.owner_pk == conversation.owner_pk, conversations.c.pk != conversation.pk
    )
    documents.ask_anew_showing(connection, owned, "profile", pks)
