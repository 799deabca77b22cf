"""Care for the slots of a llama-server: what the keeper decides, told to and asked of the server.

A slot whose connection was closed works on to the end of its batch (measured, build 11549).
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

from gateway.backends.base import Call
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.slot_cautions import (
    UNIFIED,
    UNLISTED,
    caution_ram,
    caution_total,
    may_share,
)
from gateway.backends.slot_leases import Dropped, Lease
from gateway.backends.slot_server import (
    ASK_SECONDS,
    NO_SUCH_THING,
    Ask,
    ServerSlot,
    SlotServer,
    make_noise,
)
from gateway.backends.slots import QueueFull, SlotKeeper
from gateway.backends.waiting_line import Wish
from policies.schema import LlamaCppBackend

log = logging.getLogger("foldgate.slots")

SETTLE_SECONDS = 60.0
FIRST_LOOK = 0.02
LATER_LOOK = 0.25
"""How long a slot whose request was broken off may go on before it is used all the same (the server
then keeps the next request waiting itself), and how often it is looked at."""

SILENCE_SECONDS = 5.0
"""How long a server may say nothing of a prompt that it reads before the next is sent all the same.
It tells after each batch; 512 tokens take two busy cores as long as this."""

NOTICE_SECONDS = 1.5
"""The server looks once a second whether its connections are still there."""

BRIEF_CHARS = 2_000
"""Characters of prompt that are read within one small batch (some 500 tokens): less than a second
on two cores, a few milliseconds on a GPU."""


class SlotCare:
    """The slots of one server. `cautions`: what is unsafe or unwise in how the server was started,
    in words for people; `is_checked`: whether that was asked since the server came up."""

    def __init__(
        self,
        backend: str,
        config: LlamaCppBackend,
        ask: Ask,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pinned = config.slots == "pinned"
        self.keeper = SlotKeeper(
            backend,
            pinned=self.pinned,
            queue=config.queue,
            background=config.background_slots,
            clock=clock,
        )
        self.cautions: tuple[str, ...] = ()
        self.is_checked = False
        self.when_refused: Callable[[], None] = lambda: None
        self._backend = backend
        self._wanted_background = config.background_slots
        self._server = SlotServer(backend, ask)
        self._clock = clock
        self._broken_off = -math.inf
        self._settling: set[asyncio.Task[None]] = set()

    # --- requests --------------------------------------------------------------------------------

    async def lease(self, call: Call) -> Lease:
        """Leave to send a call, waited for; told in its trace. Raises as SlotKeeper.lease."""
        try:
            wish = Wish(
                call.purpose,
                call.conversation,
                width=_width(call),
                is_short=_is_brief(call.prompt_chars),
                is_warm=_is_brief(call.unread_chars),
            )
            lease = await self.keeper.lease(wish)
        except QueueFull:
            self.when_refused()
            raise
        call.trace.slot, call.trace.is_own = lease.slot, lease.is_own
        call.trace.queued = lease.queued
        self.hear(lease)
        return lease

    def hear(self, lease: Lease) -> None:
        """Something was heard of a prompt that is being read: the next one waits on, but not for
        ever: a server that says nothing holds up nobody else."""
        if lease.watch is not None:
            lease.watch.cancel()
        loop = asyncio.get_running_loop()
        lease.watch = loop.call_later(SILENCE_SECONDS, lease.pass_on)

    def waiting(self) -> int:
        """Chats and auxiliary requests that wait for a slot."""
        return self.keeper.waiting

    def in_flight(self) -> int:
        """Slots at work for this program."""
        return self.keeper.in_flight

    def end(self, lease: Lease, *, is_settled: bool) -> None:
        """A request is over. is_settled: the server told its end itself; else its slot is looked
        at until it is idle. Never raises, awaits nothing."""
        is_new = not lease.is_over
        if not is_settled:
            self._broken_off = self._clock()
        lease.end(is_settled=is_settled)
        if is_new and not is_settled and lease.slot is not None:
            task = asyncio.ensure_future(self._settle(lease.slot))
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)

    async def _settle(self, number: int) -> None:
        try:
            await self._wait_until_idle(number)
        finally:
            self.keeper.settle(number)

    async def _wait_until_idle(self, number: int) -> None:
        pause, deadline = FIRST_LOOK, self._clock() + SETTLE_SECONDS
        while True:
            await asyncio.sleep(pause)
            try:
                slots = await self.read_slots()
            except UpstreamFault:
                return  # gone, or it does not tell: then it keeps the next request waiting itself
            if not any(slot.is_busy for slot in slots if slot.number == number):
                return
            if self._clock() >= deadline:
                seconds = f"{SETTLE_SECONDS:g} s"
                log.warning("%s: slot %d is at work %s after", self._backend, number, seconds)
                return
            pause = min(2 * pause, LATER_LOOK)

    async def read_slots(self) -> list[ServerSlot]:
        """As SlotServer.read_slots."""
        return await self._server.read_slots()

    async def aclose(self) -> None:
        """Stop looking at slots; whoever waits for one is told."""
        what = f"The backend {self._backend} is being closed"
        self.keeper.close(UpstreamFault(FaultKind.UNAVAILABLE, what))
        for task in list(self._settling):
            task.cancel()
        await asyncio.gather(*self._settling, return_exceptions=True)

    # --- conversations that are no more ----------------------------------------------------------

    def restore(self, owners: Mapping[int, str]) -> None:
        """Which conversation was served last in each slot, before this program began. Not where
        slots are shared: nobody knows."""
        self.keeper.restore(owners)

    def forget(self, conversation: str) -> None:
        """Nobody is served from a slot that may hold this conversation until `wipe` has been."""
        self.keeper.forget(conversation)

    @property
    def is_dirty(self) -> bool:
        """Whether slots wait to be wiped and serve nobody until then (pinned ones alone)."""
        return bool(self.keeper.dirty)

    async def wipe(self) -> None:
        """Overwrite what `forget` named; where slots are shared, every idle one.

        Raises UpstreamFault: then it is to be called again. Of --cache-ram nothing is wiped: the
        server has no way to (`cautions` tells of it).
        """
        if not self.pinned:
            await self._wipe_shared()
            return
        work = [self._wipe_pinned(number) for number in self.keeper.dirty]
        faults = [fault for fault in await asyncio.gather(*work, return_exceptions=True) if fault]
        if faults:
            raise faults[0]

    async def _wipe_pinned(self, number: int) -> None:
        """As soon as nothing is in flight there."""
        with suppress(Dropped):  # the server has fewer slots now
            async with self._alone_in(number):
                await self._server.overwrite(number)

    @asynccontextmanager
    async def _alone_in(self, number: int) -> AsyncIterator[None]:
        """A slot for ourselves; what is done there must leave nothing of anybody. Where slots are
        shared nothing else begins meanwhile. Raises Dropped where there is no such slot."""
        if not self.pinned:
            self.keeper.hold()
            try:
                yield
            finally:
                self.keeper.resume()
            return
        lease = await self.keeper.lease(Wish("wipe", target=number))
        is_settled = False
        try:
            yield
            self.keeper.note_wiped(lease)
            is_settled = True
        finally:
            self.end(lease, is_settled=is_settled)

    async def _wipe_shared(self) -> None:
        """Nothing new begins meanwhile. A busy slot needs no wipe: what it did not share with the
        prompt that is read there is gone already, unless that is the deleted conversation's own.

        No slot is named: a named one may become busy before the wipe is there, and would lose the
        cache under its reply. The server gives each text, being like nothing it has, the slot that
        was used least recently, and says which.
        """
        if self.keeper.serves_deleted:
            what = f"The backend {self._backend} still answers what was deleted meanwhile"
            raise UpstreamFault(FaultKind.OVERLOADED, what, is_ours=True)
        self.keeper.hold()
        try:
            slots = await self._read_settled()
            left = {slot.number for slot in slots if not slot.is_busy}
            for number in tuple(left):
                if await self._server.erase(number):
                    left.discard(number)
            for _ in range(2 * len(slots)):
                if not left:
                    return
                answer = await self._server.read_text(None, make_noise(), cache_prompt=False)
                left.discard(answer.get("id_slot") if isinstance(answer, dict) else None)
        finally:
            self.keeper.resume()
        if left:
            what = f"The backend {self._backend} gave slots {sorted(left)} to nothing that was sent"
            raise UpstreamFault(FaultKind.SERVER, what)

    async def _read_settled(self) -> list[ServerSlot]:
        """The slots once none is at work for a request that was broken off: it may be that of the
        deleted conversation. After a while others than this gateway must be keeping it busy."""
        deadline = self._clock() + ASK_SECONDS
        while True:
            slots = await self.read_slots()
            busy = sum(slot.is_busy for slot in slots)
            is_settled = busy <= self.keeper.in_flight and not self._was_broken_off
            if is_settled or self._clock() >= deadline:
                return slots
            await asyncio.sleep(LATER_LOOK)

    @property
    def _was_broken_off(self) -> bool:
        """Whether the server may not have noticed yet that a connection was closed."""
        return self._clock() - self._broken_off < NOTICE_SECONDS

    # --- how the server was started --------------------------------------------------------------

    async def check(self, *, is_alone: bool = False) -> tuple[str, ...]:
        """Ask the server how it was started, and keep what is wrong with it as `cautions`.

        `/props` must have been read before. Where slots are shared and at work, it is only half
        done, and `is_checked` stays false. A slot that was never used (is_alone: or that no
        conversation owns) is asked short questions, which show whether --cache-ram is on; nothing
        else can tell. Raises UpstreamFault where the server cannot be asked now.
        """
        keeper = self.keeper
        cautions = caution_total(
            keeper.total,
            pinned=self.pinned,
            wanted=self._wanted_background,
            background=keeper.background,
        )
        try:
            slots = await self.read_slots()
        except UpstreamFault as fault:
            if fault.kind not in NO_SUCH_THING:
                raise
            self.is_checked = True
            cautions.append(UNLISTED)
        else:
            if may_share(slots) and await self._server.is_unified():
                cautions.append(UNIFIED)
            if self.pinned or not (keeper.in_flight or self._was_broken_off):
                cautions += await self._check_ram(slots, is_alone)
                self.is_checked = True
        self.cautions = tuple(cautions)
        return self.cautions

    async def _check_ram(self, slots: list[ServerSlot], is_alone: bool) -> list[str]:
        idle = [slot for slot in slots if not slot.is_busy]
        free = [slot.number for slot in idle if slot.is_fresh]
        if is_alone and not free:
            free = [slot.number for slot in idle if self.keeper.is_nobodys(slot.number)]
        if not free:
            log.info("%s: no slot is unused, so --cache-ram is not checked", self._backend)
            return []
        try:
            async with self._alone_in(free[-1]):
                has_ram = await self._server.remembers(free[-1])
        except Dropped:
            return []  # the server has fewer slots now
        return [] if has_ram is None else caution_ram(has_ram, pinned=self.pinned)


def _is_brief(chars: int | None) -> bool:
    return chars is not None and chars <= BRIEF_CHARS


def _width(call: Call) -> int:
    """Slots that a call takes: llama-server runs the choices of one request in slots beside each
    other."""
    choices = 1 if call.purpose == "prefill" else call.params.get("n")
    return max(1, choices) if isinstance(choices, int) else 1
