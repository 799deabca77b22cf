"""JSON in and out: exact where it is JSON, and NotJson where it is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.json_text import NotJson, dump_bytes, dumps, loads

# Lone surrogates among them: clients send half an emoji.
_TEXT = st.text(st.characters(categories=None, codec=None), max_size=20)
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXT, inner, max_size=4),
)


@given(_VALUES)
def test_what_is_written_is_read_again(value: object) -> None:
    assert loads(dumps(value)) == value
    assert loads(dump_bytes(value)) == value


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "Expecting value at line 1, column 1"),
        ('{"a": 1,}', "line 1, column"),
        ('{"a": 1} x', "Extra data at line 1, column 10"),
        ("NaN", "NaN is not JSON"),
        ("-Infinity", "-Infinity is not JSON"),
        ("[1e999]", "1e999 is larger than any number here"),
        ("9" * 5_000, "a number has too many digits"),
        ("[" * 100_000, "nested too deeply"),
        (b'"caf\xe9"', "not UTF-8 at byte 4"),
    ],
)
def test_what_is_not_json(text: str | bytes, told: str) -> None:
    with pytest.raises(NotJson, match=told):
        loads(text)
