"""From row numbers of messages to the ids that people and programs see."""

from __future__ import annotations

from collections.abc import Iterable

from sqlalchemy import Connection, select

from gateway.store.transcript import messages

_LOOKUP = 500


def message_ids(connection: Connection, pks: Iterable[int]) -> dict[int, str]:
    """The ids of messages by their row numbers."""
    wanted = sorted(set(pks))
    found: dict[int, str] = {}
    for start in range(0, len(wanted), _LOOKUP):
        part = select(messages.c.pk, messages.c.id).where(
            messages.c.pk.in_(wanted[start : start + _LOOKUP])
        )
        found.update((row.pk, row.id) for row in connection.execute(part))
    return found
