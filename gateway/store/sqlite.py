"""SQLite: how its connections are set, how its transactions begin, what its refusals are called.

SQLite has one writer at a time. Writes run in BEGIN IMMEDIATE (a read transaction upgraded to a
write would fail at once, whatever the timeout); reads never wait for the writer (WAL).
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError

from gateway.errors import ConfigurationError, StorageFailed
from gateway.store.prepared import Prepared, Statement, on_begin

log = logging.getLogger("foldgate.store")

# Another process (a command beside the server) may hold the write lock: wait, do not fail.
BUSY_TIMEOUT_MS = 15_000
# Each connection has a cache of its own; behind it stands the operating system's.
WRITER_CACHE_KB, READER_CACHE_KB = 6_000, 1_000
# Turns change the same index pages again and again: the rarer a checkpoint, the fewer pages are
# written twice and synced. 4,000 pages are a WAL of 16 MB.
CHECKPOINT_PAGES = 4_000
# A checkpoint that empties the WAL holds up writers while it waits for readers.
CHECKPOINT_WAIT_MS = 2_000
_CHECK = text("PRAGMA quick_check(1)")
# What the file or its disk refuses, not a fault of a statement (SQLite's primary result codes).
_REFUSALS = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOTADB,
    }
)
# A disk that is full or a lock that is held stays so for a while.
STORAGE_RETRY_SECONDS = 10.0


class SQLite:
    """A database in a file of this machine. Raises ConfigurationError where the URL names none."""

    begin: Statement = Prepared(text("BEGIN IMMEDIATE"))
    commit: Statement = Prepared(text("COMMIT"))
    vacuum: Statement = Prepared(text("VACUUM"))

    def __init__(self, url: URL, *, synchronous: str, writers: int, readers: int) -> None:
        if not url.database or url.database == ":memory:":
            raise ConfigurationError(
                "an in-memory database would forget everything; write sqlite:///path/to/foldgate.db"
            )
        self.path: Path | None = Path(url.database)
        self.place = url.database
        self._synchronous = synchronous
        self.writer = self._engine(url, writers, WRITER_CACHE_KB, self.begin)
        self.reader = self._engine(url, readers, READER_CACHE_KB, Prepared(text("BEGIN")))

    def _engine(self, url: URL, size: int, cache_kb: int, begin: Statement) -> Engine:
        engine = create_engine(
            url,
            pool_size=size,
            max_overflow=0,
            pool_timeout=60,
            query_cache_size=1000,
            # What people say must not reach a log by way of an exception's words.
            hide_parameters=True,
        )
        event.listen(engine, "connect", _on_connect(self._synchronous, cache_kb))
        event.listen(engine, "begin", on_begin(begin))
        return engine

    def exists(self) -> bool:
        """Whether there is a file; nothing is made."""
        return self._file.exists()

    def size(self) -> int:
        """Bytes of the file."""
        return self._file.stat().st_size

    @property
    def _file(self) -> Path:
        assert self.path is not None
        return self.path

    def prepare(self) -> None:
        """Make the file where there is none. Raises ConfigurationError."""
        folder = self._file.parent
        if not folder.is_dir():
            raise ConfigurationError(f"the folder of the database does not exist: {folder}")
        _make_private(self._file)

    def migrating(self) -> AbstractContextManager[Connection]:
        """A transaction in which tables are changed, by one program at a time."""
        return self.writer.begin()

    def check(self) -> str:
        """ "" where the file is whole, else what is wrong with it. Raises DatabaseError."""
        with self.reader.begin() as connection:
            found = str(connection.execute(_CHECK).scalar())
        return "" if found == "ok" else f"is damaged: {found}"

    @staticmethod
    def word(error: DBAPIError) -> str:
        """The database's own few words."""
        return str(error.orig)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Turn what the file or its disk refuses into a StorageFailed, in SQLite's own words."""
        try:
            yield
        except DBAPIError as error:
            code = getattr(error.orig, "sqlite_errorcode", None)
            if code is None or code & 0xFF not in _REFUSALS:
                raise
            log.error("the database refuses: %s", error.orig)
            raise StorageFailed(
                f"The gateway's database refuses to work ({error.orig}). Try again later.",
                retry_after=STORAGE_RETRY_SECONDS,
            ) from error

    telling_connect = telling_commit = telling

    @staticmethod
    def be_alone(connection: Connection) -> None:
        """Who writes always is."""

    @staticmethod
    def is_begun(connection: Connection) -> bool:
        """Whether there still is a transaction, and savepoints that can be gone back to."""
        driver: sqlite3.Connection = connection.connection.dbapi_connection  # type: ignore[assignment]
        return bool(driver.in_transaction)

    @staticmethod
    def let_go(connection: Connection) -> None:
        """Give a connection back; whatever is open on it is rolled back."""
        connection.close()

    def checkpointing(self) -> bool:
        """Move everything out of the WAL file and empty it: what was deleted is then in no file.

        False where a reader of an older state is in the way for more than CHECKPOINT_WAIT_MS:
        the next checkpoint, or the last connection that closes, does it.
        """
        connection = self.writer.raw_connection()
        try:
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout={CHECKPOINT_WAIT_MS}")
            busy = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
            cursor.close()
        finally:
            connection.close()
        return not busy


def _on_connect(synchronous: str, cache_kb: int) -> Callable[[sqlite3.Connection, object], None]:
    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own BEGIN would be DEFERRED; ours is emitted when a transaction begins.
        connection.isolation_level = None
        cursor = connection.cursor()
        mode = cursor.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        if mode != "wal":
            # A network file system has no shared memory: WAL would corrupt or hang there.
            log.warning(
                "SQLite runs in journal mode %s, not WAL: is the file on a network disk?", mode
            )
        cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        cursor.execute("PRAGMA foreign_keys=ON")
        # A savepoint keeps what it may have to take back: in a file that is made and removed with
        # each commit, a fifth of a turn's cost; and what people said has no business in such files.
        cursor.execute("PRAGMA temp_store=MEMORY")
        cursor.execute(f"PRAGMA synchronous={synchronous}")
        # Deleted text must not stay readable in free pages (law 10).
        cursor.execute("PRAGMA secure_delete=ON")
        cursor.execute(f"PRAGMA cache_size=-{cache_kb}")
        cursor.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
        cursor.close()

    return prepare


def _make_private(path: Path) -> None:
    """Make the file for its owner's eyes alone, where it is not there yet; SQLite gives the files
    that it makes beside it the same mode. Raises ConfigurationError."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise ConfigurationError(f"the database {path} cannot be made: {error.strerror}") from error
