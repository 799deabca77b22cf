"""The official openai client against the gateway, over a real llama-server and without a model."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
import pytest_asyncio
from aiohttp import web

from gateway.demo.llama import LlamaServer
from tests.e2e.houses import ENVIRON, KEYS, llama_policies, scripted_policies
from tests.e2e.running_gateway import RunningGateway
from tests.e2e.small_model import (
    Script,
    SmallModel,
    answer_error,
    answer_streamed,
    answer_whole,
    event,
)

MODEL = "foldgate"
QUESTION: Any = [{"role": "user", "content": "Who keeps the lighthouse at Cape Wrath?"}]
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "look_at_the_sky",
        "description": "Tells the weather of a place.",
        "parameters": {
            "type": "object",
            "properties": {"place": {"type": "string", "enum": ["harbour", "cape"]}},
            "required": ["place"],
        },
    },
}


@pytest.fixture(scope="module")
def over_llama(
    llama_server: LlamaServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("over-llama")
    with RunningGateway(folder, llama_policies(llama_server.url), environ=ENVIRON) as gateway:
        yield gateway


@pytest.fixture(scope="module")
def over_script(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGateway]:
    folder = tmp_path_factory.mktemp("over-script")
    with RunningGateway(folder, scripted_policies(), environ=ENVIRON) as gateway:
        yield gateway


@pytest.fixture(params=["over_llama", "over_script"])
def gateway(request: pytest.FixtureRequest) -> RunningGateway:
    found: RunningGateway = request.getfixturevalue(request.param)
    return found


def settings(gateway: RunningGateway, key: str = KEYS["ada"]) -> dict[str, Any]:
    return {"base_url": f"{gateway.url}/v1", "api_key": key, "timeout": 300}


@pytest.fixture
def client(gateway: RunningGateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(**settings(gateway), max_retries=0) as client:
        yield client


@pytest_asyncio.fixture
async def async_client(gateway: RunningGateway) -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(**settings(gateway), max_retries=0) as client:
        yield client


@pytest.fixture
def named() -> dict[str, str]:
    """Headers that name a conversation of this test's own."""
    return {"X-Conversation-Id": f"chat-{uuid.uuid4()}"}


def stored(client: openai.OpenAI, conversation: str) -> list[dict[str, Any]]:
    told: Any = client.get(
        f"{str(client.base_url).removesuffix('/v1/')}/api/conversations/{conversation}/messages",
        cast_to=object,
    )
    messages: list[dict[str, Any]] = told["messages"]
    return messages


# --- answers -------------------------------------------------------------------------------------


def test_a_whole_reply(client: openai.OpenAI, named: dict[str, str]) -> None:
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=QUESTION, max_tokens=16, extra_headers=named
    )
    reply = raw.parse()
    (choice,) = reply.choices
    assert choice.finish_reason in ("stop", "length")
    assert choice.message.role == "assistant" and choice.message.content
    assert reply.usage is not None
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + reply.usage.completion_tokens
    assert raw.headers["x-foldgate-view"] == "verbatim"
    assert raw.headers["x-foldgate-backend"] == "local"
    question, answer = stored(client, raw.headers["x-foldgate-conversation"])
    assert (question["role"], question["content"]) == ("user", QUESTION[0]["content"])
    assert (answer["role"], answer["content"]) == ("assistant", choice.message.content)
    assert (answer["finish_reason"], answer["partial"]) == (choice.finish_reason, False)


def test_a_streamed_reply(client: openai.OpenAI, named: dict[str, str]) -> None:
    with client.chat.completions.create(
        model=MODEL, messages=QUESTION, max_tokens=16, stream=True, extra_headers=named
    ) as stream:
        conversation = stream.response.headers["x-foldgate-conversation"]
        assert stream.response.headers["content-type"].startswith("text/event-stream")
        chunks = list(stream)
    assert all(len(chunk.choices) == 1 and chunk.usage is None for chunk in chunks)
    assert chunks[0].choices[0].delta.role == "assistant"
    ends = [chunk.choices[0].finish_reason for chunk in chunks]
    assert set(ends[:-1]) == {None} and ends[-1] in ("stop", "length")
    told = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert stored(client, conversation)[-1]["content"] == told


def test_usage_comes_last_where_it_is_asked_for(
    client: openai.OpenAI, named: dict[str, str]
) -> None:
    *chunks, last = client.chat.completions.create(
        model=MODEL,
        messages=QUESTION,
        max_tokens=8,
        stream=True,
        stream_options={"include_usage": True},
        extra_headers=named,
    )
    assert chunks[-1].choices[0].finish_reason in ("stop", "length")
    assert last.choices == []
    assert last.usage is not None and last.usage.prompt_tokens > 0
    assert 1 <= last.usage.completion_tokens <= 8


def test_the_clients_own_accumulation(client: openai.OpenAI, named: dict[str, str]) -> None:
    with client.chat.completions.stream(
        model=MODEL, messages=QUESTION, max_tokens=64, stop=[" "], extra_headers=named
    ) as stream:
        kinds = {event.type for event in stream}
        reply = stream.get_final_completion()
    assert "content.delta" in kinds
    assert reply.choices[0].message.content


async def test_several_at_once(async_client: openai.AsyncOpenAI) -> None:
    async def whole(number: int) -> str:
        reply = await async_client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": f"Count the gulls, {number}."}],
            max_tokens=8,
        )
        return reply.choices[0].message.content or ""

    async def streamed(number: int) -> str:
        stream = await async_client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": f"Зажги маяк, {number}. 灯台"}],
            max_tokens=8,
            stream=True,
        )
        return "".join([chunk.choices[0].delta.content or "" async for chunk in stream])

    replies = await asyncio.gather(*(f(n) for n in range(3) for f in (whole, streamed)))
    assert all(replies)


@pytest.mark.parametrize("way", ["header", "metadata", "session_id"])
def test_a_conversation_goes_on_by_its_id(client: openai.OpenAI, way: str) -> None:
    id = f"chat-{uuid.uuid4()}"
    more: dict[str, Any] = {
        "header": {"extra_headers": {"X-Conversation-Id": id}},
        "metadata": {"metadata": {"conversation_id": id}},
        "session_id": {"extra_body": {"session_id": id}},
    }[way]
    for text in ("The mill burned down.", "Who saw it?"):
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": text}], max_tokens=4, **more
        )
    told = stored(client, id)
    assert [message["role"] for message in told] == ["user", "assistant"] * 2
    assert told[2]["content"] == "Who saw it?"


def test_models_are_listed(client: openai.OpenAI) -> None:
    (model,) = client.models.list().data
    assert model.id == MODEL


# --- tools ---------------------------------------------------------------------------------------


def test_a_history_with_tool_calls(client: openai.OpenAI, named: dict[str, str]) -> None:
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "look_at_the_sky", "arguments": '{"place": "cape"}'},
    }
    history: Any = [
        {"role": "user", "content": "How is the weather at the cape?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Fog, wind from the north-west."},
    ]
    raw = client.chat.completions.with_raw_response.create(
        model=MODEL, messages=history, tools=[WEATHER], max_tokens=8, extra_headers=named
    )
    assert raw.parse().choices[0].finish_reason in ("stop", "length", "tool_calls")
    told = stored(client, raw.headers["x-foldgate-conversation"])
    assert [message["role"] for message in told] == ["user", "assistant", "tool", "assistant"]
    assert told[1]["tool_calls"] == [call]
    assert told[2]["tool_call_id"] == "call_1"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_is_called(tmp_path: Path, stream: bool) -> None:
    """Over an upstream that calls: the small real model's template knows no tools."""
    function = {"name": "look_at_the_sky", "arguments": '{"place": "岬 🌧"}'}
    call = {"id": "call_9", "type": "function", "function": function}

    async def call_a_tool(_number: int, request: web.Request) -> web.StreamResponse:
        # A gateway may well ask for a stream where its client wants the whole.
        if not json.loads(await request.read()).get("stream"):
            return answer_whole({"content": None, "tool_calls": [call]}, "tool_calls")
        opened = {**call, "index": 0, "function": {**function, "arguments": ""}}
        text = function["arguments"]
        pieces = [{"index": 0, "function": {"arguments": p}} for p in (text[:5], text[5:])]
        deltas = [{"tool_calls": [piece]} for piece in (opened, *pieces)]
        return await answer_streamed(request, deltas, "tool_calls")

    asked: Any = {"model": MODEL, "messages": QUESTION, "tools": [WEATHER], "tool_choice": "auto"}
    async with serving(tmp_path, call_a_tool) as (gateway, model):
        async with openai.AsyncOpenAI(**settings(gateway), max_retries=0) as client:
            if stream:
                async with client.chat.completions.stream(**asked) as events:
                    reply: Any = await events.get_final_completion()
            else:
                reply = await client.chat.completions.create(**asked)
    (choice,) = reply.choices
    assert choice.finish_reason == "tool_calls"
    (called,) = choice.message.tool_calls
    assert (called.id, called.function.name) == (call["id"], function["name"])
    assert called.function.arguments == function["arguments"]
    sent = json.loads(model.bodies[0])
    assert (sent["tools"], sent["tool_choice"]) == ([WEATHER], "auto")
    ((raw,),) = gateway.rows("SELECT raw FROM messages WHERE role = 'assistant'")
    assert json.loads(raw)["tool_calls"] == [call]


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
def test_a_message_that_fits_no_window(
    client: openai.OpenAI, named: dict[str, str], stream: bool
) -> None:
    text = "The heron stood in the reeds and waited. " * 600
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": text}],
            stream=stream,
            extra_headers=named,
        )
    assert caught.value.code == "context_length_exceeded"
    assert caught.value.type == "invalid_request_error"
    (kept,) = stored(client, named["X-Conversation-Id"])
    assert kept["content"] == text


def test_an_unknown_model(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        client.chat.completions.create(model="gpt-nothing", messages=QUESTION)
    assert (caught.value.code, caught.value.param) == ("model_not_found", "model")


def test_an_unknown_key(gateway: RunningGateway) -> None:
    with openai.OpenAI(**settings(gateway, "stolen"), max_retries=0) as client:
        for ask in (
            lambda: client.chat.completions.create(model=MODEL, messages=QUESTION),
            lambda: client.models.list(),
        ):
            with pytest.raises(openai.AuthenticationError) as caught:
                ask()
            assert caught.value.code == "invalid_api_key"


def test_a_parameter_out_of_range(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=0)
    assert caught.value.param == "max_tokens"


# --- retries: over an upstream that fails as it is told ------------------------------------------


@asynccontextmanager
async def serving(folder: Path, script: Script) -> AsyncIterator[tuple[RunningGateway, SmallModel]]:
    """A gateway before an upstream that plays a script."""
    async with SmallModel() as model:
        model.script = script
        gateway = RunningGateway(folder, llama_policies(model.url), environ=ENVIRON)
        await asyncio.to_thread(gateway.start)
        try:
            yield gateway, model
        finally:
            gateway.kill()


@pytest.mark.parametrize("stream", [False, True])
async def test_the_client_waits_as_it_is_told_and_tries_again(tmp_path: Path, stream: bool) -> None:
    moments: list[float] = []

    async def busy_once(number: int, _request: web.Request) -> web.StreamResponse | None:
        moments.append(asyncio.get_running_loop().time())
        return answer_error(503, {"Retry-After": "2"}) if number == 1 else None

    async with serving(tmp_path, busy_once) as (gateway, _):
        async with openai.AsyncOpenAI(**settings(gateway)) as client:
            answer: Any = await client.chat.completions.create(
                model=MODEL, messages=QUESTION, stream=stream
            )
            if stream:
                ends = [chunk.choices[0].finish_reason async for chunk in answer]
            else:
                ends = [choice.finish_reason for choice in answer.choices]
    assert ends[-1] == "stop"
    first, second = moments
    # The client's own wait would be half a second at most.
    assert second - first >= 2
    assert gateway.rows("SELECT state FROM attempts ORDER BY pk") == [("failed",), ("done",)]
    assert gateway.rows("SELECT role FROM messages ORDER BY pk") == [("user",), ("assistant",)]


async def test_a_reply_that_breaks_off_is_an_error(tmp_path: Path) -> None:
    async def break_off(_number: int, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(event({"content": "The lamp "}) + event({"content": "went "}))
        await response.write(b'data: {"error": {"code": 500, "message": "out of memory"}}\n\n')
        return response

    async with serving(tmp_path, break_off) as (gateway, model):
        async with openai.AsyncOpenAI(**settings(gateway)) as client:
            stream = await client.chat.completions.create(
                model=MODEL, messages=QUESTION, stream=True
            )
            told = ""
            with pytest.raises(openai.APIError) as caught:
                async for chunk in stream:
                    told += chunk.choices[0].delta.content or ""
    assert told == "The lamp went "
    assert caught.value.type == "upstream_error"
    assert len(model.bodies) == 1
    ((raw, partial, reason),) = gateway.rows(
        "SELECT m.raw, m.partial, a.error FROM messages m JOIN attempts a ON a.reply_pk = m.pk"
    )
    assert (json.loads(raw)["content"], partial, reason) == (told, 1, "server")
