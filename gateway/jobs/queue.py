"""The queue's contract. The row is the truth; whoever rings the bells holds nothing.

Every function takes a connection and none commits, so a turn and the work it causes commit
together. Times are milliseconds since 1970 (UTC).

**One row a piece of work.** `key` names it (a chapter, a gist over a span). Enqueueing the same key
again, whatever became of the row, adds nothing and moves nothing: ten turns in a row cause one job,
its delay is not reset, and no turn begins a new series of attempts.

**States.** queued → leased → done, or → queued again (postponed, released, reaped), or → parked
with its reason. A parked row waits for a person.

**Leases.** `claim` hands due rows, oldest first, to one holder, each under a lease that ends unless
it is beaten. Every claim counts as an attempt, so that a row which kills its process is counted
too; only `release`, for work that was interrupted and did not fail, takes it back. An expired lease
is reaped by the next claim.

**Conditional writes.** A holder writes its result in the transaction in which `held` is true, and
finishes the row in the same one. A row that was deleted with its conversation, or claimed by
somebody else since, is not held: the late result vanishes. complete, postpone, park and release
return False then, and have done nothing.

**Clocks that jump.** A row says when it was last written. One from the future was written before
the clock was set back: it keeps the wait it then had, counted from now. A lease that reaches
further than a lease can is cut to one lease from now. A clock set forward only makes rows due.

payload holds row numbers, never text; error holds neither a user's text nor a key.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import (
    Case,
    Connection,
    and_,
    case,
    column,
    func,
    or_,
    select,
    table,
    text,
    update,
)

JobKind = Literal["chapter", "gist"]

CLOCK_SLACK_MS = 2_000
"""Rows this much from the future are left alone: clocks are corrected by milliseconds all day."""

SOON_MS = 90_000
"""What comes due within this is waited for by work that can wait: longer than the first two waits
after a failure, so that no such work begins between the rounds of what nothing tells yet."""

ERROR_CHARS = 500
"""Characters kept of an error."""

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

_ENQUEUE = text(
    """
    INSERT INTO jobs (key, kind, conversation_pk, state, run_at_ms, attempts, backend, policy,
                      payload, created_ms, updated_ms)
    VALUES (:key, :kind, :conversation, 'queued', :run_at, 0, :backend, :policy,
            :payload, :now, :now)
    ON CONFLICT (key) DO NOTHING
    """
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


def _row(values: Any) -> JobRow:
    fields = dict(values._mapping)
    return JobRow(**{**fields, "payload": json.loads(fields["payload"])})


def enqueue(
    connection: Connection,
    *,
    key: str,
    kind: JobKind,
    conversation_pk: int,
    policy: str,
    payload: Mapping[str, Any],
    run_at_ms: int,
    backend: str | None,
    now_ms: int,
) -> bool:
    """Put work into the queue; False where this key was ever queued, and nothing is changed then.

    `backend` is the one that will first be asked: its running turns hold the job back. None: not
    known yet.
    """
    made = connection.execute(
        _ENQUEUE,
        {
            "key": key,
            "kind": kind,
            "conversation": conversation_pk,
            "run_at": run_at_ms,
            "backend": backend,
            "policy": policy,
            "payload": json.dumps(dict(payload)),
            "now": now_ms,
        },
    )
    return made.rowcount == 1


def hurry(
    connection: Connection, key: str, payload: Mapping[str, Any], *, now_ms: int
) -> str | None:
    """Make waiting work due now, and add to what its row says. Returns the row's state, None where
    there is none.

    Work that failed before keeps its wait: an upstream may have asked for it.
    """
    return hurry_all(connection, [key], payload, now_ms=now_ms).get(key)


def hurry_all(
    connection: Connection, keys: Collection[str], payload: Mapping[str, Any], *, now_ms: int
) -> dict[str, str]:
    """Hurry several pieces of work after one look. The states of those that have a row, by key."""
    if not keys:
        return {}
    found = connection.execute(select(*jobs.c).where(jobs.c.key.in_(list(keys))))
    rows = [_row(values) for values in found]
    for row in rows:
        _hurry(connection, row, payload, now_ms)
    return {row.key: row.state for row in rows}


def _hurry(connection: Connection, row: JobRow, payload: Mapping[str, Any], now_ms: int) -> None:
    changes: dict[str, Any] = {}
    if row.state == "queued" and row.attempts == 0 and row.run_at_ms > now_ms:
        changes["run_at_ms"] = now_ms
    if row.state in ("queued", "leased") and not payload.items() <= row.payload.items():
        changes["payload"] = json.dumps({**row.payload, **payload})
    if changes:
        connection.execute(update(jobs).where(jobs.c.pk == row.pk).values(changes))


def live(connection: Connection, conversation_pk: int, kind: JobKind, policy: str) -> list[JobRow]:
    """The work of a conversation that waits or runs, of one kind and policy, oldest first."""
    statement = (
        select(*jobs.c)
        .where(
            jobs.c.conversation_pk == conversation_pk,
            jobs.c.kind == kind,
            jobs.c.policy == policy,
            jobs.c.state.in_(("queued", "leased")),
        )
        .order_by(jobs.c.pk)
    )
    return [_row(found) for found in connection.execute(statement)]


def has_due(connection: Connection, now_ms: int) -> bool:
    """Whether `claim` would have anything to do: a look that writes nothing."""
    due = or_(
        and_(jobs.c.state == "queued", jobs.c.run_at_ms <= now_ms),
        and_(jobs.c.state == "leased", jobs.c.lease_until_ms <= now_ms),
        and_(jobs.c.state == "queued", jobs.c.updated_ms > now_ms + CLOCK_SLACK_MS),
    )
    statement = select(jobs.c.pk).where(jobs.c.state.in_(("queued", "leased")), due).limit(1)
    return connection.execute(statement).first() is not None


def unassigned(connection: Connection, now_ms: int) -> list[JobRow]:
    """Due rows of which nobody has said yet which backend they will first ask."""
    statement = select(*jobs.c).where(
        jobs.c.state == "queued", jobs.c.run_at_ms <= now_ms, jobs.c.backend.is_(None)
    )
    return [_row(found) for found in connection.execute(statement)]


def assign(connection: Connection, pk: int, backend: str) -> None:
    """Say which backend a row will first ask."""
    connection.execute(update(jobs).where(jobs.c.pk == pk).values(backend=backend))


def due(connection: Connection, now_ms: int) -> list[JobRow]:
    """The rows that wait for nothing but a holder."""
    statement = select(*jobs.c).where(jobs.c.state == "queued", jobs.c.run_at_ms <= now_ms)
    return [_row(found) for found in connection.execute(statement)]


def claim(
    connection: Connection,
    *,
    now_ms: int,
    lease: str,
    lease_ms: int,
    blocked: Collection[str] = (),
    spare: Collection[int] = (),
    limit: int = 1,
) -> list[JobRow]:
    """Lease up to `limit` due rows, the least often tried first and among these the longest due,
    and at most one a backend.

    blocked: backends whose rows wait, because a turn or another job of theirs is running; "" stands
    for rows without a backend. spare: rows (by number) whose work can wait for all other work of
    their backend, also for what comes due within `SOON_MS`: a call that has begun is not broken
    off. Expired leases are reaped on the way.
    """
    _mend_clock(connection, now_ms, lease_ms)
    _reap(connection, now_ms)
    statement = (
        select(*jobs.c)
        .where(
            jobs.c.state == "queued",
            jobs.c.run_at_ms <= now_ms,
            func.coalesce(jobs.c.backend, "").not_in(list(blocked)),
        )
        .order_by(jobs.c.attempts, jobs.c.run_at_ms, jobs.c.pk)
    )
    awaited = _awaited(connection, now_ms, spare) if spare else set()
    taken: dict[str, JobRow] = {}
    for found in connection.execute(statement):
        row = _row(found)
        if row.pk in spare and awaited & {row.backend or "", ""}:
            continue
        taken.setdefault(row.backend or "", row)
        if len(taken) == limit:
            break
    return [_lease(connection, row, lease, now_ms, lease_ms) for row in taken.values()]


def _awaited(connection: Connection, now_ms: int, spare: Collection[int]) -> set[str]:
    """The backends that other work than the spare one is about to ask; "" for any of them."""
    soon = select(func.coalesce(jobs.c.backend, "")).where(
        jobs.c.state == "queued",
        jobs.c.run_at_ms <= now_ms + SOON_MS,
        jobs.c.pk.not_in(list(spare)),
    )
    return set(connection.execute(soon.distinct()).scalars())


def _lease(connection: Connection, row: JobRow, lease: str, now_ms: int, lease_ms: int) -> JobRow:
    values = {
        "state": "leased",
        "attempts": row.attempts + 1,
        "lease": lease,
        "lease_until_ms": now_ms + lease_ms,
        "updated_ms": now_ms,
    }
    connection.execute(update(jobs).where(jobs.c.pk == row.pk).values(values))
    return _row(connection.execute(select(*jobs.c).where(jobs.c.pk == row.pk)).one())


def _mend_clock(connection: Connection, now_ms: int, lease_ms: int) -> None:
    """Rows and leases from before the clock was set back, see "Clocks that jump"."""
    connection.execute(
        update(jobs)
        .where(jobs.c.state == "queued", jobs.c.updated_ms > now_ms + CLOCK_SLACK_MS)
        .values(
            run_at_ms=jobs.c.run_at_ms - (jobs.c.updated_ms - now_ms),
            updated_ms=now_ms,
        )
    )
    connection.execute(
        update(jobs)
        .where(
            jobs.c.state == "leased",
            jobs.c.lease_until_ms > now_ms + lease_ms + CLOCK_SLACK_MS,
        )
        .values(lease_until_ms=now_ms + lease_ms, updated_ms=now_ms)
    )


def _reap(connection: Connection, now_ms: int) -> None:
    connection.execute(
        update(jobs)
        .where(jobs.c.state == "leased", jobs.c.lease_until_ms <= now_ms)
        .values(
            state="queued",
            lease=None,
            lease_until_ms=None,
            run_at_ms=_not_after(now_ms),
            updated_ms=now_ms,
        )
    )


def _not_after(now_ms: int) -> Case[Any]:
    """A due time that has been reached once stays reached, wherever the clock went."""
    return case((jobs.c.run_at_ms > now_ms, now_ms), else_=jobs.c.run_at_ms)


def held(connection: Connection, pk: int, lease: str) -> bool:
    """Whether this lease still holds the row: asked in the transaction that writes the result."""
    found = connection.execute(
        select(jobs.c.pk).where(jobs.c.pk == pk, jobs.c.lease == lease, jobs.c.state == "leased")
    )
    return found.first() is not None


def beat(connection: Connection, pk: int, lease: str, *, now_ms: int, lease_ms: int) -> bool:
    """Prolong a lease; False where it is lost, and the work should stop."""
    return _change(connection, pk, lease, lease_until_ms=now_ms + lease_ms, updated_ms=now_ms)


def complete(connection: Connection, pk: int, lease: str, now_ms: int) -> bool:
    """The work is done."""
    return _let_go(
        connection, pk, lease, state="done", error_kind=None, error=None, updated_ms=now_ms
    )


def postpone(
    connection: Connection,
    pk: int,
    lease: str,
    run_at_ms: int,
    error_kind: str,
    error: str,
    now_ms: int,
) -> bool:
    """The attempt failed; another one is due at `run_at_ms`."""
    return _let_go(
        connection,
        pk,
        lease,
        state="queued",
        run_at_ms=run_at_ms,
        error_kind=error_kind,
        error=error[:ERROR_CHARS],
        updated_ms=now_ms,
    )


def park(
    connection: Connection, pk: int, lease: str, error_kind: str, error: str, now_ms: int
) -> bool:
    """No further attempt will be made; the reason stays with the row."""
    return _let_go(
        connection,
        pk,
        lease,
        state="parked",
        error_kind=error_kind,
        error=error[:ERROR_CHARS],
        updated_ms=now_ms,
    )


def free_dead(connection: Connection, alive: Collection[str], now_ms: int) -> int:
    """Queue again, at once, what runs that are over had leased; their leases begin with the run's
    id and a dot. The attempt counts: it may be what killed them. Returns how many."""
    rows = connection.execute(select(jobs.c.pk, jobs.c.lease).where(jobs.c.state == "leased"))
    dead = [row.pk for row in rows if row.lease.partition(".")[0] not in alive]
    connection.execute(
        update(jobs)
        .where(jobs.c.pk.in_(dead))
        .values(state="queued", lease=None, lease_until_ms=None, updated_ms=now_ms)
    )
    return len(dead)


def release(connection: Connection, pk: int, lease: str, now_ms: int) -> bool:
    """Give the row back as it was claimed: the attempt was interrupted and counts for nothing."""
    return _let_go(
        connection,
        pk,
        lease,
        state="queued",
        attempts=jobs.c.attempts - 1,
        run_at_ms=_not_after(now_ms),
        updated_ms=now_ms,
    )


def _let_go(connection: Connection, pk: int, lease: str, **values: Any) -> bool:
    return _change(connection, pk, lease, lease=None, lease_until_ms=None, **values)


def _change(connection: Connection, pk: int, holder: str, **values: Any) -> bool:
    changed = connection.execute(
        update(jobs)
        .where(jobs.c.pk == pk, jobs.c.lease == holder, jobs.c.state == "leased")
        .values(values)
    )
    return changed.rowcount == 1


def next_due(connection: Connection, *, after_ms: int | None = None) -> int | None:
    """When the next row becomes due, or the next lease ends; None where nothing waits.

    With `after_ms` only what comes later counts: rows already due that wait for a quiet moment are
    then no reason to ring.
    """
    ends = case((jobs.c.state == "queued", jobs.c.run_at_ms), else_=jobs.c.lease_until_ms).label(
        "due"
    )
    statement = select(ends).where(jobs.c.state.in_(("queued", "leased"))).order_by(ends).limit(1)
    if after_ms is not None:
        statement = statement.where(ends > after_ms)
    found = connection.execute(statement).scalar()
    return None if found is None else int(found)


def count_jobs(
    connection: Connection, now_ms: int
) -> tuple[list[tuple[str, str, int]], int | None]:
    """How many rows there are of each (kind, state), and since when the oldest due one waits; None
    where none is due."""
    grouped = select(jobs.c.kind, jobs.c.state, func.count()).group_by(jobs.c.kind, jobs.c.state)
    counts = [(row[0], row[1], row[2]) for row in connection.execute(grouped)]
    oldest = select(func.min(jobs.c.run_at_ms)).where(
        jobs.c.state == "queued", jobs.c.run_at_ms <= now_ms
    )
    return counts, connection.execute(oldest).scalar()
