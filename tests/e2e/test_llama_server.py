"""What the gateway takes for granted about llama-server, asked of a real one."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from gateway.demo.llama import LlamaInstall, LlamaServer
from tests.e2e.conftest import WINDOW

CHAT = "/v1/chat/completions"
SENTENCE = "The ranger walked along the river and counted the herons. "


@pytest_asyncio.fixture
async def client(llama_server: LlamaServer) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(base_url=llama_server.url) as session:
        yield session


def ask(content: str, **more: Any) -> dict[str, Any]:
    return {
        "messages": [{"role": "user", "content": content}],
        "max_tokens": 8,
        "temperature": 0,
        **more,
    }


async def post(client: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> Any:
    async with client.post(path, json=body) as answer:
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_props_tell_the_window_and_the_slots(client: aiohttp.ClientSession) -> None:
    async with client.get("/props") as answer:
        props = await answer.json()
    assert props["default_generation_settings"]["n_ctx"] == WINDOW
    assert props["total_slots"] == 1
    assert "<|im_start|>" in props["chat_template"]


async def test_models_list_the_alias(
    client: aiohttp.ClientSession, llama_server: LlamaServer
) -> None:
    async with client.get("/v1/models") as answer:
        (model,) = (await answer.json())["data"]
    assert model["id"] == llama_server.model_name
    assert model["meta"]["n_ctx"] == WINDOW


@pytest.mark.parametrize(
    "text",
    ["Hello", "こんにちは", "你好，世界", "안녕하세요", "Привет, мир", "¿Qué tal?", "🙂👩‍👩‍👧"],
)
async def test_tokens_come_back_as_the_text_they_were(
    client: aiohttp.ClientSession, text: str
) -> None:
    tokens = (await post(client, "/tokenize", {"content": text}))["tokens"]
    assert tokens
    assert (await post(client, "/detokenize", {"tokens": tokens}))["content"] == text


async def test_a_whole_reply_tells_usage_and_timings(client: aiohttp.ClientSession) -> None:
    reply = await post(client, CHAT, ask("Say hello in one sentence."))
    (choice,) = reply["choices"]
    assert choice["finish_reason"] == "length"
    assert choice["message"]["content"]
    assert reply["usage"]["completion_tokens"] == 8
    timings, usage = reply["timings"], reply["usage"]
    assert timings["cache_n"] + timings["prompt_n"] == usage["prompt_tokens"]


async def test_a_stream_ends_with_its_reason_its_usage_and_done(
    client: aiohttp.ClientSession,
) -> None:
    body = ask("Say hello.", stream=True, stream_options={"include_usage": True})
    async with client.post(CHAT, json=body) as answer:
        assert answer.status == 200
        assert answer.content_type == "text/event-stream"
        events = (await answer.text()).removesuffix("\n\n").split("\n\n")
    assert events[-1] == "data: [DONE]"
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    assert reasons[-1] == "length"
    assert set(reasons[:-1]) == {None}
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 8
    assert "timings" in chunks[-1]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_prompt_beyond_the_window_is_a_400_with_both_numbers(
    client: aiohttp.ClientSession, stream: bool
) -> None:
    body = ask(SENTENCE * 400, stream=stream)
    count = await post(client, "/v1/chat/completions/input_tokens", body)
    async with client.post(CHAT, json=body) as answer:
        assert answer.status == 400
        error = (await answer.json())["error"]
    assert error["type"] == "exceed_context_size_error"
    assert error["n_ctx"] == WINDOW
    assert error["n_prompt_tokens"] == count["input_tokens"] > WINDOW


async def test_a_reply_that_meets_the_window_says_length(client: aiohttp.ClientSession) -> None:
    reply = await post(client, CHAT, ask(SENTENCE * 150, max_tokens=WINDOW, ignore_eos=True))
    assert reply["choices"][0]["finish_reason"] == "length"
    assert reply["usage"]["total_tokens"] == WINDOW


async def test_a_schema_binds_the_reply(client: aiohttp.ClientSession) -> None:
    schema = {
        "type": "object",
        "properties": {"prose": {"type": "string", "minLength": 20, "maxLength": 120}},
        "required": ["prose"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "chapter", "schema": schema}}
    reply = await post(client, CHAT, ask("Tell of the mill.", max_tokens=400, response_format=form))
    assert reply["choices"][0]["finish_reason"] == "stop"
    frame = json.loads(reply["choices"][0]["message"]["content"])
    assert list(frame) == ["prose"]
    assert 20 <= len(frame["prose"]) <= 120


async def test_a_schema_that_is_none_is_a_400(client: aiohttp.ClientSession) -> None:
    form = {"type": "json_schema", "json_schema": {"schema": {"type": "nonsense"}}}
    async with client.post(CHAT, json=ask("Hi", response_format=form)) as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]["type"] == "invalid_request_error"


async def test_a_longer_prompt_reads_only_what_is_new(client: aiohttp.ClientSession) -> None:
    first = ask(SENTENCE * 30)
    told = await post(client, CHAT, first)
    reply = told["choices"][0]["message"]
    longer = first | {
        "messages": [*first["messages"], reply, {"role": "user", "content": "And then?"}]
    }
    timings = (await post(client, CHAT, longer))["timings"]
    assert timings["cache_n"] >= told["usage"]["prompt_tokens"]
    assert timings["prompt_n"] < 40


async def test_slots_share_the_context_in_equal_parts(
    start_llama: Callable[..., AbstractAsyncContextManager[LlamaServer]],
) -> None:
    async with start_llama(window=1024, slots=3, pinned=True) as server:
        async with aiohttp.ClientSession(base_url=server.url) as client:
            async with client.get("/props") as answer:
                props = await answer.json()
            async with client.get("/slots") as answer:
                slots = await answer.json()
        process = server.process
    assert (props["default_generation_settings"]["n_ctx"], props["total_slots"]) == (1024, 3)
    assert [slot["n_ctx"] for slot in slots] == [1024, 1024, 1024]
    assert process is not None
    assert process.returncode is not None


@pytest.mark.skipif(
    "FOLDGATE_LLAMA_SERVER" in os.environ, reason="an executable of one's own does not watch"
)
def test_the_server_ends_when_its_parent_is_killed(llama_install: LlamaInstall) -> None:
    program = textwrap.dedent(
        """
        import asyncio, sys
        from pathlib import Path
        from gateway.demo.llama import LlamaInstall, LlamaServer

        async def run():
            install = LlamaInstall(tuple(sys.argv[3:]), Path(sys.argv[1]), sys.argv[2])
            async with LlamaServer(install, window=512, log=Path("/dev/null")) as server:
                sys.stdout.write(f"{server.process.pid}\\n")
                sys.stdout.flush()
                await asyncio.sleep(60)

        asyncio.run(run())
        """
    )
    words = [str(llama_install.model), llama_install.model_name, *llama_install.command]
    with subprocess.Popen(
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        watch = os.pidfd_open(server)
        parent.send_signal(signal.SIGKILL)
    try:
        ended, _, _ = select.select([watch], [], [], 10)
    finally:
        os.close(watch)
    assert ended == [watch]
