"""Commits that a leaving client cannot take back half-way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def to_the_end(
    work: Coroutine[Any, Any, T], undo: Callable[[T], Awaitable[None]] | None = None
) -> T:
    """Let work finish although the request around it is cancelled, however often; then undo what
    it made, if anything is to be undone, and pass the cancellation on."""
    result, cancelled = await _finish(work)
    if cancelled is None:
        return result
    if undo is not None:
        await _finish(_run(undo, result))
    raise cancelled


async def _run(undo: Callable[[T], Awaitable[None]], result: T) -> None:
    await undo(result)


async def _finish(work: Coroutine[Any, Any, T]) -> tuple[T, asyncio.CancelledError | None]:
    task = asyncio.get_running_loop().create_task(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    return task.result(), cancelled
