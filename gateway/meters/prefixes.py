"""How much of a prompt its backend has read before."""

from __future__ import annotations

from typing import Literal

from gateway.meters.families import Registry

Prefilled = Literal["done", "dropped", "failed"]


class PrefixMeters(Registry):
    """Reuse of what was read, what moved it, and what was read in ahead."""

    def __init__(self) -> None:
        super().__init__()
        self._reuse_prompt = self._counter(
            "reuse_prompt_chars", "Prompts whose reuse the backend told", "backend"
        )
        self._reuse_expected = self._counter(
            "reuse_expected_chars", "Of these, what the prompt before covers", "backend"
        )
        self._reuse_actual = self._counter(
            "reuse_actual_chars", "Of these, what the backend did not read anew", "backend"
        )
        self._moves = self._counter(
            "prefix_moves", "Prompts that are not the one before and more", "backend", "cause"
        )
        self._prefills = self._counter(
            "prefills", "Folded prompts read in ahead of a turn", "backend", "outcome"
        )

    def prompt_reused(self, backend: str, prompt: int, expected: int, actual: float | None) -> None:
        """A prompt of so many characters: how many the one before covers, and how many the backend
        says it had (None where it does not tell: nothing is counted)."""
        if actual is not None:
            self._reuse_prompt(backend).inc(prompt)
            self._reuse_expected(backend).inc(expected)
            self._reuse_actual(backend).inc(actual)

    def prefix_moved(self, backend: str, cause: str) -> None:
        """A prompt was not the one before and more; cause as in the prefix report."""
        self._moves(backend, cause).inc()

    def prefill_ended(self, backend: str, outcome: Prefilled) -> None:
        """A folded prompt was read in ahead, or was not."""
        self._prefills(backend, outcome).inc()
