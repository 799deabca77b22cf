"""Switches of a replay: a conversation is sent to another policy's tier, and what that costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from gateway.store import chapter_rows
from gateway.store.fold_rows import FoldRow


@dataclass(frozen=True, slots=True)
class Switch:
    """Send the conversation to this policy's tier once the transcript has so many characters."""

    at_chars: int
    policy: str


@dataclass(slots=True)
class Switched:
    """What one switch came to, in characters. Of the first view under the new policy: the backlog
    that it took in as chapters, their number and largest span, the prompt and what of it is
    verbatim; None where the recording ended before. lost_messages: of all turns until the next
    switch."""

    switch: Switch
    backlog_chars: int | None = None
    chapters: int | None = None
    largest_span: int | None = None
    first_prompt_chars: int | None = None
    verbatim_chars: int | None = None
    lost_messages: int = 0

    def arrive(self, spans: list[int], prompt_chars: int, verbatim_chars: int) -> None:
        """Note the first turn under the new policy; spans: what its view took in."""
        self.backlog_chars = sum(spans)
        self.chapters = len(spans)
        self.largest_span = max(spans, default=0)
        self.first_prompt_chars = prompt_chars
        self.verbatim_chars = verbatim_chars

    def as_json(self) -> dict[str, Any]:
        return {
            "at_chars": self.switch.at_chars,
            "to": self.switch.policy,
            "backlog_chars": self.backlog_chars,
            "chapters": self.chapters,
            "largest_span": self.largest_span,
            "first_prompt_chars": self.first_prompt_chars,
            "verbatim_chars": self.verbatim_chars,
            "lost_messages": self.lost_messages,
        }


def spans_between(
    connection: Connection, conversation_pk: int, before: int, fold: FoldRow | None
) -> list[int]:
    """Source characters of the chapters between a border's depth and a fold's, oldest first."""
    if fold is None:
        return []
    return [
        row.source_chars
        for row in chapter_rows.all_chapters(connection, conversation_pk)
        if before < row.first_depth and row.last_depth <= fold.border_depth
    ]
