"""Reading recorded conversations: LoCoMo files, OpenAI message lists, SillyTavern chats.

LoCoMo (snap-research): as `gateway.wire.locomo` reads it, one conversation or a list of them.
OpenAI: a JSON list of messages, an object with `messages`, or JSONL of either.
SillyTavern: JSONL, a header line with `user_name`, then lines with `mes` and `is_user`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.wire.json_text import NotJson, loads
from gateway.wire.locomo import SHAPES, NotLocomo, is_locomo, read_lines, read_samples


class RecordingError(ValueError):
    """A file that holds no conversation this program can read; says which and why."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One conversation: its messages as (role, text), role user or assistant, oldest first."""

    name: str
    messages: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """What a client sends at once, and what was answered (None: the recording ends there)."""

    sent: tuple[tuple[str, str], ...]
    reply: str | None


def split_turns(messages: Sequence[tuple[str, str]]) -> list[RecordedTurn]:
    """Messages as turns: everything up to and with the user's last line, then the first reply.

    Further lines of the assistant go out with the next request, as a client would resend them.
    """
    turns: list[RecordedTurn] = []
    waiting: list[tuple[str, str]] = []
    for role, text in messages:
        if role == "assistant" and waiting and waiting[-1][0] == "user":
            turns.append(RecordedTurn(tuple(waiting), text))
            waiting = []
        else:
            waiting.append((role, text))
    if waiting and any(role == "user" for role, _ in waiting):
        turns.append(RecordedTurn(tuple(waiting), None))
    return turns


def read_recordings(paths: Iterable[Path]) -> list[Recording]:
    """All conversations of these files. Raises RecordingError."""
    found: list[Recording] = []
    for path in paths:
        found += _read(path)
    return found


def join(recordings: Sequence[Recording]) -> Recording:
    """One conversation out of several, one after another."""
    return Recording(
        "+".join(recording.name for recording in recordings),
        tuple(message for recording in recordings for message in recording.messages),
    )


def _read(path: Path) -> list[Recording]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror or error}") from error
    try:
        value = loads(data)
    except NotJson:
        value = None
    lines = [value] if value is not None else _lines(path, data)
    whole = lines[0] if len(lines) == 1 else lines
    if is_locomo(whole):
        return _locomo(path, whole)
    if len(lines) == 1:
        return [Recording(path.stem, _whole(path, lines[0]))]
    if isinstance(lines[0], dict) and "user_name" in lines[0]:
        return [Recording(path.stem, _silly(path, lines[1:]))]
    if all(isinstance(line, dict) and "messages" in line for line in lines):
        return [
            Recording(f"{path.stem}-{number}", _openai(path, line["messages"]))
            for number, line in enumerate(lines, 1)
        ]
    if all(isinstance(line, dict) and "mes" in line for line in lines):
        return [Recording(path.stem, _silly(path, lines))]
    return [Recording(path.stem, _openai(path, lines))]


def _lines(path: Path, data: bytes) -> list[Any]:
    values: list[Any] = []
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            values.append(loads(line))
        except NotJson as error:
            raise RecordingError(f"{path}:{number}: neither JSON nor JSONL: {error}") from error
    if not values:
        raise RecordingError(f"{path}: the file is empty")
    return values


def _whole(path: Path, value: Any) -> tuple[tuple[str, str], ...]:
    if isinstance(value, list):
        return _openai(path, value)
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        return _openai(path, value["messages"])
    raise RecordingError(
        f"{path}: neither a LoCoMo file, nor a list of OpenAI messages, nor a SillyTavern chat; "
        f"{SHAPES}"
    )


def _locomo(path: Path, value: object) -> list[Recording]:
    try:
        return [
            Recording(name, tuple((line.role, line.text) for line in read_lines(sample)))
            for name, sample in read_samples(value, path.stem)
        ]
    except NotLocomo as error:
        raise RecordingError(f"{path}: {error}") from error


def _openai(path: Path, value: Any) -> tuple[tuple[str, str], ...]:
    messages: list[tuple[str, str]] = []
    for number, message in enumerate(value, 1):
        if not isinstance(message, dict) or "role" not in message:
            raise RecordingError(f"{path}: item {number} is no message with a role")
        if message["role"] in ("user", "assistant"):
            messages.append((message["role"], _content(message.get("content"))))
    if not messages:
        raise RecordingError(f"{path}: no user or assistant message")
    return tuple(messages)


def _content(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    return "" if content is None else str(content)


def _silly(path: Path, lines: Sequence[Any]) -> tuple[tuple[str, str], ...]:
    messages = [
        ("user" if line.get("is_user") else "assistant", str(line.get("mes") or ""))
        for line in lines
        if isinstance(line, dict) and "mes" in line and not line.get("is_system")
    ]
    if not messages:
        raise RecordingError(f"{path}: a SillyTavern chat without messages")
    return tuple(messages)
