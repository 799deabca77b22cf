"""A scripted HTTP server on raw TCP: it plays bytes, stalls and resets exactly as told.

Recorded exchanges cannot show where chunks were cut, how long a silence was or that a connection
broke; this can. It answers each request with the next exchange of its script:

    async with FaultServer() as server:
        server.play(stream(delta("Hel"), delta("lo"), end("stop"), DONE))
        ...
        server.requests[0].json["messages"]
        await server.gone(0)   # until the client has closed the connection of request 0
"""

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Self

DONE = "[DONE]"

End = Literal["end", "cut", "reset", "stall"]
"""How an exchange ends: whole; closed without the end of its body; reset; silent for ever."""


@dataclass(frozen=True)
class Exchange:
    """What one request is answered with: pieces of bytes in separate writes, then an end."""

    pieces: tuple[bytes, ...]
    end: End = "end"
    hold: asyncio.Event | None = None
    """Waited for before the first byte."""
    pause: float = 0.0
    """Seconds between two pieces."""


@dataclass
class Request:
    """One request as it came."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the client has closed the connection."""

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def delta(content: str | None = None, **fields: Any) -> dict[str, Any]:
    """A chunk of choice 0; `fields` go into its delta."""
    piece = fields if content is None else {"content": content, **fields}
    return chunk({"index": 0, "delta": piece, "finish_reason": None})


def role() -> dict[str, Any]:
    """The first chunk, as llama-server sends it."""
    return delta(role="assistant", content=None)


def end(reason: str | None, content: str | None = None) -> dict[str, Any]:
    """The chunk that ends choice 0."""
    piece = {} if content is None else {"content": content}
    return chunk({"index": 0, "delta": piece, "finish_reason": reason})


def usage(prompt: int = 11, completion: int = 3) -> dict[str, Any]:
    """The chunk of usage."""
    total = {"prompt_tokens": prompt, "completion_tokens": completion}
    return chunk() | {"usage": total | {"total_tokens": prompt + completion}}


def chunk(*choices: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": list(choices),
    }


def completion(content: str | None, reason: str | None = "stop", **message: Any) -> dict[str, Any]:
    """A whole answer."""
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": content, **message},
                "finish_reason": reason,
            }
        ],
        "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
    }


def encode_event(event: dict[str, Any] | str | bytes) -> bytes:
    """An event of a stream: an object as JSON, a text as its data, bytes as they are."""
    if isinstance(event, bytes):
        return event
    text = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
    return f"data: {text}\n\n".encode()


def stream(
    *events: dict[str, Any] | str | bytes,
    end: End = "end",
    cut_every: int | None = None,
    hold: asyncio.Event | None = None,
    pause: float = 0.0,
    content_type: str = "text/event-stream",
) -> Exchange:
    """A 200 with chunked encoding, one write an event, or writes of `cut_every` bytes."""
    bodies: Sequence[bytes] = [encode_event(event) for event in events]
    if cut_every is not None:
        whole = b"".join(bodies)
        bodies = [whole[at : at + cut_every] for at in range(0, len(whole), cut_every)]
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ).encode()
    pieces = [head, *(b"%x\r\n%b\r\n" % (len(body), body) for body in bodies if body)]
    if end == "end":
        pieces.append(b"0\r\n\r\n")
    return Exchange(tuple(pieces), end, hold, pause)


def answer(
    status: int,
    body: dict[str, Any] | bytes,
    headers: dict[str, str] | None = None,
    *,
    end: End = "end",
    hold: asyncio.Event | None = None,
    content_type: str = "application/json",
) -> Exchange:
    """A whole response. With end "cut" or "stall" half of the body is sent."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = {"Content-Type": content_type, "Content-Length": str(len(data)), **(headers or {})}
    head = f"HTTP/1.1 {status} Status\r\n" + "".join(f"{k}: {v}\r\n" for k, v in lines.items())
    sent = data if end == "end" else data[: len(data) // 2]
    return Exchange((head.encode() + b"\r\n", sent), end, hold)


class FaultServer:
    """Listens on a free loopback port. Chat requests take the script's exchanges in order; other
    paths take `routes[path]`, or 404."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.connections = 0
        self.routes: dict[str, Exchange] = {}
        self.otherwise: Callable[[Request], Exchange] | None = None
        """What a chat request is answered with once the script is over."""
        self._script: deque[Exchange] = deque()
        self._server: asyncio.Server | None = None
        self._open: set[_Connection] = set()

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        tasks = [connection.task for connection in self._open]
        for connection in tuple(self._open):
            connection.task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    @property
    def chats(self) -> list[Request]:
        """The chat requests alone."""
        return [request for request in self.requests if _is_chat(request.path)]

    def play(self, *exchanges: Exchange) -> None:
        """Append to the script."""
        self._script.extend(exchanges)

    async def asked(self, number: int = 0) -> Request:
        """Chat request `number`, once it has come."""
        while len(self.chats) <= number:
            await asyncio.sleep(0.001)
        return self.chats[number]

    async def gone(self, number: int = 0) -> None:
        """Until the client has closed the connection of chat request `number`; at most 1 s."""
        async with asyncio.timeout(1):
            await (await self.asked(number)).gone.wait()

    def choose(self, request: Request) -> Exchange:
        """The exchange that a request is answered with."""
        self.requests.append(request)
        if _is_chat(request.path):
            if not self._script and self.otherwise is not None:
                return self.otherwise(request)
            if not self._script:
                return answer(500, {"error": {"message": "the script is over"}})
            return self._script.popleft()
        path = request.path.partition("?")[0]
        return self.routes.get(path) or answer(404, {"error": {"message": "no such path"}})

    def opened(self, connection: "_Connection") -> None:
        self.connections += 1
        self._open.add(connection)

    def closed(self, connection: "_Connection") -> None:
        self._open.discard(connection)


class _Connection(asyncio.Protocol):
    """One connection: requests one after the other, each answered by an exchange."""

    def __init__(self, server: FaultServer) -> None:
        self._server = server
        self._buffer = b""
        self._news = asyncio.Event()
        self._gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.opened(self)
        self.task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._news.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone.set()
        self._news.set()

    async def _serve(self) -> None:
        try:
            while (request := await self._read_request()) is not None:
                request.gone = self._gone
                if not await self._answer(self._server.choose(request)):
                    break
        finally:
            self._transport.close()
            self._server.closed(self)

    async def _answer(self, exchange: Exchange) -> bool:
        """Play an exchange; whether the connection goes on."""
        if exchange.hold is not None:
            waits = [asyncio.ensure_future(e.wait()) for e in (exchange.hold, self._gone)]
            await asyncio.wait(waits, return_when="FIRST_COMPLETED")
            for wait in waits:
                wait.cancel()
        for piece in exchange.pieces:
            if self._gone.is_set():
                return False
            self._transport.write(piece)
            await asyncio.sleep(exchange.pause)
        if exchange.end == "stall":
            await self._gone.wait()
        elif exchange.end == "reset":
            sock: socket.socket = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._transport.abort()
        return exchange.end == "end"

    async def _read_request(self) -> Request | None:
        head = await self._take_until(b"\r\n\r\n")
        if head is None:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, path, _ = first.split(" ")
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = await self._take_chunks()
        else:
            body = await self._take(int(headers.get("content-length", "0")))
        return None if body is None else Request(method, path, headers, body)

    async def _take_chunks(self) -> bytes | None:
        body = b""
        while True:
            size = await self._take_until(b"\r\n")
            piece = await self._take(int(size, 16) + 2) if size is not None else None
            if size is None or piece is None:
                return None
            body += piece[:-2]
            if len(piece) == 2:
                return body

    async def _take_until(self, mark: bytes) -> bytes | None:
        while mark not in self._buffer:
            if not await self._wait():
                return None
        taken, _, self._buffer = self._buffer.partition(mark)
        return taken

    async def _take(self, count: int) -> bytes | None:
        while len(self._buffer) < count:
            if not await self._wait():
                return None
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        return taken

    async def _wait(self) -> bool:
        self._news.clear()
        if self._gone.is_set():
            return False
        await self._news.wait()
        return True


def _is_chat(path: str) -> bool:
    """Chat completions of OpenAI's kind, and Gemini's `models/NAME:streamGenerateContent`."""
    path = path.partition("?")[0]
    return path.endswith("/chat/completions") or ":" in path.rpartition("/")[2]
