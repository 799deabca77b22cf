"""The bells: what rings, when, and that nothing of value is in them."""

import asyncio
import logging
from datetime import UTC

import pytest

from gateway.clock import SystemClock
from gateway.jobs import bells as bells_module
from gateway.jobs.bells import Bells, strike
from tests.gateway.flows.stage import HandClock
from tests.gateway.seeds import NOW


class Worker:
    """Counts its rounds; a round lasts until it is let go, where `hold` is set."""

    def __init__(self) -> None:
        self.rounds = 0
        self.due: int | None = None
        self.drained: float | None = None
        self.rung = asyncio.Event()
        self.hold: asyncio.Event | None = None
        self.error: Exception | None = None

    async def run_due(self) -> int:
        self.rounds += 1
        self.rung.set()
        if self.error is not None:
            raise self.error
        if self.hold is not None:
            await self.hold.wait()
        return 0

    async def next_due(self) -> int | None:
        return self.due

    async def drain(self, grace_seconds: float) -> None:
        self.drained = grace_seconds
        if self.hold is not None:
            self.hold.set()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_the_trampoline_keeps_its_path() -> None:
    """A scheduler that held jobs by another name would drop them: this name is for ever."""
    assert f"{strike.__module__}:{strike.__qualname__}" == "gateway.jobs.bells:strike"


async def test_it_rings_at_start_for_what_became_due_before() -> None:
    worker = Worker()
    bells = Bells(worker, HandClock())
    bells.ring(NOW - 1)
    await settle()
    assert worker.rounds == 0

    await bells.start()
    await bells.start()
    await settle()

    assert worker.rounds == 1
    await bells.stop(3.0)
    assert worker.drained == 3.0
    bells.ring(NOW - 1)
    bells.strike()
    await bells.stop()
    await settle()
    assert worker.rounds == 1


async def test_one_trigger_for_the_earliest_due_time_in_utc() -> None:
    worker, clock = Worker(), HandClock()
    bells = Bells(worker, clock)
    await bells.start()
    await settle()
    scheduler = bells._scheduler
    assert scheduler is not None
    assert scheduler.timezone is UTC
    assert scheduler.get_jobs() == []

    bells.ring(NOW + 3_600_000)
    [late] = scheduler.get_jobs()
    bells.ring(NOW + 7_200_000)
    assert [job.next_run_time for job in scheduler.get_jobs()] == [late.next_run_time]
    bells.ring(NOW + 1_800_000)
    [early] = scheduler.get_jobs()

    assert 1_799 < (late.next_run_time - early.next_run_time).total_seconds() < 1_801
    assert early.misfire_grace_time is None
    assert early.coalesce is True
    await bells.stop()


async def test_a_round_ends_with_a_trigger_for_what_comes_next() -> None:
    worker, clock = Worker(), HandClock()
    worker.due = NOW + 60_000
    bells = Bells(worker, clock)
    await bells.start()
    await settle()

    assert bells._scheduler is not None
    assert len(bells._scheduler.get_jobs()) == 1
    assert bells._armed == NOW + 60_000
    await bells.stop()


async def test_the_scheduler_rings() -> None:
    worker = Worker()
    clock = SystemClock()
    bells = Bells(worker, clock)
    await bells.start()
    await settle()
    worker.rung.clear()

    bells.ring(clock.now_ms() + 1)

    async with asyncio.timeout(10):
        await worker.rung.wait()
    assert worker.rounds == 2
    await bells.stop()


async def test_the_sweep_goes_by_monotonic_time() -> None:
    """The wall clock is set back an hour: the date trigger sleeps, the sweep does not."""
    worker, clock = Worker(), HandClock()
    bells = Bells(worker, clock)
    await bells.start()
    await settle()
    bells.ring(NOW + 30_000)
    clock.ms -= 3_600_000
    worker.due = clock.ms + 60_000

    clock.advance(5)
    await settle()

    assert worker.rounds == 2
    assert bells._armed == worker.due
    await bells.stop()


async def test_a_ring_during_a_round_reaches_the_worker_and_loses_no_later_one() -> None:
    worker, clock = Worker(), HandClock()
    worker.hold = asyncio.Event()
    bells = Bells(worker, clock)
    await bells.start()
    await settle()

    bells.ring(NOW)
    bells.ring(NOW + 5_000)
    await settle()
    assert worker.rounds == 2
    worker.due = NOW + 9_000
    worker.hold.set()
    await settle()

    assert bells._armed == NOW + 5_000
    await bells.stop()


async def test_a_round_that_fails_is_logged_and_the_next_sweep_tries_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    worker, clock = Worker(), HandClock()
    worker.error = RuntimeError("the disk is full")
    bells = Bells(worker, clock)
    with caplog.at_level(logging.ERROR):
        await bells.start()
        await settle()
    assert "the disk is full" in caplog.text

    worker.error = None
    clock.advance(bells_module.SWEEP_SECONDS)
    await settle()

    assert worker.rounds == 2
    await bells.stop()


async def test_two_apps_in_one_process_have_bells_of_their_own() -> None:
    first, second = Worker(), Worker()
    one, two = Bells(first, HandClock()), Bells(second, HandClock())
    await one.start()
    await two.start()
    await settle()
    await one.stop()
    two.ring(NOW)
    await settle()

    assert (first.rounds, second.rounds) == (1, 2)
    await two.stop()


async def test_a_drain_begins_before_the_end_and_a_shorter_one_cuts_it() -> None:
    worker = Worker()
    bells = Bells(worker, HandClock())
    bells.drain(9.0)  # not started: there is nothing to drain
    await settle()
    assert worker.drained is None

    await bells.start()
    bells.drain(9.0)
    await settle()
    assert worker.drained == 9.0
    rounds = worker.rounds
    bells.ring(NOW - 1)
    bells.strike()
    await settle()
    assert worker.rounds == rounds, "nothing new is begun"
    bells.drain(0)
    await bells.stop(60.0)
    assert worker.drained == 0
