"""The frames in which a prompt quotes the past, which no quoted text can close or open."""

from __future__ import annotations

import re

_NAMES = "memory|earlier|chapter|ledger|document|profile|notes?"
# A tag is what a model may take for one: full-width signs and signs without a width among it.
_TAG = re.compile(
    rf"[<＜](?=[\s\u200b-\u200f\u2060-\u2064\ufeff/／]*(?:{_NAMES})\b)", re.IGNORECASE
)

_CONTROLS = dict.fromkeys({*range(0x20), 0x7F} - {*map(ord, "\t\n\r")}, "\ufffd")
"""No text holds them that people wrote; NUL ends a prompt early in more than one server."""


def unframe(text: str) -> str:
    """The text as it may stand inside a frame: of the same length, its own tags made quotation
    marks, control characters U+FFFD."""
    return _TAG.sub("‹", text.translate(_CONTROLS))
