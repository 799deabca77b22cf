"""Runs of the program and the policy revisions they put in force. No function commits.

An attempt that says `running` and belongs to a run that is over was cut off by a kill: the client
saw no last event, and its retry is an ordinary retry.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, delete, insert, select

from gateway.store.attempts import abandon_dead
from gateway.store.tables.work import BootRow, PolicyRevision

boots = BootRow.__table__  # type: ignore[attr-defined]
revisions = PolicyRevision.__table__  # type: ignore[attr-defined]


def begin_boot(
    connection: Connection,
    boot: str,
    pid: int,
    *,
    is_running: Callable[[int], bool],
    now_ms: int,
) -> int:
    """Note this run and end the attempts of those that are over. Returns how many were ended.

    A run is over when its process is: is_running(pid) says so, which on PostgreSQL goes by a number
    of its own, since processes are on many machines. A process number that came back
    as this run's own (every run of a container has the same) is over too; one that was given to
    a stranger looks alive until the stranger ends.
    """
    over = [
        row.id
        for row in connection.execute(select(boots.c.id, boots.c.pid))
        if row.pid == pid or not is_running(row.pid)
    ]
    connection.execute(delete(boots).where(boots.c.id.in_(over)))
    connection.execute(insert(boots).values(id=boot, pid=pid, beat_ms=now_ms))
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
