"""Transactions that are run again: on a database with many writers one may be told to step back.

Whoever is told so has changed nothing, and the same function is run over a new transaction; who was
told so a few times gets the database for itself, so that everybody gets through. So a
function over a connection may be called more than once, and keeps nothing of a call that did not
stand: what it finds out it returns.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from gateway.errors import StorageFailed

T = TypeVar("T")

ATTEMPTS = 8
"""Of one transaction; the later ones are alone, and fail only where the database does."""

TOGETHER = 3
"""So many of them run beside others."""

_FIRST_SECONDS, _MOST_SECONDS = 0.002, 0.4


class TransactionLost(StorageFailed):
    """Nothing of the transaction stands, and nothing speaks against running it again."""


def wait_before(attempt: int) -> None:
    """Wait before the attempt of this number (from 1 on): twice as long each time, and never as
    long as the other one waits."""
    most = min(_MOST_SECONDS, _FIRST_SECONDS * 2**attempt)
    time.sleep(random.uniform(most / 4, most))


def until_it_stands(run: Callable[[bool], T]) -> T:
    """What `run` returns, run again where its transaction was lost; raises the last loss.

    It is told whether its transaction is to be alone.
    """
    for attempt in range(1, ATTEMPTS):
        try:
            return run(attempt > TOGETHER)
        except TransactionLost:
            wait_before(attempt)
    return run(True)
