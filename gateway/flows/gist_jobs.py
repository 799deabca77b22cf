"""The rows of a gist's job: the chapters and the gist before it, and its text. Nothing commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.flows.backgrounds import Place, find_unlisted
from gateway.flows.memories import tell_gist, tell_versions
from gateway.flows.rounds import Draft
from gateway.jobs import leases
from gateway.jobs.leases import Held
from gateway.jobs.rows import JobRow
from gateway.prompts.summary import PROMPT_VERSION
from gateway.store import chapter_rows, fold_rows, gist_rows, ledger, transcript
from gateway.store.chapter_rows import ChapterRow
from gateway.store.gist_rows import GistRow
from gateway.store.origins import Origin, owner_of
from policies.budget import limits_of
from policies.schema import Policy


@dataclass(frozen=True, slots=True)
class GistRows:
    """What a gist is made from. is_made: by a model already. stack_chars: the chapters that the
    view at the newest message shows behind its gist; 0 where the gist would not lie on that path.
    sources: the chapter versions whose texts are among the notes, earlier: the version of the gist
    before it, by its row number. threads: the open ones that the gist must tell.
    """

    notes: tuple[str, ...]
    sources: tuple[int, ...]
    earlier: int | None
    is_made: bool
    stack_chars: int
    threads: tuple[str, ...] = ()


def load_gist(
    connection: Connection, job: JobRow, origin: Origin, policy: Policy
) -> GistRows | None:
    """The notes of a gist's job, each in its newest text: a stand-in that the fold still showed may
    have its real chapter by now, and a refusal gives way to its messages. None where they are gone,
    or where the earlier gist was undone."""
    found = _read_sources(connection, job)
    if found is None:
        return None
    chapters, earlier = found
    newest = newest_made(connection, job)
    versions = _versions_of(chapters)
    notes = [] if earlier is None else [tell_gist(connection, earlier)]
    return GistRows(
        tuple(filter(None, [*notes, *tell_versions(connection, versions)])),
        versions,
        None if earlier is None else earlier.pk,
        newest is not None and _is_final(newest),
        _stack_chars(connection, job, origin),
        _threads(connection, job, origin, policy),
    )


def _read_sources(
    connection: Connection, job: JobRow
) -> tuple[list[ChapterRow], GistRow | None] | None:
    """The chapters and the earlier gist that a gist's job folds together, as they are now; None
    where they are gone, or where the earlier gist was undone."""
    payload = job.payload
    shown = chapter_rows.versions_by_pk(connection, payload["chapters"])
    if len(shown) != len(payload["chapters"]):
        return None
    newest = chapter_rows.chapters_by_pk(
        connection, job.conversation_pk, [version.chapter_pk for version in shown]
    )
    if payload["gist"] is None:
        return newest, None
    earlier = gist_rows.newest_version(connection, payload["gist"])
    if earlier is None or earlier.retired_ms is not None:
        return None
    return newest, earlier


def _versions_of(chapters: Sequence[ChapterRow]) -> tuple[int, ...]:
    return tuple(row.version_pk for row in chapters if row.version_pk is not None)


def newest_made(connection: Connection, job: JobRow) -> GistRow | None:
    """The newest version of what the job is to make."""
    made = [
        gist
        for gist in gist_rows.all_gists(connection, job.conversation_pk)
        if gist.policy == job.policy and gist.last_pk == job.payload["last_pk"]
    ]
    return max(made, key=lambda gist: gist.version, default=None)


def _is_final(gist: GistRow) -> bool:
    """Whether no model is to write this gist any more: one has, its owner has, or it was undone."""
    return gist.origin != "stand-in" or gist.retired_ms is not None


def _is_as_read(connection: Connection, job: JobRow) -> bool:
    """Whether what a gist was made from is still what it would be made from: its owner may have
    edited or deleted a chapter while the model wrote."""
    found = _read_sources(connection, job)
    if found is None:
        return False
    chapters, earlier = found
    pk = None if earlier is None else earlier.pk
    return list(_versions_of(chapters)) == list(job.payload["chapters"]) and pk == job.payload.get(
        "earlier", job.payload["gist"]
    )


def _threads(
    connection: Connection, job: JobRow, origin: Origin, policy: Policy
) -> tuple[str, ...]:
    """The open threads for which the list in a view will have no room once this gist is shown."""
    owner_pk = owner_of(connection, job.conversation_pk)
    if origin.head_pk is None or owner_pk is None:
        return ()
    head = transcript.node_by_pk(connection, origin.head_pk)
    covered = int(job.payload["last_depth"])
    if not transcript.on_path(connection, job.payload["last_pk"], covered, head):
        return ()
    fold = fold_rows.deepest_fold(connection, job.conversation_pk, job.policy, head)
    border = max(covered, fold.border_depth if fold else 0)
    place = Place(owner_pk, job.conversation_pk, policy, limits_of(policy, 1.0), head)
    rows = find_unlisted(connection, place, border=border, covered=covered)
    return tuple(row.text for row in rows)


def _stack_chars(connection: Connection, job: JobRow, origin: Origin) -> int:
    if origin.head_pk is None:
        return 0
    head = transcript.node_by_pk(connection, origin.head_pk)
    last_pk, last_depth = job.payload["last_pk"], job.payload["last_depth"]
    if not transcript.on_path(connection, last_pk, last_depth, head):
        return 0
    fold = fold_rows.deepest_fold(connection, job.conversation_pk, job.policy, head)
    # What is made ahead of a view will stand in it: all that is chaptered counts.
    border = head.depth if "ahead" in job.payload else fold.border_depth if fold else 0
    gist = gist_rows.newest_gist(connection, job.conversation_pk, job.policy, head, border=border)
    rows = chapter_rows.chapter_row(
        connection, job.conversation_pk, head, above=gist.last_depth if gist else 0
    )
    return sum(len(row.text or "") for row in rows if row.last_depth <= border)


def save_gist(connection: Connection, held: Held, draft: Draft, now_ms: int) -> bool:
    """Store a gist and finish its job. What it had no room for goes into the ledger.

    False where the lease is lost, where its owner wrote or undid it meanwhile, and where what it
    was made from is no more what it was: then it is made anew at once.
    """
    job = held.job
    if not leases.held(connection, job.pk, held.lease):
        return False
    newest = newest_made(connection, job)
    if newest is not None and _is_final(newest):
        leases.complete(connection, job.pk, held.lease, now_ms)
        return False
    if not _is_as_read(connection, job):
        said = "a chapter or gist that it was made from was changed meanwhile"
        leases.postpone(connection, job.pk, held.lease, now_ms, "stale", said, now_ms)
        return False
    gist_pk = _add_gist(connection, held.job, draft.text, draft, now_ms)
    for sentence in draft.moved:
        ledger.add_entry(
            connection,
            held.job.conversation_pk,
            kind="note",
            text=sentence,
            last_pk=held.job.payload["last_pk"],
            last_depth=held.job.payload["last_depth"],
            origin="model",
            gist_pk=gist_pk,
            now_ms=now_ms,
        )
    return leases.complete(connection, held.job.pk, held.lease, now_ms)


def _add_gist(
    connection: Connection, job: JobRow, text: str, draft: Draft | None, now_ms: int
) -> int:
    """A version of the job's gist, by its row number; draft None: it was made without a model."""
    return gist_rows.add_gist(
        connection,
        job.conversation_pk,
        policy=job.policy,
        last_pk=job.payload["last_pk"],
        last_depth=job.payload["last_depth"],
        sources=job.payload["chapters"],
        text=text,
        origin="stand-in" if draft is None else "model",
        backend=None if draft is None else draft.backend,
        prompt=None if draft is None else PROMPT_VERSION,
        now_ms=now_ms,
        took_ms=None if draft is None else draft.took_ms,
    )


def add_stand_in(connection: Connection, job: JobRow, text: str, now_ms: int) -> bool:
    """A text made without a model, unless there is one; the job goes on for its successor."""
    if newest_made(connection, job) is not None or not _is_as_read(connection, job):
        return False
    _add_gist(connection, job, text, None, now_ms)
    return True
