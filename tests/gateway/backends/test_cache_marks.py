"""Which hints go to which provider, and where in a prompt its cache may end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gateway.backends.base import Call
from gateway.backends.cache_marks import cache_options, mark_prefix
from gateway.wire.json_text import dump_bytes, loads

MESSAGES: list[dict[str, Any]] = [
    {"role": "system", "content": "You are Wren."},
    {"role": "user", "content": "これまでに何がありましたか。"},
    {"role": "assistant", "content": "They met."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi"},
    {"role": "user", "content": "And then?"},
]


NAMED = "conv_cf533c5b82d769d3d98a5012"
"""Its id is not told: placeholders are made with it."""


def call(messages: list[dict[str, Any]] = MESSAGES, **more: Any) -> Call:
    plain = Call(
        messages=tuple(map(dump_bytes, messages)),
        params={},
        stream=True,
        max_tokens=10,
        purpose="chat",
        request_id="r",
        conversation="conv_7",
        stable=3,
    )
    return replace(plain, **more)


def marked(provider: str, model: str, asked: Call) -> list[int]:
    """The messages that carry a mark, as LiteLLM is given them."""
    messages = [loads(message) for message in asked.messages]
    mark_prefix(provider, model, asked, messages)
    return [at for at, message in enumerate(messages) if b"cache_control" in dump_bytes(message)]


@pytest.mark.parametrize(
    ("provider", "options"),
    [
        ("openai", {"prompt_cache_key": NAMED}),
        ("moonshot", {"prompt_cache_key": NAMED}),
        ("xai", {"extra_headers": {"x-grok-conv-id": NAMED}}),
        ("deepseek", {}),
        ("groq", {}),
        ("anthropic", {}),
        ("gemini", {}),
    ],
)
def test_the_conversation_is_named_where_that_is_honoured(
    provider: str, options: dict[str, Any]
) -> None:
    assert cache_options(provider, call()) == options
    assert cache_options(provider, call(purpose="summary")) == {}
    assert cache_options(provider, call(conversation=None)) == {}


def test_a_clients_own_key_wins() -> None:
    assert cache_options("openai", call(params={"prompt_cache_key": "mine"})) == {}


@pytest.mark.parametrize(
    ("provider", "model", "places"),
    [
        ("anthropic", "anthropic/claude-sonnet-5", [2, 5]),
        ("openrouter", "openrouter/anthropic/claude-sonnet-5", [2, 5]),
        ("openrouter", "openrouter/x-ai/grok-4", []),
        ("openai", "openai/gpt-6", []),
        ("gemini", "gemini/gemini-3.5-flash", []),
    ],
)
def test_marks_stand_behind_the_memory_and_the_newest(
    provider: str, model: str, places: list[int]
) -> None:
    assert marked(provider, model, call()) == places


def test_without_system_text_and_memory_only_the_newest_is_marked() -> None:
    assert marked("anthropic", "m", call(MESSAGES[3:], stable=0)) == [2]
    assert marked("anthropic", "m", call(MESSAGES[3:4], stable=0)) == [0]


def test_a_summary_is_asked_once_and_not_marked() -> None:
    assert marked("anthropic", "m", call(purpose="summary")) == []


def test_a_clients_own_marks_stand_alone() -> None:
    own = {"type": "text", "text": "long", "cache_control": {"type": "ephemeral"}}
    messages = [*MESSAGES[:3], {"role": "user", "content": [own]}, MESSAGES[5]]
    assert marked("anthropic", "m", call(messages)) == [3]


@pytest.mark.parametrize(
    ("content", "is_marked"),
    [
        ([{"type": "text", "text": "見て"}], True),
        ([{"type": "image_url", "image_url": {"url": "data:"}}, {"type": "text", "text": "a"}], 1),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}], False),
        ([{"type": "text", "text": " "}], False),
        ("  ", False),
        ([], False),
        (None, False),
    ],
)
def test_a_mark_stands_on_a_text_that_says_something(content: Any, is_marked: bool) -> None:
    messages = [*MESSAGES[:5], {"role": "user", "content": content}]
    assert (5 in marked("anthropic", "m", call(messages))) == bool(is_marked)


def test_the_call_itself_is_not_changed() -> None:
    asked = call()
    before = asked.messages
    marked("anthropic", "m", asked)
    assert asked.messages == before
