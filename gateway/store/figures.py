"""What the rows say about how the program has been doing: counts, sums and medians, never text.

Each function looks at what happened from `since_ms` on (milliseconds since 1970; 0: ever). These
are questions of a person: they read whole tables, in a second or so for a million rows.
"""

from __future__ import annotations

import statistics
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from gateway.wire.json_text import loads

REFUSALS = frozenset({"refusal", "refused"})
"""Reasons of the quarantine that are a refusal: the model's in words, the provider's in kind."""


@dataclass(frozen=True, slots=True)
class Written:
    """Texts of memory. took_ms and chars: of those that a model wrote, one each (took_ms only where
    it was noted)."""

    kind: str
    backend: str
    policy: str
    took_ms: tuple[int, ...]
    chars: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """A fold. span: characters that it took out of the view; 0 where only the memory was made
    anew."""

    policy: str
    kind: str
    span: int
    stand_ins: int


@dataclass(frozen=True, slots=True)
class Rejection:
    """One output that was judged out. main: its first reason."""

    kind: str
    backend: str
    main: str
    is_refusal: bool


_TURNS = text(
    """
    SELECT backend, policy,
           COUNT(*) AS attempts,
           COUNT(*) FILTER (WHERE state = 'done') AS answered,
           COUNT(*) FILTER (WHERE state = 'partial') AS broken_off,
           COUNT(*) FILTER (WHERE state = 'failed') AS failed,
           COUNT(*) FILTER (WHERE state = 'cancelled') AS cancelled,
           COUNT(*) FILTER (WHERE finish_reason = 'length') AS cut_by_length,
           COUNT(*) FILTER (WHERE view_kind = 'cut') AS shown_cut,
           COUNT(*) FILTER (WHERE view_kind = 'stand-in') AS shown_stand_in,
           COUNT(*) FILTER (WHERE rule = 'fallback') AS fallbacks,
           COALESCE(SUM(prompt_tokens), 0) AS prompt_tokens,
           COALESCE(SUM(completion_tokens), 0) AS completion_tokens,
           COALESCE(SUM(cached_tokens), 0) AS cached_tokens,
           SUM(CASE WHEN cached_tokens IS NOT NULL THEN prompt_tokens END) AS told_tokens,
           SUM(CASE WHEN expected_chars IS NOT NULL THEN prompt_chars END) AS compared_chars,
           SUM(expected_chars) AS expected_chars
    FROM attempts WHERE started_ms >= :since
    GROUP BY backend, policy ORDER BY backend, policy
    """
)

# A question fares as the best of its attempts: what failed and was answered elsewhere, or when it
# was sent again, did not fail.
_QUESTIONS = text(
    """
    SELECT COUNT(*) FILTER (WHERE best = 4) AS answered,
           COUNT(*) FILTER (WHERE best = 3) AS broken_off,
           COUNT(*) FILTER (WHERE best = 2) AS failed,
           COUNT(*) FILTER (WHERE best = 1) AS cancelled
    FROM (SELECT MAX(CASE state WHEN 'done' THEN 4 WHEN 'partial' THEN 3 WHEN 'failed' THEN 2
                     WHEN 'cancelled' THEN 1 ELSE 0 END) AS best
          FROM attempts WHERE started_ms >= :since GROUP BY asked_pk) AS asked
    """
)

# Numbers that a median is taken of, by their column.
_WAITS = {
    name: text(
        f"SELECT backend, policy, {name} FROM attempts"
        f" WHERE started_ms >= :since AND {name} IS NOT NULL ORDER BY {name}"
    )
    for name in ("first_token_ms", "queued_ms")
}

_CHAPTERS = text(
    """
    SELECT v.backend, COALESCE(j.policy, ''), v.took_ms, LENGTH(v.text)
    FROM chapter_versions v LEFT JOIN jobs j ON j.key = 'chapter:' || v.chapter_pk
    WHERE v.created_ms >= :since AND v.origin = 'model'
    """
)
_GISTS = text(
    "SELECT backend, policy, took_ms, LENGTH(text) FROM gists"
    " WHERE created_ms >= :since AND origin = 'model'"
)
_STAND_INS = text(
    """
    SELECT (SELECT COUNT(*) FROM chapter_versions WHERE created_ms >= :since
            AND origin = 'stand-in') AS chapters,
           (SELECT COUNT(*) FROM gists WHERE created_ms >= :since
            AND origin = 'stand-in') AS gists
    """
)
# All folds ever: what a fold took out is told by the one before it.
_FOLDS = text(
    "SELECT conversation_pk, policy, at_pk, kind, border_cum, stand_ins, created_ms FROM folds"
    " ORDER BY conversation_pk, policy, pk"
)
_REJECTED = text("SELECT kind, backend, reasons FROM quarantine WHERE created_ms >= :since")
_MOVES = text(
    "SELECT moved_by, COUNT(*) FROM attempts WHERE started_ms >= :since AND moved_by IS NOT NULL"
    " GROUP BY moved_by"
)
_FAULTS = text(
    "SELECT backend, error, COUNT(*) FROM attempts WHERE started_ms >= :since"
    " AND state IN ('failed', 'partial') GROUP BY backend, error ORDER BY 3 DESC, 1, 2"
)
_AUXILIARY = text(
    "SELECT kind, COUNT(*), COUNT(*) FILTER (WHERE state = 'done') FROM auxiliary_requests"
    " WHERE started_ms >= :since GROUP BY kind ORDER BY kind"
)
_JOBS = text("SELECT kind, state, COUNT(*) FROM jobs GROUP BY kind, state ORDER BY kind, state")
_PARKED = text(
    "SELECT kind, COALESCE(error_kind, ''), COUNT(*) FROM jobs WHERE state = 'parked'"
    " GROUP BY kind, error_kind ORDER BY 3 DESC, 1, 2"
)


def count_questions(connection: Connection, since_ms: int) -> dict[str, int]:
    """How many user messages were answered, broken off, failed or cancelled, each counted once,
    however many attempts it took."""
    return dict(connection.execute(_QUESTIONS, {"since": since_ms}).mappings().one())


def count_turns(connection: Connection, since_ms: int) -> list[dict[str, Any]]:
    """One row a (backend, policy): how its calls for turns ended, what they cost, and the medians
    and 95th percentiles of how long a first piece and a slot were waited for, in milliseconds."""
    rows = [dict(row) for row in connection.execute(_TURNS, {"since": since_ms}).mappings()]
    for name, statement in _WAITS.items():
        waits: dict[tuple[str, str], list[int]] = defaultdict(list)
        for backend, policy, ms in connection.execute(statement, {"since": since_ms}):
            waits[backend, policy].append(ms)
        for row in rows:
            found = waits[row["backend"], row["policy"]]
            row[f"{name}_median"] = statistics.median(found) if found else None
            row[f"{name}_p95"] = found[int(0.95 * (len(found) - 1))] if found else None
    return rows


def list_written(connection: Connection, since_ms: int) -> list[Written]:
    """Chapters and gists that models wrote, by backend and by the policy that wanted them."""
    found: list[Written] = []
    for kind, statement in (("chapter", _CHAPTERS), ("gist", _GISTS)):
        took: dict[tuple[str, str], list[int]] = defaultdict(list)
        chars: dict[tuple[str, str], list[int]] = defaultdict(list)
        for backend, policy, ms, length in connection.execute(statement, {"since": since_ms}):
            chars[backend or "", policy].append(length)
            if ms is not None:
                took[backend or "", policy].append(ms)
        found += [
            Written(kind, *key, took_ms=tuple(took[key]), chars=tuple(lengths))
            for key, lengths in sorted(chars.items())
        ]
    return found


def count_stand_ins(connection: Connection, since_ms: int) -> dict[str, int]:
    """Texts made without a model: chapters and gists."""
    return dict(connection.execute(_STAND_INS, {"since": since_ms}).mappings().one())


def list_folds(connection: Connection, since_ms: int) -> list[Folded]:
    """Every fold; of several that the same message saw under a policy the newest counts, with all
    that they took out together.

    A span reaches from the nearest border before it (of an earlier fold of the same conversation
    and policy) to its own: on a branch that may be another branch's.
    """
    found: list[Folded] = []
    borders: list[int] = []
    seen: dict[int, int] = {}
    place: tuple[int, str] | None = None
    for conversation, policy, at_pk, kind, border, stand_ins, ms in connection.execute(_FOLDS):
        if place != (conversation, policy):
            place, borders, seen = (conversation, policy), [], {}
        span = _span(borders, border)
        insort(borders, border)
        if ms < since_ms:
            continue
        if at_pk in seen:
            earlier = found[seen[at_pk]]
            found[seen[at_pk]] = Folded(policy, kind, earlier.span + span, stand_ins)
        else:
            seen[at_pk] = len(found)
            found.append(Folded(policy, kind, span, stand_ins))
    return found


def _span(borders: list[int], border: int) -> int:
    at = bisect_left(borders, border)
    if at < len(borders) and borders[at] == border:
        return 0
    return border - (borders[at - 1] if at else 0)


def list_rejections(connection: Connection, since_ms: int) -> list[Rejection]:
    """Every output in quarantine."""
    found = []
    for kind, backend, told in connection.execute(_REJECTED, {"since": since_ms}):
        reasons = loads(told) or ["unknown"]
        found.append(Rejection(kind, backend, reasons[0], not REFUSALS.isdisjoint(reasons)))
    return found


def count_moves(connection: Connection, since_ms: int) -> dict[str, int]:
    """Prompts that were not the one before and more, by cause, the most frequent first."""
    return _ranked(connection.execute(_MOVES, {"since": since_ms}))


def count_faults(connection: Connection, since_ms: int) -> list[dict[str, Any]]:
    """Calls for turns that failed or broke off, by backend and kind."""
    rows = connection.execute(_FAULTS, {"since": since_ms})
    return [{"backend": row[0], "fault": row[1] or "unknown", "count": row[2]} for row in rows]


def count_auxiliary(connection: Connection, since_ms: int) -> list[dict[str, Any]]:
    """Calls for requests that were no turns, by kind; one that failed and went elsewhere is two."""
    rows = connection.execute(_AUXILIARY, {"since": since_ms})
    return [{"kind": row[0], "count": row[1], "answered": row[2]} for row in rows]


def count_work(connection: Connection) -> dict[str, Any]:
    """The background work as it stands now, and why some of it was given up."""
    states: dict[str, dict[str, int]] = defaultdict(dict)
    for kind, state, count in connection.execute(_JOBS):
        states[kind][state] = count
    parked = [
        {"kind": row[0], "cause": row[1] or "unknown", "count": row[2]}
        for row in connection.execute(_PARKED)
    ]
    return {"states": dict(states), "parked": parked}


def _ranked(rows: Iterable[Any]) -> dict[str, int]:
    return dict(Counter({row[0]: row[1] for row in rows}).most_common())
