"""The relay changes no byte, keeps the chat calls, and passes a client's leaving on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest_asyncio
from aiohttp import web

from gateway.demo.relay import Asked, RecordingRelay

CHUNKS = (b'data: {"a":\n', "data: 灯台 🌟\n\n".encode(), b"data: [DONE]\n\n")
MESSAGES = [{"role": "user", "content": "霧の夜には三度鳴らす。"}]


class Upstream:
    """A server that answers in chunks, or holds a call until it is cancelled."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.arrived, self.left = asyncio.Event(), asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.raw_path)
        self.bodies.append(await request.read())
        self.arrived.set()
        if "hold" in request.query:
            try:
                await asyncio.Event().wait()
            finally:
                self.left.set()
        status = int(request.query.get("status", "200"))
        response = web.StreamResponse(status=status, headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for chunk in CHUNKS:
            await response.write(chunk)
        return response


@pytest_asyncio.fixture
async def upstream() -> AsyncIterator[tuple[Upstream, str]]:
    server = Upstream()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield server, f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def post(url: str, body: Any) -> tuple[int, bytes]:
    async with aiohttp.ClientSession() as client, client.post(url, json=body) as answer:
        return answer.status, await answer.read()


async def test_bytes_pass_unchanged_in_both_directions(
    upstream: tuple[Upstream, str], tmp_path: Path
) -> None:
    server, url = upstream
    body = '{"a": "灯台",  "n": 1}'.encode()
    async with (
        RecordingRelay(url, tmp_path / "prompts.jsonl") as relay,
        aiohttp.ClientSession() as client,
    ):
        async with client.post(f"{relay.url}/tokenize?x=a%20b", data=body) as answer:
            assert answer.headers["Content-Type"] == "text/event-stream"
            assert await answer.read() == b"".join(CHUNKS)
    assert server.bodies == [body]
    assert server.paths == ["/tokenize?x=a%20b"]


async def test_chat_calls_are_kept_with_their_status(
    upstream: tuple[Upstream, str], tmp_path: Path
) -> None:
    _, url = upstream
    async with RecordingRelay(url, tmp_path / "prompts.jsonl") as relay:
        chat = f"{relay.url}/v1/chat/completions"
        await post(chat, {"messages": MESSAGES, "stream": True})
        assert (await post(f"{chat}?status=400", {"messages": [], "stream": True}))[0] == 400
        await post(f"{relay.url}/tokenize", {"messages": MESSAGES, "stream": True})
        assert relay.calls == [Asked(MESSAGES, 200), Asked([], 400)]
        lines = (tmp_path / "prompts.jsonl").read_text().splitlines()
        assert list(map(json.loads, lines)) == [MESSAGES, []]
        relay.is_recording = False
        await post(chat, {"messages": MESSAGES, "stream": True})
        assert len(relay.calls) == 2


async def test_a_client_that_leaves_ends_the_call_behind(
    upstream: tuple[Upstream, str], tmp_path: Path
) -> None:
    server, url = upstream
    async with RecordingRelay(url, tmp_path / "prompts.jsonl") as relay:
        call = asyncio.create_task(post(f"{relay.url}/v1/chat/completions?hold=1", {}))
        await server.arrived.wait()
        call.cancel()
        async with asyncio.timeout(5):
            await server.left.wait()


async def test_without_a_server_behind_it_says_so(tmp_path: Path) -> None:
    async with RecordingRelay("http://127.0.0.1:9", tmp_path / "prompts.jsonl") as relay:
        status, said = await post(f"{relay.url}/props", {})
    assert status == 502
    assert said.startswith(b"llama-server is not there")
