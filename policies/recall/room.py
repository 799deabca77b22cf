"""How much may be recalled beside one message."""

from __future__ import annotations

from policies.schema import Recall
from policies.values import Limits


def notes_room(recall: Recall, limits: Limits, ceiling: int, *, total: int, spent: int) -> int:
    """Characters that the notes of one message may cost a view, frames included.

    At most the turn's budget, what is left of the budget between two folds after the notes that
    cost ``spent``, and what keeps the view (``total``: memory, verbatim and notes) below its
    ceiling. ``ceiling``: the policy's own in characters; where a small window has narrowed the
    view's (``limits``), the budgets are narrowed by the same factor. A view that counts messages
    has no ceiling in characters.
    """
    if limits.messages:
        return max(0, min(recall.budget, recall.between_folds - spent))
    narrow = min(1.0, limits.ceiling / ceiling)
    left = int(recall.between_folds * narrow) - spent
    below = limits.ceiling - 1 - total
    return max(0, min(int(recall.budget * narrow), left, below))
