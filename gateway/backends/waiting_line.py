"""The line before a server's slots: who is next, fairly.

1. Wipes of slots first: until one is done its slot serves nobody.
2. Then by purpose: chats, auxiliary requests, summaries and gists, prefills. Background work that
   has waited longer than `patience` stands in front of the chats: on a busy server it would wait
   for ever, and its debt would end in a cut.
3. Within a purpose conversations take turns: one that sends ten requests waits behind one that
   sends its first. A conversation's own requests are served in the order in which they came.
4. Whoever cannot be placed now (its own slot is at work) keeps its place; the next is asked.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from gateway.backends.base import Purpose

Reason = Purpose | Literal["wipe"]

_RANKS: dict[Reason, int] = {
    "wipe": 0,
    "chat": 1,
    "auxiliary": 2,
    "summary": 3,
    "gist": 3,
    "prefill": 4,
}
_CHATS = _RANKS["chat"]
_BACKGROUND = (_RANKS["auxiliary"], _RANKS["summary"])

L = TypeVar("L")


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants a slot for.

    conversation: whose prompt it is, None for nobody's. width: slots taken at once (choices of one
    request). target: the one slot that is meant. is_short: little is to be read of the prompt,
    wherever it goes; is_warm: little, where its conversation was served before.
    """

    purpose: Reason
    conversation: str | None = None
    width: int = 1
    target: int | None = None
    is_short: bool = False
    is_warm: bool = False

    @property
    def is_brief(self) -> bool:
        """Whether this may be read beside a long prompt, if it goes where it was served before."""
        return self.purpose == "chat" and (self.is_short or self.is_warm)


@dataclass(eq=False, slots=True)
class Waiter(Generic[L]):
    """Somebody in the line since `since` (monotonic seconds); `ready` gets what was granted."""

    wish: Wish
    since: float
    ready: asyncio.Future[L]


class Line(Generic[L]):
    """Those who wait, in their order. patience: seconds after which background work goes first."""

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._queues: list[OrderedDict[object, deque[Waiter[L]]]] = [
            OrderedDict() for _ in range(max(_RANKS.values()) + 1)
        ]
        self._sizes = [0] * len(self._queues)
        self._brief = 0

    @property
    def has_brief(self) -> bool:
        """Whether somebody waits of whose prompt little is to be read."""
        return self._brief > 0

    def __len__(self) -> int:
        return sum(self._sizes)

    def count(self, *purposes: Reason) -> int:
        """How many wait for one of these purposes (those that share a rank count together)."""
        return sum(self._sizes[rank] for rank in {_RANKS[purpose] for purpose in purposes})

    def is_first(self, purpose: Reason) -> bool:
        """Whether nobody waits who comes before this purpose."""
        return not any(self._sizes[: _RANKS[purpose]])

    def has_chat_of(self, conversation: str) -> bool:
        return conversation in self._queues[_CHATS]

    def is_overdue(self, waiter: Waiter[L], now: float) -> bool:
        """Whether this is background work that has waited longer than the line's patience."""
        rank = _RANKS[waiter.wish.purpose]
        return rank in _BACKGROUND and now - waiter.since > self._patience

    def add(self, waiter: Waiter[L]) -> None:
        rank = _RANKS[waiter.wish.purpose]
        self._queues[rank].setdefault(_key(waiter), deque()).append(waiter)
        self._sizes[rank] += 1
        self._brief += waiter.wish.is_brief

    def remove(self, waiter: Waiter[L]) -> bool:
        """Take out somebody who waits no more; the others keep their places. False if not here."""
        rank, key = _RANKS[waiter.wish.purpose], _key(waiter)
        theirs = self._queues[rank].get(key)
        if theirs is None or waiter not in theirs:
            return False
        theirs.remove(waiter)
        self._sizes[rank] -= 1
        self._brief -= waiter.wish.is_brief
        if not theirs:
            del self._queues[rank][key]
        return True

    def serve(self, waiter: Waiter[L]) -> None:
        """Take out somebody who was granted; its conversation goes to the end of its line."""
        rank, key = _RANKS[waiter.wish.purpose], _key(waiter)
        self.remove(waiter)
        if key in self._queues[rank]:
            self._queues[rank].move_to_end(key)

    def candidates(self, now: float) -> Iterator[Waiter[L]]:
        """The first of each conversation in the order in which they should be served. The line
        must not change meanwhile."""
        yield from self._heads(_RANKS["wipe"])
        for rank in filter(self._sizes.__getitem__, _BACKGROUND):
            yield from (head for head in self._heads(rank) if self.is_overdue(head, now))
        for rank in range(_CHATS, len(self._queues)):
            if self._sizes[rank]:
                yield from self._heads(rank)

    def waiting(self, purpose: Reason, conversation: str) -> list[Waiter[L]]:
        """Everybody of one conversation who waits for this purpose, first come first."""
        return list(self._queues[_RANKS[purpose]].get(conversation, ()))

    def everybody(self) -> list[Waiter[L]]:
        return [waiter for queue in self._queues for theirs in queue.values() for waiter in theirs]

    def _heads(self, rank: int) -> Iterator[Waiter[L]]:
        return (theirs[0] for theirs in self._queues[rank].values())


def _key(waiter: Waiter[L]) -> object:
    """Who takes turns with whom: a request of no conversation stands for itself."""
    return waiter if waiter.wish.conversation is None else waiter.wish.conversation
