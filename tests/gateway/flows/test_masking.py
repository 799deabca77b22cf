"""Turns whose policy hides values from a cloud model: what goes out, what comes back and stays."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.app import create_app
from gateway.settings import Settings
from tests.faults.server import (
    DONE,
    Exchange,
    FaultServer,
    Request,
    answer,
    completion,
    delta,
    end,
    role,
    stream,
)
from tests.gateway.backends.conftest import KEY, LITELLM_WARNS
from tests.gateway.backends.conftest import litellm_imported as litellm_imported
from tests.gateway.backends.conftest import server as server
from tests.gateway.flows.stage import Listed, framed
from tests.gateway.flows.upkeep_stage import Build, due, keep

pytestmark = [LITELLM_WARNS, pytest.mark.usefixtures("litellm_imported")]

MAIL, PHONE, CARD = "bob@example.com", "090-1234-5678", "4111 1111 1111 1111"

POLICIES = """
version: 1
backends:
  cloud:
    kind: litellm
    model: openai/m
    api_key: %s
    api_base: %s/v1
    strict_roles: %s
policies:
  hiding:
    view: {start: 20000, ceiling: 24000, headroom: 4000, keep: 4000}
    chapters: {split: 4000, length: 300, stack: 2000}
    gist: {length: 300}
    privacy: {mask: [mail, phone, card, national_id, iban]}
models:
  m:
    tiers: [{backend: cloud, policy: hiding}]
"""


def echo(request: Request) -> Exchange:
    """The model says again what it was told last."""
    said = request.json["messages"][-1]["content"]
    if not request.json.get("stream"):
        return answer(200, completion(f"You said: {said}"))
    events = [role(), *(delta(letter) for letter in f"You said: {said}"), end("stop"), DONE]
    return stream(*events)


@asynccontextmanager
async def opened(tmp_path: Path, server: FaultServer, strict: bool = False) -> AsyncIterator[Any]:
    file = tmp_path / "policies.yaml"
    file.write_text(POLICIES % (KEY, server.url, str(strict).lower()))
    settings = Settings(policies=file, database_url=f"sqlite:///{tmp_path / 'foldgate.db'}")
    app = create_app(settings)
    async with app.router.lifespan_context(app):
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://127.0.0.1:8400"
        ) as client:
            yield client


async def say(client: httpx.AsyncClient, *messages: dict[str, Any], **more: Any) -> httpx.Response:
    headers = {"x-conversation-id": "chat-1", **more.pop("headers", {})}
    body = {"model": "m", "messages": messages, **more}
    response = await client.post("/v1/chat/completions", json=body, headers=headers)
    assert response.status_code == 200, response.text
    return response


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def text_of(response: httpx.Response) -> str:
    if response.headers["content-type"] == "application/json":
        return str(response.json()["choices"][0]["message"]["content"])
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
    deltas = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
    return "".join(piece.get("content") or "" for piece in deltas)


async def stored(client: httpx.AsyncClient) -> list[str]:
    response = await client.get("/api/conversations/chat-1/messages")
    return [message["content"] for message in response.json()["messages"]]


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_model_sees_placeholders_and_everybody_else_the_values(
    tmp_path: Path, server: FaultServer, streamed: bool
) -> None:
    server.otherwise = echo
    said = f"I am {MAIL}, {PHONE}, {CARD} 私です"
    async with opened(tmp_path, server) as client:
        response = await say(
            client, {"role": "system", "content": f"Of {MAIL}"}, user(said), stream=streamed
        )
        assert text_of(response) == f"You said: {said}"
        assert await stored(client) == [said, f"You said: {said}"]
    body = server.chats[0].body.decode()
    assert not any(value in body for value in (MAIL, PHONE, CARD))
    shown = server.chats[0].json["messages"]
    assert shown[0]["content"][3:] in shown[1]["content"]
    assert re.fullmatch(
        r"I am \[MAIL_[A-Z]{8}\], \[PHONE_[A-Z]{8}\], \[CARD_[A-Z]{8}\] 私です", shown[1]["content"]
    )


@pytest.mark.parametrize("strict", [False, True])
async def test_law_every_prompt_goes_on_from_the_one_before(
    tmp_path: Path, server: FaultServer, strict: bool
) -> None:
    """Over turns, a swipe, a branch and another process."""
    server.otherwise = echo
    one, two = user(f"I am {MAIL}"), user(f"and {PHONE}, {MAIL}")
    async with opened(tmp_path, server, strict) as client:
        first = {"role": "assistant", "content": text_of(await say(client, one))}
        await say(client, one, first, two)
    async with opened(tmp_path, server, strict) as client:
        await say(client, one, first, two)
        await say(client, one, first, user(f"another way: {MAIL}"))
        await say(client, one, first, two, stream=True)
    prompts = [request.json["messages"] for request in server.chats]
    reply = {"role": "assistant", "content": f"You said: {prompts[0][0]['content']}"}
    assert prompts[1][:2] == [prompts[0][0], reply]
    assert prompts[1] == prompts[2] == prompts[4]
    assert prompts[3][:2] == prompts[1][:2]
    assert MAIL not in str(prompts) and PHONE not in str(prompts)


async def test_calls_of_tools_come_back_with_values(tmp_path: Path, server: FaultServer) -> None:
    def call(request: Request) -> Exchange:
        said = request.json["messages"][-1]["content"]
        function = {"name": "send", "arguments": json.dumps({"to": said})}
        calls = [{"id": "c1", "type": "function", "function": function}]
        return answer(200, completion(None, "tool_calls", tool_calls=calls))

    server.otherwise = call
    tools = [{"type": "function", "function": {"name": "send", "parameters": {"type": "object"}}}]
    async with opened(tmp_path, server) as client:
        message = (await say(client, user(MAIL), tools=tools)).json()["choices"][0]["message"]
        assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"to": MAIL}
        server.otherwise = echo
        result = {"role": "tool", "tool_call_id": "c1", "content": f'{{"sent": "{MAIL}"}}'}
        await say(client, user(MAIL), message, result, tools=tools)
    prompt = server.chats[1].json["messages"]
    shown = prompt[0]["content"]
    assert json.loads(prompt[1]["tool_calls"][0]["function"]["arguments"]) == {"to": shown}
    assert json.loads(prompt[2]["content"]) == {"sent": shown}


async def test_what_the_user_types_is_nobody_elses_value(
    tmp_path: Path, server: FaultServer
) -> None:
    server.otherwise = echo
    async with opened(tmp_path, server) as client:
        await say(client, user(MAIL))
        shown = server.chats[0].json["messages"][0]["content"]
        typed = f"what is {shown} or [MAIL_BBBBBBBB]?"
        assert text_of(await say(client, user(typed))) == f"You said: {typed}"


async def test_titles_are_asked_for_without_values(tmp_path: Path, server: FaultServer) -> None:
    server.otherwise = echo
    async with opened(tmp_path, server) as client:
        said = f"### Task:\nGive a title\nUSER: I am {MAIL}"
        response = await say(client, user(said), headers={"x-foldgate-task": "title_generation"})
        assert response.headers["x-foldgate-view"] == "passthrough"
        assert text_of(response) == f"You said: {said}"
    assert MAIL not in server.chats[0].body.decode()


SHARED = """
version: 1
backends:
  glm: {kind: llama_cpp, url: "http://127.0.0.1:1"}
  deepseek: {kind: litellm, model: deepseek/deepseek-v4-flash, api_key: k}
policies:
  fold:
    summaries: {backends: [glm], delay: 30s}
    privacy: {mask: [card]}
  whole:
    privacy: {mask: [mail, card]}
models:
  foldgate: {tiers: [{backend: glm, policy: fold}, {backend: deepseek, policy: whole}]}
"""


async def test_summarizers_are_not_shown_what_any_tier_of_the_model_hides(stage: Build) -> None:
    glm = Listed("glm", framed("x"))
    ctx = stage(glm, policies=SHARED)
    due(ctx)
    await keep(ctx).run_due()
    assert {call.mask for call in glm.calls} == {("mail", "card")}
