"""The queue's rows, and the table that holds them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import column, table

JobKind = Literal["chapter", "gist"]

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
    """One row. attempts counts the claims so far, the present one included."""

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


def read_row(values: Any) -> JobRow:
    """The row of a result with all columns of `jobs`."""
    fields = dict(values._mapping)
    return JobRow(**{**fields, "payload": json.loads(fields["payload"])})
