"""Metrics and their series, over a registry of the program's own."""

from __future__ import annotations

from typing import Generic, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)

NONE = "none"
"""The value of a label where there is nothing to say: an empty one would be no label at all."""

OTHER = "other"
MOST_SERIES = 1_000
"""Series a metric may have; what would be one more is counted under `other`."""

WAIT = (0.005, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Seconds, between what takes no time and what tries a person's patience."""

M = TypeVar("M", Counter, Gauge, Histogram)


class Family(Generic[M]):
    """A metric's series by the values of their labels, kept: a look-up of the library's own costs
    three times as much as the count."""

    __slots__ = ("_known", "_metric")

    def __init__(self, metric: M) -> None:
        self._metric: M = metric
        self._known: dict[tuple[str, ...], M] = {}

    def __call__(self, *values: str) -> M:
        series = self._known.get(values)
        if series is None:
            if len(self._known) >= MOST_SERIES:
                values = (OTHER,) * len(values)
                series = self._known.get(values)
            series = series or self._known.setdefault(values, self._metric.labels(*values))
        return series

    def series(self) -> list[M]:
        return list(self._known.values())


class Registry:
    """A registry, and how metrics are put into it."""

    def __init__(self) -> None:
        # When a series began is a second one beside each, and nobody reads it.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Family[Counter]:
        return Family(Counter(f"foldgate_{name}", text, labels, registry=self.registry))

    def _gauge(self, name: str, text: str, *labels: str) -> Family[Gauge]:
        return Family(Gauge(f"foldgate_{name}", text, labels, registry=self.registry))

    def _histogram(
        self, name: str, text: str, buckets: tuple[float, ...], *labels: str
    ) -> Family[Histogram]:
        made = Histogram(f"foldgate_{name}", text, labels, registry=self.registry, buckets=buckets)
        return Family(made)
