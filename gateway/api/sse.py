"""A chat answer on the wire: headers late, pings while waiting, the truth at the end.

The 200 is held back until the upstream's first chunk (at most `hold_seconds`), so that an error
before it is a status code and a fallback can still serve. After it, a failure is an error event
without [DONE]; a client that leaves cancels the upstream.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from gateway.api.errors import error_response, log_unexpected, unexpected
from gateway.api.ready import batch
from gateway.api.watch import CLIENT_LEFT, note_code
from gateway.backends.base import Completion
from gateway.errors import GatewayError, UpstreamFailed
from gateway.flows.auxiliary import RULE, AuxiliaryReply, open_chat
from gateway.flows.context import Context
from gateway.flows.incoming import Incoming
from gateway.flows.turn import Turn
from gateway.wire.json_text import dump_bytes

log = logging.getLogger("foldgate.api")

# A client may send thousands of fields; a header of more than 8 KB loses it the whole answer.
_NAMES_CHARS = 1_000
# The backend tells first, with what came of the reply; this is for what has no end of its own.
_GRACE_SECONDS = 1.0
# How often headers ask again whether it is settled which backend they have to name.
_MOVING_SECONDS = 0.05

Served = Turn | AuxiliaryReply

DONE = b"data: [DONE]\n\n"
PING = b": ping\n\n"
_STREAM_HEADERS = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


def turn_headers(served: Served) -> list[tuple[bytes, bytes]]:
    """What a client is told about how its request was served."""
    if isinstance(served, AuxiliaryReply):
        return _auxiliary_headers(served)
    prepared = served.prepared
    headers = [
        (b"x-foldgate-conversation", prepared.begun.conversation.id.encode()),
        (b"x-foldgate-backend", prepared.backend.name.encode("latin-1", "replace")),
        (b"x-foldgate-rule", prepared.begun.rule.encode()),
        (b"x-foldgate-view", prepared.begun.view_kind.encode()),
    ]
    if prepared.begun.progress is not None:
        headers.append((b"x-foldgate-migration", str(prepared.begun.progress).encode()))
    if failed := prepared.begun.question.answers.failed:
        headers.append((b"x-foldgate-lookups-failed", ", ".join(failed).encode()))
    return [*headers, *_dropped(prepared.dropped)]


def _auxiliary_headers(served: AuxiliaryReply) -> list[tuple[bytes, bytes]]:
    headers = [
        (b"x-foldgate-backend", served.backend.name.encode("latin-1", "replace")),
        (b"x-foldgate-rule", RULE.encode()),
        (b"x-foldgate-view", b"passthrough"),
    ]
    if served.link is not None:
        headers.insert(0, (b"x-foldgate-conversation", served.link.id.encode()))
    return [*headers, *_dropped(served.dropped)]


def _dropped(dropped: Sequence[str]) -> list[tuple[bytes, bytes]]:
    headers = []
    if dropped:
        names = ", ".join(name for name in dropped if name.isascii() and name.isprintable())
        if len(names) > _NAMES_CHARS:
            names = names[:_NAMES_CHARS].rpartition(", ")[0] + ", ..."
        headers.append((b"x-foldgate-dropped-params", names.encode()))
    return headers


class ChatResponse(Response):
    """Serves one prepared chat request, streamed or whole, as an ASGI response."""

    def __init__(self, ctx: Context, incoming: Incoming, request_id: str, *, pings: bool) -> None:
        super().__init__()
        self._ctx = ctx
        self._incoming = incoming
        self._request_id = request_id
        self._pings = pings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the turn; a disconnect cancels it, and it is waited for (its rows are written)."""
        serve = self._stream if self._incoming.request.stream else self._whole
        task = asyncio.current_task()
        assert task is not None
        has_left = False

        async def watch() -> None:
            nonlocal has_left
            await _disconnected(receive)
            has_left = True
            note_code(scope, CLIENT_LEFT)
            task.cancel()

        # The turn runs in the task that the server gave the request: one of its own would cost
        # as much as a statement. The watch ends with it, so it never cancels what comes after.
        watching = asyncio.get_running_loop().create_task(watch())
        try:
            await serve(scope, receive, send)
        except asyncio.CancelledError:
            if not has_left or task.cancelling() > 1:
                note_code(scope, CLIENT_LEFT)
                raise
        finally:
            watching.cancel()
            if has_left:
                task.uncancel()

    async def _whole(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            turn, completion = await self._complete()
        except GatewayError as error:
            await error_response(error)(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), *turn_headers(turn)]
        headers.append((b"content-length", str(len(completion.data)).encode()))
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": completion.data})

    async def _complete(self) -> tuple[Served, Completion]:
        """The turn and its whole reply. Raises GatewayError."""
        deadline = self._deadline()
        async with (
            self._patience(deadline, "whole reply"),
            self._ctx.turns.turn(self._incoming, deadline),
        ):
            turn = await self._open(deadline)
            return turn, await turn.complete()

    async def _open(self, deadline: float | None) -> Served:
        served = await open_chat(self._ctx, self._incoming, self._request_id, deadline)
        if isinstance(served, Turn):
            self._ctx.turns.join(self._incoming, served.prepared.begun.conversation.id)
        return served

    @asynccontextmanager
    async def _patience(self, deadline: float | None, what: str) -> AsyncIterator[asyncio.Timeout]:
        """Raises GatewayError before the client gives up, whatever still hangs then."""
        end = None if deadline is None else deadline + _GRACE_SECONDS
        try:
            async with asyncio.timeout_at(end) as patience:
                yield patience
        except TimeoutError as error:
            if not patience.expired():
                raise
            seconds = self._ctx.settings.patience_seconds
            raise UpstreamFailed(
                f"There is no {what} after {seconds:g} s, and clients wait little longer. "
                "Try again, or ask for a stream with pings.",
                status=504,
                code="upstream_timeout",
            ) from error

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._ctx.settings.patience_seconds

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        out = _EventStream(send, self._ctx.settings.ping_seconds if self._pings else None)
        out.open_after(self._ctx.settings.hold_seconds)
        try:
            deadline = self._deadline()
            async with self._ctx.turns.turn(self._incoming, deadline):
                await self._relay(out, deadline)
            await out.end()
        except GatewayError as error:
            if out.has_begun:
                note_code(scope, error.code)
                await out.fail(error)
            else:
                await error_response(error)(scope, receive, send)
        except Exception as error:
            if not out.has_begun:
                raise
            log_unexpected(self._request_id, error)
            note_code(scope, unexpected(self._request_id).code)
            await out.fail(unexpected(self._request_id))
        finally:
            out.close()

    async def _relay(self, out: _EventStream, deadline: float) -> None:
        with_usage = self._incoming.request.include_usage
        # Who hears pings waits; who does not gives up where nothing comes.
        async with self._patience(None if self._pings else deadline, "word") as patience:
            turn = await self._open(deadline)
            out.serves(turn)
            async with aclosing(turn.stream()) as chunks:
                async for chunk in batch(chunks, out.flush):
                    if patience.when() is not None:
                        patience.reschedule(None)
                    is_whole = with_usage or chunk.text is not None  # mere text brings no usage
                    data = chunk.data if is_whole else _without_usage(chunk.parsed, chunk.data)
                    if data is not None:
                        out.event(data)


def _without_usage(parsed: dict[str, Any], data: bytes) -> bytes | None:
    """The chunk for a client that did not ask for usage: unchanged nearly always."""
    if parsed.get("usage") is None:
        return data
    if not parsed.get("choices"):
        return None
    return dump_bytes({key: value for key, value in parsed.items() if key != "usage"})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _EventStream:
    """The response's side of a stream: opens once, pings when silent, ends once.

    Events wait for the next flush, and go out together.
    """

    def __init__(self, send: Send, ping_seconds: float | None) -> None:
        self._send = send
        self._ping_seconds = ping_seconds
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._turn: Served | None = None
        self._said = 0.0
        self._told: list[tuple[bytes, bytes]] = []
        self._has_told = False
        self._waiting: list[bytes] = []
        self.is_open = False

    @property
    def has_begun(self) -> bool:
        """Whether it is too late for another answer than this stream."""
        return self.is_open or bool(self._waiting)

    def open_after(self, seconds: float) -> None:
        self._timer = self._loop.call_later(seconds, self._spawn, self._open_early)

    def serves(self, turn: Served) -> None:
        """Name the turn whose headers are to be sent; its backend is fixed once they are."""
        self._turn = turn
        turn.is_sent = self.is_open

    def _spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task = asyncio.ensure_future(work())

    async def _open_early(self) -> None:
        if self._turn is not None and self._turn.is_moving:
            self.open_after(_MOVING_SECONDS)
            return
        await self._open()
        await self._ping()

    async def _open(self) -> None:
        if self.is_open:
            return
        self.is_open = True
        headers = list(_STREAM_HEADERS)
        if self._turn is not None:
            self._turn.is_sent = True
            self._told = turn_headers(self._turn)
            headers += self._told
        if self._timer is not None:
            self._timer.cancel()
        self._said = self._loop.time()
        if self._ping_seconds is not None:
            self._timer = self._loop.call_later(self._ping_seconds, self._when_silent)
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})

    def _when_silent(self) -> None:
        assert self._ping_seconds is not None
        silent = self._loop.time() - self._said
        if silent >= self._ping_seconds * 0.9:
            self._spawn(self._ping)
            silent = 0.0
        self._timer = self._loop.call_later(self._ping_seconds - silent, self._when_silent)

    async def _ping(self) -> None:
        if self._ping_seconds is not None:
            self._said = self._loop.time()
            await self._send(_body(PING))

    def event(self, data: bytes) -> None:
        """Say this with the next flush."""
        if self.is_open and not self._has_told:
            self._has_told = True
            self._tell_late()
        self._waiting.append(b"data: " + data + b"\n\n")

    def _tell_late(self) -> None:
        """Say in comments what the headers could not: they left before it was known who serves, or
        before the view was cut for another attempt."""
        found = [] if self._turn is None else turn_headers(self._turn)
        if found != self._told:
            lines = b"".join(b": %s: %s\n" % pair for pair in found)
            self._waiting.append(lines + b"\n")

    async def flush(self) -> None:
        """Send the events that wait."""
        if self._waiting:
            await self._say(b"")

    async def end(self) -> None:
        await self._say(DONE, more=False)

    async def fail(self, error: GatewayError) -> None:
        """An error event, and no [DONE]: nobody may take the half for the whole."""
        await self._say(b"data: " + dump_bytes(error.body()) + b"\n\n", more=False)

    async def _say(self, last: bytes, *, more: bool = True) -> None:
        if not self.is_open:
            await self._open()
        data = b"".join(self._waiting) + last
        self._waiting.clear()
        self._said = self._loop.time()
        await self._send(_body(data, more=more))

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()


def _body(data: bytes, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}
