"""What must be told before a view can be shown: of a conversation that comes from a larger view.

A view that would be cut is waited for, while something is being made that spares the cut: chapters
for all of the backlog, oldest first, and the gist of those that are too many. Chapters that are
kept warm are the same, made ahead of any need.
"""

from policies.folding import is_worth_telling, plan_fold
from policies.generations import GREAT_STACK, plan_gist_ahead, plan_gist_stand_in
from policies.ground import Ground, step_beyond
from policies.values import Debt, Limits, ViewState


def plan_backlog(limits: Limits, state: ViewState) -> Debt | None:
    """Plan what a conversation waits for before a view of it is shown, the newest message in its
    tail; None where it need not wait, or where nothing would be worth it.

    A debt without spans: all chapters are asked for already, or a gist is what is missing.
    """
    if state.measure(limits) < limits.ceiling:
        return None
    if _is_fit(limits, state):
        return None
    debt = _plan_spans(limits, state)
    is_pending = any(row.length is None for row in state.coming)
    is_gist_due = plan_gist_ahead(limits, state) is not None
    return debt if debt.spans or is_pending or is_gist_due else None


def plan_warm(limits: Limits, state: ViewState) -> Debt | None:
    """Plan the chapters that keep a view ready while the conversation lives under another one.

    Where the rows that there are, and what stands behind them, are above ``start``, the text down
    to ``keep`` is chaptered, in spans as large as they may be.
    """
    ground = Ground.of(limits, state)
    rest = ground.rest(ground.row_end(len(state.coming)))
    if is_warm(limits, state, rest):
        return None
    whole = 0 if limits.messages else (rest - limits.keep) // limits.split * limits.split
    step = step_beyond(ground, 0, rest - whole if whole > 0 else limits.keep)
    return None if step is None else _worth(limits, Debt(step.border, step.spans))


def is_warm(limits: Limits, state: ViewState, rest: int) -> bool:
    """Whether the chapters that there are keep a view ready, with ``rest`` behind them, in the
    view's unit. Asks nothing about the tail."""
    rows = len(state.coming)
    ground = Ground.of(limits, state)
    return ground.condensed(rows, ground.memory(rows)) + rest <= limits.start


def _is_fit(limits: Limits, state: ViewState) -> bool:
    """Whether the view can be shown now: without a cut, below ``start`` but for the newest message,
    and with no more chapters in its memory than a gist would be made of without a model."""
    fold = plan_fold(limits, state)
    if plan_gist_stand_in(limits, state, fold) is not None:
        return False
    if fold is None:
        return True
    ground = Ground.of(limits, state)
    chapters = sum(ground.lengths(len(fold.chapters)))
    return (
        fold.kind == "fold"
        and fold.memory + fold.verbatim - ground.newest <= limits.start
        and chapters <= GREAT_STACK * limits.stack
    )


def _plan_spans(limits: Limits, state: ViewState) -> Debt:
    """The spans behind the last row: what the view needs without the newest message, or else what
    makes room for a newest message that is itself too large."""
    whole = Ground.of(limits, state)
    newest = whole.newest
    ground = whole.without(newest)
    rows = len(state.coming)
    end = ground.row_end(rows)
    none = Debt(end, ())
    after = ground.condensed(rows, ground.memory(rows)) + ground.rest(end)
    if after + newest < limits.ceiling and after <= limits.start:
        return none
    goal = limits.goal if limits.goal + newest < limits.ceiling else limits.goal - newest
    step = step_beyond(ground, goal, limits.keep, condensed=True)
    return none if step is None else _worth(limits, Debt(step.border, step.spans)) or none


def _worth(limits: Limits, debt: Debt) -> Debt | None:
    """A debt of less than two asked chapter lengths of text is none."""
    return debt if is_worth_telling(limits, debt.spans) else None
