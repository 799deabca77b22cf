"""The bells: who calls the queue's worker when something is due.

Nothing of value is here. What is due stands in the rows; at start and after each round the next
due time is read from them. APScheduler holds one date trigger, for that time, in memory. The sweep
beside it counts monotonic seconds, so that a clock set back by an hour cannot silence it: it reads
the rows again and sets the trigger anew.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Protocol

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from gateway.clock import Clock

log = logging.getLogger("foldgate.bells")

SWEEP_SECONDS = 5.0
"""How soon work is begun that another program put in or made due, such as `foldgate jobs retry`: a
look without a write, where nothing is due."""
GRACE_SECONDS = 10.0


class Worker(Protocol):
    """What is rung for. run_due may be called while it runs: it then looks again."""

    async def run_due(self) -> int:
        """Run what is due; returns when nothing is."""

    async def next_due(self) -> int | None:
        """When the next row becomes due, later than now, in milliseconds since 1970."""

    async def drain(self, grace_seconds: float) -> None:
        """Begin nothing more; what still runs after the grace is given back to the queue."""


async def strike(bells: Bells) -> None:
    """The one function that APScheduler ever holds; its dotted path is `gateway.jobs.bells:strike`.

    It returns at once: a round may take minutes, and the scheduler lets no job run twice at a time.
    """
    bells.strike()


class Bells:
    """Rings for a worker between `start` and `stop`, in the running event loop.

    `ring` may be called before and after, and then does nothing: start reads the rows.
    """

    def __init__(
        self, worker: Worker, clock: Clock, *, sweep_seconds: float = SWEEP_SECONDS
    ) -> None:
        self._worker = worker
        self._clock = clock
        self._sweep_seconds = sweep_seconds
        self._scheduler: AsyncIOScheduler | None = None
        self._sweep: asyncio.Task[None] | None = None
        self._rounds: set[asyncio.Task[None]] = set()
        self._drains: list[asyncio.Task[None]] = []
        self._armed: int | None = None

    async def start(self) -> None:
        """Begin to ring, at once for what became due while nobody rang."""
        if self._scheduler is not None:
            return
        self._scheduler = AsyncIOScheduler(
            timezone=UTC, job_defaults={"misfire_grace_time": None, "coalesce": True}
        )
        self._scheduler.start()
        self._sweep = asyncio.create_task(self._keep_sweeping())
        self.strike()

    def drain(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ring no more and let the worker drain, beside whatever else goes on; `stop` waits for it.
        Called again with a shorter grace, the shorter one holds."""
        if self._scheduler is None or self._sweep is None:
            if not self._drains:
                return
        else:
            self._sweep.cancel()
            self._scheduler.shutdown(wait=False)
            self._scheduler = None
        self._drains.append(asyncio.create_task(self._worker.drain(grace_seconds)))

    async def stop(self, grace_seconds: float = GRACE_SECONDS) -> None:
        """Ring no more and wait until the worker has drained. Safe to repeat."""
        if not self._drains:
            self.drain(grace_seconds)
        if self._sweep is None:
            return
        await asyncio.gather(*self._drains)
        await asyncio.gather(self._sweep, *self._rounds, return_exceptions=True)

    def ring(self, due_ms: int) -> None:
        """Say that something is due then; only an earlier time than the known one changes
        anything."""
        if self._scheduler is None:
            return
        if due_ms <= self._clock.now_ms():
            self.strike()
        elif self._armed is None or due_ms < self._armed:
            self._arm(due_ms)

    def strike(self) -> None:
        """Begin a round, now."""
        if self._scheduler is None:
            return
        task = asyncio.create_task(self._round())
        self._rounds.add(task)
        task.add_done_callback(self._end_round)

    async def _round(self) -> None:
        if self._armed is not None and self._armed <= self._clock.now_ms():
            self._armed = None
        await self._worker.run_due()
        due_ms = await self._worker.next_due()
        if due_ms is not None and self._scheduler is not None:
            self._arm(due_ms if self._armed is None else min(due_ms, self._armed))

    def _end_round(self, task: asyncio.Task[None]) -> None:
        self._rounds.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # The rows are as they were; the next sweep tries again.
            log.error("a round of background work failed", exc_info=error)

    def _arm(self, due_ms: int) -> None:
        assert self._scheduler is not None
        self._armed = due_ms
        wait = timedelta(milliseconds=max(0, due_ms - self._clock.now_ms()))
        self._scheduler.add_job(
            strike,
            "date",
            run_date=datetime.now(UTC) + wait,
            args=(self,),
            id="due",
            replace_existing=True,
        )

    async def _keep_sweeping(self) -> None:
        while True:
            await self._clock.sleep(self._sweep_seconds)
            self.strike()
