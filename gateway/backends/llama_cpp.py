"""llama.cpp's llama-server over direct HTTP: bytes in, bytes out, as little between as is correct.

Facts of the server that shape this file (builds 10434 to 11434):
it prefers n_predict and max_completion_tokens over max_tokens, so only one of them is sent;
X-Conversation-Id would let a generation outlive our disconnect, so it is never sent; a disconnect
cancels the generation between two batches; it keeps idle connections for 5 s.
"""

import asyncio
import time
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeGuard

from gateway.backends.answers import AnswerReader, choose_wait
from gateway.backends.base import Call, Chunk, Completion, Health
from gateway.backends.classification import classify_response
from gateway.backends.connections import (
    Connection,
    Connections,
    ConnectTimeout,
    Garbled,
    NoConnection,
)
from gateway.backends.events import MAX_EVENT_BYTES
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.redaction import redact
from gateway.backends.slot_care import SlotCare
from gateway.backends.slot_leases import Dropped, Lease
from gateway.backends.waits import Stage, Waits
from gateway.wire.json_text import dump_bytes, loads
from gateway.wire.replies import ReplyBuilder
from policies.schema import LlamaCppBackend

BLOCKED = frozenset({"id_slot", "cache_prompt", "n_cache_reuse", "return_progress"})
"""Fields that would let a client reach another conversation's slot or spoil its cache, and the one
that the gateway asks for itself."""

MANAGED = frozenset(
    {
        "messages",
        "model",
        "stream",
        "stream_options",
        "max_tokens",
        "max_completion_tokens",
        "n_predict",
    }
)
"""Fields that the gateway decides; their values reach the server in the call's own form."""

HEALTH_SECONDS = 2.0
PROPS_SECONDS = 30.0
PROBE_SECONDS = 5.0
"""How long a health answer and the server's properties are believed, how long a probe may take."""

COUNT_SECONDS = 30.0
"""The server's counter took 8.4 s for 5,002 messages on two cores."""

KEEPALIVE_SECONDS = 3.0
"""Below the server's 5 s, so that a request does not run into a connection being closed."""

ERROR_BODY_BYTES = 65_536

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
        key = config.api_key.get_secret_value() if config.api_key else ""
        self._secrets = (key,) if key else ()
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = f"Bearer {key}"
        self._connections = Connections(
            config.url,
            headers,
            connect_seconds=config.timeouts.connect,
            keep_seconds=KEEPALIVE_SECONDS,
        )
        self._keeps_streams = False
        self._health: tuple[float, Health] | None = None
        self._props_at: float | None = None
        self._can_count = True
        self.can_prefill = config.prefill
        self.slot_care = SlotCare(name, config, self._ask_fields, clock)

    async def start(self) -> None:
        """Nothing: a connection is opened by the first call that needs it."""

    async def aclose(self) -> None:
        await self.slot_care.aclose()
        await self._connections.aclose()

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
            await self._ask("GET", "/health", PROBE_SECONDS)
        except UpstreamFault as fault:
            return Health(False, fault.what)
        return Health(True)

    async def window(self) -> int | None:
        """As Backend.window: the smaller of the configured window and the server's own, which is
        read again every 30 s and after the server was found gone."""
        now = self._clock()
        if self._props_at is None or now - self._props_at >= PROPS_SECONDS:
            try:
                props = await self._ask("GET", "/props", PROBE_SECONDS)
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
        body = _join_body(messages, {k: v for k, v in (params or {}).items() if _passes(k)})
        path = "/v1/chat/completions/input_tokens"
        try:
            answer = await self._ask("POST", path, COUNT_SECONDS, body)
        except UpstreamFault as fault:
            self._can_count = fault.kind is not FaultKind.NOT_FOUND
            return None
        count = answer.get("input_tokens") if isinstance(answer, dict) else None
        return count if _is_number(count) else None

    async def _ask_fields(
        self, method: str, path: str, seconds: float, fields: Mapping[str, Any] | None = None
    ) -> Any:
        """As _ask, with a JSON object for a body."""
        if fields is None:
            return await self._ask(method, path, seconds)
        named = {} if self._config.model is None else {"model": self._config.model}
        return await self._ask(method, path, seconds, dump_bytes({**named, **fields}))

    async def _ask(self, method: str, path: str, seconds: float, body: bytes | None = None) -> Any:
        """The decoded answer to a small question. Raises UpstreamFault."""
        deadline = asyncio.get_running_loop().time() + seconds
        connection = await self._request(method, path, body, deadline)
        try:
            answer = loads(await self._read_rest(connection, deadline))
            await connection.release()
            return answer
        except ValueError:
            raise self._fault(FaultKind.MALFORMED, f"answered {path} with no JSON") from None
        finally:
            if not connection.is_released:
                connection.close()

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
                    for chunk in chunks:
                        builder.feed(chunk.parsed)
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
        reader = AnswerReader(self.name, self._secrets)
        async with self._exchange(call, gather) as (connection, lease, waits):
            while not reader.done:
                wait = choose_wait(timeouts, reader)
                try:
                    data = await self._read(connection, waits, wait, reader.course.started, gather)
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
            body = self._body(call, lease.slot)
            path = "/v1/chat/completions"
            connection = await self._request("POST", path, body, first, waits=waits)
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

    def _body(self, call: Call, slot: int | None) -> bytes:
        fields = {key: value for key, value in call.params.items() if _passes(key)}
        if self._config.model is not None:
            fields["model"] = self._config.model
        fields["max_tokens"] = call.max_tokens
        fields["stream"] = True
        fields["stream_options"] = {"include_usage": True}
        # A word after each batch of the prompt: the server notices a closed connection only when
        # it writes, and a silent server is told from a reading one.
        fields["return_progress"] = True
        if slot is not None:
            fields["id_slot"] = slot
            fields.pop("n", None)
        if call.purpose == "prefill":
            fields["max_tokens"], fields["add_generation_prompt"] = 0, False
            fields.pop("n", None)
        if call.purpose in ("summary", "gist"):
            given = fields.get("chat_template_kwargs") or {}
            fields["chat_template_kwargs"] = {**given, "enable_thinking": False}
        return _join_body(call.messages, fields)

    async def _request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        deadline: float,
        *,
        waits: Waits | None = None,
    ) -> Connection:
        """The connection of a response with status 200, its body unread. Raises UpstreamFault for
        any other.

        waits: of a call, whose answer is a stream. It has a connection of its own, unless the
        server keeps those that carried a stream: llama-server says Keep-Alive after it and closes
        all the same (measured, build 11549), and the next request there would be reset. What speaks
        in its place may keep its word.
        """
        keep = waits is None or self._keeps_streams
        try:
            connection = await self._connections.ask(method, path, body, deadline, keep=keep)
        except (TimeoutError, OSError) as error:
            raise self._noted(self._explain(error, waits)) from error
        if connection.status == 200:
            self._check_plain(connection)
            if waits is not None:
                self._keeps_streams = connection.headers.get("server") != "llama.cpp"
            return connection
        try:
            text = await self._read_error(connection)
        finally:
            connection.close()
        raise self._noted(
            classify_response(
                self.name, connection.status, text, connection.headers, secrets=self._secrets
            )
        )

    def _check_plain(self, connection: Connection) -> None:
        """Refuse a body that was packed although plain bytes were asked for."""
        packed = connection.headers.get("content-encoding", "identity")
        if packed != "identity":
            connection.close()
            raise self._fault(FaultKind.MALFORMED, f"packs its answers unasked ({packed[:20]})")

    async def _read(
        self, connection: Connection, waits: Waits, seconds: float, started: bool, gather: bool
    ) -> bytes:
        """The next bytes of a stream, b"" at its end. Raises UpstreamFault."""
        loop = asyncio.get_running_loop()
        try:
            deadline = waits.until(loop.time(), seconds)
            return await connection.read(deadline, gather=gather and started)
        except TimeoutError as error:
            stage: Stage = "idle" if started else "first_token"
            raise waits.fault(self.name, stage, loop.time()) from error
        except OSError as error:
            raise self._explain(error, in_body=True) from error

    async def _read_rest(self, connection: Connection, deadline: float) -> bytes:
        body = bytearray()
        try:
            while more := await connection.read(deadline):
                body += more
                if len(body) > MAX_EVENT_BYTES:
                    raise self._fault(FaultKind.MALFORMED, "sends an answer without end")
            return bytes(body)
        except (TimeoutError, OSError) as error:
            raise self._noted(self._explain(error, in_body=True)) from error

    async def _read_error(self, connection: Connection) -> bytes:
        """The body of an error as far as it comes: the status alone says much already."""
        body = b""
        patience = min(PROBE_SECONDS, self._config.timeouts.idle)
        deadline = asyncio.get_running_loop().time() + patience
        try:
            while len(body) < ERROR_BODY_BYTES and (more := await connection.read(deadline)):
                body += more
        except (TimeoutError, OSError):
            pass  # so far it came
        if "content-encoding" in connection.headers:
            body = _unpack(body)
        return body[:ERROR_BODY_BYTES]

    def _explain(
        self, error: Exception, waits: Waits | None = None, *, in_body: bool = False
    ) -> UpstreamFault:
        if isinstance(error, TimeoutError):
            if waits is None:
                return self._fault(FaultKind.TIMEOUT, "answers no small question in time")
            stage: Stage = "connect" if isinstance(error, ConnectTimeout) else "first_token"
            return waits.fault(self.name, stage, asyncio.get_running_loop().time())
        if in_body:
            return self._fault(FaultKind.INTERRUPTED, "broke off its answer")
        if isinstance(error, NoConnection):
            return self._fault(FaultKind.UNAVAILABLE, f"cannot be reached ({error})")
        if isinstance(error, Garbled):
            words = redact(str(error), self._secrets)
            return self._fault(FaultKind.MALFORMED, f"does not speak HTTP as expected ({words})")
        return self._fault(FaultKind.UNAVAILABLE, "closed the connection before it answered")

    def _fault(self, kind: FaultKind, what: str) -> UpstreamFault:
        return UpstreamFault(kind, f"The backend {self.name} {what}")

    def _noted(self, fault: UpstreamFault) -> UpstreamFault:
        """Remember what a fault says about the server: gone, or with another window."""
        if fault.kind in (FaultKind.UNAVAILABLE, FaultKind.LOADING, FaultKind.INTERRUPTED):
            self._props_at = self._health = None
            if fault.kind is not FaultKind.INTERRUPTED:
                self.slot_care.is_checked = False  # it may come back started in another way
        elif fault.kind is FaultKind.OVERFLOW and fault.window_tokens:
            self._learn_window(fault.window_tokens)
        return fault


def _unpack(body: bytes) -> bytes:
    """The beginning of a body that was packed unasked (gzip or zlib); as it is where it cannot be
    read."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, ERROR_BODY_BYTES)
    except zlib.error:
        return body


def _is_number(value: Any) -> TypeGuard[int]:
    """true and false are whole numbers to Python, and none that a server counts."""
    return isinstance(value, int) and not isinstance(value, bool)


def _passes(key: str) -> bool:
    return key not in BLOCKED and key not in MANAGED


def _join_body(messages: Sequence[bytes], fields: dict[str, Any]) -> bytes:
    """One JSON object: the messages as they are, and the other fields."""
    rest = dump_bytes(fields)[1:] if fields else b"}"
    return b'{"messages":[' + b",".join(messages) + (b"]," if fields else b"]") + rest
