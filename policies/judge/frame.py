"""The frame of a summarizer's answer: one JSON object whose `chapter` is the prose."""

import json
import re
from dataclasses import dataclass

_FENCED = re.compile(r"^```[a-z]*\s*\n(.*)\n\s*```$", re.DOTALL | re.IGNORECASE)
PROSE_KEYS = ("chapter", "gist", "summary", "text", "content", "recap", "output", "response")
_UNKNOWN_PROSE_KEYS = re.compile(
    "summ|chap|gist|prose|recap|text|要約|摘要|总结|요약|resumen|пересказ"
)


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """What was found in an output: the prose, or the reason why there is none."""

    prose: str
    reason: str | None = None


def unwrap_frame(output: str, *, framed: bool, key: str = "chapter") -> Unwrapped:
    """Return the prose of an output from which closed thinking is already stripped.

    framed: the output must be a JSON object with a string under `key`; further keys are
    tolerated. Otherwise plain prose is prose, and a JSON object is unwrapped.
    """
    text = output.strip()
    fenced = _FENCED.match(text)
    text = fenced.group(1).strip() if fenced else text
    if not text.startswith(("{", "[")):
        return Unwrapped(output.strip(), "frame" if framed and text else None)
    try:
        value = json.loads(text, strict=False)
    except ValueError:
        return _broken(text, framed=framed, key=key)
    except RecursionError:
        return Unwrapped("", "frame")
    if framed:
        if isinstance(value, dict) and isinstance(value.get(key), str):
            return Unwrapped(value[key].strip())
        return Unwrapped(" ".join(strings(value)), "frame")
    return _loose(value)


def strings(value: object, depth: int = 0) -> list[str]:
    """Return every text inside a JSON value, keys left out, in order (16 levels at most)."""
    if isinstance(value, str):
        return [value]
    if depth >= 16:
        return []
    parts: list[object] = []
    if isinstance(value, dict):
        parts = list(value.values())
    elif isinstance(value, list):
        parts = value
    return [text for part in parts for text in strings(part, depth + 1)]


def _loose(value: object) -> Unwrapped:
    if not isinstance(value, dict):
        found = strings(value)
        return Unwrapped("\n".join(found), None if found else "frame")
    lowered = {str(name).casefold(): part for name, part in value.items()}
    for name in PROSE_KEYS:
        if isinstance(lowered.get(name), str):
            return Unwrapped(str(lowered[name]).strip())
    for name, part in lowered.items():
        if isinstance(part, str) and _UNKNOWN_PROSE_KEYS.search(name):
            return Unwrapped(part.strip())
    return Unwrapped(" ".join(strings(value)), "frame")


def _broken(text: str, *, framed: bool, key: str) -> Unwrapped:
    """A frame that was begun and never closed was cut; brackets around prose are prose."""
    if re.match(r'^\{\s*(?:"|$)', text):
        return Unwrapped(
            re.sub(rf'^\{{\s*"(?:{re.escape(key)})?"?\s*:?\s*"?', "", text), "truncated"
        )
    return Unwrapped(text, "frame" if framed else None)
