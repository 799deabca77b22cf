"""What is told of a request when it ends, however it ends."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.api.watch import Exit, Watch, note_code, surface_of
from gateway.meters import Meters
from gateway.traces import OpenTelemetryTraces, Traces
from gateway.trail import learn_conversation, trail
from tests.gateway.test_meters import read


async def nowhere(message: Any) -> None: ...


def scope_of(path: str, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"path": path, "headers": list(headers), "state": {"request_id": "req_1"}}


START = {"type": "http.response.start", "status": 200}
CHAT = "/v1/chat/completions"


async def test_an_answered_request_is_counted_by_its_status() -> None:
    meters, scope = Meters(), scope_of(CHAT)
    exit = Exit(nowhere, [])
    with Watch(meters, Traces()).over(scope, exit):
        here = trail()
        assert here is not None and here.request == "req_1"
        await exit(dict(START))
    assert read(meters, "foldgate_requests_total") == {"chat/200/none": 1}
    assert trail() is None


async def test_a_stream_that_failed_has_its_code_beside_its_200() -> None:
    meters, scope = Meters(), scope_of(CHAT)
    exit = Exit(nowhere, [])
    with Watch(meters, Traces()).over(scope, exit):
        await exit(dict(START))
        note_code(scope, "upstream_timeout")
    assert read(meters, "foldgate_requests_total") == {"chat/200/upstream_timeout": 1}


async def test_a_client_that_left_before_an_answer_is_a_499() -> None:
    meters = Meters()
    with (
        pytest.raises(asyncio.CancelledError),
        Watch(meters, Traces()).over(scope_of("/api/x"), Exit(nowhere, [])),
    ):
        raise asyncio.CancelledError
    assert read(meters, "foldgate_requests_total") == {"api/499/client_left": 1}


async def test_a_chat_request_is_a_span_of_its_own_and_a_probe_is_none() -> None:
    exporter = InMemorySpanExporter()
    watch = Watch(Meters(), OpenTelemetryTraces(exporter, at_once=True))
    number = b"0af7651916cd43dd8448eb211c80319c"
    parent = (b"traceparent", b"00-" + number + b"-b7ad6b7169203331-01")
    for path in (CHAT, "/healthz"):
        scope, exit = scope_of(path, parent), Exit(nowhere, [])
        with watch.over(scope, exit):
            learn_conversation("conv_1")
            await exit(dict(START))
            note_code(scope, "content_filter")
    (span,) = exporter.get_finished_spans()
    assert dict(span.attributes or {}) == {
        "foldgate.request": "req_1",
        "foldgate.conversation": "conv_1",
        "foldgate.status": 200,
        "foldgate.code": "content_filter",
    }
    assert span.context is not None
    assert f"{span.context.trace_id:032x}" == number.decode()
    assert span.status.description == "content_filter"


@pytest.mark.parametrize(
    ("path", "surface"),
    [
        (CHAT, "chat"),
        ("/v1/models", "v1"),
        ("/api/conversations/비밀", "api"),
        ("/apiary", "other"),
        ("/metrics", "metrics"),
        ("/readyz", "health"),
        ("/", "other"),
    ],
)
def test_paths_are_counted_under_few_names(path: str, surface: str) -> None:
    assert surface_of(path) == surface
