"""This run of the program under its lease: taken at the start, prolonged while it works, given up
at its end. Whoever beats sees which runs are over, ends their attempts, and queues again at once
what they had leased."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.flows.context import Context
from gateway.jobs import leases
from gateway.store.boots import BEAT_SECONDS, Run, end_boot, keep_boot, living, this_run
from gateway.store.processes import is_running

log = logging.getLogger("foldgate.runs")


@dataclass(frozen=True, slots=True)
class CutOff:
    """What runs that are over left behind: replies that were ended, summaries queued again."""

    replies: int
    jobs: int


class RunLease:
    """The lease of the context's run, between `begin` and `end`."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._run = this_run(ctx.boot)
        self._beats: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Take the lease and account for the runs that are over."""
        await self.beat()
        self._beats = asyncio.create_task(self._keep_beating())

    async def beat(self) -> None:
        """Prolong the lease once."""
        cut = await self._ctx.write_timed(beat, self._run)
        if cut.replies:
            log.warning("%d replies were cut off when a gateway stopped", cut.replies)
        if cut.jobs:
            log.info("%d summaries were cut off when a gateway stopped; queued again", cut.jobs)
            self._ctx.ring(self._ctx.clock.now_ms())

    async def end(self) -> None:
        """Beat no more: this run is over."""
        if self._beats is not None:
            self._beats.cancel()
            await asyncio.gather(self._beats, return_exceptions=True)
        await self._ctx.store.write(end_boot, self._ctx.boot)

    async def _keep_beating(self) -> None:
        while True:
            await self._ctx.clock.sleep(BEAT_SECONDS)
            try:
                await self.beat()
            except Exception:
                # The lease outlives two lost beats, and the next one takes a new lease.
                log.exception("the lease of this run could not be prolonged")


def beat(connection: Connection, run: Run, *, now_ms: int) -> CutOff:
    """One beat, as a transaction that does not commit."""
    replies = keep_boot(connection, run, is_running=is_running, now_ms=now_ms)
    return CutOff(replies, leases.free_dead(connection, living(connection), now_ms))
