"""Messages and parameters with their values hidden: every text that a model reads, whatever its
field; no images, sounds or files, and no ids and names of tools, which lead from one message to
another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from policies.masking.placeholders import Masks

_KEPT = frozenset(
    {
        "role",
        "type",
        "id",
        "tool_call_id",
        "name",
        "image_url",
        "input_image",
        "image",
        "input_audio",
        "audio",
        "video_url",
        "file",
        "cache_control",
        "signature",
        "thought_signature",
        "encrypted_content",
        "format",
        "pattern",
        "detail",
        "required",
        "prompt_cache_key",
        "safety_identifier",
        "reasoning_effort",
        "service_tier",
        "tool_choice",
    }
)
_RESULTS = ("tool", "function")
_PEOPLE = ("user", "assistant", "system", "developer")


def mask_message(masks: Masks, message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message with its values hidden; the same object where it has none."""
    content = message.get("content")
    if message.get("role") in _RESULTS and isinstance(content, str):
        rest = {key: value for key, value in message.items() if key != "content"}
        masked = _mask(masks, rest, "")
        result = masks.mask_json(content) if content[:1] in ("{", "[") else masks.mask(content)
        is_same = result == content and masked is rest
        return message if is_same else {**message, **masked, "content": result}
    masked = _mask(masks, message, "")
    name = message.get("name")
    if isinstance(name, str) and message.get("role") in _PEOPLE:
        shown = masks.mask(name)
        return masked if shown == name else {**masked, "name": shown}
    return masked  # type: ignore[no-any-return]


def mask_params(masks: Masks, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """A request's parameters (descriptions of tools, a schema, a prediction) likewise."""
    return _mask(masks, params, "")  # type: ignore[no-any-return]


def _mask(masks: Masks, value: Any, key: str) -> Any:
    """A value of a field with what it hides; itself where that is nothing."""
    if isinstance(value, str):
        return masks.mask_json(value) if key == "arguments" else masks.mask(value)
    if isinstance(value, list):
        items = [_mask(masks, item, "") for item in value]
        return (
            items if any(new is not old for new, old in zip(items, value, strict=True)) else value
        )
    if isinstance(value, Mapping):
        fields = {
            name: field if name in _KEPT else _mask(masks, field, name)
            for name, field in value.items()
        }
        return fields if any(fields[name] is not value[name] for name in fields) else value
    return value
