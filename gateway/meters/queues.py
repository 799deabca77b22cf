"""Who waits for a backend, and which backends are left alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gateway.meters.families import WAIT, Registry

CIRCUIT_STATES = ("closed", "half-open", "open")


def _is_in(state: Callable[[], str], each: str) -> float:
    return float(state() == each)


class QueueMeters(Registry):
    """Slots, the lines before them, circuits, and the turns that run."""

    def __init__(self) -> None:
        super().__init__()
        self._queue_length = self._gauge("queue_length", "Calls that wait for a slot", "backend")
        self._slots = self._gauge("slots_in_use", "Calls in flight", "backend")
        self._queue_wait = self._histogram(
            "queue_wait_seconds", "Time a call waited for a slot", WAIT, "backend", "purpose"
        )
        self._queue_refused = self._counter(
            "queue_refused", "Calls that found the queue full", "backend"
        )
        self._circuit = self._gauge(
            "circuit_state", "1 for the state a circuit is in", "backend", "state"
        )
        self._circuit_opened = self._counter("circuit_opened", "Circuits that opened", "backend")
        self._busy = self._gauge("turns_running", "Turns that run now", "backend")

    def watch_queue(
        self, backend: str, waiting: Callable[[], int], in_use: Callable[[], int]
    ) -> None:
        """Ask these two for the queue's length and the slots in use whenever somebody collects."""
        self._queue_length(backend).set_function(waiting)
        self._slots(backend).set_function(in_use)

    def queue_left(self, backend: str, purpose: str, seconds: float) -> None:
        """A call got its slot after waiting so long."""
        self._queue_wait(backend, purpose).observe(seconds)

    def queue_refused(self, backend: str) -> None:
        """A call found the queue full."""
        self._queue_refused(backend).inc()

    def watch_circuit(self, backend: str, state: Callable[[], str]) -> None:
        """Ask this for the circuit's state whenever somebody collects: it changes with time."""
        for each in CIRCUIT_STATES:
            self._circuit(backend, each).set_function(partial(_is_in, state, each))

    def circuit_opened(self, backend: str) -> None:
        """A backend failed too often in a row and is left alone for a while."""
        self._circuit_opened(backend).inc()

    def watch_turns(self, backend: str, running: Callable[[], int]) -> None:
        """Ask this for the turns that run whenever somebody collects."""
        self._busy(backend).set_function(running)
