"""The prefix report: how much of a prompt its server should still hold, and why not more.

The book keeps of the last prompt of each conversation on each backend one number a message (its
hash), never its text; of a prompt that was read in ahead likewise. A turn's cost is the comparison
of two rows of numbers, which for the messages of an unchanged tail are known already.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from gateway.store import attempts
from gateway.store.fold_rows import FoldRow
from gateway.store.transcript import Node, on_path
from gateway.wire.json_text import dumps, loads
from policies.messages import message_chars

DEFAULT_BYTES = 2 * 1024 * 1024
"""Numbers of some 250,000 messages: 500 live local views of 500 messages each."""

_ENTRY_BYTES = 700
"""What Python needs for one entry beside its numbers."""

_TOOLS = ("tools", "functions", "tool_choice", "function_call", "parallel_tool_calls")
_TEMPLATE = ("chat_template_kwargs", "reasoning_effort", "thinking", "enable_thinking")
"""Parameters that stand in a prompt, or change how its messages are written into it."""

UNKNOWN = "unknown"
"""Why the book has nothing to compare with: told apart in the rows (`settle_cause`)."""

SLACK_TOKENS = 64
SLACK_SHARE = 0.05
TOKENS_PER_CHAR = 1.2
"""A reuse falls short where more tokens were read than these allow: the template's marks, a share
of the prompt for what an estimate misses, and for each new character what CJK scripts cost at
most (measured: 0.9 characters to a token)."""

CLOUD_SLACK_TOKENS = 1_152
"""Providers cache in blocks of 64 to 128 tokens and nothing below 1,024 (their documents)."""

LITTLE = 0.05
"""A slot of which less than this share is used again held something else, or nothing."""

BookKey = tuple[int, str]
"""Whose prompt: the conversation, the backend."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A prompt as the book compares it: a mark of each message (and of the reply, once the book
    keeps it), and what it was made of.

    leading: so many system texts in front; then `memory` messages of memory. notes: the depths
    and marks of system texts further down. fold_kind: of the fold that the view stands on.
    """

    marks: array[int]
    leading: int
    memory: int
    notes: frozenset[tuple[int, int]]
    tools: int
    template: int
    policy: str
    fold_pk: int | None
    fold_kind: str
    asked_pk: int
    asked_depth: int


@dataclass(frozen=True, slots=True)
class Habits:
    """What a client was seen to do with its system texts from one turn to the next.

    steady: notes that kept their depth. moving: notes that kept their words and moved. leading:
    whether the system texts in front stayed as they were.
    """

    steady: frozenset[tuple[int, int]] = frozenset()
    moving: frozenset[tuple[int, int]] = frozenset()
    leading: bool = True


@dataclass(frozen=True, slots=True)
class Move:
    """A prompt beside the one before it on the same backend.

    expected_chars: of the prompt, what the server should hold; None where nothing is known of the
    prompt before. at, by: the first message that differs from the prompt before and why; None
    where none does. before: (row number, depth) of the message asked before. slot: that it was
    answered in, None where the server did not tell.
    """

    expected_chars: int | None = None
    at: int | None = None
    by: str | None = None
    before: tuple[int, int] | None = None
    slot: int | None = None
    habits: Habits = field(default_factory=Habits)


UNCOMPARED = Move()
"""Of an attempt that was never sent."""


@dataclass(frozen=True, slots=True)
class Used:
    """What a backend said of one prompt: tokens, and the slot where it has them; is_own: the slot
    was this conversation's since its prompt before."""

    prompt_chars: int
    prompt_tokens: int | None
    cached_tokens: int | None
    slot: int | None
    is_cloud: bool
    is_own: bool | None = None


@dataclass(slots=True)
class _Entry:
    """The last prompt sent with its reply, and what the server holds where that is another prompt,
    read in ahead."""

    sight: Sight
    slot: int | None
    held: array[int] | None = None

    @property
    def weight(self) -> int:
        """About what it takes in memory, in bytes."""
        return _ENTRY_BYTES + 8 * (len(self.sight.marks) + len(self.held or ()))


def mark_of(message: bytes) -> int:
    """The number that stands for a message in this process."""
    return hash(message)


def look_at(
    messages: Sequence[bytes],
    params: Mapping[str, Any],
    *,
    tail: array[int] | None,
    leading: int,
    notes: Sequence[tuple[int, bytes]],
    memory: int,
    policy: str,
    fold: FoldRow | None,
    asked: Node,
) -> Sight:
    """A prompt for the book. tail: the marks of its end, where they are known. notes: (depth,
    JSON) of each, the rest as in Sight."""
    marks = array("q", map(hash, messages[: len(messages) - len(tail or ())]))
    return Sight(
        marks=marks + tail if tail else marks,
        leading=leading,
        memory=memory,
        notes=frozenset((depth, mark_of(text)) for depth, text in notes),
        tools=_digest(params, _TOOLS),
        template=_digest(params, _TEMPLATE),
        policy=policy,
        fold_pk=None if fold is None else fold.pk,
        fold_kind="fold" if fold is None else fold.kind,
        asked_pk=asked.pk,
        asked_depth=asked.depth,
    )


def _digest(params: Mapping[str, Any], names: Sequence[str]) -> int:
    given = [(name, params[name]) for name in names if name in params]
    return hash(dumps(given)) if given else 0


class PrefixBook:
    """The last prompt of each conversation on each backend; the oldest go first.

    Used on the event loop alone.
    """

    def __init__(self, limit_bytes: int = DEFAULT_BYTES) -> None:
        self._limit = limit_bytes
        self._size = 0
        self._entries: OrderedDict[BookKey, _Entry] = OrderedDict()

    @property
    def size(self) -> int:
        """About what it takes in memory, in bytes."""
        return self._size

    def compare(
        self,
        key: BookKey,
        sight: Sight,
        messages: Sequence[bytes],
        *,
        prompt_chars: int,
        image_chars: int,
    ) -> Move:
        """A prompt beside the last one there; messages are its JSON objects."""
        entry = self._entries.get(key)
        if entry is None:
            return Move(by=UNKNOWN)
        at, by = _find_move(entry.sight, sight)
        held = entry.sight.marks if entry.held is None else entry.held
        shared = _count_common(held, sight.marks)
        expected = 0
        if by not in ("tools", "params"):
            fresh = sum(message_chars(loads(m), image_chars) for m in messages[shared:])
            expected = max(0, prompt_chars - fresh) if shared else 0
        asked = (entry.sight.asked_pk, entry.sight.asked_depth)
        return Move(expected, at, by, asked, entry.slot, _read_habits(entry.sight, sight))

    def keep(self, key: BookKey, sight: Sight, reply: bytes | None, slot: int | None) -> None:
        """Remember a prompt that was sent, and the reply as later prompts show it."""
        if reply is not None:
            sight.marks.append(mark_of(reply))
        self._put(key, _Entry(sight, slot))

    def begin_reading(self, key: BookKey, messages: Sequence[bytes]) -> None:
        """A prompt begins to be read in over the one before: what both share stays."""
        self._hold(key, messages, is_whole=False)

    def end_reading(self, key: BookKey, messages: Sequence[bytes]) -> None:
        """A prompt was read in as a whole."""
        self._hold(key, messages, is_whole=True)

    def _hold(self, key: BookKey, messages: Sequence[bytes], *, is_whole: bool) -> None:
        entry = self._entries.get(key)
        if entry is None:
            return
        marks = array("q", map(hash, messages))
        if not is_whole:
            held = entry.sight.marks if entry.held is None else entry.held
            marks = marks[: _count_common(held, marks)]
        self._put(key, _Entry(entry.sight, entry.slot, marks))

    def _put(self, key: BookKey, entry: _Entry) -> None:
        old = self._entries.pop(key, None)
        self._size += entry.weight - (old.weight if old else 0)
        self._entries[key] = entry
        while self._size > self._limit and len(self._entries) > 1:
            _, gone = self._entries.popitem(last=False)
            self._size -= gone.weight

    def forget(self, conversation_pk: int) -> None:
        """Drop what is known of a conversation that was deleted."""
        for key in [key for key in self._entries if key[0] == conversation_pk]:
            self._size -= self._entries.pop(key).weight


def _count_common(one: array[int], other: array[int]) -> int:
    """How many numbers two rows have in common from their beginning."""
    most = min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    return bisect_left(range(most), True, key=lambda at: one[: at + 1] != other[: at + 1])


def _find_move(old: Sight, new: Sight) -> tuple[int | None, str | None]:
    """The first message that differs from the prompt before, and why."""
    if old.tools != new.tools:
        return 0, "tools"
    if old.template != new.template:
        return 0, "params"
    at = _count_common(old.marks, new.marks)
    if at == min(len(old.marks), len(new.marks)):
        return None, None
    if at < max(old.leading, new.leading):
        return at, "system text"
    if old.policy != new.policy:
        return at, "policy"
    if old.fold_pk == new.fold_pk:
        # Of one fold the memory changes by its owner's hand alone: what acts at once (`now`).
        is_memory = at < new.leading + max(old.memory, new.memory)
        return at, "renewal" if is_memory else "edit"
    # Rows are numbered in order: an older fold is that of a branch which left before the newer.
    is_older = new.fold_pk is None or new.fold_pk < (old.fold_pk or 0)
    return at, "edit" if is_older else new.fold_kind


def _read_habits(old: Sight, new: Sight) -> Habits:
    leading = old.leading == new.leading and old.marks[: old.leading] == new.marks[: new.leading]
    if not new.notes:
        return Habits(leading=leading)
    known = {mark for _, mark in old.notes}
    steady = new.notes & old.notes
    moving = frozenset(note for note in new.notes - steady if note[1] in known)
    return Habits(steady, moving, leading)


def name_cause(move: Move, used: Used) -> str | None:
    """What moved the prefix or, where nothing did and yet less was used again than expected, what
    the server must have done. None: all is as it should be, or the server does not tell."""
    if move.by is not None or move.expected_chars is None:
        return move.by
    if used.cached_tokens is None or not used.prompt_tokens or not used.prompt_chars:
        return None
    read = used.prompt_tokens - used.cached_tokens
    slack = CLOUD_SLACK_TOKENS if used.is_cloud else SLACK_TOKENS
    fresh = TOKENS_PER_CHAR * (used.prompt_chars - move.expected_chars)
    if read <= slack + fresh + SLACK_SHARE * used.prompt_tokens:
        return None
    if used.is_cloud:
        return "provider"
    return _name_server_cause(move, used, used.cached_tokens / used.prompt_tokens)


def _name_server_cause(move: Move, used: Used, share: float) -> str:
    """Of a llama-server that read more than it should have: it answered in another slot or in one
    that was taken over, or lost everything in the same one, or wrote the past otherwise than the
    time before."""
    if used.slot is None or used.slot != move.slot or used.is_own is False:
        return "slot"
    return "server restart" if share < LITTLE else "template"


def settle_cause(
    connection: Connection,
    move: Move,
    cause: str | None,
    *,
    conversation_pk: int,
    backend: str,
    attempt_pk: int,
    boot: str,
    asked: Node,
) -> str | None:
    """A cause told apart by the rows, where the book alone cannot: read on odd turns only."""
    if cause == "edit" and move.before is not None and on_path(connection, *move.before, asked):
        return "note"
    if cause != UNKNOWN:
        return cause
    if not asked.anchored:
        return "new"
    earlier = attempts.boot_before(connection, conversation_pk, backend, attempt_pk)
    if earlier is None:
        return "new"
    return "gateway restart" if earlier != boot else "forgotten"
