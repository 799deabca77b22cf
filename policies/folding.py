"""Fold plans: which chapters to make, when the border moves, and how far.

Law 5 in numbers: (1) above ``start`` a turn's end leaves a debt of chapters; (2) the turn
after they are ready folds once, down to ``start - headroom`` with at least ``keep`` verbatim;
(3) the turn that itself crosses ``start`` goes out as it is; (4) at the ceiling what waits is
folded with stand-ins, the newest user message and what follows it never. Borders are chapter
ends, tails begin at an opening mark, and a step that saves nothing is not taken. (5) What a fold
leaves is reckoned without the newest user message and what follows it, so that it is known when
the reply before it ends; only a cut looks at the newest message too.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from policies.chapters import cut_spans
from policies.values import ChapterState, Debt, Fold, Limits, Mark, Span, ViewState


def memory_chars(gist_length: int, chapter_lengths: Sequence[int], fixed: int) -> int:
    """What a memory costs: its fixed part (header, profile, pins), the gist, the chapters.

    Lengths are as rendered, with whatever stands around each. Without gist and chapters there
    is only what is fixed.
    """
    return fixed + gist_length + sum(chapter_lengths)


def plan_debt(limits: Limits, state: ViewState) -> Debt | None:
    """Plan the chapters that are due after a turn; None where nothing sensible is to be done.

    Nothing is due at or below ``start``, nor while the rows on their way (or a newer gist) would
    by themselves restore half the headroom, nor for less than two asked chapter lengths of text.
    New spans begin behind the last row.
    """
    if state.total <= limits.start:
        return None
    ground = _Ground.of(limits, state)
    rows = len(state.coming)
    if ground.memory(rows) + ground.rest(ground.row_end(rows)) <= limits.enough:
        return None
    step = _step_beyond(ground, limits.goal, limits.keep)
    if step is None or sum(span.chars for span in step.spans) < 2 * limits.length:
        return None
    return Debt(step.border, step.spans)


def plan_fold(limits: Limits, state: ViewState) -> Fold | None:
    """Plan the step of the border at the start of a turn, the newest message in the tail.

    None: the view stays as it is, because it is not above ``start`` yet, because a chapter
    that is needed is still pending, or because no step would make it smaller. Where nothing can
    be folded but a newer gist makes room, the border stays and the memory alone is renewed.
    An ordinary fold is the same for every newest message that leaves it below the ceiling; one of
    0 characters foretells it.
    """
    total = state.total
    if total <= limits.start:
        return None
    ground = _Ground.of(limits, state)
    newest = ground.newest
    before = ground.without(newest)
    if total - newest > limits.start:
        step = _step_ready(before, limits)
        if step and step.total + newest < min(total, limits.ceiling):
            return _fold(ground, step)
    if total < limits.ceiling:
        return None
    step = _step_spared(before, limits, newest) or _step_spared(ground, limits, 0)
    step = step or _step_cut(ground, limits)
    if step is None or not _is_worth(limits, step, total):
        step = _renewal(ground)
    return _fold(ground, step) if _is_worth(limits, step, total) else None


def plan_token_cut(
    limits: Limits, state: ViewState, *, tokens: Sequence[int], ratio: float, room: int
) -> Fold | None:
    """Plan the step that makes a view fit a window which it overflows.

    ``tokens`` are the estimates for the messages of the tail, one each; ``ratio`` is characters
    per token for the memory; ``room`` the tokens that window, system text, tools, output and
    margin leave for memory and verbatim. The step is large (``room`` shrinks in the proportion
    that a fold restores), so that not every turn cuts. None: not even the newest user message
    and the memory fit, which is an overflow.
    """
    ground = _Ground.of(limits, state, tokens, ratio)
    step = _step(ground, room * limits.goal // limits.start, 0)
    if step is None or step.total > room:
        return None
    return _fold(ground, step)


@dataclass(frozen=True, slots=True)
class _Step:
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
class _Ground:
    """A view with its sums, in characters or, for the token guard, in tokens."""

    limits: Limits
    state: ViewState
    ratio: float
    rests: tuple[int, ...]  # rests[i]: what the tail costs behind its first i messages

    @classmethod
    def of(
        cls,
        limits: Limits,
        state: ViewState,
        costs: Sequence[int] | None = None,
        ratio: float = 1.0,
    ) -> "_Ground":
        weights = [mark.chars for mark in state.tail] if costs is None else costs
        rests = [0]
        for weight in reversed(weights):
            rests.append(rests[-1] + weight)
        return cls(limits, state, ratio, tuple(reversed(rests)))

    @property
    def newest(self) -> int:
        """What the newest user message and what follows it cost."""
        openings = self.openings(self.state.border - 1)
        return self.rest(openings[-1]) if openings else self.rests[0]

    def without(self, cost: int) -> "_Ground":
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

    def memory(self, rows: int, more: int = 0) -> int:
        """The memory after a fold of so many rows and ``more`` characters of new chapters."""
        state = self.state
        taken = (*state.stack, *state.coming[:rows])
        lengths = [foresee_length(row, self.limits) for row in taken]
        gist = state.gist.length if state.gist else 0
        return round((memory_chars(gist, lengths, state.fixed) + more) / self.ratio)


def foresee_length(chapter: ChapterState | Span, limits: Limits) -> int:
    """A chapter's length, or before it is written the asked one (never more than its source)."""
    if isinstance(chapter, Span):
        return min(limits.length, chapter.chars)
    if chapter.length is None:
        return min(limits.length, chapter.source_chars)
    return chapter.length


def _step_ready(ground: _Ground, limits: Limits) -> _Step | None:
    """The ordinary fold, if all that it needs is ready."""
    step = _step_rows(ground, limits.goal, limits.keep, len(ground.state.coming))
    if step is None:
        step = _renewal(ground)
        return step if step.total <= limits.enough else None
    return step if step.rows <= ground.ready else None


def _step_spared(ground: _Ground, limits: Limits, newest: int) -> _Step | None:
    """What ready rows can do at the ceiling without any stand-in."""
    step = _step_rows(ground, limits.goal, limits.keep, ground.ready)
    if step is None or step.total > limits.start or step.total + newest >= limits.ceiling:
        return None
    return step


def _renewal(ground: _Ground) -> _Step:
    """No step at all: the same border under the newest memory."""
    border = ground.state.border
    return _Step(border, 0, (), ground.memory(0), ground.rest(border))


def _step_rows(ground: _Ground, goal: int, keep: int, count: int) -> _Step | None:
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
        last = _Step(border, rows, (), ground.memory(rows), rest)
        if last.total <= goal:
            break
    return last


def _step_beyond(ground: _Ground, goal: int, keep: int) -> _Step | None:
    """The border behind all rows, with the spans that lead to it.

    The more chapters, the larger the memory, the smaller the tail, the more chapters: their
    number grows until it suffices, and is bounded because the tail is.
    """
    rows = len(ground.state.coming)
    end = ground.row_end(rows)
    openings = ground.openings(end)
    spans: tuple[Span, ...] = ()
    while True:
        count = max(1, len(spans))
        wanted = goal - ground.memory(rows, count * ground.limits.length)
        border = _settle(ground, openings, wanted, keep)
        if border is None:
            return None
        spans = cut_spans(ground.marks(end + 1, border), ground.limits.split)
        if len(spans) <= count:
            more = sum(foresee_length(span, ground.limits) for span in spans)
            return _Step(border, rows, spans, ground.memory(rows, more), ground.rest(border))


def _settle(ground: _Ground, openings: Sequence[int], wanted: int, keep: int) -> int | None:
    """The first border that leaves no more than ``wanted``, else the last that leaves ``keep``."""
    last = None
    for border in openings:
        if ground.rest(border) < keep:
            break
        last = border
        if ground.rest(border) <= wanted:
            break
    return last


def _step(ground: _Ground, goal: int, keep: int) -> _Step | None:
    """The step to the goal, pending rows and spans without a row counted as stand-ins."""
    by_rows = _step_rows(ground, goal, keep, len(ground.state.coming))
    if by_rows and by_rows.total <= goal:
        return by_rows
    return _step_beyond(ground, goal, keep) or by_rows


def _step_cut(ground: _Ground, limits: Limits) -> _Step | None:
    """The hard cut: with ``keep`` verbatim where that gets below the ceiling, else without.

    Many chapters at once (a long history that comes in whole) may alone be more than the ceiling.
    They do not cost the verbatim tail, because they are condensed next (``plan_gist_stand_in``).
    """
    for step in (_step(ground, limits.goal, limits.keep), _renewal(ground)):
        if step and _condensed(ground, limits, step) < limits.ceiling:
            return step
    return _step(ground, limits.goal, 0)


def _condensed(ground: _Ground, limits: Limits, step: _Step) -> int:
    """What a step leaves once the chapters above the stack are condensed into the gist."""
    state = ground.state
    gist = state.gist.length if state.gist else 0
    chapters = step.memory - state.fixed - gist
    if chapters <= limits.stack:
        return step.total
    grown = max(0, limits.gist_length * 5 // 4 - gist)
    return step.total - chapters + limits.stack + grown


def _is_worth(limits: Limits, step: _Step, total: int) -> bool:
    """Below the ceiling any saving counts; where it cannot be reached only a chapter's worth."""
    if step.total < limits.ceiling:
        return step.total < total
    return step.total <= total - limits.length


def _fold(ground: _Ground, step: _Step) -> Fold:
    missing = tuple(
        index for index, row in enumerate(ground.state.coming[: step.rows]) if row.length is None
    )
    return Fold(
        kind="cut" if missing or step.spans else "fold",
        border=step.border,
        chapters=tuple(range(step.rows)),
        stand_ins=missing,
        new_spans=step.spans,
        memory=step.memory,
        verbatim=ground.rest(step.border),
    )
