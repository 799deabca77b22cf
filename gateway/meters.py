"""What is counted, for Prometheus to collect at /metrics.

One object, made by `app.create_app` and carried by the context; every part reports to it by a
method that says what happened. Values of labels come from sets that policies.yaml and the program
bound (backends, policies, reasons), never from what a person wrote, and nothing here is content.
A report costs half a microsecond: a turn makes about a dozen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Generic, Literal, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import choose_encoder

Prefilled = Literal["done", "dropped", "failed"]
Migrated = Literal["waiting", "early", "done"]

NONE = "none"
"""The value of a label where there is nothing to say: an empty one would be no label at all."""

OTHER = "other"
MOST_SERIES = 1_000
"""Series a metric may have; what would be one more is counted under `other`."""

CIRCUIT_STATES = ("closed", "half-open", "open")
_FIRST_TOKEN = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
_WAIT = (0.005, 0.05, 0.25, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
_RECALL = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
_WRITING = (1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
_CHARS = (4_000.0, 8_000.0, 16_000.0, 24_000.0, 32_000.0, 64_000.0, 128_000.0)


def _is_in(state: Callable[[], str], each: str) -> float:
    return float(state() == each)


M = TypeVar("M", Counter, Gauge, Histogram)


class _Family(Generic[M]):
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


class Meters:
    """Counters, gauges and histograms over a registry of their own."""

    def __init__(self) -> None:
        # When a series began is a second one beside each, and nobody reads it.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry(auto_describe=True)
        ProcessCollector(registry=self.registry)
        self._make_surface()
        self._make_turns()
        self._make_reuse()
        self._make_queues()
        self._make_memory()

    def _counter(self, name: str, text: str, *labels: str) -> _Family[Counter]:
        return _Family(Counter(f"foldgate_{name}", text, labels, registry=self.registry))

    def _gauge(self, name: str, text: str, *labels: str) -> _Family[Gauge]:
        return _Family(Gauge(f"foldgate_{name}", text, labels, registry=self.registry))

    def _histogram(
        self, name: str, text: str, buckets: tuple[float, ...], *labels: str
    ) -> _Family[Histogram]:
        made = Histogram(f"foldgate_{name}", text, labels, registry=self.registry, buckets=buckets)
        return _Family(made)

    # --- what there is -----------------------------------------------------------------------

    def _make_surface(self) -> None:
        self._requests = self._counter(
            "requests", "HTTP requests by how they were answered", "surface", "status", "code"
        )
        self._auxiliary = self._counter(
            "auxiliary_requests", "Requests that are no turns", "backend", "kind", "state"
        )
        self._dropped = self._counter(
            "dropped_params", "Requests of which a parameter could not travel", "backend"
        )

    def _make_turns(self) -> None:
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

    def _make_reuse(self) -> None:
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

    def _make_queues(self) -> None:
        self._queue_length = self._gauge("queue_length", "Calls that wait for a slot", "backend")
        self._slots = self._gauge("slots_in_use", "Calls in flight", "backend")
        self._queue_wait = self._histogram(
            "queue_wait_seconds", "Time a call waited for a slot", _WAIT, "backend", "purpose"
        )
        self._queue_refused = self._counter(
            "queue_refused", "Calls that found the queue full", "backend"
        )
        self._circuit = self._gauge(
            "circuit_state", "1 for the state a circuit is in", "backend", "state"
        )
        self._circuit_opened = self._counter("circuit_opened", "Circuits that opened", "backend")
        self._busy = self._gauge("turns_running", "Turns that run now", "backend")

    def _make_memory(self) -> None:
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
        self._lookups = self._counter(
            "lookups", "Questions to other sources by how they ended", "lookup", "outcome"
        )
        self._lookup_time = self._histogram(
            "lookup_seconds", "From a question to its answer", _WAIT, "lookup"
        )
        self._parked = self._counter("jobs_parked", "Background work given up", "kind")
        self._jobs = self._gauge("jobs", "Background work in the database", "kind", "state")
        self._overdue = Gauge(
            "foldgate_jobs_overdue_seconds",
            "How long the oldest due work has waited",
            registry=self.registry,
        )

    def expect(self, backends: Iterable[str], tiers: Iterable[tuple[str, str]]) -> None:
        """Begin at zero what alerts look at: an increase from nothing to one is none to Prometheus.

        tiers: (backend, policy).
        """
        for backend in backends:
            self._circuit_opened(backend)
            self._queue_refused(backend)
            self._half_reads(backend)
            for kind in ("chapter", "gist"):
                self._asked(backend, kind)
                self._accepted(backend, kind)
                self._rejected(backend, kind, "refusal")
            self._reuse_expected(backend)
            self._reuse_actual(backend)
        for backend, policy in tiers:
            self._cuts(backend, policy)
            for reason in ("stop", "length"):
                self._finishes(backend, policy, reason)
        for kind in ("chapter", "gist"):
            self._parked(kind)

    def render(self, accept: str = "") -> tuple[bytes, str]:
        """Everything as Prometheus or OpenMetrics reads it, with its content type; `accept` is
        the header of whoever collects."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type

    # --- the surface -------------------------------------------------------------------------

    def request_ended(self, surface: str, status: int, code: str | None) -> None:
        """A request was answered. code: of the error the client was told, also in a stream."""
        self._requests(surface, str(status), code or NONE).inc()

    def auxiliary_ended(self, backend: str, kind: str, state: str) -> None:
        """A title, tags, a client's own summary: answered or not."""
        self._auxiliary(backend, kind, state).inc()

    def params_dropped(self, backend: str) -> None:
        """A parameter of a request could not travel to this backend."""
        self._dropped(backend).inc()

    # --- turns -------------------------------------------------------------------------------

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

    # --- the prefix --------------------------------------------------------------------------

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

    # --- queues and circuits -----------------------------------------------------------------

    def watch_queue(
        self, backend: str, waiting: Callable[[], int], in_use: Callable[[], int]
    ) -> None:
        """Ask these two for the queue's length and the slots in use whenever somebody collects."""
        self._queue_length(backend).set_function(waiting)
        self._slots(backend).set_function(in_use)

    def queue_left(self, backend: str, purpose: str, seconds: float) -> None:
        """A call got its slot after waiting so long."""
        self._queue_wait(backend, purpose).observe(seconds)

    def queue_refused(self, backend: str) -> None:
        """A call found the queue full."""
        self._queue_refused(backend).inc()

    def watch_circuit(self, backend: str, state: Callable[[], str]) -> None:
        """Ask this for the circuit's state whenever somebody collects: it changes with time."""
        for each in CIRCUIT_STATES:
            self._circuit(backend, each).set_function(partial(_is_in, state, each))

    def circuit_opened(self, backend: str) -> None:
        """A backend failed too often in a row and is left alone for a while."""
        self._circuit_opened(backend).inc()

    def watch_turns(self, backend: str, running: Callable[[], int]) -> None:
        """Ask this for the turns that run whenever somebody collects."""
        self._busy(backend).set_function(running)

    # --- memory ------------------------------------------------------------------------------

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
