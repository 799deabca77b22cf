"""What the environment decides."""

from __future__ import annotations

import pytest

from gateway.errors import ConfigurationError
from gateway.settings import parse_keys, read_settings


def test_without_an_environment_the_defaults_hold() -> None:
    settings = read_settings({})
    assert (settings.log, settings.log_level, settings.traces) == ("text", "info", "off")
    assert settings.loopback


@pytest.mark.parametrize(
    ("variable", "word", "field", "value"),
    [
        ("FOLDGATE_LOG", "JSON", "log", "json"),
        ("FOLDGATE_LOG_LEVEL", "debug", "log_level", "debug"),
        ("FOLDGATE_TRACES", "otlp", "traces", "otlp"),
        ("FOLDGATE_SYNCHRONOUS", "full", "synchronous", "FULL"),
        ("FOLDGATE_PATIENCE", "2m", "patience_seconds", 120.0),
        ("FOLDGATE_PATIENCE", "", "patience_seconds", 570.0),
        ("FOLDGATE_GRACE", "90s", "grace_seconds", 90.0),
        ("FOLDGATE_GRACE", "", "grace_seconds", 120.0),
        ("FOLDGATE_DRAIN", "0s", "drain_seconds", 0.0),
        ("FOLDGATE_DRAIN", "", "drain_seconds", 10.0),
    ],
)
def test_a_choice_is_read_in_either_case(
    variable: str, word: str, field: str, value: object
) -> None:
    assert getattr(read_settings({variable: word}), field) == value


@pytest.mark.parametrize(
    ("variable", "word", "told"),
    [
        ("FOLDGATE_LOG", "xml", "must be one of text, json"),
        ("FOLDGATE_LOG_LEVEL", "loud", "must be one of debug, info, warning, error"),
        ("FOLDGATE_TRACES", "on", "must be one of off, otlp"),
        ("FOLDGATE_SYNCHRONOUS", "OFF", "must be NORMAL or FULL"),
        ("FOLDGATE_KEYS", "ann", "part 1 is not owner=key"),
        ("FOLDGATE_PATIENCE", "570", "must be a duration such as 570s"),
        ("FOLDGATE_PATIENCE", "0s", "must be a duration such as 570s"),
        ("FOLDGATE_GRACE", "soon", "must be a duration such as 570s"),
        ("FOLDGATE_DRAIN", "-1s", "must be a duration such as 570s"),
    ],
)
def test_what_is_not_understood_stops_the_start(variable: str, word: str, told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as caught:
        read_settings({variable: word})
    assert variable in str(caught.value)


def test_an_address_that_others_reach_needs_keys() -> None:
    with pytest.raises(ConfigurationError, match="set FOLDGATE_KEYS"):
        read_settings({}, host="0.0.0.0")
    settings = read_settings({"FOLDGATE_KEYS": "안나=k1, bob=k2"}, host="0.0.0.0")
    assert settings.keys == {"k1": "안나", "k2": "bob"}


def test_a_key_of_two_owners_is_none() -> None:
    with pytest.raises(ConfigurationError, match="part 2 repeats"):
        parse_keys("ann=k1,bob=k1")
