"""A view as planning sees it, without the messages that are chaptered behind its border.

Of a chaptered stretch a plan asks only where it ends, what it costs, and whether a tail may begin
before it. So each such chapter stands for one message here: what is read, and what planning takes,
grows with the chapters and with what is not chaptered yet, and not with the history.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from gateway.flows.debts import Order, add_debt
from gateway.flows.states import MemoryRows, Site, load_whole_memory
from gateway.prompts.memory import CHAPTER_COST, FIXED_COST, GIST_COST
from gateway.store import transcript
from gateway.store.chapter_rows import ChapterEnd, ChapterRow
from gateway.store.fold_rows import FoldRow
from gateway.store.gist_rows import GistEnd
from gateway.store.transcript import StoredMessage
from policies.values import ChapterState, Debt, GistState, Mark, Span, ViewState


@dataclass(frozen=True, slots=True)
class Outline:
    """state: with one mark for each chapter up to depth `start`, so that every depth behind it is
    less by `shift`. tail: the messages behind `start`."""

    fold: FoldRow | None
    rows: MemoryRows
    state: ViewState
    shift: int
    start: int
    tail: Sequence[StoredMessage]
    openings: Collection[int]

    def rows_of(self, span: Span) -> Sequence[StoredMessage]:
        """The messages of a span by its real depths."""
        return self.tail[span.first - self.start - 1 : span.last - self.start]

    def place(self, planned: Debt) -> Debt:
        """A debt that was planned on `state`, by its real depths."""
        spans = tuple(
            replace(span, first=span.first + self.shift, last=span.last + self.shift)
            for span in planned.spans
        )
        return Debt(planned.border + self.shift, spans)

    def add_spans(self, connection: Connection, order: Order, spans: Sequence[Span]) -> None:
        """Chapter rows and their jobs for spans behind `start`."""
        for span in spans:
            rows = self.rows_of(span)
            add_debt(connection, order, span, first_pk=rows[0].pk, last_pk=rows[-1].pk)


def load_outline(connection: Connection, site: Site, fold: FoldRow | None) -> Outline:
    """Reads the memory, and the messages behind the last chapter that ends before the head."""
    rows = load_whole_memory(connection, site, fold)
    told = [row for row in rows.coming if row.last_depth < site.head.depth]
    start = told[-1].last_depth if told else rows.border
    openings = transcript.find_openings(connection, [row.first_pk for row in told])
    tail = transcript.path_between(connection, site.head.pk, start)
    return _sketch(fold, rows, start, tail, openings)


def renew_outline(connection: Connection, site: Site, outline: Outline) -> Outline:
    """The same view after chapters or gists were added to its rows; reads no message again."""
    fold = outline.fold
    rows = load_whole_memory(connection, site, fold)
    return _sketch(fold, rows, outline.start, outline.tail, outline.openings)


def outline_behind(gist: GistEnd, rows: Sequence[ChapterEnd]) -> ViewState:
    """What stands behind a gist, as if a fold showed that gist already; without a tail."""
    coming = tuple(
        ChapterState(
            row.first_depth,
            row.last_depth,
            row.source_chars,
            None if row.length is None else row.length + CHAPTER_COST,
        )
        for row in rows
    )
    shown = GistState(gist.last_depth, gist.length + GIST_COST)
    return ViewState(gist.last_depth, 0, (), coming=coming, gist=shown, fixed=FIXED_COST)


def _sketch(
    fold: FoldRow | None,
    rows: MemoryRows,
    start: int,
    tail: Sequence[StoredMessage],
    openings: Collection[int],
) -> Outline:
    told = [row for row in rows.coming if row.last_depth <= start]
    shift = start - rows.border - len(told)
    plain = rows.state(fold.memory_chars if fold else 0)
    places = {row.last_depth: rows.border + at for at, row in enumerate(told, 1)}
    state = replace(
        plain,
        tail=(*_marks_of(told, rows.border, openings), *_marks(tail, shift)),
        coming=tuple(_move(row, places, shift) for row in plain.coming),
        ahead=tuple(
            replace(gist, covers_to=places.get(gist.covers_to, gist.covers_to - shift))
            for gist in plain.ahead
        ),
    )
    return Outline(fold, rows, state, shift, start, tail, openings)


def _marks_of(
    told: Sequence[ChapterRow], border: int, openings: Collection[int]
) -> tuple[Mark, ...]:
    return tuple(
        Mark(
            border + at,
            row.source_chars,
            row.first_pk in openings,
            messages=row.last_depth - row.first_depth + 1,
        )
        for at, row in enumerate(told, 1)
    )


def _marks(tail: Sequence[StoredMessage], shift: int) -> tuple[Mark, ...]:
    return tuple(
        Mark(row.depth - shift, row.chars, row.opens, row.role in ("tool", "function"))
        for row in tail
    )


def _move(row: ChapterState, places: dict[int, int], shift: int) -> ChapterState:
    place = places.get(row.last)
    if place is None:
        return replace(row, first=row.first - shift, last=row.last - shift)
    return replace(row, first=place, last=place)
