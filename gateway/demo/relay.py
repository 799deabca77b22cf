"""A pass-through between the gateway and llama-server that keeps what was really asked.

What a model was shown is proved by what reached its server, not by what the gateway says of it.
Bytes go through unchanged in both directions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web
from yarl import URL

_CHAT = "/v1/chat/completions"
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})
_LARGEST_BODY = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Asked:
    """A chat call that reached llama-server, and the status it was answered with."""

    messages: Sequence[dict[str, Any]]
    status: int


class RecordingRelay:
    """A loopback HTTP server before another, for as long as its context lasts.

    calls: the chat calls in their order, the recorder's among them; each is also a line of the file
    `record`, a JSON list of messages, for people to read.
    """

    def __init__(self, target: str, record: Path) -> None:
        self._target = target
        self._record = record
        self._opened = AsyncExitStack()
        self._client: aiohttp.ClientSession | None = None
        self.url = ""
        self.calls: list[Asked] = []
        self.is_recording = True

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as opening:
            timeout = aiohttp.ClientTimeout(total=None)
            self._client = await opening.enter_async_context(
                aiohttp.ClientSession(timeout=timeout, auto_decompress=False, trust_env=False)
            )
            app = web.Application(client_max_size=_LARGEST_BODY)
            app.router.add_route("*", "/{path:.*}", self._pass)
            # A client that leaves ends the handler, and that the upstream call.
            runner = web.AppRunner(
                app, handler_cancellation=True, access_log=None, shutdown_timeout=1.0
            )
            await runner.setup()
            opening.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            host, port = runner.addresses[0][:2]
            self.url = f"http://{host}:{port}"
            self._opened = opening.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        assert self._client is not None
        body = await request.read()
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        url = URL(f"{self._target}{request.raw_path}", encoded=True)
        try:
            async with self._client.request(
                request.method, url, data=body or None, headers=headers, allow_redirects=False
            ) as answer:
                self._keep(request, body, answer.status)
                return await _send_on(request, answer)
        except aiohttp.ClientConnectionError as error:
            raise web.HTTPBadGateway(text=f"llama-server is not there: {error}") from error

    def _keep(self, request: web.Request, body: bytes, status: int) -> None:
        if not self.is_recording or request.method != "POST" or request.path != _CHAT:
            return
        messages = json.loads(body)["messages"]
        self.calls.append(Asked(messages, status))
        with self._record.open("a", encoding="utf-8") as record:
            record.write(json.dumps(messages, ensure_ascii=False) + "\n")


async def _send_on(request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
    headers = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP}
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    await response.write_eof()
    return response
