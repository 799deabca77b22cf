"""An instant llama-server: the surface that the gateway asks for, and no model behind it.

Raw asyncio, so that what is measured is the relay before it. Streams are written one chunk a turn
of the event loop, as tokens come, only faster. Run as `python -m bench.upstream`; its first line of
output is its port.
"""

from __future__ import annotations

import asyncio
import json
import sys
from itertools import islice
from typing import cast

import uvloop

CHUNKS = 35
"""Chunks of a streamed answer with text, as in the figures that the aims were set by."""

_WORDS = ("The", " lamp", " burns", " low", ";", " 雨", " keeps", " falling", ",", " and", " he")
_SAID = [_WORDS[index % len(_WORDS)] for index in range(CHUNKS)]
REPLY = "".join(_SAID)
"""What it always answers."""
# Stands for the number of a request's tokens, and is as wide as what takes its place.
_COUNT = 1_111_111_111
_BYTES_PER_TOKEN = 4
_USAGE = {"prompt_tokens": _COUNT, "completion_tokens": CHUNKS, "total_tokens": _COUNT}
_TIMINGS = {"cache_n": 0, "prompt_n": _COUNT, "predicted_n": CHUNKS, "predicted_ms": 1.0}
_BASE = {"id": "chatcmpl-bench", "created": 1764500000, "model": "bench"}


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _whole(body: bytes) -> bytes:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % len(body) + body


def _answer() -> bytes:
    message = {"role": "assistant", "content": REPLY}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    rest = {"choices": [choice], "usage": _USAGE, "timings": _TIMINGS}
    return _whole(_json({**_BASE, "object": "chat.completion", **rest}))


def _chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {**_BASE, "object": "chat.completion.chunk", "choices": [choice]}


def _chunks() -> list[bytes]:
    """The writes of a streamed answer: the head with the role, 35 texts, the end with [DONE]."""
    end = {**_chunk({}, "stop"), "timings": _TIMINGS}
    usage = {**_BASE, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE}
    events = [
        _json(_chunk({"role": "assistant"})),
        *(_json(_chunk({"content": word})) for word in _SAID),
        _json(end),
        _json({**usage, "timings": _TIMINGS}),
        b"[DONE]",
    ]
    sizes = [1, *([1] * CHUNKS), 3]
    data = iter(b"data: %s\n\n" % event for event in events)
    return [b"".join(islice(data, size)) for size in sizes]


_HEALTH = _whole(b'{"status":"ok"}')
# A slot for every connection of the load: the line before slots is what `make hammer` measures.
_PROPS = _whole(_json({"default_generation_settings": {"n_ctx": 65_536}, "total_slots": 16}))
_COUNTED = _whole(_json({"input_tokens": _COUNT}))
_ANSWER = _answer()
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)
_STREAM = [b"%x\r\n%s\r\n" % (len(data), data) for data in _chunks()]
_STREAM[0] = _STREAM_HEAD + _STREAM[0]
_STREAM[-1] += b"0\r\n\r\n"


class LlamaServer(asyncio.Protocol):
    """One connection; requests on it are answered in order."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._data = b""
        self._need = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports behave as asyncio's and are no subclass of them.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        self._data = self._data + data if self._data else data
        while len(self._data) >= self._need:
            end = self._data.find(b"\r\n\r\n")
            if end < 0:
                return
            self._need = end + 4 + _content_length(self._data[:end])
            if len(self._data) < self._need:
                return
            request, self._data = self._data[: self._need], self._data[self._need :]
            self._need = 0
            self._serve(request)
            if not self._data:
                return

    def _serve(self, request: bytes) -> None:
        assert self._transport is not None
        tokens = len(request) // _BYTES_PER_TOKEN
        if request.startswith(b"POST /v1/chat/completions "):
            if b'"stream":true' in request:
                self._stream(0, _count(_STREAM[-1], tokens))
            else:
                self._transport.write(_count(_ANSWER, tokens))
        elif request.startswith(b"POST /v1/chat/completions/input_tokens"):
            self._transport.write(_count(_COUNTED, tokens))
        elif request.startswith(b"GET /props"):
            self._transport.write(_PROPS)
        else:
            self._transport.write(_HEALTH)

    def _stream(self, index: int, end: bytes) -> None:
        if self._transport is None:
            return
        if index + 1 < len(_STREAM):
            self._transport.write(_STREAM[index])
            self._loop.call_soon(self._stream, index + 1, end)
        else:
            self._transport.write(end)


def _count(answer: bytes, tokens: int) -> bytes:
    """The answer with the number of tokens in it, of the same length."""
    return answer.replace(b"%d" % _COUNT, b"%10d" % tokens)


def _content_length(head: bytes) -> int:
    at = head.lower().find(b"content-length:")
    return 0 if at < 0 else int(head[at + 15 :].split(b"\r\n", 1)[0])


async def _main() -> None:
    server = await asyncio.get_running_loop().create_server(LlamaServer, "127.0.0.1", 0)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(_main())
