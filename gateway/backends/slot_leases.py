"""Leave to send one request to a slot: what the one who holds it says of its course."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from gateway.backends.waiting_line import Wish


class Dropped(Exception):
    """A prefill gave way to a chat, or the slot that was meant is gone."""


class Keeper(Protocol):
    """Who gave a lease, and hears of its course."""

    def note_read(self, lease: Lease) -> None: ...

    def pass_on(self, lease: Lease) -> None: ...

    def take_back(self, lease: Lease, is_settled: bool) -> None: ...


@dataclass(eq=False, slots=True)
class Lease:
    """Leave to send one request. slot: where it must go, None where the server chooses; is_own:
    the conversation owned it already. queued: seconds waited. Say `read` at the first piece of the
    reply and `end` when it is over."""

    keeper: Keeper
    wish: Wish
    slot: int | None
    is_own: bool | None
    queued: float
    began: float
    width: int
    is_dropped: bool = False
    is_over: bool = False
    on_drop: Callable[[], object] | None = None
    watch: asyncio.TimerHandle | None = None

    def read(self) -> None:
        """The prompt was read: the next one may be, and nothing else is left in this slot."""
        self.keeper.note_read(self)

    def pass_on(self) -> None:
        """Nothing was heard of this prompt for a while: it keeps nobody waiting any more."""
        self.keeper.pass_on(self)

    def end(self, *, is_settled: bool = True) -> None:
        """The request is over; safe to repeat. is_settled: the server is known to be done with it;
        else the slot waits for the keeper's `settle`."""
        if not self.is_over:
            self.is_over = True
            self.keeper.take_back(self, is_settled)

    def drop(self) -> None:
        """Ask the holder to break off."""
        self.is_dropped = True
        if self.on_drop is not None:
            self.on_drop()

    def when_dropped(self, callback: Callable[[], object]) -> None:
        """Call back when it is dropped; at once, where it was dropped already."""
        self.on_drop = callback
        if self.is_dropped:
            callback()
