"""How much may be recalled beside one message."""

from __future__ import annotations

from policies.schema import Recall
from policies.values import Limits

SHARE = 1 / 3
"""Of what a fold frees, notes take this part at most until the next one (5,666 of 17,000), so that
folds come at most half as often again: each is a re-read of the whole view, and all that recall
adds may be 1.5 times what was said. In a smaller view more would be a fold every few turns."""


def between_folds(recall: Recall, limits: Limits) -> int:
    """Characters of notes that a view may gather from one fold to the next."""
    if limits.messages:
        return recall.between_folds
    return min(recall.between_folds, int(limits.headroom * SHARE))


def notes_room(recall: Recall, limits: Limits, *, total: int, spent: int) -> int:
    """Characters that the notes of one message may cost a view, frames included.

    At most the turn's budget, what is left between two folds after the notes that cost ``spent``,
    and what keeps the view (``total``: memory, verbatim and notes) at its start of folding: the
    stretch from there to the ceiling is for what is said while chapters are made. A view that
    counts messages has no such bound.
    """
    room = min(recall.budget, between_folds(recall, limits) - spent)
    if not limits.messages:
        room = min(room, limits.start - total)
    return max(0, room)
