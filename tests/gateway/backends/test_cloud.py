"""What is LiteLLM's own: parameters, keys, providers, Gemini's format."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio
from pydantic import SecretStr

from gateway.backends.base import Call
from gateway.backends.cloud import BY_HTTP_HANDLER, BY_OPENAI_CLIENT, UNHEALTHY_SECONDS, Cloud
from gateway.backends.faults import FaultKind as K
from gateway.wire.json_text import dump_bytes
from policies.schema import LiteLLMBackend
from tests.faults.server import (
    DONE,
    Exchange,
    FaultServer,
    answer,
    completion,
    delta,
    end,
    role,
    stream,
    usage,
)
from tests.gateway.backends.conftest import (
    KEY,
    LITELLM_WARNS,
    SHORT,
    make_call,
    make_cloud,
    take,
    take_whole,
)

pytestmark = [LITELLM_WARNS, pytest.mark.usefixtures("litellm_imported")]

GOOD = stream(role(), delta("ok"), end("stop"), usage(), DONE)


@pytest_asyncio.fixture
async def backend(server: FaultServer) -> AsyncIterator[Cloud]:
    backend = make_cloud(server)
    yield backend
    await backend.aclose()


@pytest_asyncio.fixture
async def gemini(server: FaultServer) -> AsyncIterator[Cloud]:
    backend = make_cloud(server, "gemini/gemini-3.5-flash")
    yield backend
    await backend.aclose()


EVIL: dict[str, Any] = {
    "api_base": "http://127.0.0.1:1",
    "base_url": "http://127.0.0.1:1",
    "api_key": "sk-other",
    "extra_headers": {"x": "y"},
    "headers": {"x": "y"},
    "extra_body": {"x": "y"},
    "mock_response": "never said",
    "mock_tool_calls": [],
    "fallbacks": ["other"],
    "num_retries": 5,
    "max_retries": 5,
    "custom_llm_provider": "other",
    "timeout": 1,
    "client": None,
    "metadata": {"conversation_id": "c"},
    "allowed_openai_params": ["x"],
    "top_k": 4,
    "min_p": 0.1,
    "caching": True,
}


async def test_no_field_of_a_client_steers_litellm(server: FaultServer, backend: Cloud) -> None:
    server.play(GOOD)
    reply, fault = await take(backend, make_call(temperature=0.5, seed=7, **EVIL))
    assert (reply.text, fault) == ("ok", None)
    request = server.chats[0]
    assert request.json == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0.5,
        "seed": 7,
        "max_tokens": 100,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert backend.dropped_params({"temperature": 0.5, "max_tokens": 3, **EVIL}) == tuple(
        sorted(EVIL)
    )


async def test_what_a_provider_does_not_support_is_dropped_and_said(
    server: FaultServer, gemini: Cloud
) -> None:
    params: dict[str, Any] = {"temperature": 0.5, "logit_bias": {"7": 1}}
    server.play(stream(part("ok", "STOP", **USAGE)))
    assert (await take(gemini, make_call(**params)))[1] is None
    assert server.chats[0].json["generationConfig"]["temperature"] == 0.5
    assert b"bias" not in server.chats[0].body
    assert gemini.dropped_params(params) == ("logit_bias",)


@pytest.mark.parametrize(("reasoning", "sent"), [("drop", None), ("keep", "r")])
async def test_reasoning_goes_back_where_the_policy_says(
    server: FaultServer, reasoning: Any, sent: str | None
) -> None:
    backend = make_cloud(server, "deepseek/deepseek-v4-flash", reasoning=reasoning)
    messages = (
        b'{"role":"user","content":"x"}',
        b'{"role":"assistant","content":"y","reasoning_content":"r"}',
        b'{"role":"user","content":"z"}',
    )
    server.play(GOOD)
    await take(backend, Call(messages, {}, True, 5, "chat", "r"))
    assert server.chats[0].json["messages"][1].get("reasoning_content") == sent
    await backend.aclose()


async def test_content_null_and_content_empty_stay_apart(
    server: FaultServer, backend: Cloud
) -> None:
    call = {"id": "t1", "type": "function", "function": {"name": "w", "arguments": "{}"}}
    rows: list[dict[str, Any]] = [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": ""},
    ]
    server.play(GOOD)
    await take(backend, Call(tuple(json.dumps(r).encode() for r in rows), {}, True, 5, "chat", "r"))
    sent = server.chats[0].json["messages"]
    assert [row.get("content") for row in sent] == ["weather?", None, ""]
    assert sent[1]["tool_calls"] == [call]


async def test_a_backend_without_its_key_is_off() -> None:
    backend = Cloud("cloud", LiteLLMBackend(model="deepseek/x"))
    assert backend.off_reason is not None
    health = await backend.health()
    assert (health.ok, health.reason) == (False, backend.off_reason)
    _, fault = await take(backend, make_call())
    assert fault is not None and fault.kind is K.AUTH
    assert backend.off_reason in fault.message


async def test_a_refused_key_is_unhealthy_for_a_while(server: FaultServer) -> None:
    now = [100.0]
    config = LiteLLMBackend(model="openai/m", api_key=SecretStr(KEY), api_base=server.url + "/v1")
    backend = Cloud("cloud", config, clock=lambda: now[0])
    assert (await backend.health()).ok
    server.play(answer(401, {"error": {"message": "no"}}))
    await take(backend, make_call())
    assert not (await backend.health()).ok
    now[0] += UNHEALTHY_SECONDS
    assert (await backend.health()).ok
    await backend.aclose()


async def test_usage_is_never_made_up(server: FaultServer, backend: Cloud) -> None:
    """D16: a figure that was not told is not guessed."""
    server.play(stream(role(), delta("ok"), end("stop"), DONE))
    reply, fault = await take(backend, make_call())
    assert (fault, reply.usage) == (None, None)


async def test_window_and_counting(backend: Cloud) -> None:
    """D16: nothing is counted by the tokenizer of another family."""
    assert await backend.window() == 1_000_000
    assert await backend.count_tokens((b"{}",)) is None


@pytest.mark.parametrize(
    "provider",
    sorted(
        (BY_HTTP_HANDLER | BY_OPENAI_CLIENT) - {"gemini", "ollama_chat", "cohere_chat", "anthropic"}
    ),
)
async def test_the_wire_of_each_provider_is_seen(server: FaultServer, provider: str) -> None:
    """An end that LiteLLM would turn into `stop`: only who reads the wire knows better."""
    backend = make_cloud(server, f"{provider}/m")
    server.play(stream(role(), delta("Half"), end("insufficient_system_resource"), DONE))
    reply, fault = await take(backend, make_call())
    assert fault is not None
    assert (fault.kind, reply.text) == (K.INTERRUPTED, "Half")
    await backend.aclose()


SEARCHED = [
    {"role": "user", "content": "Where is the key?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "recall_7_0",
                "type": "function",
                "function": {"name": "recall_search", "arguments": '{"query": "key"}'},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "recall_7_0", "content": '{"lines": []}'},
    {"role": "assistant", "content": "Nobody said."},
    {"role": "user", "content": "Answer in JSON."},
]


@pytest.mark.parametrize(
    "model", ["openai/m", "deepseek/m", "xai/m", "gemini/gemini-3.5-flash", "anthropic/claude-m"]
)
async def test_a_history_with_searches_goes_out_where_no_tools_are_offered(
    server: FaultServer, model: str
) -> None:
    """R22: what a model read stays in its prompt until the next fold, also where a request offers
    no tools beside it. Nobody on this side refuses it for that."""
    backend = make_cloud(server, model)
    messages = tuple(map(dump_bytes, SEARCHED))
    server.play(answer(500, {"error": {"message": "seen"}}))
    await take(backend, replace(make_call(), messages=messages))
    await backend.aclose()
    (request,) = server.requests
    body = request.body.decode()
    assert "recall_search" in body
    assert "lines" in body
    # Anthropic wants tools beside such a history: LiteLLM adds one that nobody calls
    assert ("tools" in request.json) is model.startswith("anthropic/")


def test_bedrock_is_told_of_searches_in_words_where_no_tools_are_offered() -> None:
    """The only provider for which LiteLLM would refuse it otherwise."""
    from litellm import AmazonConverseConfig

    told = AmazonConverseConfig()._transform_request(
        model="anthropic.claude-m", messages=SEARCHED, optional_params={}, litellm_params={}
    )
    assert "toolConfig" not in told
    assert "recall_search" in str(told["messages"])


# --- Gemini --------------------------------------------------------------------------------------

USAGE = {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}}


def part(text: str, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {
        "content": {"parts": [{"text": text}], "role": "model"},
        "index": 0,
    }
    if finish is not None:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], **fields}


async def test_gemini_streams(server: FaultServer, gemini: Cloud) -> None:
    server.play(stream(part("你"), part("好🎉", "STOP", **USAGE)))
    chunks = [chunk.parsed async for chunk in gemini.stream(make_call())]
    assert len({chunk["id"] for chunk in chunks}) == 1
    server.play(stream(part("你"), part("好🎉", "STOP", **USAGE)))
    reply, fault = await take(gemini, make_call())
    assert fault is None
    assert (reply.text, reply.finish_reason, reply.prompt_tokens) == ("你好🎉", "stop", 3)
    assert server.chats[0].headers["x-goog-api-key"] == KEY
    assert KEY not in server.chats[0].path


@pytest.mark.parametrize(
    ("exchange", "kind", "given"),
    [
        (stream(), K.EMPTY, ""),
        (stream(part("Half"), part(" a")), K.INTERRUPTED, "Half a"),
        (stream(part("Half"), end="cut"), K.INTERRUPTED, "Half"),
        (stream(part("Half"), end="reset"), K.INTERRUPTED, "Half"),
        (stream(part("Half", "OTHER")), K.INTERRUPTED, "Half"),
        (stream(part("Half"), b"data: {oops\n\n"), K.MALFORMED, "Half"),
        (stream(part("Half"), {"error": {"code": 503, "message": "x"}}), K.OVERLOADED, "Half"),
        (stream({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}), K.REFUSED, ""),
        (stream(part("", "STOP", **USAGE)), K.EMPTY, ""),
        (
            answer(
                400,
                {
                    "error": {
                        "code": 400,
                        "message": "token count (20) exceeds the maximum number of tokens allowed",
                    }
                },
            ),
            K.OVERFLOW,
            "",
        ),
    ],
)
async def test_faults_of_gemini(
    server: FaultServer, gemini: Cloud, exchange: Exchange, kind: K, given: str
) -> None:
    server.play(exchange)
    reply, fault = await take(gemini, make_call())
    assert fault is not None
    assert (fault.kind, reply.text, fault.partial) == (kind, given, bool(given))
    assert len(server.chats) == 1


async def test_gemini_falls_silent(server: FaultServer) -> None:
    backend = make_cloud(server, "gemini/gemini-3.5-flash", SHORT)
    server.play(stream(part("Hi"), end="stall"))
    reply, fault = await take(backend, make_call())
    assert fault is not None
    assert (fault.kind, reply.text) == (K.TIMEOUT, "Hi")
    await server.gone()
    await backend.aclose()


@pytest.mark.parametrize(
    ("native", "finish"), [("STOP", "stop"), ("MAX_TOKENS", "length"), ("SAFETY", "content_filter")]
)
async def test_ends_of_gemini(server: FaultServer, gemini: Cloud, native: str, finish: str) -> None:
    server.play(stream(part("Hi"), part("", native, **USAGE)))
    reply, fault = await take(gemini, make_call())
    assert (fault, reply.finish_reason) == (None, finish)
    server.play(answer(200, part("Hi", native, **USAGE)))
    whole, fault = await take_whole(gemini, make_call(stream=False))
    assert fault is None and whole is not None
    assert whole.finish_reason == finish


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (part("Half", "MALFORMED_FUNCTION_CALL", **USAGE), K.INTERRUPTED),
        ({"promptFeedback": {"blockReason": "SAFETY"}, **USAGE}, K.REFUSED),
        (part("", "STOP", **USAGE), K.EMPTY),
    ],
)
async def test_faults_of_whole_answers_of_gemini(
    server: FaultServer, gemini: Cloud, body: Any, kind: K
) -> None:
    server.play(answer(200, body))
    _, fault = await take_whole(gemini, make_call(stream=False))
    assert fault is not None and fault.kind is kind


async def test_leaving_gemini(server: FaultServer, gemini: Cloud) -> None:
    server.play(stream(part("Hi"), end="stall"))
    chunks: Any = gemini.stream(make_call())
    await anext(chunks)
    await chunks.aclose()
    await server.gone()


async def test_a_whole_answer_is_relayed_byte_for_byte(server: FaultServer, backend: Cloud) -> None:
    body = completion("ok") | {"provider_field": [1]}
    server.play(answer(200, body))
    assert (await backend.complete(make_call(stream=False))).data == json.dumps(body).encode()


async def test_an_answer_without_end_is_read_to_a_bound(
    server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.backends.tap.MAX_EVENT_BYTES", 1_000)
    server.play(answer(200, completion("x" * 2_000)))
    _, fault = await take_whole(make_cloud(server), make_call(stream=False))
    assert fault is not None
    assert (fault.kind, "without end" in fault.what) == (K.MALFORMED, True)


async def test_a_conversation_is_named_to_its_provider(server: FaultServer) -> None:
    """As each provider wants it: in the body, in a header, or not at all."""
    for provider, header, key in (
        ("openai", None, "conv_cf533c5b82d769d3d98a5012"),
        ("xai", "conv_cf533c5b82d769d3d98a5012", None),
        ("deepseek", None, None),
    ):
        backend = make_cloud(server, f"{provider}/m")
        server.play(GOOD)
        call = replace(make_call(), conversation="conv_7")
        assert (await take(backend, call))[1] is None
        request = server.chats[-1]
        assert request.headers.get("x-grok-conv-id") == header
        assert request.json.get("prompt_cache_key") == key
        await backend.aclose()


async def test_what_litellm_fetches_itself_is_checked_by_it(
    server: FaultServer, backend: Cloud
) -> None:
    import litellm
    from litellm.litellm_core_utils.url_utils import validate_url

    litellm.user_url_validation = False
    server.play(GOOD)
    other = make_cloud(server)
    assert (await take(other, make_call()))[1] is None
    assert (litellm.user_url_validation, litellm.user_url_allowed_hosts) == (True, [])
    with pytest.raises(Exception, match=r"(?i)block|private|not allowed"):
        validate_url("http://127.0.0.1/x.png")
    await other.aclose()
