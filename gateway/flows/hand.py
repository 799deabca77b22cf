"""Whose memory is changed, when, and from when on it is to be seen."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.store import documents
from gateway.store.transcript import ConversationRow


@dataclass(frozen=True, slots=True)
class Hand:
    """Its owner's hand over one conversation. now: the change is to be seen from the next user
    message on, not from the next fold."""

    conversation: ConversationRow
    now_ms: int
    now: bool = False

    def finish(self, connection: Connection) -> None:
        if self.now:
            documents.ask_anew(connection, [self.conversation.pk])
