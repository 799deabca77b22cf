"""An upstream that speaks as llama-server does and lets a test say what happens when.

It needs no model: replies come in small pieces with a pause between them, so that a stream has
moments in which something can be killed, and each reply is another one, so that a reply can be
recognised byte for byte.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

from aiohttp import web

from policies.language import language_of
from tests.e2e.tales import LANGUAGES, tell

WINDOW = 32_768
Script = Callable[[int, web.Request], Awaitable[web.StreamResponse | None]]


class SmallModel:
    """An HTTP server on a free loopback port.

    pause: seconds between two pieces of a stream. script: called with each chat request and its
    number from 1; its answer, or None for the usual reply. bodies: every chat request as it came.
    """

    def __init__(self, *, pause: float = 0.0) -> None:
        self.pause = pause
        self.bodies: list[bytes] = []
        self.script: Script = _no_script
        self.url = ""
        self._numbers = itertools.count(1)
        app = web.Application(client_max_size=2**28)
        app.router.add_get("/health", self._health)
        app.router.add_get("/props", self._props)
        app.router.add_post("/v1/chat/completions", self._chat)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _props(self, _request: web.Request) -> web.Response:
        settings = {"n_ctx": WINDOW}
        return web.json_response({"default_generation_settings": settings, "total_slots": 4})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        number = next(self._numbers)
        self.bodies.append(await request.read())
        if (answer := await self.script(number, request)) is not None:
            return answer
        asked = json.loads(self.bodies[-1])
        pieces = pieces_of(number, language_of(str(asked["messages"][-1]["content"])) or "en")
        if not asked.get("stream"):
            return answer_whole({"content": "".join(pieces)})
        deltas = [{"content": piece} for piece in pieces]
        return await answer_streamed(request, deltas, pause=self.pause)


async def _no_script(_number: int, _request: web.Request) -> None:
    """The usual reply, always."""


def pieces_of(number: int, language: str) -> list[str]:
    """The pieces of reply `number`, a few characters each; no other reply is like it."""
    known = language if language in LANGUAGES else "en"
    text = "".join(tell(number * 3 + place, known) for place in range(1 + number % 2))
    text += f"🎉 ({number})"
    return [text[at : at + 12] for at in range(0, len(text), 12)]


def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    """One chunk of a stream."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "small"}
    return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"


async def answer_streamed(
    request: web.Request,
    deltas: Sequence[dict[str, Any]],
    finish: str = "stop",
    *,
    pause: float = 0.0,
) -> web.StreamResponse:
    """A stream with its role first and its end last; pause: seconds after each delta."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(event({"role": "assistant", "content": None}))
    for delta in deltas:
        await response.write(event(delta))
        await asyncio.sleep(pause)
    await response.write(event({}, finish) + b"data: [DONE]\n\n")
    return response


def answer_whole(said: dict[str, Any], finish: str = "stop") -> web.Response:
    """A whole answer; said: its message without the role."""
    message = {"role": "assistant", **said}
    return web.json_response(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "small",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        }
    )


def answer_error(status: int, headers: dict[str, str] | None = None) -> web.Response:
    """A refusal in llama-server's envelope."""
    error = {"code": status, "message": "come again", "type": "unavailable_error"}
    return web.json_response({"error": error}, status=status, headers=headers)
