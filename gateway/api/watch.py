"""Every request from its first byte to its last: numbered in the log, counted, and traced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Message, Scope, Send

from gateway.meters import Meters
from gateway.traces import Span, Traces
from gateway.trail import Trail, following

CLIENT_LEFT = "client_left"
UNANSWERED = 499
"""As nginx has it: the client left before it was answered."""

_SURFACES = (
    ("/v1/chat/completions", "chat"),
    ("/v1", "v1"),
    ("/api", "api"),
    ("/admin", "admin"),
    ("/metrics", "metrics"),
    ("/healthz", "health"),
    ("/readyz", "health"),
)

Headers = list[tuple[bytes, bytes]]


def note_code(scope: Scope, code: str | None) -> None:
    """Say which error ended a request: its status may have left as a 200 long before."""
    scope.setdefault("state", {})["error_code"] = code


class Exit:
    """send, with the headers that every response has. status: of the response, None before it."""

    __slots__ = ("_added", "_send", "status")

    def __init__(self, send: Send, added: Headers) -> None:
        self._send = send
        self._added = added
        self.status: int | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), *self._added]
        await self._send(message)


class Watch:
    """Looks on while requests are served. Only chat requests are traced: probes are noise."""

    def __init__(self, meters: Meters, traces: Traces) -> None:
        self._meters = meters
        self._traces = traces

    @contextmanager
    def over(self, scope: Scope, exit: Exit) -> Iterator[None]:
        """Do what is inside for this request; told when it ends, however it does."""
        state = scope["state"]
        surface = surface_of(scope["path"])
        with following(Trail(request=state["request_id"])) as here:
            here.span = self._begin(scope) if surface == "chat" else None
            try:
                yield
            finally:
                status, code = exit.status, state.get("error_code")
                if status is None:
                    status, code = UNANSWERED, code or CLIENT_LEFT
                self._meters.request_ended(surface, status, code)
                if here.span is not None:
                    _end(here.span, here, status, code)

    def _begin(self, scope: Scope) -> Span:
        headers = {
            name.decode(): value.decode("latin-1")
            for name, value in scope["headers"]
            if name in (b"traceparent", b"tracestate")
        }
        return self._traces.begin("request", headers)


def _end(span: Span, here: Trail, status: int, code: str | None) -> None:
    span.tell(**here.ids(), status=status, code=code)
    if code is not None:
        span.fail(code)
    span.end()


def surface_of(path: str) -> str:
    """Which part of the surface a path belongs to, one of a handful of names."""
    for prefix, name in _SURFACES:
        if path == prefix or path.startswith(prefix + "/"):
            return name
    return "other"
