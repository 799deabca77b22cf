"""What a turn costs, and how its calls end."""

from __future__ import annotations

from gateway.meters.families import NONE, Registry

_FIRST_TOKEN = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)


class TurnMeters(Registry):
    """Calls for turns, their views, tokens and first pieces."""

    def __init__(self) -> None:
        super().__init__()
        tier = ("backend", "policy")
        self._attempts = self._counter(
            "attempts", "Calls for turns by how they ended", *tier, "state", "fault"
        )
        self._retries = self._counter(
            "retries", "Further attempts by what ended the one before", "backend", "fault", "step"
        )
        self._finishes = self._counter(
            "finishes", "Whole replies by finish_reason", *tier, "finish_reason"
        )
        self._views = self._counter("views", "Views shown by kind", *tier, "view")
        self._prompt_tokens = self._counter(
            "prompt_tokens", "Tokens in, as the backend counts them", "backend", "purpose"
        )
        self._completion_tokens = self._counter(
            "completion_tokens", "Tokens out, as the backend counts them", "backend", "purpose"
        )
        self._cached_tokens = self._counter(
            "cached_tokens", "Tokens in that the backend did not read anew", "backend", "purpose"
        )
        self._first_token = self._histogram(
            "first_token_seconds", "From the call to its first piece", _FIRST_TOKEN, "backend"
        )
        self._half_reads = self._counter(
            "half_reads", "Prompts that a backend read in part, unasked", "backend"
        )

    def view_shown(self, backend: str, policy: str, view: str) -> None:
        """A view was settled for an attempt."""
        self._views(backend, policy, view).inc()

    def attempt_ended(
        self, backend: str, policy: str, state: str, fault: str | None, finish: str | None
    ) -> None:
        """A call for a turn ended: done, partial, failed or cancelled, by which kind of fault."""
        self._attempts(backend, policy, state, fault or NONE).inc()
        if finish is not None:
            self._finishes(backend, policy, finish).inc()

    def retried(self, backend: str, fault: str, step: str) -> None:
        """A fault of this backend is followed by another attempt: again, smaller or elsewhere."""
        self._retries(backend, fault, step).inc()

    def tokens_used(
        self, backend: str, purpose: str, prompt: int | None, cached: int | None, out: int | None
    ) -> None:
        """What a call cost by the backend's own figures; None where it does not tell."""
        if prompt:
            self._prompt_tokens(backend, purpose).inc(prompt)
        if cached:
            self._cached_tokens(backend, purpose).inc(cached)
        if out:
            self._completion_tokens(backend, purpose).inc(out)

    def first_token_came(self, backend: str, seconds: float) -> None:
        """The first piece of a reply, seconds after the call left the queue."""
        self._first_token(backend).observe(seconds)

    def prompt_half_read(self, backend: str) -> None:
        """A backend read far fewer tokens than it was sent."""
        self._half_reads(backend).inc()
