"""A database in one file that nobody has open: made of one in use, and without what waits to go."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import NullPool, create_engine

from gateway.store.waiting_texts import empty_waiting

_OF_COPY = ("journal_mode=MEMORY", "synchronous=OFF", "secure_delete=ON", "foreign_keys=ON")
_WAIT_SECONDS = 15.0


def copy_database(source: Path, target: Path) -> None:
    """One state of a database, without free pages, in a file that must not exist (0600)."""
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    with closing(open_file(source)) as connection:
        connection.execute("VACUUM INTO ?", (str(target),))


def empty_copy(path: Path) -> int:
    """Empty what waits in the copy; how many texts there were. It has no WAL, and what its pages
    held before is nowhere on the disk: should this be killed, the copy belongs to nobody."""
    engine = create_engine(
        "sqlite://", creator=lambda: open_file(path), poolclass=NullPool, hide_parameters=True
    )
    with engine.connect() as connection:
        for pragma in _OF_COPY:
            connection.exec_driver_sql(f"PRAGMA {pragma}")
        connection.exec_driver_sql("BEGIN")
        gone = empty_waiting(connection)
        connection.commit()
    return gone


def pack_copy(path: Path) -> None:
    """The copy without the pages that became free."""
    packed = path.with_name(f".{path.name}")
    try:
        copy_database(path, packed)
        packed.replace(path)
    finally:
        remove_database(packed)


def open_file(path: Path) -> sqlite3.Connection:
    """A plain connection to an existing database; it makes none and migrates none."""
    address = f"file:{quote(str(path.resolve()))}?mode=rw"
    return sqlite3.connect(address, uri=True, timeout=_WAIT_SECONDS, isolation_level=None)


def remove_database(path: Path) -> None:
    """A database's file and those that stand beside it."""
    for end in ("", "-journal", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
