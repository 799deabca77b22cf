"""What only a database on a server can do to a store: other writers, lost connections, refusals."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection, Engine, event, make_url, text
from sqlalchemy.exc import DataError, IntegrityError

from gateway.errors import ConfigurationError, StorageFailed
from gateway.store.conversations import delete_conversation
from gateway.store.engine import Store, find_database
from gateway.store.postgres import place_of
from gateway.store.prepared import Prepared
from gateway.store.reruns import TOGETHER
from gateway.store.wipes import tell_of_emptied
from tests import postgres
from tests.gateway.databases import database_url
from tests.gateway.seeds import NOW, add_conversation, talk

pytestmark = pytest.mark.postgresql

_ADD = text("""INSERT INTO owners (name, "user", created_ms) VALUES (:name, '', 1)""")
_COUNT = text("SELECT count(*) FROM owners")


@pytest.fixture
def url(tmp_path: Path) -> str:
    return database_url(tmp_path / "x.db")


@pytest.fixture
def pair(url: str) -> Iterator[tuple[Store, Store]]:
    """Two programs on one database."""
    stores = Store(url), Store(url)
    for store in stores:
        store.open()
    yield stores
    for store in stores:
        store.close()


@pytest.fixture
def store(pair: tuple[Store, Store]) -> Store:
    return pair[0]


def add_next(connection: Connection) -> int:
    """An owner with the number of those that there are: wrong where two count at a time."""
    number = int(connection.execute(_COUNT).scalar_one())
    connection.execute(_ADD, {"name": f"o{number}"})
    return number


def add_stranger(connection: Connection, name: str = "stranger") -> None:
    """Counts as well, and is in nobody's way but by that."""
    connection.execute(_COUNT).scalar_one()
    connection.execute(_ADD, {"name": name})


def administer(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[call-overload]


def cut_off(url: str) -> None:
    """End every connection to a database, as a restart of its server does."""
    name = make_url(url).database
    administer(
        postgres.server(),
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        " AND application_name = 'foldgate'",
    )


# -- other writers ------------------------------------------------------------------------------


def test_who_reads_first_and_writes_then_is_as_good_as_alone(pair: tuple[Store, Store]) -> None:
    with ThreadPoolExecutor(2) as threads:
        told = [
            threads.submit(lambda store: [store.writing(add_next) for _ in range(20)], store)
            for store in pair
        ]
        numbers = [number for one in told for number in one.result()]
    assert sorted(numbers) == list(range(40))


async def test_a_queued_write_steps_back_and_is_run_again(
    pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With it all that shared its transaction; what stands, and is told, is of the last time."""
    monkeypatch.setattr("gateway.store.write_queue.ENOUGH_SECONDS", 60.0)
    store, other = pair
    met: list[str] = []

    def met_by_another(connection: Connection) -> int:
        met.append("one")
        if len(met) == 1:
            connection.execute(_COUNT).scalar_one()
            other.writing(add_stranger)
        return add_next(connection)

    gate = threading.Event()
    store._write_thread.submit(gate.wait)
    writes = (store.write(add_next), store.write(met_by_another), store.write(add_next))
    tasks = [asyncio.ensure_future(write) for write in writes]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(*tasks) == [1, 2, 3]
    assert len(met) == 2
    assert store.reading(lambda c: c.execute(_COUNT).scalar_one()) == 4


@pytest.mark.parametrize("queued", [True, False])
async def test_who_never_gets_through_is_alone_at_last(
    pair: tuple[Store, Store], queued: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = pair
    met: list[int] = []

    def met_by_another(connection: Connection) -> int:
        connection.execute(_COUNT).scalar_one()
        met.append(1)
        if len(met) <= TOGETHER:
            other.writing(add_stranger, f"s{len(met)}")
        else:
            monkeypatch.setattr(other, "_writer", impatient(other))
            with pytest.raises(StorageFailed, match="lock timeout"):
                other.writing(add_at_once)
            other._writer.dispose()
            monkeypatch.undo()
        return add_next(connection)

    number = await store.write(met_by_another) if queued else store.writing(met_by_another)
    assert number == TOGETHER
    assert len(met) == TOGETHER + 1
    assert other.writing(add_next) == TOGETHER + 1


def impatient(store: Store) -> Engine:
    """The store's writer, which waits for no lock for long."""
    database = find_database(store.url, synchronous="OFF")
    event.listen(
        database.writer, "connect", lambda driver, _: driver.execute("SET lock_timeout=10")
    )
    return database.writer


def add_at_once(connection: Connection) -> None:
    raise AssertionError("somebody else is alone")


def test_a_reader_sees_one_state_and_is_never_sent_back(pair: tuple[Store, Store]) -> None:
    def look(connection: Connection) -> list[int]:
        before = connection.execute(_COUNT).scalar_one()
        pair[1].writing(add_next)
        return [before, connection.execute(_COUNT).scalar_one()]

    assert pair[0].reading(look) == [0, 0]


def test_word_of_a_deletion_never_comes_behind_a_later_one(pair: tuple[Store, Store]) -> None:
    """Who reads on from the last word it saw misses none: the second waits for the first."""

    def delete(connection: Connection) -> None:
        delete_conversation(connection, gone, elsewhere=(), now_ms=NOW)
        with pytest.raises(StorageFailed, match="lock timeout"):
            pair[1].writing(tell_at_once)

    def tell_at_once(connection: Connection) -> None:
        connection.execute(text("SET LOCAL lock_timeout = '10ms'"))
        tell_of_emptied(connection, NOW)

    gone, _ = pair[0].writing(add_conversation, talk(1))
    pair[0].writing(delete)
    pair[1].writing(tell_at_once)


def test_two_programs_may_start_at_once(tmp_path: Path) -> None:
    stores = [Store(database_url(tmp_path / "new.db", migrated=False)) for _ in range(2)]
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(store.open) for store in stores]:
            done.result()
    assert [store.examine()[0] for store in stores] == [True, True]
    for store in stores:
        store.close()


# -- lost connections ---------------------------------------------------------------------------


async def test_a_server_that_was_started_anew_is_not_noticed(store: Store, url: str) -> None:
    assert await store.write(add_next) == 0
    assert store.writing(add_next) == 1
    assert await store.read(lambda c: c.execute(_COUNT).scalar_one()) == 2
    cut_off(url)
    assert await store.write(add_next) == 2
    cut_off(url)
    assert store.writing(add_next) == 3
    cut_off(url)
    assert await store.read(lambda c: c.execute(_COUNT).scalar_one()) == 4


def test_a_connection_that_is_lost_half_way_is_done_again(store: Store, url: str) -> None:
    calls: list[int] = []

    def lose(connection: Connection) -> int:
        calls.append(1)
        connection.execute(_ADD, {"name": "half"})
        if len(calls) == 1:
            cut_off(url)
        return add_next(connection)

    assert store.writing(lose) == 1
    assert len(calls) == 2


END = Prepared(text("SELECT pg_terminate_backend(pg_backend_pid())"))


async def test_a_commit_of_which_nobody_knows_is_not_done_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def add(connection: Connection) -> None:
        calls.append(1)
        add_next(connection)

    await store.write(add_next)
    monkeypatch.setattr(store.database, "commit", END)
    with pytest.raises(StorageFailed, match="may be stored"):
        await store.write(add)
    assert len(calls) == 1
    monkeypatch.undo()
    assert await store.write(add_next) == 1


UNREACHABLE = "postgresql://ann:geheim@127.0.0.1:1/chats?sslpassword=auchgeheim"


def test_a_server_that_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    store = Store(UNREACHABLE)
    with pytest.raises(ConfigurationError, match=r"cannot be reached: .*refused") as told:
        store.open()
    with pytest.raises(StorageFailed, match="cannot be reached") as refused:
        store.reading(add_next)
    with pytest.raises(StorageFailed, match="cannot be reached"):
        store.writing(add_next)
    assert refused.value.retry_after
    good, says = store.examine()
    assert not good
    assert "postgresql://ann:***@127.0.0.1:1/chats" in str(told.value)
    assert "geheim" not in f"{told.value}{told.value.__cause__}{says}{caplog.text}"
    store.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            "postgresql://ann:geheim@db.example:5433/chats",
            "postgresql://ann:***@db.example:5433/chats",
        ),
        (
            "postgresql:///chats?host=/run/pg&password=geheim",
            "postgresql:///chats?host=%2Frun%2Fpg",
        ),
        ("postgresql://ann@db/chats", "postgresql://ann@db/chats"),
    ],
)
def test_a_place_is_told_without_passwords(url: str, shown: str) -> None:
    assert place_of(make_url(url)) == shown


def test_a_url_that_cannot_be_read_is_not_repeated() -> None:
    with pytest.raises(ConfigurationError, match="cannot be read") as told:
        Store("postgresql://ann:geheim@host:port/x")
    assert "geheim" not in f"{told.value}{told.value.__cause__}{told.value.__context__}"


# -- refusals -----------------------------------------------------------------------------------


def test_a_server_that_may_only_be_read_says_so(store: Store) -> None:
    def write(connection: Connection) -> None:
        connection.execute(text("SET TRANSACTION READ ONLY"))
        add_next(connection)

    with pytest.raises(StorageFailed, match="read-only"):
        store.writing(write)


def test_a_database_that_is_not_there(url: str) -> None:
    store = Store(postgres.url_of(url, "nowhere"))
    with pytest.raises(ConfigurationError, match=r"nowhere.*does not exist"):
        store.open()
    store.close()


def test_a_database_that_cannot_hold_what_people_say(url: str) -> None:
    name = "ascii_only"
    administer(url, f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'SQL_ASCII'")
    store = Store(postgres.url_of(url, name))
    with pytest.raises(ConfigurationError, match="SQL_ASCII"):
        store.open()
    store.close()
    postgres.drop_database(postgres.url_of(url, name))


def test_without_its_driver_the_program_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigurationError, match=r"foldgate\[postgres\]"):
        Store(UNREACHABLE)


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        (
            'INSERT INTO owners (name, "user", created_ms) VALUES (:said, :said, 1),'
            " (:said, :said, 1)",
            IntegrityError,
        ),
        ("SELECT CAST(:said AS integer)", DataError),
    ],
)
def test_what_people_say_is_in_no_error(
    store: Store, statement: str, kind: type[Exception]
) -> None:
    for run in (
        lambda c: c.execute(text(statement), {"said": "ORCHID-7"}),
        lambda c: Prepared(text(statement)).all(c, said="ORCHID-7"),
    ):
        with pytest.raises(kind) as told:
            store.writing(run)
        error: BaseException | None = told.value
        while error is not None:
            assert "ORCHID-7" not in str(error)
            error = error.__cause__ or error.__context__


# -- the tables ---------------------------------------------------------------------------------


def test_every_text_is_sorted_by_code_point(store: Store) -> None:
    """As SQLite does: ids, digests and names come in one order everywhere."""
    others = store.reading(
        lambda c: c.execute(
            text(
                "SELECT table_name, column_name, collation_name FROM information_schema.columns"
                " WHERE table_schema = 'public' AND data_type = 'text'"
                " AND collation_name IS DISTINCT FROM 'C'"
            )
        ).all()
    )
    assert others == []


def test_numbers_of_rows_and_moments_have_room(store: Store) -> None:
    small = store.reading(
        lambda c: c.execute(
            text(
                "SELECT table_name, column_name FROM information_schema.columns"
                " WHERE table_schema = 'public' AND data_type = 'integer'"
                " AND (column_name LIKE '%pk' OR column_name = 'place'"
                "      OR column_name ~ '^(created|started|ended|touched|updated|run_at).*_ms$')"
            )
        ).all()
    )
    assert small == []


def test_a_vacuum_writes_the_tables_anew(store: Store) -> None:
    """What was deleted is then in none of their pages."""
    store.writing(lambda c: c.execute(_ADD, [{"name": f"{n} " + "雨" * 900} for n in range(400)]))
    store.writing(lambda c: c.execute(text("DELETE FROM owners")))
    before = store.database.size()
    assert store.vacuuming()
    assert store.database.size() < before
    assert store.writing(add_next) == 0
