"""The virtual stage: time that jumps, and bells that swallow nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from gateway.replay.stage import EPOCH_MS, VirtualBells, VirtualClock, VirtualLoop


def on_virtual_time(main: Callable[[VirtualClock], Awaitable[None]]) -> None:
    loop = VirtualLoop()

    async def run() -> None:
        await main(VirtualClock(loop))

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(run())


async def none_due() -> None:
    return None


def test_a_bell_rings_at_its_time() -> None:
    rung: list[int] = []

    async def main(clock: VirtualClock) -> None:
        async def pump() -> None:
            rung.append(clock.now_ms() - EPOCH_MS)

        bells = VirtualBells(clock, pump, none_due)
        bells.ring(EPOCH_MS + 90_000)
        bells.ring(EPOCH_MS + 30_000)
        bells.ring(EPOCH_MS + 60_000)
        await clock.sleep(3_600)
        await bells.stop()

    on_virtual_time(main)
    # The earliest wish counts; what is due later is asked of next_due after it.
    assert rung == [30_000]


def test_what_the_pump_raised_is_raised_at_the_end() -> None:
    async def main(clock: VirtualClock) -> None:
        async def pump() -> None:
            raise OSError("the disk is full")

        bells = VirtualBells(clock, pump, none_due)
        bells.ring(EPOCH_MS)
        await clock.sleep(1)
        with pytest.raises(OSError, match="the disk is full"):
            await bells.stop()

    on_virtual_time(main)


def test_stopping_amid_a_pump_drops_it() -> None:
    ended: list[str] = []

    async def main(clock: VirtualClock) -> None:
        async def pump() -> None:
            try:
                await clock.sleep(60)
            finally:
                ended.append("cancelled")

        bells = VirtualBells(clock, pump, none_due)
        bells.ring(EPOCH_MS)
        await clock.sleep(1)
        await bells.stop()

    on_virtual_time(main)
    assert ended == ["cancelled"]
