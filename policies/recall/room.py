"""How much may be recalled beside one message."""

from __future__ import annotations

from policies.schema import Recall
from policies.values import Limits

SHARE = 1 / 3
"""Of what a fold frees, notes take this part at most until the next one (5,666 of 17,000), so that
folds come at most half as often again: each is a re-read of the whole view, and all that recall
adds may be 1.5 times what was said. In a smaller view more would be a fold every few turns."""


SEARCHED = 1 / 2
"""Of that the part which is kept for a model's own searches, where its policy lets it search: notes
come with every message and would leave nothing."""

ONE_SEARCH = 600
"""Characters that a search costs a view with its answer: some 150 of its call, and a few lines."""


def between_folds(recall: Recall, limits: Limits) -> int:
    """Characters of notes that a view may gather from one fold to the next."""
    if limits.messages:
        return recall.between_folds
    return min(recall.between_folds, int(limits.headroom * SHARE))


def search_reserve(recall: Recall, limits: Limits) -> int:
    """Characters of these that notes leave alone: half, and where half is less, what one search
    takes. What searches need beyond it they take of what notes have not."""
    if not recall.tool:
        return 0
    most = between_folds(recall, limits)
    return max(int(most * SEARCHED), min(most, ONE_SEARCH))


def can_search(recall: Recall, limits: Limits) -> bool:
    """Whether a model may search at all: not where no search could ever be answered."""
    return recall.tool and between_folds(recall, limits) >= ONE_SEARCH


def notes_room(recall: Recall, limits: Limits, *, total: int, spent: int) -> int:
    """Characters that the notes of one message may cost a view, frames included.

    At most the turn's budget, what is left between two folds beside the reserve for searches and
    what notes and searches cost (``spent``), and what keeps the view (``total``: memory, verbatim
    and notes) at its start of folding: the stretch from there to the ceiling is for what is said
    while chapters are made. A view that counts messages has no such bound.
    """
    most = between_folds(recall, limits) - search_reserve(recall, limits)
    room = min(recall.budget, most - spent)
    if not limits.messages:
        room = min(room, limits.start - total)
    return max(0, room)
