"""Runs of the program: what a run that is over left behind is ended by the next one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from gateway.store.attempts import attempts, begin_attempt, busy_elsewhere
from gateway.store.boots import (
    LEASE_MS,
    Run,
    boots,
    end_boot,
    keep_boot,
    record_revision,
    revisions,
    this_run,
)
from gateway.store.engine import Store
from gateway.store.processes import is_running
from tests.gateway.databases import database_url
from tests.gateway.seeds import NOW, add_conversation, talk


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(database_url(tmp_path / "foldgate.db"))
    store.open()
    yield store
    store.close()


def add_running(connection: Connection, boot: str) -> int:
    conversation, nodes = add_conversation(connection, talk(1))
    return begin_attempt(
        connection,
        conversation_pk=conversation.pk,
        asked_pk=nodes[0].pk,
        backend="b",
        policy="p",
        model="m",
        boot=boot,
        view_kind="verbatim",
        state="running",
        started_ms=NOW,
    )


HERE, ELSEWHERE = "kernel-1/pid:[1]", "kernel-2/pid:[1]"


def begin(
    store: Store, id: str, pid: int, running: set[int], *, machine: str = HERE, now_ms: int = NOW
) -> int:
    run = Run(id, pid, machine)
    return store.writing(keep_boot, run, is_running=running.__contains__, now_ms=now_ms)


def state(store: Store, pk: int) -> tuple[str, int | None]:
    row = store.reading(lambda c: c.execute(select(attempts).where(attempts.c.pk == pk)).one())
    return row.state, row.ended_ms


def known(store: Store) -> set[str]:
    return set(store.reading(lambda c: c.execute(select(boots.c.id)).scalars().all()))


@pytest.mark.parametrize(
    ("machine", "old_pid", "running", "after", "wanted"),
    [
        (HERE, 10, {11}, 9, "cancelled"),
        (HERE, 10, {10, 11}, 9, "running"),
        (HERE, 11, {11}, 9, "cancelled"),
        (HERE, 10, {10, 11}, LEASE_MS, "cancelled"),
        (ELSEWHERE, 10, {11}, LEASE_MS - 1, "running"),
        (ELSEWHERE, 11, {11}, LEASE_MS - 1, "running"),
        (ELSEWHERE, 10, {10, 11}, LEASE_MS, "cancelled"),
    ],
    ids=[
        "its process is gone",
        "its process lives",
        "its number came back as ours",
        "a stranger has its number, its lease is over",
        "another machine's process numbers mean nothing here",
        "every container has the same number",
        "elsewhere, and its lease is over",
    ],
)
def test_a_run_that_is_over_has_no_running_attempts(
    store: Store, machine: str, old_pid: int, running: set[int], after: int, wanted: str
) -> None:
    begin(store, "old", old_pid, running, machine=machine)
    pk = store.writing(add_running, "old")
    ended = begin(store, "new", 11, running, now_ms=NOW + after)
    is_over = wanted == "cancelled"
    assert (state(store, pk), ended) == ((wanted, NOW + after if is_over else None), int(is_over))
    assert known(store) == ({"new"} if is_over else {"old", "new"})


def test_a_run_that_beats_is_not_over(store: Store) -> None:
    begin(store, "a", 1, set(), machine=ELSEWHERE)
    pk = store.writing(add_running, "a")
    for beat in range(1, 10):
        begin(store, "a", 1, set(), machine=ELSEWHERE, now_ms=NOW + beat * 20_000)
        assert begin(store, "b", 2, set(), now_ms=NOW + beat * 20_000 + 59_999) == 0
    assert state(store, pk) == ("running", None)


def test_a_run_that_slept_through_its_lease_takes_a_new_one(store: Store) -> None:
    begin(store, "a", 1, set(), machine=ELSEWHERE)
    begin(store, "b", 2, set(), now_ms=NOW + LEASE_MS)
    assert known(store) == {"b"}
    begin(store, "a", 1, set(), machine=ELSEWHERE, now_ms=NOW + LEASE_MS + 1)
    assert known(store) == {"a", "b"}


def test_a_lease_from_before_the_clock_was_set_back_ends(store: Store) -> None:
    begin(store, "a", 1, set(), machine=ELSEWHERE, now_ms=NOW + 3_600_000)
    begin(store, "b", 2, set(), now_ms=NOW)
    assert known(store) == {"a", "b"}
    begin(store, "b", 2, set(), now_ms=NOW + LEASE_MS)
    assert known(store) == {"b"}


def test_this_process_is_alive_here() -> None:
    run = this_run("boot_1")
    assert run.id == "boot_1" and run.machine and is_running(run.pid)
    assert run == this_run("boot_1")


def test_a_run_that_nobody_noted_is_over(store: Store) -> None:
    store.writing(add_running, "unknown")
    assert begin(store, "new", 1, {1}) == 1


def test_a_run_that_ends_in_order_is_forgotten(store: Store) -> None:
    begin(store, "new", 1, {1})
    store.writing(end_boot, "new")
    assert known(store) == set()


def test_turns_of_other_runs_keep_their_backends_busy(store: Store) -> None:
    assert store.reading(busy_elsewhere, "mine") == set()
    store.writing(add_running, "mine")
    assert store.reading(busy_elsewhere, "mine") == set()
    store.writing(add_running, "another")
    assert store.reading(busy_elsewhere, "mine") == {"b"}


def test_a_revision_is_kept_once(store: Store) -> None:
    for now in (NOW, NOW + 1):
        store.writing(record_revision, "d1", "version: 1", now)
    (row,) = store.reading(lambda c: c.execute(select(revisions)).all())
    assert (row.digest, row.text, row.created_ms) == ("d1", "version: 1", NOW)
