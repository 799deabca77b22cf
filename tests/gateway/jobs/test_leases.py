"""Who holds a row, and how it is let go."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, select, update

from gateway.jobs import hand, leases, queue
from gateway.jobs.rows import CLOCK_SLACK_MS, jobs
from gateway.store.engine import Store
from tests.gateway.jobs.stage import DELAY, LEASE, another, put, row, take
from tests.gateway.seeds import NOW, add_conversation, talk


def test_the_longest_due_comes_first_and_one_a_backend(connection: Connection) -> None:
    for key, due, backend in (
        ("c", NOW - 1, "glm"),
        ("a", NOW - 3, "glm"),
        ("b", NOW - 2, "deepseek"),
        ("d", NOW - 1, None),
        ("later", NOW + 1, "rehearsal"),
    ):
        put(connection, another(connection), key, run_at_ms=due, backend=backend)

    assert take(connection, NOW, limit=9) == ["a", "b", "d"]
    assert take(connection, NOW, "l2", limit=9) == [], "what another program runs counts as well"
    assert leases.complete(connection, row(connection, "a").pk, "l1", NOW)
    assert take(connection, NOW, "l2", limit=9) == ["c"]


def test_one_job_a_conversation_at_a_time(connection: Connection, conversation_pk: int) -> None:
    put(connection, conversation_pk, "a", run_at_ms=NOW - 3, backend="glm")
    put(connection, conversation_pk, "b", run_at_ms=NOW - 2, backend="deepseek")
    put(connection, another(connection), "c", run_at_ms=NOW - 1, backend="deepseek")

    assert take(connection, NOW, limit=9) == ["a", "c"]
    assert take(connection, NOW, "l2", limit=9) == []
    for key in ("a", "c"):
        assert leases.complete(connection, row(connection, key).pk, "l1", NOW)
    assert take(connection, NOW, "l2", limit=9) == ["b"]


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("payload", "{half of it", "what it is for cannot be read"),
        ("payload", "[7]", "what it is for cannot be read"),
        ("kind", "dream", "this program knows no work of its kind"),
    ],
)
def test_what_no_program_can_run_is_parked_and_blocks_nothing(
    connection: Connection, conversation_pk: int, column: str, value: str, said: str
) -> None:
    put(connection, another(connection), "bad", run_at_ms=NOW - 9, backend=None)
    put(connection, conversation_pk, "good", run_at_ms=NOW, backend=None)
    spoil(connection, "bad", column, value)

    assert queue.due(connection, NOW) == queue.unassigned(connection, NOW)
    assert [job.key for job in queue.due(connection, NOW)] == ["good"]
    assert take(connection, NOW, limit=9) == ["good"]
    left = row(connection, "bad")
    assert (left.state, left.error_kind, left.error) == ("parked", leases.POISONED, said)
    assert left.attempts == 0

    # A person who mended it, or a newer program, has it tried again.
    hand.retry(connection, "bad", NOW)
    spoil(connection, "bad", column, '{"chapter": 7}' if column == "payload" else "chapter")
    assert leases.complete(connection, row(connection, "good").pk, "l1", NOW)
    assert take(connection, NOW, "l2") == ["bad"]


def test_a_spoiled_row_is_told_of_and_moved_by_no_turn(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "bad")
    spoil(connection, "bad", "payload", "{half of it")

    assert queue.live(connection, conversation_pk, "chapter", "local-fold") == []
    assert queue.hurry(connection, "bad", {"warm": "cloud"}, now_ms=NOW) == "queued"
    assert row(connection, "bad").run_at_ms == NOW + DELAY
    assert connection.execute(select(jobs.c.payload)).scalar_one() == "{half of it"


def spoil(connection: Connection, key: str, column: str, value: str) -> None:
    connection.execute(update(jobs).where(jobs.c.key == key).values({column: value}))


def test_only_the_work_that_is_asked_for(connection: Connection) -> None:
    for key in ("a", "b", "c"):
        put(connection, another(connection), key, run_at_ms=NOW, backend=key)

    assert take(connection, NOW, only={"b", "x"}, limit=9) == ["b"]


def test_a_backend_with_a_running_turn_is_left_alone(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "glm's", run_at_ms=NOW)
    put(connection, another(connection), "nobody's", run_at_ms=NOW + 1, backend=None)

    assert take(connection, NOW + 1, blocked=["glm"]) == ["nobody's"]
    assert take(connection, NOW + 1, blocked=["glm", ""]) == []
    assert take(connection, NOW + 1) == ["glm's"]


def test_a_claim_counts_as_an_attempt_and_only_a_release_takes_it_back(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "chapter:1", run_at_ms=NOW)
    [job] = leases.claim(connection, now_ms=NOW, lease="l1", lease_ms=LEASE)
    assert (job.attempts, job.lease, job.lease_until_ms) == (1, "l1", NOW + LEASE)
    assert job.payload == {"chapter": 7}

    assert leases.release(connection, job.pk, "l1", NOW)
    assert row(connection, "chapter:1").attempts == 0

    [job] = leases.claim(connection, now_ms=NOW, lease="l2", lease_ms=LEASE)
    assert leases.postpone(connection, job.pk, "l2", NOW + 99, "refusal", "x" * 900, NOW)
    left = row(connection, "chapter:1")
    assert (left.attempts, left.state, left.run_at_ms) == (1, "queued", NOW + 99)
    assert (left.error_kind, left.error) == ("refusal", "x" * leases.ERROR_CHARS)


def test_a_dead_holders_lease_is_reaped_and_a_beating_ones_is_not(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "chapter:1", run_at_ms=NOW)
    [job] = leases.claim(connection, now_ms=NOW, lease="l1", lease_ms=LEASE)

    assert leases.beat(connection, job.pk, "l1", now_ms=NOW + 50_000, lease_ms=LEASE)
    assert take(connection, NOW + 109_999, "l2") == []  # 50,000 + 60,000 = 110,000
    assert take(connection, NOW + 110_000, "l2") == ["chapter:1"]
    assert row(connection, "chapter:1").attempts == 2


@pytest.mark.parametrize(
    "act",
    [
        lambda c, pk: leases.complete(c, pk, "l1", NOW),
        lambda c, pk: leases.postpone(c, pk, "l1", NOW, "timeout", "late", NOW),
        lambda c, pk: leases.park(c, pk, "l1", "timeout", "late", NOW),
        lambda c, pk: leases.release(c, pk, "l1", NOW),
        lambda c, pk: leases.beat(c, pk, "l1", now_ms=NOW, lease_ms=LEASE),
        lambda c, pk: leases.held(c, pk, "l1"),
    ],
)
def test_a_holder_whose_lease_went_to_another_changes_nothing(
    connection: Connection, conversation_pk: int, act: Any
) -> None:
    put(connection, conversation_pk, "chapter:1", run_at_ms=NOW)
    [job] = leases.claim(connection, now_ms=NOW, lease="l1", lease_ms=LEASE)
    assert leases.held(connection, job.pk, "l1")
    take(connection, NOW + LEASE, "l2")
    before = row(connection, "chapter:1")

    assert act(connection, job.pk) is False
    assert row(connection, "chapter:1") == before


def test_a_clock_set_back_an_hour_does_not_put_work_to_sleep(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "chapter:1")
    back = NOW - 3_600_000

    # The sweep comes within seconds and finds a row that was written in the future …
    assert queue.has_due(connection, back + 30_000)
    assert take(connection, back + 30_000) == []
    # … which keeps its wait of 30 s from then on.
    assert row(connection, "chapter:1").run_at_ms == back + 30_000 + DELAY
    assert take(connection, back + 60_000) == ["chapter:1"]


def test_a_lease_from_the_future_ends_within_one_lease(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "chapter:1", run_at_ms=NOW)
    take(connection, NOW)
    back = NOW - 3_600_000

    assert take(connection, back, "l2") == []
    assert row(connection, "chapter:1").lease_until_ms == back + LEASE
    assert take(connection, back + LEASE, "l2") == ["chapter:1"]


def test_small_corrections_of_the_clock_move_nothing(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "chapter:1")

    assert take(connection, NOW - CLOCK_SLACK_MS) == []
    assert row(connection, "chapter:1").run_at_ms == NOW + DELAY


def test_a_clock_set_forward_lets_one_a_backend_go_at_a_time(
    connection: Connection, conversation_pk: int
) -> None:
    for number in range(5):
        put(connection, conversation_pk, f"chapter:{number}")

    assert take(connection, NOW + 3_600_000, limit=8) == ["chapter:0"]


@given(st.lists(st.tuples(st.sampled_from("eckprb"), st.integers(0, 90_000)), max_size=40))
def test_whatever_happens_there_is_one_holder_at_most(
    store: Store, steps: list[tuple[str, int]]
) -> None:
    """Enqueue, claim, complete, postpone, release and beat in any order at any pace."""
    with store._writer.connect() as connection:
        transaction = connection.begin()
        conversation_pk = add_conversation(connection, talk(1))[0].pk
        now, count, pk = NOW, 0, None
        for step, pause in steps:
            now += pause
            lease = f"l{count}"
            if step == "e":
                put(connection, conversation_pk, "only", run_at_ms=now, now_ms=now)
            elif step == "c":
                count += 1
                for job in leases.claim(
                    connection, now_ms=now, lease=f"l{count}", lease_ms=LEASE, limit=9
                ):
                    pk = job.pk
            elif pk is not None and step == "k":
                leases.complete(connection, pk, lease, now)
            elif pk is not None and step == "p":
                leases.postpone(connection, pk, lease, now + 5, "timeout", "", now)
            elif pk is not None and step == "r":
                leases.release(connection, pk, lease, now)
            elif pk is not None and step == "b":
                leases.beat(connection, pk, lease, now_ms=now, lease_ms=LEASE)
            rows = connection.execute(select(*jobs.c)).all()
            holders = [n for n in range(count + 1) if pk and leases.held(connection, pk, f"l{n}")]
            assert len(rows) <= 1
            assert len(holders) <= 1
            assert all((r.state == "leased") == (r.lease is not None) for r in rows)
            assert all(r.attempts >= 0 for r in rows)
        transaction.rollback()


def test_200_jobs_are_claimed_and_done_without_a_pause(
    connection: Connection, conversation_pk: int
) -> None:
    for number in range(200):
        put(connection, conversation_pk, f"chapter:{number}", run_at_ms=NOW + number)

    done = []
    while keys := take(connection, NOW + 200):
        done += keys
        job = row(connection, keys[0])
        assert leases.complete(connection, job.pk, "l1", NOW + 200)
    assert done == [f"chapter:{number}" for number in range(200)]


def test_what_a_dead_run_had_leased_is_due_again_at_the_next_start(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "dead")
    put(connection, another(connection), "alive", backend="other")
    assert take(connection, NOW + DELAY, "boot_old.1") == ["dead"]
    assert take(connection, NOW + DELAY, "boot_new.1") == ["alive"]
    assert leases.free_dead(connection, ["boot_new"], NOW + DELAY + 1) == 1
    assert row(connection, "dead").state == "queued"
    assert row(connection, "dead").attempts == 1
    assert row(connection, "alive").state == "leased"
    assert take(connection, NOW + DELAY + 1, "boot_new.2") == ["dead"]


def test_spare_work_goes_behind_all_that_is_due(
    connection: Connection, conversation_pk: int
) -> None:
    put(connection, conversation_pk, "chapter:1", run_at_ms=NOW)
    put(connection, conversation_pk, "chapter:2", run_at_ms=NOW + 1)
    spare = {row(connection, "chapter:1").pk}

    assert take(connection, NOW + 1, spare=spare) == ["chapter:2"]
    assert take(connection, NOW + 1, "l2", spare=spare) == []
    assert leases.complete(connection, row(connection, "chapter:2").pk, "l1", NOW + 1)
    assert take(connection, NOW + 1, "l2", spare=spare) == ["chapter:1"]


@pytest.mark.parametrize("backend", ["glm", "grok", None])
def test_spare_work_waits_for_nothing_that_is_not_due(
    connection: Connection, conversation_pk: int, backend: str | None
) -> None:
    put(connection, conversation_pk, "chapter:1", run_at_ms=NOW)
    put(connection, conversation_pk, "chapter:2", run_at_ms=NOW + 1, backend=backend)
    spare = {row(connection, "chapter:1").pk}
    assert take(connection, NOW, spare=spare) == ["chapter:1"]


def test_a_wait_after_a_failure_holds_nothing_else_up(
    connection: Connection, conversation_pk: int
) -> None:
    keys = ["chapter:1", "chapter:2"]
    for key in keys:
        put(connection, conversation_pk, key, run_at_ms=NOW)
    spare = {row(connection, key).pk for key in keys}
    assert take(connection, NOW, "l1", spare=spare) == ["chapter:1"]
    job = row(connection, "chapter:1")
    assert leases.postpone(connection, job.pk, "l1", NOW + DELAY, "echo", "judged out", NOW + 5)
    # the caller finds spare what is due, so that the one that waits is not among them
    spare.discard(job.pk)
    assert take(connection, NOW + 6, "l2", spare=spare) == ["chapter:2"]


STEP = st.one_of(
    st.tuples(st.just("wait"), st.integers(0, 40_000)),
    # NTP, a resumed machine, an hour of summer time that somebody put into the clock.
    st.tuples(st.just("jump"), st.integers(-7_200_000, 7_200_000)),
    st.tuples(st.sampled_from(["look", "beat", "fail"]), st.integers(0, 1)),
)


@given(st.lists(STEP, max_size=30))
def test_whatever_the_clock_does_the_work_is_done_once_and_in_time(
    store: Store, steps: list[tuple[str, int]]
) -> None:
    """Two programs, one row, a clock that jumps by up to two hours either way: there is one holder,
    and once the clock is left alone the work is begun within its delay and one lease."""
    with store._writer.connect() as connection:
        transaction = connection.begin()
        conversation_pk = add_conversation(connection, talk(1))[0].pk
        now, held = NOW, [""] * 2
        put(connection, conversation_pk, "only")
        pk = row(connection, "only").pk
        for count, (step, value) in enumerate(steps):
            if step in ("wait", "jump"):
                now += value
            elif step == "look":
                lease = f"p{value}.{count}"
                if take(connection, now, lease):
                    held[value] = lease
            elif step == "beat" and held[value]:
                leases.beat(connection, pk, held[value], now_ms=now, lease_ms=LEASE)
            elif step == "fail" and held[value]:
                leases.postpone(connection, pk, held[value], now + 20_000, "timeout", "", now)
            assert sum(bool(h) and leases.held(connection, pk, h) for h in held) <= 1
        take(connection, now, "p0.last")
        taken = row(connection, "only").lease == "p0.last"
        assert taken or take(connection, now + max(DELAY, LEASE) + CLOCK_SLACK_MS, "p0.last")
        assert leases.held(connection, pk, "p0.last")
        assert not any(h and leases.complete(connection, pk, h, now) for h in held)
        transaction.rollback()
