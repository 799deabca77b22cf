"""Traces for OpenTelemetry, as an extra and off unless it is asked for.

A request, each of its attempts and each round of a summary is a span. Their attributes are ids,
names, counts and kinds: never content. Nothing of OpenTelemetry is imported while it is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from gateway.errors import ConfigurationError
from gateway.trail import trail

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter

Export = Literal["off", "otlp"]
Fact = str | int | float | bool | None


class Span:
    """A span that nobody records."""

    __slots__ = ()

    def tell(self, **facts: Fact) -> None:
        """Attributes by name, under `foldgate.`; None says nothing."""

    def fail(self, kind: str) -> None:
        """Mark the span as failed, by a kind of fault."""

    def end(self) -> None:
        """The span is over."""


_NOTHING = Span()


class Traces:
    """Tracing that is off: begins spans that nobody records."""

    def begin(self, name: str, headers: Mapping[str, str] | None = None, **facts: Fact) -> Span:
        """A span under the one that the work at hand hangs under, or under the client's own where
        `headers` carry its traceparent."""
        return _NOTHING

    def close(self) -> None:
        """Send what waits. Blocks: not for the event loop."""


class OpenTelemetryTraces(Traces):
    """Spans to an exporter, in batches from a thread of its own (at once: as they end)."""

    def __init__(self, exporter: SpanExporter, *, at_once: bool = False) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

        resource = Resource.create({"service.name": "foldgate"})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        processor = SimpleSpanProcessor(exporter) if at_once else BatchSpanProcessor(exporter)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("foldgate")

    def begin(self, name: str, headers: Mapping[str, str] | None = None, **facts: Fact) -> Span:
        here = trail()
        span = self._tracer.start_span(name, context=_context(here and here.span, headers))
        begun = _Recorded(span)
        begun.tell(**facts)
        return begun

    def close(self) -> None:
        self._provider.shutdown()


def _context(above: Any, headers: Mapping[str, str] | None) -> Any:
    from opentelemetry.context import Context
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    if isinstance(above, _Recorded):
        return set_span_in_context(above.span, Context())
    if headers is not None:
        return TraceContextTextMapPropagator().extract(headers, Context())
    return Context()


class _Recorded(Span):
    __slots__ = ("span",)

    def __init__(self, span: Any) -> None:
        self.span = span

    def tell(self, **facts: Fact) -> None:
        for name, value in facts.items():
            if value is not None:
                self.span.set_attribute(f"foldgate.{name}", value)

    def fail(self, kind: str) -> None:
        from opentelemetry.trace import Status, StatusCode

        self.span.set_status(Status(StatusCode.ERROR, kind))

    def end(self) -> None:
        self.span.end()


def build_traces(export: Export) -> Traces:
    """Tracing as the settings want it: off, or over OTLP to where OpenTelemetry's own variables
    (OTEL_EXPORTER_OTLP_ENDPOINT and its like) say.

    Raises ConfigurationError where the extra is not installed.
    """
    if export == "off":
        return Traces()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise ConfigurationError(
            "FOLDGATE_TRACES=otlp needs OpenTelemetry: pip install 'foldgate[otel]'"
        ) from error
    return OpenTelemetryTraces(OTLPSpanExporter())
