"""One message: its text, its cost, its identity."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.messages import (
    canonical_message,
    count_images,
    is_of_tools,
    message_chars,
    message_text,
    tool_calls,
    whole_letters,
)

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 90_000}}
CALL = {"id": "t1", "type": "function", "function": {"name": "w", "arguments": '{"a": 1}'}}


def user(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "user", "content": content, **more}


def text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hello.", "Hello."),
        ("Line one\r\n\n\n  Line two  \n", "Line one\n\n\n  Line two"),
        ("", ""),
        (None, ""),
        (7, ""),
        ({"a": 1}, ""),
        ("こんにちは。\r\n　", "こんにちは。"),
        ("hi \ud83d there", "hi \ufffd there"),
        ("\ud83d\ude00", "😀"),
        ("각", "각"),  # never normalised
        ([text_part("Look:"), IMAGE], "Look:\n[image]"),
        ([{"type": "input_image", "image_url": "x"}], "[image]"),
        ([{"type": "video_url", "video_url": {"url": "u"}}, text_part("a")], "[video_url]\na"),
        ([{"type": 3}, {}, 5], "[part]\n[part]\n[part]"),
        (["bare", {"text": "no type"}], "bare\nno type"),
        ([{"type": "refusal", "refusal": "No."}], "No."),
        ([{"type": "thinking", "thinking": "Hm", "text": "Hm"}, text_part("Yes")], "Yes"),
    ],
)
def test_message_text(content: Any, text: str) -> None:
    assert message_text(user(content)) == text


def test_a_message_without_content_says_nothing() -> None:
    assert message_text({"role": "assistant"}) == ""
    assert message_chars({"role": "assistant"}, 3_000) == 0


@pytest.mark.parametrize(
    ("message", "chars"),
    [
        (user("Hello."), 6),
        (user("👨‍👩‍👧‍👦"), 7),
        (user(None), 0),
        (user(["abc", text_part("de")]), 5),
        # an image costs what policy says, not its 90,022 characters of base64
        (user([IMAGE, text_part("five")]), 3_004),
        # D13: an unknown part has an allowance, the text beside it counts whole
        (
            user([{"type": "video_url", "video_url": {"url": "u"}}, text_part("word " * 20_000)]),
            103_000,
        ),
        (user([{"type": "input_audio", "input_audio": {"data": "A" * 50_000}}]), 3_000),
        # name and arguments: 1 + 8
        ({"role": "assistant", "content": None, "tool_calls": [CALL]}, 9),
        ({"role": "assistant", "content": "abc", "function_call": CALL["function"]}, 12),
        ({"role": "tool", "tool_call_id": "t1", "content": "x" * 500}, 500),
        # reasoning costs nothing
        ({"role": "assistant", "content": "abc", "reasoning_content": "h" * 4_000}, 3),
        ({"role": "assistant", "content": [{"type": "reasoning", "text": "h"}]}, 0),
    ],
)
def test_message_chars(message: dict[str, Any], chars: int) -> None:
    """D09, D13: what is no text has its allowance."""
    assert message_chars(message, 3_000) == chars


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        ({}, []),
        ({"tool_calls": None}, []),
        ({"tool_calls": "odd"}, []),
        ({"tool_calls": [CALL, "odd"]}, [("t1", "w", '{"a": 1}')]),
        # E02: a call with nothing but an id
        ({"tool_calls": [{"id": "t1"}]}, [("t1", "", "")]),
        (
            {"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
            [("", "f", '{"a": 1}')],
        ),
        ({"function_call": {"name": "f", "arguments": "{}"}}, [("", "f", "{}")]),
        ({"function_call": None}, []),
    ],
)
def test_tool_calls(message: dict[str, Any], calls: list[tuple[str, str, str]]) -> None:
    assert tool_calls(message) == calls


SAME = [
    (user("Hi there"), user("Hi there\n")),
    (user("Hi there"), user("  Hi there \t")),
    # C07: what the client echoes without trailing space
    (user("Line one\r\n\n\n  Line two  \n"), user("Line one\n\n\n  Line two")),
    (user("a \nb\t\nc"), user("a\nb\nc")),
    (user("一　\n二\xa0\n三"), user("一\n二\n三")),
    (user("a\rb"), user("a\nb")),
    (user("각"), user("각")),  # D12
    (user("é"), user("é")),
    (user(None), user("")),
    (user(None), {"role": "user"}),
    (user(None), user([])),
    (user("Hi"), user([text_part("Hi")])),
    (user("Hi\nyou"), user([text_part("Hi"), text_part("you")])),
    (user("Hi"), user("Hi", name=None)),
    (user("Hi"), user("Hi", reasoning_content="Hm", id="m1", extra={"a": 1})),
    (user("Hi"), user([{"type": "thinking", "thinking": "Hm"}, text_part("Hi")])),
    # D04: stored exactly, and recognised when the client could not send the half letter back
    (user("hi \ud83d there"), user("hi \ufffd there")),
    (user([text_part("\ud83d\ude00"), IMAGE]), user([text_part("😀"), IMAGE])),
    (
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{**CALL, "index": 0, "function": {"arguments": '{"a":1}', "name": "w"}}],
        },
    ),
    (user([IMAGE]), user([{"type": "image_url", "image_url": IMAGE["image_url"]["url"]}])),  # type: ignore[index]
    (user([IMAGE]), user([{**IMAGE, "cache_control": {"type": "ephemeral"}}])),
    (
        user([{"type": "file", "file": {"id": "f", "name": "n"}}]),
        user([{"file": {"name": "n", "id": "f"}, "type": "file"}]),
    ),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_identity(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert canonical_message(one) == canonical_message(other)


OTHER = [
    (user("Hi"), user("hi")),
    (user("Hi"), {"role": "assistant", "content": "Hi"}),
    (user("Hi"), user("Hi", name="Anna")),
    (user("a\n\nb"), user("a\nb")),
    (user("a\n  b"), user("a\nb")),
    (user("a b"), user("ab")),
    (user("ﬁ"), user("fi")),  # D12: never NFKC
    (user(""), user([IMAGE])),
    (user([IMAGE]), user([{"type": "image_url", "image_url": {"url": "https://a.example/b"}}])),
    (user(["Hi"]), user(["Hi", 5])),
    ({"role": "assistant", "content": ""}, {"role": "assistant", "tool_calls": [CALL]}),
    (
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": [{**CALL, "id": "t2"}]},
    ),
    (
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "w"}}]},
    ),
    (
        {"role": "tool", "tool_call_id": "t1", "content": "x"},
        {"role": "tool", "tool_call_id": "t2", "content": "x"},
    ),
    ({"role": "a\0b", "content": "c"}, {"role": "a", "content": "b\0c"}),
    ({"role": "", "content": '["user","Hi","Anna"]'}, user("Hi", name="Anna")),
]


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_two_identities(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert canonical_message(one) != canonical_message(other)


def test_arguments_that_are_no_json_are_compared_as_text() -> None:
    def call(arguments: str) -> bytes:
        function = {"name": "f", "arguments": arguments}
        return canonical_message({"role": "assistant", "tool_calls": [{"function": function}]})

    assert call('{"a": ') == call('{"a":')
    assert call('{"a":') != call('{"b":')
    assert call("[" * 100_000) != call("[" * 99_999)


@pytest.mark.parametrize(
    ("text", "whole"),
    [("abc", "abc"), ("😀", "😀"), ("\ud83d\ude00", "😀"), ("\ude00\ud83d", "\ufffd\ufffd")],
)
def test_whole_letters(text: str, whole: str) -> None:
    assert whole_letters(text) == whole


letters = st.text(st.sampled_from("ab \t\r\n\v\f\xa0　가각é́字😀\ud83d\ude00\0"), max_size=12)
odd = st.none() | st.integers() | letters | st.lists(st.none() | letters, max_size=2)
messages = st.dictionaries(
    st.sampled_from(["role", "content", "name", "tool_calls", "function_call", "tool_call_id"]),
    odd
    | st.lists(
        st.dictionaries(st.sampled_from(["type", "text", "image_url", "id", "function"]), odd),
        max_size=3,
    ),
)


@given(messages)
def test_any_json_object_is_read_and_left_as_it_was(message: dict[str, Any]) -> None:
    before = copy.deepcopy(message)
    assert canonical_message(message) == canonical_message(before)
    message_text(message).encode()
    assert message_chars(message, 10) >= 0
    assert message == before


@given(letters, st.sampled_from([" ", "\t", "\n", "\r\n", " \n", "　"]))
def test_space_at_the_ends_is_no_difference(text: str, space: str) -> None:
    plain = canonical_message(user(text))
    assert canonical_message(user(text + space)) == plain
    assert canonical_message(user(space + text)) == plain
    assert canonical_message(user([text_part(text)])) == plain


@given(letters)
def test_the_quick_form_is_the_full_form(text: str) -> None:
    assert canonical_message(user(text)) == canonical_message(user(text, name=""))
    assert canonical_message(user(message_text(user(text)))) == canonical_message(user(text))


@pytest.mark.parametrize(
    ("message", "images", "of_tools"),
    [
        ({"role": "user", "content": "見て"}, 0, False),
        ({"role": "user", "content": [{"type": "text", "text": "a"}]}, 0, False),
        (
            {
                "role": "user",
                "content": [
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBO"}},
                    {"type": "text", "text": "смотри"},
                    {"type": "input_image", "image_url": "https://example.org/a.png"},
                ],
            },
            2,
            False,
        ),
        ({"role": "assistant", "content": None, "tool_calls": [{"id": "c1"}]}, 0, True),
        ({"role": "assistant", "content": None, "function_call": {"name": "f"}}, 0, True),
        ({"role": "assistant", "content": "no", "tool_calls": []}, 0, False),
        ({"role": "tool", "tool_call_id": "c1", "content": "4"}, 0, True),
        ({"role": "function", "name": "f", "content": "4"}, 0, True),
    ],
)
def test_images_and_tools_are_counted(message: Any, images: int, of_tools: bool) -> None:
    assert (count_images(message), is_of_tools(message)) == (images, of_tools)
