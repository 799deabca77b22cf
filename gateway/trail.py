"""What is being worked on right now: the numbers under which a log line or a span is found again.

A trail begins with a request or a job and is seen by everything that is done for it, tasks of its
own included; what is learned later (the conversation) is added to it. Ids only, never content.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Trail:
    """request: the number in x-request-id; conversation: its id; job: the key of its row; span:
    what spans begun from here hang under (the tracer's own object)."""

    request: str | None = None
    conversation: str | None = None
    job: str | None = None
    span: Any = None

    def ids(self) -> dict[str, str]:
        """The ids that are known, by name."""
        told = {"request": self.request, "conversation": self.conversation, "job": self.job}
        return {name: id for name, id in told.items() if id is not None}


_here: ContextVar[Trail | None] = ContextVar("foldgate_trail", default=None)


def trail() -> Trail | None:
    """The trail of whoever asks; None outside of any work."""
    return _here.get()


@contextmanager
def following(begun: Trail) -> Iterator[Trail]:
    """Do what is inside under this trail."""
    token = _here.set(begun)
    try:
        yield begun
    finally:
        _here.reset(token)


def learn_conversation(id: str) -> None:
    """Say which conversation the work at hand is for."""
    here = _here.get()
    if here is not None:
        here.conversation = id
