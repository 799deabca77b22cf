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

from policies.ground import Ground, Step, step_beyond, step_rows, step_to
from policies.values import Debt, Fold, Limits, Span, ViewState


def plan_debt(limits: Limits, state: ViewState) -> Debt | None:
    """Plan the chapters that are due after a turn; None where nothing sensible is to be done.

    Nothing is due at or below ``start``, nor while the rows on their way (or a newer gist) would
    by themselves restore half the headroom, nor for less than two asked chapter lengths of text.
    New spans begin behind the last row.
    """
    if state.measure(limits) <= limits.start:
        return None
    ground = Ground.of(limits, state)
    if is_eased(limits, state, ground.rest(ground.row_end(len(state.coming)))):
        return None
    step = step_beyond(ground, limits.goal, limits.keep)
    if step is None or not is_worth_telling(limits, step.spans):
        return None
    return Debt(step.border, step.spans)


def is_look_due(limits: Limits, before: int, after: int) -> bool:
    """Whether more debt is looked for although chapters are on their way: once for each asked
    chapter length of text, because looking reads a whole memory. before, after: the characters of
    the conversation before a turn and behind it."""
    return before // limits.length != after // limits.length


def is_eased(limits: Limits, state: ViewState, rest: int) -> bool:
    """Whether the rows on their way, or a newer gist, restore half the headroom by themselves.
    rest: what the tail costs behind the last of them; of the tail nothing else is looked at."""
    return Ground.of(limits, state).memory(len(state.coming)) + rest <= limits.enough


def plan_fold(limits: Limits, state: ViewState) -> Fold | None:
    """Plan the step of the border at the start of a turn, the newest message in the tail.

    None: the view stays as it is, because it is not above ``start`` yet, because a chapter
    that is needed is still pending, or because no step would make it smaller. Where nothing can
    be folded but a newer gist makes room, the border stays and the memory alone is renewed.
    An ordinary fold is the same for every newest message that leaves it below the ceiling; one of
    0 characters foretells it.
    """
    total = state.measure(limits)
    if total <= limits.start:
        return None
    ground = Ground.of(limits, state)
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
    ground = Ground.of(limits, state, tokens, ratio)
    step = step_to(ground, room * limits.goal // limits.start, 0)
    if step is None or step.total > room:
        return None
    return _fold(ground, step)


def _step_ready(ground: Ground, limits: Limits) -> Step | None:
    """The ordinary fold, if all that it needs is ready."""
    step = step_rows(ground, limits.goal, limits.keep, len(ground.state.coming))
    if step is None:
        step = _renewal(ground)
        return step if step.total <= limits.enough else None
    return step if step.rows <= ground.ready else None


def _step_spared(ground: Ground, limits: Limits, newest: int) -> Step | None:
    """What ready rows can do at the ceiling without any stand-in."""
    step = step_rows(ground, limits.goal, limits.keep, ground.ready)
    if step is None or step.total > limits.start or step.total + newest >= limits.ceiling:
        return None
    return step


def _renewal(ground: Ground) -> Step:
    """No step at all: the same border under the newest memory."""
    border = ground.state.border
    return Step(border, 0, (), ground.memory(0), ground.rest(border))


def _step_cut(ground: Ground, limits: Limits) -> Step | None:
    """The hard cut: with ``keep`` verbatim where that gets below the ceiling, else without.

    Many chapters at once (a long history that comes in whole) may alone be more than the ceiling.
    They do not cost the verbatim tail, because they are condensed next (``plan_gist_stand_in``).
    """
    for step in (step_to(ground, limits.goal, limits.keep), _renewal(ground)):
        if step and ground.condensed(step.rows, step.memory) + step.rest < limits.ceiling:
            return step
    return step_to(ground, limits.goal, 0)


def _is_worth(limits: Limits, step: Step, total: int) -> bool:
    """Below the ceiling any saving counts; where it cannot be reached only a chapter's worth."""
    if step.total < limits.ceiling:
        return step.total < total
    return step.total <= total - limits.worth


def least_told(limits: Limits) -> int:
    """The characters of text that are worth chapters: two asked chapter lengths."""
    return 2 * limits.length


def is_worth_telling(limits: Limits, spans: Sequence[Span]) -> bool:
    """Less than `least_told` is not worth its chapters; where messages are counted, any text is,
    because nothing else makes their number less."""
    told = sum(span.chars for span in spans)
    return bool(spans) if limits.messages else told >= least_told(limits)


def _fold(ground: Ground, step: Step) -> Fold:
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
