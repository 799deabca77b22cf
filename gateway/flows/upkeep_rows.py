"""The transactions of background work, as functions over a connection. None commits.

Whatever is written here is written under the job's lease, in the transaction that asks for it: a
conversation deleted meanwhile, or a later attempt, makes a late result vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.flows import chapter_jobs, gist_jobs
from gateway.flows.rounds import Rejected
from gateway.jobs import leases, queue
from gateway.jobs.leases import Held
from gateway.jobs.rows import JobRow
from gateway.store import chapter_rows, quarantine, token_ratios
from gateway.store.origins import Origin, find_origin


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a round without a text ends: due again after `wait` seconds, or parked where that is
    None.

    stand_in: a text made without a model, to be stored unless there is one already.
    """

    wait: float | None
    kind: str
    said: str
    stand_in: str | None = None


def claim_due(
    connection: Connection,
    *,
    choose: Callable[[JobRow, Origin], str | None],
    now_ms: int,
    lease: str,
    lease_ms: int,
    blocked: Collection[str],
    only: Collection[str] | None = None,
    limit: int,
) -> list[Held]:
    """Lease what is due, after `choose` has named the backend of rows that have none yet.

    A row whose span has a text already, made without a model, goes behind all that is due: its
    further rounds may not keep a span that nothing tells yet waiting until the ceiling cuts it.
    """
    for row in queue.unassigned(connection, now_ms):
        origin = find_origin(connection, row.conversation_pk)
        backend = None if origin is None else choose(row, origin)
        if backend is not None:
            queue.assign(connection, row.pk, backend)
    taken = leases.claim(
        connection,
        now_ms=now_ms,
        lease=lease,
        lease_ms=lease_ms,
        blocked=blocked,
        spare=_find_told(connection, now_ms),
        only=only,
        limit=limit,
    )
    return [Held(job, lease) for job in taken]


def _find_told(connection: Connection, now_ms: int) -> set[int]:
    """The due rows whose chapter or gist has a text. One that does not say what it is for is left
    to whoever runs it: it must not keep the others from being claimed."""
    due = queue.due(connection, now_ms)
    asked = [(job.payload.get("chapter"), job.pk) for job in due if job.kind == "chapter"]
    chapters = {chapter: pk for chapter, pk in asked if isinstance(chapter, int)}
    told = {chapters[chapter] for chapter in chapter_rows.told_chapters(connection, chapters)}
    gists = [job for job in due if job.kind == "gist" and "last_pk" in job.payload]
    return told | {job.pk for job in gists if gist_jobs.newest_made(connection, job) is not None}


def load_ratios(
    connection: Connection, conversation_pk: int, backends: Sequence[str]
) -> dict[str, float]:
    """Characters per token as learned in this conversation, of the backends that said so."""
    learned = {
        name: token_ratios.token_ratio(connection, conversation_pk, name) for name in backends
    }
    return {name: ratio for name, ratio in learned.items() if ratio is not None}


def save_rejected(connection: Connection, held: Held, rejected: Rejected, now_ms: int) -> bool:
    """Quarantine an output; False where the lease is lost."""
    job = held.job
    if not leases.held(connection, job.pk, held.lease):
        return False
    quarantine.add_quarantined(
        connection,
        job.conversation_pk,
        chapter_pk=job.payload.get("chapter"),
        kind=job.kind,
        backend=rejected.backend,
        reasons=rejected.reasons,
        text=rejected.text,
        finish_reason=rejected.finish_reason,
        now_ms=now_ms,
    )
    return True


def save_failure(connection: Connection, held: Held, outcome: Outcome, now_ms: int) -> bool:
    """Store how a round failed, with its stand-in. True where a stand-in was stored."""
    job, lease = held.job, held.lease
    if not leases.held(connection, job.pk, lease):
        return False
    add_stand_in = (gist_jobs if job.kind == "gist" else chapter_jobs).add_stand_in
    is_stored = outcome.stand_in is not None and add_stand_in(
        connection, job, outcome.stand_in, now_ms
    )
    kind, said = outcome.kind, outcome.said
    if outcome.wait is None:
        leases.park(connection, job.pk, lease, kind, said, now_ms)
    else:
        run_at_ms = now_ms + int(outcome.wait * 1000)
        leases.postpone(connection, job.pk, lease, run_at_ms, kind, said, now_ms)
    return is_stored
