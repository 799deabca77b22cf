"""Care for the slots of a llama-server: what the keeper decides, told to and asked of the server.

Facts of the server that shape this file (measured, build 11549): a slot whose connection was closed
works on to the end of its batch, and `/slots` is answered between two batches; a slot that was
never used says no `id_task`; erasing a slot needs --slot-save-path (else 501), while a one-token
request with cache_prompt false leaves nothing of what was there; with --cache-ram what was there
goes to the server's memory first, and comes back for a prompt that is like it, pinned or not.
"""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from gateway.backends.base import Call
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.slot_leases import Dropped, Lease
from gateway.backends.slots import QueueFull, SlotKeeper
from gateway.backends.waiting_line import Wish
from policies.schema import LlamaCppBackend

log = logging.getLogger("foldgate.slots")

ASK_SECONDS = 10.0
WIPE_SECONDS = 60.0
"""How long a question may take, and a wipe: it stands behind a batch of somebody else's."""

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

_NOISE_WORDS = 24
_TOLD_APART = 8
"""The length of a text that is like nothing, and how many of its tokens are read anew at most where
it came from memory."""

_DEFAULT_SLOTS = 4
"""llama-server started without -np has so many, and they share one cache."""

BRIEF_CHARS = 2_000
"""Characters of prompt that are read within one small batch (some 500 tokens): less than a second
on two cores, a few milliseconds on a GPU."""

_NO_SUCH_THING = frozenset({FaultKind.NOT_FOUND, FaultKind.SERVER, FaultKind.BAD_REQUEST})
"""How a server answers that lacks what was asked for: 404, 405, 501."""


class Ask(Protocol):
    """One small question to the server; the decoded answer. Raises UpstreamFault."""

    async def __call__(
        self, method: str, path: str, seconds: float, fields: Mapping[str, Any] | None = None
    ) -> Any: ...


@dataclass(frozen=True, slots=True)
class ServerSlot:
    """What the server says of a slot; is_fresh: it was never used since the server's start."""

    number: int
    is_busy: bool
    is_fresh: bool


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
        self._ask = ask
        self._clock = clock
        self._can_erase = True
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
        """The server's own word on its slots. Raises UpstreamFault, also where it has no list."""
        answer = await self._ask("GET", "/slots", ASK_SECONDS)
        if not isinstance(answer, list) or not all(isinstance(slot, dict) for slot in answer):
            what = f"The backend {self._backend} answered /slots with no list"
            raise UpstreamFault(FaultKind.MALFORMED, what)
        return [
            ServerSlot(
                number=slot.get("id", index),
                is_busy=bool(slot.get("is_processing")),
                is_fresh=slot.get("id_task", -1) == -1,
            )
            for index, slot in enumerate(answer)
        ]

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
                await self._overwrite(number)

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
                if await self._erase(number):
                    left.discard(number)
            for _ in range(2 * len(slots)):
                if not left:
                    return
                answer = await self._read_text(None, _make_noise(), cache_prompt=False)
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

    async def _erase(self, number: int) -> bool:
        """Erase a slot as soon as it is idle; False where the server cannot."""
        if self._can_erase:
            try:
                await self._ask("POST", f"/slots/{number}?action=erase", WIPE_SECONDS, {})
            except UpstreamFault as fault:
                if fault.kind not in _NO_SUCH_THING:
                    raise
                self._can_erase = False
        return self._can_erase

    async def _overwrite(self, number: int) -> None:
        """Erase a slot that is ours where the server can, else read a dot over it."""
        if await self._erase(number):
            return
        fields = {
            "messages": [{"role": "user", "content": "."}],
            "max_tokens": 1,
            "cache_prompt": False,
            "id_slot": number,
        }
        await self._ask("POST", "/v1/chat/completions", WIPE_SECONDS, fields)

    async def _read_text(self, number: int | None, text: str, *, cache_prompt: bool = True) -> Any:
        """Have a bare text read, in a slot (None: of the server's choice); what it says of it."""
        fields = {"prompt": text, "n_predict": 1, "cache_prompt": cache_prompt}
        if number is not None:
            fields["id_slot"] = number
        return await self._ask("POST", "/completion", WIPE_SECONDS, fields)

    # --- how the server was started --------------------------------------------------------------

    async def check(self, *, is_alone: bool = False) -> tuple[str, ...]:
        """Ask the server how it was started, and keep what is wrong with it as `cautions`.

        `/props` must have been read before. Where slots are shared and at work, it is only half
        done, and `is_checked` stays false. A slot that was never used (is_alone: or that no
        conversation owns) is asked short questions, which show whether --cache-ram is on; nothing
        else can tell. Raises UpstreamFault where the server cannot be asked now.
        """
        cautions = self._check_total()
        try:
            slots = await self.read_slots()
        except UpstreamFault as fault:
            if fault.kind not in _NO_SUCH_THING:
                raise
            self.is_checked = True
            cautions.append(
                "it does not list its slots, so nobody sees when a reply that was broken off is "
                "over: start it without --no-slots"
            )
        else:
            cautions += await self._check_unified(slots)
            if self.pinned or not (self.keeper.in_flight or self._was_broken_off):
                cautions += await self._check_ram(slots, is_alone)
                self.is_checked = True
        self.cautions = tuple(cautions)
        return self.cautions

    def _check_total(self) -> list[str]:
        total = self.keeper.total
        if total is None:
            effect = "only slot 0 is used" if self.pinned else "requests are not held back"
            return [f"/props does not say how many slots it has: {effect}"]
        if not self.pinned:
            return []
        found = []
        wanted = self._wanted_background
        if wanted is not None and wanted >= total:
            found.append(
                f"background_slots is {wanted}, and it has {total} slots: "
                f"{self.keeper.background} are kept, so that one is left to the chats"
            )
        if total == 1:
            found.append(
                "it has one slot, which every summary takes from its chat: start it with -np 2 or "
                "more, or let another backend summarize"
            )
        return found

    async def _check_unified(self, slots: list[ServerSlot]) -> list[str]:
        """Slots that share one cache each report all of it: replies then fail together."""
        if len(slots) != _DEFAULT_SLOTS:
            return []
        try:
            answer = await self._ask("GET", "/v1/models", ASK_SECONDS)
            meta = answer["data"][0]["meta"]
            is_whole = meta["n_ctx"] == meta["n_ctx_train"]
        except (UpstreamFault, LookupError, TypeError):
            return []
        if not is_whole:
            return []
        return [
            "its slots seem to share one cache (it was started without -np): when it is full all "
            "replies fail together. Start it with -np N -c N*WINDOW --no-kv-unified"
        ]

    async def _check_ram(self, slots: list[ServerSlot], is_alone: bool) -> list[str]:
        idle = [slot for slot in slots if not slot.is_busy]
        free = [slot.number for slot in idle if slot.is_fresh]
        if is_alone and not free:
            free = [slot.number for slot in idle if self.keeper.is_nobodys(slot.number)]
        if not free:
            log.info("%s: no slot is unused, so --cache-ram is not checked", self._backend)
            return []
        try:
            has_ram = await self._probe(free[-1])
        except Dropped:
            return []  # the server has fewer slots now
        if has_ram is None:
            return []
        if has_ram and self.pinned:
            return [
                "its slots are pinned and it keeps prompts in memory as well, which has put one "
                "conversation's text into another's reply: start it with --cache-ram 0"
            ]
        if has_ram:
            return [
                "--cache-ram keeps prompts in its memory, those of deleted conversations too, "
                "until others push them out or it is started anew"
            ]
        if not self.pinned:
            return [
                "its slots are shared and it keeps no prompts in memory, so that conversations "
                "push each other out: start it with --cache-ram MIB, or pin the slots"
            ]
        return []

    async def _probe(self, number: int) -> bool | None:
        """Whether a prompt that was overwritten comes back from memory; None: cannot be told."""
        text = _make_noise()
        async with self._alone_in(number):
            try:
                await self._read_text(number, text)
                await self._read_text(number, ".", cache_prompt=False)
                answer = await self._read_text(number, text)
                await self._read_text(number, ".", cache_prompt=False)
            except UpstreamFault as fault:
                if fault.kind not in _NO_SUCH_THING:
                    raise
                return None
        timings = answer.get("timings") if isinstance(answer, dict) else None
        read = timings.get("prompt_n") if isinstance(timings, dict) else None
        return read <= _TOLD_APART if isinstance(read, int) else None


def _make_noise() -> str:
    """A text that is like nothing else."""
    return " ".join(secrets.token_hex(2) for _ in range(_NOISE_WORDS))


def _is_brief(chars: int | None) -> bool:
    return chars is not None and chars <= BRIEF_CHARS


def _width(call: Call) -> int:
    """Slots that a call takes: llama-server runs the choices of one request in slots beside each
    other."""
    choices = 1 if call.purpose == "prefill" else call.params.get("n")
    return max(1, choices) if isinstance(choices, int) else 1
