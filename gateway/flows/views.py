"""A bounded memory of tails that were just rendered, so that a turn costs what is new.

It holds nothing that the rows do not: a tail is found by the fold it stands on and its head, and
is rendered again from the rows whenever it is not there.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.flows.notes import NO_NOTES, Noted
from gateway.prompts.view import Tail

# What some 200 live local views weigh; a cloud view of 200,000 characters weighs four of them, and
# a memory with documents of 100,000 characters as much again. One that is not there costs its next
# turn some milliseconds.
DEFAULT_BYTES = 8 * 1024 * 1024
# What Python needs beside the bytes of a message: their object, its depth, two places in lists.
_FRAGMENT_BYTES = 100


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


@dataclass(frozen=True, slots=True)
class CachedMemory:
    """The memory of one fold, as messages."""

    messages: list[dict[str, Any]]

    @property
    def weight(self) -> int:
        """About what it takes in memory, in bytes: two or four a character beyond Latin."""
        return sum(
            _FRAGMENT_BYTES + sum(sys.getsizeof(value) for value in message.values())
            for message in self.messages
        )


ViewKey = tuple[int, str, str | None]
"""Whose tail: the conversation, the policy, the backend whose reasoning it keeps."""


class ViewCache:
    """Tails by key and memories by fold within one budget of bytes; what was used longest ago goes
    first.

    What is kept here was committed before: a row number that a failed transaction gave out is
    given out again. It is read on the store's thread and written on the event loop's.
    """

    def __init__(self, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._limit = limit_bytes
        self._size = 0
        self._lock = threading.Lock()
        self._kept: OrderedDict[ViewKey | int, CachedTail | CachedMemory] = OrderedDict()

    def tail(self, key: ViewKey) -> CachedTail | None:
        found = self._find(key)
        return found if isinstance(found, CachedTail) else None

    def keep_tail(self, key: ViewKey, cached: CachedTail) -> None:
        self._keep(key, cached)

    def memory(self, fold_pk: int) -> list[dict[str, Any]] | None:
        found = self._find(fold_pk)
        return found.messages if isinstance(found, CachedMemory) else None

    def keep_memory(self, fold_pk: int, messages: list[dict[str, Any]]) -> None:
        self._keep(fold_pk, CachedMemory(messages))

    def forget(self, conversation_pk: int) -> None:
        """Drop what is known of a conversation: it was deleted or its memory was changed. The
        memories of others go too: they may show what was learned in it."""
        self._drop(lambda key: isinstance(key, int) or key[0] == conversation_pk)

    def forget_memories(self) -> None:
        """Drop every memory: of what some of them show the text is gone."""
        self._drop(lambda key: isinstance(key, int))

    def _find(self, key: ViewKey | int) -> CachedTail | CachedMemory | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _keep(self, key: ViewKey | int, cached: CachedTail | CachedMemory) -> None:
        with self._lock:
            old = self._kept.pop(key, None)
            self._size += cached.weight - (old.weight if old else 0)
            self._kept[key] = cached
            while self._size > self._limit and len(self._kept) > 1:
                _, gone = self._kept.popitem(last=False)
                self._size -= gone.weight

    def _drop(self, is_gone: Callable[[ViewKey | int], bool]) -> None:
        with self._lock:
            for key in [key for key in self._kept if is_gone(key)]:
                self._size -= self._kept.pop(key).weight
