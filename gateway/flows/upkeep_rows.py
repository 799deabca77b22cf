"""The transactions of background work, as functions over a connection. None commits.

Whatever is written here is written under the job's lease, in the transaction that asks for it: a
conversation deleted meanwhile, or a later attempt, makes a late result vanish.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.flows.backgrounds import Place, find_unlisted
from gateway.flows.rounds import Draft, Rejected
from gateway.flows.tellings import store_chapter
from gateway.jobs import leases, queue
from gateway.jobs.rows import JobRow
from gateway.prompts.summary import PROMPT_VERSION
from gateway.store import (
    chapter_rows,
    fold_rows,
    gist_rows,
    ledger,
    quarantine,
    token_ratios,
    transcript,
)
from gateway.store.chapter_rows import ChapterRow
from gateway.store.gist_rows import GistRow
from gateway.store.origins import Origin, find_origin, owner_of
from policies.budget import limits_of
from policies.schema import Policy


@dataclass(frozen=True, slots=True)
class Held:
    """A leased job and its lease."""

    job: JobRow
    lease: str


@dataclass(frozen=True, slots=True)
class ChapterRows:
    """What a chapter is made from: its messages, by row number and as they came. origin: of the
    text it has now, None without one. threads: by number, those that were open before it."""

    pk: int
    pks: tuple[int, ...]
    raws: tuple[str, ...]
    origin: str | None
    threads: tuple[tuple[int, str], ...] = ()


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


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a round without a text ends: due again at run_at_ms, or parked where that is None.

    stand_in: a text made without a model, to be stored unless there is one already.
    """

    run_at_ms: int | None
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
    limit: int,
) -> list[Held]:
    """Lease what is due, after `choose` has named the backend of rows that have none yet.

    A row whose span has a text already, made without a model, goes last: its further rounds may not
    keep a span that nothing tells yet waiting until the ceiling cuts it.
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
    return told | {job.pk for job in gists if _newest_made(connection, job) is not None}


def load_ratios(
    connection: Connection, conversation_pk: int, backends: Sequence[str]
) -> dict[str, float]:
    """Characters per token as learned in this conversation, of the backends that said so."""
    learned = {
        name: token_ratios.token_ratio(connection, conversation_pk, name) for name in backends
    }
    return {name: ratio for name, ratio in learned.items() if ratio is not None}


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


def load_gist(
    connection: Connection, job: JobRow, origin: Origin, policy: Policy
) -> GistRows | None:
    """The notes of a gist's job, each in its newest text: a stand-in that the fold still showed may
    have its real chapter by now. None where they are gone, or where the earlier gist was undone."""
    found = _read_sources(connection, job)
    if found is None:
        return None
    chapters, earlier = found
    newest = _newest_made(connection, job)
    notes = [earlier.text] if earlier is not None else []
    return GistRows(
        tuple(filter(None, [*notes, *(row.text for row in chapters)])),
        _versions_of(chapters),
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


def _newest_made(connection: Connection, job: JobRow) -> GistRow | None:
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


def save_gist(connection: Connection, held: Held, draft: Draft, now_ms: int) -> bool:
    """Store a gist and finish its job. What it had no room for goes into the ledger.

    False where the lease is lost, where its owner wrote or undid it meanwhile, and where what it
    was made from is no more what it was: then it is made anew at once.
    """
    job = held.job
    if not leases.held(connection, job.pk, held.lease):
        return False
    newest = _newest_made(connection, job)
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
    is_stored = outcome.stand_in is not None and _add_stand_in(
        connection, job, outcome.stand_in, now_ms
    )
    kind, said = outcome.kind, outcome.said
    if outcome.run_at_ms is None:
        leases.park(connection, job.pk, lease, kind, said, now_ms)
    else:
        leases.postpone(connection, job.pk, lease, outcome.run_at_ms, kind, said, now_ms)
    return is_stored


def _add_stand_in(connection: Connection, job: JobRow, text: str, now_ms: int) -> bool:
    """A text made without a model, unless there is one; the job goes on for its successor."""
    if job.kind == "gist":
        if _newest_made(connection, job) is not None or not _is_as_read(connection, job):
            return False
        _add_gist(connection, job, text, None, now_ms)
        return True
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
