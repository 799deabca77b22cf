"""The database: writes one after another, a few readers, all off the event loop.

Which database it is, its URL says; what differs between them stands in sqlite.py and postgres.py,
behind `Database`. Writes of this process run one after another on a thread of their own; reads run
on a small pool and never wait for the writer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar, cast

from sqlalchemy import Connection, Engine, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, DBAPIError

from gateway.errors import ConfigurationError
from gateway.store.migrations import HEAD, current, migrate
from gateway.store.postgres import Postgres
from gateway.store.prepared import Statement
from gateway.store.reruns import until_it_stands
from gateway.store.sqlite import SQLite
from gateway.store.write_queue import QueuedWrite, WriteQueue

P = ParamSpec("P")
T = TypeVar("T")

# One connection for the queue, which keeps it, and one for whoever writes beside it.
WRITERS = 2
READERS = 3


class Database(Protocol):
    """What differs between databases.

    begin and commit: of a transaction that writes. be_alone: have no other writer beside one that
    has just begun. path: its file, None where it is none of this machine's. place: where it is, as
    people may be told: without a password. The three `telling` are contexts around a transaction,
    around its connection's making and around its commit, in which the database's refusals get their
    names: StorageFailed, or TransactionLost (reruns.py).
    """

    begin: Statement
    commit: Statement
    vacuum: Statement
    path: Path | None
    place: str
    writer: Engine
    reader: Engine

    def exists(self) -> bool: ...
    def size(self) -> int: ...
    def prepare(self) -> None: ...
    def migrating(self) -> AbstractContextManager[Connection]: ...
    def check(self) -> str: ...
    def word(self, error: DBAPIError) -> str: ...
    def telling(self) -> AbstractContextManager[None]: ...
    def telling_connect(self) -> AbstractContextManager[None]: ...
    def telling_commit(self) -> AbstractContextManager[None]: ...
    def be_alone(self, connection: Connection) -> None: ...
    def is_begun(self, connection: Connection) -> bool: ...
    def let_go(self, connection: Connection) -> None: ...
    def checkpointing(self) -> bool: ...


def find_database(url: str, *, synchronous: str) -> Database:
    """The database of this URL, not opened.

    Raises ConfigurationError for a URL that is none, or a database of another kind. No part of the
    URL is repeated: it may hold a password.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise ConfigurationError(
            "the database URL cannot be read; write sqlite:///path/to/foldgate.db or "
            "postgresql://user:password@host/database"
        ) from None
    kind = parsed.get_backend_name()
    if kind == "sqlite":
        return SQLite(parsed, synchronous=synchronous, writers=WRITERS, readers=READERS)
    if kind in ("postgresql", "postgres"):
        return Postgres(parsed, writers=WRITERS, readers=READERS)
    raise ConfigurationError(
        f"databases of kind {kind!r} are not supported; write sqlite:///path/to/foldgate.db or "
        "postgresql://user:password@host/database"
    )


_CLOCKS = {
    # Days since 4714 BC; 2,440,587.5 of them before 1970.
    "sqlite": text("SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"),
    "postgresql": text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"),
}


def database_ms(connection: Connection) -> int:
    """What time the database says it is, in milliseconds since 1970: the one clock of all programs
    that share it."""
    return int(connection.execute(_CLOCKS[connection.dialect.name]).scalar_one())


class Store:
    """Runs store functions in transactions on threads.

    `await store.write(function, …)` calls function(connection, …) in a write transaction and
    returns once that is committed; writes that wait at the same time share one, each in a savepoint
    of its own (write_queue.py). `await store.read(…)` likewise on a reader. The synchronous twins
    `writing` and `reading` serve commands and tests. All raise StorageFailed where the database is
    locked, full, read-only, damaged or out of reach: the transaction left nothing behind. A
    function may be called more than once before its transaction stands (reruns.py).
    """

    def __init__(self, url: str, *, synchronous: str = "NORMAL") -> None:
        self.url = url
        self.siblings: Callable[[], int] = lambda: 0
        """How many turns run now: among many a write waits a moment for others to join it."""
        self.database = find_database(url, synchronous=synchronous)
        self._writer, self._reader = self.database.writer, self.database.reader
        self._write_thread = ThreadPoolExecutor(1, thread_name_prefix="store-write")
        self._held: Connection | None = None
        self._queue = WriteQueue(
            self._held_transaction,
            self.database.telling,
            self.database.is_begun,
            self._write_thread,
            lambda: self.siblings(),
        )
        self._read_threads = ThreadPoolExecutor(READERS, thread_name_prefix="store-read")

    @property
    def path(self) -> Path:
        """The database's file; a ConfigurationError where it is on a server."""
        if self.database.path is None:
            raise ConfigurationError(f"{self.database.place} is no file of this machine")
        return self.database.path

    def open(self) -> None:
        """Make the file if there is none and bring its tables up to date; a failure is raised."""
        self.database.prepare()
        try:
            migrate(self._reader, self.database.migrating)
        except DatabaseError as error:
            raise ConfigurationError(
                f"the database cannot be opened: {self.database.word(error)}"
            ) from error

    def examine(self) -> tuple[bool, str]:
        """Whether an existing database is whole and of this program, and in words; changes
        nothing."""
        try:
            revision = current(self._reader)
            wrong = self.database.check()
        except DatabaseError as error:
            return False, f"cannot be read: {self.database.word(error)}"
        if wrong:
            return False, wrong
        state = "answers" if self.database.path is None else "whole"
        if revision == HEAD:
            return True, f"{state}, at revision {HEAD}"
        if revision is None:
            return True, "empty: its tables are made at the first start"
        return True, f"{state}, at revision {revision}; the next start brings it to {HEAD}"

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
        def run(alone: bool) -> T:
            with self._transaction(self._writer, alone) as connection:
                return function(connection, *args, **kwargs)

        return until_it_stands(run)

    def reading(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def run(_alone: bool) -> T:
            with self._transaction(self._reader) as connection:
                return function(connection, *args, **kwargs)

        return until_it_stands(run)

    @contextmanager
    def _transaction(self, engine: Engine, alone: bool = False) -> Iterator[Connection]:
        with self.database.telling_connect():
            connection = engine.connect()
        try:
            with self.database.telling():
                transaction = connection.begin()
                if alone:
                    self.database.be_alone(connection)
                yield connection
            if transaction.is_active:  # else the function took it back
                with self.database.telling_commit():
                    transaction.commit()
        finally:
            self.database.let_go(connection)

    @contextmanager
    def _held_transaction(self, alone: bool) -> Iterator[Connection]:
        """As _transaction, on a connection that is kept: taking one from the pool and giving it
        back costs as much as a turn's statements. SQLAlchemy's transaction stays open on it, which
        costs more to begin and to end than the database's own. After any error it is given back."""
        connection, self._held = self._held, None
        if connection is None:
            with self.database.telling_connect():
                connection = self._writer.connect()
        try:
            with self.database.telling():
                if connection.in_transaction():
                    self.database.begin.run(connection)
                else:
                    connection.begin()
                if alone:
                    self.database.be_alone(connection)
                yield connection
            with self.database.telling_commit():
                self.database.commit.run(connection)
        except BaseException:
            self.database.let_go(connection)
            raise
        self._held = connection

    async def checkpoint(self) -> bool:
        """As checkpointing, behind the writes that are queued."""
        self._queue.flush()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._write_thread, self.checkpointing)

    def checkpointing(self) -> bool:
        """Move what was deleted out of the files beside the database's own; False where a reader
        is in the way."""
        return self.database.checkpointing()

    def vacuuming(self) -> bool:
        """Write every page anew, so that none holds in its unused part a copy of what was deleted:
        SQLite leaves one, about one message in two thousand, where it joins half-empty pages
        (measured; secure_delete overwrites the row alone). Others wait, 25 ms a megabyte. False as
        of checkpointing."""
        with self.database.telling(), self._writer.connect() as connection:
            self.database.vacuum.run(connection)
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
