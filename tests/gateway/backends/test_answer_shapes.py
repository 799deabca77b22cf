"""Chunks that came together are read as each would be by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.answer_shapes import is_plain, plain_text, read_together
from gateway.backends.answers import AnswerReader
from gateway.backends.events import DATA, ERROR
from gateway.backends.llama_cpp import collect
from gateway.wire.json_text import dump_bytes
from gateway.wire.replies import ReplyBuilder


def piece(content: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": None, "delta": {"content": content}}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice], **more}


def test_what_came_together_is_read_at_one_go() -> None:
    texts = ["灯", "台", "🌊"]
    events = [(DATA, json.dumps(piece(text)).encode()) for text in texts]
    events.insert(1, (DATA, b"[DONE]"))
    events.append((ERROR, b'{"error": "x"}'))
    read = read_together(events)
    assert [None if one is None else one.get("choices") for one in read] == [
        piece("灯")["choices"],
        None,
        piece("台")["choices"],
        piece("🌊")["choices"],
        None,
    ]


@pytest.mark.parametrize(
    "payloads",
    [
        [b'{"a":[1', b'{"b":2}]}', b'{"c":3}'],  # two that make one: fewer than there are
        [b'{"a":1},{"b":2}', b'{"c":3}'],  # one that makes two
        [b'{"a":"x', b'{y"},{"b":2}'],  # two halves of a text, and one more
        [b'{"a":1', b'{"c":3}'],
        [b"{\xff}", b'{"c":3}'],
    ],
)
def test_what_is_no_json_by_itself_is_read_one_by_one(payloads: list[bytes]) -> None:
    assert read_together([(DATA, payload) for payload in payloads]) == [None] * len(payloads)


def test_a_piece_that_brings_figures_is_more_than_text() -> None:
    assert plain_text(piece("a")) == "a"
    assert plain_text(piece("a", timings={"predicted_n": 1})) is None
    assert plain_text(piece("a", usage=None)) is None
    assert is_plain(piece("a", timings={}))


def test_an_answer_in_one_read_gives_the_chunks_of_one_in_many() -> None:
    head = piece("")
    head["choices"][0]["delta"] = {"role": "assistant", "content": None}
    end = piece("")
    end["choices"][0] |= {"delta": {}, "finish_reason": "stop"}
    middle = [piece(letter) for letter in "Приве́т, 灯台!"]
    lines = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in [head, *middle, end]]
    lines.append(b"data: [DONE]\n\n")
    whole, cut = AnswerReader("local"), AnswerReader("local")
    together = whole.feed(b"".join(lines))
    apart = [chunk for line in lines for chunk in cut.feed(line)]
    assert [chunk.parsed for chunk in together] == [chunk.parsed for chunk in apart]
    assert [chunk.text for chunk in together] == [chunk.text for chunk in apart]
    assert whole.done and cut.done and whole.fault is None


def logprob(token: str) -> dict[str, Any]:
    return {"content": [{"token": token, "logprob": -0.5, "bytes": list(token.encode())}]}


beside_text = st.sampled_from(
    [
        {},
        {"logprobs": None},
        {"logprobs": logprob("灯")},
        {"logprobs": {"content": []}},
        {"logprobs": {"content": None, "refusal": []}},
        {"stop_reason": None},
    ]
)
deltas = st.one_of(
    st.builds(lambda text: {"content": text}, st.sampled_from(["灯", "台", " ", "x", ""])),
    st.just({"reasoning_content": "hm"}),
    st.just({"content": "y", "role": "assistant"}),
)
figures = st.sampled_from([{}, {}, {}, {"timings": {"predicted_n": 3}}, {"usage": None}])


@st.composite
def chunks_of_an_answer(draw: st.DrawFn) -> list[dict[str, Any]]:
    head = piece("")
    head["choices"][0]["delta"] = {"role": "assistant", "content": "A"}
    said = []
    for _ in range(draw(st.integers(0, 8))):
        said.append(piece("", **draw(figures)))
        said[-1]["choices"][0] |= {"delta": draw(deltas), **draw(beside_text)}
    end = piece("", usage={"completion_tokens": 5})
    end["choices"][0] |= {"delta": {}, "finish_reason": "stop"}
    return [head, *said, end]


@given(chunks_of_an_answer(), st.integers(1, 400))
def test_a_whole_answer_is_all_that_its_chunks_say(said: list[dict[str, Any]], step: int) -> None:
    """Text, thinking, log-probabilities and figures, however the network cut the bytes."""
    data = b"".join(b"data: " + dump_bytes(one) + b"\n\n" for one in said) + b"data: [DONE]\n\n"
    reader, built, one_by_one = AnswerReader("m"), ReplyBuilder(), ReplyBuilder()
    for at in range(0, len(data), step):
        collect(built, reader.feed(data[at : at + step]))
    for one in said:
        one_by_one.feed(one)
    assert reader.fault is None and reader.done
    assert built.completion() == one_by_one.completion()
