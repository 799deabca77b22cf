"""A view's state as plans look at it: rows in, values out.

It is loaded only when a view's size calls for a decision; the size itself is one subtraction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from gateway.flows.backgrounds import (
    Place,
    background_cost,
)
from gateway.flows.debts import Order
from gateway.flows.notes import spent_chars
from gateway.flows.undone import unfold
from gateway.prompts.memory import CHAPTER_COST, FIXED_COST, GIST_COST
from gateway.store import chapter_rows, gist_rows, transcript
from gateway.store.chapter_rows import ChapterRow
from gateway.store.fold_rows import FoldRow
from gateway.store.gist_rows import GistRow
from gateway.store.transcript import ConversationRow, Node, StoredMessage
from policies.folding import least_told
from policies.schema import Policy
from policies.values import ChapterState, GistState, Limits, Mark, ViewState


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
    place = (site.conversation, site.policy.name, fold, site.head)
    return size_of_view(site, fold, spent_chars(connection, *place))


def size_of_view(site: Site, fold: FoldRow | None, notes: int) -> int:
    """As measure, where what notes add is known."""
    if site.limits.messages:
        return count_tail(fold, site.head)
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
            coming=tuple(map(chapter_state, self.coming)),
            stack=tuple(map(chapter_state, self.stack)),
            gist=gist_state(self.gist),
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


def load_state(
    connection: Connection, site: Site, fold: FoldRow | None, memory: MemoryRows | None = None
) -> Loaded:
    """Everything a plan looks at: reads the tail, the stack and what is chaptered beyond. memory:
    the last two, where they were read."""
    rows = memory or load_whole_memory(connection, site, fold)
    tail = transcript.path_between(connection, site.head.pk, rows.border)
    marks = tuple(
        Mark(row.depth, row.chars, row.opens, row.role in ("tool", "function")) for row in tail
    )
    notes = spent_chars(connection, site.conversation, site.policy.name, fold, site.head)
    state = replace(rows.state(fold.memory_chars if fold else 0, marks), notes=notes)
    return Loaded(fold, state, tail, rows.stack, rows.coming, rows.gist)


def has_news(connection: Connection, site: Site, fold: FoldRow | None) -> bool:
    """Whether an ordinary fold has anything to show that this one does not: the next chapter is
    written, or a text of what is shown came later. Where nothing is, no plan folds below the
    ceiling, and the tail need not be read for it. That less stands beside the same chapters is not
    worth a prompt that is read anew."""
    pk = site.conversation.pk
    if any(row.length is not None for row in _coming(connection, site, fold)[:1]):
        return True
    if fold is None:
        return False
    # Row numbers part what came in the millisecond of the fold itself.
    if chapter_rows.told_last(connection, pk) > (fold.created_ms, max(fold.memory, default=0)):
        return True
    return gist_rows.is_made_since(connection, pk, site.policy.name, fold)


def is_asked_for(connection: Connection, site: Site, fold: FoldRow | None) -> bool:
    """Whether a chapter beyond the border is on its way, or written."""
    return bool(_coming(connection, site, fold))


def is_indebted(connection: Connection, site: Site, fold: FoldRow | None, total: int) -> bool:
    """Whether no more debt is planned, as can be told without texts: the chapters that are asked
    for already make room enough, or too little stands behind them to be worth one (`plan_debt`
    says the same of the whole state). total: what `measure` says. What will stand beside the
    chapters is reckoned at its most; new documents are not known here."""
    limits = site.limits
    if limits.messages or site.conversation.renew_after is not None:
        return False
    rows = _coming(connection, site, fold)
    if not rows:
        return False
    source = sum(row.source_chars for row in rows)
    memory = fold.memory_chars if fold else 0
    if total - memory - source - limits.keep < least_told(limits):
        return True
    told = [limits.length if row.length is None else row.length for row in rows]
    added = sum(told) + CHAPTER_COST * len(told)
    beside = FIXED_COST + limits.profile + limits.ledger + min(limits.pins, limits.documents)
    return total - source + added + beside <= limits.enough


def _coming(
    connection: Connection, site: Site, fold: FoldRow | None
) -> Sequence[chapter_rows.ChapterEnd]:
    above_pk, above = (fold.border_pk, fold.border_depth) if fold else (0, 0)
    return chapter_rows.chapter_ends(
        connection, site.conversation.pk, site.head, above_pk=above_pk, above=above
    )


def gist_state(gist: GistRow | None) -> GistState | None:
    return None if gist is None else GistState(gist.last_depth, len(gist.text) + GIST_COST)


def chapter_state(row: ChapterRow) -> ChapterState:
    return ChapterState(
        first=row.first_depth,
        last=row.last_depth,
        source_chars=row.source_chars,
        length=None if row.text is None else len(row.text) + CHAPTER_COST,
        stand_in=row.origin == "stand-in",
    )
