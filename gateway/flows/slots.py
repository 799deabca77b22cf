"""The slots of local servers over the life of the program: restored, checked, and wiped (law 10).

What a turn does with slots happens inside the backend. Here is what happens between turns: at the
start slots are given back to the conversations that were served there last, each server is asked
how it was started as soon as it answers, and what deleted conversations left there is wiped. What
another program deleted is told to the memory of this one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from gateway.backends.base import Backend, SlotCare
from gateway.backends.faults import UpstreamFault
from gateway.clock import Clock
from gateway.meters import Meters
from gateway.store.engine import Store
from gateway.store.wipes import (
    Wipe,
    close_wipes,
    deletions_after,
    newest_entry,
    open_wipes,
    slot_owners,
)

log = logging.getLogger("foldgate.slots")

LOOK_SECONDS = 15.0
"""How often the rows are read (another program may have deleted something) and a server that was
not there is asked again."""


class SlotWatch:
    """The care between turns. Between `start` and `aclose` it looks by itself. forget: told once of
    each conversation that was deleted since the start, its row number and its id; forget_memories:
    told when a text that views showed is gone."""

    def __init__(
        self,
        store: Store,
        backends: Mapping[str, Backend],
        clock: Clock,
        forget: Callable[[int, str], None] = lambda conversation_pk, id: None,
        forget_memories: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._backends = backends
        self._clock = clock
        self._forget = forget
        self._forget_memories = forget_memories
        self._heard = 0
        self._is_kept = True  # a run that broke off may have left what was deleted
        self._tasks: set[asyncio.Task[None]] = set()
        self._rounds = 0
        self._told: dict[str, tuple[str, ...]] = {}
        self._held: dict[str, str] = {}

    def report_to(self, meters: Meters) -> None:
        """Let these show each server's line and count who was turned away."""
        for name, care in self._cares().items():
            meters.watch_queue(name, care.waiting, care.in_flight)
            care.when_refused = partial(meters.queue_refused, name)

    async def start(self) -> None:
        """Know again whose slots are whose, and what must not be used; then begin to look."""
        self._heard = await self._store.read(newest_entry)  # nothing is in memory yet
        owners = await self._store.read(slot_owners)
        for name, care in self._cares().items():
            care.restore(owners.get(name, {}))
        await self._forget_deleted()
        self._spawn(self._watch())

    async def aclose(self) -> None:
        """Look no more."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def deleted(self, conversation: str) -> None:
        """A conversation was deleted, and its rows say so: nothing more is served from what held
        it, and a round begins."""
        for care in self._cares().values():
            care.forget(conversation)
        if self._tasks:
            self._spawn(self._round())

    async def look(self) -> None:
        """One round: ask the servers that were not asked yet, wipe what is to be wiped. A server
        that cannot be asked now is asked in a later round."""
        wipes = await self._forget_deleted()
        await asyncio.gather(
            *(
                self._tend(name, care, [wipe.pk for wipe in wipes if wipe.backend == name])
                for name, care in self._cares().items()
            )
        )

    def _cares(self) -> dict[str, SlotCare]:
        found = {name: backend.slot_care for name, backend in self._backends.items()}
        return {name: care for name, care in found.items() if care is not None}

    async def _forget_deleted(self) -> list[Wipe]:
        """What is open, told to each backend; backends without slots have nothing to wipe. The file
        of the writes is emptied of what is gone, as soon as no reader of an older state is in the
        way."""
        for gone in await self._store.read(deletions_after, self._heard):
            self._heard = max(self._heard, gone.entry)
            self._is_kept = True
            if gone.conversation_pk is None:
                self._forget_memories()
            else:
                self._forget(gone.conversation_pk, gone.conversation)
        if self._is_kept:
            self._is_kept = not await self._store.checkpoint()
        wipes = await self._store.read(open_wipes)
        cares = self._cares()
        nothing = []
        for wipe in wipes:
            if wipe.backend in cares:
                cares[wipe.backend].forget(wipe.conversation)
            elif wipe.backend in self._backends:
                nothing.append(wipe.pk)
        if nothing:
            await self._store.write(close_wipes, nothing, self._clock.now_ms())
        return wipes

    async def _tend(self, name: str, care: SlotCare, wipes: list[int]) -> None:
        try:
            if not care.is_checked:
                await self._backends[name].window()
                self._tell(name, await care.check(is_alone=True))
            if wipes or care.is_dirty:
                await care.wipe()
            if wipes:
                await self._store.write(close_wipes, wipes, self._clock.now_ms())
            self._held.pop(name, None)
        except UpstreamFault as fault:
            # A round comes every few seconds, and a server that lacks a path lacks it for days.
            if (wipes or care.is_dirty) and self._held.get(name) != fault.outline:
                self._held[name] = fault.outline
                log.warning("%s holds deleted conversations still: %s", name, fault.outline)

    def _tell(self, name: str, cautions: tuple[str, ...]) -> None:
        """Each caution once, until it is another."""
        for caution in cautions:
            if caution not in self._told.get(name, ()):
                log.warning("backend %s: %s", name, caution)
        self._told[name] = cautions

    # --- rounds ----------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Begins a round from time to time; not while one still waits for a busy slot."""
        while True:
            if not self._rounds:
                self._spawn(self._round())
            await self._clock.sleep(LOOK_SECONDS)

    async def _round(self) -> None:
        self._rounds += 1
        try:
            await self.look()
        except Exception:
            log.exception("a look at the slots failed; the rows are as they were")
        finally:
            self._rounds -= 1

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
