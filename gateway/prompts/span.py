"""Stored messages to the lines of a span, the one rendering that summarizers and stand-ins read."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.prompts.phrases import PHRASES
from gateway.prompts.wordings import NARRATORS, THINKS
from gateway.wire.json_text import loads
from policies import transcript
from policies.language import language_of
from policies.messages import message_text
from policies.schema import ReplyFields
from policies.values import Line


def span_lines(raws: Sequence[str], fields: ReplyFields | None = None) -> list[Line]:
    """The lines of consecutive messages, given as JSON texts, oldest first.

    fields: the field names of replies that are JSON, None: the usual ones.
    """
    messages = [loads(raw) for raw in raws]
    sample = "\n".join(message_text(message)[:500] for message in messages[:40])
    language = language_of(sample) or "en"
    names = {
        **PHRASES[language].speakers,
        transcript.NARRATOR: NARRATORS[language],
        transcript.THINKS: THINKS[language],
    }
    return transcript.render_span(messages, names, fields)
