"""PostgreSQL: how its connections are set, how its transactions begin, what its refusals mean.

It has many writers, of this process and of others. Each transaction that writes is SERIALIZABLE, so
that store functions may go on reading first and writing then, as on SQLite, where one writer is
alone: where two cannot have run one after the other, one is told to step back and is run again
(reruns.py). A reader sees one state (REPEATABLE READ) and is never told so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, text
from sqlalchemy.exc import DatabaseError, DBAPIError

from gateway.errors import ConfigurationError, StorageFailed
from gateway.store.migrations import current
from gateway.store.prepared import Prepared, Statement, hide_values, on_begin, wrap
from gateway.store.reruns import TransactionLost

if TYPE_CHECKING:
    import psycopg
    from sqlalchemy import ExceptionContext

log = logging.getLogger("foldgate.store")

OLDEST = 14
"""The oldest major version that is tested with; those before it are no longer mended."""

RETRY_SECONDS = 5.0
CONNECT_SECONDS = 5
# For how long a lock is waited for that another session holds, and for how long an answer of a
# server whose machine is gone.
LOCK_TIMEOUT_MS = 15_000
LOST_TIMEOUT_MS = 15_000
PREPARED = 1_000
# Two programs that start at once bring the tables up to date one after the other: a number that
# nobody else asks for ("foldgate" in ASCII).
MIGRATION_LOCK = 0x666F6C6467617465

_SIZE = text("SELECT pg_database_size(current_database())")

# Told to step back: could_not_serialize, deadlock_detected.
_CLASHES = frozenset({"40001", "40P01"})
# The server ended the connection: it is shut down, has crashed, or does not take any yet.
_SHUTDOWNS = frozenset({"57P01", "57P02", "57P03"})
# What the server, its disk or its settings refuse, by the class of SQLSTATE: resources, locks and
# states, an operator's hand, the system, its configuration, damaged data; then who may not come in,
# a server that may only be read, a database or a right that is not there.
_REFUSALS = ("53", "55", "57", "58", "F0", "XX", "28", "25006", "3D000", "42501")
_SETTINGS = (
    # Recursive walks of a few rows are estimated at millions, and would be compiled for longer
    # than they run.
    "SET jit = off",
    f"SET lock_timeout = {LOCK_TIMEOUT_MS}",
    "SET client_min_messages = warning",
)


# Locks no row and takes no snapshot, so that who has waited for it sees what was done meanwhile.
# The table of the revision is one that nobody writes to while programs run.
_TOGETHER = "BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE alembic_version IN ROW SHARE MODE"
_ALONE = (
    "ROLLBACK; BEGIN ISOLATION LEVEL SERIALIZABLE; LOCK TABLE alembic_version IN EXCLUSIVE MODE"
)


class Together:
    """Begins a transaction that writes, beside others."""

    def run(self, connection: Connection, /) -> int:
        _send(connection, _TOGETHER)
        return 0


def _send(connection: Connection, statements: str) -> None:
    """Several statements in one message, which only the plain protocol takes."""
    from psycopg import Error

    try:
        _driver(connection).execute(statements, prepare=False)
    except Error as error:
        raise wrap(connection, statements, error) from error


class Postgres:
    """A database on a PostgreSQL server. Raises ConfigurationError where its driver is missing."""

    begin: Statement = Together()
    commit: Statement = Prepared(text("COMMIT"))
    vacuum: Statement = Prepared(text("VACUUM (FULL)"))
    path: Path | None = None

    def __init__(self, url: URL, *, writers: int, readers: int) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise ConfigurationError(
                "PostgreSQL needs its driver: pip install 'foldgate[postgres]'"
            ) from error
        self.place = place_of(url)
        self._url = url.set(drivername="postgresql+psycopg")
        self.writer = self._engine(self.begin, pool_size=writers, max_overflow=0, pool_timeout=60)
        event.listen(self.writer, "connect", _look_by_index)
        self.reader = self._engine(
            Prepared(text("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")),
            pool_size=readers,
            max_overflow=0,
            pool_timeout=60,
        )

    def _engine(self, begin: Statement, **pool: Any) -> Engine:
        arguments = {
            "connect_timeout": CONNECT_SECONDS,
            "tcp_user_timeout": LOST_TIMEOUT_MS,
            "application_name": "foldgate",
            "client_encoding": "utf8",
        }
        engine = create_engine(
            self._url,
            query_cache_size=1000,
            hide_parameters=True,
            connect_args={
                name: value for name, value in arguments.items() if name not in self._url.query
            },
            **pool,
        )
        event.listen(engine, "connect", _on_connect)
        event.listen(engine, "handle_error", _hide_values)
        event.listen(engine, "begin", on_begin(begin))
        return engine

    def exists(self) -> bool:
        """Whether the program's tables are there. Raises ConfigurationError as prepare."""
        self.prepare()
        return current(self.reader) is not None

    def prepare(self) -> None:
        """See that the server is there and can hold what is said. Raises ConfigurationError."""
        try:
            with self.reader.connect() as connection:
                server = _driver(connection).info
                encoding = server.parameter_status("server_encoding")
        except DatabaseError as error:
            raise ConfigurationError(
                f"the database {self.place} cannot be reached: {self.word(error)}"
            ) from error
        if encoding != "UTF8":
            raise ConfigurationError(
                f"the database {self.place} is encoded as {encoding}, which cannot hold what "
                "people say: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
            )
        if server.server_version < OLDEST * 10_000:
            raise ConfigurationError(
                f"the PostgreSQL server is of version {server.server_version // 10_000}; "
                f"Foldgate needs {OLDEST} or newer"
            )

    def size(self) -> int:
        """Bytes of its tables and indexes."""
        with self.reader.begin() as connection:
            return int(connection.execute(_SIZE).scalar_one())

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """A transaction in which tables are changed, by one program at a time.

        READ COMMITTED: who waited for another must see what that one did.
        """
        engine = self._engine(Prepared(text("BEGIN")), poolclass=NullPool)
        with engine.begin() as connection:
            connection.execute(text("SET LOCAL lock_timeout = 0"))
            lock = text("SELECT pg_advisory_xact_lock(:number)")
            connection.execute(lock, {"number": MIGRATION_LOCK})
            yield connection

    def check(self) -> str:
        """ "" where it answers: damage in its files is for PostgreSQL's own tools (pg_amcheck)."""
        with self.reader.begin() as connection:
            connection.execute(text("SELECT 1"))
        return ""

    @staticmethod
    def word(error: DBAPIError) -> str:
        """What the server says, in a line, without the values in it and without a password."""
        return str(error.orig).strip().partition("\n")[0]

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Tell what became of a transaction that is not committed yet: TransactionLost where it may
        be run again, StorageFailed where the server refuses to work."""
        try:
            yield
        except DBAPIError as error:
            if _state(error) in _CLASHES:
                raise TransactionLost(
                    "The gateway's database is too busy with others. Try again later.",
                    retry_after=RETRY_SECONDS,
                ) from error
            if not _is_lost(error):
                self._refuse(error)
                raise
            # Others of the pool are lost as well, if the server was started anew.
            log.warning("a connection to the database was lost: %s", self.word(error))
            self.writer.dispose()
            self.reader.dispose()
            raise TransactionLost(
                "The gateway lost its database. Try again later.", retry_after=RETRY_SECONDS
            ) from error

    @contextmanager
    def telling_connect(self) -> Iterator[None]:
        """Tell of a server that lets nobody in: nothing is gained by asking again at once."""
        try:
            yield
        except DBAPIError as error:
            log.error("the database cannot be reached: %s", self.word(error))
            raise StorageFailed(
                "The gateway's database cannot be reached. Try again later.",
                retry_after=RETRY_SECONDS,
            ) from error

    @contextmanager
    def telling_commit(self) -> Iterator[None]:
        """As `telling`; but where the connection is lost nobody knows whether the commit stands,
        and running it again might do it twice."""
        try:
            with self.telling():
                yield
        except TransactionLost as error:
            cause = error.__cause__
            if isinstance(cause, DBAPIError) and _state(cause) in _CLASHES:
                raise
            raise StorageFailed(
                "The gateway lost its database while it stored this. It may be stored: look before "
                "you send it again.",
                retry_after=RETRY_SECONDS,
            ) from cause

    def _refuse(self, error: DBAPIError) -> None:
        """Raise StorageFailed for what is no fault of the statement."""
        state = _state(error)
        if not state.startswith(_REFUSALS):
            return
        log.error("the database refuses: %s (%s)", self.word(error), state)
        raise StorageFailed(
            f"The gateway's database refuses to work ({self.word(error)}). Try again later.",
            retry_after=RETRY_SECONDS,
        ) from error

    @staticmethod
    def be_alone(connection: Connection) -> None:
        """Wait for every other writer and keep them out until the transaction ends: the first thing
        that it does, since it begins it anew."""
        _send(connection, _ALONE)

    @staticmethod
    def is_begun(connection: Connection) -> bool:
        """Whether there still is a transaction, and savepoints that can be gone back to."""
        from psycopg.pq import TransactionStatus

        status = _driver(connection).info.transaction_status
        return status in (TransactionStatus.INTRANS, TransactionStatus.INERROR)

    @staticmethod
    def let_go(connection: Connection) -> None:
        """Give a connection back; whatever is open on it is rolled back, and one that is lost is
        thrown away."""
        if not connection.invalidated and _driver(connection).closed:
            connection.invalidate()
        connection.close()

    def checkpointing(self) -> bool:
        """True: when what was deleted leaves the server's files is the server's own affair."""
        return True


def place_of(url: URL) -> str:
    """Where a database is, without passwords: they may stand in the address and behind it."""
    shown = {name: url.query[name] for name in ("host", "port") if name in url.query}
    return url.set(query=shown).render_as_string(hide_password=True)


def _look_by_index(connection: psycopg.Connection[Any], _record: object) -> None:
    """What a writer reads is watched for what others write: by an index it is a page, else the
    whole table, and everybody is in everybody's way. A third fewer transactions are lost."""
    connection.execute("SET enable_seqscan = off")


def _on_connect(connection: psycopg.Connection[Any], _record: object) -> None:
    from gateway.store.escapes import escape_texts

    # The driver's own BEGIN would be READ COMMITTED; ours is emitted when a transaction begins.
    connection.autocommit = True
    # The server keeps a plan for each statement that comes again; there are some hundred.
    connection.prepared_max = PREPARED
    for setting in _SETTINGS:
        connection.execute(setting)
    escape_texts(connection)


def _hide_values(context: ExceptionContext) -> DBAPIError | None:
    """The same error without what rows and parameters hold."""
    told, orig = context.sqlalchemy_exception, context.original_exception
    if not isinstance(told, DBAPIError) or not isinstance(orig, Exception):
        return None
    hide_values(orig)
    return type(told)(
        told.statement,
        None,
        orig,
        hide_parameters=True,
        connection_invalidated=told.connection_invalidated,
        code=told.code,
    )


def _driver(connection: Connection) -> psycopg.Connection[Any]:
    driver: Any = connection.connection.dbapi_connection
    found: psycopg.Connection[Any] = driver
    return found


def _state(error: DBAPIError) -> str:
    """The error's SQLSTATE, "" where the driver itself found it."""
    return getattr(error.orig, "sqlstate", None) or ""


def _is_lost(error: DBAPIError) -> bool:
    """Whether the connection is gone, and with it the transaction."""
    from psycopg import OperationalError

    state = _state(error)
    is_told = state in _SHUTDOWNS or state.startswith("08")
    return is_told or (not state and isinstance(error.orig, OperationalError))
