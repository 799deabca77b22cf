"""The tables. DESIGN.md, "State on one page", says why each is as it is.

Every row hangs on a conversation and every conversation on an owner; foreign keys cascade, so a
deletion is one statement. Times are milliseconds since 1970 (UTC), sizes characters.
"""

from __future__ import annotations

from sqlmodel import SQLModel

# METADATA describes what has been imported: all of it, whichever room was asked for.
from gateway.store.tables import calls, memory, transcript, work

__all__ = ["METADATA", "calls", "memory", "transcript", "work"]

METADATA = SQLModel.metadata
