import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from policies.schema import FROM_FILE, parse_duration, parse_size, spell_duration, spell_size
from policies.schema.quantities import (
    DURATION_PATTERN,
    SIZE_PATTERN,
    ApiKey,
    Chars,
    Seconds,
    ServerRoot,
    Tokens,
    Url,
    suggest,
)


def read(kind: object, value: object, **context: object) -> object:
    return TypeAdapter(kind).validate_python(value, context=context)


def refusal(kind: object, value: object, **context: object) -> str:
    with pytest.raises(ValidationError) as caught:
        read(kind, value, **context)
    return caught.value.errors()[0]["msg"]


@pytest.mark.parametrize(
    ("text", "amount", "unit"),
    [
        ("0", 0, None),
        ("48000", 48_000, None),
        ("48_000", 48_000, None),
        ("1_048_576 tokens", 1_048_576, "tokens"),
        ("48000 chars", 48_000, "chars"),
        ("48k chars", 48 * 1_000, "chars"),
        ("1.5k chars", 1_500, "chars"),
        ("30k tokens", 30 * 1_000, "tokens"),
        ("1.5M tokens", 1_500_000, "tokens"),
        ("0.5k tokens", 500, "tokens"),
        ("40 messages", 40, "messages"),
    ],
)
def test_a_size_is_a_number_with_a_factor_and_a_unit(text, amount, unit):
    assert parse_size(text) == (amount, unit)
    assert re.match(SIZE_PATTERN, text)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("48,000", "48000"),
        ("48 000", "48000"),
        ("48'000", "48000"),
        ("48.000", "48000"),
        ("4_8000", "48000"),
        ("010", "10"),
        ("４８０００", "48000"),
        (" 48000 ", "48000"),
        ("48k", "48k chars or 48k tokens"),
        ("48K characters", "48k chars"),
        ("1.5m tok", "1.5M tokens"),
        ("30ktokens", "30k tokens"),
        ("40mes", "40 messages"),
        ("30k  tokens", ""),
        ("48000.5", ""),
        ("1.0005k chars", "1.0005k chars"),
        ("12 pages", ""),
        ("-5", ""),
        ("1e6", ""),
        ("0.5k", "0.5k chars or 0.5k tokens"),
        ("viele", ""),
        ("", ""),
        ("9" * 33, "9" * 33),
        ("四万八千", ""),
    ],
)
def test_what_is_no_size_is_refused_and_spelled_rightly_where_one_can_know(text, right):
    with pytest.raises(ValueError):
        parse_size(text)
    assert spell_size(text) == right


def test_each_way_to_miss_a_size_has_its_own_words():
    assert refusal(Chars, "48k") == "after k or M a size needs its unit, chars or tokens"
    assert refusal(Chars, "1.0005k chars") == "a size is a whole number of characters or tokens"
    assert refusal(Chars, "1.5 chars") == "a size is a whole number of characters or tokens"
    assert refusal(Chars, "48,000").startswith("allowed is a size such as 48000")
    assert refusal(Chars, "30k tokens") == "this size is counted in characters"
    assert refusal(Tokens, "30k chars") == "this size is counted in tokens"


@pytest.mark.parametrize("value", [True, False, 1.0, None, [1], {"a": 1}])
def test_a_size_is_no_truth_value_and_no_float(value):
    assert refusal(Chars, value).startswith("allowed is a whole number such as 48000")


@given(st.integers(0, 10**15), st.sampled_from(["", " chars", " tokens"]))
def test_whatever_python_groups_in_threes_is_read_back(amount, unit):
    assert parse_size(f"{amount:_}{unit}").amount == amount == parse_size(f"{amount}{unit}").amount


@given(st.text(alphabet="0123456789_.,kM charstoken", max_size=14))
def test_the_pattern_for_editors_accepts_what_the_reader_accepts(text):
    try:
        parse_size(text)
    except ValueError:
        return
    assert re.match(SIZE_PATTERN, text)


@given(st.text(alphabet="0123456789_.,'kKmM chrstoken", max_size=14))
def test_a_spelling_that_is_offered_is_one_that_is_read(text):
    for offered in filter(None, spell_size(text).split(" or ")):
        assert re.match(SIZE_PATTERN, offered)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("50ms", 0.05),
        ("0s", 0.0),
        ("30s", 30.0),
        ("1.5h", 1.5 * 3_600),
        ("5m", 5 * 60.0),
        ("365d", 365 * 86_400.0),
    ],
)
def test_a_duration_is_one_number_and_one_unit(text, seconds):
    assert parse_duration(text) == seconds
    assert re.match(DURATION_PATTERN, text)


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("30", "30s"),
        ("30 s", "30s"),
        ("5min", "5m"),
        ("2 Hours", "2h"),
        ("3 days", "3d"),
        ("1h30m", ""),
        ("5 weeks", ""),
        ("soon", ""),
        ("s", ""),
        ("9" * 33 + "s", "9" * 33 + "s"),
    ],
)
def test_what_is_no_duration_is_refused_and_spelled_rightly_where_one_can_know(text, right):
    with pytest.raises(ValueError):
        parse_duration(text)
    assert spell_duration(text) == right


def test_a_duration_without_a_unit_is_seconds_in_python_and_refused_in_a_file():
    assert read(Seconds, 30) == 30.0
    assert read(Seconds, 0.5) == 0.5
    assert read(Seconds, 0, **{FROM_FILE: True}) == 0.0
    assert "needs its unit" in refusal(Seconds, 30, **{FROM_FILE: True})
    assert refusal(Seconds, True).startswith("allowed is a duration")
    assert refusal(Seconds, None).startswith("allowed is a duration")


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080//", "http://127.0.0.1:8080"),
        ("https://example.invalid/v1/", "https://example.invalid/v1"),
        ("http://[::1]:8080", "http://[::1]:8080"),
        ("http://llama-server", "http://llama-server"),
    ],
)
def test_an_address_is_kept_without_its_last_slashes(url, kept):
    assert read(Url, url) == kept


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("127.0.0.1:8080", "allowed is http"),
        ("ftp://host", "allowed is http"),
        ("http://host/?key=x", "allowed is http"),
        ("http://ho st", "allowed is http"),
        ("http://owner:pass@host", "credentials"),
        ("http://", "cannot be read"),
        ("http://host:0", "cannot be read"),
        ("http://host:65536", "cannot be read"),
        ("http://ホスト", "cannot be read"),
    ],
)
def test_an_address_that_cannot_be_called_is_refused(url, why):
    assert why in refusal(Url, url)


def test_the_root_of_a_server_ends_without_its_version():
    assert read(ServerRoot, "http://host/llama") == "http://host/llama"
    assert refusal(ServerRoot, "http://host/v1/") == "allowed is the root of llama-server"


@pytest.mark.parametrize("secret", ["geheim 1", "geheim\n", "clé", "鍵"])
def test_a_key_that_no_header_carries_is_refused_without_being_shown(secret):
    class Holder(BaseModel):
        api_key: ApiKey

    with pytest.raises(ValidationError) as caught:
        Holder(api_key=secret)
    assert secret.strip() not in caught.value.errors(include_input=False).__repr__()


def test_the_nearest_word_is_suggested_whatever_its_case():
    assert suggest("Local-Glm", ["deepseek", "local-glm"]) == "local-glm"
    assert suggest("zzz", ["deepseek", "local-glm"]) == ""
