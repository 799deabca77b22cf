"""The old generation: when a major GC folds older chapters into the gist (Law 6)."""

from collections.abc import Sequence
from dataclasses import replace

from policies.values import ChapterState, Fold, GistState, Limits, Major, ViewState

GREAT_STACK = 2
"""A stack of so many times its budget is folded into a gist without a model, when none will."""


def plan_major(
    limits: Limits, gist: GistState | None, stack: Sequence[ChapterState]
) -> Major | None:
    """Plan a major GC over the chapters that a view shows behind its newest gist.

    When they cost more than ``stack`` characters the older half by count, at least one, goes
    into the gist together with the old one; a chapter without a text yet, and what stands behind
    it, does not count. The new gist is seen at the next fold. Ideal case of the worked numbers:
    6 x 1,100 = 6,600 > 6,000, so 3 of 6. A rolling memory folds all of them, however few.
    """
    covered = gist.covers_to if gist else 0
    written = []
    for index, row in enumerate(stack):
        if row.first <= covered:
            continue
        if row.length is None:
            break
        written.append((index, row.length))
    if sum(length for _, length in written) <= (0 if limits.rolling else limits.stack):
        return None
    older = written if limits.rolling else written[: max(1, len(written) // 2)]
    read = gist.length if gist else 0
    while len(older) > 1 and read + sum(length for _, length in older) > limits.split:
        older.pop()
    chapters = tuple(index for index, _ in older)
    return Major(covers_to=stack[chapters[-1]].last, chapters=chapters)


def plan_gist_stand_in(limits: Limits, state: ViewState, fold: Fold | None) -> Major | None:
    """Plan the major GC that cannot wait for a model, at the ceiling only.

    Where the planned fold (or none) would not restore half the headroom, because the chapters
    of a failing summarizer were never folded together, their older half is condensed into a
    gist stand-in on the spot (a hard cut). Ask for the fold again with that gist, then this again.
    """
    total = state.measure(limits)
    after = fold.memory + fold.verbatim if fold else total
    if total < limits.ceiling or after <= limits.enough:
        return None
    return plan_major(replace(limits, rolling=False), state.gist, state.stack)


def plan_gist_ahead(limits: Limits, state: ViewState) -> Major | None:
    """Plan the next major GC over chapters that no fold of this policy shows yet. Its ``chapters``
    are indices of stack and coming rows.

    While some are not written yet it waits for a great stack, so that it is done in few calls.
    """
    is_whole = all(row.length is not None for row in state.coming)
    newest = state.ahead[-1] if state.ahead else state.gist
    stack = limits.stack if is_whole else GREAT_STACK * limits.stack
    least = replace(limits, stack=stack, rolling=False)
    return plan_major(least, newest, (*state.stack, *state.coming))
