"""HTTP with a llama-server: what is asked, what it answers, and what it means where it does not.

Facts of the server that shape this file (builds 10434 to 11549): X-Conversation-Id would let a
generation outlive our disconnect, so it is never sent; it keeps idle connections for 5 s.
"""

import asyncio
import zlib
from collections.abc import Callable, Mapping
from typing import Any

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
from gateway.backends.waits import Stage, Waits
from gateway.redaction import redact
from gateway.wire.json_text import dump_bytes, loads
from policies.schema import LlamaCppBackend

PROBE_SECONDS = 5.0
"""How long a small question, or what an error says of itself, is waited for."""

KEEPALIVE_SECONDS = 3.0
"""Below the server's 5 s, so that a request does not run into a connection being closed."""

ERROR_BODY_BYTES = 65_536


class LlamaHttp:
    """The connections to one server. note: hears each fault that says something of the server, and
    gives it back to be raised. secrets: texts that must not stand in a fault's words."""

    def __init__(
        self,
        name: str,
        config: LlamaCppBackend,
        note: Callable[[UpstreamFault], UpstreamFault],
    ) -> None:
        self._name = name
        self._model = config.model
        self._timeouts = config.timeouts
        self._note = note
        key = config.api_key.get_secret_value() if config.api_key else ""
        self.secrets = (key,) if key else ()
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

    async def aclose(self) -> None:
        await self._connections.aclose()

    async def ask(self, method: str, path: str, seconds: float, body: bytes | None = None) -> Any:
        """The decoded answer to a small question. Raises UpstreamFault."""
        deadline = asyncio.get_running_loop().time() + seconds
        connection = await self.request(method, path, body, deadline)
        try:
            answer = loads(await self._read_rest(connection, deadline))
            await connection.release()
            return answer
        except ValueError:
            raise self._fault(FaultKind.MALFORMED, f"answered {path} with no JSON") from None
        finally:
            if not connection.is_released:
                connection.close()

    async def ask_fields(
        self, method: str, path: str, seconds: float, fields: Mapping[str, Any] | None = None
    ) -> Any:
        """As ask, with a JSON object for a body."""
        if fields is None:
            return await self.ask(method, path, seconds)
        named = {} if self._model is None else {"model": self._model}
        return await self.ask(method, path, seconds, dump_bytes({**named, **fields}))

    async def request(
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
            raise self._note(self._explain(error, waits)) from error
        if connection.status == 200:
            self._check_plain(connection)
            if waits is not None:
                self._keeps_streams = connection.headers.get("server") != "llama.cpp"
            return connection
        try:
            text = await self._read_error(connection)
        finally:
            connection.close()
        raise self._note(
            classify_response(
                self._name, connection.status, text, connection.headers, secrets=self.secrets
            )
        )

    async def read(
        self, connection: Connection, waits: Waits, seconds: float, started: bool, gather: bool
    ) -> bytes:
        """The next bytes of a stream, b"" at its end. Raises UpstreamFault."""
        loop = asyncio.get_running_loop()
        try:
            deadline = waits.until(loop.time(), seconds)
            return await connection.read(deadline, gather=gather and started)
        except TimeoutError as error:
            stage: Stage = "idle" if started else "first_token"
            raise waits.fault(self._name, stage, loop.time()) from error
        except OSError as error:
            raise self._explain(error, in_body=True) from error

    def _check_plain(self, connection: Connection) -> None:
        """Refuse a body that was packed although plain bytes were asked for."""
        packed = connection.headers.get("content-encoding", "identity")
        if packed != "identity":
            connection.close()
            raise self._fault(FaultKind.MALFORMED, f"packs its answers unasked ({packed[:20]})")

    async def _read_rest(self, connection: Connection, deadline: float) -> bytes:
        body = bytearray()
        try:
            while more := await connection.read(deadline):
                body += more
                if len(body) > MAX_EVENT_BYTES:
                    raise self._fault(FaultKind.MALFORMED, "sends an answer without end")
            return bytes(body)
        except (TimeoutError, OSError) as error:
            raise self._note(self._explain(error, in_body=True)) from error

    async def _read_error(self, connection: Connection) -> bytes:
        """The body of an error as far as it comes: the status alone says much already."""
        body = b""
        patience = min(PROBE_SECONDS, self._timeouts.idle)
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
            return waits.fault(self._name, stage, asyncio.get_running_loop().time())
        if in_body:
            return self._fault(FaultKind.INTERRUPTED, "broke off its answer")
        if isinstance(error, NoConnection):
            return self._fault(FaultKind.UNAVAILABLE, f"cannot be reached ({error})")
        if isinstance(error, Garbled):
            words = redact(str(error), self.secrets)
            return self._fault(FaultKind.MALFORMED, f"does not speak HTTP as expected ({words})")
        return self._fault(FaultKind.UNAVAILABLE, "closed the connection before it answered")

    def _fault(self, kind: FaultKind, what: str) -> UpstreamFault:
        return UpstreamFault(kind, f"The backend {self._name} {what}")


def _unpack(body: bytes) -> bytes:
    """The beginning of a body that was packed unasked (gzip or zlib); as it is where it cannot be
    read."""
    try:
        return zlib.decompressobj(zlib.MAX_WBITS | 32).decompress(body, ERROR_BODY_BYTES)
    except zlib.error:
        return body
