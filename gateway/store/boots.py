"""Runs of the program, each under a lease, and the policy revisions they put in force. No function
commits.

A run is over when its lease is, or at once where its process is known to be gone: process numbers
mean something on one machine only, leases everywhere. now_ms is the database's clock in every
function, so that programs on several machines never compare their own. An attempt that says
`running` and belongs to a run that is over was cut off: the client saw no last event, and its retry
is an ordinary retry.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, delete, insert, select, update

from gateway.store.attempts import abandon_dead
from gateway.store.tables.work import BootRow, PolicyRevision

boots = BootRow.__table__  # type: ignore[attr-defined]
revisions = PolicyRevision.__table__  # type: ignore[attr-defined]

LEASE_MS = 60_000
BEAT_SECONDS = 20.0
"""A run's lease outlives two lost beats, as a job's does."""

CLOCK_SLACK_MS = 2_000


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the program: its id, its process, and where that number means something."""

    id: str
    pid: int
    machine: str


def this_run(id: str) -> Run:
    return Run(id, os.getpid(), _name_machine())


def _name_machine() -> str:
    """One word for all processes that share their numbers with this one: on Linux this boot of the
    kernel and the namespace of its process numbers (each container has its own)."""
    try:
        kernel = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{kernel}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return platform.node()


def keep_boot(
    connection: Connection, run: Run, *, is_running: Callable[[int], bool], now_ms: int
) -> int:
    """Take or prolong this run's lease, a new one where somebody saw it end, and end the attempts
    of runs that are over. Returns how many were ended.

    is_running(pid) says whether there is such a process on this machine. A process number that came
    back as this run's own is over too; one that was given to a stranger looks alive until its
    lease ends.
    """
    _prolong(connection, run, now_ms)
    return end_dead(connection, run, is_running=is_running, now_ms=now_ms)


def _prolong(connection: Connection, run: Run, now_ms: int) -> None:
    values = {"beat_ms": now_ms, "lease_until_ms": now_ms + LEASE_MS}
    changed = connection.execute(update(boots).where(boots.c.id == run.id).values(values))
    if changed.rowcount == 0:
        told = {"id": run.id, "pid": run.pid, "machine": run.machine}
        connection.execute(insert(boots).values(**told, **values))


def end_dead(
    connection: Connection, run: Run, *, is_running: Callable[[int], bool], now_ms: int
) -> int:
    """Forget the runs that are over and end their attempts. Returns how many were ended."""
    # A lease from before the clock was set back ends within one lease from now.
    connection.execute(
        update(boots)
        .where(boots.c.lease_until_ms > now_ms + LEASE_MS + CLOCK_SLACK_MS)
        .values(lease_until_ms=now_ms + LEASE_MS)
    )
    rows = connection.execute(select(boots).where(boots.c.id != run.id)).all()
    over = [
        row.id
        for row in rows
        if row.lease_until_ms <= now_ms
        or (row.machine == run.machine and (row.pid == run.pid or not is_running(row.pid)))
    ]
    if over:
        connection.execute(delete(boots).where(boots.c.id.in_(over)))
    return abandon_dead(connection, living(connection), now_ms)


def living(connection: Connection) -> list[str]:
    """The runs that are not over, this one among them."""
    return list(connection.execute(select(boots.c.id)).scalars())


def end_boot(connection: Connection, boot: str) -> None:
    """Forget a run that ends in order."""
    connection.execute(delete(boots).where(boots.c.id == boot))


def record_revision(connection: Connection, digest: str, text: str, now_ms: int) -> None:
    """Keep the text of a policy revision, once; its secrets stand in it as ${VAR}."""
    known = connection.execute(
        select(revisions.c.digest).where(revisions.c.digest == digest)
    ).scalar()
    if known is None:
        connection.execute(insert(revisions).values(digest=digest, text=text, created_ms=now_ms))
