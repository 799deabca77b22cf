"""The queue's rows, and the table that holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from sqlalchemy import column, table

from gateway.wire.json_text import load_object

JobKind = Literal["chapter", "gist"]
KINDS = frozenset(get_args(JobKind))

CLOCK_SLACK_MS = 2_000
"""Rows this much from the future are left alone: clocks are corrected by milliseconds all day."""

# The columns of the table that the store defines; a test holds the two together.
jobs = table(
    "jobs",
    *map(
        column,
        (
            "pk",
            "key",
            "kind",
            "conversation_pk",
            "state",
            "run_at_ms",
            "attempts",
            "lease",
            "lease_until_ms",
            "backend",
            "policy",
            "payload",
            "error_kind",
            "error",
            "created_ms",
            "updated_ms",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class JobRow:
    """One row. attempts counts the claims so far, the present one included. flaw: in words, why no
    program can run it as it is; None for a sound row."""

    pk: int
    key: str
    kind: str
    conversation_pk: int
    state: str
    run_at_ms: int
    attempts: int
    lease: str | None
    lease_until_ms: int | None
    backend: str | None
    policy: str
    payload: dict[str, Any]
    error_kind: str | None
    error: str | None
    created_ms: int
    updated_ms: int
    flaw: str | None = None


def read_row(values: Any) -> JobRow:
    """The row of a result with all columns of `jobs`. One that cannot be read says so in `flaw`: it
    must not keep the others from being read."""
    fields = dict(values._mapping)
    payload = load_object(fields["payload"])
    flaw = None
    if payload is None:
        flaw = "what it is for cannot be read"
    elif fields["kind"] not in KINDS:
        flaw = "this program knows no work of its kind"
    return JobRow(**{**fields, "payload": payload or {}, "flaw": flaw})
