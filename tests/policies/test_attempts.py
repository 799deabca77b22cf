"""What follows a failed attempt, one row a case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.attempts import GIVE_UP, Next, Spent, plan_next
from policies.schema import Attempts

BUDGET = Attempts(most=3, wait=20.0)
FIRST = Spent(attempts=1)
ELSEWHERE, AGAIN, SMALLER = Next("elsewhere"), Next("again"), Next("smaller")

OUTAGES = ("unavailable", "loading", "timeout", "overloaded", "auth", "not_found", "resting")
CHANCES = ("empty", "interrupted", "malformed", "server")


@pytest.mark.parametrize("kind", OUTAGES)
def test_an_outage_is_served_by_another_tier_or_not_at_all(kind: str) -> None:
    assert plan_next(kind, BUDGET, FIRST, has_other=True) == ELSEWHERE
    assert plan_next(kind, BUDGET, FIRST, has_other=False) == GIVE_UP


@pytest.mark.parametrize(
    ("kind", "here", "other", "expected"),
    [
        ("empty", 1, True, AGAIN),
        ("empty", 1, False, AGAIN),
        ("interrupted", 1, True, AGAIN),
        ("malformed", 1, False, AGAIN),
        ("server", 1, False, AGAIN),
        ("server", 1, True, ELSEWHERE),
        ("empty", 2, True, ELSEWHERE),
        ("empty", 2, False, GIVE_UP),
        ("server", 2, False, GIVE_UP),
    ],
)
def test_a_bad_answer_is_drawn_once_more_then_elsewhere(
    kind: str, here: int, other: bool, expected: Next
) -> None:
    spent = Spent(attempts=here, here=here)
    assert plan_next(kind, BUDGET, spent, has_other=other) == expected


@pytest.mark.parametrize(
    ("kind", "elsewhere", "other", "is_cut", "expected"),
    [
        ("refused", (), True, False, GIVE_UP),
        ("refused", ("refused",), True, False, ELSEWHERE),
        ("refused", ("refused",), False, False, GIVE_UP),
        ("refused", ("overflow",), True, False, GIVE_UP),
        ("overflow", (), True, False, SMALLER),
        ("overflow", (), True, True, GIVE_UP),
        ("overflow", ("overflow",), True, False, ELSEWHERE),  # whole there beats cut here
        ("overflow", ("overflow",), False, False, SMALLER),
        ("overflow", ("overflow",), True, True, ELSEWHERE),
        ("bad_request", ("refused", "overflow"), True, False, GIVE_UP),
    ],
)
def test_what_is_wrong_with_the_request_goes_elsewhere_only_where_the_policy_says_so(
    kind: str, elsewhere: tuple[str, ...], other: bool, is_cut: bool, expected: Next
) -> None:
    spent = Spent(attempts=1, is_cut=is_cut)
    assert plan_next(kind, BUDGET, spent, has_other=other, elsewhere=elsewhere) == expected


@pytest.mark.parametrize(
    ("kind", "asked", "waited", "left", "other", "expected"),
    [
        ("overloaded", 7.0, 0.0, None, False, Next("again", 7.0)),
        ("loading", 20.0, 0.0, None, False, Next("again", 20.0)),  # 0 + 20 = 20
        ("overloaded", 7.0, 14.0, None, False, GIVE_UP),  # 14 + 7 > 20
        ("overloaded", 0.0, 20.0, None, False, Next("again", 0.0)),
        ("overloaded", 20.1, 0.0, None, False, GIVE_UP),
        ("overloaded", 7.0, 0.0, 7.0, False, GIVE_UP),  # nothing would be left to answer in
        ("overloaded", 7.0, 0.0, 7.5, False, Next("again", 7.0)),
        ("overloaded", 7.0, 0.0, None, True, ELSEWHERE),  # nobody waits where another serves
        ("overloaded", None, 0.0, None, False, GIVE_UP),
        ("unavailable", 7.0, 0.0, None, False, GIVE_UP),
        ("resting", 7.0, 0.0, None, False, GIVE_UP),  # an open circuit is told at once
    ],
)
def test_a_moment_that_the_upstream_names_is_waited_for_within_the_budget(
    kind: str,
    asked: float | None,
    waited: float,
    left: float | None,
    other: bool,
    expected: Next,
) -> None:
    spent = Spent(attempts=1, waited=waited, left=left)
    found = plan_next(kind, BUDGET, spent, has_other=other, retry_after=asked)
    assert found == expected


KINDS = st.sampled_from([*OUTAGES, *CHANCES, "refused", "overflow", "bad_request", "unheard of"])
WAITS = st.none() | st.floats(0, 1_000)


@given(
    KINDS,
    st.integers(1, 5),
    st.integers(1, 9),
    st.integers(1, 9),
    WAITS,
    st.booleans(),
    st.booleans(),
)
def test_the_budget_is_never_exceeded(
    kind: str,
    most: int,
    attempts: int,
    here: int,
    asked: float | None,
    other: bool,
    is_cut: bool,
) -> None:
    budget = Attempts(most=most, wait=20.0)
    spent = Spent(attempts=attempts, here=here, waited=5.0, is_cut=is_cut, left=60.0)
    found = plan_next(
        kind,
        budget,
        spent,
        has_other=other,
        elsewhere=("refused", "overflow"),
        retry_after=asked,
    )
    if attempts >= most:
        assert found == GIVE_UP
    assert found.wait <= 15.0
    assert other or found.step != "elsewhere"
    assert not (found.step == "smaller" and is_cut)
