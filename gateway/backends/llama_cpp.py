"""llama.cpp's llama-server over direct HTTP: bytes in, bytes out, as little between as is correct.

Facts of the server that shape this file (builds 10434 to 11434):
it prefers n_predict and max_completion_tokens over max_tokens, so only one of them is sent;
X-Conversation-Id would let a generation outlive our disconnect, so it is never sent; a disconnect
cancels the generation between two batches; it keeps idle connections for 5 s.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import aiohttp

from gateway.backends.answers import AnswerReader, choose_wait
from gateway.backends.base import Call, Chunk, Completion, Health
from gateway.backends.classification import classify_response, redact
from gateway.backends.events import MAX_EVENT_BYTES
from gateway.backends.faults import FaultKind, UpstreamFault
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
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"
        self._session: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None
        self._keeps_streams = False
        self._health: tuple[float, Health] | None = None
        self._props_at: float | None = None
        self._can_count = True

    async def start(self) -> None:
        if self._session is None or self._streams is None or self._session.closed:
            self._session = self._make_session(
                aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEPALIVE_SECONDS)
            )
            self._streams = self._make_session(aiohttp.TCPConnector(limit=0, force_close=True))

    def _make_session(self, connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
        connect = self._config.timeouts.connect
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, connect=connect, sock_read=None),
            headers=self._headers,
            trust_env=False,
        )

    async def aclose(self) -> None:
        for session in (self._session, self._streams):
            if session is not None:
                await session.close()

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
        if isinstance(window, int) and window > 0:
            self._learn_window(window)
        slots = props.get("total_slots")
        self.total_slots = slots if isinstance(slots, int) and slots > 0 else None

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
        return count if isinstance(count, int) else None

    async def _ask(self, method: str, path: str, seconds: float, body: bytes | None = None) -> Any:
        """The decoded answer to a small question. Raises UpstreamFault."""
        deadline = asyncio.get_running_loop().time() + seconds
        response = await self._request(method, path, body, deadline)
        try:
            return loads(await self._read_rest(response, deadline))
        except ValueError:
            raise self._fault(FaultKind.MALFORMED, f"answered {path} with no JSON") from None
        finally:
            response.close()

    # --- calls -----------------------------------------------------------------------------------

    def dropped_params(self, params: dict[str, Any]) -> tuple[str, ...]:
        return tuple(sorted(BLOCKED & params.keys()))

    def stream(self, call: Call) -> AsyncIterator[Chunk]:
        return self._stream(call)

    async def _stream(self, call: Call) -> AsyncGenerator[Chunk, None]:
        loop, timeouts = asyncio.get_running_loop(), self._config.timeouts
        deadline = loop.time() + timeouts.total
        response = await self._open(call, min(deadline, loop.time() + timeouts.first_token))
        reader = AnswerReader(self.name, self._secrets)
        try:
            while not reader.done:
                wait = choose_wait(timeouts, reader)
                try:
                    data = await self._read(response, min(deadline, loop.time() + wait))
                except UpstreamFault as fault:
                    chunks = reader.break_off(fault)
                else:
                    chunks = reader.feed(data) if data else reader.close()
                for chunk in chunks:
                    yield chunk
                if reader.fault is not None:
                    raise self._noted(reader.fault)
            if self._keeps_streams:
                await _finish(response)
        finally:
            response.close()

    async def complete(self, call: Call) -> Completion:
        """As Backend.complete. The answer is streamed from the server and put together here: of a
        whole one the server does not notice that nobody waits any more, and generates to its end
        (measured, build 11549: the slot was busy for 408 s more; of a stream, 0.1 to 0.7 s)."""
        builder = ReplyBuilder()
        try:
            async with aclosing(self._stream(call)) as chunks:
                async for chunk in chunks:
                    builder.feed(chunk.parsed)
        except UpstreamFault as fault:
            if fault.partial:
                fault.received = builder.completion()
            raise
        parsed = builder.completion()
        return Completion(dump_bytes(parsed), parsed)

    async def _open(self, call: Call, deadline: float) -> aiohttp.ClientResponse:
        path, body = "/v1/chat/completions", self._body(call)
        return await self._request("POST", path, body, deadline, streams=True)

    def _body(self, call: Call) -> bytes:
        fields = {key: value for key, value in call.params.items() if _passes(key)}
        if self._config.model is not None:
            fields["model"] = self._config.model
        fields["max_tokens"] = call.max_tokens
        fields["stream"] = True
        fields["stream_options"] = {"include_usage": True}
        # A word after each batch of the prompt: the server notices a closed connection only when
        # it writes, and a silent server is told from a reading one.
        fields["return_progress"] = True
        if call.slot is not None:
            fields["id_slot"] = call.slot
        if call.purpose in ("summary", "gist"):
            given = fields.get("chat_template_kwargs") or {}
            fields["chat_template_kwargs"] = {**given, "enable_thinking": False}
        return _join_body(call.messages, fields)

    async def _request(
        self, method: str, path: str, body: bytes | None, deadline: float, *, streams: bool = False
    ) -> aiohttp.ClientResponse:
        """The response with status 200, its body unread. Raises UpstreamFault for any other.

        streams: on a connection of its own, unless the server keeps those that carried a stream.
        llama-server says Keep-Alive after it and closes all the same (measured, build 11549): the
        next request there would be reset. What speaks in its place may keep its word.
        """
        await self.start()
        session = self._streams if streams and not self._keeps_streams else self._session
        assert session is not None
        try:
            async with asyncio.timeout_at(deadline):
                response = await session.request(
                    method, self._config.url + path, data=body, allow_redirects=False
                )
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._noted(self._explain(error)) from error
        if response.status == 200:
            if streams:
                self._keeps_streams = response.headers.get("Server") != "llama.cpp"
            return response
        try:
            text = await self._read_error(response)
        finally:
            response.close()
        raise self._noted(
            classify_response(
                self.name, response.status, text, response.headers, secrets=self._secrets
            )
        )

    async def _read(self, response: aiohttp.ClientResponse, deadline: float) -> bytes:
        """The next bytes of a stream, b"" at its end. Raises UpstreamFault.

        Bytes that arrived before the connection broke are given first: aiohttp would raise its
        error over them.
        """
        content = response.content
        try:
            if ready := content.read_nowait():
                return ready
            async with asyncio.timeout_at(deadline):
                return await content.readany()
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            if content.exception() is not None and (left := content._read_nowait(-1)):
                return left
            raise self._explain(error, in_body=True) from error

    async def _read_rest(self, response: aiohttp.ClientResponse, deadline: float) -> bytes:
        body = bytearray()
        try:
            async with asyncio.timeout_at(deadline):
                while more := await response.content.readany():
                    body += more
                    if len(body) > MAX_EVENT_BYTES:
                        raise self._fault(FaultKind.MALFORMED, "sends an answer without end")
                return bytes(body)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise self._noted(self._explain(error, in_body=True)) from error

    async def _read_error(self, response: aiohttp.ClientResponse) -> bytes:
        """The body of an error as far as it comes: the status alone says much already."""
        body = b""
        try:
            async with asyncio.timeout(min(PROBE_SECONDS, self._config.timeouts.idle)):
                while len(body) < ERROR_BODY_BYTES and (more := await response.content.readany()):
                    body += more
        except (TimeoutError, aiohttp.ClientError, OSError):
            return body[:ERROR_BODY_BYTES]
        return body[:ERROR_BODY_BYTES]

    def _explain(self, error: Exception, in_body: bool = False) -> UpstreamFault:
        if isinstance(error, TimeoutError):
            connecting = isinstance(error, aiohttp.ConnectionTimeoutError)
            what = "could not be reached in time" if connecting else "fell silent for too long"
            return self._fault(FaultKind.TIMEOUT, what)
        if in_body:
            return self._fault(FaultKind.INTERRUPTED, "broke off its answer")
        if isinstance(error, aiohttp.ClientConnectorError):
            return self._fault(FaultKind.UNAVAILABLE, f"cannot be reached ({error.strerror})")
        if isinstance(error, aiohttp.ServerDisconnectedError | OSError):
            return self._fault(FaultKind.UNAVAILABLE, "closed the connection before it answered")
        words = redact(str(error), self._secrets)
        return self._fault(FaultKind.MALFORMED, f"does not speak HTTP as expected ({words})")

    def _fault(self, kind: FaultKind, what: str) -> UpstreamFault:
        return UpstreamFault(kind, f"The backend {self.name} {what}")

    def _noted(self, fault: UpstreamFault) -> UpstreamFault:
        """Remember what a fault says about the server: gone, or with another window."""
        if fault.kind in (FaultKind.UNAVAILABLE, FaultKind.LOADING, FaultKind.INTERRUPTED):
            self._props_at = self._health = None
        elif fault.kind is FaultKind.OVERFLOW and fault.window_tokens:
            self._learn_window(fault.window_tokens)
        return fault


async def _finish(response: aiohttp.ClientResponse) -> None:
    """Read the end of a stream, so that its connection may serve again; not longer than 50 ms:
    all that counts has come."""
    try:
        if not response.content.at_eof():
            async with asyncio.timeout(0.05):
                while not response.content.at_eof():
                    await response.content.readany()
    except (TimeoutError, aiohttp.ClientError, OSError):
        return  # close() drops the connection, and nothing of the answer is lost


def _passes(key: str) -> bool:
    return key not in BLOCKED and key not in MANAGED


def _join_body(messages: Sequence[bytes], fields: dict[str, Any]) -> bytes:
    """One JSON object: the messages as they are, and the other fields."""
    rest = dump_bytes(fields)[1:] if fields else b"}"
    return b'{"messages":[' + b",".join(messages) + (b"]," if fields else b"]") + rest
