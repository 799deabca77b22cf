"""The queue's contract. The row is the truth; whoever rings the bells holds nothing.

Every function takes a connection and none commits, so a turn and the work it causes commit
together. Times are milliseconds since 1970 (UTC); no local time, and so no summer time, is in them.

**One row a piece of work.** `key` names it: `chapter:` and the chapter's row, which is one span of
one conversation; `gist:` with conversation, policy and the last message it covers, which is one
generation of it. Enqueueing the same key again, whatever became of the row, adds nothing and moves
nothing: ten turns in a row cause one job, its delay is not reset, and no turn begins a new series
of attempts. Only a person's `retry` does (hand.py).

**States.** queued → leased → done, or → queued again (postponed, released, reaped), or → parked
with its reason. A parked row waits for a person.

**Who may run what.** Several programs may share one database: gateways, `foldgate jobs run`. A
claim (leases.py) gives due rows to one holder, the least often tried and longest due first: at most
one a backend and one a conversation, counting what all programs hold; what turns keep busy is named
by the caller, who asks the attempts of all programs. Where a claim names a backend it is the one a
row asks first; the holder waits for the quiet moment of each further one itself.

**Leases.** A row is held under a token and until a time; the holder beats to prolong it. Every
claim counts as an attempt, so that a row which kills its process is counted too; only `release`,
for work that was interrupted and did not fail, takes it back. An expired lease is reaped by the
next claim, whoever makes it. The run of a program holds a lease as well (store/boots.py): with it
end, at once, the leases whose tokens begin with its id.

**One clock.** Leases are written and compared by the database's clock, read on the connection that
writes (`Context.time_of`): programs whose clocks differ cut nobody's lease short. When a row
becomes due was said by the turn that put it in, by its own clock; see the next but one paragraph.

**Conditional writes.** A holder writes its result in the transaction in which `held` is true for
its token, and finishes the row in the same one. A row that was deleted with its conversation, or
claimed by somebody else since, is not held: the late result vanishes. complete, postpone, park and
release return False then, and have done nothing. So a result is stored once: its table is unique by
what the key names, a chapter that has a text is not written again, and a gist whose sources changed
meanwhile is made anew (flows/chapter_jobs.py, gist_jobs.py).

**Clocks that jump.** A row says when it was last written. One from the future was written before
the clock was set back, or by a program whose clock is ahead: it keeps the wait it then had, counted
from now. A lease that reaches further than a lease can is cut to one lease from now. A clock set
forward only makes rows due. The bells sweep by monotonic seconds.

**Failure.** How long the wait is, and when it is given up, is policies/retries.py: doubling, spread
by a digest of key and attempt, capped by cause. What fails for good is parked with its reason at
once. A row that no program can run (a payload that is no JSON object, an unknown kind) is parked by
the claim that meets it, as `poisoned`; it is left out wherever rows are read, so that it keeps no
other row waiting and no turn from its work.

**The end of a program.** It drains: it claims nothing more, what runs gets a grace, and what still
runs then is released, due at once.

What is put in and looked at stands here, who holds it in leases.py.

payload holds row numbers, never text; error holds neither a user's text nor a key.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, and_, case, func, or_, select, text, update

from gateway.jobs.rows import CLOCK_SLACK_MS, JobKind, JobRow, jobs, read_row

_ENQUEUE = text(
    """
    INSERT INTO jobs (key, kind, conversation_pk, state, run_at_ms, attempts, backend, policy,
                      payload, created_ms, updated_ms)
    VALUES (:key, :kind, :conversation, 'queued', :run_at, 0, :backend, :policy,
            :payload, :now, :now)
    ON CONFLICT (key) DO NOTHING
    """
)


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
    rows = [read_row(values) for values in found]
    for row in rows:
        if row.flaw is None:
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
    """The work of a conversation that waits or runs, of one kind and policy, oldest first; sound
    rows only."""
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
    return _sound(connection.execute(statement))


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
    statement = (
        select(*jobs.c)
        .where(jobs.c.state == "queued", jobs.c.run_at_ms <= now_ms, jobs.c.backend.is_(None))
        .order_by(jobs.c.pk)
    )
    return _sound(connection.execute(statement))


def assign(connection: Connection, pk: int, backend: str) -> None:
    """Say which backend a row will first ask."""
    connection.execute(update(jobs).where(jobs.c.pk == pk).values(backend=backend))


def due(connection: Connection, now_ms: int) -> list[JobRow]:
    """The rows that wait for nothing but a holder, oldest first."""
    statement = (
        select(*jobs.c)
        .where(jobs.c.state == "queued", jobs.c.run_at_ms <= now_ms)
        .order_by(jobs.c.pk)
    )
    return _sound(connection.execute(statement))


def _sound(found: Iterable[Any]) -> list[JobRow]:
    return [row for row in map(read_row, found) if row.flaw is None]


def count_open(
    connection: Connection, now_ms: int, only: Collection[str] | None = None
) -> tuple[int, int | None]:
    """How much work waits or runs (only: of these keys), and in how many milliseconds the next of
    it is due, 0 where it is; None where there is none."""
    statement = select(func.count(), func.min(jobs.c.run_at_ms)).where(
        jobs.c.state.in_(("queued", "leased"))
    )
    if only is not None:
        statement = statement.where(jobs.c.key.in_(list(only)))
    count, first = connection.execute(statement).one()
    return count, None if first is None else max(0, first - now_ms)


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
