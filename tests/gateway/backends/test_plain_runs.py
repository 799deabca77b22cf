"""A run of chunks read by its form gives what each chunk by itself would give."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.backends.answers import AnswerReader
from gateway.backends.base import Chunk
from gateway.backends.plain_runs import learn_form
from gateway.wire.json_text import dump_bytes

BEFORE = b'{"id":"c","choices":[{"index":0,"finish_reason":null,"delta":{"content":'
AFTER = b'}}],"object":"chat.completion.chunk"}'


def line(string: str | bytes) -> bytes:
    """An event whose text stands there as these bytes."""
    inner = string if isinstance(string, bytes) else json.dumps(string, ensure_ascii=False).encode()
    return b"data: " + BEFORE + inner + AFTER + b"\n\n"


def test_a_run_is_read_and_what_is_behind_it_left() -> None:
    form = learn_form(BEFORE + b'"\\u706f"' + AFTER)
    assert form is not None and form.fits(BEFORE + b'"x"' + AFTER)
    run, rest = form.read(line("灯") + line("a\n\"'\\") + line("🌊") + b"data: [DONE]\n\n")
    assert run is not None
    assert (run.texts, rest) == (["灯", "a\n\"'\\", "🌊"], b"data: [DONE]\n\n")
    assert form.payload(run.strings[1]) == BEFORE + b'"a\\n\\"\'\\\\"' + AFTER


def test_a_chunk_that_the_network_cut_is_left() -> None:
    form = learn_form(BEFORE + b'"x"' + AFTER)
    assert form is not None
    data = line("a") + line("b")
    for cut in range(len(line("a")), len(data)):
        run, rest = form.read(data[:cut])
        assert run is not None and (run.texts, rest) == (["a"], data[len(line("a")) : cut])
    assert form.read(data[: len(line("a")) - 1]) == (None, data[: len(line("a")) - 1])


@pytest.mark.parametrize(
    "strings",
    [
        [b'"a', b'b","c"'],  # two halves of one text, and one more: two strings if put together
        [b'"a","b"'],
        [b"", b'"a","b"'],
        [b'"a",', b'"b"'],
        [b"1"],
        [b"null"],
        [b'["a"]'],
        [b'"a"],["b"'],
        [b'"a","content":"b"'],
        [b'"\n"'],
    ],
)
def test_what_is_no_text_is_no_run(strings: list[bytes]) -> None:
    form = learn_form(BEFORE + b'"x"' + AFTER)
    assert form is not None
    data = b"".join(map(line, strings))
    assert form.read(data) == (None, data)


@pytest.mark.parametrize(
    "payload",
    [
        BEFORE + b'"x"' + AFTER[:-1] + b',"usage":null}',
        BEFORE + b'"x"' + AFTER[:-1] + b',"timings":{"predicted_n":1}}',
        BEFORE + b'"x","role":"assistant"' + AFTER,
        BEFORE + b'"x","content":"y"' + AFTER,  # the second one counts
        b'{"choices":[{"index":0,"finish_reason":"stop","delta":{"content":"x"}}]}',
        b'{"choices":[{"index":1,"finish_reason":null,"delta":{"content":"x"}}]}',
        b'{"content":"x","choices":[{"index":0,"finish_reason":null,"delta":{"text":"y"}}]}',
        b'{"choices":[]}',
        b'{"a \\"content":"x"}',
        BEFORE + b'"x"',
        BEFORE + b'"x"\n' + AFTER,
    ],
)
def test_what_is_more_than_text_has_no_form(payload: bytes) -> None:
    assert learn_form(payload) is None


def chunk(delta: dict[str, Any], **more: Any) -> bytes:
    choice = {"index": 0, "finish_reason": None, "delta": delta}
    return dump_bytes({"id": "c", "choices": [choice | more.pop("choice", {})], **more})


texts = st.sampled_from(["灯", " 台", "🌊", "\ud83c", "\udf0a", "", '"', "\\", "\n\n", "да", "x"])
plain = st.builds(lambda text: chunk({"content": text}), texts)
ticking = st.builds(lambda text, at: chunk({"content": text}, created=at), texts, st.integers(1, 3))
odd = st.sampled_from(
    [
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "y", "role": "assistant"}),
        chunk({"content": "z"}, usage=None),
        chunk({"content": "z"}, timings={"predicted_n": 3}),
        chunk({"content": "z"}, choice={"logprobs": {"content": [{"token": "z"}]}}),
        chunk({"content": "w"}, choice={"index": 1}),
        chunk({"content": "e"}, choice={"finish_reason": "stop"}),
        chunk({"content": "e"}, error={"message": "gone"}),
        chunk({"content": "a"}).replace(b'"a"', b'"a","b"'),
        chunk({"content": "a"}).replace(b'"a"', b'"a'),
        chunk({"content": "a"}).replace(b'"a"', b'b","c"'),
        chunk({"content": "a"}).replace(b'"a"', b""),
        b"[DONE]",
        b"null",
        b"",
    ]
)
lines = st.one_of(plain, plain, plain, ticking, odd).map(lambda one: b"data: " + one)
ends = st.sampled_from([b"\n\n", b"\n\n", b"\n\n", b"\r\n\r\n", b"\n: ping\n\n", b"\n"])


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    head = b"data: " + chunk({"role": "assistant", "content": "A"}) + b"\n\n"
    said = draw(st.lists(st.tuples(lines, ends), max_size=14))
    end = b"data: " + chunk({}, choice={"finish_reason": "stop"}) + b"\n\ndata: [DONE]\n\n"
    return head + b"".join(text + close for text, close in said) + end


Told = tuple[list[tuple[bytes, Any]], str | None, bool]


def cut(data: bytes, step: int) -> list[bytes]:
    return [data[at : at + step] for at in range(0, len(data), step)]


def told(reader: AnswerReader, reads: list[bytes]) -> Told:
    """What a reader gave in all: each chunk's JSON and meaning, and how it ended."""
    given: list[Chunk] = []
    for data in reads:
        given += reader.feed(data)
    given += reader.close()
    fault = reader.fault
    return [(one.data, one.parsed) for one in given], fault and str(fault), reader.done


def told_plainly(reads: list[bytes]) -> Told:
    """The same of a reader that learns no form."""
    reader = AnswerReader("m")
    reader._lessons = reader._looks = 0
    return told(reader, reads)


@given(streams(), st.integers(1, 500))
@example(b"".join([line("a")] * 8), 10_000)
def test_a_form_changes_nothing_that_is_given(data: bytes, step: int) -> None:
    assert told(AnswerReader("m"), cut(data, step)) == told_plainly(cut(data, step))


FINISH = b"data: " + chunk({}, choice={"finish_reason": "stop"}) + b"\n\n"
THREE = [line("a"), line("b"), line("c")]


@pytest.mark.parametrize(
    "reads",
    [
        [*THREE, FINISH, line("after the end")],
        [*THREE, b"data: [DONE]\n\n", line("after the end")],
        [*THREE, b'data: {"error":{"message":"gone"}}\n\n', line("after the fault")],
        [*THREE, b"data: 1\n", line("a second line of one event"), FINISH],
        [*THREE, b": ping", line("d"), FINISH],
        [*THREE, b"data: null\r", b"\n\r", b"\n" + line("d"), line("e"), FINISH],
        [*THREE, b"data: null\r\r", line("d"), b"\n", line("e"), FINISH],
        [b"".join(THREE) + line("d")[:-1], b"\n" + line("e"), FINISH],
    ],
)
def test_a_form_is_used_only_where_a_chunk_may_stand(reads: list[bytes]) -> None:
    assert told(AnswerReader("m"), reads) == told_plainly(reads)


@given(streams(), st.integers(1, 500))
def test_texts_that_came_joined_are_the_same_text(data: bytes, step: int) -> None:
    apart, joined = AnswerReader("m"), AnswerReader("m", joins=True)
    said: dict[str, list[str]] = {"apart": [], "joined": []}
    for name, reader in (("apart", apart), ("joined", joined)):
        for part in cut(data, step):
            for one in reader.feed(part):
                text = one.text
                if text is None and one.parsed.get("choices"):
                    text = one.parsed["choices"][0]["delta"].get("content")
                said[name].append(text or "")
    assert "".join(said["joined"]) == "".join(said["apart"])
    assert (joined.done, str(joined.fault)) == (apart.done, str(apart.fault))
