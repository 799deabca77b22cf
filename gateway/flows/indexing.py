"""Indexing what has left views, or soon will, behind the turns: a few messages a commit.

Nothing is lost with it: what was not indexed in time is, up to a bound, in the commit of the fold
that needs it, and from here again after the next turn.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sqlalchemy import Connection

from gateway.clock import Clock
from gateway.errors import StorageFailed
from gateway.store import search, transcript
from gateway.store.engine import Store

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
        self._wanted: dict[int, int] = {}
        self._task: asyncio.Task[None] | None = None

    def want(self, conversation_pk: int, last_pk: int) -> None:
        """Have the path to this message indexed when nothing else is."""
        self._wanted[conversation_pk] = last_pk
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
            conversation_pk, last_pk = next(iter(self._wanted.items()))
            if not await self._index_some(conversation_pk, last_pk):
                self._done(conversation_pk, last_pk)
            if self._wanted:
                await self._clock.sleep(BUSY_SECONDS if self._running() else PAUSE_SECONDS)

    async def _index_some(self, conversation_pk: int, last_pk: int) -> bool:
        """Whether more of the path may be left."""
        batch = await self._store.read(gather_some, conversation_pk, last_pk, BATCH)
        if batch is None:
            return False
        # Where a fold's commit was quicker, or the conversation is gone, the next look tells.
        return not await self._store.write(search.add, batch) or len(batch.entries) == BATCH

    def _done(self, conversation_pk: int, last_pk: int) -> None:
        if self._wanted.get(conversation_pk) == last_pk:
            del self._wanted[conversation_pk]

    def _end(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            self._wanted.clear()
            if not isinstance(error, StorageFailed):  # that one was logged
                log.error("the past could not be indexed", exc_info=error)
        elif self._wanted:
            self.want(*next(iter(self._wanted.items())))


def gather_some(
    connection: Connection, conversation_pk: int, last_pk: int, most: int
) -> search.Batch | None:
    """At most so many messages of a path that are to be indexed; None where nothing is left or the
    conversation was deleted."""
    if not transcript.is_there(connection, conversation_pk):
        return None
    return search.gather(connection, conversation_pk, last_pk, most)
