"""Deletion: one transaction, then the traces that a transaction cannot reach."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.flows.context import Context
from gateway.store.conversations import delete_conversation
from gateway.store.transcript import ConversationRow

log = logging.getLogger("foldgate.erase")


@dataclass(frozen=True, slots=True)
class Erased:
    """What was deleted; wiped_files: no file of the database holds any of it any more."""

    id: str
    wiped_files: bool


async def erase_conversation(
    context: Context, find: Callable[[Connection], ConversationRow]
) -> Erased:
    """Delete the conversation that find(connection) names (law 10); what find raises is raised.

    Everything goes in one transaction, found and deleted in the same. Work under way could write
    nothing any more, and its calls are ended, so that no model reads on. Then what was kept in
    memory is forgotten and the WAL file is emptied, because it holds the pages as they were; the
    database's own pages are overwritten as they are freed. Slots of local servers that may hold any
    of it serve nobody until they are wiped.
    """
    elsewhere = {
        name
        for name, backend in context.backends.items()
        if not backend.local and backend.slot_care is None
    }
    now_ms = context.clock.now_ms()

    def delete(connection: Connection) -> ConversationRow:
        conversation = find(connection)
        delete_conversation(connection, conversation, elsewhere=elsewhere, now_ms=now_ms)
        return conversation

    gone = await context.store.write(delete)
    context.forget(gone.pk, gone.id)
    context.slots.deleted(gone.id)
    wiped = await context.store.checkpoint()
    if not wiped:
        log.warning("%s is deleted, but a reader kept the WAL file from being emptied", gone.id)
    return Erased(gone.id, wiped)
