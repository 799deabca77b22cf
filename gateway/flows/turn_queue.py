"""The line in which requests stand that send only their newest message."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from gateway.errors import Busy
from gateway.flows.incoming import Incoming

MOST_NAMES = 2_000
"""Names of conversations whose ids are remembered; the oldest go first."""

Key = tuple[str, str, str]
"""(owner, user, a name of a conversation)."""

Finder = Callable[[str, str, str], Awaitable[str | None]]
"""(owner, user, a client's name of a conversation) to its own id."""


@dataclass(slots=True)
class _Place:
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


class TurnQueue:
    """Requests that send only their newest message stand in line, one conversation at a time.

    The second sees the first one's reply as its parent. Places exist only while somebody waits;
    ids that were found for names are remembered, so that an ordinary turn need not ask for one.
    """

    def __init__(self, limit: int = 16) -> None:
        self._limit = limit
        self._places: dict[Key, _Place] = {}
        self._ids: OrderedDict[Key, str] = OrderedDict()
        self.find: Finder | None = None
        """Looks up the gateway's own id of a conversation that a client names its own way."""

    async def line(self, incoming: Incoming) -> Key | None:
        """The line in which this request stands: one for every name of a conversation.

        While its first turn runs, a new conversation is known by its client's name only; `join`
        puts its own id into the same line.
        """
        key = self.key(incoming)
        if key is None or self.find is None or key in self._places:
            return key
        owner, user, name = key
        return owner, user, self._ids.get(key) or await self.find(*key) or name

    def join(self, incoming: Incoming, id: str) -> None:
        """A conversation has its id now: whoever names it so stands in the line that it began."""
        key = self.key(incoming)
        if key is None:
            return
        self._ids[key] = id
        self._ids.move_to_end(key)
        if len(self._ids) > MOST_NAMES:
            self._ids.popitem(last=False)
        place = self._places.get(key)
        if place is not None:
            self._places.setdefault((key[0], key[1], id), place)

    def forget(self, id: str) -> None:
        """A conversation was deleted: its names are free for others."""
        for key in [key for key, known in self._ids.items() if known == id]:
            del self._ids[key]

    @staticmethod
    def key(incoming: Incoming) -> Key | None:
        """Who must wait for whom; None for a full history, which branches by its parent."""
        if incoming.conversation is None:
            return None
        if incoming.auxiliary is not None and incoming.auxiliary.how != "shape":
            return None  # it is no turn of the conversation
        if any(message["role"] == "assistant" for message in incoming.chain):
            return None
        return incoming.owner, incoming.user, incoming.conversation

    @asynccontextmanager
    async def turn(self, incoming: Incoming, deadline: float | None = None) -> AsyncIterator[None]:
        """This request's turn, waited for where it must stand in line, until the deadline (the
        event loop's seconds) at most.

        Raises Busy where it did not come by then, and where too many requests already wait for
        this conversation: checked where the place is taken, so that a crowd that comes at the same
        moment finds the end of the line too.
        """
        key = await self.line(incoming)
        if key is None:
            yield
            return
        if self.is_full(key):
            raise Busy(
                "Too many requests wait for this conversation; try again when one is answered.",
                status=429,
                code="conversation_busy",
                retry_after=5,
            )
        try:
            # Where nobody is before it, it enters at once: no clock is needed.
            async with asyncio.timeout_at(deadline if key in self._places else None):
                await self.enter(key)
        except TimeoutError as error:
            raise Busy(
                "The requests before this one in its conversation take longer than a client waits.",
                status=504,
                code="conversation_busy",
            ) from error
        try:
            yield
        finally:
            self.leave(key)

    def is_full(self, key: Key) -> bool:
        place = self._places.get(key)
        return place is not None and place.waiting >= self._limit

    async def enter(self, key: Key) -> None:
        place = self._places.setdefault(key, _Place())
        place.waiting += 1
        try:
            await place.lock.acquire()
        except BaseException:
            self._leave(key, place)
            raise

    def leave(self, key: Key) -> None:
        place = self._places[key]
        place.lock.release()
        self._leave(key, place)

    def _leave(self, key: tuple[str, str, str], place: _Place) -> None:
        place.waiting -= 1
        if place.waiting == 0:
            for name in [name for name, other in self._places.items() if other is place]:
                del self._places[name]
