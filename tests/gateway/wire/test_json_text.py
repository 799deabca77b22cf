"""JSON in and out, exactly."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.wire.json_text import NotJson, doubled_key, dump_bytes, dumps, load_object, loads


def joined(text: str) -> str:
    """As JSON holds it: two halves that stand side by side are one letter."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


TEXTS = st.one_of(
    st.text(st.characters(), max_size=12),
    st.text(st.characters(categories=["Cs", "Cc"]), max_size=4),
).map(joined)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_is_written_is_read_again(value: Any) -> None:
    text = dumps(value)
    assert loads(text) == value
    assert loads(dump_bytes(value)) == value
    assert "\x00" not in text
    text.encode()  # whole UTF-8: any database holds it


@given(VALUES)
def test_what_the_standard_library_writes_is_read_the_same(value: Any) -> None:
    assert loads(json.dumps(value)) == value


def test_half_an_emoji_survives() -> None:
    assert loads(b'"hi \\ud83d"') == "hi \ud83d"
    assert dumps("hi \ud83d") == '"hi \\ud83d"'
    assert dumps("hi 😀") == '"hi 😀"'


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "line 1, column 1"),
        (b"{oops", "line 1, column 2"),
        (b'{"a": NaN}', "NaN"),
        (b"[Infinity]", "Infinity"),
        (b'"\xff"', "not UTF-8 at byte"),
        (b"[" * 100_000, "nested too deeply"),
        (b"{} {}", "line 1, column 4"),
    ],
)
def test_what_is_no_json_is_told_with_its_place(data: bytes, says: str) -> None:
    with pytest.raises(NotJson) as told:
        loads(data)
    assert says in str(told.value)


def test_a_nest_that_cannot_be_written_is_told() -> None:
    nest: list[Any] = []
    for _ in range(5_000):
        nest = [nest]
    with pytest.raises(NotJson):
        dumps(nest)
    with pytest.raises(NotJson):
        dump_bytes(nest)


@pytest.mark.parametrize(
    ("text", "doubled"),
    [
        ('{"a": 1, "b": {"a": 2}}', None),
        ('{"a": 1, "\\u0061": 2}', "a"),
        ('[{"b": {"名": 1, "名": 1}}]', "[0].b.名"),
        ('{"c": 1, "b": [7, {"d": 1, "d": 1}], "c": [{"d": 1, "d": 1}]}', "c"),
        ('{"b": [7, {"d": 1, "d": 1}], "c": {"d": 1, "d": 1}}', "c.d"),
        ('{"b": {"e": {"x": 1, "x": 1}, "e": 1}}', "b.e"),
        ("7", None),
    ],
)
def test_a_key_that_stands_twice_in_one_object(text: str, doubled: str | None) -> None:
    assert doubled_key(text) == doubled == doubled_key(text.encode())


@pytest.mark.parametrize("text", ["{half", "", "[7]", "7", "null", '"\ud800"'])
def test_what_is_no_object_is_none(text: str) -> None:
    assert load_object(text) is None


def test_an_object_is_read() -> None:
    assert load_object('{"章": 7}') == {"章": 7}


def test_a_key_that_stands_twice_among_many_is_found_in_one_pass() -> None:
    """Each key compared with each would take minutes, in which the gateway answers nobody."""
    keys = ", ".join(f'"k{at}": 0' for at in range(200_000))
    assert doubled_key('{"a": [{' + keys + ', "k199999": 1}]}') == "a[0].k199999"


@pytest.mark.parametrize("depth", [1_000, 1_020])
def test_a_nest_in_which_no_key_can_be_looked_for_is_told(depth: int) -> None:
    for text in ("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth):
        loads(text)
        with pytest.raises(NotJson, match="nested too deeply"):
            doubled_key(text)
