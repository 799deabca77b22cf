"""Transactions that were lost are run again, a while later each time, and not for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.store import reruns
from gateway.store.reruns import ATTEMPTS, TOGETHER, TransactionLost, until_it_stands

pytestmark = pytest.mark.sqlite


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr(reruns.time, "sleep", slept.append)
    return slept


def lose(times: int) -> tuple[list[bool], Callable[[bool], str]]:
    calls: list[bool] = []

    def run(alone: bool) -> str:
        calls.append(alone)
        if len(calls) <= times:
            raise TransactionLost("too busy")
        return "done"

    return calls, run


def test_what_stands_at_once_waits_for_nothing(waits: list[float]) -> None:
    assert until_it_stands(lambda alone: 7) == 7
    assert waits == []


def test_what_is_lost_is_run_until_it_stands(waits: list[float]) -> None:
    calls, run = lose(ATTEMPTS - 1)
    assert until_it_stands(run) == "done"
    assert calls == [False] * TOGETHER + [True] * (ATTEMPTS - TOGETHER)
    assert len(waits) == ATTEMPTS - 1
    assert all(0 < wait <= 0.4 for wait in waits)
    assert sum(waits) < 4, "a client waits for it"


def test_what_is_always_lost_is_told(waits: list[float]) -> None:
    calls, run = lose(10**6)
    with pytest.raises(TransactionLost):
        until_it_stands(run)
    assert len(calls) == ATTEMPTS


def test_other_errors_are_nobodys_to_repeat(waits: list[float]) -> None:
    calls: list[int] = []

    def fail(_alone: bool) -> None:
        calls.append(1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        until_it_stands(fail)
    assert len(calls) == 1
    assert waits == []
