"""What becomes of memory: texts, folds, notes, and the work that makes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from prometheus_client import Gauge

from gateway.meters.families import WAIT, Registry

Migrated = Literal["waiting", "early", "done"]

_RECALL = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_WRITING = (1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
_CHARS = (4_000.0, 8_000.0, 16_000.0, 24_000.0, 32_000.0, 64_000.0, 128_000.0)


class MemoryMeters(Registry):
    """Summaries, ledger, folds, recall, migrations and the jobs behind them."""

    def __init__(self) -> None:
        super().__init__()
        who = ("backend", "kind")
        self._asked = self._counter("summaries_asked", "Calls for a summary", *who)
        self._accepted = self._counter("summaries_accepted", "Outputs that passed the judge", *who)
        self._rejected = self._counter(
            "summaries_rejected", "Outputs judged out by their main reason", *who, "reason"
        )
        self._failed = self._counter(
            "summaries_failed", "Calls for a summary that failed", *who, "fault"
        )
        self._entries = self._counter(
            "ledger_entries",
            "What accepted chapters told beside their prose, borne out by their span or not",
            "backend",
            "entry",
            "outcome",
        )
        self._personal = self._counter(
            "profile_facts_refused",
            "Facts that the profile did not learn, by the kind of value that they held",
            "kind",
        )
        self._written = self._histogram(
            "chapter_seconds", "From a job's claim to its stored text", _WRITING, "kind"
        )
        self._stand_ins = self._counter("stand_ins", "Texts made without a model", "kind", "made")
        self._folds = self._counter("folds", "Folds, cuts and migrations", "policy", "kind")
        self._cuts = self._counter("hard_cuts", "Folds made on the spot", "backend", "policy")
        self._span = self._histogram(
            "fold_span_chars", "Characters that a fold took out", _CHARS, "policy"
        )
        self._migrations = self._counter(
            "migrations", "Turns of conversations on the move, by backend to be", "backend", "event"
        )
        self._notes = self._counter(
            "notes", "Messages beside which something was recalled", "policy", "kind"
        )
        self._notes_chars = self._counter("notes_chars", "Characters of notes", "policy", "kind")
        self._recall = self._histogram(
            "recall_seconds", "Searching the past for a message", _RECALL, "policy"
        )
        self._recall_failed = self._counter(
            "recall_failed", "Turns that went on without a step of recall", "policy", "step"
        )
        self._lookups = self._counter(
            "lookups", "Questions to other sources by how they ended", "lookup", "outcome"
        )
        self._lookup_time = self._histogram(
            "lookup_seconds", "From a question to its answer", WAIT, "lookup"
        )
        self._parked = self._counter("jobs_parked", "Background work given up", "kind")
        self._jobs = self._gauge("jobs", "Background work in the database", "kind", "state")
        self._overdue = Gauge(
            "foldgate_jobs_overdue_seconds",
            "How long the oldest due work has waited",
            registry=self.registry,
        )

    def summary_asked(self, backend: str, kind: str) -> None:
        """A call for a text of memory; it will be accepted, rejected or failed. kind: chapter or
        gist."""
        self._asked(backend, kind).inc()

    def summary_accepted(self, backend: str, kind: str) -> None:
        self._accepted(backend, kind).inc()

    def summary_rejected(self, backend: str, kind: str, reason: str) -> None:
        self._rejected(backend, kind, reason).inc()

    def summary_failed(self, backend: str, kind: str, fault: str) -> None:
        self._failed(backend, kind, fault).inc()

    def entries_told(self, backend: str, entry: str, kept: int, dropped: int) -> None:
        """Entries of an accepted chapter, of one kind: the span bears them out or does not."""
        self._entries(backend, entry, "kept").inc(kept)
        self._entries(backend, entry, "dropped").inc(dropped)

    def fact_refused(self, kind: str) -> None:
        """A fact of an accepted chapter was not learned: it held a mail address, a number."""
        self._personal(kind).inc()

    def chapter_stored(self, kind: str, seconds: float) -> None:
        """A chapter or gist of a model was stored, so long after its job was claimed."""
        self._written(kind).observe(seconds)

    def stand_ins_made(self, kind: str, made: Literal["ahead", "spot"], count: int = 1) -> None:
        """Texts without a model: prepared in the background, or on the spot inside a turn."""
        self._stand_ins(kind, made).inc(count)

    def folded(self, backend: str, policy: str, kind: str, span: int) -> None:
        """A fold was committed and took `span` characters out of the view (0: memory only)."""
        self._folds(policy, kind).inc()
        if kind == "cut":
            self._cuts(backend, policy).inc()
        if span > 0:
            self._span(policy).observe(span)

    def noted(self, policy: str, kind: str, chars: int) -> None:
        """Something was recalled beside a message and stored: lines shown in it, or calls of a
        model's own searches behind it."""
        self._notes(policy, kind).inc()
        self._notes_chars(policy, kind).inc(chars)

    def recalled(self, policy: str, seconds: float) -> None:
        """The past was searched for a message, whether or not something was found."""
        self._recall(policy).observe(seconds)

    def recall_failed(self, policy: str, step: Literal["index", "search"]) -> None:
        """What a fold took out could not be indexed with it, or the past could not be searched."""
        self._recall_failed(policy, step).inc()

    def lookup_ended(self, lookup: str, outcome: str, seconds: float) -> None:
        """A source answered (done) or failed; outcome: done, or a kind of failure."""
        self._lookups(lookup, outcome).inc()
        self._lookup_time(lookup).observe(seconds)

    def migrated(self, backend: str, event: Migrated) -> None:
        """A turn of a conversation that is to move to this backend: it stayed where it was because
        chapters are missing (waiting), had to go all the same (early), or went with all of them
        (done)."""
        self._migrations(backend, event).inc()

    def job_parked(self, kind: str) -> None:
        """A piece of background work was given up and waits for a person; its row says why."""
        self._parked(kind).inc()

    def count_jobs(self, counts: Iterable[tuple[str, str, int]], overdue_seconds: float) -> None:
        """The queue as the database holds it: (kind, state, rows)."""
        for series in self._jobs.series():
            series.set(0)
        for kind, state, rows in counts:
            self._jobs(kind, state).set(rows)
        self._overdue.set(overdue_seconds)
