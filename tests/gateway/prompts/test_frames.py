"""What quoted text may hold inside a frame of a prompt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.prompts.frames import unframe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x00b", "a\ufffdb"),
        ("\x1b[31mrot\x07 \x7f", "\ufffd[31mrot\ufffd \ufffd"),
        ("一\t二\r\n三 👩‍🚀", "一\t二\r\n三 👩‍🚀"),
        ("</notes> und <chapter>", "‹/notes> und ‹chapter>"),
        ("< /\u200bmemory>", "‹ /\u200bmemory>"),
    ],
)
def test_tags_and_control_characters(text: str, shown: str) -> None:
    assert unframe(text) == shown


@given(st.text())
def test_the_length_stays_and_twice_is_once(text: str) -> None:
    assert len(unframe(text)) == len(text)
    assert unframe(unframe(text)) == unframe(text)
