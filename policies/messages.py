"""One chat message, as sent: its plain text, its cost, and the form its identity is taken from.

Every function takes a message as parsed from JSON and never changes it. Reasoning fields are
left out everywhere: they are no part of what was said.
"""

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]

_LINE_ENDS = (" \n", "\t\n", "\xa0\n", "\u3000\n")
_LINE_END = re.compile("[ \t\xa0\u3000]+\n")
_REASONING = frozenset({"thinking", "redacted_thinking", "reasoning"})
_IMAGES = frozenset({"image_url", "input_image", "image"})


def message_text(message: Message) -> str:
    """The plain text, for search, summaries and people; tool calls are no text.

    Line ends are LF, trailing white space is gone, two halves of a surrogate pair are one
    letter and a lone half is U+FFFD; an image is ``[image]``, another part ``[its type]``.
    """
    content = message.get("content")
    text = content if isinstance(content, str) else _joined_text(content)
    if not text.isascii():
        text = whole_letters(text)
    return (_plain_lines(text) if "\r" in text else text).rstrip()


def _plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def whole_letters(text: str) -> str:
    """The text as any database and model can hold it: no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def message_chars(message: Message, image_chars: int) -> int:
    """What a message costs a view, in characters.

    Text, refusals, and the names and arguments of tool calls count as they are; an image or a
    part of another kind costs ``image_chars``, whatever its data's length.
    """
    content = message.get("content")
    size = len(content) if isinstance(content, str) else _parts_chars(content, image_chars)
    if len(message) > 2:
        size += sum(len(name) + len(arguments) for _, name, arguments in tool_calls(message))
    return size


def count_images(message: Message) -> int:
    """How many images a message holds."""
    return sum(_kind(part) in _IMAGES for part in _parts(message.get("content")))


def is_of_tools(message: Message) -> bool:
    """Whether a message calls a tool or brings a tool's answer."""
    return message.get("role") in ("tool", "function") or bool(
        message.get("tool_calls") or message.get("function_call")
    )


def is_refusal_part(part: object) -> bool:
    """Whether a part of a content list is what OpenAI's models decline in."""
    return _kind(part) == "refusal"


def tool_calls(message: Message) -> list[tuple[str, str, str]]:
    """The calls a message makes: id, function name, arguments; the legacy form has no id."""
    calls = message.get("tool_calls")
    found = [c for c in calls if isinstance(c, Mapping)] if isinstance(calls, list) else []
    legacy = message.get("function_call")
    if isinstance(legacy, Mapping):
        found.append({"id": "", "function": legacy})
    return [_call(call) for call in found]


def canonical_message(message: Message) -> bytes:
    """The bytes that a message's identity is a digest of.

    Equal for messages that differ only in white space at the ends of lines or of the text, in
    CR, in Unicode composition (NFC), in reasoning, between null, absent and empty content,
    between text and a list of text parts, and in the spacing of tool arguments.
    Role, name, text, tool calls, tool_call_id and other parts are told apart.
    """
    content = message.get("content")
    role = message.get("role")
    if len(message) == 2 and isinstance(content, str) and isinstance(role, str):
        if "\0" not in role:
            return _plain_form(role, content)
    return _full_form(message)


def _plain_form(role: str, text: str) -> bytes:
    # Nothing to tidy, as nearly always: one-sided, and quicker than to look.
    if not (
        text.isascii()
        and "\r" not in text
        and ("\n" not in text or (" \n" not in text and "\t\n" not in text))
        and (not text or (text[0] > " " and text[-1] > " "))
    ):
        text = _tidy(text)
    try:
        return f"{role}\0{text}".encode()
    except UnicodeEncodeError:
        return whole_letters(f"{role}\0{_tidy(whole_letters(text))}").encode()


def _tidy(text: str) -> str:
    if "\r" in text:
        text = _plain_lines(text)
    if "\n" in text and any(end in text for end in _LINE_ENDS):
        text = _LINE_END.sub("\n", text)
    return unicodedata.normalize("NFC", text).strip()


def _full_form(message: Message) -> bytes:
    role, name = str(message.get("role") or ""), message.get("name")
    content = message.get("content")
    said = content if isinstance(content, str) else _joined_text(content, marks=False)
    text = _tidy(whole_letters(said))
    parts = [_part_form(part) for part in _parts(content) if _part_text(part) is None]
    calls = [[key, called, _arguments(raw)] for key, called, raw in tool_calls(message)]
    answers = str(message.get("tool_call_id") or "")
    name = name if isinstance(name, str) else ""
    if not (name or parts or calls or answers or "\0" in role):
        return _plain_form(role, text)
    form = json.dumps(
        [role, name, text, calls, answers, parts], sort_keys=True, separators=(",", ":")
    )
    return b"\0" + form.encode()


def _parts(content: object) -> list[Any]:
    """The parts of a content list, reasoning left out."""
    if not isinstance(content, Sequence) or isinstance(content, str):
        return []
    return [part for part in content if _kind(part) not in _REASONING]


def _kind(part: object) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return kind if isinstance(kind, str) else ""


def _part_text(part: object) -> str | None:
    """What a part says; None for a part that is no text."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return None
    said = part.get("refusal") if is_refusal_part(part) else part.get("text")
    return said if isinstance(said, str) else None


def _joined_text(content: object, marks: bool = True) -> str:
    texts = []
    for part in _parts(content):
        said = _part_text(part)
        if said is not None:
            texts.append(said)
        elif marks:
            texts.append(_mark(part))
    return "\n".join(texts)


def _mark(part: object) -> str:
    kind = _kind(part)
    return "[image]" if kind in _IMAGES else f"[{kind or 'part'}]"


def _parts_chars(content: object, image_chars: int) -> int:
    texts = [_part_text(part) for part in _parts(content)]
    return sum(image_chars if text is None else len(text) for text in texts)


def _part_form(part: object) -> object:
    """A part that is no text, by its data: an image is its address, whatever wraps it."""
    if not isinstance(part, Mapping):
        return part
    image = part.get("image_url")
    if _kind(part) in _IMAGES and image is not None:
        return ["image", image.get("url") if isinstance(image, Mapping) else image]
    return {key: part[key] for key in part if key != "cache_control"}


def _call(call: Mapping[str, Any]) -> tuple[str, str, str]:
    function = call.get("function")
    inner = function if isinstance(function, Mapping) else {}
    raw = inner.get("arguments")
    arguments = raw if isinstance(raw, str) else "" if raw is None else json.dumps(raw)
    return str(call.get("id") or ""), str(inner.get("name") or ""), arguments


def _arguments(raw: str) -> str:
    """Arguments in one spelling; what is no JSON is compared as it stands."""
    try:
        return json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        return raw.strip()
