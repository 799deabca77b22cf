"""Texts that were deleted while a view showed them: they go when no view does any more."""

from __future__ import annotations

from sqlalchemy import Connection

from gateway.flows.views import ViewCache
from gateway.store import documents, profile_edits
from gateway.store.fold_rows import NONE, FoldRow
from gateway.store.transcript import ConversationRow


def purge_unshown(
    connection: Connection,
    conversation: ConversationRow,
    before: FoldRow | None,
    after: FoldRow,
    views: ViewCache,
) -> None:
    """After a fold took the place of another: empty the deleted facts and documents that the older
    one showed, and forget them here. Costs nothing where the newer shows all that the older did.

    The newest message must be the conversation's head already: what it sees is in force.
    """
    old = NONE if before is None else before.shown
    gone = 0
    if set(old.profile) - set(after.shown.profile):
        gone += profile_edits.purge_deleted(connection, conversation.owner_pk)
    if set(old.documents) - set(after.shown.documents):
        gone += documents.purge_removed(connection, conversation.pk)
    if gone:
        views.forget(conversation.pk)
