"""What is counted, for Prometheus to collect at /metrics.

One object, made by `app.create_app` and carried by the context; every part reports to it by a
method that says what happened. Values of labels come from sets that policies.yaml and the program
bound (backends, policies, reasons), never from what a person wrote, and nothing here is content.
A report costs half a microsecond: a turn makes about a dozen.
"""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client.exposition import choose_encoder

from gateway.meters.memory import MemoryMeters
from gateway.meters.prefixes import PrefixMeters
from gateway.meters.queues import QueueMeters
from gateway.meters.surface import SurfaceMeters
from gateway.meters.turns import TurnMeters


class Meters(MemoryMeters, QueueMeters, PrefixMeters, TurnMeters, SurfaceMeters):
    """Counters, gauges and histograms over a registry of their own; each room says beside a metric
    what is reported to it. Collected in the order of the rooms, the last one first."""

    def expect(self, backends: Iterable[str], tiers: Iterable[tuple[str, str]]) -> None:
        """Begin at zero what alerts look at: an increase from nothing to one is none to Prometheus.

        tiers: (backend, policy).
        """
        for backend in backends:
            self._circuit_opened(backend)
            self._queue_refused(backend)
            self._half_reads(backend)
            for kind in ("chapter", "gist"):
                self._asked(backend, kind)
                self._accepted(backend, kind)
                self._rejected(backend, kind, "refusal")
            self._reuse_expected(backend)
            self._reuse_actual(backend)
        for backend, policy in tiers:
            self._cuts(backend, policy)
            for reason in ("stop", "length"):
                self._finishes(backend, policy, reason)
        for kind in ("chapter", "gist"):
            self._parked(kind)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Everything as Prometheus or OpenMetrics reads it, with its content type; `accept` is
        the header of whoever collects."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type
