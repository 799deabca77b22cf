"""What each prompt of a replay cost, counted in characters of message contents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from gateway.wire.json_text import loads

# A turn that makes the server read more than this again is cold.
COLD_CHARS = 5_000


@dataclass(frozen=True, slots=True)
class TurnRecord:
    """One turn: sizes in characters, and what the view did. recalled: characters of the notes that
    it found; moved: the prompt before is not its beginning, though nothing was folded."""

    number: int
    prompt_chars: int
    reread_chars: int
    view: str
    folded: bool
    lost: int
    recalled: int = 0
    moved: bool = False


@dataclass(slots=True)
class Totals:
    """The figures of a replay, with the keys of its JSON. switches: None where none were asked."""

    messages: int = 0
    turns: int = 0
    folds: int = 0
    hard_cuts: int = 0
    chapters: int = 0
    majors: int = 0
    stand_ins: int = 0
    rejected: int = 0
    lost_messages: int = 0
    prompt_chars_mean: float = 0.0
    prompt_chars_max: int = 0
    reread_chars: int = 0
    floor_chars: int = 0
    reuse: float = 0.0
    cold_turns: int = 0
    recall_turns: int = 0
    recall_chars: int = 0
    moved_prefixes: int = 0
    switches: list[dict[str, Any]] | None = None
    prompt_chars_total: int = field(default=0, repr=False)

    def add(self, record: TurnRecord) -> None:
        self.turns += 1
        self.prompt_chars_total += record.prompt_chars
        self.prompt_chars_max = max(self.prompt_chars_max, record.prompt_chars)
        self.reread_chars += record.reread_chars
        self.cold_turns += record.reread_chars > COLD_CHARS
        self.recall_turns += record.recalled > 0
        self.recall_chars += record.recalled
        self.moved_prefixes += record.moved
        self.folds += record.folded
        self.hard_cuts += record.view == "cut"

    def as_json(self) -> dict[str, Any]:
        """The keys that are promised, means and shares worked out."""
        values = asdict(self)
        total = values.pop("prompt_chars_total")
        if self.switches is None:
            del values["switches"]
        values["prompt_chars_mean"] = round(total / self.turns, 1) if self.turns else 0.0
        values["reuse"] = round(1 - self.reread_chars / total, 4) if total else 0.0
        return values


class PromptMeter:
    """Compares each prompt with the one before it.

    Messages are JSON objects as bytes. Re-read is what the longest common prefix of the two
    prompts does not cover, down to the character inside the first message that differs.
    """

    def __init__(self) -> None:
        self._last: Sequence[bytes] = ()
        self._texts: dict[bytes, str] = {}

    def text(self, message: bytes) -> str:
        """The content of one message of the last two prompts."""
        found = self._texts.get(message)
        if found is None:
            content = loads(message).get("content")
            found = self._texts[message] = content if isinstance(content, str) else ""
        return found

    def begins_with_last(self, prompt: Sequence[bytes]) -> bool:
        """Whether a prompt is the one before it and more."""
        return tuple(prompt[: len(self._last)]) == tuple(self._last)

    def measure(self, prompt: Sequence[bytes]) -> tuple[int, int]:
        """(prompt characters, re-read characters)."""
        same = 0
        for old, new in zip(self._last, prompt, strict=False):
            if old != new:
                break
            same += 1
        total = sum(len(self.text(message)) for message in prompt)
        covered = sum(len(self.text(message)) for message in prompt[:same])
        if same < len(self._last) and same < len(prompt):
            covered += _common(self.text(self._last[same]), self.text(prompt[same]))
        keep = set(prompt)
        self._texts = {message: text for message, text in self._texts.items() if message in keep}
        self._last = prompt
        return total, total - covered


def _common(left: str, right: str) -> int:
    """Length of the longest common beginning."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def count_lost(
    transcript: Sequence[str], shown: Sequence[str], covered: Sequence[tuple[int, int]]
) -> int:
    """Messages that stand neither verbatim in the prompt nor in a span that its memory covers.

    transcript: the texts of the path, oldest first; shown: the prompt's verbatim texts; covered:
    (first, last) depths, 1-based, of the gist and chapters shown.
    """
    told: set[int] = set()
    for first, last in covered:
        told.update(range(first, last + 1))
    lost = 0
    waiting = list(shown)
    for depth in range(len(transcript), 0, -1):
        text = transcript[depth - 1]
        rest = _without_end(waiting[-1], text) if waiting else None
        if rest is not None:
            waiting.pop()
            if rest:
                waiting.append(rest)
        elif depth not in told and text.strip():
            lost += 1
    return lost


def _without_end(shown: str, text: str) -> str | None:
    """What stands before text in a shown message ("" for nothing); None where it is not its end.

    Backends with strict roles are shown neighbours of one role as one message, a blank line
    between them.
    """
    if shown == text:
        return ""
    joined = f"\n\n{text}"
    return shown[: -len(joined)] if shown.endswith(joined) else None
