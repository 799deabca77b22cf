"""A streamed answer at the door: what a client hears while it waits for its turn."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any, cast

import httpx
import openai
import pytest

from gateway.api.sse import turn_headers
from gateway.flows.turn import Turn
from tests.gateway.api.conftest import Opener

LINE = ("local", "", "c")
"""Where requests for the conversation `c` stand, without keys."""


class Client:
    """One request on the bare ASGI surface; `news` is set by each message of the answer."""

    def __init__(self, body: dict[str, Any], **headers: str) -> None:
        self.news = asyncio.Event()
        self._left = asyncio.Event()
        self.sent: list[dict[str, Any]] = []
        self._body = json.dumps(body).encode()
        self._headers = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]

    def leave(self) -> None:
        self._left.set()

    async def ask(self, app: Any, state: dict[str, Any] | None = None) -> None:
        said = [{"type": "http.request", "body": self._body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if said:
                return said.pop()
            await self._left.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            self.sent.append(message)
            self.news.set()

        scope = {
            "type": "http",
            "method": "POST",
            "path": "/v1/chat/completions",
            "query_string": b"",
            "headers": [(b"host", b"localhost"), *self._headers],
            "app": app,
            "state": {} if state is None else state,
        }
        await app(scope, receive, send)

    async def hear(self, count: int) -> None:
        while len(self.sent) < count:
            self.news.clear()
            await self.news.wait()


def chat(stream: bool) -> dict[str, Any]:
    return {"model": "foldgate", "stream": stream, "messages": [{"role": "user", "content": "Hi"}]}


async def test_who_stands_in_line_hears_pings(opened: Opener) -> None:
    """F08: bare comments."""
    async with opened(hold_seconds=0.0, ping_seconds=0.001) as door:
        await door.context.turns.enter(LINE)
        client = Client(chat(stream=True), x_conversation_id="c")
        work = asyncio.ensure_future(client.ask(door.app))
        await asyncio.wait_for(client.hear(3), 10)
        start, *pings = client.sent[:3]
        assert (start["type"], start["status"]) == ("http.response.start", 200)
        assert [ping["body"] for ping in pings] == [b": ping\n\n"] * 2
        work.cancel()
        await asyncio.wait({work})
        door.context.turns.leave(LINE)
        assert door.context.turns._places == {}


@pytest.mark.parametrize("stream", [False, True])
async def test_who_leaves_ends_its_turn_and_not_the_task_it_was_served_in(
    opened: Opener, stream: bool
) -> None:
    async with opened() as door:
        await door.context.turns.enter(LINE)
        client = Client(chat(stream), x_conversation_id="c")
        state: dict[str, Any] = {}

        async def serve() -> int:
            await client.ask(door.app, state)
            await asyncio.sleep(0)  # a cancellation left behind would be told here
            task = asyncio.current_task()
            assert task is not None
            return task.cancelling()

        work = asyncio.ensure_future(serve())
        while not door.context.turns._places[LINE].waiting == 2:
            await asyncio.sleep(0)
        client.leave()
        assert await asyncio.wait_for(work, 10) == 0
        assert (client.sent, state["error_code"]) == ([], "client_left")
        door.context.turns.leave(LINE)
        assert door.context.turns._places == {}


async def test_who_is_cancelled_from_outside_is_told_so(opened: Opener) -> None:
    async with opened() as door:
        await door.context.turns.enter(LINE)
        client = Client(chat(stream=True), x_conversation_id="c")
        work = asyncio.ensure_future(client.ask(door.app))
        while not door.context.turns._places[LINE].waiting == 2:
            await asyncio.sleep(0)
        client.leave()
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(work, 10)
        door.context.turns.leave(LINE)


async def test_the_official_client_reads_over_pings(opened: Opener) -> None:
    """F08: checked against the client itself, whose stream holds the reply alone."""
    async with opened(hold_seconds=0.0, ping_seconds=0.001) as door:
        await door.context.turns.enter(LINE)
        pinged = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            async def listen(message: Any) -> None:
                await send(message)
                if message.get("body") == b": ping\n\n":
                    pinged.set()

            await door.app(scope, receive, listen)

        transport = httpx.AsyncClient(transport=httpx.ASGITransport(app))
        async with openai.AsyncOpenAI(
            base_url="http://127.0.0.1:8400/v1", api_key="none", http_client=cast(Any, transport)
        ) as client:
            asking = asyncio.ensure_future(
                client.chat.completions.create(
                    model="vendor/tiny",
                    stream=True,
                    messages=[{"role": "user", "content": "Hi"}],
                    extra_headers={"X-Conversation-Id": "c"},
                )
            )
            await asyncio.wait_for(pinged.wait(), 10)
            door.context.turns.leave(LINE)
            choices = [chunk.choices[0] async for chunk in await asking]
    assert "".join(choice.delta.content or "" for choice in choices)
    assert [choice.finish_reason for choice in choices if choice.finish_reason] == ["stop"]


async def test_the_end_of_the_line_is_told_as_a_status(opened: Opener) -> None:
    async with opened() as door:
        waiting = [asyncio.ensure_future(door.context.turns.enter(LINE)) for _ in range(16)]
        await asyncio.sleep(0)
        for stream in (False, True):
            client = Client(chat(stream), x_conversation_id="c")
            await client.ask(door.app)
            start, body = client.sent
            assert start["status"] == 429
            assert (b"retry-after", b"5") in start["headers"]
            assert json.loads(body["body"])["error"]["code"] == "conversation_busy"
        for place in waiting:
            await place
            door.context.turns.leave(LINE)


async def test_how_often_a_client_tried_is_a_number_of_any_length(opened: Opener) -> None:
    async with opened() as door:
        for count in ("9" * 5_000, "0" * 5_000, "²", "-1", "x"):
            client = Client(
                {**chat(False), "messages": [{"role": "system", "content": "S"}]},
                x_stainless_retry_count=count,
            )
            await client.ask(door.app)
            assert client.sent[0]["status"] == 400


def _headers(*, dropped: tuple[str, ...] = (), failed: tuple[str, ...] = ()) -> dict[bytes, bytes]:
    begun = SimpleNamespace(
        conversation=SimpleNamespace(id="c"),
        view_kind="verbatim",
        rule="home",
        progress=None,
        question=SimpleNamespace(answers=SimpleNamespace(failed=failed)),
    )
    prepared = SimpleNamespace(begun=begun, backend=SimpleNamespace(name="b"), dropped=dropped)
    return dict(turn_headers(cast(Turn, SimpleNamespace(prepared=prepared))))


def test_lookups_that_failed_are_named() -> None:
    assert _headers(failed=("crm", "web"))[b"x-foldgate-lookups-failed"] == b"crm, web"
    assert b"x-foldgate-lookups-failed" not in _headers()


def test_thousands_of_dropped_fields_make_no_header_that_loses_the_answer() -> None:
    names = tuple(f"field_{number:04}" for number in range(3_000))
    told = _headers(dropped=names)
    value = told[b"x-foldgate-dropped-params"].decode()
    *first, last = value.split(", ")
    # 12 characters a name with its comma: 83 whole ones in 1,000.
    assert (first, last) == (list(names[:83]), "...")
