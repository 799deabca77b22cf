"""Conversations in the form of LoCoMo (snap-research): sessions of lines, and questions about them.

Two shapes are read: one conversation with its sessions and `qa` in one object, and that of the
published locomo10.json, a list of `{"sample_id", "conversation": {…the sessions}, "qa"}`.
speaker_a is the user, speaker_b the assistant; a message's text is `clean_text`, or else `text`,
plus ` [shares CAPTION]` where a `blip_caption` stands. A question names the lines that answer it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_SESSION = re.compile(r"session_(\d+)")
# "D8:6; D9:17", "D:11:26" and "D30:05" are found in the published files.
_EVIDENCE = re.compile(r"D\s*:?\s*(\d+)\s*:\s*(\d+)")


SHAPES = (
    'a LoCoMo file is an object with "speaker_a", "session_1", … and "qa", or a list of '
    '{"sample_id", "conversation": {"speaker_a", "session_1", …}, "qa"}'
)
"""What is read, in words for people."""


class NotLocomo(ValueError):
    """The value is no LoCoMo conversation; says why."""


@dataclass(frozen=True, slots=True)
class LocomoLine:
    """One message; id is its `dia_id` ("D3:11"), "" where it has none."""

    id: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class LocomoQuestion:
    """A question; evidence: the ids of the lines that answer it, each once."""

    question: str
    category: str
    evidence: tuple[str, ...]


def is_locomo(value: object) -> bool:
    """Whether a value is one conversation in either shape, or a list that holds one."""
    if isinstance(value, list):
        return any(_flatten(one) is not None for one in value)
    return _flatten(value) is not None


def read_samples(value: object, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Each conversation of a file with its name, as one object with its sessions and `qa`. Those
    of a list are told apart by their `sample_id`, else by their number.

    Raises NotLocomo where there is none, or where a list holds something else beside.
    """
    if not isinstance(value, list):
        flat = _flatten(value)
        if flat is None:
            raise NotLocomo(SHAPES)
        return [(name, flat)]
    found = []
    for number, one in enumerate(value, 1):
        flat = _flatten(one)
        if flat is None:
            raise NotLocomo(f"item {number} is no conversation: {SHAPES}")
        found.append((f"{name}-{one.get('sample_id') or number}", flat))
    if not found:
        raise NotLocomo(f"an empty list: {SHAPES}")
    return found


def _flatten(value: object) -> dict[str, Any] | None:
    """A conversation as one object; None for what is none."""
    if not isinstance(value, dict):
        return None
    inner = value.get("conversation")
    if isinstance(inner, dict) and "speaker_a" in inner:
        return {**inner, "qa": value.get("qa")}
    return value if "speaker_a" in value else None


def read_lines(value: dict[str, Any]) -> list[LocomoLine]:
    """The messages, oldest first. Raises NotLocomo for no session, or a line without a speaker."""
    numbers = sorted(int(m[1]) for key in value if (m := _SESSION.fullmatch(key)))
    lines: list[LocomoLine] = []
    for number in numbers:
        for line in value[f"session_{number}"]:
            if not isinstance(line, dict) or "speaker" not in line:
                raise NotLocomo(f"session_{number} holds a line without a speaker")
            role = "user" if line["speaker"] == value["speaker_a"] else "assistant"
            named = _evidence(line.get("dia_id"))
            lines.append(LocomoLine(named[0] if named else "", role, _text(line)))
    if not lines:
        raise NotLocomo("a LoCoMo file without any session")
    return lines


def read_questions(value: dict[str, Any]) -> list[LocomoQuestion]:
    """Its questions, also those without evidence."""
    rows = value.get("qa")
    if not isinstance(rows, list):
        return []
    return [
        LocomoQuestion(
            str(row["question"]), str(row.get("category", "")), _evidence(row.get("evidence"))
        )
        for row in rows
        if isinstance(row, dict) and row.get("question")
    ]


def _text(line: dict[str, Any]) -> str:
    text = str(line.get("clean_text") or line.get("text") or "")
    caption = line.get("blip_caption")
    return f"{text} [shares {caption}]" if caption else text


def _evidence(named: object) -> tuple[str, ...]:
    """Each id once, in order, in its usual form."""
    texts = named if isinstance(named, list) else [named]
    found = {
        f"D{int(session)}:{int(line)}": None
        for text in texts
        if isinstance(text, str)
        for session, line in _EVIDENCE.findall(text)
    }
    return tuple(found)
