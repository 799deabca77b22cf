"""Replies put together from their pieces."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.json_text import loads
from gateway.wire.replies import ReplyBuilder


def chunk(finish: str | None = None, index: int = 0, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


def build(*chunks: dict[str, Any]) -> ReplyBuilder:
    builder = ReplyBuilder()
    for piece in chunks:
        builder.feed(piece)
    return builder


def call(arguments: str | None = None, name: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {**fields, "function": {k: v for k, v in function.items() if v is not None}}


def test_pieces_make_one_message() -> None:
    builder = build(
        chunk(role="assistant", content=None),
        chunk(reasoning_content="Hm, "),
        chunk(reasoning_content="so."),
        chunk(content="你"),
        chunk(content="好🎉"),
        chunk("stop"),
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}},
    )
    assert builder.message() == {
        "role": "assistant",
        "content": "你好🎉",
        "reasoning_content": "Hm, so.",
    }
    assert (builder.text, builder.reasoning) == ("你好🎉", "Hm, so.")
    assert (builder.finish_reason, builder.is_empty) == ("stop", False)
    assert (builder.prompt_tokens, builder.completion_tokens) == (7, 5)


@given(st.text(st.characters(exclude_categories=[])), st.data())
def test_any_cut_gives_the_same_text(text: str, data: st.DataObject) -> None:
    units = text.encode("utf-16-le", "surrogatepass")
    whole = units.decode("utf-16-le", "surrogatepass")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(units) // 2), max_size=5)))
    edges = [0, *[2 * cut for cut in cuts], len(units)]
    pieces = [units[a:b].decode("utf-16-le", "surrogatepass") for a, b in itertools.pairwise(edges)]
    builder = build(*(chunk(content=piece) for piece in pieces))
    content = builder.completion()["choices"][0]["message"]["content"]
    assert content == whole


def test_halves_of_an_emoji_in_two_deltas_are_joined() -> None:
    first = loads(rb'{"choices":[{"delta":{"content":"a \ud83c"}}]}')
    second = loads(rb'{"choices":[{"delta":{"content":"\udf89"}}]}')
    assert build(first, second).text == "a 🎉"


def test_null_in_place_of_lists_and_objects() -> None:
    builder = build(
        {"choices": None},
        {"choices": [{"index": 0, "delta": None, "finish_reason": None}]},
        chunk(content="a"),
        {"choices": [{"delta": None, "finish_reason": "stop"}], "usage": None},
    )
    assert (builder.text, builder.finish_reason, builder.usage) == ("a", "stop", None)


def test_content_null_stays_apart_from_content_empty() -> None:
    tool = {"index": 0, "id": "t1", "type": "function", **call("{}", "f")}
    assert build(chunk(content=None, tool_calls=[tool])).message()["content"] is None
    assert build(chunk(content="", tool_calls=[tool])).message()["content"] == ""


@pytest.mark.parametrize(
    "pieces",
    [
        [
            [{"index": 0, "id": "t1", **call("", "f")}],
            [{"index": 0, **call('{"城市":"北')}],
            [{"index": 0, **call('京"}')}],
        ],
        [[{"index": 0, "id": "t1", **call('{"城市":"北京"}', "f")}]],
        # no index anywhere
        [[{"id": "t1", **call("", "f")}], [call('{"城市":')], [call('"北京"}')]],
        # the finished call a second time, whole
        [[{"index": 0, "id": "t1", **call('{"城市":"北京"}', "f")}]] * 2,
        # the name and the id in every piece
        [
            [{"index": 0, "id": "t1", **call('{"城市":', "f")}],
            [{"index": 0, "id": "t1", **call('"北京"}', "f")}],
        ],
    ],
)
def test_a_tool_call_in_any_cut(pieces: list[list[dict[str, Any]]]) -> None:
    builder = build(*(chunk(tool_calls=piece) for piece in pieces), chunk("tool_calls"))
    expected = {
        "id": "t1",
        "type": "function",
        "function": {"name": "f", "arguments": '{"城市":"北京"}'},
    }
    assert builder.message()["tool_calls"] == [expected]
    assert not builder.broken_tools
    assert not builder.is_empty


def test_parallel_calls_all_numbered_zero() -> None:
    builder = build(
        chunk(tool_calls=[{"index": 0, "id": "a", **call('{"x":1}', "f")}]),
        chunk(tool_calls=[{"index": 0, "id": "b", **call('{"x":2}', "f")}]),
    )
    calls = builder.message()["tool_calls"]
    assert [(c["id"], c["function"]["arguments"]) for c in calls] == [
        ("a", '{"x":1}'),
        ("b", '{"x":2}'),
    ]


def test_interleaved_parallel_calls() -> None:
    builder = build(
        chunk(tool_calls=[{"index": 0, "id": "a", **call("", "f")}]),
        chunk(tool_calls=[{"index": 1, "id": "b", **call("", "g")}]),
        chunk(tool_calls=[{"index": 0, **call("{}")}, {"index": 1, **call("[]")}]),
    )
    assert [c["function"] for c in builder.message()["tool_calls"]] == [
        {"name": "f", "arguments": "{}"},
        {"name": "g", "arguments": "[]"},
    ]


@pytest.mark.parametrize(
    ("arguments", "finish", "broken"),
    [
        ('{"a":', "length", True),
        ("", "length", True),
        ("", "tool_calls", False),  # a tool without arguments
        ('{"a":1}', "length", False),
        ('{"a":', "tool_calls", True),
    ],
)
def test_calls_that_cannot_be_executed(arguments: str, finish: str, broken: bool) -> None:
    piece = {"index": 0, "id": "t", **call(arguments, "f")}
    assert build(chunk(tool_calls=[piece]), chunk(finish)).broken_tools is broken


def test_arguments_as_an_object_and_fields_of_a_provider_are_kept() -> None:
    piece = {
        "id": "t",
        "function": {"name": "f", "arguments": {"a": 1}},
        "extra_content": {"s": "x"},
    }
    (closed,) = build(chunk(tool_calls=[piece])).message()["tool_calls"]
    assert closed["function"]["arguments"] == '{"a":1}'
    assert closed["extra_content"] == {"s": "x"}


def test_leaked_thinking_joins_the_reasoning_that_came_apart() -> None:
    builder = build(chunk(reasoning_content="first"), chunk(content="second</think>Hello"))
    assert builder.message() == {
        "role": "assistant",
        "content": "Hello",
        "reasoning_content": "first\nsecond",
    }


def test_reasoning_under_both_names_counts_once() -> None:
    both = build(chunk(reasoning="a", reasoning_content="a"))
    assert both.reasoning == "a"
    assert build(chunk(reasoning="b")).reasoning == "b"


@pytest.mark.parametrize(
    ("delta", "empty"),
    [
        ({"content": ""}, True),
        ({"content": " \n\u200b"}, True),
        ({"content": None}, True),
        ({"content": "a"}, False),
        ({"reasoning_content": "a"}, False),
        ({"refusal": "no"}, False),
        ({"tool_calls": [{"id": "t", "function": {"name": "f"}}]}, False),
        ({"audio": {"data": "AA=="}}, False),
    ],
)
def test_emptiness(delta: dict[str, Any], empty: bool) -> None:
    assert build(chunk(**delta), chunk("stop")).is_empty is empty


def test_content_in_parts_with_thinking_among_them() -> None:
    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    builder = build(chunk(content=[thinking]), chunk(content=[{"type": "text", "text": "ok"}]))
    assert (builder.text, builder.reasoning) == ("ok", "hm")


def test_audio_annotations_and_unknown_fields_are_kept() -> None:
    builder = build(
        chunk(audio={"id": "x", "data": "AA", "transcript": "he"}),
        chunk(audio={"data": "BB", "transcript": "llo", "expires_at": 1}),
        chunk(annotations=[{"n": 1}], odd="a"),
        chunk(annotations=[{"n": 2}], odd="b"),
    )
    message = builder.message()
    assert message["audio"] == {"id": "x", "data": "AABB", "transcript": "hello", "expires_at": 1}
    assert message["annotations"] == [{"n": 1}, {"n": 2}]
    assert message["odd"] == "b"


def test_several_choices_stay_apart() -> None:
    builder = build(
        chunk(content="a"), chunk(index=1, content="b"), chunk("stop", 1), chunk("length")
    )
    assert builder.indexes == (0, 1)
    assert builder.message(1) == {"role": "assistant", "content": "b"}
    assert builder.finish_reason == "length"
    assert builder.alternatives == [({"role": "assistant", "content": "b"}, "stop")]


def test_a_choice_that_says_nothing_is_no_alternative() -> None:
    assert build(chunk(content="a"), chunk(index=1), chunk("stop")).alternatives == []


@pytest.mark.parametrize(
    ("usage", "timings", "prompt", "cached"),
    [
        ({"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 4}}, None, 9, 4),
        ({"prompt_tokens": 9, "prompt_cache_hit_tokens": 5}, None, 9, 5),
        ({"prompt_tokens": 9, "prompt_tokens_details": None}, {"cache_n": 6}, 9, 6),
        (None, {"cache_n": 6, "prompt_n": 2, "predicted_n": 3}, 8, 6),
        (None, None, None, None),
    ],
)
def test_token_figures(usage: Any, timings: Any, prompt: int | None, cached: int | None) -> None:
    builder = build({"choices": [], "usage": usage, "timings": timings})
    assert (builder.prompt_tokens, builder.cached_tokens) == (prompt, cached)


def test_a_whole_answer_and_its_pieces_are_the_same() -> None:
    whole = {
        "id": "c",
        "object": "chat.completion",
        "model": "m",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "你好", "reasoning_content": "r"},
                "finish_reason": "stop",
                "logprobs": {"content": [{"token": "你"}, {"token": "好"}]},
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
        "timings": {"cache_n": 0},
    }
    assert ReplyBuilder.from_completion(whole).completion() == whole
    head = {"id": "c", "object": "chat.completion.chunk", "model": "m"}
    first = chunk(role="assistant", content="你", reasoning_content="r")
    first["choices"][0]["logprobs"] = {"content": [{"token": "你"}]}
    second = chunk("stop", content="好")
    second["choices"][0]["logprobs"] = {"content": [{"token": "好"}]}
    last = {"choices": [], "usage": whole["usage"], "timings": whole["timings"]}
    assert build(head | first, head | second, head | last).completion() == whole


def test_an_old_function_call() -> None:
    builder = build(
        chunk(function_call={"name": "f", "arguments": '{"a'}),
        chunk(function_call={"arguments": '":1}'}),
    )
    assert builder.message()["function_call"] == {
        "name": "f",
        "arguments": json.dumps({"a": 1}, separators=(",", ":")),
    }
    assert not builder.broken_tools
