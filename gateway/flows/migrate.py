"""Moving a conversation to a smaller view: chapters for all of its backlog, before it is shown.

Nothing of a move is kept but chapter rows and their jobs, so it can break off at any point: the
next turn plans what is still missing, on whatever branch and for whatever backend it stands then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from gateway.flows.debts import Order, add_gist_job, chapter_key
from gateway.flows.folds import find_threads
from gateway.flows.outlines import Outline, load_outline, outline_behind, renew_outline
from gateway.flows.stand_ins import condense_rows, write_chapter_stand_in
from gateway.flows.states import MemoryRows, Site, load_memory, load_whole_memory, measure
from gateway.jobs import queue
from gateway.jobs.rows import JobRow
from gateway.store import attempts, chapter_rows, fold_rows, gist_rows, transcript
from gateway.store.chapter_rows import ChapterRow
from gateway.store.fold_rows import FoldRow
from gateway.store.gist_rows import GistEnd, GistRow
from gateway.store.moves import Progress, count_progress
from gateway.store.origins import find_origin
from gateway.store.transcript import Node
from policies.backlog import is_warm, plan_backlog, plan_warm
from policies.budget import limits_of
from policies.generations import plan_gist_ahead, plan_major
from policies.schema import Policy
from policies.values import Debt, Limits, Mark

_LIVE = ("queued", "leased")


def open_migration(
    connection: Connection, site: Site, fold: FoldRow | None, *, backend: str
) -> Progress | None:
    """Ask at once for what the view at `site` lacks; None where it can be shown now.

    site, fold: the view that the conversation would have on the backend to which it is to move.
    Work that was given up gives way to stand-ins here, so that no move waits for it.
    """
    if measure(connection, site, fold) < site.limits.ceiling:
        return None
    if attempts.was_asked(connection, site.head.pk, site.policy.name):
        return None
    more = {"ahead": site.policy.name, "to": backend}
    order = Order(site.conversation.pk, site.policy.name, site.now_ms, site.now_ms, more)
    outline = load_outline(connection, site, fold)
    while True:
        backlog = plan_outlined(site, outline)
        if backlog is None:
            return None
        outline.add_spans(connection, order, backlog.spans)
        is_changed = _hurry_chapters(connection, site, order, outline)
        if backlog.spans:
            outline = renew_outline(connection, site, outline)
        if not is_changed and not _hurry_gist(connection, site, order, outline):
            break
        outline = renew_outline(connection, site, outline)
    return count_progress(
        connection,
        site.conversation.pk,
        outline.rows.coming,
        backend=backend,
        policy=site.policy.name,
    )


def plan_outlined(site: Site, outline: Outline) -> Debt | None:
    """The backlog at the user message that a move is decided at: between two turns, at one that
    says nothing yet."""
    state = outline.state
    if not site.head.opens:
        coming = Mark(site.head.depth + 1 - outline.shift, 0, opens=True)
        state = replace(state, tail=(*state.tail, coming))
    planned = plan_backlog(site.limits, state)
    return None if planned is None else outline.place(planned)


def _hurry_chapters(connection: Connection, site: Site, order: Order, outline: Outline) -> bool:
    """Make the jobs of chapters without a text due now. True where one was given up, by whomever,
    and its chapter got a stand-in instead."""
    missing = {chapter_key(row.pk): row for row in outline.rows.coming if row.version_pk is None}
    states = queue.hurry_all(connection, missing, order.more, now_ms=site.now_ms)
    given_up = [row for key, row in missing.items() if states.get(key) not in _LIVE]
    for row in given_up:
        rows = transcript.path_between(connection, row.last_pk, row.first_depth - 1)
        write_chapter_stand_in(connection, order, row.pk, rows, site.limits)
    return bool(given_up)


def _hurry_gist(connection: Connection, site: Site, order: Order, outline: Outline) -> bool:
    """Ask for the gist that the view lacks, or make its job due. True where it was given up and a
    stand-in was made."""
    conversation_pk, name = site.conversation.pk, site.policy.name
    if (job := _find_gist_job(connection, conversation_pk, name, site.head)) is not None:
        queue.hurry(connection, job.key, order.more, now_ms=site.now_ms)
        return False
    ahead = _plan_ahead(outline.rows, site.limits)
    if ahead is None or add_gist_job(connection, order, ahead.gist, ahead.chapters):
        return False
    threads = find_threads(connection, site, outline.rows.border, ahead.chapters)
    condense_rows(connection, order, ahead.gist, ahead.chapters, site.limits, threads)
    return True


def _find_gist_job(
    connection: Connection, conversation_pk: int, policy: str, head: Node
) -> JobRow | None:
    """The gist that is being made for a view of this head and has no text yet: one at a time,
    because the next begins where it ends."""
    made = gist_rows.gist_ends(connection, conversation_pk, policy)
    for job in queue.live(connection, conversation_pk, "gist", policy):
        last_pk, last_depth = job.payload["last_pk"], job.payload["last_depth"]
        if last_pk not in made and transcript.on_path(connection, last_pk, last_depth, head):
            return job
    return None


@dataclass(frozen=True, slots=True)
class _Ahead:
    """The next gist over chapters that no fold shows yet: the one before it, and what joins it."""

    gist: GistRow | None
    chapters: Sequence[ChapterRow]


def _plan_ahead(rows: MemoryRows, limits: Limits) -> _Ahead | None:
    major = plan_gist_ahead(limits, rows.state())
    if major is None:
        return None
    gist = rows.ahead[-1] if rows.ahead else rows.gist
    return _Ahead(gist, [rows.rows[index] for index in major.chapters])


def _plan_more(rows: MemoryRows, limits: Limits) -> _Ahead | None:
    """The next gist over what is shown, where the last one has not made the stack small enough:
    a fold may add more chapters than a single major GC takes away."""
    state = rows.state()
    major = plan_major(limits, state.gist, state.stack)
    return None if major is None else _Ahead(rows.gist, [rows.stack[i] for i in major.chapters])


def _is_undone(connection: Connection, conversation_pk: int, policy: str, ahead: _Ahead) -> bool:
    last_pk = ahead.chapters[-1].last_pk
    return gist_rows.retired_at(connection, conversation_pk, policy, last_pk) is not None


def plan_next_gist(
    connection: Connection,
    conversation_pk: int,
    policy: Policy,
    payload: Mapping[str, Any],
    now_ms: int,
) -> None:
    """After a text that no view shows yet: ask for the gist of what has become too much, in a view
    that is made ahead of all its chapters, else of those that its newest fold shows.

    payload: of the job that wrote it.
    """
    origin = find_origin(connection, conversation_pk)
    if origin is None or origin.head_pk is None:
        return
    head = transcript.node_by_pk(connection, origin.head_pk)
    fold = fold_rows.deepest_fold(connection, conversation_pk, policy.name, head)
    # Chapters and gists are counted in characters, whatever the view is counted in.
    limits = limits_of(policy, 1.0)
    if _find_gist_job(connection, conversation_pk, policy.name, head) is not None:
        return
    rows = load_memory(connection, conversation_pk, policy.name, head, fold)
    ahead = _plan_ahead(rows, limits) if "ahead" in payload else _plan_more(rows, limits)
    if ahead is None or _is_undone(connection, conversation_pk, policy.name, ahead):
        return
    more = {key: payload[key] for key in ("ahead", "to") if key in payload}
    order = Order(conversation_pk, policy.name, now_ms, now_ms, more)
    add_gist_job(connection, order, ahead.gist, ahead.chapters)


def plan_warm_chapters(connection: Connection, site: Site) -> int | None:
    """After a turn under a larger view: what keeps this one ready. Returns when the first job is
    due."""
    if measure(connection, site, None) <= site.limits.start:
        return None  # so much is shown where nothing is folded: the look that costs nothing
    fold = fold_rows.deepest_fold(connection, site.conversation.pk, site.policy.name, site.head)
    if measure(connection, site, fold) <= site.limits.start or _is_warm(connection, site, fold):
        return None
    outline = load_outline(connection, site, fold)
    debt = plan_warm(site.limits, outline.state)
    if debt is None:
        return None
    order = replace(site.order, more={"ahead": site.policy.name})
    outline.add_spans(connection, order, outline.place(debt).spans)
    return order.run_at_ms


def _is_warm(connection: Connection, site: Site, fold: FoldRow | None) -> bool:
    """A look that reads neither the tail, which under a large view is long, nor a chapter that the
    newest gist covers."""
    conversation_pk, name, head = site.conversation.pk, site.policy.name, site.head
    gist = gist_rows.last_gist_end(connection, conversation_pk, name, head)
    if gist is not None and gist.last_depth > (fold.border_depth if fold else 0):
        return _is_warm_behind(connection, site, gist)
    rows = load_whole_memory(connection, site, fold)
    if not rows.coming:
        return False
    last = transcript.node_by_pk(connection, rows.coming[-1].last_pk)
    return is_warm(site.limits, rows.state(), _rest(site, last))


def _is_warm_behind(connection: Connection, site: Site, gist: GistEnd) -> bool:
    """The same, from a gist on that no fold shows yet."""
    rows = chapter_rows.chapter_ends(
        connection,
        site.conversation.pk,
        site.head,
        above_pk=gist.last_pk,
        above=gist.last_depth,
    )
    last = transcript.node_by_pk(connection, rows[-1].last_pk if rows else gist.last_pk)
    state = outline_behind(gist, rows)
    return is_warm(site.limits, state, _rest(site, last))


def _rest(site: Site, last: Node) -> int:
    """What stands behind a message, in the view's unit."""
    if site.limits.messages:
        return site.head.depth - last.depth
    return site.head.cum_chars - last.cum_chars
