"""What a cloud model is shown of a call with a mask, and what comes back of its answer."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.base import Call, Chunk, Completion
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.veil import complete_veiled, stream_veiled
from gateway.wire.json_text import dump_bytes, loads
from gateway.wire.replies import ReplyBuilder
from policies.masking.kinds import KINDS
from policies.masking.placeholders import Masks
from tests.faults.server import (
    DONE,
    FaultServer,
    answer,
    chunk,
    completion,
    delta,
    end,
    role,
    stream,
    usage,
)
from tests.gateway.backends.conftest import LITELLM_WARNS, make_call, make_cloud, take, take_whole

MAIL, PHONE = "bob@example.com", "090-1234-5678"
MASKS = Masks("conv_7", KINDS)
SHOWN, SHOWN_PHONE = MASKS.mask(MAIL), MASKS.mask(PHONE)


def call(text: str = f"I am {MAIL}, {PHONE}", **more: Any) -> Call:
    return replace(make_call(text), conversation="conv_7", mask=KINDS, **more)


async def lifted(events: Sequence[dict[str, Any]], asked: Call, **more: Any) -> list[Chunk]:
    """What a stream of these chunks is given as."""

    async def send(veiled: Call) -> AsyncGenerator[Chunk, None]:
        assert MAIL not in veiled.messages[0].decode() and veiled.mask == ()
        for event in events:
            text = event["choices"][0]["delta"].get("content") if more.get("plain") else None
            yield Chunk(dump_bytes(event), event, text)
        if fault := more.get("fault"):
            raise fault

    async with aclosing(stream_veiled(send, asked)) as chunks:
        return [one async for one in chunks]


def put_together(chunks: Sequence[Chunk]) -> ReplyBuilder:
    reply = ReplyBuilder()
    for one in chunks:
        assert loads(one.data) == one.parsed
        one.feed(reply)
    return reply


async def test_a_placeholder_cut_in_two_comes_back_whole() -> None:
    pieces = ["Write ", "[", SHOWN[1:5], SHOWN[5:-1], "] now, [MAIL_", "x]", " a[0]"]
    events = [role(), *map(delta, pieces), end("stop")]
    given_back = await lifted(events, call())
    reply = put_together(given_back)
    assert reply.text == f"Write {MAIL} now, [MAIL_x] a[0]"
    assert reply.finish_reason == "stop"
    texts = [one.parsed["choices"][0]["delta"].get("content") or "" for one in given_back]
    assert texts == ["", "Write ", "", "", "", f"{MAIL} now, ", "[MAIL_x]", " a[0]", ""]


async def test_plain_chunks_stay_plain_and_held_ones_are_not_given() -> None:
    events = [delta("so "), delta("plain"), delta(SHOWN[:4]), delta(SHOWN[4:]), delta("[1]")]
    given_back = await lifted(events, call(), plain=True)
    assert [one.text for one in given_back] == ["so ", "plain", MAIL, "[1]"]
    assert given_back[0].data == dump_bytes(events[0])


async def test_what_is_held_at_the_end_is_told_with_it() -> None:
    reply = put_together(await lifted([role(), delta(SHOWN[:6]), end("length")], call()))
    assert (reply.text, reply.finish_reason) == (SHOWN[:6], "length")
    reply = put_together(await lifted([role(), delta(SHOWN[:6]), end("stop", SHOWN[6:])], call()))
    assert reply.text == MAIL
    reply = put_together(await lifted([role(), delta("x" + SHOWN[:6])], call()))
    assert reply.text == "x" + SHOWN[:6]


async def test_a_broken_stream_gives_what_was_held_and_then_its_fault() -> None:
    async def send(_: Call) -> AsyncGenerator[Chunk, None]:
        event = delta(SHOWN[:6])
        yield Chunk(dump_bytes(event), event)
        raise UpstreamFault(FaultKind.INTERRUPTED, "gone", received=completion(f"a {SHOWN}"))

    said: list[Chunk] = []
    with pytest.raises(UpstreamFault) as raised:
        async for one in stream_veiled(send, call()):
            said += [one]
    assert put_together(said).text == SHOWN[:6]
    assert raised.value.received == completion(f"a {MAIL}")


async def test_thinking_and_calls_come_back_too() -> None:
    arguments = json.dumps({"to": SHOWN, "tel": SHOWN_PHONE})
    first, second = arguments[:12], arguments[12:]
    call_1 = {"index": 0, "id": "c1", "function": {"name": "send", "arguments": first}}
    events = [
        delta(reasoning_content=f"to {SHOWN[:3]}"),
        delta(reasoning_content=f"{SHOWN[3:]}."),
        delta([{"type": "thinking", "thinking": [{"type": "text", "text": SHOWN}]}]),  # type: ignore[arg-type]
        delta([{"type": "text", "text": SHOWN[:2]}]),  # type: ignore[arg-type]
        delta([{"type": "text", "text": SHOWN[2:]}]),  # type: ignore[arg-type]
        delta(tool_calls=[call_1]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": second}}]),
        delta(tool_calls=[{"index": 0, "id": "c2", "function": {"name": "f", "arguments": "[MA"}}]),
        delta(tool_calls=[{"index": 0, "id": "c3", "function": {"arguments": {"to": SHOWN}}}]),
        delta(tool_calls=[{"index": 1, "id": "c4", "function": {"name": "g"}}]),
        delta(function_call={"name": "h", "arguments": SHOWN[:4]}),
        delta(function_call={"arguments": SHOWN[4:] + "[M"}),
        delta(function_call={"name": None}),
        end("tool_calls"),
    ]
    message = put_together(await lifted(events, call())).message()
    assert message["reasoning_content"] == f"to {MAIL}.{MAIL}"
    assert message["content"] == MAIL
    calls = {one["id"]: one["function"]["arguments"] for one in message["tool_calls"]}
    assert json.loads(calls["c1"]) == {"to": MAIL, "tel": PHONE}
    assert calls["c2"] == "[MA"
    assert json.loads(calls["c3"]) == {"to": MAIL}
    assert message["function_call"] == {"name": "h", "arguments": MAIL + "[M"}


async def test_every_choice_is_restored_by_itself() -> None:
    events = [
        chunk({"index": 0, "delta": {"content": SHOWN[:5]}}),
        chunk({"index": 1, "delta": {"content": SHOWN}}),
        chunk({"index": 0, "delta": {"content": SHOWN[5:]}}),
        usage(),
        chunk({"index": 1, "delta": {}, "finish_reason": "stop"}),
        chunk({"index": 0, "delta": {}, "finish_reason": "stop"}),
    ]
    reply = put_together(await lifted(events, call()))
    assert (reply.text, reply.alternatives[0][0]["content"]) == (MAIL, MAIL)
    assert reply.prompt_tokens == 11


async def test_a_call_that_hides_nothing_is_passed_as_it_is() -> None:
    events = [role(), delta("[MAIL_BBBBBBBB]"), end("stop")]
    given_back = await lifted(events, call("hello"))
    assert [one.parsed for one in given_back] == events
    assert all(one.parsed is event for one, event in zip(given_back, events, strict=True))


async def test_whole_answers_and_their_faults() -> None:
    async def complete(veiled: Call) -> Completion:
        assert MAIL not in veiled.messages[0].decode()
        parsed = completion(f"To {SHOWN} [MAIL_BBBBBBBB]")
        return Completion(dump_bytes(parsed), parsed)

    parsed = (await complete_veiled(complete, call())).parsed
    assert parsed["choices"][0]["message"]["content"] == f"To {MAIL} [MAIL_BBBBBBBB]"

    async def plain(_: Call) -> Completion:
        parsed = completion("ok")
        return Completion(b"as it came", parsed)

    assert (await complete_veiled(plain, call())).data == b"as it came"

    async def fail(_: Call) -> Completion:
        raise UpstreamFault(FaultKind.INTERRUPTED, "gone", received=completion(SHOWN))

    with pytest.raises(UpstreamFault) as raised:
        await complete_veiled(fail, call())
    assert raised.value.received == completion(MAIL)


async def test_a_long_prompt_is_masked_too() -> None:
    text = f"{MAIL} " + "words " * 10_000
    events = [role(), delta(SHOWN), end("stop")]
    assert put_together(await lifted(events, call(text))).text == MAIL


@given(st.text(max_size=20), st.lists(st.integers(0, 90), max_size=10))
async def test_law_in_pieces_as_whole(around: str, cuts: list[int]) -> None:
    said = f"{around}{SHOWN}{around}[MAIL_{SHOWN_PHONE}{SHOWN[:7]}"
    pieces, at = [], 0
    for cut in [*sorted(cuts), len(said)]:
        pieces.append(said[at:cut])
        at = max(at, cut)
    events = [*map(delta, pieces), end("stop")]
    streamed = put_together(await lifted(events, call()))
    whole = MASKS.restore(said)
    assert "".join(map(str, streamed.completion()["choices"][0]["message"]["content"])) == whole


@LITELLM_WARNS
@pytest.mark.usefixtures("litellm_imported")
async def test_nothing_of_it_reaches_the_wire(server: FaultServer) -> None:
    backend = make_cloud(server)
    tool = {"type": "function", "function": {"name": "f", "description": f"of {MAIL}"}}
    asked = replace(call(), params={"tools": [tool]})
    server.play(stream(role(), delta(f"Hi {SHOWN}"), end("stop"), DONE, cut_every=7))
    reply, fault = await take(backend, asked)
    assert (reply.text, fault) == (f"Hi {MAIL}", None)
    server.play(answer(200, completion(f"Hi {SHOWN}")))
    whole, _ = await take_whole(backend, replace(asked, stream=False))
    assert whole is not None and whole.text == f"Hi {MAIL}"
    for request in server.chats:
        assert MAIL.encode() not in request.body and PHONE.encode() not in request.body
        assert b"conv_7" not in request.body
        assert SHOWN.encode() in request.body
    assert await backend.count_tokens(asked.messages) is None  # nothing is sent to be counted
    await backend.aclose()
