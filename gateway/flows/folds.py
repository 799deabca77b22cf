"""Applying fold plans: rows in, `policies.folding` decides, rows out.

A view's state is loaded only when its size calls for a decision; the size itself is one
subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from gateway.flows.backgrounds import (
    Choice,
    Place,
    background_cost,
    choose_background,
    find_unlisted,
)
from gateway.flows.debts import Order, add_debt, add_gist_job
from gateway.flows.notes import spent_chars
from gateway.flows.stand_ins import condense_rows, write_chapter_stand_in
from gateway.flows.undone import unfold
from gateway.prompts.memory import CHAPTER_COST, FIXED_COST, GIST_COST, render_memory
from gateway.store import attempts, chapter_rows, fold_rows, gist_rows, transcript
from gateway.store.chapter_rows import ChapterRow
from gateway.store.fold_rows import NONE, FoldRow, Shown
from gateway.store.gist_rows import GistRow
from gateway.store.transcript import ConversationRow, Node, StoredMessage
from policies.folding import plan_debt, plan_fold, plan_token_cut
from policies.generations import plan_gist_stand_in, plan_major
from policies.schema import Policy
from policies.values import ChapterState, Fold, GistState, Limits, Mark, Span, ViewState


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

    @property
    def place(self) -> Place:
        """Where it is chosen what stands beside the chapters."""
        known = self.conversation
        return Place(known.owner_pk, known.pk, self.policy, self.limits, self.head)

    @property
    def order(self) -> Order:
        """For work that a turn causes."""
        due_ms = self.now_ms + self.delay_ms
        return Order(self.conversation.pk, self.policy.name, due_ms, self.now_ms)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A view's state with the rows it was read from."""

    fold: FoldRow | None
    state: ViewState
    tail: Sequence[StoredMessage]
    stack: Sequence[ChapterRow]
    coming: Sequence[ChapterRow]
    gist: GistRow | None


def measure(connection: Connection, site: Site, fold: FoldRow | None) -> int:
    """What start and ceiling are compared with: memory, verbatim and notes in characters, or the
    messages of the tail where a view counts these."""
    if site.limits.messages:
        return count_tail(fold, site.head)
    notes = spent_chars(connection, site.conversation.pk, site.policy, fold, site.head)
    return sum(sizes(fold, site.head)) + notes


def count_tail(fold: FoldRow | None, head: Node) -> int:
    """The messages that a view shows verbatim."""
    return head.depth - (fold.border_depth if fold else 0)


def sizes(fold: FoldRow | None, head: Node) -> tuple[int, int]:
    """(memory, verbatim) of a view in characters."""
    if fold is None:
        return 0, head.cum_chars
    return fold.memory_chars, head.cum_chars - fold.border_cum


@dataclass(frozen=True, slots=True)
class MemoryRows:
    """What a fold shows and what could be shown behind it on the path to a head.

    stack: the fold's chapters behind the gist, each with its newest version (chapters that another
    branch has left on this path may overlap it). gist: the newest that takes the place of those
    that it covers. coming: the chapters beyond the border. ahead: gists over some of these. fixed:
    what the next memory costs beside all these, at most.
    """

    border: int
    gist: GistRow | None
    stack: Sequence[ChapterRow]
    coming: Sequence[ChapterRow]
    ahead: Sequence[GistRow]
    fixed: int = FIXED_COST

    @property
    def rows(self) -> list[ChapterRow]:
        return [*self.stack, *self.coming]

    def state(self, memory_chars: int = 0, tail: tuple[Mark, ...] = ()) -> ViewState:
        """As planning sees it; memory_chars: what the memory shown now costs."""
        return ViewState(
            border=self.border,
            memory=memory_chars,
            tail=tail,
            coming=tuple(map(_chapter_state, self.coming)),
            stack=tuple(map(_chapter_state, self.stack)),
            gist=_gist_state(self.gist),
            ahead=tuple(GistState(row.last_depth, len(row.text) + GIST_COST) for row in self.ahead),
            fixed=self.fixed,
        )


def load_whole_memory(connection: Connection, site: Site, fold: FoldRow | None) -> MemoryRows:
    """The rows of a view's memory, with what stands beside them."""
    pk, name = site.conversation.pk, site.policy.name
    rows = load_memory(connection, pk, name, site.head, fold)
    return replace(rows, fixed=FIXED_COST + background_cost(connection, site.place))


def load_memory(
    connection: Connection, conversation_pk: int, policy: str, head: Node, fold: FoldRow | None
) -> MemoryRows:
    """The chapters and gists of a view's memory, without its tail."""
    border = fold.border_depth if fold else 0
    shown = chapter_rows.chapters_of_fold(connection, conversation_pk, fold) if fold else []
    if fold is not None and fold.gist_pk is not None:
        shown = [*unfold(connection, conversation_pk, fold.gist_pk), *shown]
    ends = {border, *(row.last_depth for row in shown), *(row.first_depth - 1 for row in shown)}
    gist = gist_rows.newest_gist(
        connection, conversation_pk, policy, head, border=border, ends=ends
    )
    covered = gist.last_depth if gist else 0
    coming = chapter_rows.chapter_row(connection, conversation_pk, head, above=border)
    ahead = gist_rows.gists_beyond(
        connection,
        conversation_pk,
        policy,
        head,
        border=border,
        ends={row.last_depth for row in coming},
    )
    stack = [row for row in shown if row.first_depth > covered]
    return MemoryRows(border, gist, stack, coming, ahead)


def load_state(connection: Connection, site: Site, fold: FoldRow | None) -> Loaded:
    """Everything a plan looks at: reads the tail, the stack and what is chaptered beyond."""
    rows = load_whole_memory(connection, site, fold)
    tail = transcript.path_between(connection, site.head.pk, rows.border)
    marks = tuple(
        Mark(row.depth, row.chars, row.opens, row.role in ("tool", "function")) for row in tail
    )
    notes = spent_chars(connection, site.conversation.pk, site.policy, fold, site.head)
    state = replace(rows.state(fold.memory_chars if fold else 0, marks), notes=notes)
    return Loaded(fold, state, tail, rows.stack, rows.coming, rows.gist)


def _gist_state(gist: GistRow | None) -> GistState | None:
    return None if gist is None else GistState(gist.last_depth, len(gist.text) + GIST_COST)


def _chapter_state(row: ChapterRow) -> ChapterState:
    return ChapterState(
        first=row.first_depth,
        last=row.last_depth,
        source_chars=row.source_chars,
        length=None if row.text is None else len(row.text) + CHAPTER_COST,
        stand_in=row.origin == "stand-in",
    )


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
    if total > site.limits.start and not _was_asked(connection, site):
        folded = _fold_down(connection, site, fold)
        if folded is not fold:
            _clear_renewal(connection, site)
            return folded
    return _renew(connection, site, fold) if site.head.opens else fold


def _renew(connection: Connection, site: Site, fold: FoldRow | None) -> FoldRow | None:
    renewal = plan_renewal(connection, site, fold)
    if renewal is None or _was_asked(connection, site):
        return fold
    _clear_renewal(connection, site)
    if fold is not None and renewal.is_shown_by(fold):
        return fold
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


def _clear_renewal(connection: Connection, site: Site) -> None:
    if site.conversation.renew:
        fold_rows.clear_renewal(connection, site.conversation.pk)


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
    state = replace(loaded.state, gist=_gist_state(gist), stack=tuple(map(_chapter_state, stack)))
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
    shown = _shown_by(connection, site, loaded, plan.border, taken)
    kind = _kind(connection, site, plan)
    return _write_fold(connection, site, _border(loaded, plan), kind, shown)


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a fold's memory tells: a gist and the chapters behind it, oldest first; and what stands
    beside them."""

    gist: GistRow | None
    chapters: Sequence[ChapterRow]
    beside: Choice

    def foreseen(self, border: int) -> Foreseen:
        """As a fold to this border."""
        gist_pk = self.gist.pk if self.gist else None
        return Foreseen(border, gist_pk, _versions(self.chapters), self.beside.shown)


def _shown_by(
    connection: Connection, site: Site, loaded: Loaded, border: int, taken: Sequence[int]
) -> _Shown:
    """What a fold to this border shows that takes in these chapters."""
    rows = [*loaded.stack, *chapter_rows.chapters_by_pk(connection, site.conversation.pk, taken)]
    gist = _gist_within(connection, site, loaded.gist, rows, border)
    covered = gist.last_depth if gist else 0
    told = [row for row in rows if row.first_depth > covered]
    _check_unbroken(gist, told, border)
    beside = choose_background(connection, site.place, border=border, covered=covered)
    return _Shown(gist, told, beside)


@dataclass(frozen=True, slots=True)
class Foreseen:
    """The fold that the next user message takes, whatever it says: the depth of its border, and
    its memory as row numbers, the chapter versions oldest first."""

    border_depth: int
    gist_pk: int | None
    versions: tuple[int, ...]
    shown: Shown = NONE

    @classmethod
    def of(cls, fold: FoldRow) -> Foreseen:
        """One that is there already."""
        return cls(fold.border_depth, fold.gist_pk, fold.memory, fold.shown)


def foresee_fold(connection: Connection, site: Site, fold: FoldRow | None) -> Foreseen | None:
    """The fold that a user message behind `site.head` will see first; None where it will see what
    is shown now, or a cut. Writes nothing.

    Only a message that alone brings the view to the ceiling is shown something else.
    """
    if measure(connection, site, fold) <= site.limits.start:
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
    shown = _shown_by(connection, site, loaded, plan.border, taken)
    return shown.foreseen(plan.border)


def _foresee_renewal(connection: Connection, site: Site, fold: FoldRow | None) -> Foreseen | None:
    renewal = plan_renewal(connection, site, fold)
    if renewal is None or (fold is not None and renewal.is_shown_by(fold)):
        return None
    return renewal.shown.foreseen(fold.border_depth if fold else 0)


@dataclass(frozen=True, slots=True)
class Renewal:
    """A memory that is to be shown anew at the border where it is."""

    kind: str
    shown: _Shown

    def is_shown_by(self, fold: FoldRow) -> bool:
        """Whether a fold shows just this already."""
        return self.shown.foreseen(fold.border_depth) == Foreseen.of(fold)


def plan_renewal(connection: Connection, site: Site, fold: FoldRow | None) -> Renewal | None:
    """What a user message at `site`, or the next one behind it, is shown without a step of the
    border: the opening of a view that begins with something to show, or what the owner asked to
    be shown at once."""
    if fold is None and not site.conversation.renew and not _begins(connection, site):
        return None
    if fold is not None and not site.conversation.renew:
        return None
    shown = _shown_anew(connection, site, fold)
    if fold is not None or site.conversation.renew:
        return Renewal("renewal", shown) if fold is not None or shown.beside.shown else None
    cost = 0 if site.limits.messages else FIXED_COST + shown.beside.background.cost
    fits = measure(connection, site, None) + cost <= site.limits.start
    return Renewal("opening", shown) if shown.beside.shown and fits else None


def _begins(connection: Connection, site: Site) -> bool:
    """Whether a view of this policy begins here: at a first message, or where the conversation
    comes from another policy's views."""
    if site.head.opens and not site.head.anchored:
        return True
    return not attempts.was_used(connection, site.conversation.pk, site.policy.name)


def _shown_anew(connection: Connection, site: Site, fold: FoldRow | None) -> _Shown:
    if fold is None:
        return _Shown(None, [], choose_background(connection, site.place, border=0))
    rows = load_memory(connection, site.conversation.pk, site.policy.name, site.head, fold)
    covered = rows.gist.last_depth if rows.gist else 0
    _check_unbroken(rows.gist, rows.stack, rows.border)
    beside = choose_background(connection, site.place, border=rows.border, covered=covered)
    return _Shown(rows.gist, rows.stack, beside)


def _versions(chapters: Sequence[ChapterRow]) -> tuple[int, ...]:
    return tuple(row.version_pk for row in chapters if row.version_pk is not None)


def _gist_within(
    connection: Connection,
    site: Site,
    planned: GistRow | None,
    shown: Sequence[ChapterRow],
    border: int,
) -> GistRow | None:
    """The planned gist, or one that covers more: on a branch the chapters that a step takes in may
    lie behind a gist already."""
    return gist_rows.newest_gist(
        connection,
        site.conversation.pk,
        site.policy.name,
        site.head,
        border=border,
        ends={planned.last_depth if planned else 0, *(row.last_depth for row in shown)},
    )


def rows_of(loaded: Loaded, first: int, last: int) -> list[StoredMessage]:
    start = loaded.state.border + 1
    return list(loaded.tail[first - start : last + 1 - start])


def _write_fold(
    connection: Connection, site: Site, border: tuple[int, int, int], kind: str, shown: _Shown
) -> FoldRow:
    gist, chapters = shown.gist, shown.chapters
    texts = [row.text or "" for row in chapters]
    rendered = render_memory(gist.text if gist else None, texts, shown.beside.background)
    origins = [row.origin for row in chapters] + ([gist.origin] if gist else [])
    fold = fold_rows.add_fold(
        connection,
        site.conversation.pk,
        policy=site.policy.name,
        at=site.head,
        border=border,
        kind=kind,
        gist_pk=gist.pk if gist else None,
        memory=_versions(chapters),
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


def _check_unbroken(gist: GistRow | None, shown: Sequence[ChapterRow], border: int) -> None:
    """Raises where gist and chapters would not tell every message up to the border exactly once:
    a turn that fails is better than a past that is lost."""
    end = gist.last_depth if gist else 0
    for row in shown:
        if row.first_depth != end + 1 or row.version_pk is None:
            raise RuntimeError(f"chapter {row.id} does not follow depth {end}")
        end = row.last_depth
    if end != border:
        raise RuntimeError(f"the memory ends at depth {end}, the border is {border}")


def _plan_gist(
    connection: Connection, site: Site, gist: GistRow | None, shown: Sequence[ChapterRow]
) -> None:
    """A major GC in the background, where the stack that is shown now has grown too long."""
    states = [_chapter_state(row) for row in shown]
    major = plan_major(site.limits, _gist_state(gist), states)
    if major is None:
        return
    folded = [shown[index] for index in major.chapters]
    pk, name = site.conversation.pk, site.policy.name
    if gist_rows.retired_at(connection, pk, name, folded[-1].last_pk) is None:
        add_gist_job(connection, site.order, gist, folded)


def plan_chapters(connection: Connection, site: Site, fold: FoldRow | None) -> int | None:
    """After a turn: rows and jobs for the debt. Returns when the first job is due."""
    if measure(connection, site, fold) <= site.limits.start:
        return None
    loaded = load_state(connection, site, fold)
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
