"""A bounded memory of tails that were just rendered, so that a turn costs what is new.

It holds nothing that the rows do not: a tail is found by the fold it stands on and its head, and
is rendered again from the rows whenever it is not there.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from gateway.flows.notes import NO_NOTES, Noted
from gateway.prompts.view import Tail

# What some 300 live local views weigh; a cloud view of 200,000 characters weighs four of them. One
# that is not there costs its next turn some milliseconds.
DEFAULT_BYTES = 24 * 1024 * 1024
# What Python needs beside the bytes of a message: their object, its depth, two places in lists.
_FRAGMENT_BYTES = 100
MOST_MEMORIES = 2_000


@dataclass(frozen=True, slots=True)
class CachedTail:
    """The tail of one policy's view up to head_pk, on the border at depth `border` of the fold
    fold_pk, with the notes in it."""

    border: int
    head_pk: int
    head_depth: int
    tail: Tail
    fold_pk: int | None = None
    noted: Noted = NO_NOTES

    @property
    def weight(self) -> int:
        """About what it takes in memory, in bytes."""
        return self.tail.size + _FRAGMENT_BYTES * len(self.tail.fragments)


ViewKey = tuple[int, str, str | None]
"""Whose tail: the conversation, the policy, the backend whose reasoning it keeps."""


class ViewCache:
    """Tails by key and memories by fold; the oldest go first.

    What is kept here was committed before: a row number that a failed transaction gave out is
    given out again. It is read on the store's thread and written on the event loop's.
    """

    def __init__(self, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._limit = limit_bytes
        self._size = 0
        self._lock = threading.Lock()
        self._tails: OrderedDict[ViewKey, CachedTail] = OrderedDict()
        self._memories: OrderedDict[int, list[dict[str, Any]]] = OrderedDict()

    def tail(self, key: ViewKey) -> CachedTail | None:
        with self._lock:
            if key in self._tails:
                self._tails.move_to_end(key)
            return self._tails.get(key)

    def keep_tail(self, key: ViewKey, cached: CachedTail) -> None:
        with self._lock:
            old = self._tails.pop(key, None)
            self._size += cached.weight - (old.weight if old else 0)
            self._tails[key] = cached
            while self._size > self._limit and len(self._tails) > 1:
                _, gone = self._tails.popitem(last=False)
                self._size -= gone.weight

    def memory(self, fold_pk: int) -> list[dict[str, Any]] | None:
        with self._lock:
            return self._memories.get(fold_pk)

    def keep_memory(self, fold_pk: int, messages: list[dict[str, Any]]) -> None:
        with self._lock:
            self._memories[fold_pk] = messages
            while len(self._memories) > MOST_MEMORIES:
                self._memories.popitem(last=False)

    def forget(self, conversation_pk: int) -> None:
        """Drop what is known of a conversation: it was deleted or its memory was changed."""
        with self._lock:
            for key in [key for key in self._tails if key[0] == conversation_pk]:
                self._size -= self._tails.pop(key).weight
            self._memories.clear()
