"""What people are told of background work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.jobs import leases, queue
from gateway.store.conversations import list_jobs
from gateway.store.engine import Store
from gateway.store.job_rows import describe_job, find_job
from tests.gateway.databases import database_url
from tests.gateway.seeds import NOW, add_conversation, talk


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    store = Store(database_url(tmp_path / "foldgate.db"))
    store.open()
    try:
        with store._writer.begin() as opened:
            yield opened
    finally:
        store.close()


def put(
    connection: Connection, key: str, *, backend: str | None = "glm", owner: str = "ada"
) -> None:
    made, _ = add_conversation(connection, talk(1), owner=owner)
    queue.enqueue(
        connection,
        key=key,
        kind="chapter",
        conversation_pk=made.pk,
        policy="local-fold",
        payload={},
        run_at_ms=NOW,
        backend=backend,
        now_ms=NOW,
    )


def waits(connection: Connection, key: str, now_ms: int) -> str | None:
    told = describe_job(connection, find_job(connection, None, key), now_ms)["waits_for"]
    listed = {job["id"]: job for job in list_jobs(connection, None, limit=9, now_ms=now_ms)}
    assert listed[key]["waits_for"] == told
    return None if told is None else str(told)


def test_what_a_job_waits_for(connection: Connection) -> None:
    put(connection, "chapter:1")
    put(connection, "chapter:2", owner="ben")
    put(connection, "chapter:3", backend=None)
    assert waits(connection, "chapter:1", NOW - 1) == "its time"
    assert waits(connection, "chapter:1", NOW) == "a running gateway and a quiet moment of glm"
    assert waits(connection, "chapter:3", NOW) == "a running gateway to choose its backend"

    (first,) = leases.claim(connection, now_ms=NOW, lease="l1", lease_ms=60_000, blocked=[""])
    assert first.key == "chapter:1"
    assert waits(connection, "chapter:1", NOW) is None
    assert waits(connection, "chapter:2", NOW) == "other work on glm", "not whose: law 11"

    leases.postpone(connection, first.pk, "l1", NOW + 30_000, "echo", "judged out", NOW)
    assert waits(connection, "chapter:1", NOW) == "its next round"
    assert waits(connection, "chapter:2", NOW) == "a running gateway and a quiet moment of glm"


def test_a_job_waits_for_the_other_one_of_its_conversation(connection: Connection) -> None:
    put(connection, "chapter:1")
    connection.exec_driver_sql(
        "INSERT INTO jobs (key, kind, conversation_pk, state, run_at_ms, attempts, backend, policy,"
        " payload, created_ms, updated_ms) SELECT 'chapter:2', kind, conversation_pk, state,"
        " run_at_ms, attempts, 'grok', policy, payload, created_ms, updated_ms FROM jobs"
    )
    leases.claim(connection, now_ms=NOW, lease="l1", lease_ms=60_000)
    assert waits(connection, "chapter:2", NOW) == "other work of its conversation"


def test_work_that_cannot_be_read_is_told_of_all_the_same(connection: Connection) -> None:
    put(connection, "chapter:1")
    connection.exec_driver_sql("UPDATE jobs SET payload = '{half of it'")
    assert leases.claim(connection, now_ms=NOW, lease="l1", lease_ms=60_000) == []
    told = describe_job(connection, find_job(connection, None, "chapter:1"), NOW)
    assert (told["state"], told["cause"], told["chapter"]) == ("parked", "poisoned", None)
    assert told["error"] == "what it is for cannot be read"
