"""Rows put into the queue, taken from it and read back, with times passed in."""

from typing import Any

from sqlalchemy import Connection, select

from gateway.jobs import leases, queue
from gateway.jobs.rows import JobRow, jobs, read_row
from tests.gateway.seeds import NOW, add_conversation, talk

DELAY = 30_000
LEASE = 60_000


def put(connection: Connection, conversation_pk: int, key: str, **values: Any) -> bool:
    values = {"run_at_ms": NOW + DELAY, "now_ms": NOW, "backend": "glm", **values}
    return queue.enqueue(
        connection,
        key=key,
        kind="chapter",
        conversation_pk=conversation_pk,
        policy="local-fold",
        payload={"chapter": 7},
        **values,
    )


def another(connection: Connection) -> int:
    """One more conversation, by its row number."""
    return add_conversation(connection, talk(1))[0].pk


def row(connection: Connection, key: str) -> JobRow:
    found = connection.execute(select(*jobs.c).where(jobs.c.key == key))
    return read_row(found.one())


def take(connection: Connection, now_ms: int, lease: str = "l1", **more: Any) -> list[str]:
    claimed = leases.claim(connection, now_ms=now_ms, lease=lease, lease_ms=LEASE, **more)
    return [job.key for job in claimed]
