"""Thinking that leaked into the content, whole and letter by letter."""

import pytest

from gateway.wire.replies import ReplyBuilder
from gateway.wire.thinking import split_thinking


@pytest.mark.parametrize(
    ("content", "text", "reasoning"),
    [
        ("<think>a plan</think>\n\nHello", "Hello", "a plan"),
        ("plan plan</think>Hello", "Hello", "plan plan"),
        ("<think>never ends", "", "never ends"),
        ("<think></think>Hello", "Hello", ""),
        ("Hello</think>", "Hello", ""),
        ("Write\n```html\n</think>\n```\nand done", "Write\n```html\n</think>\n```\nand done", ""),
        ("Use `</think>` to close it.", "Use `</think>` to close it.", ""),
        ("I think so.", "I think so.", ""),
        ("A <think> in the middle", "A <think> in the middle", ""),
        ("計画です。</think>\nこんにちは", "こんにちは", "計画です。"),
    ],
)
def test_leaked_thinking(content: str, text: str, reasoning: str) -> None:
    """F15."""
    assert split_thinking(content) == (reasoning, text)
    builder = ReplyBuilder()
    for letter in content:
        builder.feed({"choices": [{"index": 0, "delta": {"content": letter}}]})
    assert (builder.text, builder.reasoning) == (text, reasoning)
    assert builder.completion()["choices"][0]["message"]["content"] == content
