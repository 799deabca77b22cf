"""Applying fold plans: rows in, `policies.folding` decides, rows out.

A view's state is loaded only when its size calls for a decision; the size itself is one
subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from gateway.jobs.queue import enqueue
from gateway.prompts.span import span_lines
from gateway.prompts.view import CHAPTER_COST, FIXED_COST, GIST_COST, render_memory
from gateway.store import memory, transcript
from gateway.store.memory import ChapterRow, FoldRow, GistRow
from gateway.store.transcript import ConversationRow, Node, StoredMessage
from policies.folding import plan_debt, plan_fold, plan_token_cut
from policies.generations import plan_gist_stand_in, plan_major
from policies.schema import Policy
from policies.standin import condense, write_stand_in
from policies.values import ChapterState, Fold, GistState, Limits, Major, Mark, Span, ViewState


@dataclass(frozen=True, slots=True)
class Site:
    """Where a decision is made: one policy's view of one head of a conversation."""

    conversation: ConversationRow
    policy: Policy
    limits: Limits
    head: Node
    revision: str
    now_ms: int

    @property
    def delay_ms(self) -> int:
        return int(self.policy.summaries.delay * 1000)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A view's state with the rows it was read from."""

    state: ViewState
    tail: Sequence[StoredMessage]
    stack: Sequence[ChapterRow]
    coming: Sequence[ChapterRow]
    gist: GistRow | None


def sizes(fold: FoldRow | None, head: Node) -> tuple[int, int]:
    """(memory, verbatim) of a view in characters."""
    if fold is None:
        return 0, head.cum_chars
    return fold.memory_chars, head.cum_chars - fold.border_cum


def load_state(connection: Connection, site: Site, fold: FoldRow | None) -> Loaded:
    """Everything a plan looks at: reads the tail, the stack and what is chaptered beyond."""
    border = fold.border_depth if fold else 0
    gist = memory.newest_gist(
        connection, site.conversation.pk, site.policy.name, site.head, border=border
    )
    covered = gist.last_depth if gist else 0
    rows = memory.chapter_row(connection, site.conversation.pk, site.head, above=covered)
    tail = transcript.path_between(connection, site.head.pk, border)
    stack = [row for row in rows if row.last_depth <= border]
    coming = [row for row in rows if row.first_depth > border]
    state = ViewState(
        border=border,
        memory=fold.memory_chars if fold else 0,
        tail=tuple(
            Mark(row.depth, row.chars, row.opens, row.role in ("tool", "function")) for row in tail
        ),
        coming=tuple(map(_chapter_state, coming)),
        stack=tuple(map(_chapter_state, stack)),
        gist=None if gist is None else GistState(covered, len(gist.text) + GIST_COST),
        fixed=FIXED_COST,
    )
    return Loaded(state, tail, stack, coming, gist)


def _chapter_state(row: ChapterRow) -> ChapterState:
    return ChapterState(
        first=row.first_depth,
        last=row.last_depth,
        source_chars=row.source_chars,
        length=None if row.text is None else len(row.text) + CHAPTER_COST,
        stand_in=row.origin == "stand-in",
    )


def fold_if_due(connection: Connection, site: Site, fold: FoldRow | None) -> FoldRow | None:
    """The fold that this turn's view stands on: a new one where the plan says so."""
    if sum(sizes(fold, site.head)) <= site.limits.start:
        return fold
    loaded = load_state(connection, site, fold)
    plan = plan_fold(site.limits, loaded.state)
    condensed = False
    while major := plan_gist_stand_in(site.limits, loaded.state, plan):
        _condense(connection, site, loaded, major)
        condensed = True
        loaded = load_state(connection, site, fold)
        plan = plan_fold(site.limits, loaded.state)
    if plan is None:
        return fold
    kind = "cut" if condensed else plan.kind
    return apply_fold(connection, site, loaded, replace(plan, kind=kind), fold)


def _condense(connection: Connection, site: Site, loaded: Loaded, major: Major) -> None:
    """The older half of a stack that no model folded, as a gist made on the spot."""
    rows = [loaded.stack[index] for index in major.chapters]
    old = [loaded.gist.text] if loaded.gist else []
    text = condense([*old, *(row.text or "" for row in rows)], site.limits.gist_length)
    memory.add_gist(
        connection,
        site.conversation.pk,
        policy=site.policy.name,
        last_pk=rows[-1].last_pk,
        last_depth=rows[-1].last_depth,
        sources=[row.version_pk for row in rows if row.version_pk is not None],
        text=_told(text),
        origin="stand-in",
        backend=None,
        prompt=None,
        now_ms=site.now_ms,
    )


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
    return None if plan is None else apply_fold(connection, site, loaded, plan, fold)


def apply_fold(
    connection: Connection, site: Site, loaded: Loaded, plan: Fold, before: FoldRow | None
) -> FoldRow:
    """Write a planned fold: stand-ins for what has no chapter, the fold, a major GC's job.

    A plan that keeps the border of the fold before it renews the memory only.
    """
    for index in plan.stand_ins:
        row = loaded.coming[index]
        _write_stand_in(connection, site, row.pk, _rows_of(loaded, row.first_depth, row.last_depth))
    for span in plan.new_spans:
        rows = _rows_of(loaded, span.first, span.last)
        pk = _add_debt(connection, site, span, rows)
        _write_stand_in(connection, site, pk, rows)
    return _write_fold(connection, site, loaded, plan, before)


def _rows_of(loaded: Loaded, first: int, last: int) -> list[StoredMessage]:
    start = loaded.state.border + 1
    return list(loaded.tail[first - start : last + 1 - start])


def _write_stand_in(
    connection: Connection, site: Site, chapter_pk: int, rows: Sequence[StoredMessage]
) -> None:
    lines = span_lines([row.raw for row in rows])
    memory.add_version(
        connection,
        site.conversation.pk,
        chapter_pk,
        text=_told(write_stand_in(lines, site.limits.length)),
        origin="stand-in",
        backend=None,
        prompt=None,
        now_ms=site.now_ms,
    )


def _told(text: str) -> str:
    """A stand-in's text as a database can hold it; a span of refusals only leaves none."""
    return text.replace("\x00", "\ufffd") or "(…)"


def _border(loaded: Loaded, plan: Fold, before: FoldRow | None) -> tuple[int, int, int]:
    if plan.border == loaded.state.border:
        assert before is not None
        return before.border_pk, before.border_depth, before.border_cum
    last = loaded.tail[plan.border - loaded.state.border - 1]
    return last.pk, last.depth, last.cum_chars


def _write_fold(
    connection: Connection, site: Site, loaded: Loaded, plan: Fold, before: FoldRow | None
) -> FoldRow:
    covered = loaded.gist.last_depth if loaded.gist else 0
    shown = [
        row
        for row in memory.chapter_row(connection, site.conversation.pk, site.head, above=covered)
        if row.last_depth <= plan.border and row.version_pk is not None
    ]
    texts = [row.text or "" for row in shown]
    rendered = render_memory(loaded.gist.text if loaded.gist else None, texts)
    fold = memory.add_fold(
        connection,
        site.conversation.pk,
        policy=site.policy.name,
        at=site.head,
        border=_border(loaded, plan, before),
        kind=plan.kind,
        gist_pk=loaded.gist.pk if loaded.gist else None,
        memory=[row.version_pk for row in shown if row.version_pk is not None],
        memory_chars=sum(len(message["content"]) for message in rendered),
        stand_ins=sum(row.origin == "stand-in" for row in shown),
        revision=site.revision,
        now_ms=site.now_ms,
    )
    _plan_gist(connection, site, loaded.gist, shown)
    return fold


def _plan_gist(
    connection: Connection, site: Site, gist: GistRow | None, shown: Sequence[ChapterRow]
) -> None:
    """A major GC in the background, where the stack that is shown now has grown too long."""
    known = None if gist is None else GistState(gist.last_depth, len(gist.text) + GIST_COST)
    major = plan_major(site.limits, known, [_chapter_state(row) for row in shown])
    if major is None:
        return
    folded = [shown[index] for index in major.chapters]
    payload: dict[str, Any] = {
        "gist": gist.pk if gist else None,
        "chapters": [row.version_pk for row in folded],
        "last_pk": folded[-1].last_pk,
        "last_depth": folded[-1].last_depth,
    }
    enqueue(
        connection,
        key=f"gist:{site.conversation.pk}:{site.policy.name}:{folded[-1].last_pk}",
        kind="gist",
        conversation_pk=site.conversation.pk,
        policy=site.policy.name,
        payload=payload,
        run_at_ms=site.now_ms + site.delay_ms,
        backend=None,
        now_ms=site.now_ms,
    )


def plan_chapters(connection: Connection, site: Site, fold: FoldRow | None) -> int | None:
    """After a turn: rows and jobs for the debt. Returns when the first job is due."""
    if sum(sizes(fold, site.head)) <= site.limits.start:
        return None
    loaded = load_state(connection, site, fold)
    debt = plan_debt(site.limits, loaded.state)
    if debt is None:
        return None
    for span in debt.spans:
        _add_debt(connection, site, span, _rows_of(loaded, span.first, span.last))
    return site.now_ms + site.delay_ms


def _add_debt(connection: Connection, site: Site, span: Span, rows: Sequence[StoredMessage]) -> int:
    pk, is_new = memory.add_chapter(
        connection,
        site.conversation.pk,
        span,
        first_pk=rows[0].pk,
        last_pk=rows[-1].pk,
        now_ms=site.now_ms,
    )
    if is_new:
        enqueue(
            connection,
            key=f"chapter:{pk}",
            kind="chapter",
            conversation_pk=site.conversation.pk,
            policy=site.policy.name,
            payload={"chapter": pk},
            run_at_ms=site.now_ms + site.delay_ms,
            backend=None,
            now_ms=site.now_ms,
        )
    return pk
