"""Rows that are read on from the last one seen become visible in the order of their numbers.

On SQLite they do anyhow. On PostgreSQL a number is drawn before its transaction commits, so that a
reader could see the later of two first, and go past the earlier for ever.
"""

from __future__ import annotations

from sqlalchemy import Connection, text

# A number that nobody else asks for ("outbox" in ASCII).
_OUTBOX_LOCK = 0x6F7574626F78
_TURN = text("SELECT pg_advisory_xact_lock(:number)")


def take_turn(connection: Connection) -> None:
    """Before an entry of the outbox is written: wait for whoever writes one, until it is committed.
    Deletions are few."""
    if connection.dialect.name == "postgresql":
        connection.execute(_TURN, {"number": _OUTBOX_LOCK})
