"""What is llama-server's own: the body, the window, counting, health."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from gateway.backends.base import Call, Purpose
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.llama_cpp import HEALTH_SECONDS, PROPS_SECONDS, LlamaCpp
from gateway.wire.json_text import dump_bytes
from gateway.wire.media import WITHHELD
from policies.schema import LlamaCppBackend
from tests.faults.server import DONE, FaultServer, answer, delta, end, role, stream
from tests.gateway.backends.conftest import KEY, make_call, make_llama, take

GOOD = stream(role(), delta("ok"), end("stop"), DONE)


class Clock:
    """Seconds that pass when told."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest_asyncio.fixture
async def backend(server: FaultServer, clock: Clock) -> AsyncIterator[LlamaCpp]:
    backend = LlamaCpp("local", LlamaCppBackend(url=server.url), clock=clock)
    yield backend
    await backend.aclose()


def props(window: int, slots: Any = 1) -> Any:
    return answer(200, {"default_generation_settings": {"n_ctx": window}, "total_slots": slots})


async def test_messages_are_sent_byte_for_byte(server: FaultServer, backend: LlamaCpp) -> None:
    odd = (
        b'{"role":"user", "content":"\xe4\xbd\xa0",  "z":1,"a":2}',
        b'{"role": "user","content":""}',
    )
    server.play(GOOD)
    await take(backend, Call(odd, {}, True, 5, "chat", "r"))
    assert b"[" + b",".join(odd) + b"]" in server.chats[0].body
    assert len(server.chats[0].json["messages"]) == 2


async def test_unknown_fields_pass_and_managed_ones_do_not(
    server: FaultServer, backend: LlamaCpp
) -> None:
    """C10: nor does a client reach into another conversation's slot."""
    params: dict[str, Any] = {
        "min_p": 0.1,
        "dry_multiplier": 0.8,
        "grammar": "root ::= [a-z]+",
        "something_new": {"deep": [1]},
        "chat_template_kwargs": {"date_string": "x"},
        "id_slot": 3,
        "cache_prompt": False,
        "n_cache_reuse": 256,
        "n_predict": 9_999,
        "max_completion_tokens": 9_999,
        "max_tokens": 9_999,
        "model": "foldgate",
        "stream": False,
        "stream_options": {"include_usage": False},
        "messages": [],
        "return_progress": False,
    }
    server.play(GOOD)
    await take(backend, make_call(**params))
    body = server.chats[0].json
    assert body.pop("messages") == [{"role": "user", "content": "hi"}]
    assert body == {
        "min_p": 0.1,
        "dry_multiplier": 0.8,
        "grammar": "root ::= [a-z]+",
        "something_new": {"deep": [1]},
        "chat_template_kwargs": {"date_string": "x"},
        "max_tokens": 100,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
    }
    dropped = backend.dropped_params(params)
    assert dropped == ("cache_prompt", "id_slot", "n_cache_reuse", "return_progress")


async def test_headers_hold_the_key_and_no_conversation(server: FaultServer) -> None:
    backend = make_llama(server, api_key=KEY, model="glm")
    server.play(GOOD)
    await take(backend, make_call())
    headers = server.chats[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert not [name for name in headers if "conversation" in name or name == "cookie"]
    assert server.chats[0].json["model"] == "glm"
    await backend.aclose()


@pytest.mark.parametrize(
    ("purpose", "thinks"), [("chat", True), ("summary", False), ("gist", False)]
)
async def test_summaries_do_not_think(
    server: FaultServer, backend: LlamaCpp, purpose: Any, thinks: bool
) -> None:
    """B21."""
    form = {"type": "json_schema", "json_schema": {"schema": {"type": "object"}}}
    server.play(GOOD)
    await take(backend, make_call(purpose=purpose, response_format=form))
    body = server.chats[0].json
    assert body.get("chat_template_kwargs") == (None if thinks else {"enable_thinking": False})
    assert body["response_format"] == form


async def test_shared_slots_are_chosen_by_the_server(
    server: FaultServer, backend: LlamaCpp
) -> None:
    server.play(GOOD)
    call = Call((), {"id_slot": 9}, True, 5, "chat", "r", conversation="c")
    await take(backend, call)
    assert "id_slot" not in server.chats[0].json
    assert call.trace.slot is None
    assert call.trace.queued is not None and call.trace.first_token is not None


@pytest.mark.parametrize(("named", "connections"), [("llama.cpp", 2), ("nginx", 1)])
async def test_a_connection_that_carried_a_stream_is_used_again_where_that_is_kept(
    server: FaultServer, backend: LlamaCpp, named: str, connections: int
) -> None:
    head, *rest = GOOD.pieces
    head = head.replace(b"\r\n", f"\r\nServer: {named}\r\n".encode(), 1)
    said = replace(GOOD, pieces=(head, *rest))
    server.play(said, said, said)
    await take(backend, make_call())  # from this answer on it is known who is there
    assert server.connections == 1
    for _ in range(2):
        await take(backend, make_call())
    assert server.connections == 1 + connections


async def test_proxies_of_the_environment_are_not_asked(
    server: FaultServer, backend: LlamaCpp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    server.play(GOOD)
    assert (await take(backend, make_call()))[1] is None


async def test_a_stream_that_is_packed_unasked_is_refused(
    server: FaultServer, backend: LlamaCpp
) -> None:
    head, *rest = GOOD.pieces
    head = head.replace(b"\r\n", b"\r\nContent-Encoding: br\r\n", 1)
    server.play(replace(GOOD, pieces=(head, *rest)))
    _, fault = await take(backend, make_call())
    assert fault is not None
    assert (fault.kind, "(br)" in fault.what) == (FaultKind.MALFORMED, True)
    await server.gone()


# --- window --------------------------------------------------------------------------------------


async def test_the_window_is_read_and_believed_for_a_while(
    server: FaultServer, backend: LlamaCpp, clock: Clock
) -> None:
    """B06: a slot's window, not the server's total."""
    server.routes["/props"] = props(4096, 2)
    assert [await backend.window(), await backend.window()] == [4096, 4096]
    assert (backend.window_tokens, backend.total_slots) == (4096, 2)
    assert len(server.requests) == 1
    server.routes["/props"] = props(8192)
    clock.now += PROPS_SECONDS
    assert await backend.window() == 8192


@pytest.mark.parametrize("slots", [0, -1, 10**9, "2", None])
async def test_a_number_of_slots_that_no_server_has_is_none(
    server: FaultServer, backend: LlamaCpp, slots: Any
) -> None:
    """Each slot is kept in memory: a thousand million of them ended the gateway."""
    server.routes["/props"] = props(4096, slots)
    assert await backend.window() == 4096
    assert backend.total_slots is None


@pytest.mark.parametrize("window", [True, False, 0, -1, "4096"])
async def test_a_window_that_is_no_number_is_none(
    server: FaultServer, backend: LlamaCpp, window: Any
) -> None:
    """true is 1 to Python: a window of one token refuses everything."""
    server.routes["/props"] = props(window)
    assert await backend.window() is None


async def test_true_is_no_count(server: FaultServer, backend: LlamaCpp) -> None:
    server.routes["/props"] = props(4096, True)
    server.routes["/v1/chat/completions/input_tokens"] = answer(200, {"input_tokens": True})
    assert await backend.window() == 4096
    assert backend.total_slots is None
    assert await backend.count_tokens([b"{}"]) is None


async def test_a_restarted_server_is_asked_again(server: FaultServer, backend: LlamaCpp) -> None:
    server.routes["/props"] = props(4096)
    assert await backend.window() == 4096
    server.routes["/props"] = props(2048)
    server.play(answer(503, {"error": {"message": "Loading model", "type": "unavailable_error"}}))
    await take(backend, make_call())
    assert await backend.window() == 2048


async def test_an_overflow_teaches_the_window(server: FaultServer, backend: LlamaCpp) -> None:
    """B06."""
    body = {"error": {"type": "exceed_context_size_error", "n_prompt_tokens": 9, "n_ctx": 1024}}
    server.play(answer(400, body))
    await take(backend, make_call())
    assert backend.window_tokens == 1024


@pytest.mark.parametrize(
    ("configured", "served", "window"), [(2048, 4096, 2048), (8192, 4096, 4096)]
)
async def test_the_smaller_window_holds(
    server: FaultServer, configured: int, served: int, window: int
) -> None:
    backend = make_llama(server, window=configured)
    server.routes["/props"] = props(served)
    assert backend.window_tokens == configured
    assert await backend.window() == window
    await backend.aclose()


@pytest.mark.parametrize("body", [{}, [], {"default_generation_settings": None}, b"<html>"])
async def test_properties_that_say_nothing(
    server: FaultServer, backend: LlamaCpp, body: Any
) -> None:
    server.routes["/props"] = answer(
        200, body if isinstance(body, bytes) else json.dumps(body).encode()
    )
    assert await backend.window() is None


# --- counting and health -------------------------------------------------------------------------


async def test_counting(server: FaultServer, backend: LlamaCpp) -> None:
    path = "/v1/chat/completions/input_tokens"
    server.routes[path] = answer(200, {"input_tokens": 31})
    messages = make_call("你好").messages
    assert await backend.count_tokens(messages, {"tools": [], "id_slot": 1}) == 31
    assert server.requests[0].json == {
        "messages": [{"role": "user", "content": "你好"}],
        "tools": [],
    }
    assert await backend.count_tokens(()) == 31


async def test_a_server_without_a_counter_is_asked_once(
    server: FaultServer, backend: LlamaCpp
) -> None:
    """D17: what cannot count falls back to characters."""
    assert [await backend.count_tokens(()), await backend.count_tokens(())] == [None, None]
    assert len(server.requests) == 1


async def test_health_is_cached_briefly(
    server: FaultServer, backend: LlamaCpp, clock: Clock
) -> None:
    loading = answer(503, {"error": {"message": "Loading model", "type": "unavailable_error"}})
    server.routes["/health"] = loading
    health = await backend.health()
    assert not health.ok and "loading its model" in health.reason
    server.routes["/health"] = answer(200, {"status": "ok"})
    assert not (await backend.health()).ok
    clock.now += HEALTH_SECONDS
    assert (await backend.health()).ok
    assert len(server.requests) == 2


async def test_health_of_nobody(server: FaultServer, backend: LlamaCpp) -> None:
    await server.__aexit__()
    health = await backend.health()
    assert not health.ok and "cannot be reached" in health.reason


# --- whole answers from streams ------------------------------------------------------------------


async def test_a_whole_answer_keeps_tools_and_reasoning(
    server: FaultServer, backend: LlamaCpp
) -> None:
    tool = {
        "index": 0,
        "id": "t",
        "type": "function",
        "function": {"name": "f", "arguments": '{"a"'},
    }
    server.play(
        stream(
            role(),
            delta(None, reasoning_content="hm"),
            delta(None, tool_calls=[tool]),
            delta(None, tool_calls=[{"index": 0, "function": {"arguments": ":1}"}}]),
            end("tool_calls"),
            DONE,
        )
    )
    answered = (await backend.complete(make_call(stream=False))).parsed
    assert answered["choices"] == [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": None,
                "reasoning_content": "hm",
                "tool_calls": [
                    {
                        "id": "t",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"a":1}'},
                    }
                ],
            },
            "finish_reason": "tool_calls",
        }
    ]


async def test_a_whole_answer_that_breaks_off_carries_what_came(
    server: FaultServer, backend: LlamaCpp
) -> None:
    server.play(stream(role(), delta("Half"), end="cut"))
    with pytest.raises(UpstreamFault) as caught:
        await backend.complete(make_call(stream=False))
    fault = caught.value
    assert fault.kind is FaultKind.INTERRUPTED
    assert fault.received is not None
    assert fault.received["choices"][0]["message"]["content"] == "Half"
    assert fault.received["choices"][0]["finish_reason"] is None


# --- slots -----------------------------------------------------------------------------------


def call_of(conversation: str | None, purpose: Purpose = "chat", **params: Any) -> Call:
    message = b'{"role":"user","content":"hi"}'
    return Call((message,), params, True, 100, purpose, "r", conversation=conversation)


@pytest_asyncio.fixture
async def pinned(server: FaultServer) -> AsyncIterator[LlamaCpp]:
    server.routes["/props"] = props(4096, 2)
    backend = make_llama(server, slots="pinned", queue=1)
    yield backend
    await backend.aclose()


async def test_a_pinned_conversation_names_its_slot(server: FaultServer, pinned: LlamaCpp) -> None:
    """C17: and a second choice would be written into another conversation's."""
    server.play(GOOD, GOOD, GOOD)
    calls = [call_of(name, id_slot=9, n=3) for name in ("아", "雨", "아")]
    for call in calls:
        await take(pinned, call)
    assert [request.json["id_slot"] for request in server.chats] == [0, 1, 0]
    assert [call.trace.slot for call in calls] == [0, 1, 0]
    assert not any("n" in request.json for request in server.chats)
    assert pinned.dropped_params({"n": 3, "id_slot": 9}) == ("id_slot", "n")
    assert pinned.dropped_params({"n": 1}) == ()


async def test_a_request_waits_for_the_one_in_its_slot_and_the_next_is_refused(
    server: FaultServer, pinned: LlamaCpp
) -> None:
    hold = asyncio.Event()
    server.play(stream(role(), delta("ok"), end("stop"), DONE, hold=hold), GOOD)
    first = asyncio.create_task(take(pinned, call_of("a")))
    await server.asked(0)
    second = asyncio.create_task(take(pinned, call_of("a")))
    await asyncio.sleep(0)
    _, fault = await take(pinned, call_of("b"))
    assert fault is not None
    assert (fault.kind, fault.status) == (FaultKind.OVERLOADED, 429)
    assert fault.retry_after is not None and fault.retry_after >= 1
    assert len(server.chats) == 1
    hold.set()
    assert [(await task)[1] for task in (first, second)] == [None, None]
    assert [request.json["id_slot"] for request in server.chats] == [0, 0]


async def test_the_next_prompt_is_sent_once_the_reply_before_has_begun(
    server: FaultServer, pinned: LlamaCpp
) -> None:
    server.play(stream(role(), delta("ok"), end="stall"), GOOD)
    first = pinned.stream(call_of("a"))
    assert (await anext(first)).parsed
    assert (await take(pinned, call_of("b")))[1] is None
    await first.aclose()


@pytest.mark.parametrize("leaves", ["before its first byte", "in mid-reply"])
async def test_a_client_that_leaves_gives_its_slot_back_once_the_server_is_idle(
    server: FaultServer, pinned: LlamaCpp, leaves: str
) -> None:
    server.routes["/slots"] = answer(200, [{"id": 0, "is_processing": False}])  # type: ignore[arg-type]
    events = () if leaves == "before its first byte" else (role(), delta("ok"))
    server.play(stream(*events, end="stall"), GOOD)
    task = asyncio.create_task(take(pinned, call_of("a")))
    await server.asked(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await server.gone(0)
    assert (await take(pinned, call_of("a")))[1] is None
    assert "/slots" in [request.path for request in server.requests]
    assert server.chats[1].json["id_slot"] == 0
    assert pinned.slot_care.in_flight() == 0


async def test_a_prefill_reads_a_prompt_and_drops_its_token(
    server: FaultServer, pinned: LlamaCpp
) -> None:
    server.play(stream(role(), delta(""), end("length"), DONE))
    call = call_of("아", "prefill", tools=[], n=2)
    assert await pinned.prefill(call)
    body = server.chats[0].json
    assert (body["max_tokens"], body["add_generation_prompt"]) == (0, False)
    assert (body["id_slot"], body["tools"], "n" in body) == (0, [], False)
    assert call.trace.slot == 0


async def test_a_prefill_gives_way_to_a_chat_at_once(server: FaultServer, pinned: LlamaCpp) -> None:
    server.play(stream(end="stall"), GOOD)
    prefill = asyncio.create_task(pinned.prefill(call_of("a", "prefill")))
    await server.asked(0)
    assert (await take(pinned, call_of("b")))[1] is None
    await server.gone(0)
    assert await prefill is False


async def test_a_prefill_that_is_cancelled_ends_at_once(
    server: FaultServer, pinned: LlamaCpp
) -> None:
    server.play(stream(end="stall"))
    prefill = asyncio.create_task(pinned.prefill(call_of("a", "prefill")))
    await server.asked(0)
    prefill.cancel()
    with pytest.raises(asyncio.CancelledError):
        await prefill
    await server.gone(0)
    assert pinned.slot_care.in_flight() == 0


async def test_a_prefill_that_fails_says_so(server: FaultServer, pinned: LlamaCpp) -> None:
    server.play(answer(500, {"error": {"message": "no"}}))
    with pytest.raises(UpstreamFault):
        await pinned.prefill(call_of("a", "prefill"))


REMOTE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}


async def test_the_server_fetches_no_image_itself(server: FaultServer) -> None:
    """An older one gives way to a text; a new one is refused, in words that help."""
    backend = make_llama(server)
    server.play(stream(role(), delta("ok"), end("stop"), DONE))
    old = dump_bytes({"role": "user", "content": [REMOTE]})
    new = make_call().messages[0]
    reply, fault = await take(backend, replace(make_call(), messages=(old, new)))
    assert (reply.text, fault) == ("ok", None)
    assert server.chats[0].json["messages"][0]["content"] == [{"type": "text", "text": WITHHELD}]

    _, fault = await take(backend, replace(make_call(), messages=(new, old)))
    assert fault is not None
    assert (fault.kind, "data: address" in fault.what) == (FaultKind.BAD_REQUEST, True)
    assert len(server.chats) == 1
    await backend.aclose()
