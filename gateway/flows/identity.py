"""What the messages of a request are known by, and which of them are nobody's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gateway.wire.thinking import split_thinking
from policies.asides import is_filler, is_nudge


def without_thinking(message: dict[str, Any]) -> dict[str, Any]:
    """A reply as it was stored: clients send it with the thinking that leaked into it. What a
    message is known by, and compared by, is this."""
    content = message.get("content")
    if message["role"] != "assistant" or not isinstance(content, str) or "think" not in content:
        return message
    text = split_thinking(content)[1]
    return message if text == content else {**message, "content": text}


def set_apart(
    chain: list[dict[str, Any]], system: list[tuple[int, dict[str, Any]]]
) -> tuple[list[dict[str, Any]], list[tuple[int, dict[str, Any]]]]:
    """Take what clients write as a person's message out of the chain: a filler in front of a reply,
    a nudge to go on behind one. They stand with the system texts, at their place."""
    if len(chain) > 1 and _is_said_beside(chain[-1], chain[-2], is_nudge):
        nudge = chain.pop()
        system = [*system, (len(chain), nudge)]
    if len(chain) > 1 and _is_said_beside(chain[0], chain[1], is_filler):
        filler = chain.pop(0)
        leading = [item for item in system if item[0] == 0]
        behind = [(before - 1, text) for before, text in system if before > 0]
        system = [*leading, (0, filler), *behind]
    return chain, system


def _is_said_beside(
    message: dict[str, Any], reply: dict[str, Any], kind: Callable[[str], bool]
) -> bool:
    content = message.get("content")
    if message["role"] != "user" or reply["role"] != "assistant" or not isinstance(content, str):
        return False
    return kind(content)
