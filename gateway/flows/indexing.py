"""Indexing what has left views, or soon will, behind the turns: a few messages a commit.

Nothing is lost with it: what was not indexed in time is, up to a bound, in the commit of the fold
that needs it, and from here again after the next turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.clock import Clock
from gateway.errors import StorageFailed
from gateway.store import search
from gateway.store.engine import Store
from gateway.store.transcript import Node, is_there, node_by_pk, on_path

log = logging.getLogger("foldgate.recall")

BATCH = 16
"""Messages a commit. Their words are read on a reader (some two milliseconds of a processor, which
the event loop shares), so that the writer, which turns wait for, only stores them."""

PAUSE_SECONDS = 0.05
"""Between two commits: a tenth of a processor, 300 messages a second."""

BUSY_SECONDS = 0.2
"""The same while turns are running."""


class Indexing:
    """The conversations whose paths are to be indexed, one after another."""

    def __init__(self, store: Store, clock: Clock, running: Callable[[], int]) -> None:
        """running: how many turns are under way."""
        self._store = store
        self._clock = clock
        self._running = running
        self._wanted: dict[int, list[int]] = {}
        self._task: asyncio.Task[None] | None = None

    def want(self, conversation_pk: int, last_pk: int) -> None:
        """Have the path to this message indexed when nothing else is: each branch that was asked
        for, since a fold on one of them may be gone back to."""
        ends = self._wanted.setdefault(conversation_pk, [])
        if last_pk in ends:
            ends.remove(last_pk)
        ends.append(last_pk)
        self._begin()

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._work())
            self._task.add_done_callback(self._end)

    def forget(self, conversation_pk: int) -> None:
        """A conversation was deleted."""
        self._wanted.pop(conversation_pk, None)

    async def settle(self) -> None:
        """Wait until nothing is left to be indexed."""
        while self._task is not None:
            await asyncio.wait([self._task])

    async def aclose(self) -> None:
        """Break off; a commit under way is finished."""
        self._wanted.clear()
        await self.settle()

    async def _work(self) -> None:
        while self._wanted:
            conversation_pk, ends = next(iter(self._wanted.items()))
            await self._index_some(conversation_pk, tuple(ends))
            if self._wanted:
                await self._clock.sleep(BUSY_SECONDS if self._running() else PAUSE_SECONDS)

    async def _index_some(self, conversation_pk: int, ends: Sequence[int]) -> None:
        some = await self._store.read(gather_some, conversation_pk, ends, BATCH)
        left, batch = set(some.ends), some.batch
        # Where a fold's commit was quicker, or the conversation is gone, the next look tells.
        if batch is not None and await self._store.write(search.add, batch):
            if len(batch.entries) < BATCH:
                left.discard(batch.entries[-1].pk)
        wanted = self._wanted.get(conversation_pk, ())
        if still := [pk for pk in wanted if pk in left or pk not in ends]:
            self._wanted[conversation_pk] = still
        else:
            self.forget(conversation_pk)

    def _end(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            self._wanted.clear()
            if not isinstance(error, StorageFailed):  # that one was logged
                log.error("the past could not be indexed", exc_info=error)
        elif self._wanted:
            self._begin()


@dataclass(frozen=True, slots=True)
class Some:
    """What of a conversation is to be indexed next (None: nothing is left), and the ends of the
    paths that may not be whole yet."""

    batch: search.Batch | None
    ends: Sequence[int] = ()


def gather_some(
    connection: Connection, conversation_pk: int, ends: Sequence[int], most: int
) -> Some:
    """At most so many messages of one of the paths to these messages, the newest wish first.
    Nothing is left of a conversation that was deleted."""
    if not is_there(connection, conversation_pk):
        return Some(None)
    left = _tips(connection, ends)
    while left:
        batch = search.gather(connection, conversation_pk, left[-1], most)
        if batch is not None:
            return Some(batch, left)
        left.pop()
    return Some(None)


def _tips(connection: Connection, ends: Sequence[int]) -> list[int]:
    """Of these messages, in their order, those that lead to none of the others."""
    if len(ends) == 1:
        return list(ends)
    tips: list[Node] = []
    for node in sorted((node_by_pk(connection, pk) for pk in ends), key=lambda one: -one.depth):
        if not any(on_path(connection, node.pk, node.depth, tip) for tip in tips):
            tips.append(node)
    kept = {node.pk for node in tips}
    return [pk for pk in ends if pk in kept]
