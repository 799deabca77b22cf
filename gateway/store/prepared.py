"""Statements of a turn's hot path: compiled once, then run on the driver's own cursor.

SQLAlchemy looks up, binds and wraps at every execution, which costs some 70 µs where SQLite itself
takes 5 µs, and a turn has twenty statements. Here it builds the SQL once for each dialect; values
go to the driver through the types' own conversions, errors come back as SQLAlchemy's: also what
the file refuses while rows are fetched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import ClauseElement, Connection, Dialect
from sqlalchemy.exc import DBAPIError

Row = tuple[Any, ...]
_Conversion = tuple[int, Callable[[Any], Any]]
_Name = tuple[str, Callable[[Any], Any] | None]


@dataclass(frozen=True, slots=True)
class _Compiled:
    """SQL of one dialect. names: its parameters in order, each with its conversion; conversions:
    of the columns that need one, by index."""

    sql: str
    names: tuple[_Name, ...]
    plain: tuple[str, ...] | None
    defaults: Mapping[str, Any]
    conversions: tuple[_Conversion, ...]
    positional: bool

    def bind(self, values: Mapping[str, Any]) -> Any:
        if self.plain is not None:
            return [values[name] for name in self.plain]
        given = {**self.defaults, **values} if self.defaults else values
        bound = [
            given[name] if convert is None else convert(given[name]) for name, convert in self.names
        ]
        if self.positional:
            return bound
        return {name: value for (name, _), value in zip(self.names, bound, strict=True)}

    def read(self, row: Any) -> Row:
        if not self.conversions:
            return row  # type: ignore[no-any-return]
        values = list(row)
        for index, convert in self.conversions:
            values[index] = convert(values[index])
        return tuple(values)


class Prepared:
    """One statement with named parameters (`bindparam`, or the columns of an insert).

    Lists of varying length (`in_`) have no place in it: their SQL changes with each execution.
    """

    __slots__ = ("_columns", "_compiled", "_others", "_statement")

    def __init__(
        self,
        statement: ClauseElement,
        columns: Sequence[str] | None = None,
        **others: ClauseElement,
    ) -> None:
        """columns: of an insert, the ones that are given. others: the statement as databases of
        other kinds want it, by the names of their dialects; with the same names of parameters, of
        which each may leave some out."""
        self._statement = statement
        self._others = others
        self._columns = None if columns is None else list(columns)
        self._compiled: dict[str, _Compiled] = {}

    def first(self, connection: Connection, /, **values: Any) -> Row | None:
        """The first row, or None."""
        compiled = self._for(connection)
        cursor = _driver(connection).cursor()
        try:
            cursor.execute(compiled.sql, compiled.bind(values))
            row = cursor.fetchone()
            cursor.close()
        except _errors(connection) as error:
            raise _wrapped(connection, compiled, error) from error
        return None if row is None else compiled.read(row)

    def scalar(self, connection: Connection, /, **values: Any) -> Any:
        """The first column of the first row; None where there is no row."""
        row = self.first(connection, **values)
        return None if row is None else row[0]

    def all(self, connection: Connection, /, **values: Any) -> list[Row]:
        """Every row."""
        compiled = self._for(connection)
        cursor = _driver(connection).cursor()
        try:
            cursor.execute(compiled.sql, compiled.bind(values))
            rows = cursor.fetchall()
        except _errors(connection) as error:
            raise _wrapped(connection, compiled, error) from error
        return [compiled.read(row) for row in rows] if compiled.conversions else rows

    def each(self, connection: Connection, /, **values: Any) -> Iterator[Row]:
        """Row after row, read only as far as they are asked for."""
        compiled = self._for(connection)
        cursor = _driver(connection).cursor()
        try:
            cursor.execute(compiled.sql, compiled.bind(values))
            while (row := cursor.fetchone()) is not None:
                yield compiled.read(row)
        except _errors(connection) as error:
            raise _wrapped(connection, compiled, error) from error
        finally:
            cursor.close()

    def run(self, connection: Connection, /, **values: Any) -> int:
        """Execute a statement that returns nothing; how many rows it met."""
        compiled = self._for(connection)
        cursor = _driver(connection).cursor()
        try:
            cursor.execute(compiled.sql, compiled.bind(values))
        except _errors(connection) as error:
            raise _wrapped(connection, compiled, error) from error
        return int(cursor.rowcount)

    def run_many(self, connection: Connection, rows: Iterable[Mapping[str, Any]]) -> None:
        """Execute once for each of these sets of values."""
        compiled = self._for(connection)
        cursor = _driver(connection).cursor()
        try:
            cursor.executemany(compiled.sql, [compiled.bind(row) for row in rows])
        except _errors(connection) as error:
            raise _wrapped(connection, compiled, error) from error

    def _for(self, connection: Connection) -> _Compiled:
        found = self._compiled.get(connection.dialect.name)
        if found is None:
            statement = self._others.get(connection.dialect.name, self._statement)
            found = _compile(statement, self._columns, connection.dialect)
            self._compiled[connection.dialect.name] = found
        return found


class Statement(Protocol):
    """Something that runs on a connection, as a Prepared without parameters does."""

    def run(self, connection: Connection, /) -> int: ...


def on_begin(statement: Statement) -> Callable[[Connection], None]:
    """A listener that begins an engine's transactions with this statement."""

    def begin(connection: Connection) -> None:
        statement.run(connection)

    return begin


def _compile(statement: ClauseElement, columns: list[str] | None, dialect: Dialect) -> _Compiled:
    compiled: Any = statement.compile(dialect=dialect, column_keys=columns)
    order = compiled.positiontup if compiled.positional else list(compiled.binds)
    names = tuple((name, compiled._bind_processors.get(name)) for name in order)
    defaults = {name: bind.value for name, bind in compiled.binds.items() if not bind.required}
    is_plain = compiled.positional and not any(convert for _, convert in names)
    conversions = []
    # psycopg gives Python's own values for whatever our columns hold.
    for index, column in enumerate(() if dialect.driver == "psycopg" else compiled._result_columns):
        convert = column.type.dialect_impl(dialect).result_processor(dialect, None)
        if convert is not None:
            conversions.append((index, convert))
    return _Compiled(
        sql=str(compiled),
        names=names,
        plain=tuple(order) if is_plain and not defaults else None,
        defaults=defaults,
        conversions=tuple(conversions),
        positional=compiled.positional,
    )


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


def _errors(connection: Connection) -> type[Exception]:
    dbapi: Any = connection.dialect.dbapi
    kind: type[Exception] = dbapi.Error
    return kind


def hide_values(error: BaseException) -> None:
    """Take out of a driver's error what rows and parameters hold: what people say must not reach a
    log. PostgreSQL tells the values in a detail line, and values that are no numbers at once."""
    diagnosis: Any = getattr(error, "diag", None)
    if diagnosis is None or diagnosis.message_primary is None:
        return
    state = diagnosis.sqlstate or ""
    error.args = ("a value is refused" if state.startswith("22") else diagnosis.message_primary,)


def _wrapped(connection: Connection, compiled: _Compiled, error: Exception) -> BaseException:
    return wrap(connection, compiled.sql, error)


def wrap(connection: Connection, sql: str, error: Exception) -> BaseException:
    """A driver's error as SQLAlchemy tells it, without the values."""
    hide_values(error)
    return DBAPIError.instance(
        sql,
        None,
        error,
        _errors(connection),
        hide_parameters=True,
        dialect=connection.dialect,
    )
