"""Addresses inside messages: of images, sounds and files, however deep their parts are nested."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from gateway.wire.json_text import dump_bytes, loads

_ADDRESS = re.compile(r"\s*(?!data:)[A-Za-z][A-Za-z0-9+.-]*:", re.IGNORECASE)
_SAID = frozenset({"type", "text", "title", "name", "filename", "context", "detail", "id"})
"""Fields of a part that are shown as they are; nobody fetches what they say."""

WITHHELD = "[image: its address was not passed on]"


def media_urls(content: Any) -> Iterator[str]:
    """The addresses in a message's content that somebody may fetch; no data: addresses."""
    if isinstance(content, list):
        for part in content:
            if isinstance(part, Mapping):
                yield from _urls_of(part)


def _urls_of(part: Mapping[str, Any]) -> Iterator[str]:
    for key, value in part.items():
        if key == "content":
            yield from media_urls(value)
        elif isinstance(value, Mapping):
            yield from _urls_of(value)
        elif isinstance(value, list):
            yield from media_urls(value)
        elif isinstance(value, str) and key not in _SAID and _ADDRESS.match(value[:64]):
            yield value


def withhold_media(message: bytes) -> bytes:
    """A message whose images stand in it as data alone: a text takes the place of those that are an
    address. The same bytes where there are none."""
    if not _may_be_remote(message):
        return message
    parsed = loads(message)
    content = parsed.get("content")
    if not isinstance(content, list) or not any(media_urls(content)):
        return message
    parts = [
        {"type": "text", "text": WITHHELD} if any(media_urls([part])) else part for part in content
    ]
    return dump_bytes({**parsed, "content": parts})


def _may_be_remote(message: bytes) -> bool:
    """Whether an address stands in a message as the store writes it, without an escape too many: a
    picture's data is passed over, not decoded."""
    at = message.find(b'url":')
    while at >= 0:
        value = message[at + 5 : at + 16].lstrip(b' "')
        if not value.startswith((b"data:", b"{")):
            return True
        at = message.find(b'url":', at + 5)
    return False
