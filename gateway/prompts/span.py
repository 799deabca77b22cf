"""Stored messages to the lines of a span, the one rendering that summarizers and stand-ins read."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.prompts.phrases import PHRASES
from gateway.wire.json_text import loads
from policies.language import language_of
from policies.messages import message_text
from policies.transcript import render_span
from policies.values import Line


def span_lines(raws: Sequence[str]) -> list[Line]:
    """The lines of consecutive messages, given as JSON texts, oldest first."""
    messages = [loads(raw) for raw in raws]
    sample = "\n".join(message_text(message)[:500] for message in messages[:40])
    return render_span(messages, PHRASES[language_of(sample) or "en"].speakers)
