"""Who holds a row of the queue, and how it is let go: done, postponed, parked, or given back.

The contract stands in queue.py: leases, conditional writes, clocks that jump. No function commits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Case, Connection, case, select, update

from gateway.jobs.rows import CLOCK_SLACK_MS, JobRow, jobs, read_row

ERROR_CHARS = 500
"""Characters kept of an error."""

POISONED = "poisoned"
"""The reason of a row that no program can run as it is."""


@dataclass(frozen=True, slots=True)
class Held:
    """A leased job and its lease."""

    job: JobRow
    lease: str


def claim(
    connection: Connection,
    *,
    now_ms: int,
    lease: str,
    lease_ms: int,
    blocked: Collection[str] = (),
    spare: Collection[int] = (),
    only: Collection[str] | None = None,
    limit: int = 1,
) -> list[JobRow]:
    """Lease up to `limit` due rows, the least often tried first and among these the longest due;
    at most one a backend and one a conversation, whoever holds the others.

    now_ms: of the database's clock. blocked: backends whose rows wait, because turns keep them
    busy; "" stands for rows without a backend. spare: rows (by number) that go behind all other due
    rows of their backend. only: the keys to choose among; None: all. What is due waits for nothing
    that is not, least of all for another row's wait after a failure. Expired leases are reaped on
    the way, and rows that no program can run are parked.
    """
    _mend_clock(connection, now_ms, lease_ms)
    _reap(connection, now_ms)
    backends, conversations = _taken(connection)
    backends |= set(blocked)
    taken: list[JobRow] = []
    for row in _sound(connection, _due(connection, now_ms, only, spare), now_ms):
        if (row.backend or "") in backends or row.conversation_pk in conversations:
            continue
        if _lease(connection, row, lease, now_ms, lease_ms):
            backends.add(row.backend or "")
            conversations.add(row.conversation_pk)
            taken.append(row)
        if len(taken) == limit:
            break
    rows = [connection.execute(select(*jobs.c).where(jobs.c.pk == row.pk)) for row in taken]
    return [read_row(found.one()) for found in rows]


def _taken(connection: Connection) -> tuple[set[str], set[int]]:
    """The backends and the conversations of what is leased, by whichever program."""
    leased = select(jobs.c.backend, jobs.c.conversation_pk).where(jobs.c.state == "leased")
    rows = connection.execute(leased).all()
    return {row.backend or "" for row in rows}, {row.conversation_pk for row in rows}


def _due(
    connection: Connection, now_ms: int, only: Collection[str] | None, spare: Collection[int]
) -> list[JobRow]:
    statement = (
        select(*jobs.c)
        .where(jobs.c.state == "queued", jobs.c.run_at_ms <= now_ms)
        .order_by(jobs.c.attempts, jobs.c.run_at_ms, jobs.c.pk)
        # Where several programs claim at a time, each looks at rows that the others do not hold.
        .with_for_update(skip_locked=True)
    )
    if only is not None:
        statement = statement.where(jobs.c.key.in_(list(only)))
    return sorted(map(read_row, connection.execute(statement)), key=lambda row: row.pk in spare)


def _sound(connection: Connection, rows: Iterable[JobRow], now_ms: int) -> Iterator[JobRow]:
    """The rows that can be run; the others are parked: they would fare the same for ever."""
    for row in rows:
        if row.flaw is None:
            yield row
            continue
        connection.execute(
            update(jobs)
            .where(jobs.c.pk == row.pk, jobs.c.state == "queued")
            .values(state="parked", error_kind=POISONED, error=row.flaw, updated_ms=now_ms)
        )


def _lease(connection: Connection, row: JobRow, lease: str, now_ms: int, lease_ms: int) -> bool:
    """False where another program was faster."""
    changed = connection.execute(
        update(jobs)
        .where(jobs.c.pk == row.pk, jobs.c.state == "queued")
        .values(
            state="leased",
            attempts=row.attempts + 1,
            lease=lease,
            lease_until_ms=now_ms + lease_ms,
            updated_ms=now_ms,
        )
    )
    return changed.rowcount == 1


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
    """Whether this lease still holds the row: asked in the transaction that writes the result, and
    true until that is committed: nobody else can change the row meanwhile."""
    found = connection.execute(
        select(jobs.c.pk)
        .where(jobs.c.pk == pk, jobs.c.lease == lease, jobs.c.state == "leased")
        .with_for_update()
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
    dead = [row for row in rows if row.lease.partition(".")[0] not in alive]
    freed = {"state": "queued", "lease": None, "lease_until_ms": None, "updated_ms": now_ms}
    return sum(_change(connection, row.pk, row.lease, **freed) for row in dead)


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
