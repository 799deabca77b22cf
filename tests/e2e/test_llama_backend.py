"""The llama.cpp backend against a real llama-server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from gateway.backends.base import Call, Purpose
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.llama_cpp import LlamaCpp
from gateway.demo.llama import LlamaServer
from gateway.wire.replies import ReplyBuilder
from policies.schema import LlamaCppBackend
from tests.e2e.conftest import WINDOW

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def backend(llama_server: LlamaServer) -> AsyncIterator[LlamaCpp]:
    backend = LlamaCpp("local", LlamaCppBackend(url=llama_server.url))
    yield backend
    await backend.aclose()


def ask(
    text: str,
    *,
    stream: bool = True,
    max_tokens: int = 24,
    purpose: Purpose = "chat",
    **params: object,
) -> Call:
    message = json.dumps({"role": "user", "content": text}).encode()
    return Call((message,), {"temperature": 0, **params}, stream, max_tokens, purpose, "r-1")


async def busy_slots(server: LlamaServer) -> int:
    """How many slots are at work, by the server's own word."""
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}/slots") as answer:
        return sum(slot["is_processing"] for slot in await answer.json())


async def test_it_streams_a_reply_with_usage_and_timings(backend: LlamaCpp) -> None:
    builder = ReplyBuilder()
    async for chunk in backend.stream(ask("Name three colours.")):
        assert json.loads(chunk.data) == chunk.parsed
        builder.feed(chunk.parsed)
    assert builder.text.strip()
    assert builder.finish_reason in ("stop", "length")
    assert builder.usage is not None and builder.timings is not None
    assert builder.completion_tokens is not None and 1 <= builder.completion_tokens <= 24


async def test_a_whole_reply_says_the_same_as_a_streamed_one(backend: LlamaCpp) -> None:
    streamed = ReplyBuilder()
    async for chunk in backend.stream(ask("Name three rivers.")):
        streamed.feed(chunk.parsed)
    whole = await backend.complete(ask("Name three rivers.", stream=False))
    assert ReplyBuilder.from_completion(whole.parsed).message() == streamed.message()


async def test_the_counter_agrees_with_usage(backend: LlamaCpp) -> None:
    call = ask("Сколько будет дважды два? 二たす二は？ 🎉", stream=False)
    builder = ReplyBuilder.from_completion((await backend.complete(call)).parsed)
    assert await backend.count_tokens(call.messages) == builder.prompt_tokens


async def test_the_window_is_the_slots_own(backend: LlamaCpp) -> None:
    assert await backend.window() == WINDOW
    assert backend.total_slots == 1
    assert (await backend.health()).ok


@pytest.mark.parametrize("stream", [True, False])
async def test_an_overflow_carries_the_figures(backend: LlamaCpp, stream: bool) -> None:
    call = ask("word " * 3 * WINDOW, stream=stream)
    with pytest.raises(UpstreamFault) as caught:
        if stream:
            async for _ in backend.stream(call):
                pass
        else:
            await backend.complete(call)
    fault = caught.value
    assert (fault.kind, fault.status, fault.partial) == (FaultKind.OVERFLOW, 400, False)
    assert fault.window_tokens == WINDOW
    assert fault.prompt_tokens is not None and fault.prompt_tokens > WINDOW


async def test_running_into_the_window_ends_by_length(backend: LlamaCpp) -> None:
    builder = ReplyBuilder()
    text = "one two " * 980
    used = await backend.count_tokens(ask(text).messages)
    assert used is not None and 20 < WINDOW - used < 100
    call = ask(text, max_tokens=4096, ignore_eos=True)
    async for chunk in backend.stream(call):
        builder.feed(chunk.parsed)
    assert builder.finish_reason == "length"
    assert builder.usage is not None and builder.usage["total_tokens"] >= WINDOW


async def test_a_schema_is_kept_to(backend: LlamaCpp) -> None:
    schema = {
        "type": "object",
        "properties": {"chapter": {"type": "string", "minLength": 20, "maxLength": 60}},
        "required": ["chapter"],
        "additionalProperties": False,
    }
    form = {"type": "json_schema", "json_schema": {"name": "c", "schema": schema, "strict": True}}
    call = ask(
        "Tell of a ship.", stream=False, max_tokens=200, purpose="summary", response_format=form
    )
    text = ReplyBuilder.from_completion((await backend.complete(call)).parsed).text
    assert 20 <= len(json.loads(text)["chapter"]) <= 60


@pytest.mark.parametrize("stream", [True, False])
async def test_cancelling_frees_the_slot(
    backend: LlamaCpp, llama_server: LlamaServer, stream: bool
) -> None:
    call = ask("Tell a very long story.", stream=stream, max_tokens=1500, ignore_eos=True)

    async def run() -> None:
        if stream:
            async for _ in backend.stream(call):
                pass
        else:
            await backend.complete(call)

    task = asyncio.create_task(run())
    while not await busy_slots(llama_server):
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(1):
        while await busy_slots(llama_server):
            await asyncio.sleep(0.01)


async def test_closing_the_stream_frees_the_slot(
    backend: LlamaCpp, llama_server: LlamaServer
) -> None:
    chunks = backend.stream(ask("Tell a long story.", max_tokens=1500, ignore_eos=True))
    await anext(chunks)
    await chunks.aclose()  # type: ignore[attr-defined]  # an async generator, as Backend says
    async with asyncio.timeout(1):
        while await busy_slots(llama_server):
            await asyncio.sleep(0.01)
