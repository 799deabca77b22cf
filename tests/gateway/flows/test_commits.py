"""Commits that a leaving client cannot take back half-way."""

from __future__ import annotations

import asyncio

import pytest

from gateway.flows.commits import to_the_end


async def test_a_result_comes_back() -> None:
    async def work() -> int:
        return 7

    assert await to_the_end(work()) == 7


async def test_an_error_comes_back() -> None:
    async def work() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await to_the_end(work())


@pytest.mark.parametrize("times", [1, 2, 5])
async def test_however_often_it_is_cancelled_the_work_ends_and_is_undone(times: int) -> None:
    gate, done = asyncio.Event(), []

    async def work() -> str:
        await gate.wait()
        done.append("worked")
        return "made"

    async def undo(result: str) -> None:
        await asyncio.sleep(0)
        done.append(f"undid {result}")

    task = asyncio.ensure_future(to_the_end(work(), undo))
    await asyncio.sleep(0)
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
    assert not task.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["worked", "undid made"]


async def test_an_undo_is_not_cut_off_either() -> None:
    gate, done = asyncio.Event(), []

    async def work() -> None:
        await asyncio.sleep(0)

    async def undo(_: None) -> None:
        await gate.wait()
        done.append("undone")

    task = asyncio.ensure_future(to_the_end(work(), undo))
    await asyncio.sleep(0)
    task.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == ["undone"]


async def test_a_failure_of_cancelled_work_is_the_failure() -> None:
    gate = asyncio.Event()

    async def work() -> None:
        await gate.wait()
        raise ZeroDivisionError

    task = asyncio.ensure_future(to_the_end(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    gate.set()
    with pytest.raises(ZeroDivisionError):
        await task
