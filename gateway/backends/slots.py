"""Which request may go to a slot of a llama-server, and when. State only: no I/O here. Whose the
slots are, and which one it is, says the rack (slot_rack.py).

Both modes:
1. One prompt is read at a time: the next request begins when the reply of the one before has
   begun, or when nothing was heard of it for a while. The server would read them side by side, and
   a long one starves the others. A chat waits for no background work that is being read: with a
   slot in front of it in the server's order it is read first there too. A chat of which the server
   should hold all but little waits for no prompt that is being read, and holds up nobody.
2. At most `queue` chats and auxiliary requests wait; who comes beyond them is refused at once.
3. A chat that arrives drops a prefill that runs.

pinned: a conversation owns the slot that it was served in. One request in flight a slot; a slot
whose request was broken off is not used until the server said that it is idle. A conversation
without a slot gets one that nobody owns, else the one that was used least recently. The last
`background` slots never serve a chat, and background work only goes there; where there are none,
it takes an idle slot while no chat waits.
shared: the server chooses; never more requests in flight than it has slots.

A slot that may hold anything of a deleted conversation serves nobody until it is wiped.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.slot_leases import Dropped, Lease
from gateway.backends.slot_rack import Rack, Slot
from gateway.backends.waiting_line import Line, Reason, Waiter, Wish

PATIENCE_SECONDS = 60.0
"""So long background work lets chats go first."""

_FIRST_GUESS = 5.0
_WEIGHT = 0.2
_LONGEST_RETRY = 60
"""Seconds a request is taken to need before one was seen; the weight of the newest; and the most
that a client is told to wait."""

_MOST_FORGOTTEN = 10_000

_CLIENTS: tuple[Reason, ...] = ("chat", "auxiliary")
"""Requests of somebody who waits for the answer."""


class QueueFull(UpstreamFault):
    """The gateway's own line is full: nothing was sent, and nothing is wrong with the server."""

    def __init__(self, backend: str, waiting: int, retry_after: int) -> None:
        what = f"All slots of the backend {backend} are taken and {waiting} requests wait already"
        super().__init__(
            FaultKind.OVERLOADED, what, status=429, retry_after=retry_after, is_ours=True
        )


def tell_deleted() -> UpstreamFault:
    what = "The conversation was deleted while its request waited"
    return UpstreamFault(FaultKind.BAD_REQUEST, what, status=404, is_ours=True)


class SlotKeeper:
    """The slots of one server. `total` is None until the server said how many it has.

    Until then shared slots are not bounded at all, and of pinned ones only the first is used,
    which every server has. `clock`: monotonic seconds.
    """

    def __init__(
        self,
        backend: str,
        *,
        pinned: bool,
        queue: int,
        background: int | None = None,
        clock: Callable[[], float] = time.monotonic,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        self.pinned = pinned
        self.in_flight = 0
        self._backend = backend
        self._queue = queue
        self._clock = clock
        self._line: Line[Lease] = Line(patience)
        self._rack = Rack(pinned=pinned, wanted=background, is_awaited=self._line.has_chat_of)
        self._reader: Lease | None = None
        self._background_reader: Lease | None = None
        self._holds = 0
        self._typical = _FIRST_GUESS
        self._forgotten: OrderedDict[str, None] = OrderedDict()
        self._leases: set[Lease] = set()

    @property
    def total(self) -> int | None:
        return self._rack.total

    @property
    def slots(self) -> Sequence[Slot]:
        return self._rack.slots

    @property
    def background(self) -> int:
        """As Rack.background."""
        return self._rack.background

    # --- asking for a slot -----------------------------------------------------------------------

    async def lease(self, wish: Wish) -> Lease:
        """Leave for one request, waited for in the line.

        Raises QueueFull, UpstreamFault for a conversation that was deleted, and Dropped for a
        prefill that gave way. Cancellation leaves nothing behind, at whatever moment.
        """
        if wish.conversation in self._forgotten:
            raise tell_deleted()
        if wish.purpose == "chat":
            self._make_way(wish.conversation)
        ready: asyncio.Future[Lease] = asyncio.get_running_loop().create_future()
        waiter = Waiter(wish, self._clock(), ready)
        self._line.add(waiter)
        self._dispatch()
        if not ready.done() and self._is_too_long(wish):
            self._line.remove(waiter)
            raise QueueFull(self._backend, self.waiting, self.retry_after())
        try:
            return await ready
        except asyncio.CancelledError:
            if ready.done() and not ready.cancelled():
                if ready.exception() is None:
                    ready.result().end()
            elif self._line.remove(waiter):
                self._dispatch()
            raise

    @property
    def waiting(self) -> int:
        """Chats and auxiliary requests in the line."""
        return self._line.count(*_CLIENTS)

    def retry_after(self) -> int:
        """Seconds after which a place in the line is likely, by how long requests took of late."""
        capacity = self._rack.chat_capacity or 1
        likely = self._typical * (self.waiting + 1) / capacity
        return max(1, min(_LONGEST_RETRY, math.ceil(likely)))

    def _is_too_long(self, wish: Wish) -> bool:
        return wish.purpose in _CLIENTS and self.waiting > self._queue

    def _make_way(self, conversation: str | None) -> None:
        """A prefill that runs is dropped for any chat; one that waits, for its own conversation's:
        the prompt that it would read is one turn old."""
        if self._reader is not None and self._reader.wish.purpose == "prefill":
            self._reader.drop()
        if conversation is not None:
            for waiter in self._line.waiting("prefill", conversation):
                self._refuse(waiter, Dropped())

    # --- granting --------------------------------------------------------------------------------

    def _dispatch(self) -> None:
        while not self._holds and (found := self._next()) is not None:
            waiter, slot = found
            self._line.serve(waiter)
            waiter.ready.set_result(self._grant(waiter, slot))

    def _next(self) -> tuple[Waiter[Lease], Slot | None] | None:
        if not self._line or (not self.pinned and self.in_flight >= (self.total or math.inf)):
            return None
        if (
            self._reader is not None
            and self._is_bounded
            and not self._line.has_brief
            and not self._line.count("wipe")
        ):
            return None
        now = self._clock()
        for waiter in self._line.candidates(now):
            if waiter.ready.done():
                continue  # it left, and takes itself out of the line as soon as it runs
            if not self._may_read(waiter.wish):
                continue
            is_placed, slot = self._place(waiter, now)
            if is_placed:
                return waiter, slot
        return None

    def _may_read(self, wish: Wish) -> bool:
        """Whether a prompt may be read for this now. `_reader` is a chat or a prefill."""
        if wish.purpose == "wipe" or not self._is_bounded or self._is_brief(wish):
            return True
        if self._reader is not None:
            return False
        return wish.purpose == "chat" or self._background_reader is None

    def _is_brief(self, wish: Wish) -> bool:
        """Whether little is to be read: of a warm prompt only where its slot is not another's by
        now."""
        if not wish.is_brief or wish.is_short or not self.pinned:
            return wish.is_brief
        return self._rack.owned_by(wish.conversation) is not None

    @property
    def _is_bounded(self) -> bool:
        return self.pinned or self.total is not None

    def _place(self, waiter: Waiter[Lease], now: float) -> tuple[bool, Slot | None]:
        """Whether this request may go now, and to which slot."""
        if not self.pinned:
            return self._fits(waiter.wish), None
        wish = waiter.wish
        if wish.target is not None:
            slot = self._rack.numbered(wish.target)
            return slot is not None and slot.is_idle, slot
        if wish.purpose == "chat":
            slot = self._rack.place_chat(wish.conversation)
        elif wish.purpose == "prefill":
            is_first = self._line.is_first("prefill")
            slot = self._rack.place_prefill(wish.conversation) if is_first else None
        else:
            may = not self._line.count("chat") or self._line.is_overdue(waiter, now)
            slot = self._rack.place_background(may_push_out=may)
        return slot is not None, slot

    def _fits(self, wish: Wish) -> bool:
        if self.total is None:
            return True
        if wish.purpose == "prefill" and not self._line.is_first("prefill"):
            return False
        return self.in_flight + min(wish.width, self.total) <= self.total

    def _grant(self, waiter: Waiter[Lease], slot: Slot | None) -> Lease:
        now, wish = self._clock(), waiter.wish
        number = None if slot is None else slot.number
        width = 1 if self.pinned else min(wish.width, self.total or wish.width)
        is_own = None if slot is None else slot.owner == wish.conversation
        is_brief = self._is_brief(wish)
        lease = Lease(self, wish, number, is_own, max(0.0, now - waiter.since), now, width)
        if wish.purpose == "prefill" or (wish.purpose == "chat" and not is_brief):
            self._reader = lease
        elif wish.purpose not in ("chat", "wipe"):
            self._background_reader = lease
        self._leases.add(lease)
        self.in_flight += width
        if slot is not None:
            self._rack.give(slot, lease, wish)
        return lease

    # --- what becomes of a lease -----------------------------------------------------------------

    def note_read(self, lease: Lease) -> None:
        """As Lease.read."""
        slot = self._rack.held_by(lease, lease.slot)
        if slot is not None:
            self._rack.note_read(slot, lease.wish.conversation)
        self.pass_on(lease)

    def pass_on(self, lease: Lease) -> None:
        """As Lease.pass_on."""
        if self._stop_reading(lease):
            self._dispatch()

    def _stop_reading(self, lease: Lease) -> bool:
        if lease.watch is not None:
            lease.watch.cancel()
        if self._reader is lease:
            self._reader = None
        elif self._background_reader is lease:
            self._background_reader = None
        else:
            return False
        return True

    def take_back(self, lease: Lease, is_settled: bool) -> None:
        """As Lease.end."""
        if lease.wish.purpose in _CLIENTS:  # who waits for a place waits for these
            self._typical += _WEIGHT * (self._clock() - lease.began - self._typical)
        self._leases.discard(lease)
        self.in_flight -= lease.width
        slot = self._rack.held_by(lease, lease.slot)
        if slot is not None:
            self._rack.take_back(slot, is_settled=is_settled)
        self._stop_reading(lease)
        self._dispatch()

    def settle(self, number: int) -> None:
        """The server is done with the request that was broken off in this slot."""
        if self._rack.settle(number):
            self._dispatch()

    # --- what the server has ---------------------------------------------------------------------

    def resize(self, total: int | None) -> None:
        """The server has so many slots. Others than before: it was started anew, and holds
        nothing of what its slots held."""
        if total == self.total:
            return
        self._rack.resize(total, self._forgotten)
        if self.pinned:
            for waiter in self._line.everybody():
                target = waiter.wish.target
                if target is not None and self._rack.numbered(target) is None:
                    self._refuse(waiter, Dropped())
        self._dispatch()

    def restore(self, owners: Mapping[int, str]) -> None:
        """As Rack.restore, but for conversations that are deleted."""
        self._rack.restore(owners, self._forgotten)

    def is_nobodys(self, number: int) -> bool:
        """As Rack.is_nobodys."""
        return self._rack.is_nobodys(number)

    # --- deleted conversations -------------------------------------------------------------------

    def forget(self, conversation: str) -> None:
        """Keep every slot that may hold any of a deleted conversation from serving anybody, and
        refuse its requests that wait."""
        self._forgotten[conversation] = None
        if len(self._forgotten) > _MOST_FORGOTTEN:
            self._forgotten.popitem(last=False)
        for waiter in self._line.everybody():
            if waiter.wish.conversation == conversation:
                self._refuse(waiter, tell_deleted())
        self._rack.forget(conversation)
        self._dispatch()

    @property
    def serves_deleted(self) -> bool:
        """Whether a request of a deleted conversation is still under way."""
        return any(lease.wish.conversation in self._forgotten for lease in self._leases)

    @property
    def dirty(self) -> list[int]:
        """The slots that wait to be wiped."""
        return self._rack.dirty

    def note_wiped(self, lease: Lease) -> None:
        """Nothing of anybody is in the slot of this lease any more."""
        slot = self._rack.held_by(lease, lease.slot)
        if slot is not None:
            self._rack.note_wiped(slot)

    def hold(self) -> None:
        """Grant nothing until `resume`; holds add up."""
        self._holds += 1

    def resume(self) -> None:
        self._holds -= 1
        self._dispatch()

    def close(self, fault: UpstreamFault) -> None:
        """Tell everybody in the line that nothing will come."""
        for waiter in self._line.everybody():
            self._refuse(waiter, fault)

    def _refuse(self, waiter: Waiter[Lease], why: Exception) -> None:
        self._line.remove(waiter)
        if not waiter.ready.done():
            waiter.ready.set_exception(why)
