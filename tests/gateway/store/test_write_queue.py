"""Group commit: what waits together is committed together, and each write stands for itself."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event, text
from sqlalchemy.exc import IntegrityError

from gateway.errors import StorageFailed
from gateway.store.engine import Store
from gateway.store.write_queue import SIBLINGS
from tests.gateway.databases import database_url, dropping

Kind = Literal["add", "add twice", "add and fail", "count"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(database_url(tmp_path / "x.db"))
    store.open()
    yield store
    store.close()


def watch(store: Store, see: Callable[[str], None]) -> None:
    """Tell each statement of the store's writer, as the database is about to run it."""
    assert store._held is None, "before the first write"

    class Cursor(psycopg.Cursor[Any]):
        def execute(self, query: Any, *values: Any, **more: Any) -> Any:
            see(str(query))
            return super().execute(query, *values, **more)

    def begin(driver: Any, *_: object) -> None:
        if isinstance(driver, sqlite3.Connection):
            driver.set_trace_callback(see)
        else:
            driver.cursor_factory = Cursor

    event.listen(store._writer, "checkout", begin)


class Transactions:
    """How many a store's writer began and committed."""

    def __init__(self, store: Store) -> None:
        self.begun = self.committed = 0
        watch(store, self._see)

    def _see(self, statement: str) -> None:
        self.begun += statement.startswith("BEGIN")
        self.committed += statement == "COMMIT"


def add(connection: Connection, name: str, twice: bool = False, fails: bool = False) -> str:
    insert = text("""INSERT INTO owners (name, "user", created_ms) VALUES (:name, '', 1)""")
    for _ in range(1 + twice):
        connection.execute(insert, {"name": name})
    if fails:
        raise ZeroDivisionError(name)
    return name


def count(connection: Connection) -> int:
    return int(connection.execute(text("SELECT count(*) FROM owners")).scalar_one())


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, no transaction here is committed early."""
    monkeypatch.setattr("gateway.store.write_queue.ENOUGH_SECONDS", 60.0)


def names(store: Store) -> list[str]:
    rows = store.reading(lambda c: c.execute(text("SELECT name FROM owners ORDER BY pk")).all())
    return [name for (name,) in rows]


async def together(store: Store, *writes: Awaitable[Any]) -> list[Any]:
    """Queue writes while the thread is busy, then let it go; results and errors in order."""
    gate = threading.Event()
    store._write_thread.submit(gate.wait)
    tasks = [asyncio.ensure_future(write) for write in writes]
    await asyncio.sleep(0)
    gate.set()
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_what_waits_together_is_committed_together(store: Store) -> None:
    seen = Transactions(store)
    assert await together(store, *(store.write(add, name) for name in "abcde")) == list("abcde")
    assert (seen.begun, seen.committed) == (1, 1)
    assert names(store) == list("abcde")
    assert await store.write(add, "f") == "f"
    assert seen.committed == 2


def crowd(store: Store, monkeypatch: pytest.MonkeyPatch, company: int, linger: float) -> None:
    """Many turns run: a write waits for so much company, and for so many seconds."""
    monkeypatch.setattr("gateway.store.write_queue.COMPANY", company)
    monkeypatch.setattr("gateway.store.write_queue.LINGER_SECONDS", linger)
    store.siblings = lambda: SIBLINGS


async def begin(store: Store, *said: str) -> list[asyncio.Task[str]]:
    """Writes that come one after another."""
    tasks = []
    for name in said:
        tasks.append(asyncio.create_task(store.write(add, name)))
        await asyncio.sleep(0)
    return tasks


async def test_among_many_turns_a_write_waits_for_company(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = Transactions(store)
    crowd(store, monkeypatch, company=3, linger=60.0)
    tasks = await begin(store, "a", "b")
    assert (seen.begun, names(store)) == (0, [])
    tasks += await begin(store, "c")
    assert await asyncio.gather(*tasks) == list("abc")
    assert (seen.begun, seen.committed) == (1, 1)
    store.siblings = lambda: SIBLINGS - 1
    assert await store.write(add, "d") == "d"


async def test_nobody_waits_for_company_for_long(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd(store, monkeypatch, company=3, linger=0.0)
    assert await store.write(add, "a") == "a"


async def test_who_waits_for_company_is_written_before_the_store_is_closed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd(store, monkeypatch, company=3, linger=60.0)
    tasks = await begin(store, "a")
    store.close()
    assert await asyncio.gather(*tasks) == ["a"]
    again = Store(store.url)
    assert names(again) == ["a"]
    again.close()


async def test_who_waits_for_company_is_written_before_a_checkpoint(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd(store, monkeypatch, company=3, linger=60.0)
    tasks = await begin(store, "a")
    assert await store.checkpoint()
    assert await asyncio.gather(*tasks) == ["a"]


async def test_a_result_is_told_after_the_commit_only(store: Store) -> None:
    done_at_commit: list[bool] = []
    tasks: list[asyncio.Future[str]] = []

    def look(statement: str) -> None:
        if statement == "COMMIT":
            done_at_commit.extend(task.done() for task in tasks)

    watch(store, look)

    gate = threading.Event()
    store._write_thread.submit(gate.wait)
    tasks += [asyncio.ensure_future(store.write(add, name)) for name in "abc"]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(*tasks) == list("abc")
    assert done_at_commit == [False] * 3


async def test_one_that_fails_undoes_its_own_alone(store: Store) -> None:
    seen = Transactions(store)
    a, failed, refused, d = await together(
        store,
        store.write(add, "a"),
        store.write(add, "b", fails=True),
        store.write(add, "c", twice=True),
        store.write(add, "d"),
    )
    assert (a, d) == ("a", "d")
    assert isinstance(failed, ZeroDivisionError)
    assert isinstance(refused, IntegrityError)
    assert seen.committed == 1
    assert names(store) == ["a", "d"]


async def test_one_that_fails_in_front_takes_nothing_with_it(store: Store) -> None:
    seen = Transactions(store)
    failed, b, c = await together(
        store,
        store.write(add, "a", fails=True),
        store.write(add, "b"),
        store.write(add, "c"),
    )
    assert isinstance(failed, ZeroDivisionError)
    assert (b, c) == ("b", "c")
    assert (seen.begun, seen.committed) == (2, 1)
    assert names(store) == ["b", "c"]


async def test_a_commit_that_fails_is_told_to_all(store: Store) -> None:
    def orphan(connection: Connection) -> None:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA defer_foreign_keys=ON")
        else:
            connection.exec_driver_sql(
                "ALTER TABLE conversations ALTER CONSTRAINT conversations_owner_pk_fkey"
                " DEFERRABLE INITIALLY DEFERRED"
            )
        connection.exec_driver_sql(
            "INSERT INTO conversations (id, owner_pk, model, archived, resends, private, noted,"
            " created_ms, touched_ms)"
            " VALUES ('x', 99, 'm', false, false, false, false, 1, 1)"
        )

    told = await together(
        store, store.write(add, "a"), store.write(add, "b", fails=True), store.write(orphan)
    )
    assert [type(error) for error in told] == [IntegrityError, ZeroDivisionError, IntegrityError]
    assert names(store) == []
    assert await store.write(add, "c") == "c"


async def test_a_transaction_that_is_taken_back_is_told_to_all_in_it(store: Store) -> None:
    """As SQLite does where the disk is full: the ones behind get a transaction of their own."""

    def give_up(connection: Connection) -> None:
        connection.exec_driver_sql("ROLLBACK")
        raise StorageFailed("full", retry_after=1.0)

    a, gone, c = await together(
        store, store.write(add, "a"), store.write(give_up), store.write(add, "c")
    )
    assert isinstance(a, StorageFailed)
    assert isinstance(gone, StorageFailed)
    assert c == "c"
    assert names(store) == ["c"]


async def test_one_that_is_cancelled_before_its_turn_is_left_out(store: Store) -> None:
    gate = threading.Event()
    store._write_thread.submit(gate.wait)
    kept, left = (asyncio.ensure_future(store.write(add, name)) for name in "ab")
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    gate.set()
    assert await kept == "a"
    with pytest.raises(asyncio.CancelledError):
        await left
    assert names(store) == ["a"]


async def test_a_long_transaction_takes_no_more_in(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.write_queue.ENOUGH_SECONDS", 0.0)
    seen = Transactions(store)
    assert await together(store, *(store.write(add, name) for name in "abc")) == list("abc")
    assert seen.committed == 3


async def test_a_transaction_holds_so_many(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.store.write_queue.ENOUGH_SECONDS", 60.0)
    monkeypatch.setattr("gateway.store.write_queue.MOST", 4)
    seen = Transactions(store)
    await together(store, *(store.write(add, str(number)) for number in range(10)))
    assert seen.committed == 3  # 4 + 4 + 2
    assert names(store) == [str(number) for number in range(10)]


async def test_a_checkpoint_stands_behind_what_was_queued(store: Store) -> None:
    added, emptied, *_ = await together(
        store, store.write(add, "a"), store.checkpoint(), store.write(add, "b")
    )
    assert (added, emptied) == ("a", True)


WRITES = st.lists(
    st.tuples(
        st.sampled_from(["add", "add twice", "add and fail", "count"]), st.sampled_from("abcd")
    ),
    max_size=12,
)


@pytest.fixture(scope="module")
def pair(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, ...]]:
    folder = tmp_path_factory.mktemp("pair")
    with dropping():
        stores = tuple(Store(database_url(folder / name)) for name in ("a.db", "b.db"))
        for store in stores:
            store.open()
        yield stores
        for store in stores:
            store.close()


@settings(max_examples=60, deadline=None)
@given(WRITES)
def test_together_is_as_one_by_one(pair: tuple[Store, ...], writes: list[tuple[Kind, str]]) -> None:
    """Law: whatever waits together, rows and endings are those of one transaction each."""

    def work(kind: Kind, name: str) -> tuple[Any, ...]:
        if kind == "count":
            return (count,)
        return (add, name, kind == "add twice", kind == "add and fail")

    grouped, single = pair
    for store in pair:
        store.writing(lambda connection: connection.execute(text("DELETE FROM owners")))
    queued = [work(*write) for write in writes]
    told = asyncio.run(together(grouped, *(grouped.write(*one) for one in queued)))
    expected: list[Any] = []
    for function, *values in queued:
        try:
            expected.append(single.writing(function, *values))
        except (ZeroDivisionError, IntegrityError) as error:
            expected.append(error)
    assert [_plain(one) for one in told] == [_plain(one) for one in expected]
    assert names(grouped) == names(single)


def _plain(ending: Any) -> Any:
    return type(ending) if isinstance(ending, Exception) else ending
