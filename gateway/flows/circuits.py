"""The circuits of the backends: who may be asked now, and what each call taught.

The state machine is policies/circuits.py; here is its memory, one process wide. It is fed by the
calls of turns and read by whoever chooses a backend.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from gateway.backends.faults import FaultKind, UpstreamFault
from policies import circuits
from policies.circuits import CLOSED, Circuit, State
from policies.schema import Circuit as Rules

log = logging.getLogger("foldgate.circuits")

_OF_THE_REQUEST = frozenset({FaultKind.REFUSED, FaultKind.OVERFLOW, FaultKind.BAD_REQUEST})
"""Faults by which a backend says that it lives: what was sent is at fault."""


class Circuits:
    """One circuit a backend. rules: by name. clock: monotonic seconds. opened: told of each
    circuit that opens."""

    def __init__(
        self,
        rules: Mapping[str, Rules],
        clock: Callable[[], float],
        opened: Callable[[str], None] = lambda backend: None,
    ) -> None:
        self._rules = rules
        self._opened = opened
        self._clock = clock
        self._circuits: dict[str, Circuit] = {}
        self._last: dict[str, FaultKind] = {}

    def state(self, backend: str) -> State:
        """closed, open or half-open, now."""
        return circuits.state_of(self._of(backend), self._rules_of(backend), self._clock())

    def rest_left(self, backend: str) -> float:
        """Seconds until an open circuit lets a request through; 0 where it is not open."""
        return circuits.rest_left(self._of(backend), self._rules_of(backend), self._clock())

    def is_passable(self, backend: str) -> bool:
        """Whether a request may go there now: the circuit is closed, or half open with nobody
        trying it. What is not passable is not chosen."""
        return circuits.is_passable(self._of(backend), self._rules_of(backend), self._clock())

    def states(self) -> dict[str, State]:
        """Of every backend that has rules."""
        return {name: self.state(name) for name in self._rules}

    @contextmanager
    def call(self, backend: str) -> Iterator[Passage]:
        """One call of a backend: what ends the block is what the circuit learns.

        Raises UpstreamFault of the kind RESTING where the circuit lets nobody through.
        """
        found = circuits.enter(self._of(backend), self._rules_of(backend), self._clock())
        if found is None:
            raise self._resting(backend)
        self._circuits[backend] = found
        try:
            yield Passage(self, backend, is_probe=found.probing)
        except UpstreamFault as fault:
            self._learn(backend, fault, is_probe=found.probing)
            raise
        except BaseException:  # the client left, or a fault of our own: no word about the backend
            self._learn_nothing(backend, is_probe=found.probing)
            raise
        self._put(backend, circuits.note_success(self._of(backend)))

    def note_beginning(self, backend: str) -> None:
        """An answer began."""
        self._put(backend, circuits.note_beginning(self._of(backend), self._rules_of(backend)))

    def _learn(self, backend: str, fault: UpstreamFault, *, is_probe: bool) -> None:
        circuit = self._of(backend)
        if fault.is_ours:
            self._learn_nothing(backend, is_probe=is_probe)
        elif fault.kind in _OF_THE_REQUEST:
            self._put(backend, circuits.note_success(circuit))
        elif is_probe or not circuit.probing:
            rules = self._rules_of(backend)
            self._last[backend] = fault.kind
            self._put(backend, circuits.note_failure(circuit, rules, self._clock()))

    def _learn_nothing(self, backend: str, *, is_probe: bool) -> None:
        """A call that began before the circuit opened does not free the place of the probe."""
        if is_probe:
            self._put(backend, circuits.note_nothing(self._of(backend)))

    def _put(self, backend: str, circuit: Circuit) -> None:
        before = self._of(backend)
        self._circuits[backend] = circuit
        if circuit.opened is not None and circuit.opened != before.opened:
            rest = self._rules_of(backend).rest
            told = backend, circuit.failures, rest
            log.warning("backend %s failed %d times in a row: left alone for %g s", *told)
            self._opened(backend)
        elif circuit.opened is None and before.opened is not None:
            log.info("backend %s answers again", backend)

    def _resting(self, backend: str) -> UpstreamFault:
        wait = max(1.0, self.rest_left(backend))  # another's probe may be under way
        failures, last = self._of(backend).failures, self._last[backend]
        times = "once" if failures == 1 else f"{failures} times in a row"
        what = (
            f"The backend {backend} failed {times} (the last time: {last}) "
            f"and is left alone for {math.ceil(wait)} s more"
        )
        return UpstreamFault(FaultKind.RESTING, what, retry_after=wait, is_ours=True)

    def _of(self, backend: str) -> Circuit:
        return self._circuits.get(backend, CLOSED)

    def _rules_of(self, backend: str) -> Rules:
        return self._rules.get(backend) or Rules()


@dataclass(frozen=True, slots=True)
class Passage:
    """A call that the circuit let through. is_probe: what comes of it closes or opens the circuit,
    so whoever makes it says when the answer begins."""

    circuits: Circuits
    backend: str
    is_probe: bool

    def note_beginning(self) -> None:
        self.circuits.note_beginning(self.backend)
