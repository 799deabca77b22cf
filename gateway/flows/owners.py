"""An owner erased: every conversation, then what stands of the owner alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from sqlalchemy import Connection, delete, select

from gateway.store.conversations import delete_conversation
from gateway.store.engine import Store
from gateway.store.rows import record
from gateway.store.transcript import (
    CONVERSATION_COLUMNS,
    ConversationRow,
    conversations,
    owners,
)


def erase_owner(
    store: Store,
    owner_pks: Collection[int],
    *,
    elsewhere: Collection[str],
    now: Callable[[], int],
) -> Iterator[str]:
    """Erase these owners (law 10), one conversation a transaction, so that nobody else waits long;
    yields the id of each that is gone. What begins meanwhile is erased too. A stop in between
    leaves the rest whole: erased again it goes on. elsewhere: as delete_conversation takes it; now:
    milliseconds."""

    def erase_next(connection: Connection) -> str | None:
        whose = conversations.c.owner_pk.in_(list(owner_pks))
        row = connection.execute(select(*CONVERSATION_COLUMNS).where(whose).limit(1)).first()
        if row is None:
            # Memories, digests and figures of the owner go with the row.
            connection.execute(delete(owners).where(owners.c.pk.in_(list(owner_pks))))
            return None
        found = record(ConversationRow, row)
        delete_conversation(connection, found, elsewhere=elsewhere, now_ms=now())
        return found.id

    while (id := store.writing(erase_next)) is not None:
        yield id
