"""Prepared statements say what SQLAlchemy's own would, in values and in errors."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, bindparam, insert, select, text, update
from sqlalchemy.exc import DatabaseError, IntegrityError

from gateway.errors import StorageFailed
from gateway.store.engine import Store
from gateway.store.prepared import Prepared
from gateway.store.tables.transcript import Conversation, Owner
from tests.gateway.databases import database_url

owners = Owner.__table__  # type: ignore[attr-defined]
conversations = Conversation.__table__  # type: ignore[attr-defined]

ADD = Prepared(insert(owners).returning(owners.c.pk), ["name", "user", "created_ms"])
NAMES = Prepared(select(owners.c.name, owners.c.user).order_by(owners.c.pk))
RENAME = Prepared(
    update(owners).where(owners.c.name == bindparam("old")).values(name=bindparam("new"))
)
ARCHIVED = Prepared(
    select(conversations.c.id, conversations.c.archived).where(
        conversations.c.archived == bindparam("archived")
    )
)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    store = Store(database_url(tmp_path / "a.db"))
    store.open()
    with store._writer.begin() as connection:
        yield connection
    store.close()


def add(connection: Connection, name: str, user: str = "") -> int:
    return int(ADD.scalar(connection, name=name, user=user, created_ms=7))


def test_rows_come_as_they_went(connection: Connection) -> None:
    assert add(connection, "ann", "雨") == 1
    assert add(connection, "боб", "🗺️") == 2
    assert NAMES.all(connection) == [("ann", "雨"), ("боб", "🗺️")]
    assert NAMES.first(connection) == ("ann", "雨")
    assert NAMES.scalar(connection) == "ann"
    assert list(NAMES.each(connection)) == NAMES.all(connection)


def test_what_is_not_there_is_none(connection: Connection) -> None:
    assert NAMES.first(connection) is None
    assert NAMES.scalar(connection) is None
    assert NAMES.all(connection) == []


def test_run_tells_how_many_rows_it_met(connection: Connection) -> None:
    add(connection, "ann", "a")
    add(connection, "ann", "b")
    assert RENAME.run(connection, old="ann", new="eve") == 2
    assert RENAME.run(connection, old="ann", new="eve") == 0


def test_many_rows_at_once(connection: Connection) -> None:
    rows = [{"name": "ann", "user": user, "created_ms": 7} for user in "abc"]
    Prepared(insert(owners), ["name", "user", "created_ms"]).run_many(connection, rows)
    assert [user for _, user in NAMES.all(connection)] == ["a", "b", "c"]


def test_types_are_converted_both_ways(connection: Connection) -> None:
    owner = add(connection, "ann")
    for id, archived in (("c1", True), ("c2", False)):
        connection.execute(
            insert(conversations).values(
                id=id, owner_pk=owner, model="m", archived=archived, created_ms=1, touched_ms=1
            )
        )
    assert ARCHIVED.all(connection, archived=True) == [("c1", True)]
    (found,) = ARCHIVED.all(connection, archived=False)
    assert found[1] is False


def test_errors_are_sqlalchemys_and_tell_no_values(connection: Connection) -> None:
    add(connection, "ann", "secret")
    with pytest.raises(IntegrityError) as told:
        add(connection, "ann", "secret")
    assert "secret" not in str(told.value)
    with pytest.raises(DatabaseError):
        Prepared(text("SELECT nothing FROM nowhere")).all(connection)


LONG = Prepared(text("SELECT a, b FROM long ORDER BY a"))
READS: dict[str, Callable[[Connection], object]] = {
    "first": Prepared(text("SELECT sum(length(b)) FROM long")).first,
    "all": LONG.all,
    "each": lambda connection: list(LONG.each(connection)),
}


@pytest.fixture
def damaged(tmp_path: Path) -> Iterator[Store]:
    """A database whose first rows can be read, and those further on cannot."""
    path = tmp_path / "damaged.db"
    store = Store(f"sqlite:///{path}")
    store.open()

    def fill(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE long (a INTEGER PRIMARY KEY, b TEXT)"))
        rows = [{"a": at, "b": "雨" * 600} for at in range(400)]
        connection.execute(text("INSERT INTO long VALUES (:a, :b)"), rows)

    store.writing(fill)
    store.checkpointing()
    store.close()
    with closing(sqlite3.connect(path)) as plain:
        (size,) = plain.execute("PRAGMA page_size").fetchone()
        (count,) = plain.execute("PRAGMA page_count").fetchone()
    with path.open("r+b") as file:
        file.seek((count - 60) * size)
        file.write(b"\xff" * size * 3)
    store = Store(f"sqlite:///{path}")
    yield store
    store.close()


@pytest.mark.sqlite
@pytest.mark.parametrize("name", READS)
def test_what_the_file_refuses_while_rows_are_fetched_is_told_alike(
    damaged: Store, name: str
) -> None:
    def read(connection: Connection) -> None:
        with pytest.raises(DatabaseError, match="malformed") as told:
            READS[name](connection)
        raise told.value

    with pytest.raises(StorageFailed, match="malformed"):
        damaged.reading(read)


def test_what_is_left_unread_is_let_go(connection: Connection) -> None:
    for name in "abc":
        add(connection, name)
    rows = NAMES.each(connection)
    assert next(rows) == ("a", "")
    rows.close()  # type: ignore[attr-defined]
    assert RENAME.run(connection, old="c", new="d") == 1
