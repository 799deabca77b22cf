"""What calls teach the circuits, and what they tell who asks."""

from __future__ import annotations

import asyncio
import logging

import pytest

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.circuits import Circuits
from policies.schema import Circuit as Rules
from tests.gateway.house import HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock(0)


@pytest.fixture
def circuits(clock: HandClock) -> Circuits:
    return Circuits({"a": Rules(failures=2, rest=15.0), "b": Rules()}, clock.monotonic)


def fail(circuits: Circuits, kind: FaultKind, *, is_ours: bool = False, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(UpstreamFault), circuits.call("a"):
            raise UpstreamFault(kind, "it failed", is_ours=is_ours)


REQUESTS = (FaultKind.REFUSED, FaultKind.OVERFLOW, FaultKind.BAD_REQUEST)
OUTAGES = tuple(kind for kind in FaultKind if kind not in REQUESTS)


@pytest.mark.parametrize("kind", OUTAGES)
def test_failures_of_the_backend_open_its_circuit_alone(
    circuits: Circuits, kind: FaultKind
) -> None:
    fail(circuits, kind, times=2)
    assert circuits.states() == {"a": "open", "b": "closed"}
    assert not circuits.is_passable("a")
    assert circuits.is_passable("b")


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_refused_request_shows_that_the_backend_lives(
    circuits: Circuits, kind: FaultKind
) -> None:
    fail(circuits, FaultKind.SERVER)
    fail(circuits, kind)
    fail(circuits, FaultKind.SERVER)
    assert circuits.state("a") == "closed"


def test_what_the_gateway_ends_itself_says_nothing(circuits: Circuits) -> None:
    fail(circuits, FaultKind.SERVER)
    fail(circuits, FaultKind.OVERLOADED, is_ours=True, times=9)
    assert circuits.state("a") == "closed"
    fail(circuits, FaultKind.SERVER)
    assert circuits.state("a") == "open"


def test_an_open_circuit_refuses_at_once_and_says_when_to_come_back(
    circuits: Circuits, clock: HandClock
) -> None:
    fail(circuits, FaultKind.SERVER)
    fail(circuits, FaultKind.TIMEOUT)
    clock.ms += 4_500
    with pytest.raises(UpstreamFault) as told, circuits.call("a"):
        raise AssertionError("nobody is let through")
    fault = told.value
    assert (fault.kind, fault.status, fault.code) == (FaultKind.RESTING, 503, "upstream_resting")
    assert fault.retry_after == 10.5  # 15 - 4.5
    assert fault.message == (
        "The backend a failed 2 times in a row (the last time: timeout) and is left alone for "
        "11 s more. Try again when its rest is over."
    )


def test_half_open_lets_one_through_and_its_answer_closes(
    circuits: Circuits, clock: HandClock
) -> None:
    fail(circuits, FaultKind.SERVER, times=2)
    clock.ms += 15_000
    assert (circuits.state("a"), circuits.is_passable("a")) == ("half-open", True)
    with circuits.call("a") as passage:
        assert passage.is_probe
        assert not circuits.is_passable("a")
        with pytest.raises(UpstreamFault) as told, circuits.call("a"):
            raise AssertionError("one at a time")
        assert told.value.retry_after == 1.0
        passage.note_beginning()
        assert circuits.state("a") == "closed"
        with circuits.call("a") as other:
            assert not other.is_probe
    assert circuits.state("a") == "closed"


def test_a_probe_that_fails_begins_another_rest(circuits: Circuits, clock: HandClock) -> None:
    fail(circuits, FaultKind.SERVER, times=2)
    clock.ms += 15_000
    fail(circuits, FaultKind.TIMEOUT)
    assert (circuits.state("a"), circuits.rest_left("a")) == ("open", 15.0)


@pytest.mark.parametrize("error", [asyncio.CancelledError, GeneratorExit, ZeroDivisionError])
def test_a_probe_without_an_outcome_frees_its_place(
    circuits: Circuits, clock: HandClock, error: type[BaseException]
) -> None:
    fail(circuits, FaultKind.SERVER, times=2)
    clock.ms += 15_000
    with pytest.raises(error), circuits.call("a"):
        raise error
    assert (circuits.state("a"), circuits.is_passable("a")) == ("half-open", True)


@pytest.mark.parametrize(
    "error",
    [
        GeneratorExit(),
        UpstreamFault(FaultKind.SERVER, "it failed"),
        UpstreamFault(FaultKind.TIMEOUT, "its client gives up", is_ours=True),
    ],
)
def test_a_call_from_before_says_nothing_of_the_probe(
    circuits: Circuits, clock: HandClock, error: BaseException
) -> None:
    """One request at a time, however old calls end meanwhile."""
    with pytest.raises(type(error)), circuits.call("a"):
        fail(circuits, FaultKind.SERVER, times=2)
        clock.ms += 15_000
        probe = circuits.call("a")
        assert probe.__enter__().is_probe
        raise error
    assert (circuits.state("a"), circuits.is_passable("a")) == ("half-open", False)
    probe.__exit__(None, None, None)
    assert circuits.state("a") == "closed"


def test_opening_and_closing_are_logged_once(
    circuits: Circuits, clock: HandClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "foldgate.circuits")
    fail(circuits, FaultKind.SERVER, times=2)
    clock.ms += 15_000
    with circuits.call("a"):
        pass
    with circuits.call("a"):
        pass
    assert [record.getMessage() for record in caplog.records] == [
        "backend a failed 2 times in a row: left alone for 15 s",
        "backend a answers again",
    ]


def test_a_backend_without_rules_has_the_usual_ones(circuits: Circuits) -> None:
    for _ in range(5):
        with pytest.raises(UpstreamFault), circuits.call("z"):
            raise UpstreamFault(FaultKind.SERVER, "it failed")
    assert circuits.state("z") == "open"
