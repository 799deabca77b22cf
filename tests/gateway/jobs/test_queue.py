"""The queue's contract: what is put in, hurried and looked at."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, text

from gateway.jobs import leases, queue
from tests.gateway.jobs.stage import DELAY, LEASE, put, row, take
from tests.gateway.seeds import NOW


def test_ten_turns_queue_one_job_and_do_not_reset_its_delay(
    connection: Connection, conversation_pk: int
) -> None:
    first = put(connection, conversation_pk, "chapter:1")
    again = [
        put(
            connection,
            conversation_pk,
            "chapter:1",
            run_at_ms=NOW + turn * 3_000 + DELAY,
            now_ms=NOW + turn * 3_000,
        )
        for turn in range(1, 11)
    ]

    assert (first, again) == (True, [False] * 10)
    assert take(connection, NOW + DELAY - 1) == []
    assert take(connection, NOW + DELAY) == ["chapter:1"]


MORE = {"ahead": "small", "to": "local"}


def test_what_is_hurried_is_due_now_and_says_for_whom(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "chapter:1")
    assert queue.hurry(connection, "chapter:1", MORE, now_ms=NOW + 5) == "queued"
    found = row(connection, "chapter:1")
    assert (found.run_at_ms, found.payload) == (NOW + 5, {"chapter": 7, **MORE})
    assert queue.hurry(connection, "chapter:2", MORE, now_ms=NOW) is None
    # what was due is not made due later
    assert queue.hurry(connection, "chapter:1", MORE, now_ms=NOW + 9) == "queued"
    assert row(connection, "chapter:1").run_at_ms == NOW + 5


def test_work_that_failed_keeps_its_wait_when_hurried(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "chapter:1", run_at_ms=NOW)
    [job] = leases.claim(connection, now_ms=NOW, lease="l1", lease_ms=LEASE)
    assert queue.hurry(connection, "chapter:1", MORE, now_ms=NOW) == "leased"
    assert leases.postpone(connection, job.pk, "l1", NOW + DELAY, "overloaded", "later", NOW)
    assert queue.hurry(connection, "chapter:1", {}, now_ms=NOW) == "queued"
    found = row(connection, "chapter:1")
    assert (found.run_at_ms, found.payload) == (NOW + DELAY, {"chapter": 7, **MORE})
    [job] = leases.claim(connection, now_ms=NOW + DELAY, lease="l2", lease_ms=LEASE)
    assert leases.park(connection, job.pk, "l2", "refused", "refused by both", NOW)
    assert queue.hurry(connection, "chapter:1", {"to": "x"}, now_ms=NOW) == "parked"
    assert row(connection, "chapter:1").payload == {"chapter": 7, **MORE}


@pytest.mark.parametrize("end", ["done", "parked"])
def test_what_is_done_or_parked_is_not_begun_anew(
    connection: Connection, conversation_pk: int, end: str
) -> None:
    put(connection, conversation_pk, "chapter:1", run_at_ms=NOW)
    [job] = leases.claim(connection, now_ms=NOW, lease="l1", lease_ms=LEASE)
    if end == "done":
        assert leases.complete(connection, job.pk, "l1", NOW)
    else:
        assert leases.park(connection, job.pk, "l1", "refused", "refused by both", NOW)

    assert put(connection, conversation_pk, "chapter:1", run_at_ms=NOW) is False
    assert row(connection, "chapter:1").state == end
    assert take(connection, NOW + 10 * LEASE) == []


def test_when_to_ring_next(connection: Connection, conversation_pk: int) -> None:
    assert queue.next_due(connection) is None
    assert not queue.has_due(connection, NOW)
    put(connection, conversation_pk, "due", run_at_ms=NOW - 5)
    put(connection, conversation_pk, "coming", run_at_ms=NOW + 700, backend="deepseek")

    assert queue.has_due(connection, NOW)
    assert queue.next_due(connection) == NOW - 5
    assert queue.next_due(connection, after_ms=NOW) == NOW + 700
    take(connection, NOW)
    assert queue.next_due(connection, after_ms=NOW + 700) == NOW + LEASE
    assert not queue.has_due(connection, NOW + 699)
    assert queue.has_due(connection, NOW + LEASE)


def test_rows_without_a_backend_are_given_one(connection: Connection, conversation_pk: int) -> None:
    put(connection, conversation_pk, "chapter:1", run_at_ms=NOW, backend=None)
    put(connection, conversation_pk, "chapter:2", run_at_ms=NOW + 1, backend=None)
    put(connection, conversation_pk, "chapter:3", run_at_ms=NOW)

    [job] = queue.unassigned(connection, NOW)
    queue.assign(connection, job.pk, "deepseek")

    assert row(connection, "chapter:1").backend == "deepseek"
    assert queue.unassigned(connection, NOW) == []


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Sao_Paulo"])
def test_summer_time_is_no_business_of_the_queue(
    connection: Connection, conversation_pk: int, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    # 2026-10-25T02:59:50 in Berlin, the first time: 00:59:50 UTC.
    before_the_change = 1_792_889_990_000
    put(
        connection,
        conversation_pk,
        "chapter:1",
        run_at_ms=before_the_change + DELAY,
        now_ms=before_the_change,
    )

    assert take(connection, before_the_change + DELAY - 1) == []
    assert take(connection, before_the_change + DELAY) == ["chapter:1"]


def test_a_deleted_conversation_takes_its_jobs_along(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "chapter:1", run_at_ms=NOW)
    [job] = leases.claim(connection, now_ms=NOW, lease="l1", lease_ms=LEASE)

    gone = text("DELETE FROM conversations WHERE pk = :pk")
    connection.execute(gone, {"pk": conversation_pk})

    assert leases.held(connection, job.pk, "l1") is False
    assert leases.complete(connection, job.pk, "l1", NOW) is False
