"""The ground of a plan: a view with its sums, and the borders within its reach.

A step is a border that a view can move to, with the rows that it takes in and the sizes after it.
Which of them is taken, and when, is decided in `folding` and `backlog`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from policies.chapters import cut_spans
from policies.values import ChapterState, GistState, Limits, Mark, Span, ViewState


def memory_chars(gist_length: int, chapter_lengths: Sequence[int], fixed: int) -> int:
    """What a memory costs: its fixed part (header, profile, pins), the gist, the chapters.

    Lengths are as rendered, with whatever stands around each. Without gist and chapters there
    is only what is fixed.
    """
    return fixed + gist_length + sum(chapter_lengths)


@dataclass(frozen=True, slots=True)
class Step:
    """A border within reach: the rows it takes in, the spans without a row, the sizes after."""

    border: int
    rows: int
    spans: tuple[Span, ...]
    memory: int
    rest: int

    @property
    def total(self) -> int:
        return self.memory + self.rest


@dataclass(frozen=True, slots=True)
class Ground:
    """A view with its sums, in its own unit or, for the token guard, in tokens."""

    limits: Limits
    state: ViewState
    ratio: float
    rests: tuple[int, ...]  # rests[i]: what the tail costs behind its first i messages
    counts_memory: bool = True

    @classmethod
    def of(
        cls,
        limits: Limits,
        state: ViewState,
        costs: Sequence[int] | None = None,
        ratio: float = 1.0,
    ) -> "Ground":
        weights = [mark.size(limits) for mark in state.tail] if costs is None else costs
        rests = [0]
        for weight in reversed(weights):
            rests.append(rests[-1] + weight)
        counts_memory = costs is not None or not limits.messages
        return cls(limits, state, ratio, tuple(reversed(rests)), counts_memory)

    @property
    def newest(self) -> int:
        """What the newest user message and what follows it cost."""
        openings = self.openings(self.state.border - 1)
        return self.rest(openings[-1]) if openings else self.rests[0]

    def without(self, cost: int) -> "Ground":
        """The same view before so much of its end was said."""
        return replace(self, rests=tuple(max(0, rest - cost) for rest in self.rests))

    @property
    def ready(self) -> int:
        """How many rows beyond the border have a text, counted without a gap."""
        for index, row in enumerate(self.state.coming):
            if row.length is None:
                return index
        return len(self.state.coming)

    def openings(self, beyond: int) -> list[int]:
        """The borders deeper than ``beyond`` behind which a tail may begin."""
        return [m.depth - 1 for m in self.state.tail if m.opens and m.depth - 1 > beyond]

    def rest(self, border: int) -> int:
        return self.rests[border - self.state.border]

    def row_end(self, rows: int) -> int:
        return self.state.coming[rows - 1].last if rows else self.state.border

    def marks(self, first: int, last: int) -> Sequence[Mark]:
        start = self.state.border + 1
        return self.state.tail[first - start : last + 1 - start]

    def gist_at(self, rows: int) -> GistState | None:
        """The gist that a fold of so many rows shows."""
        end = self.row_end(rows)
        within = [gist for gist in self.state.ahead if gist.covers_to <= end]
        return within[-1] if within else self.state.gist

    def memory(self, rows: int, more: int = 0) -> int:
        """The memory after a fold of so many rows and ``more`` characters of new chapters; 0 in
        a view that counts messages."""
        if not self.counts_memory:
            return 0
        gist = self.gist_at(rows)
        length = gist.length if gist else 0
        told = memory_chars(length, self.lengths(rows), self.state.fixed)
        return round((told + more) / self.ratio)

    def lengths(self, rows: int) -> list[int]:
        """Of the chapters that a fold of so many rows shows behind its gist, in characters."""
        gist = self.gist_at(rows)
        covered = gist.covers_to if gist else 0
        taken = (*self.state.stack, *self.state.coming[:rows])
        return [foresee_length(row, self.limits) for row in taken if row.first > covered]

    def condensed(self, rows: int, memory: int) -> int:
        """What a memory over so many rows costs once what of its chapters is above the stack has
        gone into the gist."""
        gist = self.gist_at(rows)
        length = gist.length if gist else 0
        chapters = memory - self.state.fixed - length
        if chapters <= self.limits.stack:
            return memory
        grown = max(0, self.limits.gist_length * 5 // 4 - length)
        return memory - chapters + self.limits.stack + grown


def foresee_length(chapter: ChapterState | Span, limits: Limits) -> int:
    """A chapter's length, or before it is written the asked one (never more than its source)."""
    if isinstance(chapter, Span):
        return min(limits.length, chapter.chars)
    if chapter.length is None:
        return min(limits.length, chapter.source_chars)
    return chapter.length


def step_rows(ground: Ground, goal: int, keep: int, count: int) -> Step | None:
    """The first end among the first ``count`` rows that reaches the goal, else the last that
    keeps ``keep`` verbatim; None where none does."""
    openings = set(ground.openings(ground.state.border))
    last = None
    for rows in range(1, count + 1):
        border = ground.row_end(rows)
        if border not in openings:
            continue
        rest = ground.rest(border)
        if rest < keep:
            break
        last = Step(border, rows, (), ground.memory(rows), rest)
        if last.total <= goal:
            break
    return last


def step_beyond(ground: Ground, goal: int, keep: int, *, condensed: bool = False) -> Step | None:
    """The border behind all rows, with the spans that lead to it.

    The more chapters, the larger the memory, the smaller the tail, the more chapters: their
    number grows until it suffices, and is bounded because the tail is. ``condensed``: the goal is
    meant for the day on which a major GC has folded what is above the stack.
    """
    rows = len(ground.state.coming)
    end = ground.row_end(rows)
    openings = ground.openings(end)
    spans: tuple[Span, ...] = ()
    while True:
        count = max(1, len(spans))
        memory = ground.memory(rows, count * ground.limits.length)
        wanted = goal - (ground.condensed(rows, memory) if condensed else memory)
        border = _settle(ground, openings, wanted, keep)
        if border is None:
            return None
        spans = cut_spans(ground.marks(end + 1, border), ground.limits.split)
        if len(spans) <= count:
            more = sum(foresee_length(span, ground.limits) for span in spans)
            return Step(border, rows, spans, ground.memory(rows, more), ground.rest(border))


def _settle(ground: Ground, openings: Sequence[int], wanted: int, keep: int) -> int | None:
    """The first border that leaves no more than ``wanted``, else the last that leaves ``keep``."""
    last = None
    for border in openings:
        if ground.rest(border) < keep:
            break
        last = border
        if ground.rest(border) <= wanted:
            break
    return last


def step_to(ground: Ground, goal: int, keep: int) -> Step | None:
    """The step to the goal, pending rows and spans without a row counted as stand-ins."""
    by_rows = step_rows(ground, goal, keep, len(ground.state.coming))
    if by_rows and by_rows.total <= goal:
        return by_rows
    return step_beyond(ground, goal, keep) or by_rows
