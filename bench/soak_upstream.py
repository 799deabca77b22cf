"""A llama-server that fails one request in ten, in each of the ways in which one fails.

Run as `python -m bench.soak_upstream SEED`; its first line of output is its port. Every reply is
another one, so that each can be recognised in the database.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import random
import sys
from typing import Any

from aiohttp import web

FAULTS = 0.10
"""The share of chat requests that fail."""

SECONDS = 0.05
"""A reply takes this long, in pieces."""
PIECES = 5
WAYS = ("503", "429", "dropped", "cut", "silent")
_SAID = (
    "The lamp burns low, 雨が降る, {n} gulls sit on the breakwater and he keeps the log. 🎉({n})"
)


class FaultyServer:
    """draw: the chance that decides which request fails, and how."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw
        self._numbers = itertools.count(1)

    def app(self) -> web.Application:
        app = web.Application(client_max_size=2**26)
        app.router.add_get("/health", self._health)
        app.router.add_get("/props", self._props)
        app.router.add_post("/v1/chat/completions", self._chat)
        return app

    def choose_fault(self) -> str | None:
        """How the next request fails; None for most."""
        return self._draw.choice(WAYS) if self._draw.random() < FAULTS else None

    async def _health(self, _request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _props(self, _request: web.Request) -> web.Response:
        settings = {"n_ctx": 32_768}
        return web.json_response({"default_generation_settings": settings, "total_slots": 16})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        asked = json.loads(await request.read())
        fault = self.choose_fault()
        if fault in ("503", "429"):
            error = {"code": int(fault), "message": "come again", "type": "unavailable_error"}
            return web.json_response({"error": error}, status=int(fault), headers=_wait(fault))
        if fault == "dropped" and request.transport is not None:
            request.transport.abort()
            return web.Response()
        text = _SAID.format(n=next(self._numbers))
        if not asked.get("stream"):
            await asyncio.sleep(SECONDS)
            return web.json_response(_whole("" if fault == "silent" else text))
        return await _stream(request, text, fault)


def _wait(fault: str) -> dict[str, str] | None:
    return {"retry-after": "1"} if fault == "429" else None


def _whole(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}


async def _stream(request: web.Request, text: str, fault: str | None) -> web.StreamResponse:
    """cut: the connection ends in the middle; silent: it ends in order and nothing was said."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    await response.write(_event({"role": "assistant", "content": None}))
    size = -(-len(text) // PIECES)
    for at in range(0, 0 if fault == "silent" else len(text), size):
        await asyncio.sleep(SECONDS / PIECES)
        if fault == "cut" and at > size and request.transport is not None:
            request.transport.abort()
            return response
        await response.write(_event({"content": text[at : at + size]}))
    await response.write(_event({}, "stop") + b"data: [DONE]\n\n")
    return response


def _event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"


async def _main(seed: int) -> None:
    # Connections end in the middle all the time, by its own doing and by the kills.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    server = FaultyServer(random.Random(seed))
    runner = web.AppRunner(server.app(), handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
