"""Texts by the program's own recorder: rounds, then nothing; an outage is no forgetting."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from gateway.backends.base import Call
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.scripted import Scripted
from gateway.evals.forgetting.state import Recorded, RunStopped, State
from gateway.evals.forgetting.writers import Writer
from gateway.flows.assignments import ChapterAssignment
from policies.schema import Policy, ScriptedBackend
from policies.values import Line

WORK = ChapterAssignment(
    (
        Line("Ann", "I bought a green boat in Malta for 900 crowns, and named it Petrel."),
        Line("Bob", "Then we should sail from Malta to Tunis before the storms of November."),
    ),
    "en",
    300,
    10_000,
)


class Model(Scripted):
    """Answers as a scripted backend, or with a fault."""

    def __init__(self, fault: UpstreamFault | None = None, refusals: float = 0) -> None:
        config = ScriptedBackend(latency=0, refusals=refusals, truncations=0)
        super().__init__("m", config)
        self.fault = fault
        self.calls: list[Call] = []

    async def complete(self, call: Call) -> Any:
        self.calls.append(call)
        if self.fault is not None:
            raise self.fault
        return await super().complete(call)


def write(model: Model, state: State, **summaries: Any) -> str | None:
    rules = {"rounds": 2, "redraws": 1, **summaries}
    policy = Policy.model_validate({"summaries": rules})
    writer = Writer(Recorded(model, state), policy, state, lambda: 0.0)
    draft = asyncio.run(writer.write(WORK, "k"))
    return None if draft is None else draft.text


def test_a_text_is_written_once_and_kept() -> None:
    model, state = Model(), State()
    text = write(model, state)
    assert text is not None and "Malta" in text
    assert state.find("text", "k") == text
    assert write(model, state) == text
    assert len(model.calls) == 1
    assert model.calls[0].request_id == "k#1.0.0"
    assert json.loads(model.calls[0].messages[0])["role"] == "user"


def test_rounds_of_draws_and_then_nothing() -> None:
    model, state = Model(refusals=100), State()
    assert write(model, state) is None
    assert [call.request_id for call in model.calls] == ["k#1.0.0", "k#1.0.1", "k#2.0.0", "k#2.0.1"]
    assert state.count("text") == 1 and state.find("text", "k") is None


def test_a_content_that_is_refused_is_not_sent_again() -> None:
    model = Model(UpstreamFault(FaultKind.REFUSED, "No"))
    assert write(model, State()) is None
    assert len(model.calls) == 1


def test_an_outage_ends_the_run() -> None:
    with pytest.raises(RunStopped, match="Nobody is there"):
        write(Model(UpstreamFault(FaultKind.UNAVAILABLE, "Nobody is there")), State())


def test_who_takes_too_long_ends_the_run_too() -> None:
    class Slow(Model):
        async def complete(self, call: Call) -> Any:
            raise TimeoutError

    with pytest.raises(RunStopped, match="took longer than"):
        write(Slow(), State())
