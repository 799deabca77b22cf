"""What a person may do with a piece of work. No function commits; all are conditional on the state.

A cancelled row is parked with its reason, and its key stays taken: no later turn asks for the same
work again, only `retry` does. Whoever holds the row under a lease has lost it: a late result
vanishes, and the next beat ends the call.
"""

from __future__ import annotations

from sqlalchemy import Connection, select, update

from gateway.errors import Conflict
from gateway.jobs.rows import jobs

CANCELLED = "cancelled"
REASON = "cancelled by its owner"


def cancel(connection: Connection, key: str, now_ms: int) -> None:
    """Park work that waits or runs; one that was cancelled before stays so. Raises Conflict where
    it is done or was given up."""
    changed = connection.execute(
        update(jobs)
        .where(jobs.c.key == key, jobs.c.state.in_(("queued", "leased")))
        .values(
            state="parked",
            lease=None,
            lease_until_ms=None,
            error_kind=CANCELLED,
            error=REASON,
            updated_ms=now_ms,
        )
    )
    state, cause = _look(connection, key)
    if changed.rowcount == 0 and (state, cause) != ("parked", CANCELLED):
        raise Conflict(f"This work cannot be cancelled: it {_TOLD[state]}.")


def retry(connection: Connection, key: str, now_ms: int) -> None:
    """Make work due now: parked work with a new series of attempts, waiting work without its wait.
    Raises Conflict where it runs or is done."""
    parked = connection.execute(
        update(jobs)
        .where(jobs.c.key == key, jobs.c.state == "parked")
        .values(
            state="queued",
            attempts=0,
            run_at_ms=now_ms,
            backend=None,
            error_kind=None,
            error=None,
            updated_ms=now_ms,
        )
    )
    if not parked.rowcount and not _hurry(connection, key, now_ms):
        state, _ = _look(connection, key)
        raise Conflict(f"This work cannot be tried again: it {_TOLD[state]}.")


def run(connection: Connection, key: str, now_ms: int) -> None:
    """Make waiting work due now. Raises Conflict where it runs, is done or was given up."""
    if not _hurry(connection, key, now_ms):
        state, _ = _look(connection, key)
        raise Conflict(f"This work cannot be run: it {_TOLD[state]}.")


def _hurry(connection: Connection, key: str, now_ms: int) -> bool:
    waiting = connection.execute(
        update(jobs)
        .where(jobs.c.key == key, jobs.c.state == "queued")
        .values(run_at_ms=now_ms, updated_ms=now_ms)
    )
    return waiting.rowcount == 1


_TOLD = {
    "queued": "waits",
    "leased": "runs now",
    "done": "is done",
    "parked": "was given up already",
}


def _look(connection: Connection, key: str) -> tuple[str, str | None]:
    row = connection.execute(
        select(jobs.c.state, jobs.c.error_kind).where(jobs.c.key == key)
    ).first()
    if row is None:
        raise Conflict("This work is gone: its conversation was deleted.")
    return row.state, row.error_kind
