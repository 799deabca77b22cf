"""The waits of one call, and the words in which each is told."""

from __future__ import annotations

import pytest

from gateway.backends.waits import Stage, Waits
from policies.schema import Timeouts

TIMEOUTS = Timeouts(connect=5.0, first_token=300.0, idle=120.0, total=1_800.0)


@pytest.mark.parametrize(
    ("limit", "now", "seconds", "until"),
    [
        (None, 0.0, 300.0, 300.0),
        (None, 1_000.0, 120.0, 1_120.0),
        (None, 1_850.0, 120.0, 1_900.0),  # 100 + 1,800 comes first
        (670.0, 600.0, 120.0, 670.0),  # the client gives up at 670
        (5_000.0, 1_850.0, 120.0, 1_900.0),
    ],
)
def test_a_wait_ends_with_the_call_at_the_latest(
    limit: float | None, now: float, seconds: float, until: float
) -> None:
    assert Waits(TIMEOUTS, 100.0, limit).until(now, seconds) == until


@pytest.mark.parametrize(
    ("limit", "stage", "now", "words", "is_ours"),
    [
        (None, "connect", 5.0, "could not be reached within 5 s (timeouts.connect)", False),
        (None, "first_token", 300.0, "gave no first token within 300 s", False),
        (None, "idle", 500.0, "fell silent for 120 s (timeouts.idle)", False),
        (None, "idle", 1_800.0, "took longer than 1800 s in all (timeouts.total)", False),
        (570.0, "idle", 569.0, "fell silent for 120 s", False),
        (570.0, "idle", 570.0, "had not finished when its client would have given up", True),
        (2_000.0, "idle", 1_800.0, "took longer than 1800 s in all", False),
    ],
)
def test_each_wait_is_told_in_its_own_words(
    limit: float | None, stage: Stage, now: float, words: str, is_ours: bool
) -> None:
    fault = Waits(TIMEOUTS, 0.0, limit).fault("glm", stage, now)
    assert fault.message.startswith(f"The backend glm {words}")
    assert (fault.status, fault.code) == (504, "upstream_timeout")
    assert fault.is_ours is is_ours  # a client's patience says nothing about the backend
