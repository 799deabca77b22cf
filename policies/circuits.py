"""When a backend that keeps failing is left alone, and how it is let in again.

A circuit is closed while all is well. After so many failures in a row it opens: for a rest nobody
is sent there. Then it is half open: one request goes through, and what comes of it decides. An
answer that begins lets others in, but the next failure opens the circuit again; an answer that
ends whole makes everything as it was.

Time is monotonic seconds, an argument.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from policies.schema import Circuit as Rules

State = Literal["closed", "half-open", "open"]


@dataclass(frozen=True, slots=True)
class Circuit:
    """One backend's circuit. failures: in a row. opened: when it opened last, None while closed.
    probing: whether the one request of the half-open state is under way."""

    failures: int = 0
    opened: float | None = None
    probing: bool = False


CLOSED = Circuit()


def state_of(circuit: Circuit, rules: Rules, now: float) -> State:
    """What the circuit is at this moment."""
    if circuit.opened is None:
        return "closed"
    return "open" if rest_left(circuit, rules, now) > 0 else "half-open"


def rest_left(circuit: Circuit, rules: Rules, now: float) -> float:
    """Seconds until an open circuit lets a request through; 0 where it would now."""
    if circuit.opened is None:
        return 0.0
    return min(max(0.0, circuit.opened + rules.rest - now), rules.rest)


def is_passable(circuit: Circuit, rules: Rules, now: float) -> bool:
    """Whether a request may go through now."""
    state = state_of(circuit, rules, now)
    return state == "closed" or (state == "half-open" and not circuit.probing)


def enter(circuit: Circuit, rules: Rules, now: float) -> Circuit | None:
    """The circuit once a request has gone through; None where it may not."""
    if not is_passable(circuit, rules, now):
        return None
    return circuit if circuit.opened is None else replace(circuit, probing=True)


def note_beginning(circuit: Circuit, rules: Rules) -> Circuit:
    """An answer began: the backend lives, and others may come; one failure more would open the
    circuit again."""
    if circuit.opened is None:
        return circuit
    return Circuit(failures=rules.failures - 1)


def note_failure(circuit: Circuit, rules: Rules, now: float) -> Circuit:
    """A request failed: by the backend's fault, not by what was sent to it.

    A failure of a request that was sent before the circuit opened changes nothing of its rest.
    """
    if circuit.opened is not None and not circuit.probing:
        return circuit
    failures = circuit.failures + 1
    if circuit.probing or failures >= rules.failures:
        return Circuit(failures, opened=now)
    return Circuit(failures)


def note_success(_: Circuit) -> Circuit:
    """A request was answered, be it by a refusal of what was sent."""
    return CLOSED


def note_nothing(circuit: Circuit) -> Circuit:
    """A request ended without a word about the backend: its client left. The next one may probe."""
    return replace(circuit, probing=False) if circuit.probing else circuit
