"""The virtual stage: an event loop whose time jumps to the next thing that is due.

Nothing waits: where a real loop would sleep in its selector, this one sets its clock forward.
Sleeping, timers and time-outs of everything that runs on it are virtual with it. The store runs
in line, so a run is the same every time.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection

from gateway.store.engine import Store

P = ParamSpec("P")
T = TypeVar("T")

# 2026-01-01T00:00:00Z: rows of a replay carry times from here on.
EPOCH_MS = 1_767_225_600_000


class _JumpingSelector(selectors.SelectSelector):
    """Never waits: a wish to wait sets the loop's clock forward by as much."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(0)
        if not events:
            if timeout is None:
                raise RuntimeError("the replay waits for something that will never happen")
            self.now += max(0.0, timeout)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time, in seconds from 0."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


class VirtualClock:
    """The program's clock on a virtual loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now_ms(self) -> int:
        return EPOCH_MS + round(self._loop.time() * 1000)

    def monotonic(self) -> float:
        return self._loop.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class InlineStore(Store):
    """A store that runs where it is called: on a virtual loop nobody else is waiting."""

    async def write(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return self.writing(function, *args, **kwargs)

    async def read(
        self, function: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return self.reading(function, *args, **kwargs)


class VirtualBells:
    """Rings on the virtual loop when a job is due; one pump at a time.

    pump does all that is due; next_due tells when to ring again (milliseconds, or None).
    """

    def __init__(
        self,
        clock: VirtualClock,
        pump: Callable[[], Awaitable[Any]],
        next_due: Callable[[], Awaitable[int | None]],
    ) -> None:
        self._clock = clock
        self._pump = pump
        self._next_due = next_due
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._fault: Exception | None = None

    def ring(self, due_ms: int) -> None:
        """Wake up at this time, or as soon as the running pump is done."""
        if self._task is not None:
            return
        loop = asyncio.get_running_loop()
        at = loop.time() + max(0, due_ms - self._clock.now_ms()) / 1000
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = loop.call_at(at, self._start)

    def _start(self) -> None:
        self._timer = None
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        try:
            await self._pump()
            due = await self._next_due()
        except Exception as error:
            self._fault = self._fault or error
            return
        finally:
            self._task = None
        if due is not None:
            # At least a little later: a job that waits for a quiet moment must not spin.
            self.ring(max(due, self._clock.now_ms() + 1_000))

    async def stop(self) -> None:
        """Drop what is not done; raises the first thing that the pump raised."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._fault is not None:
            raise self._fault
