"""Spans: who hangs under whom, what is told, and that nothing is while it is off."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from gateway.errors import ConfigurationError
from gateway.traces import OpenTelemetryTraces, Traces, build_traces
from gateway.trail import Trail, following


def test_spans_hang_under_the_work_at_hand() -> None:
    exporter = InMemorySpanExporter()
    traces = OpenTelemetryTraces(exporter, at_once=True)
    with following(Trail(request="req_1")) as here:
        here.span = request = traces.begin("request", request="req_1")
        attempt = traces.begin("attempt", backend="local", slot=None, tokens=12)
        attempt.fail("timeout")
        attempt.end()
        request.tell(status=200)
        request.end()
    inner, outer = exporter.get_finished_spans()
    assert (inner.name, outer.name) == ("attempt", "request")
    assert inner.parent is not None and outer.context is not None
    assert inner.parent.span_id == outer.context.span_id
    assert dict(inner.attributes or {}) == {"foldgate.backend": "local", "foldgate.tokens": 12}
    assert (inner.status.status_code, inner.status.description) == (StatusCode.ERROR, "timeout")
    assert dict(outer.attributes or {}) == {"foldgate.request": "req_1", "foldgate.status": 200}
    assert outer.parent is None
    assert outer.resource.attributes["service.name"] == "foldgate"


def test_a_request_goes_on_with_its_clients_trace() -> None:
    exporter = InMemorySpanExporter()
    traces = OpenTelemetryTraces(exporter, at_once=True)
    number = "0af7651916cd43dd8448eb211c80319c"
    traces.begin("request", {"traceparent": f"00-{number}-b7ad6b7169203331-01"}).end()
    traces.begin("request", {"traceparent": "nonsense"}).end()
    with_parent, without = exporter.get_finished_spans()
    assert with_parent.context is not None and without.parent is None
    assert f"{with_parent.context.trace_id:032x}" == number


def test_while_it_is_off_nothing_is_recorded_nor_imported() -> None:
    code = (
        "import sys; from gateway.traces import build_traces;"
        "span = build_traces('off').begin('request', {}, a=1);"
        "span.tell(b=2); span.fail('timeout'); span.end();"
        "print([m for m in sys.modules if m.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert done.stdout == "[]\n"
    assert type(build_traces("off")) is Traces


def test_otlp_is_built_only_when_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    traces = build_traces("otlp")
    assert isinstance(traces, OpenTelemetryTraces)
    traces.close()


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigurationError, match=r"foldgate\[otel\]"):
        build_traces("otlp")
