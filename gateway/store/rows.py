"""From result rows to our own records, in one place for the type checker's sake."""

from __future__ import annotations

from typing import Any, TypeVar

from sqlalchemy import CursorResult

T = TypeVar("T")


def record(kind: type[T], row: Any) -> T:
    """A row as the record whose fields its columns are, in order."""
    return kind(*row)


def new_pk(result: CursorResult[Any]) -> int:
    """The row number that an insert of one row was given."""
    key = result.inserted_primary_key
    assert key is not None
    return int(key[0])
