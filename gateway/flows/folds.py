"""Applying fold plans: rows in, `policies.folding` decides, rows out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from gateway.flows.backgrounds import (
    find_unlisted,
)
from gateway.flows.debts import Order, add_debt, add_gist_job
from gateway.flows.memories import first_language
from gateway.flows.showings import (
    Foreseen,
    ShownMemory,
    plan_renewal,
    shown_by,
    versions_of,
)
from gateway.flows.stand_ins import condense_rows, write_chapter_stand_in
from gateway.flows.states import (
    Loaded,
    Site,
    chapter_state,
    gist_state,
    has_news,
    is_asked_for,
    is_indebted,
    load_state,
    load_whole_memory,
    measure,
    size_of_view,
    sizes,
)
from gateway.prompts.memory import render_memory
from gateway.store import attempts, fold_rows, gist_rows
from gateway.store.chapter_rows import ChapterRow
from gateway.store.fold_rows import FoldRow
from gateway.store.gist_rows import GistRow
from gateway.store.transcript import StoredMessage
from policies.folding import is_eased, is_look_due, plan_debt, plan_fold, plan_token_cut
from policies.generations import plan_gist_stand_in, plan_major
from policies.values import Fold, Mark, Span


def fold_if_due(
    connection: Connection, site: Site, fold: FoldRow | None, total: int | None = None
) -> FoldRow | None:
    """The fold that this turn's view stands on: a new one where the plan says so, or where what
    stands beside the chapters is to be shown anew.

    A message that was asked before under this policy keeps the view that it saw (law 3), whatever
    became ready since. An ordinary fold waits for a user message (law 5); a cut cannot wait.
    total: what `measure` says, where it is known.
    """
    total = measure(connection, site, fold) if total is None else total
    if not (site.head.opens or total >= site.limits.ceiling):
        return fold
    can_fold = total >= site.limits.ceiling or (
        total > site.limits.start and has_news(connection, site, fold)
    )
    if can_fold and not _was_asked(connection, site):
        folded = _fold_down(connection, site, fold)
        if folded is not fold:
            return folded
    return _renew(connection, site, fold) if site.head.opens else fold


def _renew(connection: Connection, site: Site, fold: FoldRow | None) -> FoldRow | None:
    renewal = plan_renewal(connection, site, fold)
    if renewal is None or _was_asked(connection, site):
        return fold
    if renewal.shown.overflows(site, fold, site.head.cum_chars):
        return fold  # with this message; a memory that is shown anew never causes a cut
    border = (fold.border_pk, fold.border_depth, fold.border_cum) if fold else (0, 0, 0)
    return _write_fold(connection, site, border, renewal.kind, renewal.shown)


def _was_asked(connection: Connection, site: Site) -> bool:
    return attempts.was_asked(connection, site.head.pk, site.policy.name)


def _fold_down(connection: Connection, site: Site, fold: FoldRow | None) -> FoldRow | None:
    seen, folded = fold, _fold_once(connection, site, fold)
    # A long history that comes in whole is folded first and its many chapters condensed then.
    while folded is not seen:
        before, after = (measure(connection, site, one) for one in (seen, folded))
        if not site.limits.ceiling <= after < before:
            break
        seen, folded = folded, _fold_once(connection, site, folded)
    return folded


def _fold_once(connection: Connection, site: Site, fold: FoldRow | None) -> FoldRow | None:
    """The next step as planned on this fold; the same fold where there is none."""
    loaded = load_state(connection, site, fold)
    plan = plan_fold(site.limits, loaded.state)
    while major := plan_gist_stand_in(site.limits, loaded.state, plan):
        chapters = [loaded.stack[index] for index in major.chapters]
        threads = find_threads(connection, site, loaded.state.border, chapters)
        gist = condense_rows(connection, site.order, loaded.gist, chapters, site.limits, threads)
        loaded = _with_gist(loaded, gist)
        plan = plan_fold(site.limits, loaded.state)
        plan = None if plan is None else replace(plan, kind="cut")
    return fold if plan is None else apply_fold(connection, site, loaded, plan)


def find_threads(
    connection: Connection, site: Site, border: int, chapters: Sequence[ChapterRow]
) -> list[str]:
    """The open threads that a gist over these chapters must tell, because a fold to `border` has no
    room to list them."""
    covered = chapters[-1].last_depth
    rows = find_unlisted(connection, site.place, border=max(border, covered), covered=covered)
    return [row.text for row in rows]


def _with_gist(loaded: Loaded, gist: GistRow) -> Loaded:
    stack = [row for row in loaded.stack if row.first_depth > gist.last_depth]
    state = replace(loaded.state, gist=gist_state(gist), stack=tuple(map(chapter_state, stack)))
    return replace(loaded, state=state, stack=stack, gist=gist)


def cut_to_window(
    connection: Connection,
    site: Site,
    fold: FoldRow | None,
    *,
    ratio: float,
    room: int,
) -> FoldRow | None:
    """A deeper fold so that memory and verbatim cost at most `room` tokens; None: impossible."""
    loaded = load_state(connection, site, fold)
    tokens = [max(1, round(mark.chars / ratio)) for mark in loaded.state.tail]
    plan = plan_token_cut(site.limits, loaded.state, tokens=tokens, ratio=ratio, room=room)
    # A cut, also where every chapter was ready: it and its retries are told alike.
    return None if plan is None else apply_fold(connection, site, loaded, replace(plan, kind="cut"))


def apply_fold(connection: Connection, site: Site, loaded: Loaded, plan: Fold) -> FoldRow:
    """Write a planned fold: stand-ins for what has no chapter, the fold, a major GC's job.

    A plan that keeps the border of the fold before it renews the memory only.
    """
    taken = [loaded.coming[index].pk for index in plan.chapters]
    for index in plan.stand_ins:
        row = loaded.coming[index]
        rows = rows_of(loaded, row.first_depth, row.last_depth)
        write_chapter_stand_in(connection, site.order, row.pk, rows, site.limits)
    for span in plan.new_spans:
        rows = rows_of(loaded, span.first, span.last)
        pk = _add_debt(connection, site.order, span, rows)
        write_chapter_stand_in(connection, site.order, pk, rows, site.limits)
        taken.append(pk)
    shown = shown_by(connection, site, loaded, plan.border, taken)
    kind = _kind(connection, site, plan)
    return _write_fold(connection, site, _border(loaded, plan), kind, shown)


def foresee_fold(connection: Connection, site: Site, fold: FoldRow | None) -> Foreseen | None:
    """The fold that a user message behind `site.head` will see first; None where it will see what
    is shown now, or a cut. Writes nothing.

    Only a message that alone brings the view to the ceiling is shown something else.
    """
    total = measure(connection, site, fold)
    if total <= site.limits.start:
        return _foresee_renewal(connection, site, fold)
    if total < site.limits.ceiling and not has_news(connection, site, fold):
        return _foresee_renewal(connection, site, fold)
    loaded = load_state(connection, site, fold)
    coming = Mark(site.head.depth + 1, 0, opens=True)
    state = replace(loaded.state, tail=(*loaded.state.tail, coming))
    plan = plan_fold(site.limits, state)
    if plan_gist_stand_in(site.limits, state, plan):
        return None
    if plan is None:
        return _foresee_renewal(connection, site, fold)
    if plan.kind == "cut":
        return None
    taken = [loaded.coming[index].pk for index in plan.chapters]
    shown = shown_by(connection, site, loaded, plan.border, taken)
    return shown.foreseen(plan.border)


def _foresee_renewal(connection: Connection, site: Site, fold: FoldRow | None) -> Foreseen | None:
    renewal = plan_renewal(connection, site, fold)
    if renewal is None:
        return None
    return renewal.shown.foreseen(fold.border_depth if fold else 0)


def rows_of(loaded: Loaded, first: int, last: int) -> list[StoredMessage]:
    start = loaded.state.border + 1
    return list(loaded.tail[first - start : last + 1 - start])


def _write_fold(
    connection: Connection, site: Site, border: tuple[int, int, int], kind: str, shown: ShownMemory
) -> FoldRow:
    gist, chapters = shown.gist, shown.chapters
    texts = [row.text or "" for row in chapters]
    language = None if border[1] else first_language(connection, site.head.pk)
    told = gist.text if gist else None
    rendered = render_memory(told, texts, shown.beside.background, language=language)
    origins = [row.origin for row in chapters] + ([gist.origin] if gist else [])
    fold = fold_rows.add_fold(
        connection,
        site.conversation.pk,
        policy=site.policy.name,
        at=site.head,
        border=border,
        kind=kind,
        gist_pk=gist.pk if gist else None,
        memory=versions_of(chapters),
        memory_chars=sum(len(message["content"]) for message in rendered),
        stand_ins=origins.count("stand-in"),
        shown=shown.beside.shown,
        revision=site.revision,
        now_ms=site.now_ms,
    )
    _plan_gist(connection, site, gist, chapters)
    return fold


def _kind(connection: Connection, site: Site, plan: Fold) -> str:
    """What a fold is called: a migration where the conversation comes with it from another
    policy's view."""
    last = attempts.last_policy(connection, site.conversation.pk)
    if plan.kind == "fold" and last not in (None, site.policy.name):
        return "migration"
    return plan.kind


def _border(loaded: Loaded, plan: Fold) -> tuple[int, int, int]:
    """(row number, depth, cum_chars) of the last folded message; a renewal leaves it in place."""
    if plan.border == loaded.state.border:
        assert loaded.fold is not None, "a memory can be renewed only where there is one"
        return loaded.fold.border_pk, loaded.fold.border_depth, loaded.fold.border_cum
    last = loaded.tail[plan.border - loaded.state.border - 1]
    return last.pk, last.depth, last.cum_chars


def _plan_gist(
    connection: Connection, site: Site, gist: GistRow | None, shown: Sequence[ChapterRow]
) -> None:
    """A major GC in the background, where the stack that is shown now has grown too long."""
    states = [chapter_state(row) for row in shown]
    major = plan_major(site.limits, gist_state(gist), states)
    if major is None:
        return
    folded = [shown[index] for index in major.chapters]
    pk, name = site.conversation.pk, site.policy.name
    if gist_rows.retired_at(connection, pk, name, folded[-1].last_pk) is None:
        add_gist_job(connection, site.order, gist, folded)


def plan_chapters(
    connection: Connection, site: Site, fold: FoldRow | None, *, before: int, notes: int
) -> int | None:
    """After a turn: rows and jobs for the debt. Returns when the first job is due. before: the
    characters of the conversation before the turn. notes: what notes add to the view."""
    total, after = size_of_view(site, fold, notes), site.head.cum_chars
    if total <= site.limits.start:
        return None
    was_over = total - (after - before) > site.limits.start
    if was_over and not is_look_due(site.limits, before, after):
        if is_asked_for(connection, site, fold):
            return None
    if is_indebted(connection, site, fold, total):
        return None
    memory = load_whole_memory(connection, site, fold)
    if not site.limits.messages:
        rest = sizes(fold, site.head)[1] - sum(row.source_chars for row in memory.coming)
        if is_eased(site.limits, memory.state(), rest):
            return None  # as plan_debt would say, and the tail was not read for it
    loaded = load_state(connection, site, fold, memory)
    debt = plan_debt(site.limits, loaded.state)
    if debt is None:
        return None
    add_spans(connection, site.order, loaded, debt.spans)
    return site.order.run_at_ms


def add_spans(connection: Connection, order: Order, loaded: Loaded, spans: Sequence[Span]) -> None:
    """Chapter rows and their jobs for planned spans of a view's tail."""
    for span in spans:
        _add_debt(connection, order, span, rows_of(loaded, span.first, span.last))


def _add_debt(
    connection: Connection, order: Order, span: Span, rows: Sequence[StoredMessage]
) -> int:
    return add_debt(connection, order, span, first_pk=rows[0].pk, last_pk=rows[-1].pk)
