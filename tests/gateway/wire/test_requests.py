"""Chat requests: strict where it matters, everything else kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.errors import BadRequest
from gateway.wire.requests import ChatRequest, check_id, parse_chat, read_tags, split_system

HI = {"role": "user", "content": "hi"}


def parse(**fields: Any) -> ChatRequest:
    body = {"model": "foldgate", "messages": [HI], **fields}
    return parse_chat(json.dumps(body).encode())


def test_the_least_request() -> None:
    assert parse() == ChatRequest(
        model="foldgate",
        messages=[HI],
        stream=False,
        include_usage=False,
        max_tokens=None,
        params={},
        conversation=None,
        user="",
    )


def test_unknown_fields_are_kept_and_our_own_are_not() -> None:
    kept = {
        "temperature": 0.7,
        "tools": [{"type": "function"}],
        "response_format": {"type": "json_object", "schema": {}},
        "logit_bias": {"15043": -100},
        "n": 2,
        "dry_multiplier": 0.8,
        "grammar": 'root ::= "x"',
        "chat_template_kwargs": {"enable_thinking": False},
        "api_base": "https://elsewhere.example",
        "x_new": [None, {"a": 1}],
    }
    own = {
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 5,
        "metadata": {"conversation_id": "c"},
        "user": "ann",
        "session_id": "s",
        "litellm_session_id": "l",
        "store": True,
    }
    request = parse(**kept, **own)
    assert request.params == kept
    assert (request.stream, request.include_usage, request.max_tokens) == (True, True, 5)
    assert (request.user, request.conversation) == ("ann", "c")


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"max_tokens": 7}, 7),
        ({"max_completion_tokens": 9, "max_tokens": 7}, 9),
        ({"max_completion_tokens": None, "max_tokens": 7}, 7),
        ({"max_tokens": -1}, None),
        ({"max_completion_tokens": -1}, None),
        ({"max_completion_tokens": -1, "max_tokens": 7}, 7),
        ({"max_tokens": None}, None),
    ],
)
def test_limits(fields: dict[str, Any], limit: int | None) -> None:
    assert parse(**fields).max_tokens == limit


@pytest.mark.parametrize(
    ("fields", "id"),
    [
        ({"metadata": {"conversation_id": "c-1"}, "session_id": "s"}, "c-1"),
        ({"session_id": "s", "litellm_session_id": "l"}, "s"),
        ({"litellm_session_id": "l"}, "l"),
        ({"metadata": {"conversation_id": ""}, "session_id": None}, None),
        ({"metadata": {"conversation_id": "new"}, "session_id": "undefined"}, None),
        ({"metadata": {"conversation_id": "Null"}, "session_id": "s"}, "s"),
        ({"metadata": None}, None),
        ({"prompt_cache_key": "p", "user": "u"}, None),
    ],
)
def test_the_bodys_names_for_a_conversation(fields: dict[str, Any], id: str | None) -> None:
    assert parse(**fields).conversation == id


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"model": ""}, "model"),
        ({"model": 7}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": "hi"}, "messages"),
        ({"messages": ["hi"]}, "messages[0]"),
        ({"messages": [HI, {"content": "x"}]}, "messages[1].role"),
        ({"messages": [{"role": "narrator", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": {"a": 1}}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": ["x"]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, "messages[0].content[0]"),
        ({"stream": "yes"}, "stream"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -2}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"max_completion_tokens": 1.5}, "max_completion_tokens"),
        ({"max_completion_tokens": 0}, "max_completion_tokens"),
        ({"max_completion_tokens": -2, "max_tokens": 7}, "max_completion_tokens"),
        ({"n": 0}, "n"),
        ({"n": -1}, "n"),
        ({"n": True}, "n"),
        ({"n": 1.5}, "n"),
        ({"n": "2"}, "n"),
        ({"metadata": {"tag": 7}}, "metadata.tag"),
        ({"metadata": {"tag": {"work": True}}}, "metadata.tag"),
        ({"metadata": {"tag": False}}, "metadata.tag"),
        ({"metadata": {"tags": ["仕事", None]}}, "metadata.tags"),
        ({"metadata": {"tags": {"work": True}}}, "metadata.tags"),
        ({"user": 7}, "user"),
        ({"metadata": "x"}, "metadata"),
        ({"metadata": {"conversation_id": 7}}, "metadata.conversation_id"),
        ({"session_id": "a b"}, "session_id"),
        ({"session_id": "日本"}, "session_id"),
        ({"litellm_session_id": "x" * 129}, "litellm_session_id"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(BadRequest) as told:
        parse(**fields)
    assert (told.value.status, told.value.param) == (400, param)


@pytest.mark.parametrize("n", [None, 1, 128])
def test_how_many_answers(n: int | None) -> None:
    assert parse(n=n).params == {"n": n}


def test_a_tag_that_is_none_is_told_in_words() -> None:
    with pytest.raises(BadRequest) as told:
        parse(metadata={"tag": 7})
    assert told.value.message == "`metadata.tag` must be text or a list of texts."


@pytest.mark.parametrize("body", [b"", b"[]", b'"x"', b"{oops", b'{"a":NaN}', b"\xff\xfe"])
def test_a_body_that_is_no_object(body: bytes) -> None:
    with pytest.raises(BadRequest) as told:
        parse_chat(body)
    assert told.value.code == "invalid_json"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "t1"}]},
        {"role": "assistant", "content": ""},
        {"role": "assistant"},
        {"role": "tool", "tool_call_id": "t1", "content": ""},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "developer", "content": "x"},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]},
        {"role": "user", "content": [{"type": "new", "new": 1}]},
        {"role": "user", "content": "hi", "name": "Ann", "x": 1},
        {"role": "assistant", "content": "x", "reasoning_content": "r", "tool_calls": "odd"},
    ],
)
def test_messages_that_clients_send(message: dict[str, Any]) -> None:
    assert parse(messages=[message]).messages == [message]


def test_half_an_emoji_is_no_error() -> None:
    body = b'{"model":"auto","messages":[{"role":"user","content":"hi \\ud83d there"}]}'
    assert parse_chat(body).messages[0]["content"] == "hi \ud83d there"


@pytest.mark.parametrize("good", ["a", "conv_0a1b", "A.B:c-d_9", "x" * 128])
def test_good_ids(good: str) -> None:
    assert check_id(good, "X-Conversation-Id") == good


@pytest.mark.parametrize(
    "bad", ["", "ok\r\nX-Evil: 1", "a\nb", "a\n", "\x00", "日本", "naïve", "x" * 129, "a b", "a/b"]
)
def test_ids_that_could_break_a_header(bad: str) -> None:
    """I17."""
    with pytest.raises(BadRequest):
        check_id(bad, "X-Conversation-Id")


def test_system_messages_stand_apart_with_their_places() -> None:
    sent = [
        {"role": "system", "content": "A"},
        HI,
        {"role": "developer", "content": "B"},
        {"role": "assistant", "content": "x"},
        {"role": "system", "content": "C"},
    ]
    chain, system = split_system(sent)
    assert chain == [HI, sent[3]]
    assert system == [(0, sent[0]), (1, sent[2]), (2, sent[4])]


@given(
    st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode(errors="replace"))
)
def test_no_bytes_are_more_than_a_400(body: bytes) -> None:
    with pytest.raises(BadRequest):
        parse_chat(body)


@given(
    st.fixed_dictionaries(
        {"model": st.just("m")},
        optional={
            name: st.recursive(
                st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                lambda inner: (
                    st.lists(inner, max_size=2)
                    | st.dictionaries(
                        st.sampled_from(["role", "content", "type", "conversation_id"]), inner
                    )
                ),
                max_leaves=5,
            )
            for name in ("messages", "stream", "user", "metadata", "max_tokens", "stream_options")
        },
    )
)
def test_no_shape_is_more_than_a_400(body: dict[str, Any]) -> None:
    try:
        parse_chat(json.dumps(body).encode())
    except BadRequest as told:
        assert told.status == 400


@pytest.mark.parametrize(
    ("metadata", "tags"),
    [
        (None, set()),
        ({"tag": "work"}, {"work"}),
        ({"tags": "work, 仕事 ,,"}, {"work", "仕事"}),
        ({"tags": ["work", " a, b ", ""], "tag": "тег"}, {"work", "a, b", "тег"}),
        ({"tags": None, "tag": []}, set()),
    ],
)
def test_tags_are_read_from_the_metadata(metadata: Any, tags: set[str]) -> None:
    assert parse(metadata=metadata).tags == tags


def test_a_header_names_one_tag_or_several() -> None:
    assert read_tags("") == frozenset()
    assert read_tags(" work , play,") == {"work", "play"}
