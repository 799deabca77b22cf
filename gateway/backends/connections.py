"""HTTP/1.1 to one server, as little between as is correct.

A general client wakes its reader, arms a clock and copies for every chunk that comes; a reply has a
chunk for each token, so that was the dearest part of a turn. Here the bytes of a body pile up until
they are asked for, and whoever wants a whole reply is woken seldom. Nothing is asked twice, no
redirect is followed, no proxy, cookie or netrc is known.

Why not a library (measured, 38 chunks a reply, processor time): aiohttp 3.14, reading in the same
gathering way, takes 0.43 ms for a whole reply and 0.46 ms for a stream; this takes 0.27 ms and
0.24 ms.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import cast
from urllib.parse import quote, urlsplit

import httptools

GATHER_SECONDS = 0.02
"""How long bytes that decide nothing may lie before a reader who wants all of them is woken."""

HEAD_BYTES = 65_536
"""More than any server's status line and headers."""

HIGH_WATER_BYTES = 262_144
"""From here on the server has to wait until the reader has taken something."""

_LAST_EVENT = b"[DONE]"


class NoConnection(ConnectionError):
    """The server cannot be reached; the message is the system's few words."""


class ConnectTimeout(TimeoutError):
    """The server did not take the connection in time."""


class BrokenOff(ConnectionError):
    """The connection ended before the answer did."""


class Garbled(ConnectionError):
    """What came is not HTTP; the message says why."""


class Connections:
    """The connections to one server. `url`: http(s)://host[:port][/path]; `headers` go with every
    request; `connect_seconds`: how long a connection may take to come about; `keep_seconds`: how
    long an idle one is believed to be open at the other end."""

    def __init__(
        self, url: str, headers: Mapping[str, str], *, connect_seconds: float, keep_seconds: float
    ) -> None:
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._tls = parts.scheme == "https"
        self._port = parts.port or (443 if self._tls else 80)
        self._path = quote(parts.path, safe="/%:@!$&'()*+,;=~")
        given = {"Host": parts.netloc, "Accept": "*/*", "Accept-Encoding": "identity", **headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self._fields = f" HTTP/1.1\r\n{lines}".encode("latin-1")
        self._connect_seconds = connect_seconds
        self._keep_seconds = keep_seconds
        self._context: ssl.SSLContext | None = None
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []
        self._sweep: asyncio.TimerHandle | None = None

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes | None,
        deadline: float,
        *,
        keep: bool,
    ) -> Connection:
        """Send one request; the connection with the head of its answer read. To be released or
        closed by the caller. `deadline`: the loop's seconds; `keep`: the connection may serve
        again.

        Raises NoConnection, ConnectTimeout, TimeoutError, BrokenOff, Garbled.
        """
        connection = (self._take_idle() if keep else None) or await self._connect(deadline)
        try:
            await connection.ask(self._request(method, path, body, keep), deadline, keep)
        except BaseException:
            connection.close()
            raise
        return connection

    def _request(self, method: str, path: str, body: bytes | None, keep: bool) -> bytes:
        head = f"{method} {self._path}{path}".encode("latin-1") + self._fields
        if not keep:
            head += b"Connection: close\r\n"
        if body is None:
            return head + b"\r\n"
        return b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body)

    async def _connect(self, deadline: float) -> Connection:
        loop = asyncio.get_running_loop()
        if self._tls and self._context is None:
            self._context = ssl.create_default_context()
        try:
            async with asyncio.timeout_at(min(deadline, loop.time() + self._connect_seconds)):
                _, connection = await loop.create_connection(
                    lambda: Connection(self), self._host, self._port, ssl=self._context
                )
        except TimeoutError as error:
            raise ConnectTimeout from error
        except OSError as error:
            raise NoConnection(error.strerror or str(error)) from error
        return connection

    def _take_idle(self) -> Connection | None:
        oldest = asyncio.get_running_loop().time() - self._keep_seconds
        while self._idle:
            connection = self._idle.pop()
            if connection.released_at > oldest and connection.is_reusable:
                return connection
            connection.close()
        return None

    def opened(self, connection: Connection) -> None:
        """A connection's word that it is there."""
        self._open.add(connection)

    def closed(self, connection: Connection) -> None:
        """A connection's word that it is gone."""
        self._open.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)

    def give_back(self, connection: Connection) -> None:
        """A connection's word that it may serve again."""
        self._idle.append(connection)
        if self._sweep is None:
            self._sweep_later()

    def _sweep_later(self) -> None:
        loop = asyncio.get_running_loop()
        self._sweep = loop.call_later(self._keep_seconds, self._close_old)

    def _close_old(self) -> None:
        self._sweep = None
        oldest = asyncio.get_running_loop().time() - self._keep_seconds
        while self._idle and self._idle[0].released_at <= oldest:
            self._idle.pop(0).close()
        if self._idle:
            self._sweep_later()

    async def aclose(self) -> None:
        """Close every connection; who reads from one is told that it broke off."""
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        gone = [connection.gone for connection in self._open]
        for connection in list(self._open):
            connection.close()
        if gone:
            await asyncio.wait(gone)


class Connection(asyncio.Protocol):
    """One connection, which carries one exchange at a time: `status`, `headers` (names in small
    letters) and then the body, read piece by piece.

    Every wait has a deadline in the loop's seconds, and raises TimeoutError at it.
    """

    def __init__(self, owner: Connections) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.released_at = 0.0
        self._owner = owner
        self._loop = asyncio.get_running_loop()
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._waiter: asyncio.Future[None] | None = None
        self._gathering: asyncio.TimerHandle | None = None
        self._parts: list[bytes] = []
        self._size = 0
        self._asked = self._keep = self._gather = False
        self._whole = self._surplus = self._paused = self._ripe = False
        self._fault: ConnectionError | None = None

    # --- the side of the caller ------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        """Whether the answer has come to its end."""
        return self._whole

    @property
    def is_released(self) -> bool:
        """Whether its caller is done with it."""
        return not self._asked

    @property
    def is_reusable(self) -> bool:
        """Whether another request may go out on it."""
        is_clean = self._whole and not self._surplus and not self._paused
        return is_clean and self._transport is not None

    async def ask(self, request: bytes, deadline: float, keep: bool) -> None:
        """Send a request and read the head of its answer."""
        self.status, self.headers, self._size = 0, {}, 0
        self._asked, self._keep, self._gather = True, keep, False
        self._whole = self._ripe = False
        if self._transport is None:
            raise self._fault or BrokenOff
        self._transport.write(request)
        while not self.status:
            if self._fault is not None:
                raise self._fault
            self._ripe = False
            await self._wait(deadline)

    async def read(self, deadline: float, *, gather: bool = False) -> bytes:
        """The next bytes of the body, b"" at its end.

        With `gather` they are given once the body is whole or broken, once its last event has come
        or they have lain for GATHER_SECONDS, so that many chunks take one wait. Bytes that arrived
        before the connection broke are given first. Raises TimeoutError, BrokenOff, Garbled.
        """
        self._gather = gather
        while not self._ripe or not (self._parts or self._whole or self._fault):
            self._ripe = False
            await self._wait(deadline)
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            self._size = 0
            self._ripe = self._whole or self._fault is not None
            if self._paused and self._transport is not None:
                self._paused = False
                self._transport.resume_reading()
            return data
        if self._fault is not None:
            raise self._fault
        return b""

    async def release(self, patience: float = 0.0) -> None:
        """Let the connection serve again, where it may and its answer ends within `patience`
        seconds; otherwise close it."""
        if self._keep and not self._whole and self._fault is None and patience:
            deadline = self._loop.time() + patience
            try:
                while await self.read(deadline):
                    pass
            except (TimeoutError, ConnectionError):
                self._keep = False  # all that counts has come, only not the end of its frame
        self._asked = False
        self._parts.clear()
        if not self._keep or not self.is_reusable:
            self.close()
            return
        self.released_at = self._loop.time()
        self._owner.give_back(self)

    def close(self) -> None:
        """Close at once, whatever is under way."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.abort()

    async def _wait(self, deadline: float) -> None:
        """Until `_wake`. A deadline that meets bytes which were being gathered gives those."""
        if deadline <= self._loop.time():
            raise TimeoutError
        waiter = self._waiter = self._loop.create_future()
        timer = self._loop.call_at(deadline, _expire, waiter)
        try:
            await waiter
        except TimeoutError:
            if not self._parts:
                raise
            self._ripe = True
        finally:
            timer.cancel()
            self._waiter = None

    def _wake(self) -> None:
        self._ripe = True
        if self._gathering is not None:
            self._gathering.cancel()
            self._gathering = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- the side of the network -----------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports behave as asyncio's and are no subclass of them.
        self._transport = cast(asyncio.Transport, transport)
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        if not self._asked or self._whole:
            self._surplus = True  # nobody asked for this: it would be taken for the next answer
            if not self._asked:
                self.close()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._break(Garbled(str(error)))
            return
        self._size += len(data)
        if self._size > HIGH_WATER_BYTES and self._transport is not None and not self._paused:
            self._paused = True
            self._transport.pause_reading()
        if not self.status and self._size > HEAD_BYTES:
            self._break(Garbled("a head without end"))
        elif not self._gather or self._whole or self._paused or _LAST_EVENT in data:
            self._wake()
        elif self._gathering is None:
            self._gathering = self._loop.call_later(GATHER_SECONDS, self._wake)

    def _break(self, fault: ConnectionError) -> None:
        if self._fault is None:
            self._fault = fault
        self.close()
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._owner.closed(self)
        if self._asked and not self._whole and self._fault is None:
            # A body that says neither its length nor its chunks ends with its connection.
            if self.status and error is None and self._ends_by_closing():
                self._whole = True
            else:
                self._fault = BrokenOff()
        del self._parser  # it holds this object
        self._wake()
        self.gone.set_result(None)

    def _ends_by_closing(self) -> bool:
        return "content-length" not in self.headers and "transfer-encoding" not in self.headers

    # --- the parser's callbacks ------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._surplus = self._whole

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._surplus:
            self.headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        if self._surplus:
            return
        status = self._parser.get_status_code()
        if status < 200:
            self.headers = {}  # an interim word; the answer is still to come
            return
        self.status = status
        self._keep = self._keep and self._parser.should_keep_alive()

    def on_body(self, data: bytes) -> None:
        if not self._surplus:
            self._parts.append(data)

    def on_message_complete(self) -> None:
        self._whole = bool(self.status)


def _expire(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_exception(TimeoutError())
