"""The kinds of columns that tables are made of."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, ForeignKey, Integer, Text
from sqlmodel import Field

# SQLite gives rowids (and never a used one again) only to INTEGER PRIMARY KEY AUTOINCREMENT.
KEY = BigInteger().with_variant(Integer, "sqlite")
STEADY = {"sqlite_autoincrement": True}
# By code point everywhere: a language's own order would sort ids and digests otherwise than SQLite,
# and differently on each server.
TEXT = Text().with_variant(Text(collation="C"), "postgresql")


def pk() -> Any:
    """A row's number."""
    return Field(default=None, sa_column=Column(KEY, primary_key=True, autoincrement=True))


def ref(target: str, *, nullable: bool = False, index: bool = False) -> Any:
    """The number of a row with which this one goes."""
    return Field(
        default=None,
        sa_column=Column(
            KEY, ForeignKey(target, ondelete="CASCADE"), nullable=nullable, index=index
        ),
    )


def text(*, nullable: bool = False, unique: bool = False) -> Any:
    """A text of any length."""
    return Field(default=None, sa_column=Column(TEXT, nullable=nullable, unique=unique))


def big(*, nullable: bool = False) -> Any:
    """A number that may pass 32 bits: of a row, of milliseconds, of characters."""
    return Field(default=None, sa_column=Column(KEY, nullable=nullable))
