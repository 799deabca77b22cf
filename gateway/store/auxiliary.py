"""Rows of requests that are no turns: figures, never text."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, insert

from gateway.store.tables.calls import AuxiliaryRequest

auxiliary_requests = AuxiliaryRequest.__table__  # type: ignore[attr-defined]


def note_auxiliary(connection: Connection, **values: Any) -> None:
    """Keep how one request ended; values are the columns of `AuxiliaryRequest`."""
    connection.execute(insert(auxiliary_requests).values(**values))
