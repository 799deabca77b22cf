import pytest

from gateway.policy_file.scalars import Ambiguity, resolve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("null", None),
        ("~", None),
        ("true", True),
        ("false", False),
        ("0", 0),
        ("-5", -5),
        ("48000", 48_000),
        ("48_000", 48_000),
        ("0.5", 0.5),
        ("48,000", "48,000"),
        ("48k", "48k"),
        ("30k tokens", "30k tokens"),
        ("local-glm", "local-glm"),
        ("norway", "norway"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("５", "５"),
        ("да", "да"),
    ],
)
def test_what_every_reader_agrees_on_has_its_value(text, value):
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("no", "true or false"),
        ("NO", "true or false"),
        ("On", "true or false"),
        ("y", "true or false"),
        ("True", "true or false"),
        ("NULL", "null"),
        ("=", "null"),
        ("2026-10-01", "a date"),
        ("2026-10-01 12:00:00", "a date"),
        ("22:30", "the base 60"),
        ("190:20:30.5", "the base 60"),
        ("010", "octal"),
        ("0_1", "octal"),
        ("0x1F", "hexadecimal"),
        ("0o17", "hexadecimal"),
        ("0b11", "hexadecimal"),
        ("4_5", "a number, others as text"),
        ("48_00", "a number, others as text"),
        ("4_8000", "a number, others as text"),
        ("1e6", "differently"),
        ("1.", "differently"),
        (".5", "differently"),
        ("+5", "differently"),
        ("-.inf", "differently"),
        (".NaN", "differently"),
    ],
)
def test_what_readers_take_for_different_things_is_refused(text, word):
    found = resolve(text)
    assert isinstance(found, Ambiguity)
    assert word in found.message
    assert found.hint
