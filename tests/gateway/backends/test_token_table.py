"""The bundled table gives a first guess, and nothing is fetched."""

from __future__ import annotations

import socket

import pytest

from gateway.backends.token_table import chars_per_token


def test_scripts_differ_as_tokenizers_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a tokenizer table was to be fetched")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    english = chars_per_token("The harbour master counted the boats twice that evening. " * 20)
    chinese = chars_per_token("港口的管理员那天晚上把船数了两遍。" * 20)
    emoji = chars_per_token("👨‍👩‍👧‍👦" * 20)
    assert english is not None and chinese is not None and emoji is not None
    assert 4 < english < 6
    assert 1 < chinese < 2
    assert emoji < 1


def test_no_text_no_guess() -> None:
    assert chars_per_token("") is None
