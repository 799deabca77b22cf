"""The database: one writer, a few readers, all off the event loop.

SQLite has one writer at a time. Writes run one after another on a thread of their own inside
BEGIN IMMEDIATE (a read transaction upgraded to a write would fail at once, whatever the timeout);
reads run on a small pool and never wait for the writer (WAL).
"""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar, cast

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError

from gateway.errors import ConfigurationError, StorageFailed
from gateway.store.migrations import HEAD, current, migrate
from gateway.store.prepared import Prepared
from gateway.store.write_queue import QueuedWrite, WriteQueue

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("foldgate.store")

# Another process (a command beside the server) may hold the write lock: wait, do not fail.
BUSY_TIMEOUT_MS = 15_000
READERS = 3
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


def _on_connect(synchronous: str, cache_kb: int) -> Callable[[sqlite3.Connection, object], None]:
    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        # The driver's own BEGIN would be DEFERRED; ours is emitted in _on_begin.
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


_VACUUM = Prepared(text("VACUUM"))
_BEGIN, _COMMIT = Prepared(text("BEGIN IMMEDIATE")), Prepared(text("COMMIT"))


def _on_begin(prepared: Prepared) -> Callable[[Connection], None]:
    def begin(connection: Connection) -> None:
        prepared.run(connection)

    return begin


def build_engine(url: str, *, synchronous: str, pool_size: int, write: bool) -> Engine:
    """An engine whose transactions begin the right way for their purpose.

    Raises ConfigurationError for a URL that is none, or a database other than SQLite.
    """
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(
            "the database URL cannot be read; write sqlite:///path/to/foldgate.db"
        ) from error
    if parsed.get_backend_name() != "sqlite":
        raise ConfigurationError(
            f"databases of kind {parsed.get_backend_name()!r} are not supported yet; "
            "write sqlite:///path/to/foldgate.db"
        )
    if not parsed.database or parsed.database == ":memory:":
        raise ConfigurationError(
            "an in-memory database would forget everything; write sqlite:///path/to/foldgate.db"
        )
    engine = create_engine(
        parsed,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=60,
        query_cache_size=1000,
        # What people say must not reach a log by way of an exception's words.
        hide_parameters=True,
    )
    cache_kb = WRITER_CACHE_KB if write else READER_CACHE_KB
    event.listen(engine, "connect", _on_connect(synchronous, cache_kb))
    event.listen(engine, "begin", _on_begin(_BEGIN if write else Prepared(text("BEGIN"))))
    return engine


_CLOCKS = {
    # Days since 4714 BC; 2,440,587.5 of them before 1970.
    "sqlite": text("SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"),
    "postgresql": text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"),
}


def database_ms(connection: Connection) -> int:
    """What time the database says it is, in milliseconds since 1970: the one clock of all programs
    that share it."""
    return int(connection.execute(_CLOCKS[connection.dialect.name]).scalar_one())


def _make_private(path: Path) -> None:
    """Make the file for its owner's eyes alone, where it is not there yet; SQLite gives the files
    that it makes beside it the same mode. Raises ConfigurationError."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return
    except OSError as error:
        raise ConfigurationError(f"the database {path} cannot be made: {error.strerror}") from error


@contextmanager
def _telling() -> Iterator[None]:
    """Turn what the file or its disk refuses into a StorageFailed, in SQLite's own few words."""
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


class Store:
    """Runs store functions in transactions on threads.

    `await store.write(function, …)` calls function(connection, …) in a write transaction and
    returns once that is committed; writes that wait at the same time share one, each in a savepoint
    of its own (write_queue.py). `await store.read(…)` likewise on a reader. The synchronous twins
    `writing` and `reading` serve commands and tests. All raise StorageFailed where the database is
    locked, full, read-only or damaged: the transaction left nothing behind.
    """

    def __init__(self, url: str, *, synchronous: str = "NORMAL") -> None:
        self.url = url
        self.siblings: Callable[[], int] = lambda: 0
        """How many turns run now: among many a write waits a moment for others to join it."""
        # One connection for the queue, which keeps it, and one for whoever writes beside it.
        self._writer = build_engine(url, synchronous=synchronous, pool_size=2, write=True)
        self._reader = build_engine(url, synchronous=synchronous, pool_size=READERS, write=False)
        self._write_thread = ThreadPoolExecutor(1, thread_name_prefix="store-write")
        self._held: Connection | None = None
        self._queue = WriteQueue(
            self._held_transaction, _telling, self._write_thread, lambda: self.siblings()
        )
        self._read_threads = ThreadPoolExecutor(READERS, thread_name_prefix="store-read")

    @property
    def path(self) -> Path:
        """The database's file."""
        database = self._writer.url.database
        assert database is not None
        return Path(database)

    def open(self) -> None:
        """Make the file if there is none and bring its tables up to date; a failure is raised."""
        folder = self.path.parent
        if not folder.is_dir():
            raise ConfigurationError(f"the folder of the database does not exist: {folder}")
        _make_private(self.path)
        try:
            migrate(self._writer)
        except DatabaseError as error:
            raise ConfigurationError(f"the database cannot be opened: {error.orig}") from error

    def examine(self) -> tuple[bool, str]:
        """Whether an existing file is whole and of this program, and in words; changes nothing."""
        try:
            revision = current(self._reader)
            found = self.reading(lambda connection: connection.execute(_CHECK).scalar())
        except DatabaseError as error:
            return False, f"cannot be read: {error.orig}"
        if found != "ok":
            return False, f"is damaged: {found}"
        if revision == HEAD:
            return True, f"whole, at revision {HEAD}"
        if revision is None:
            return True, "empty: its tables are made at the first start"
        return True, f"whole, at revision {revision}; the next start brings it to {HEAD}"

    async def write(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        queued = QueuedWrite(lambda connection: function(connection, *args, **kwargs))
        self._queue.put(queued)
        return cast(T, await queued.done)

    async def read(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._read_threads, lambda: self.reading(function, *args, **kwargs)
        )

    def writing(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with self._transaction() as connection:
            return function(connection, *args, **kwargs)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        with _telling(), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def _held_transaction(self) -> Iterator[Connection]:
        """As _transaction, on a connection that is kept: taking one from the pool and giving it
        back costs as much as a turn's statements. SQLAlchemy's transaction stays open on it, which
        costs more to begin and to end than SQLite's own. After any error it is given back."""
        with _telling():
            connection = self._held or self._writer.connect()
            self._held = None
            try:
                if connection.in_transaction():
                    _BEGIN.run(connection)
                else:
                    connection.begin()
                yield connection
                _COMMIT.run(connection)
            except BaseException:
                connection.close()  # whatever is open is rolled back
                raise
            self._held = connection

    def reading(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        with _telling(), self._reader.begin() as connection:
            return function(connection, *args, **kwargs)

    async def checkpoint(self) -> bool:
        """As checkpointing, behind the writes that are queued."""
        self._queue.flush()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._write_thread, self.checkpointing)

    def checkpointing(self) -> bool:
        """Move everything out of the WAL file and empty it: what was deleted is then in no file.

        False where a reader of an older state is in the way for more than CHECKPOINT_WAIT_MS:
        the next checkpoint, or the last connection that closes, does it.
        """
        connection = self._writer.raw_connection()
        try:
            cursor = connection.cursor()
            cursor.execute(f"PRAGMA busy_timeout={CHECKPOINT_WAIT_MS}")
            busy = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            cursor.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
            cursor.close()
        finally:
            connection.close()
        return not busy

    def vacuuming(self) -> bool:
        """Write every page anew, so that none holds in its unused part a copy of what was deleted:
        SQLite leaves one, about one message in two thousand, where it joins half-empty pages
        (measured; secure_delete overwrites the row alone). Others wait, 25 ms a megabyte. False as
        of checkpointing."""
        with _telling(), self._writer.connect() as connection:
            _VACUUM.run(connection)
        return self.checkpointing()

    def close(self) -> None:
        """Finish what is queued and let go of every connection and thread."""
        self._queue.flush()
        self._write_thread.shutdown(wait=True)
        self._read_threads.shutdown(wait=True)
        if self._held is not None:
            self._held.close()
        self._writer.dispose()
        self._reader.dispose()
