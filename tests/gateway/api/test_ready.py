"""What came together goes out together, and nothing is held back while something is waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import pytest

from gateway.api.ready import batch


class Out:
    """Collects, and notes what each flush sent."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.waiting: list[str] = []
        self.sent: list[str] = []
        self._error = error

    async def flush(self) -> None:
        if self._error is not None:
            raise self._error
        await asyncio.sleep(0)  # as a send that is held up by a slow reader
        if self.waiting:
            self.sent.append("".join(self.waiting))
            self.waiting.clear()


async def _letters(
    together: list[str], pause: Callable[[], asyncio.Future[None]], seen: list[str]
) -> AsyncGenerator[str]:
    try:
        for letters in together:
            for letter in letters:
                yield letter
            await pause()
    except BaseException as error:
        seen.append(type(error).__name__)
        raise
    finally:
        seen.append("closed")


def _soon() -> asyncio.Future[None]:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    loop.call_soon(future.set_result, None)
    return future


async def _take(out: Out, letters: AsyncGenerator[str]) -> str:
    taken = ""
    async with aclosing(letters):
        async for letter in batch(letters, out.flush):
            taken += letter
            out.waiting.append(letter)
    return taken


async def test_each_pause_sends_what_came_before_it() -> None:
    out, seen = Out(), list[str]()
    assert await _take(out, _letters(["ab", "雨", "", "cde"], _soon, seen)) == "ab雨cde"
    assert out.sent == ["ab", "雨", "cde"]
    assert seen == ["closed"]


async def test_what_never_pauses_is_given_whole_without_a_flush() -> None:
    async def letters() -> AsyncGenerator[str]:
        for letter in "abc":
            yield letter

    out = Out(AssertionError("nothing had to be waited for"))
    assert await _take(out, letters()) == "abc"


async def test_an_error_of_the_items_comes_through() -> None:
    async def letters() -> AsyncGenerator[str]:
        yield "a"
        await _soon()
        raise ValueError("broken")

    out = Out()
    with pytest.raises(ValueError, match="broken"):
        await _take(out, letters())
    assert out.sent == ["a"]


async def test_an_error_of_the_flush_is_told_to_the_items() -> None:
    seen: list[str] = []
    with pytest.raises(ConnectionError):
        await _take(Out(ConnectionError()), _letters(["ab"], _soon, seen))
    assert seen == ["ConnectionError", "closed"]


async def test_cancelling_reaches_what_is_waited_for() -> None:
    seen: list[str] = []
    out = Out()
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(_take(out, _letters(["ab"], lambda: never, seen)))
    while not out.sent:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert never.cancelled()
    assert seen == ["CancelledError", "closed"]
    assert out.sent == ["ab"]
