"""What is answered at the surface."""

from __future__ import annotations

from gateway.meters.families import NONE, Registry


class SurfaceMeters(Registry):
    """Requests, turns or not, by how they were answered."""

    def __init__(self) -> None:
        super().__init__()
        self._requests = self._counter(
            "requests", "HTTP requests by how they were answered", "surface", "status", "code"
        )
        self._auxiliary = self._counter(
            "auxiliary_requests", "Requests that are no turns", "backend", "kind", "state"
        )
        self._dropped = self._counter(
            "dropped_params", "Requests of which a parameter could not travel", "backend"
        )

    def request_ended(self, surface: str, status: int, code: str | None) -> None:
        """A request was answered. code: of the error the client was told, also in a stream."""
        self._requests(surface, str(status), code or NONE).inc()

    def auxiliary_ended(self, backend: str, kind: str, state: str) -> None:
        """A title, tags, a client's own summary: answered or not."""
        self._auxiliary(backend, kind, state).inc()

    def params_dropped(self, backend: str) -> None:
        """A parameter of a request could not travel to this backend."""
        self._dropped(backend).inc()
