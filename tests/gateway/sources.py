"""A source of notes on a real port, for the tests that ask one."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from aiohttp import web

from gateway.wire.json_text import dump_bytes, loads


class Source:
    """Answers POSTs with `answer` (JSON, or bytes as they are) and `status`, and remembers what it
    was sent. Where `silent` is set it never answers."""

    def __init__(self, *notes: Any) -> None:
        self.answer: Any = {"notes": list(notes)}
        self.status = 200
        self.headers: dict[str, str] = {}
        self.silent = False
        self.questions: list[dict[str, Any]] = []
        self.seen: list[dict[str, str]] = []
        self._gone = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/notes", self._serve)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        (address,) = self._runner.addresses
        self.url = f"http://127.0.0.1:{address[1]}/notes"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._gone.set()
        assert self._runner is not None
        await self._runner.cleanup()

    async def _serve(self, request: web.Request) -> web.Response:
        self.questions.append(loads(await request.read()))
        self.seen.append({name.lower(): value for name, value in request.headers.items()})
        if self.silent:
            await self._gone.wait()
        body = self.answer if isinstance(self.answer, bytes) else dump_bytes(self.answer)
        return web.Response(body=body, status=self.status, headers=self.headers)
