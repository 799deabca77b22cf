"""Where addresses stand in messages."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.wire.json_text import dump_bytes, loads
from gateway.wire.media import WITHHELD, media_urls, withhold_media

URL = "http://127.0.0.1/x"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("http://127.0.0.1/ is what I typed", []),
        (None, []),
        ([{"type": "text", "text": URL}], []),
        ([{"type": "image_url", "image_url": {"url": URL, "detail": "low"}}], [URL]),
        ([{"type": "image_url", "image_url": URL}], [URL]),
        ([{"type": "input_image", "image_url": "file:///etc/passwd"}], ["file:///etc/passwd"]),
        ([{"type": "file", "file": {"file_id": URL, "filename": "a:b"}}], [URL]),
        ([{"type": "video_url", "video_url": {"url": URL}}], [URL]),
        ([{"type": "image", "source": {"type": "url", "url": URL}}], [URL]),
        ([{"type": "tool_result", "content": [{"type": "image_url", "image_url": URL}]}], [URL]),
        ([{"type": "x", "parts": [{"image_url": URL}, 7]}], [URL]),
        ([{"type": "image_url", "image_url": {"url": "DATA:image/png;base64,AAAA"}}], []),
        ([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}], []),
        ([7, "http://a"], []),
    ],
)
def test_addresses_that_somebody_may_fetch(content: Any, found: list[str]) -> None:
    assert list(media_urls(content)) == found


def test_an_address_gives_way_to_a_text_and_data_stays() -> None:
    data = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    remote = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    message = dump_bytes(
        {"role": "user", "content": [{"type": "text", "text": "see"}, data, remote]}
    )
    assert loads(withhold_media(message))["content"] == [
        {"type": "text", "text": "see"},
        data,
        {"type": "text", "text": WITHHELD},
    ]
    url = {"content": [{"type": "text", "text": "see", "url": "x"}]}
    for plain in (url, {"content": "image_url"}, {"content": [data]}, {"content": "hi"}):
        same = dump_bytes({"role": "user", **plain})
        assert withhold_media(same) is same
