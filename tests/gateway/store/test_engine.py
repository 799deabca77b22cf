"""The store: how each connection is set, transactions, deletion to the last orphan."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DatabaseError, IntegrityError

from gateway.errors import ConfigurationError, StorageFailed
from gateway.store.conversations import delete_conversation
from gateway.store.engine import Store, database_ms
from gateway.store.tables import METADATA
from tests.gateway.databases import database_url
from tests.gateway.house import House, Say, assistant, user

ADD_OWNER = text("""INSERT INTO owners (name, "user", created_ms) VALUES (:name, '', 1)""")


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = House(tmp_path)
    yield built
    built.store.close()


PRAGMAS = {
    "journal_mode": "wal",
    "foreign_keys": 1,
    "synchronous": 1,  # NORMAL
    "secure_delete": 1,
    "temp_store": 2,  # MEMORY
    "busy_timeout": 15_000,
}


def pragmas(connection: Connection) -> dict[str, object]:
    return {name: connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in PRAGMAS}


@pytest.mark.sqlite
def test_every_connection_is_set_alike(house: House) -> None:
    assert house.store.writing(pragmas) == PRAGMAS
    with (
        house.store._reader.connect() as one,
        house.store._reader.connect() as two,
        house.store._reader.connect() as three,
    ):
        assert [pragmas(c) for c in (one, two, three)] == [PRAGMAS] * 3


@pytest.mark.sqlite
def test_synchronous_full_is_full(tmp_path: Path) -> None:
    store = Store(database_url(tmp_path / "x.db"), synchronous="FULL")
    store.open()
    assert store.writing(pragmas)["synchronous"] == 2
    store.close()


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.sqlite
def test_what_people_say_is_for_its_owners_eyes_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    old = os.umask(0o022)
    try:
        store = Store(f"sqlite:///{path}")
        store.open()
        store.writing(lambda connection: connection.exec_driver_sql("CREATE TABLE t (a)"))
        assert {p.name: mode_of(p) for p in tmp_path.iterdir()} == {
            "x.db": 0o600,
            "x.db-wal": 0o600,
            "x.db-shm": 0o600,
        }
        store.close()
        path.chmod(0o640)  # whoever lets a group read it keeps it so
        store = Store(f"sqlite:///{path}")
        store.open()
        assert mode_of(path) == 0o640
        store.close()
    finally:
        os.umask(old)


@pytest.mark.sqlite
def test_a_database_that_cannot_be_made(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / ('x' * 300)}")
    with pytest.raises(ConfigurationError, match=r"cannot be made: File name too long"):
        store.open()
    store.close()


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://localhost/x", "are not supported"),
        ("sqlite://", "in-memory"),
        ("sqlite:///:memory:", "in-memory"),
        ("foldgate.db", "cannot be read"),
    ],
)
def test_other_databases_are_refused(url: str, says: str) -> None:
    with pytest.raises(ConfigurationError) as told:
        Store(url)
    assert says in str(told.value)


@pytest.mark.sqlite
def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'no' / 'x.db'}")
    with pytest.raises(ConfigurationError, match="does not exist"):
        store.open()
    store.close()


@pytest.mark.sqlite
def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"This is a letter, not a database. " * 100)
    store = Store(database_url(tmp_path / "x.db"))
    with pytest.raises(ConfigurationError, match="cannot be opened"):
        store.open()
    store.close()


def test_a_failed_write_leaves_nothing(house: House) -> None:
    def fail(connection: Connection) -> None:
        connection.execute(ADD_OWNER, {"name": "a"})
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        house.store.writing(fail)
    assert house.one("SELECT count(*) FROM owners") == 0


def test_a_reader_sees_what_was_committed_only(house: House) -> None:
    def look(connection: Connection) -> object:
        connection.execute(ADD_OWNER, {"name": "a"})
        return house.one("SELECT count(*) FROM owners")

    assert house.store.writing(look) == 0
    assert house.one("SELECT count(*) FROM owners") == 1


async def test_writes_run_one_after_another(house: House) -> None:
    def add(connection: Connection) -> None:
        before = connection.execute(text("SELECT count(*) FROM owners")).scalar_one()
        values = {"name": f"o{before}"}
        connection.execute(ADD_OWNER, values)

    await asyncio.gather(*(house.store.write(add) for _ in range(50)))
    assert house.one("SELECT count(*) FROM owners") == 50


def test_values_do_not_reach_an_error(house: House) -> None:
    def twice(connection: Connection) -> None:
        for _ in range(2):
            connection.execute(
                ADD_OWNER,
                {"name": "ORCHID-7"},
            )

    with pytest.raises(IntegrityError) as told:
        house.store.writing(twice)
    assert "ORCHID-7" not in str(told.value)


def test_foreign_keys_hold(house: House) -> None:
    with pytest.raises(IntegrityError):
        house.store.writing(
            lambda c: c.execute(
                text(
                    "INSERT INTO conversations (id, owner_pk, model, archived, resends, private,"
                    " noted, created_ms, touched_ms)"
                    " VALUES ('x', 99, 'm', false, false, false, false, 1, 1)"
                )
            )
        )


async def busy_house(house: House) -> None:
    """Rows in every table that hangs on a conversation."""
    history: list[Say] = [{"role": "system", "content": "S"}]
    while not house.rows("SELECT pk FROM gists") or len(house.folds()) < 4:
        history.append(user("my code word is ORCHID-7 " + "word " * 35))
        house.local.answers = [f"Reply {len(history)}."]
        said = await house.say(*history, id="c")
        history.append(assistant(said.text))
        house.write_chapters()
        house.write_gists()


async def test_deletion_leaves_no_orphan_in_any_table(house: House) -> None:
    """I09, on two connections; the tables are taken from the metadata, so that new ones count."""
    await busy_house(house)
    await house.say("hello", id="other", owner="bob")
    kept = {"owners", "policy_revisions", "boots", "kv_outbox", "alembic_version"}
    tables = [table.name for table in METADATA.sorted_tables if table.name not in kept]
    full = [name for name in tables if house.one(f"SELECT count(*) FROM {name}")]
    assert {"messages", "attempts", "folds", "chapters", "chapter_versions", "gists"} <= set(full)
    assert {"jobs", "system_texts", "conversation_aliases", "conversations"} <= set(full)

    conversation = house.conversation("c")
    house.store.writing(delete_conversation, conversation, elsewhere=(), now_ms=house.clock.ms)
    assert house.one("SELECT count(*) FROM conversations") == 1
    assert house.one("SELECT count(*) FROM messages") == 2
    for name in full:
        if name not in ("conversations", "messages", "attempts", "conversation_aliases"):
            assert house.one(f"SELECT count(*) FROM {name}") == 0, name
    if house.store.database.path is not None:
        assert house.rows("PRAGMA foreign_key_check") == []

    # On a second connection, as another process opens one.
    other = Store(house.store.url)
    found = house.conversation("other", owner="bob")
    other.writing(delete_conversation, found, elsewhere=(), now_ms=house.clock.ms)
    other.close()
    for name in tables:
        assert house.one(f"SELECT count(*) FROM {name}") == 0, name


@pytest.mark.sqlite
async def test_deleted_words_are_in_no_file(house: House) -> None:
    """I07: overwritten in the database's pages, emptied from the WAL."""
    await busy_house(house)
    conversation = house.conversation("c")
    house.store.writing(delete_conversation, conversation, elsewhere=(), now_ms=house.clock.ms)
    assert house.store.checkpointing()
    for file in house.folder.iterdir():
        assert b"ORCHID-7" not in file.read_bytes(), file.name


@pytest.mark.sqlite
def test_a_locked_database_is_waited_for_not_failed_at_once(house: House) -> None:
    """BEGIN IMMEDIATE takes the lock first: nothing read before it can be stale."""
    other = sqlite3.connect(house.store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    def write_now(connection: Connection) -> None:
        connection.exec_driver_sql("SELECT 1")

    raw = house.store._writer.raw_connection()
    raw.cursor().execute("PRAGMA busy_timeout=1")
    raw.close()
    with pytest.raises(StorageFailed, match="locked") as caught:
        house.store.writing(write_now)
    assert (caught.value.status, caught.value.code) == (503, "storage_unavailable")
    assert caught.value.retry_after
    other.execute("COMMIT")
    other.close()
    house.store.writing(write_now)


@pytest.mark.sqlite
async def test_a_full_database_says_so_stores_nothing_and_recovers(house: House) -> None:
    def set_limit(connection: Connection, pages: int) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    async def limit(pages: int) -> None:
        await house.store.write(set_limit, pages)  # on the connection that turns are written on

    await house.say("Ahoy!", id="c")
    await limit(1)  # SQLite takes the pages that there are
    with pytest.raises(StorageFailed, match="full"):
        await house.say("灯台" * 100_000, id="c")
    assert [role for role, _ in house.told("c")] == ["user", "assistant"]
    await limit(2**30)
    await house.say("灯台" * 100_000, id="c")
    assert [role for role, _ in house.told("c")] == ["user", "assistant"] * 2


@pytest.mark.sqlite
def test_a_database_that_may_not_be_written_says_so(house: House) -> None:
    def write_now(connection: Connection) -> None:
        connection.exec_driver_sql("PRAGMA query_only=ON")
        connection.exec_driver_sql("DELETE FROM owners")

    with pytest.raises(StorageFailed, match="readonly"):
        house.store.writing(write_now)


def test_a_fault_of_a_statement_is_nothing_of_the_disks(house: House) -> None:
    with pytest.raises(DatabaseError, match="nowhere"):
        house.store.reading(lambda connection: connection.execute(text("SELECT 1 FROM nowhere")))


def test_the_database_tells_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In UTC, whatever this machine's zone."""
    monkeypatch.setenv("TZ", "America/Sao_Paulo")
    store = Store(f"sqlite:///{tmp_path}/foldgate.db")
    store.open()
    before = time.time_ns() // 1_000_000
    told = store.reading(database_ms)
    assert before - 1 <= told <= time.time_ns() // 1_000_000 + 1
    store.close()
