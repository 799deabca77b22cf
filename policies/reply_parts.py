"""Replies that are JSON: what in them is narration, speech of somebody, and unspoken thought.

Front ends ask models for structured replies under field names of their own (`ReplyFields`); a
summarizer that is shown the braces takes a thought for something that was said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from policies.schema.policy import ReplyFields

_FENCED = re.compile(r"^```[a-zA-Z]*\s*\n(.*)\n\s*```$", re.DOTALL)
_DEPTH = 8
_TYPES = ("type", "kind")
Kind = Literal["said", "told", "thought"]


@dataclass(frozen=True, slots=True)
class ReplyPart:
    """kind as of `Line`; speaker '' where none is named; text is never blank."""

    kind: Kind
    speaker: str
    text: str


def reply_parts(text: str, fields: ReplyFields) -> list[ReplyPart]:
    """The parts of a reply in its order; none where it is no JSON, or has none of these fields.

    What stands in other fields is told too, as `[field: value]`, so that nothing is lost.
    """
    value = _read(text)
    if value is None:
        return []
    reader = _Reader(fields)
    parts = list(reader.read(value, "", "said", 0))
    return parts if reader.is_known else []


def _read(text: str) -> Any:
    fenced = _FENCED.match(text.strip())
    bare = fenced[1].strip() if fenced else text.strip()
    if not bare.startswith(("{", "[")):
        return None
    try:
        return json.loads(bare, strict=False)
    except (ValueError, RecursionError):
        return None


class _Reader:
    """Walks one reply. is_known: some of its text stood under a name that was configured."""

    def __init__(self, fields: ReplyFields) -> None:
        kinds: dict[Kind, tuple[str, ...]] = {
            "said": fields.speech,
            "thought": fields.thoughts,
            "told": fields.narration,
        }
        self._kinds = {name.casefold(): kind for kind, names in kinds.items() for name in names}
        self._speaker = [name.casefold() for name in fields.speaker]
        self.is_known = False

    def read(self, value: Any, speaker: str, kind: Kind, depth: int) -> Iterator[ReplyPart]:
        """What one value says: a text, or all that stands in a list or an object."""
        if isinstance(value, str):
            if value.strip():
                yield ReplyPart(kind, "" if kind == "told" else speaker, value.strip())
        elif isinstance(value, list) and depth < _DEPTH:
            for item in value:
                yield from self.read(item, speaker, kind, depth + 1)
        elif isinstance(value, Mapping) and depth < _DEPTH:
            yield from self._read_object(value, speaker, kind, depth)

    def _read_object(
        self, value: Mapping[str, Any], speaker: str, kind: Kind, depth: int
    ) -> Iterator[ReplyPart]:
        lowered = {str(name).casefold(): name for name in value}
        named = self._find_speaker(value, lowered)
        speaker = named[1] if named else speaker
        own = self._find_type(value, lowered)
        rest = []
        for name, item in value.items():
            plain = str(name).casefold()
            if (named and name == named[0]) or (own and plain in _TYPES):
                continue
            found = self._kinds.get(plain)
            if found is not None and _has_text(item):
                self.is_known = True
                is_typed = own is not None and found == "said"
                yield from self.read(item, speaker, own if own and is_typed else found, depth + 1)
            elif isinstance(item, list | Mapping):
                yield from self.read(item, speaker, kind, depth + 1)
            elif item is not None and str(item).strip():
                rest.append(f"{name}: {item}")
        if rest:
            yield ReplyPart("told", "", f"[{'; '.join(rest)}]")

    def _find_speaker(
        self, value: Mapping[str, Any], lowered: Mapping[str, str]
    ) -> tuple[str, str] | None:
        for plain in self._speaker:
            said = value.get(lowered.get(plain, ""))
            if isinstance(said, str) and said.strip():
                return lowered[plain], " ".join(said.split())
        return None

    def _find_type(self, value: Mapping[str, Any], lowered: Mapping[str, str]) -> Kind | None:
        """What an object says of itself: {"type": "thought", "text": …}."""
        for plain in _TYPES:
            said = value.get(lowered.get(plain, ""))
            if isinstance(said, str) and said.casefold() in self._kinds:
                return self._kinds[said.casefold()]
        return None


def _has_text(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return isinstance(value, list | Mapping) and bool(value)
