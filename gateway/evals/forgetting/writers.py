"""Chapters and gists as the program writes them: rounds of its recorder, then a stand-in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from gateway.evals.forgetting.state import Recorded, RunStopped, State
from gateway.flows.assignments import Assignment
from gateway.flows.recorder import Recorder
from gateway.flows.rounds import Counts, Draft, Rejected, Round
from gateway.meters import Meters
from policies.schema import Policy


class Writer:
    """Has texts written by one backend under a policy, and keeps them in a state.

    counts: what was asked, rejected and failed in all.
    """

    def __init__(
        self, backend: Recorded, policy: Policy, state: State, clock: Callable[[], float]
    ) -> None:
        self.counts = Counts()
        self._backend = backend
        self._policy = policy
        self._state = state
        self._recorder = Recorder(self.counts, _inline, Meters(), clock)

    async def write(self, work: Assignment, key: str) -> Draft | None:
        """The text; None where every round was judged out. Raises RunStopped where the backend
        cannot be asked: that says nothing of what is forgotten."""
        rules = self._policy.summaries
        for attempt in range(1, rules.rounds + 1):
            round_ = Round(
                work=work,
                order=[self._backend],
                rules=rules,
                key=key,
                attempt=attempt,
                ratios={},
                gate=_open_gate,
                report=_report,
            )
            outcome = await self._recorder.write(round_)
            if isinstance(outcome, Draft):
                self._state.add("text", key, outcome.text)
                return outcome
            failure = outcome[0]
            if failure.cause == "outage":
                raise RunStopped(failure.said)
            if failure.cause == "final":
                break
        self._state.add("text", key, None)
        return None


@asynccontextmanager
async def _open_gate(_backend: str) -> AsyncIterator[None]:
    """Nobody else is served meanwhile."""
    yield


async def _report(_rejected: Rejected) -> None:
    """Counted by the recorder, and kept with its call."""


async def _inline(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)
