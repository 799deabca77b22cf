"""A round of asking summarizers: what is asked of whom, and what comes of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from gateway.backends.base import Backend
from gateway.flows.assignments import Assignment
from policies.ledger.values import NOTHING, Entries
from policies.masking.kinds import Kind
from policies.retries import Cause
from policies.schema.policy import Summaries

Offload = Callable[..., Awaitable[Any]]
"""Runs a function that costs milliseconds away from the event loop."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An accepted text, who wrote it, how long the calls of its round took in all, and what is told
    beside it. moved: sentences that a gist had no room for."""

    text: str
    backend: str
    took_ms: int
    entries: Entries = NOTHING
    moved: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a summarizer gave nothing. kind is a machine word, said is for people."""

    backend: str
    kind: str
    said: str
    cause: Cause
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class Rejected:
    """An output that the judge refused, storable: no lone surrogate, no NUL."""

    backend: str
    reasons: tuple[str, ...]
    text: str
    finish_reason: str | None


@dataclass(slots=True)
class Counts:
    """What the background work did since the program started.

    asked: calls; accepted: texts stored; rejected by main reason and faults by kind; chapters and
    majors: stored texts of models; stand_ins: prepared ahead, chapters and gists; parked: jobs.
    """

    asked: int = 0
    accepted: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    chapters: int = 0
    majors: int = 0
    stand_ins: int = 0
    parked: int = 0


@dataclass(frozen=True, slots=True)
class Round:
    """One round: which work of which conversation, by whom, under which name and number (seeds are
    drawn from both).

    ratios: characters per token as learned in this conversation, by backend. gate: entered for
    each call, waits for a quiet moment of the backend. report: stores a rejected output. mask:
    what summarizers off this machine are shown placeholders for. calls: the seconds that each call
    took.
    """

    work: Assignment
    order: Sequence[Backend]
    rules: Summaries
    key: str
    attempt: int
    ratios: Mapping[str, float]
    gate: Callable[[str], AbstractAsyncContextManager[None]]
    report: Callable[[Rejected], Awaitable[None]]
    conversation: str | None = None
    mask: tuple[Kind, ...] = ()
    calls: list[float] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """What is written, as the jobs and the meters name it."""
        return "gist" if self.work.purpose == "gist" else "chapter"
