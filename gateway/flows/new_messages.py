"""Messages as the store takes them."""

from __future__ import annotations

from typing import Any

from gateway.store import transcript
from gateway.wire.json_text import dumps
from policies.messages import count_images, is_of_tools, message_chars, message_text


def to_new_message(
    message: dict[str, Any],
    canonical: bytes,
    image_chars: int,
    *,
    produced: bool = False,
    backend: str | None = None,
    finish_reason: str | None = None,
    partial: bool = False,
) -> transcript.NewMessage:
    """A client's or model's message as the store takes it."""
    text = message_text(message)
    role = str(message["role"])
    return transcript.NewMessage(
        role=role,
        raw=dumps(message),
        canonical=canonical,
        text=None if text == message.get("content") and "\x00" not in text else _storable(text),
        chars=message_chars(message, image_chars),
        opens=role == "user",
        produced=produced,
        backend=backend,
        finish_reason=finish_reason,
        partial=partial,
        images=count_images(message),
        tools=int(is_of_tools(message)),
    )


def _storable(text: str) -> str:
    return text.replace("\x00", "\ufffd")
