"""llama.cpp's llama-server over direct HTTP: bytes in, bytes out, as little between as is correct.

A disconnect cancels the generation between two batches (builds 10434 to 11434).
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeGuard

from gateway.backends.answers import AnswerReader, choose_wait
from gateway.backends.base import Call, Chunk, Completion, Health
from gateway.backends.connections import Connection
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.llama_bodies import BLOCKED, chat_body, join_body, passes
from gateway.backends.llama_http import PROBE_SECONDS, LlamaHttp
from gateway.backends.slot_care import SlotCare
from gateway.backends.slot_leases import Dropped, Lease
from gateway.backends.waits import Waits
from gateway.wire.json_text import dump_bytes
from gateway.wire.media import withhold_media
from gateway.wire.replies import ReplyBuilder
from policies.schema import LlamaCppBackend

HEALTH_SECONDS = 2.0
PROPS_SECONDS = 30.0
"""How long a health answer and the server's properties are believed."""

COUNT_SECONDS = 30.0
"""The server's counter took 8.4 s for 5,002 messages on two cores."""

MOST_SLOTS = 1_024
"""Four times what a llama-server can have: a larger number is an error of it, and no memory is
spent on it."""

RELEASE_SECONDS = 0.05
"""How long the end of a stream's frame is waited for, so that its connection may serve again: all
that counts has come."""

_UNTOLD = frozenset({FaultKind.TIMEOUT, FaultKind.INTERRUPTED, FaultKind.MALFORMED})
"""Faults after which the server may still be at work for the request."""


class LlamaCpp:
    """A Backend (base.py) that is a llama-server. `clock`: monotonic seconds, for the caches."""

    kind = "llama_cpp"

    def __init__(
        self, name: str, config: LlamaCppBackend, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.name = name
        self.local = config.is_local
        self.image_chars = config.image_chars
        self.window_tokens = config.window
        self.off_reason = config.off_reason
        self.total_slots: int | None = None
        self._config = config
        self._clock = clock
        self._http = LlamaHttp(name, config, self._noted)
        self._health: tuple[float, Health] | None = None
        self._props_at: float | None = None
        self._can_count = True
        self.can_prefill = config.prefill
        self.slot_care = SlotCare(name, config, self._http.ask_fields, clock)

    async def start(self) -> None:
        """Nothing: a connection is opened by the first call that needs it."""

    async def aclose(self) -> None:
        await self.slot_care.aclose()
        await self._http.aclose()

    # --- what the server says of itself ----------------------------------------------------------

    async def health(self) -> Health:
        now = self._clock()
        if self._health is not None and now - self._health[0] < HEALTH_SECONDS:
            return self._health[1]
        health = await self._probe_health()
        self._health = (self._clock(), health)
        if not health.ok:
            self._props_at = None
        return health

    async def _probe_health(self) -> Health:
        try:
            await self._http.ask("GET", "/health", PROBE_SECONDS)
        except UpstreamFault as fault:
            return Health(False, fault.what)
        return Health(True)

    async def window(self) -> int | None:
        """As Backend.window: the smaller of the configured window and the server's own, which is
        read again every 30 s and after the server was found gone."""
        now = self._clock()
        if self._props_at is None or now - self._props_at >= PROPS_SECONDS:
            try:
                props = await self._http.ask("GET", "/props", PROBE_SECONDS)
            except UpstreamFault:
                return self.window_tokens
            self._props_at = now
            self._read_props(props)
        return self.window_tokens

    def _read_props(self, props: Any) -> None:
        if not isinstance(props, dict):
            return
        settings = props.get("default_generation_settings")
        window = settings.get("n_ctx") if isinstance(settings, dict) else None
        if _is_number(window) and window > 0:
            self._learn_window(window)
        slots = props.get("total_slots")
        self.total_slots = slots if _is_number(slots) and 0 < slots <= MOST_SLOTS else None
        self.slot_care.keeper.resize(self.total_slots)

    def _learn_window(self, window: int) -> None:
        configured = self._config.window
        self.window_tokens = window if configured is None else min(window, configured)

    async def count_tokens(
        self, messages: Sequence[bytes], params: Mapping[str, Any] | None = None
    ) -> int | None:
        """As Backend.count_tokens, by the server's own template; `params` (tools,
        chat_template_kwargs) change the prompt and so the count."""
        if not self._can_count:
            return None
        body = join_body(messages, {k: v for k, v in (params or {}).items() if passes(k)})
        path = "/v1/chat/completions/input_tokens"
        try:
            answer = await self._http.ask("POST", path, COUNT_SECONDS, body)
        except UpstreamFault as fault:
            self._can_count = fault.kind is not FaultKind.NOT_FOUND
            return None
        count = answer.get("input_tokens") if isinstance(answer, dict) else None
        return count if _is_number(count) else None

    # --- calls -----------------------------------------------------------------------------------

    def dropped_params(self, params: dict[str, Any]) -> tuple[str, ...]:
        blocked = BLOCKED & params.keys()
        if self.slot_care.pinned and params.get("n", 1) != 1:
            blocked |= {"n"}  # further choices would be written over other conversations' slots
        return tuple(sorted(blocked))

    async def stream(self, call: Call) -> AsyncGenerator[Chunk]:
        async with aclosing(self._batches(call)) as batches:
            async for chunks in batches:
                for chunk in chunks:
                    yield chunk

    async def complete(self, call: Call) -> Completion:
        """As Backend.complete. The answer is streamed from the server and put together here: of a
        whole one the server does not notice that nobody waits any more, and generates to its end
        (measured, build 11549: the slot was busy for 408 s more; of a stream, 0.1 to 0.7 s)."""
        builder = ReplyBuilder()
        try:
            async with aclosing(self._batches(call, gather=True)) as batches:
                async for chunks in batches:
                    collect(builder, chunks)
        except UpstreamFault as fault:
            if fault.partial:
                fault.received = builder.completion()
            raise
        parsed = builder.completion()
        return Completion(dump_bytes(parsed), parsed)

    async def _batches(self, call: Call, *, gather: bool = False) -> AsyncGenerator[list[Chunk]]:
        """The chunks of an answer as they come together. gather: it is wanted whole, so what
        follows its beginning may pile up (as in Connection.read)."""
        loop, timeouts = asyncio.get_running_loop(), self._config.timeouts
        reader = AnswerReader(self.name, self._http.secrets, joins=gather)
        async with self._exchange(call, gather) as (connection, lease, waits):
            while not reader.done:
                wait = choose_wait(timeouts, reader)
                try:
                    data = await self._http.read(
                        connection, waits, wait, reader.course.started, gather
                    )
                except UpstreamFault as fault:
                    chunks = reader.break_off(fault)
                else:
                    chunks = reader.feed(data) if data else reader.close()
                if call.trace.first_token is None:
                    if reader.course.started:
                        call.trace.first_token = loop.time() - waits.began
                        lease.read()
                    else:
                        self.slot_care.hear(lease)
                if chunks:
                    yield chunks
                if reader.fault is not None:
                    raise self._noted(reader.fault)
            await connection.release(RELEASE_SECONDS)

    async def prefill(self, call: Call) -> bool:
        """As Backend.prefill. The one token that the server makes all the same is dropped."""
        work = asyncio.ensure_future(self._read_in(call))
        try:
            await work
        except Dropped:
            return False
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            return False
        return True

    async def _read_in(self, call: Call) -> None:
        async with aclosing(self._batches(call)) as batches:
            try:
                async for _ in batches:
                    pass
            except UpstreamFault as fault:
                if fault.kind is not FaultKind.EMPTY:
                    raise

    @asynccontextmanager
    async def _exchange(
        self, call: Call, gather: bool
    ) -> AsyncIterator[tuple[Connection, Lease, Waits]]:
        """One call from its place in the line to the end of its answer, and its clock: a
        slot is taken, and given back however it ends. A prefill that is dropped is cancelled."""
        if call.messages and withhold_media(call.messages[-1]) is not call.messages[-1]:
            raise UpstreamFault(
                FaultKind.BAD_REQUEST,
                f"The backend {self.name} is sent no addresses of images, which it would fetch "
                "itself; send the image as a data: address",
            )
        if self.slot_care.pinned and self.slot_care.keeper.total is None:
            await self.window()
        lease = await self._stand_in_line(call)
        began, is_settled = asyncio.get_running_loop().time(), False
        task = asyncio.current_task()
        if call.purpose == "prefill" and task is not None:
            lease.when_dropped(task.cancel)
        try:
            timeouts = self._config.timeouts
            waits = Waits(timeouts, began, call.deadline if gather else None)
            first = waits.until(began, timeouts.first_token)
            body = chat_body(call, self._config.model, lease.slot)
            path = "/v1/chat/completions"
            connection = await self._http.request("POST", path, body, first, waits=waits)
            try:
                yield connection, lease, waits
                is_settled = True
            finally:
                if not connection.is_released:
                    connection.close()
        except UpstreamFault as fault:
            is_settled = fault.kind not in _UNTOLD
            raise
        finally:
            self.slot_care.end(lease, is_settled=is_settled)

    async def _stand_in_line(self, call: Call) -> Lease:
        """A slot for a call. Raises UpstreamFault where none was free before its client would have
        given up."""
        try:
            async with asyncio.timeout_at(call.deadline):
                return await self.slot_care.lease(call)
        except TimeoutError as error:
            what = f"The backend {self.name} had no slot free before its client would have given up"
            raise UpstreamFault(FaultKind.TIMEOUT, what, is_ours=True) from error

    def _noted(self, fault: UpstreamFault) -> UpstreamFault:
        """Remember what a fault says about the server: gone, or with another window."""
        if fault.kind in (FaultKind.UNAVAILABLE, FaultKind.LOADING, FaultKind.INTERRUPTED):
            self._props_at = self._health = None
            if fault.kind is not FaultKind.INTERRUPTED:
                self.slot_care.is_checked = False  # it may come back started in another way
        elif fault.kind is FaultKind.OVERFLOW and fault.window_tokens:
            self._learn_window(fault.window_tokens)
        return fault


def _is_number(value: Any) -> TypeGuard[int]:
    """true and false are whole numbers to Python, and none that a server counts."""
    return isinstance(value, int) and not isinstance(value, bool)


def collect(builder: ReplyBuilder, chunks: Sequence[Chunk]) -> None:
    """Feed chunks that came together, runs of mere text at one go."""
    texts: list[str] = []
    for chunk in chunks:
        if chunk.text is not None:
            texts.append(chunk.text)
            continue
        if texts:
            builder.feed_texts(texts)
            texts = []
        builder.feed(chunk.parsed)
    if texts:
        builder.feed_texts(texts)
