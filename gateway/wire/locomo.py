"""Conversations in the form of LoCoMo (snap-research): sessions of lines, and questions about them.

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
    return isinstance(value, dict) and "speaker_a" in value


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
