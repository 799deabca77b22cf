"""Placeholders: stable, told apart, and the way back."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.masking.kinds import KINDS
from policies.masking.placeholders import Masks, Restorer
from tests.policies.masking.test_finding import VALUES

CODES = "BCDFGHJKLMNPQRSTVWXZ"
some_value = st.sampled_from([value for _, _, value in VALUES])
some_text = st.text(max_size=40)
looks_like = st.builds(
    lambda word, letters: f"[{word}_{letters}]",
    st.sampled_from(["MAIL", "PHONE", "CARD", "ID", "IBAN", "TEXT"]),
    st.text(CODES, min_size=8, max_size=8),
)
mixed = st.lists(
    st.one_of(some_text, some_value, looks_like, st.sampled_from("[]_ M")), max_size=12
)


def masks(secret: str = "conv_1") -> Masks:
    return Masks(secret, KINDS)


def test_values_give_way_and_come_back() -> None:
    text = "Write bob@example.com or 090-1234-5678; again bob@example.com."
    hidden = masks()
    shown = hidden.mask(text)
    assert re.fullmatch(r"Write (\[MAIL_[A-Z]{8}\]) or \[PHONE_[A-Z]{8}\]; again \1\.", shown)
    assert hidden.restore(shown) == text
    assert len(hidden.placeholders) == 2


def test_one_value_has_one_placeholder_in_any_order_and_process() -> None:
    one, other = masks(), masks()
    first = one.mask("a@example.com")
    other.mask("b@example.com")
    assert other.mask("a@example.com") == first
    assert first == "[MAIL_LHPZNKTX]" or masks().mask("a@example.com") == first


def test_another_conversation_has_others() -> None:
    assert masks("conv_1").mask("a@example.com") != masks("conv_2").mask("a@example.com")


def test_what_a_model_invents_stays() -> None:
    hidden = masks()
    hidden.mask("a@example.com")
    assert hidden.restore("see [MAIL_BBBBBBBB] and [FAX_BBBBBBBB]") == (
        "see [MAIL_BBBBBBBB] and [FAX_BBBBBBBB]"
    )


def test_what_looks_like_a_placeholder_is_nobody_elses_value() -> None:
    secret = masks()
    stolen = secret.mask("a@example.com")
    hidden = masks()
    shown = hidden.mask(f"a@example.com {stolen}")
    assert stolen in shown and shown.count("[TEXT_") == 1
    assert hidden.restore(shown) == f"a@example.com {stolen}"


def test_nothing_hidden_nothing_restored() -> None:
    hidden = masks()
    assert hidden.mask("plain [MAIL]") == "plain [MAIL]"
    assert hidden.restore("[MAIL_BBBBBBBB]") == "[MAIL_BBBBBBBB]"


def test_values_whose_codes_meet_are_told_apart() -> None:
    hidden = Masks("conv_1", KINDS, length=1)
    texts = [f"user{number}@example.com" for number in range(20)]
    shown = [hidden.mask(text) for text in texts]
    assert len(set(shown)) == 20
    assert [hidden.restore(one) for one in shown] == texts


def test_a_number_that_a_word_gave_away_is_hidden_everywhere_behind() -> None:
    hidden = masks()
    shown = hidden.mask("2025550143? My phone is 2025550143.")
    assert "2025550143" not in shown
    assert "2025550143" not in hidden.mask("I will try 2025550143 then")
    assert masks().mask("I will try 2025550143 then") == "I will try 2025550143 then"


def test_json_stays_json() -> None:
    hidden = masks()
    said = '{"to": "bob\\u0040example.com", "card": 4111111111111111, "n": [1, true, null, 2.5]}'
    shown = hidden.mask_json(said)
    value = json.loads(shown)
    assert value["to"].startswith("[MAIL_") and value["card"].startswith("[CARD_")
    assert value["n"] == [1, True, None, 2.5]
    assert json.loads(hidden.restore(shown))["to"] == "bob@example.com"
    assert hidden.mask_json('{ "a" : 1 }') == '{ "a" : 1 }'
    assert hidden.mask_json("{a@example.com").startswith("{[MAIL_")
    assert hidden.mask_json("[" * 100_000 + "a@example.com").endswith("]")


@given(mixed)
def test_law_restored_is_what_was_masked(pieces: list[str]) -> None:
    text = "".join(pieces)
    hidden = masks()
    assert hidden.restore(hidden.mask(text)) == text


@given(st.lists(st.tuples(some_value, st.sampled_from([" ", "\n", "、", ", ", " и "])), min_size=1))
def test_law_a_masked_text_holds_no_value(pairs: list[tuple[str, str]]) -> None:
    alone = [(value, gap) for value, gap in pairs if masks().mask(value) != value]
    text = "".join(value + gap + "x" + gap for value, gap in alone)
    shown = masks().mask(text)
    assert not any(value in shown for value, _ in alone)


@given(mixed, st.lists(st.integers(0, 60), max_size=8))
def test_law_in_pieces_as_whole(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    hidden = masks()
    shown = hidden.mask(text) + "[MAIL_" + text[:9]
    restorer, at, said = Restorer(hidden), 0, []
    for cut in [*sorted(cuts), len(shown)]:
        said.append(restorer.feed(shown[at:cut]))
        at = max(at, cut)
    assert "".join(said) + restorer.close() == hidden.restore(shown)


@given(mixed)
def test_law_what_is_held_is_no_longer_than_a_placeholder(pieces: list[str]) -> None:
    hidden = masks()
    shown = hidden.mask("".join(pieces) + " a@example.com")
    restorer, given_back = Restorer(hidden), ""
    for at, letter in enumerate(shown):
        given_back += restorer.feed(letter)
        held = len(hidden.restore(shown[: at + 1])) - len(given_back)
        assert 0 <= held < len("[PHONE_BBBBBBBB]")
        assert restorer.holds == (held > 0)
        assert not re.search(r"\[MAIL_[A-Z]{0,7}$", given_back) or not restorer.holds


@given(st.lists(mixed, min_size=2, max_size=5))
def test_law_a_prompt_goes_on_from_the_one_before(texts: list[list[str]]) -> None:
    before, after = masks(), masks()
    messages = ["".join(pieces) for pieces in texts]
    assert [before.mask(one) for one in messages[:-1]] == [after.mask(one) for one in messages][:-1]


@pytest.mark.parametrize("kind", KINDS)
def test_only_what_a_policy_names_is_hidden(kind: str) -> None:
    hidden = Masks("conv_1", [kind])  # type: ignore[list-item]
    text = "\n".join(text for _, text, _ in VALUES)
    words = set(re.findall(r"\[([A-Z]+)_", hidden.mask(text)))
    assert words == {{"national_id": "ID"}.get(kind, kind.upper())}
