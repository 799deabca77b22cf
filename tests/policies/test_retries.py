"""Back-off in numbers, and when work is given up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.retries import (
    BROKEN_ROUNDS,
    CAP_SECONDS,
    Cause,
    Retry,
    draw_share,
    plan_retry,
    wait_seconds,
)


@pytest.mark.parametrize(
    ("attempt", "least", "most"),
    [
        # 30 × 2^(attempt − 1), × 0.75 … × 1.25, at most 3,600
        (1, 22.5, 37.5),
        (2, 45.0, 75.0),
        (3, 90.0, 150.0),
        (7, 1_440.0, 2_400.0),
        (8, 2_700.0, 3_600.0),  # min(3,600, 3,840) = 3,600 before the jitter
        (100, 2_700.0, 3_600.0),
    ],
)
def test_waits_double_up_to_the_cap(attempt: int, least: float, most: float) -> None:
    waits = [wait_seconds(f"chapter:{number}", attempt) for number in range(200)]

    assert min(waits) >= least
    assert max(waits) <= most
    assert max(waits) - min(waits) > (most - least) * 0.9 or attempt >= 8


def test_jitter_spreads_300_conversations_that_failed_together() -> None:
    waits = sorted(wait_seconds(f"chapter:{number}", 3) for number in range(300))

    # 300 waits over 60 seconds: 5 a second on average; chance puts no more than 15 into one.
    assert all(waits[at + 15] - waits[at] > 1.0 for at in range(285))


@pytest.mark.parametrize(
    ("retry_after", "expected"),
    [
        (7.0, wait_seconds("chapter:1", 1)),  # shorter than our own wait
        (200.0, 200.0),
        (86_400.0, CAP_SECONDS["outage"]),
    ],
)
def test_an_upstreams_wish_lengthens_the_wait_up_to_the_cap(
    retry_after: float, expected: float
) -> None:
    assert wait_seconds("chapter:1", 1, "outage", retry_after) == expected


@pytest.mark.parametrize(("cause", "cap"), [("outage", 3_600), ("judged", 900), ("broken", 300)])
def test_each_cause_has_its_cap(cause: Cause, cap: float) -> None:
    waits = [wait_seconds(f"chapter:{number}", 12, cause) for number in range(200)]

    assert cap * 0.75 <= min(waits) < max(waits) == cap
    assert wait_seconds("chapter:1", 1, cause, 86_400.0) == cap


@given(st.text(), st.integers(1, 10_000))
def test_a_wait_depends_on_key_and_attempt_alone(key: str, attempt: int) -> None:
    # Keys are made of row numbers and names; a lone surrogate is in none of them.
    key = key.encode(errors="ignore").decode()

    assert wait_seconds(key, attempt) == wait_seconds(key, attempt)
    assert 0 < wait_seconds(key, attempt) <= CAP_SECONDS["outage"]
    assert 0.0 <= draw_share(key) < 1.0


@pytest.mark.parametrize(
    ("attempt", "rounds", "cause", "parked", "stand_in"),
    [
        (1, 3, "judged", False, False),
        (2, 3, "outage", False, False),
        (3, 3, "judged", False, True),
        (3, 3, "outage", False, True),
        (5, 3, "judged", False, True),
        (6, 3, "judged", True, True),  # 3 rounds + 3 further ones
        (26, 3, "outage", False, True),
        (27, 3, "outage", True, True),  # 3 rounds + 24 further ones
        (1, 3, "final", True, True),  # the same bytes are refused for ever
        (1, 3, "broken", False, False),
        (BROKEN_ROUNDS, 3, "broken", True, False),
    ],
)
def test_what_follows_a_failed_round(
    attempt: int, rounds: int, cause: str, parked: bool, stand_in: bool
) -> None:
    plan = plan_retry("chapter:1", attempt, rounds, cause)  # type: ignore[arg-type]

    wait = None if parked else wait_seconds("chapter:1", attempt, cause)  # type: ignore[arg-type]
    assert plan == Retry(wait, stand_in)
