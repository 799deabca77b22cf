"""Deletion over HTTP while a model is at work on what is deleted: nothing comes back (law 10)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import web

from tests.e2e.running_gateway import RunningGateway
from tests.e2e.small_model import SmallModel

POLICIES = """
version: 1
backends:
  local: {{kind: llama_cpp, url: "{url}"}}
policies:
  small:
    view: {{start: 2000, ceiling: 5000, headroom: 800, keep: 400}}
    chapters: {{split: 1500, length: 150, stack: 600}}
    gist: {{length: 200}}
    summaries: {{delay: 0s}}
    recall: {{budget: 0}}
models:
  foldgate: {{tiers: [{{backend: local, policy: small}}]}}

...
"""

# Words that stand nowhere else: in a message, in a summary, in a reply that is under way.
SECRET = "Xylograph-Qvarnström"
TOLD = "Zwölfnächte-Überlieferung"
UNSAID = "Oghamstein-Fjällvind"
# Every table with rows that hang on a conversation.
TABLES = (
    "conversations conversation_aliases messages system_texts attempts folds chapters"
    " chapter_versions gists jobs quarantine token_ratios"
).split()


class Summarizer:
    """Answers chats as usual; holds every summary until it is let go."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.let_go = asyncio.Event()
        self.left = asyncio.Event()

    async def __call__(self, _number: int, request: web.Request) -> web.StreamResponse | None:
        body = json.loads(await request.read())
        if "response_format" not in body:
            return None
        self.asked.set()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        try:
            if body.get("stream"):
                await response.prepare(request)
            await self.let_go.wait()
        except asyncio.CancelledError:
            self.left.set()
            raise
        raise AssertionError("nobody hung up on the summary of what was deleted")


@asynccontextmanager
async def talking(folder: Path, script: Any) -> AsyncIterator[tuple[RunningGateway, Any]]:
    async with SmallModel(pause=0.01) as model:
        model.script = script
        gateway = RunningGateway(folder, POLICIES.format(url=model.url))
        await asyncio.to_thread(gateway.start)
        try:
            async with httpx.AsyncClient(base_url=gateway.url, timeout=120) as client:
                yield gateway, client
        finally:
            gateway.kill()


async def say(client: httpx.AsyncClient, id: str, text: str) -> httpx.Response:
    body = {"model": "foldgate", "messages": [{"role": "user", "content": text}]}
    headers = {"X-Conversation-Id": id}
    response = await client.post("/v1/chat/completions", json=body, headers=headers)
    assert response.status_code == 200, response.text
    return response


def check_gone(gateway: RunningGateway, *words: str) -> None:
    """No row, and no byte of the words in any file of the database."""
    left = {name: gateway.one(f"SELECT count(*) FROM {name}") for name in TABLES}
    assert left == dict.fromkeys(TABLES, 0)
    for path in gateway.folder.glob("foldgate.db*"):
        data = path.read_bytes()
        for word in words:
            for form in (word, json.dumps(word).strip('"')):
                assert form.encode() not in data, f"{word} stands in {path.name}"


async def test_a_summary_in_flight(tmp_path: Path) -> None:
    summarizer = Summarizer()
    async with talking(tmp_path, summarizer) as (gateway, client):
        number = 0
        while not summarizer.asked.is_set():
            number += 1
            await say(client, "mine", f"{SECRET} {number}: " + "the cutter lay at anchor. " * 12)
            assert number < 60, "no summary was asked for"
        words = [row[0] for row in gateway.rows("SELECT state FROM jobs WHERE state = 'leased'")]
        assert words == ["leased"]
        assert any(SECRET.encode() in path.read_bytes() for path in tmp_path.glob("foldgate.db*"))
        response = await client.delete("/api/conversations/mine")
        assert (response.status_code, response.json()["deleted"]) == (200, True)
        async with asyncio.timeout(60):
            await summarizer.left.wait()
        check_gone(gateway, SECRET)
        for path in ("", "/messages", "/memory"):
            assert (await client.get(f"/api/conversations/mine{path}")).status_code == 404
        # A restart finds nothing to take up again.
        gateway.kill()
        await asyncio.to_thread(gateway.start)
        check_gone(gateway, SECRET)
        # The id is free, and what begins under it knows nothing.
        summarizer.let_go.set()
        again = await say(client, "mine", "Who was at anchor?")
        assert again.headers["x-foldgate-view"] == "verbatim"
        assert gateway.one("SELECT count(*) FROM messages") == 2


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_in_flight(tmp_path: Path, stream: bool) -> None:
    """The reader may hear it out; none of it is stored."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def reply(_number: int, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for piece in (UNSAID, " and so on."):
            choice = {"index": 0, "delta": {"content": piece}, "finish_reason": None}
            await response.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
            begun.set()
            await go_on.wait()
        choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
        await response.write(f"data: {json.dumps({'choices': [choice]})}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    async def whole_or_streamed(number: int, request: web.Request) -> web.StreamResponse:
        if json.loads(await request.read()).get("stream"):
            return await reply(number, request)
        begun.set()
        await go_on.wait()
        message = {"role": "assistant", "content": UNSAID}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return web.json_response({"object": "chat.completion", "choices": [choice]})

    async with talking(tmp_path, whole_or_streamed) as (gateway, client):
        body = {"model": "foldgate", "stream": stream}
        body["messages"] = [{"role": "user", "content": SECRET}]
        headers = {"X-Conversation-Id": "mine"}
        asking = asyncio.create_task(
            client.post("/v1/chat/completions", json=body, headers=headers)
        )
        await begun.wait()
        response = await client.delete("/api/conversations/mine")
        assert response.status_code == 200
        check_gone(gateway, SECRET, UNSAID)
        go_on.set()
        answer = await asking
        assert answer.status_code in (200, 409), answer.text
        check_gone(gateway, SECRET, UNSAID)
        assert " ERROR " not in gateway.last_words()
        assert await asyncio.to_thread(gateway.stop) == 0
        check_gone(gateway, SECRET, UNSAID)


async def test_the_neighbours_stay(tmp_path: Path) -> None:
    async def usual(_number: int, _request: web.Request) -> None:
        return None

    async with talking(tmp_path, usual) as (gateway, client):
        await asyncio.gather(*(say(client, f"chat-{n}", f"{TOLD} {n}") for n in range(6)))
        for number in range(0, 6, 2):
            assert (await client.delete(f"/api/conversations/chat-{number}")).status_code == 200
        listed = (await client.get("/api/conversations")).json()["conversations"]
        assert len(listed) == 3
        for number in range(6):
            response = await client.get(f"/api/conversations/chat-{number}/messages")
            if number % 2:
                assert response.json()["messages"][0]["content"] == f"{TOLD} {number}"
            else:
                assert response.status_code == 404
        assert (await client.delete("/api/conversations/chat-0")).status_code == 404
        assert gateway.rows("PRAGMA foreign_key_check") == []
