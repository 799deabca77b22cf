"""Signals end the demonstration in order; a second one does not interrupt the taking down."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from gateway.demo.stage import Stopped, run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_once_everything_is_down(number: signal.Signals) -> None:
    done: list[str] = []

    async def main() -> int:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), number)
            await asyncio.sleep(0)
            done.append("down")
        return 0

    with pytest.raises(Stopped) as stopped:
        run(main())
    assert stopped.value.number == number
    assert done == ["down"]


def test_without_a_signal_the_code_is_returned() -> None:
    async def main() -> int:
        return 3

    assert run(main()) == 3
