"""The rows of a chapter's job: what it is made from, and its text. Nothing commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.flows.rounds import Draft
from gateway.flows.tellings import store_chapter
from gateway.jobs import leases
from gateway.jobs.leases import Held
from gateway.jobs.rows import JobRow
from gateway.store import chapter_rows, ledger, transcript


@dataclass(frozen=True, slots=True)
class ChapterRows:
    """What a chapter is made from: its messages, by row number and as they came. origin: of the
    text it has now, None without one. threads: by number, those that were open before it."""

    pk: int
    pks: tuple[int, ...]
    raws: tuple[str, ...]
    origin: str | None
    threads: tuple[tuple[int, str], ...] = ()


def load_chapter(connection: Connection, job: JobRow) -> ChapterRows | None:
    """The span of a chapter's job; None where it is gone."""
    chapter = chapter_rows.chapter_by_pk(
        connection, job.conversation_pk, int(job.payload["chapter"])
    )
    if chapter is None:
        return None
    rows = transcript.path_between(connection, chapter.last_pk, chapter.first_depth - 1)
    head = transcript.node_by_pk(connection, chapter.last_pk)
    threads = ledger.open_threads(
        connection, job.conversation_pk, head, up_to_depth=chapter.first_depth - 1
    )
    return ChapterRows(
        chapter.pk,
        tuple(row.pk for row in rows),
        tuple(row.raw for row in rows),
        chapter.origin,
        tuple((row.number, row.text) for row in threads if row.number is not None),
    )


def save_chapter(
    connection: Connection,
    held: Held,
    draft: Draft,
    now_ms: int,
    *,
    pks: Sequence[int],
    learns: bool,
) -> bool:
    """Store a chapter's text with what is told beside it and finish its job; False where the lease
    is lost, or where its owner wrote one meanwhile, which stays.

    pks: the messages of its span; learns: facts go into the owner's profile too."""
    job = held.job
    if not leases.held(connection, job.pk, held.lease):
        return False
    if _is_overruled(connection, job):
        leases.complete(connection, job.pk, held.lease, now_ms)
        return False
    store_chapter(
        connection,
        job.conversation_pk,
        int(job.payload["chapter"]),
        draft,
        pks=pks,
        learns=learns,
        now_ms=now_ms,
    )
    return leases.complete(connection, job.pk, held.lease, now_ms)


def _is_overruled(connection: Connection, job: JobRow) -> bool:
    """Whether the chapter has a text of its owner's that is newer than what the job was asked to
    succeed: `again` is the version number then, absent where there was none."""
    chapter = chapter_rows.chapter_by_pk(
        connection, job.conversation_pk, int(job.payload["chapter"])
    )
    if chapter is None or chapter.origin != "owner":
        return False
    return (chapter.version or 0) > int(job.payload.get("again", 0))


def add_stand_in(connection: Connection, job: JobRow, text: str, now_ms: int) -> bool:
    """A text made without a model, unless there is one; the job goes on for its successor."""
    chapter = chapter_rows.chapter_by_pk(
        connection, job.conversation_pk, int(job.payload["chapter"])
    )
    if chapter is None or chapter.version_pk is not None:
        return False
    chapter_rows.add_version(
        connection,
        job.conversation_pk,
        chapter.pk,
        text=text,
        origin="stand-in",
        backend=None,
        prompt=None,
        now_ms=now_ms,
    )
    return True
