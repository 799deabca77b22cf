"""The side of the clients: raw connections that are kept alive, one request at a time on each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import cast

NextRequest = Callable[[], bytes | None]
"""The bytes of the next request on a connection; None when there is none."""


class Unserved(RuntimeError):
    """A response was no success, or a connection ended in the middle of one."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a run of requests took: seconds of each, and of all together."""

    seconds: tuple[float, ...]
    elapsed: float

    @property
    def p50_ms(self) -> float:
        return median(self.seconds) * 1_000

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.seconds) / self.elapsed


async def run_load(port: int, sources: list[NextRequest]) -> Load:
    """Serve each source on a connection of its own, all at once. Raises Unserved."""
    loop = asyncio.get_running_loop()
    connections = []
    for source in sources:
        connect = partial(Connection, source)
        _, connection = await loop.create_connection(connect, "127.0.0.1", port)
        connections.append(connection)
    try:
        began = perf_counter()
        for connection in connections:
            connection.send_next()
        await asyncio.gather(*(connection.ended for connection in connections))
        elapsed = perf_counter() - began
    finally:
        for connection in connections:
            connection.close()
    return Load(tuple(s for c in connections for s in c.seconds), elapsed)


class Connection(asyncio.Protocol):
    """Sends the next request when an answer is whole; the latency of each is in `seconds`."""

    def __init__(self, source: NextRequest) -> None:
        self.seconds: list[float] = []
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._source = source
        self._transport: asyncio.Transport | None = None
        self._data = b""
        self._need = 0
        self._streamed = False
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports behave as asyncio's and are no subclass of them.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._fail("the connection was closed")

    def send_next(self) -> None:
        request = self._source()
        if request is None:
            if not self.ended.done():
                self.ended.set_result(None)
            return
        assert self._transport is not None
        self._data, self._need, self._streamed = b"", 0, False
        self._began = perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        data = self._data = self._data + data if self._data else data
        if not self._need and not self._read_head(data):
            return
        if self._streamed:
            if data.endswith(b"0\r\n\r\n"):
                self._take(b"data: [DONE]" in data[-64:])
        elif len(data) >= self._need:
            self._take(True)

    def _read_head(self, data: bytes) -> bool:
        end = data.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = data[:end].lower()
        if not head.startswith(b"http/1.1 200"):
            self._fail(data.decode(errors="replace")[:2_000])
            return False
        self._need = end + 4
        at = head.find(b"content-length:")
        if at < 0:
            self._streamed = True
        else:
            self._need += int(head[at + 15 :].split(b"\r\n", 1)[0])
        return True

    def _take(self, is_whole: bool) -> None:
        self.seconds.append(perf_counter() - self._began)
        if is_whole:
            self.send_next()
        else:
            self._fail("a stream ended without [DONE]")

    def _fail(self, why: str) -> None:
        if not self.ended.done():
            self.ended.set_exception(Unserved(why))

    def close(self) -> None:
        if not self.ended.done():
            self.ended.cancel()
        if self._transport is not None:
            self._transport.close()
