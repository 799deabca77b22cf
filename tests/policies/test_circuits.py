"""A circuit's way from closed over open and half open, second by second."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.circuits import (
    CLOSED,
    Circuit,
    enter,
    is_passable,
    note_beginning,
    note_failure,
    note_nothing,
    note_success,
    rest_left,
    state_of,
)
from policies.schema import Circuit as Rules

RULES = Rules(failures=3, rest=15.0)


def fail(circuit: Circuit, *moments: float) -> Circuit:
    for now in moments:
        circuit = note_failure(circuit, RULES, now)
    return circuit


@pytest.mark.parametrize(
    ("failed_at", "now", "state", "left"),
    [
        ([], 0.0, "closed", 0.0),
        ([1.0, 2.0], 2.0, "closed", 0.0),  # two of three
        ([1.0, 2.0, 3.0], 3.0, "open", 15.0),
        ([1.0, 2.0, 3.0], 10.5, "open", 7.5),  # 3 + 15 - 10.5
        ([1.0, 2.0, 3.0], 18.0, "half-open", 0.0),
        ([1.0, 2.0, 3.0, 17.0], 18.0, "half-open", 0.0),  # sent before: the rest is not longer
    ],
)
def test_so_many_failures_in_a_row_open_it_for_the_rest(
    failed_at: list[float], now: float, state: str, left: float
) -> None:
    circuit = fail(CLOSED, *failed_at)
    assert (state_of(circuit, RULES, now), rest_left(circuit, RULES, now)) == (state, left)
    assert is_passable(circuit, RULES, now) is (state != "open")


def test_a_success_in_between_begins_the_count_anew() -> None:
    circuit = fail(note_success(fail(CLOSED, 1.0, 2.0)), 3.0, 4.0)
    assert state_of(circuit, RULES, 4.0) == "closed"


def test_an_open_one_lets_nobody_through_and_a_half_open_one_exactly_one() -> None:
    circuit = fail(CLOSED, 1.0, 2.0, 3.0)
    assert enter(circuit, RULES, 17.9) is None
    probing = enter(circuit, RULES, 18.0)
    assert probing is not None
    assert state_of(probing, RULES, 18.0) == "half-open"
    assert enter(probing, RULES, 18.0) is None
    assert not is_passable(probing, RULES, 18.0)


def test_a_closed_one_lets_everybody_through() -> None:
    assert enter(CLOSED, RULES, 0.0) is CLOSED
    two = fail(CLOSED, 1.0, 2.0)
    assert enter(two, RULES, 3.0) is two


def probe() -> Circuit:
    probing = enter(fail(CLOSED, 1.0, 2.0, 3.0), RULES, 20.0)
    assert probing is not None
    return probing


def test_a_probe_that_fails_opens_it_for_another_rest() -> None:
    circuit = fail(probe(), 21.0)
    assert (state_of(circuit, RULES, 21.0), rest_left(circuit, RULES, 30.0)) == ("open", 6.0)


def test_a_probe_that_is_answered_closes_it() -> None:
    assert note_success(probe()) == CLOSED


def test_a_probe_whose_answer_begins_lets_others_in_on_trial() -> None:
    circuit = note_beginning(probe(), RULES)
    assert state_of(circuit, RULES, 21.0) == "closed"
    assert state_of(fail(circuit, 22.0), RULES, 22.0) == "open"  # 2 + 1 of three
    assert fail(note_success(circuit), 22.0, 23.0) == Circuit(failures=2)


def test_an_answer_that_begins_says_nothing_new_of_a_closed_one() -> None:
    two = fail(CLOSED, 1.0, 2.0)
    assert note_beginning(two, RULES) is two


def test_a_probe_whose_client_left_leaves_the_place_to_the_next() -> None:
    circuit = note_nothing(probe())
    assert enter(circuit, RULES, 20.0) == probe()
    two = fail(CLOSED, 1.0, 2.0)
    assert note_nothing(two) is two


Moment = st.floats(0, 1_000, allow_nan=False)
EVENTS = st.sampled_from(["enter", "fail", "succeed", "begin", "leave"])


@given(st.lists(st.tuples(EVENTS, Moment)), st.integers(1, 5))
def test_it_never_stays_shut_for_ever(events: list[tuple[str, float]], failures: int) -> None:
    """Whatever happened: with nobody on the way, one may pass a rest later."""
    rules = Rules(failures=failures, rest=15.0)
    circuit, now = CLOSED, 0.0
    for event, pause in events:
        now += pause
        match event:
            case "enter":
                circuit = enter(circuit, rules, now) or circuit
            case "fail":
                circuit = note_failure(circuit, rules, now)
            case "succeed":
                circuit = note_success(circuit)
            case "begin":
                circuit = note_beginning(circuit, rules)
            case _:
                circuit = note_nothing(circuit)
        assert 0.0 <= rest_left(circuit, rules, now) <= 15.0
        assert circuit.failures <= failures + 1
    assert is_passable(note_nothing(circuit), rules, now + 15.0)
