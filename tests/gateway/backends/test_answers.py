"""What counts as an answer, streamed and whole."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.answers import AnswerReader, choose_wait
from gateway.backends.base import Chunk
from gateway.backends.faults import FaultKind as K
from gateway.backends.faults import UpstreamFault
from gateway.backends.whole_answers import check_completion
from gateway.wire.replies import ReplyBuilder
from policies.schema import Timeouts
from tests.faults.server import DONE, chunk, delta, encode_event, end, role, usage

Events = list[dict[str, Any] | str | bytes]


def read(*events: dict[str, Any] | str | bytes) -> tuple[list[Chunk], UpstreamFault | None]:
    """The chunks that a stream of these events gives, and its fault."""
    return read_bytes(*map(encode_event, events))


def read_bytes(*pieces: bytes) -> tuple[list[Chunk], UpstreamFault | None]:
    reader = AnswerReader("b")
    chunks = [given_chunk for piece in pieces for given_chunk in reader.feed(piece)]
    chunks += reader.close()
    return chunks, reader.fault


def text(chunks: list[Chunk]) -> str:
    builder = ReplyBuilder()
    for piece in chunks:
        builder.feed(piece.parsed)
    return builder.text


def test_a_good_stream_is_given_byte_for_byte() -> None:
    events: Events = [role(), delta("你"), delta("好🎉"), end("stop"), usage()]
    chunks, fault = read(*events, DONE)
    assert fault is None
    assert [piece.data for piece in chunks] == [encode_event(e)[6:-2] for e in events]
    assert all(json.loads(piece.data) == piece.parsed for piece in chunks)


GOOD_EVENTS: Events = [role(), delta("你好"), delta("🎉"), end("stop"), usage(), DONE]
GOOD = b"".join(map(encode_event, GOOD_EVENTS))


@given(st.lists(st.integers(0, len(GOOD)), max_size=10))
def test_any_cut_of_the_bytes_gives_the_same(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(GOOD)]
    chunks, fault = read_bytes(*(GOOD[a:b] for a, b in itertools.pairwise(edges)))
    assert (text(chunks), fault) == ("你好🎉", None)


@pytest.mark.parametrize(
    ("events", "kind", "given_text"),
    [
        ([], K.EMPTY, ""),
        ([DONE], K.EMPTY, ""),
        ([b": ping\n\n"], K.EMPTY, ""),
        ([role()], K.INTERRUPTED, ""),
        ([role(), delta("Half")], K.INTERRUPTED, "Half"),
        ([role(), delta("Half"), DONE], K.INTERRUPTED, "Half"),
        ([role(), delta("Half"), end("error")], K.INTERRUPTED, "Half"),
        ([role(), end("abort", "Half"), DONE], K.INTERRUPTED, "Half"),
        ([role(), end("insufficient_system_resource"), DONE], K.INTERRUPTED, ""),
        ([role(), end("stop"), DONE], K.EMPTY, ""),
        ([role(), delta(" \n\u200b"), end("stop"), DONE], K.EMPTY, ""),
        ([role(), end("length"), usage(), DONE], K.EMPTY, ""),
        ([{"error": {"message": "overloaded", "code": 529}}], K.OVERLOADED, ""),
        ([role(), delta("Half"), {"error": {"code": 529, "message": "x"}}], K.OVERLOADED, "Half"),
        ([delta("Half") | {"error": {"code": 503, "message": "x"}}], K.OVERLOADED, ""),
        ([b'error: {"code":400,"type":"exceed_context_size_error"}\n\n', DONE], K.OVERFLOW, ""),
        ([b'event: error\ndata: {"message":"down"}\n\n'], K.SERVER, ""),
        ([b'{"error":{"code":400,"type":"exceed_context_size_error"}}'], K.OVERFLOW, ""),
        ([b'{\n "error":\n {"code": 503}\n}\n\n'], K.OVERLOADED, ""),
        ([role(), delta("Half"), b'{"error":{"code":503}}'], K.OVERLOADED, "Half"),
        ([b"<html><body>502 Bad Gateway</body></html>"], K.MALFORMED, ""),
        ([b"upstream said no"], K.MALFORMED, ""),
        ([role(), delta("Half"), b"data: {oops\n\n", end("stop"), DONE], K.MALFORMED, "Half"),
        ([role(), delta("Half"), b'data: {"choi'], K.INTERRUPTED, "Half"),
        ([delta("a"), "7"], K.MALFORMED, "a"),
        ([delta("a"), {"choices": "b"}], K.MALFORMED, "a"),
        ([delta("a"), {"choices": [7]}], K.MALFORMED, "a"),
        ([delta("a"), chunk({"delta": "b"})], K.MALFORMED, "a"),
        ([delta("a"), chunk({"delta": {"content": 7}})], K.MALFORMED, "a"),
        ([delta("a"), chunk({"delta": {"tool_calls": ["x"]}})], K.MALFORMED, "a"),
        ([delta("a"), chunk({"delta": {"tool_calls": [{"id": 5}]}})], K.MALFORMED, "a"),
        ([delta("a"), chunk({"delta": {"function_call": {"name": 7}}})], K.MALFORMED, "a"),
        ([delta("a"), chunk({"delta": {"content": ["b"]}})], K.MALFORMED, "a"),
        ([delta("a"), chunk({"index": [0], "delta": {"content": "b"}})], K.MALFORMED, "a"),
        ([delta("a"), chunk({"index": "0", "delta": {"content": "b"}})], K.MALFORMED, "a"),
        ([delta("a"), chunk({"index": -1, "delta": {"content": "b"}})], K.MALFORMED, "a"),
    ],
)
def test_faults_come_after_what_came_before_them(events: Events, kind: K, given_text: str) -> None:
    """A13, B03, B04, B07, B22, F01, F04, F20: an end is no proof of an answer."""
    chunks, fault = read(*events)
    assert fault is not None
    assert (fault.kind, text(chunks)) == (kind, given_text)
    assert fault.partial is bool(chunks) is bool(given_text)
    assert not any(
        choice.get("finish_reason") for piece in chunks for choice in piece.parsed["choices"]
    )


@pytest.mark.parametrize(
    ("events", "given_text", "finish"),
    [
        ([role(), delta("Hi"), end("stop"), delta(" more"), end("stop"), DONE], "Hi", "stop"),
        ([role(), delta("Hi"), end("stop"), DONE, delta("LATE")], "Hi", "stop"),
        ([role(), delta("Hi"), end("stop")], "Hi", "stop"),
        ([role(), delta("Hi"), end("stop"), b"data: {oops\n\n", DONE], "Hi", "stop"),
        ([role(), delta("Hi"), end("stop"), {"error": {"message": "late"}}], "Hi", "stop"),
        ([role(), delta("Hi"), end("length"), usage(), DONE], "Hi", "length"),
        ([role(), delta("Hi"), end("STOP"), DONE], "Hi", "stop"),
        ([role(), delta("Hi"), end("SAFETY"), DONE], "Hi", "content_filter"),
        ([role(), end("content_filter"), DONE], "", "content_filter"),
        ([role(), end("BLOCKLIST"), DONE], "", "content_filter"),
        ([delta("Hi"), chunk({"delta": None, "finish_reason": "stop"}), DONE], "Hi", "stop"),
        ([{"choices": None}, delta("Hi"), {"choices": None}, end("stop"), DONE], "Hi", "stop"),
        ([b": ping\n\n", role(), b":\n\n", delta("Hi"), end("stop"), DONE], "Hi", "stop"),
        ([delta("Hi"), end(""), end("stop"), DONE], "Hi", "stop"),
    ],
)
def test_what_is_tolerated(events: Events, given_text: str, finish: str) -> None:
    """F19, F20: null forms, and what comes after the end."""
    chunks, fault = read(*events)
    assert fault is None
    assert text(chunks) == given_text
    finishes = [c["finish_reason"] for piece in chunks for c in piece.parsed["choices"]]
    assert [reason for reason in finishes if reason] == [finish]
    assert all(isinstance(piece.parsed["choices"], list) for piece in chunks)
    assert all(json.loads(piece.data) == piece.parsed for piece in chunks)


def test_events_without_blank_lines_between_them() -> None:
    lines = b"".join(encode_event(e)[:-1] for e in (delta("a"), delta("b"), end("stop"), DONE))
    chunks, fault = read_bytes(lines)
    assert (text(chunks), fault) == ("ab", None)


def test_one_object_over_several_data_lines() -> None:
    pretty = json.dumps(delta("a"), indent=1).replace("\n", "\ndata: ")
    chunks, fault = read(f"data: {pretty}\n\n".encode(), end("stop"), DONE)
    assert (text(chunks), fault) == ("a", None)


@pytest.mark.parametrize(
    "piece",
    [
        {"reasoning_content": "hm"},
        {"reasoning": "hm"},
        {"refusal": "no"},
        {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": ""}}]},
        {"function_call": {"name": "f"}},
        {"audio": {"data": "AA=="}},
    ],
)
def test_substance_is_more_than_text(piece: dict[str, Any]) -> None:
    chunks, fault = read(role(), delta(None, **piece), end("stop"), DONE)
    assert fault is None
    assert len(chunks) == 3


def test_chunks_without_substance_are_held_until_something_follows() -> None:
    reader = AnswerReader("b")
    assert reader.feed(encode_event(role())) == []
    assert reader.feed(encode_event(delta("\n"))) == []
    assert text(reader.feed(encode_event(delta("a")))) == "\na"
    assert len(reader.feed(encode_event(delta("b")))) == 1


def test_the_reading_of_a_prompt_is_no_answer_yet() -> None:
    reader = AnswerReader("b")
    progress = role() | {"prompt_progress": {"total": 5521, "processed": 2048}}
    assert reader.feed(encode_event(progress)) == []
    assert not reader.course.started


def test_each_of_several_choices_must_end() -> None:
    def piece(index: int, finish: str | None = None) -> dict[str, Any]:
        return chunk({"index": index, "delta": {"content": "x"}, "finish_reason": finish})

    chunks, fault = read(piece(0), piece(1), piece(0, "stop"), piece(1, "length"), piece(1), DONE)
    assert (len(chunks), fault) == (4, None)
    _, fault = read(piece(0), piece(1), piece(0, "stop"), DONE)
    assert fault is not None and fault.kind is K.INTERRUPTED


def test_a_connection_that_breaks_after_the_end_breaks_nothing() -> None:
    reader = AnswerReader("b")
    reader.feed(encode_event(delta("a")) + encode_event(end("stop")))
    reader.break_off(UpstreamFault(K.INTERRUPTED, "x"))
    assert (reader.done, reader.fault) == (True, None)


def test_a_connection_that_breaks_gives_the_last_event_first() -> None:
    reader = AnswerReader("b")
    reader.feed(encode_event(delta("a")) + encode_event(delta("b"))[:-1])
    chunks = reader.break_off(UpstreamFault(K.INTERRUPTED, "x"))
    assert text(chunks) == "b"
    assert reader.fault is not None and reader.fault.partial


def test_how_long_the_next_bytes_are_waited_for() -> None:
    reader, timeouts = AnswerReader("b"), Timeouts(first_token=300.0, idle=120.0)
    waits = [choose_wait(timeouts, reader)]
    for event in (delta("a"), end("stop")):
        reader.feed(encode_event(event))
        waits.append(choose_wait(timeouts, reader))
    assert waits == [300.0, 120.0, 5.0]


# --- whatever an upstream writes ------------------------------------------------------------------

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["index", "name", "arguments", "id", "type", "text", "cached_tokens"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=6,
)
NAMES = ["content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call"]
NAMES += ["audio", "images", "annotations", "role"]
DELTAS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3) | VALUES
CHOICES = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, 0, 1]) | VALUES,
        "delta": DELTAS,
        "message": DELTAS,
        "finish_reason": st.sampled_from([None, "stop"]) | VALUES,
        "logprobs": VALUES,
    },
)
FIGURES = st.dictionaries(
    st.sampled_from(["prompt_tokens", "completion_tokens", "prompt_tokens_details", "prompt_n"]),
    VALUES,
)
ANSWERS = st.fixed_dictionaries(
    {"choices": st.lists(CHOICES, max_size=2) | VALUES},
    optional={"usage": FIGURES | VALUES, "timings": FIGURES | VALUES, "model": VALUES},
)


def check_figures(reply: ReplyBuilder) -> None:
    """What is read of a reply can be stored."""
    for count in (reply.prompt_tokens, reply.completion_tokens, reply.cached_tokens):
        assert count is None or 0 <= count < 2**31
    assert isinstance(reply.model, str | None)
    assert isinstance(reply.finish_reason, str | None)


@given(st.lists(ANSWERS | VALUES, max_size=4))
def test_no_stream_breaks_its_reader(events: list[Any]) -> None:
    reader, reply = AnswerReader("b"), ReplyBuilder()
    chunks: list[Chunk] = []
    for event in [delta("a"), *events]:
        chunks += reader.feed(f"data: {json.dumps(event)}\n\n".encode())
    for piece in chunks + reader.close():
        reply.feed(piece.parsed)
    assert reply.message()["role"] == "assistant"
    assert reply.completion()["choices"]
    assert reply.is_empty in (True, False)
    check_figures(reply)


@given(ANSWERS | VALUES)
def test_no_whole_answer_breaks_its_reader(answer: Any) -> None:
    try:
        completion = check_completion("b", b"", answer)
    except UpstreamFault as fault:
        received = fault.received or {}
    else:
        received = completion.parsed
    reply = ReplyBuilder.from_completion(received)
    assert reply.message()["role"] == "assistant"
    check_figures(reply)


SECRET = "hush-0123456789"


@pytest.mark.parametrize(
    "event",
    [
        {"error": {"message": f"wrong {SECRET}", "code": 500}},
        end(SECRET),
        end(f"stop {SECRET}"),
        b"event: error\ndata: " + SECRET.encode() + b"\n\n",
    ],
)
def test_a_key_that_an_upstream_repeats_is_told_to_nobody(event: Any) -> None:
    reader = AnswerReader("b", (SECRET,))
    reader.feed(encode_event(delta("a")) + encode_event(event))
    reader.close()
    assert reader.fault is not None
    assert SECRET not in reader.fault.what
    with pytest.raises(UpstreamFault) as caught:
        answer = {"choices": [{"message": {"content": "a"}, "finish_reason": SECRET}]}
        check_completion("b", b"", answer, (SECRET,))
    assert SECRET not in caught.value.what
