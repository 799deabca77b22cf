"""Upstreams' words are repeated, and nothing secret in them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.redaction import DETAIL_CHARS, FAULT_CHARS, redact

HEX = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("refused for sk-abcdef123456", "refused for ***"),
        ("refused for sk-proj-ab_cd*****wxyz, see docs", "refused for ***, see docs"),
        ("APIキーsk-abcdef123456が無効です", "APIキー***が無効です"),
        ("API密钥：sk-abcdef123456", "API密钥：***"),
        ("Ключ «xai-abcdef123456» отклонён", "Ключ «***» отклонён"),
        ("at https://user:pass@host/v1", "at https://***@host/v1"),
        ("Bearer abc.def failed", "*** failed"),
        ("header Authorization: Basic dXNlcjpwYXNz", "header Authorization: ***"),
        ("?key=AIzaSyA1234567890 is wrong", "?key=*** is wrong"),
        ("Incorrect API key provided: hunter2.", "Incorrect API key provided: ***"),
        ('{"api_key": "hunter2"}', '{"api_key": "***"}'),
        ("API key ID: 1234-5678, Model: x", "API key ID: ***, Model: x"),
        ("your api key: ****0000 is invalid", "your api key: *** is invalid"),
        ("the key ending in ****0000", "the key ending in ***"),
        ("password=hunter2", "password=***"),
        (f"deployment {HEX} is gone", "deployment *** is gone"),
        (f"{HEX}.abcdefgh01234567", "***"),
        ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "got ***"),
        ("AKIAIOSFODNN7EXAMPLE hf_abcdefghijKLMNO ghp_0123456789abcdef", "*** *** ***"),
        ("in organization org-a1b2c3d4e5f6 on tokens", "in organization *** on tokens"),
    ],
)
def test_what_looks_like_a_key_is_masked(said: str, told: str) -> None:
    assert redact(said) == told
    assert redact(told) == told


@pytest.mark.parametrize(
    "said",
    [
        "Unexpected token: } in JSON at position 17",
        "missing required key: messages",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
        "The model `hf-llama3-8b` does not exist",
        "key-value stores and key_frames are not supported",
        "token: <|im_end|> is unknown",
        "request id: 3f2b8c1e-4a5d-4c6b-9e8f-0a1b2c3d4e5f",
        "Basic auth is not supported here",
        "温度必须在 0 到 2 之间 🌡",
        "Недопустимый параметр: temperature",
        "Jinja Exception: roles must alternate user/assistant",
        "Supercalifragilisticexpialidocious" * 3,
        "2 * 3 ** 4 and **bold** words",
    ],
)
def test_a_reason_stays_as_it_was_said(said: str) -> None:
    assert redact(said) == said


def test_a_configured_key_is_masked_whatever_it_looks_like() -> None:
    assert redact("the key hunter22 was used", ("hunter22",)) == "the key *** was used"
    assert redact("?k=ab%2Fcd%3D ", ("ab/cd=",)) == "?k=***"
    assert redact("x marks it", ("x",)) == "x marks it"


def test_one_line_without_control_characters() -> None:
    said = "a\x00b\x1b[31m\r\nc\u2028d\u202ee\x85f\x9bg \ud83d \U0001f468\u200d\U0001f469"
    assert redact(said) == "ab[31m c de fg \ufffd \U0001f468\u200d\U0001f469"
    assert redact("sk-abc\x00def12") == "***"


def test_long_words_are_shortened() -> None:
    told = redact("ж " * DETAIL_CHARS)
    assert (len(told), told[-1]) == (DETAIL_CHARS, "…") == (1_000, "…")
    assert redact("ж" * DETAIL_CHARS) == "ж" * 1_000


@given(
    st.text(max_size=40),
    st.text("abcdefgh0123456789", min_size=4, max_size=12),
    st.text(max_size=40),
    st.integers(1, 60),
)
def test_no_configured_key_and_no_control_character_is_left(
    before: str, secret: str, after: str, most: int
) -> None:
    told = redact(before + secret + after, (secret,), most)
    assert secret not in told
    assert len(told) <= most
    assert not re.search("[\x00-\x1f\x7f-\x9f\ud800-\udfff]", told)


@pytest.mark.parametrize("kind", FaultKind)
def test_no_fault_tells_a_key_whatever_it_is_made_of(kind: FaultKind) -> None:
    fault = UpstreamFault(kind, "The backend b said\n sk-abcdef123456 " + "ж" * 9_000)
    assert fault.what.startswith("The backend b said *** жж")
    assert len(fault.what) == FAULT_CHARS
    assert "sk-" not in fault.message
    assert "\n" not in fault.message
