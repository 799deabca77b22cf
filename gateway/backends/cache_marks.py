"""What tells a cloud provider which part of a prompt will come again.

OpenAI and Moonshot route by `prompt_cache_key`, xAI's chat completions by a header, so that a
conversation meets the machine that has its prompt. Anthropic caches up to marked messages: behind
what stays until the next fold, and behind the newest message, which is where the next prompt goes
on from. Gemini's explicit caches are objects of their own, made by further requests: they are left
alone, since its newer models cache by themselves; so do DeepSeek and Groq, who take no hint.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from gateway.backends.base import Call

BY_KEY = frozenset({"openai", "moonshot"})
BY_HEADER = {"xai": "x-grok-conv-id"}
_MARK = {"type": "ephemeral"}


def cache_options(provider: str, call: Call) -> dict[str, Any]:
    """LiteLLM's options that name the conversation to its provider; a client's own key wins."""
    if call.conversation is None or call.purpose != "chat":
        return {}
    if provider in BY_HEADER:
        return {"extra_headers": {BY_HEADER[provider]: _alias(call.conversation)}}
    if provider in BY_KEY and "prompt_cache_key" not in call.params:
        return {"prompt_cache_key": _alias(call.conversation)}
    return {}


def _alias(conversation: str) -> str:
    """A name for a conversation that does not tell its id: placeholders are made with that."""
    return "conv_" + blake2b(conversation.encode(), digest_size=12, person=b"cache").hexdigest()


def mark_prefix(provider: str, model: str, call: Call, messages: list[dict[str, Any]]) -> None:
    """Mark where Anthropic's cache may end, in messages as LiteLLM takes them.

    Nothing is marked where the client marked something itself, or where a mark would stand on a
    blank text, which is refused.
    """
    if not _takes_marks(provider, model) or call.purpose != "chat":
        return
    if any(b'"cache_control"' in message for message in call.messages):
        return
    for index in {call.stable - 1, len(messages) - 1} - {-1}:
        _mark(messages[index])


def _takes_marks(provider: str, model: str) -> bool:
    return provider == "anthropic" or (provider == "openrouter" and "claude" in model)


def _mark(message: dict[str, Any]) -> None:
    content = message.get("content")
    if isinstance(content, str) and content.strip():
        message["content"] = [{"type": "text", "text": content, "cache_control": dict(_MARK)}]
    elif isinstance(content, list) and content and _is_text(content[-1]):
        message["content"] = [*content[:-1], {**content[-1], "cache_control": dict(_MARK)}]


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "text" and bool(part["text"].strip())
