"""Background work: due jobs are claimed, run and judged, and end as rows or as a later attempt.

At most one job runs for each backend, and none begins beside a running turn of its backend, unless
turns have left it no quiet moment for `PATIENCE`; the turns and jobs of other programs on the same
database count as this one's. Failure changes nothing but the job's own row:
transcript, memory and views stay as they are.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

from sqlalchemy import Connection

from gateway.flows import upkeep_rows as rows
from gateway.flows.commits import to_the_end
from gateway.flows.context import Context
from gateway.flows.errands import Errands, describe
from gateway.flows.rounds import Counts, Offload
from gateway.jobs import leases, queue
from gateway.jobs.leases import Held
from gateway.store.attempts import busy_elsewhere
from gateway.trail import Trail, following

log = logging.getLogger("foldgate.upkeep")

LEASE_MS = 60_000
BEAT_SECONDS = 20.0
"""A lease outlives two lost beats; work of a process that was killed is taken up after it."""

AT_ONCE = 8
"""Jobs running at a time, each before a backend of its own."""

PATIENCE_SECONDS = 300.0
PATIENCE_DELAYS = 10
"""Without a quiet moment for this long (or so many delays of the policies, whichever is longer)
one call goes out beside the turns."""

QUIET_SECONDS = 0.5
"""How often a job that is under way looks whether its next backend has become quiet."""

SEEN_SECONDS = 90.0
"""Nobody looked at a backend for longer than this: so nothing waited for it in between."""


class Upkeep:
    """The worker behind the bells. Depends on the context alone: its clock, its store.

    offload: runs what costs milliseconds of computing; a thread by default. only: the keys of the
    work to be done, None for all. counts: for the console and for replays.
    """

    def __init__(
        self,
        ctx: Context,
        *,
        offload: Offload = asyncio.to_thread,
        only: Collection[str] | None = None,
    ) -> None:
        self.counts = Counts()
        self._ctx = ctx
        self._only = only
        self._elsewhere: set[str] = set()
        self._errands = Errands(ctx, self.counts, offload, self._gate)
        self._again = asyncio.Event()
        self._is_pumping = False
        self._is_draining = False
        self._running: dict[asyncio.Task[None], Held] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._waits: dict[str, tuple[float, float]] = {}
        self._leases = 0
        self._waits_for_quiet = False

    # --- the pump --------------------------------------------------------------------------------

    async def run_due(self) -> int:
        """Run due jobs until none is due; returns how many ended, well or not.

        Called while it runs it only makes the running call look again, and returns 0.
        """
        self._again.set()
        if self._is_pumping:
            return 0
        self._is_pumping = True
        try:
            return await self._pump()
        finally:
            self._is_pumping = False

    async def next_due(self) -> int | None:
        """When the next row becomes due, later than now. What is due and waits for a quiet moment
        is not meant: the end of a turn rings for it."""
        wait_ms = await self._ctx.store.read(self._wait_ms)
        return None if wait_ms is None else self._ctx.clock.now_ms() + wait_ms

    def _wait_ms(self, connection: Connection) -> int | None:
        """How long until then: rows go by the database's clock, the bells by this machine's."""
        now_ms = self._ctx.time_of(connection)
        due_ms = queue.next_due(connection, after_ms=now_ms)
        return None if due_ms is None else due_ms - now_ms

    def notice_quiet(self) -> None:
        """Say that a turn ended: what waits for a quiet moment is looked at again, at once. Costs
        nothing where nothing waits."""
        if self._waits_for_quiet:
            self._waits_for_quiet = False
            self._ctx.ring(self._ctx.clock.now_ms())

    async def drain(self, grace_seconds: float) -> None:
        """Begin nothing more; what still runs after the grace is cancelled and goes back to the
        queue as it was claimed."""
        self._is_draining = True
        self._again.set()
        if running := list(self._running):
            _, late = await asyncio.wait(running, timeout=grace_seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    def forget(self, conversation_pk: int) -> None:
        """A conversation was deleted: the calls under way for it are cancelled."""
        self._errands.forget(conversation_pk)
        for task, held in self._running.items():
            if held.job.conversation_pk == conversation_pk:
                task.cancel()

    async def _pump(self) -> int:
        ended = 0
        while self._again.is_set() or self._running:
            self._again.clear()
            if not self._is_draining:
                await self._begin_due()
            if self._running:
                ended += await self._wait()
        return ended

    async def _begin_due(self) -> None:
        free = AT_ONCE - len(self._running)
        if free <= 0 or not await self._look():
            return
        blocked = self._blocked()
        self._leases += 1
        taken = await self._ctx.write_timed(
            rows.claim_due,
            choose=self._errands.choose_first,
            lease=f"{self._ctx.boot}.{self._leases}",
            lease_ms=LEASE_MS,
            blocked=blocked,
            only=self._only,
            limit=free,
        )
        self._waits_for_quiet = any(self._ctx.busy.get(name) for name in blocked)
        for held in taken:
            self._running[asyncio.create_task(self._run(held))] = held

    async def _look(self) -> bool:
        """Whether anything is due; which backends other programs' turns keep busy is seen as
        well."""

        def look(connection: Connection) -> tuple[bool, set[str]]:
            if not queue.has_due(connection, self._ctx.time_of(connection)):
                return False, set()
            return True, busy_elsewhere(connection, self._ctx.boot)

        is_due, self._elsewhere = await self._ctx.store.read(look)
        return is_due

    async def _wait(self) -> int:
        """Wait until a job ends or somebody rings; returns how many ended."""
        rung = asyncio.create_task(self._again.wait())
        done, _ = await asyncio.wait({*self._running, rung}, return_when=asyncio.FIRST_COMPLETED)
        rung.cancel()
        ended = [task for task in done if task is not rung]
        for task in ended:
            del self._running[task]  # type: ignore[arg-type]
            self._again.set()
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("a job could not be ended; its lease runs out", exc_info=error)
        return len(ended)

    # --- quiet moments ---------------------------------------------------------------------------

    def _blocked(self) -> list[str]:
        """Backends for which nothing may begin now: they work for a turn or for another job."""
        running = [held.job.backend or "" for held in self._running.values()]
        return [*running, *(name for name in self._ctx.backends if self._is_busy(name))]

    def _is_busy(self, name: str) -> bool:
        """Whether turns keep a backend busy, and have not done so for too long."""
        if not self._ctx.busy.get(name) and name not in self._elsewhere:
            self._waits.pop(name, None)
            return False
        now = self._ctx.clock.monotonic()
        since, seen = self._waits.get(name, (now, now))
        since = since if now - seen <= SEEN_SECONDS else now
        self._waits[name] = since, now
        return now - since < self._patience

    @property
    def _patience(self) -> float:
        policies = self._ctx.policies.file.policies.values()
        delay = max((policy.summaries.delay for policy in policies), default=0.0)
        return max(PATIENCE_SECONDS, PATIENCE_DELAYS * delay)

    @asynccontextmanager
    async def _gate(self, name: str) -> AsyncIterator[None]:
        """Wait for this backend's quiet moment; one call at a time."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            while await self._is_busy_now(name):
                await self._ctx.clock.sleep(QUIET_SECONDS)
            self._waits.pop(name, None)
            yield

    async def _is_busy_now(self, name: str) -> bool:
        """As _is_busy, after a look at what other programs do."""
        self._elsewhere = await self._ctx.store.read(busy_elsewhere, self._ctx.boot)
        return self._is_busy(name)

    # --- one job ---------------------------------------------------------------------------------

    async def _run(self, held: Held) -> None:
        """A job from its claim to its end, whatever happens in between."""
        with following(Trail(job=held.job.key)):
            await self._attend(held)

    async def _attend(self, held: Held) -> None:
        worker = asyncio.current_task()
        assert worker is not None
        beats = asyncio.create_task(self._beat(held, worker))
        try:
            await self._errands.attend(held)
        except asyncio.CancelledError:
            await to_the_end(self._release(held))
            raise
        except Exception as error:
            log.exception("job %s failed", held.job.key)
            await self._errands.end_broken(held, "internal", describe(error))
        finally:
            beats.cancel()

    async def _beat(self, held: Held, worker: asyncio.Task[Any]) -> None:
        """Keep the lease; once it is lost the work is for nothing and stops."""
        ctx = self._ctx
        while True:
            await ctx.clock.sleep(BEAT_SECONDS)
            try:
                is_held = await ctx.write_timed(
                    leases.beat, held.job.pk, held.lease, lease_ms=LEASE_MS
                )
            except Exception:
                log.exception("the lease of job %s could not be prolonged", held.job.key)
                continue
            if not is_held:
                log.info("job %s was taken away", held.job.key)
                worker.cancel()
                return

    async def _release(self, held: Held) -> None:
        await self._ctx.write_timed(leases.release, held.job.pk, held.lease)
