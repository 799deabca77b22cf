"""Where the view of a live conversation would have folded: the program's own plans, turn by turn.

Each text of the summarizer is taken to have the length that is asked for, so that every mode and
every repeat is measured on the same spans.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

from gateway.prompts.memory import CHAPTER_COST, FIXED_COST, GIST_COST
from policies.folding import plan_debt
from policies.generations import plan_major
from policies.values import ChapterState, GistState, Limits, Mark, Span, ViewState


@dataclass(frozen=True, slots=True)
class FoldPlan:
    """folds: the spans that each takes in, oldest first. last: the depth of the newest message
    when the last of them was planned; what follows is not read."""

    folds: tuple[tuple[Span, ...], ...]
    last: int

    @property
    def spans(self) -> tuple[Span, ...]:
        return tuple(span for fold in self.folds for span in fold)

    @property
    def border(self) -> int:
        """The depth of the last folded message, 0 where nothing is folded."""
        spans = self.spans
        return spans[-1].last if spans else 0


def plan_folds(limits: Limits, marks: Sequence[Mark], most: int | None = None) -> FoldPlan:
    """The folds of a conversation that grows message by message; at most `most` spans of them."""
    limits = replace(limits, rolling=False)
    view = _View(limits)
    folds: list[tuple[Span, ...]] = []
    last, left = marks[-1].depth if marks else 0, most
    # A turn ends where the next message begins another.
    for mark, following in zip_longest(marks, marks[1:]):
        view.add(mark)
        spans = view.fold() if following is None or following.opens else ()
        if not spans:
            continue
        folds.append(spans if left is None else spans[:left])
        left = None if left is None else left - len(spans)
        if left is not None and left <= 0:
            last = mark.depth
            break
    return FoldPlan(tuple(folds), last)


@dataclass(slots=True)
class _View:
    """gist: the one that the last fold shows; coming: the one that the next will."""

    limits: Limits
    border: int = 0
    total: int = 0
    memory: int = 0
    tail: list[Mark] = field(default_factory=list)
    stack: list[ChapterState] = field(default_factory=list)
    gist: GistState | None = None
    coming: GistState | None = None

    def add(self, mark: Mark) -> None:
        self.tail.append(mark)
        self.total += mark.size(self.limits)

    def fold(self) -> tuple[Span, ...]:
        """The spans that are due now, taken out of the tail; none below the start."""
        memory = 0 if self.limits.messages else self.memory
        if memory + self.total <= self.limits.start:
            return ()
        state = ViewState(
            self.border,
            self.memory,
            tuple(self.tail),
            stack=tuple(self.stack),
            gist=self.gist,
            fixed=FIXED_COST,
        )
        debt = plan_debt(self.limits, state)
        if debt is None:
            return ()
        self._swap(debt.border, debt.spans)
        return debt.spans

    def _swap(self, border: int, spans: Sequence[Span]) -> None:
        self.border, self.gist = border, self.coming
        self.tail = [mark for mark in self.tail if mark.depth > border]
        self.total = sum(mark.size(self.limits) for mark in self.tail)
        length = self.limits.length + CHAPTER_COST
        self.stack += [ChapterState(s.first, s.last, s.chars, length) for s in spans]
        if self.gist is not None:
            covered = self.gist.covers_to
            self.stack = [row for row in self.stack if row.first > covered]
        told = sum(row.length or 0 for row in self.stack)
        self.memory = FIXED_COST + told + (self.gist.length if self.gist else 0)
        major = plan_major(self.limits, self.gist, self.stack)
        if major is not None:
            self.coming = GistState(major.covers_to, self.limits.gist_length + GIST_COST)


def ages_of(spans: Sequence[Span]) -> list[int]:
    """For each span how many were folded since, itself included: 1 is the newest."""
    return [len(spans) - place for place in range(len(spans))]
