"""What a chunk or a message of an answer must look like to be read, and what of it is substance."""

from collections.abc import Sequence
from typing import Any

from gateway.wire.json_text import loads
from gateway.wire.letters import is_blank


def read_object(payload: bytes) -> Any:
    """The chunk decoded; None: it is no object, or is broken."""
    if payload[:1] != b"{":
        return None
    try:
        return loads(payload)
    except ValueError:
        return None


def read_together(events: Sequence[tuple[str, bytes]]) -> list[Any]:
    """For each event that came with others its JSON where it is an object, else None: read at one
    go, for beginning to parse costs more than a chunk does. All None where any of them is broken:
    then each is looked at by itself."""
    texts = [payload if payload[:1] == b"{" else b"null" for _, payload in events]
    try:
        # Two halves of a text cannot become one: no string of JSON holds a line's end.
        parsed = loads(b"[" + b",\n".join(texts) + b"]")
    except ValueError:
        return [None] * len(events)
    # More or fewer: some were pieces of JSON that only look whole side by side.
    return parsed if len(parsed) == len(events) else [None] * len(events)


def plain_text(parsed: Any) -> str | None:
    """The text of a chunk that is plain and brings nothing beside it (no figures, no
    log-probabilities), as nearly all are; else None."""
    if is_plain(parsed) and "usage" not in parsed and "timings" not in parsed:
        choice = parsed["choices"][0]
        if not choice.get("logprobs"):
            text: str = choice["delta"]["content"]
            return text
    return None


def is_plain(parsed: Any) -> bool:
    """Whether a chunk is a piece of the first choice's text and nothing else, as nearly all are:
    whatever is asked of chunks holds for it, and needs no second look."""
    try:
        (choice,) = parsed["choices"]
        delta = choice["delta"]
        return (
            choice["finish_reason"] is None
            and choice["index"] == 0
            and len(delta) == 1
            and type(delta["content"]) is str
            and not parsed.get("error")
            and "prompt_progress" not in parsed
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return False


def has_chunk_shape(choice: Any) -> bool:
    return _has_choice_shape(choice, "delta")


def has_message_shape(choice: Any) -> bool:
    return _has_choice_shape(choice, "message")


def _has_choice_shape(choice: Any, part: str) -> bool:
    if not isinstance(choice, dict):
        return False
    index = choice.get("index")
    return (index is None or (type(index) is int and index >= 0)) and _has_shape(choice.get(part))


_SHAPES: dict[str, tuple[type, ...]] = {
    "content": (str, list),
    "reasoning_content": (str, list),
    "reasoning": (str, list, dict),
    "refusal": (str, list),
    "tool_calls": (list,),
    "function_call": (dict,),
    "audio": (dict,),
}


def _has_shape(delta: Any) -> bool:
    """Whether a delta or message can be read by wire.choices."""
    if delta is None:
        return True
    if not isinstance(delta, dict):
        return False
    for key, value in delta.items():
        if value is not None and key in _SHAPES and not isinstance(value, _SHAPES[key]):
            return False
    parts = delta.get("content")
    if isinstance(parts, list) and not all(isinstance(part, dict) for part in parts):
        return False
    function = delta.get("function_call")
    return all(map(_has_call_shape, delta.get("tool_calls") or ())) and (
        not function or _has_texts(function, "name", "arguments")
    )


def _has_call_shape(call: Any) -> bool:
    """Arguments that came as an object, not as its text, can be read."""
    if not isinstance(call, dict) or not isinstance(call.get("function") or {}, dict):
        return False
    return _has_texts(call, "id", "type") and _has_texts(call.get("function") or {}, "name")


def _has_texts(value: dict[str, Any], *names: str) -> bool:
    return all(isinstance(value.get(name) or "", str) for name in names)


_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")

_MEDIA = ("tool_calls", "function_call", "audio", "images", "image", "video")


def has_substance(delta: dict[str, Any] | None) -> bool:
    """Whether a delta or message holds anything that a person or a program could use."""
    if not delta:
        return False
    for key in _TEXTS:
        value = delta.get(key)
        if value and (not isinstance(value, str) or not is_blank(value)):
            return True
    return any(delta.get(key) for key in _MEDIA)
