"""The frame of a summarizer's answer: one JSON object whose `chapter` is the prose.

Where a backend can be held to no JSON, the same in plain text: sections under [chapter], [facts],
[claims], [opened], [resolved], [quotes].
"""

import json
import re
from dataclasses import dataclass

from policies.judge.beside import LISTS, NOTHING, Beside, read_beside, read_tagged
from policies.judge.thinking import strip_thinking

_FENCED = re.compile(r"^```[a-z]*\s*\n(.*)\n\s*```$", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(
    rf"^[ \t#*>]*[\[【［]({'|'.join(('chapter', *LISTS))})[\]】］][ \t*:：]*",
    re.IGNORECASE | re.MULTILINE,
)
PROSE_KEYS = ("chapter", "gist", "summary", "text", "content", "recap", "output", "response")
_UNKNOWN_PROSE_KEYS = re.compile(
    "summ|chap|gist|prose|recap|text|要約|摘要|总结|요약|resumen|пересказ"
)


@dataclass(frozen=True, slots=True)
class Unwrapped:
    """What was found in an output.

    text: the output without a closed think block before it. prose: what may be stored, its own
    think block taken off, or else all texts found. reason: why there is no prose, if there is none.
    beside: what the frame holds beside it.
    """

    text: str
    prose: str
    reason: str | None = None
    beside: Beside = NOTHING


def unwrap_frame(output: str, *, framed: bool, key: str = "chapter") -> Unwrapped:
    """Return the prose of an output, and what its frame holds beside it.

    framed: the output must be a JSON object with a string under `key`, or hold that key as a tag;
    further keys are tolerated. Otherwise plain prose is prose, and a JSON object is unwrapped.
    """
    text = output.strip()
    # Tags inside a frame belong to its prose, not to what stands before the frame.
    text = text if text.startswith("{") else strip_thinking(text)
    prose, reason, beside = _open(text, framed=framed, key=key)
    return Unwrapped(text, strip_thinking(prose.strip()), reason, beside)


def _open(text: str, *, framed: bool, key: str) -> tuple[str, str | None, Beside]:
    fenced = _FENCED.match(text)
    frame = fenced.group(1).strip() if fenced else text
    if framed and _TAG.match(frame):
        sections = _read_sections(frame)
        return sections.get(key, text), None if key in sections else "frame", read_tagged(sections)
    if not frame.startswith(("{", "[")):
        return text, "frame" if framed and text else None, NOTHING
    try:
        value = json.loads(frame, strict=False)
    except RecursionError:
        return "", "frame", NOTHING
    except ValueError:
        return *_broken(frame, framed=framed, key=key), NOTHING
    if not framed:
        return *_loose(value), NOTHING
    if isinstance(value, dict) and isinstance(value.get(key), str):
        return value[key], None, read_beside(value)
    return " ".join(strings(value)), "frame", NOTHING


def _read_sections(text: str) -> dict[str, str]:
    """What stands under each tag, the first time that it stands there."""
    found = list(_TAG.finditer(text))
    ends = [tag.start() for tag in found[1:]] + [len(text)]
    sections: dict[str, str] = {}
    for tag, end in zip(found, ends, strict=True):
        sections.setdefault(tag[1].casefold(), text[tag.end() : end].strip())
    return sections


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


def _loose(value: object) -> tuple[str, str | None]:
    if not isinstance(value, dict):
        found = strings(value)
        return "\n".join(found), None if found else "frame"
    lowered = {str(name).casefold(): part for name, part in value.items()}
    for name in PROSE_KEYS:
        if isinstance(lowered.get(name), str):
            return str(lowered[name]), None
    for name, part in lowered.items():
        if isinstance(part, str) and _UNKNOWN_PROSE_KEYS.search(name):
            return part, None
    return " ".join(strings(value)), "frame"


def _broken(text: str, *, framed: bool, key: str) -> tuple[str, str | None]:
    """A frame that was begun and never closed was cut; brackets around prose are prose."""
    if re.match(r'^\{\s*(?:"|$)', text):
        return re.sub(rf'^\{{\s*"(?:{re.escape(key)})?"?\s*:?\s*"?', "", text), "truncated"
    return text, "frame" if framed else None
