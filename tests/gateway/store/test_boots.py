"""Runs of the program: what a run that is over left behind is ended by the next one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from gateway.store.attempts import attempts, begin_attempt
from gateway.store.boots import begin_boot, boots, end_boot, record_revision, revisions
from gateway.store.engine import Store
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


@pytest.mark.parametrize(
    ("old_pid", "running", "state"),
    [
        (10, {11}, "cancelled"),
        (10, {10, 11}, "running"),
        (11, {11}, "cancelled"),
    ],
    ids=["its process is gone", "its process lives", "its number came back as ours"],
)
def test_a_run_that_is_over_has_no_running_attempts(
    store: Store, old_pid: int, running: set[int], state: str
) -> None:
    def is_running(pid: int) -> bool:
        return pid in running

    store.writing(begin_boot, "old", old_pid, is_running=is_running, now_ms=NOW)
    pk = store.writing(add_running, "old")
    ended = store.writing(begin_boot, "new", 11, is_running=is_running, now_ms=NOW + 9)
    row = store.reading(lambda c: c.execute(select(attempts).where(attempts.c.pk == pk)).one())
    assert (row.state, ended) == (state, int(state == "cancelled"))
    assert row.ended_ms == (NOW + 9 if state == "cancelled" else None)
    known = set(store.reading(lambda c: c.execute(select(boots.c.id)).scalars().all()))
    assert known == ({"new"} if state == "cancelled" else {"old", "new"})


def test_a_run_that_nobody_noted_is_over(store: Store) -> None:
    store.writing(add_running, "unknown")
    assert store.writing(begin_boot, "new", 1, is_running=lambda pid: True, now_ms=NOW) == 1


def test_a_run_that_ends_in_order_is_forgotten(store: Store) -> None:
    store.writing(begin_boot, "new", 1, is_running=lambda pid: True, now_ms=NOW)
    store.writing(end_boot, "new")
    assert store.reading(lambda c: c.execute(select(boots)).all()) == []


def test_a_revision_is_kept_once(store: Store) -> None:
    for now in (NOW, NOW + 1):
        store.writing(record_revision, "d1", "version: 1", now)
    (row,) = store.reading(lambda c: c.execute(select(revisions)).all())
    assert (row.digest, row.text, row.created_ms) == ("d1", "version: 1", NOW)
