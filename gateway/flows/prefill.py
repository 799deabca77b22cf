"""Reading folded prompts in ahead of the person's next turn.

When the chapters that a fold waits for are there, the prompt of the next turn is known but for the
newest message. A server that keeps a conversation's cache can read it in while nobody waits; the
turn itself then costs what any other costs. Nothing is written, and a turn that arrives ends it.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from sqlalchemy import Connection

from gateway.backends.base import Backend, Call
from gateway.backends.faults import UpstreamFault
from gateway.clock import Clock
from gateway.flows.folds import foresee_fold
from gateway.flows.memories import tell_memory
from gateway.flows.notes import read_notes, tail_messages
from gateway.flows.prefixes import Habits, PrefixBook, mark_of
from gateway.flows.renewed import as_changed, is_asked_anew
from gateway.flows.showings import Foreseen
from gateway.flows.sites import Ground, Setting, Spot, System, find_ground, make_site
from gateway.meters.prefixes import Prefilled
from gateway.prompts.view import AROUND, Tail, TailMessage, assemble, encode_notes
from gateway.store import transcript
from gateway.store.engine import Store
from gateway.store.fold_rows import FoldRow
from gateway.store.notes import NoteRow
from gateway.store.transcript import ConversationRow, Node, StoredMessage
from gateway.wire.json_text import dumps, loads

log = logging.getLogger("foldgate.prefill")

DUMMY = "…"
"""Stands where the person's next message will: no template ends a prompt with a reply."""

MOST_KNOWN = 256
"""Conversations above their start whose newest turn is remembered; the oldest go first."""

MOST_TRIES = 50
"""How often a reading that other conversations' turns broke off is taken up again; what was read
before stays in the slot."""

PAUSE_SECONDS = 0.2
"""Before it is taken up again."""

BREATH_SECONDS = 0.2
"""Between a turn and the look for what the next one will be shown. Nobody writes faster; a program
that does would only have its next turn wait for a look that comes too late for it."""


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest turn of a conversation: what the next one will probably be like.

    params: as the client sent them (tools stand in the prompt). ratio: characters per token.
    fixed: characters of system texts and tools; size: of the view with the reply, as its start
    counts. moves: the next turn goes to another backend than this one went to, whose whole prompt
    is new there.
    """

    conversation: ConversationRow
    setting: Setting
    system: System
    params: Mapping[str, Any]
    asked: Node
    ratio: float
    fixed: int
    size: int
    habits: Habits
    moves: bool = False

    @property
    def is_long(self) -> bool:
        """Whether it is above the start of folding."""
        site = make_site(self.conversation, self.setting, self.fixed, self.asked, self.ratio, 0)
        return self.size > site.limits.start


class Prefills:
    """The readings under way and the turns that they are made from. count: told of each reading
    its backend and how it ended."""

    def __init__(
        self,
        store: Store,
        backends: Mapping[str, Backend],
        book: PrefixBook,
        clock: Clock,
        count: Callable[[str, Prefilled], None],
    ) -> None:
        self._store = store
        self._backends = backends
        self._book = book
        self._clock = clock
        self._count = count
        self._newest: OrderedDict[int, Newest] = OrderedDict()
        self._read: dict[int, tuple[bytes, ...]] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._again: set[int] = set()

    def arrive(self, conversation_pk: int) -> None:
        """A turn of this conversation begins: whatever is read in ahead of it stops at once."""
        self._newest.pop(conversation_pk, None)
        self._read.pop(conversation_pk, None)
        self._again.discard(conversation_pk)
        task = self._tasks.pop(conversation_pk, None)
        if task is not None:
            task.cancel()

    forget = arrive
    """A conversation was deleted."""

    def turn_ended(self, newest: Newest) -> None:
        """A turn ended; where it is above the start, what it waits for may be ready already. One
        on a backend that reads nothing ahead is remembered too: it may be sent to another."""
        if self._reads(newest) and not (newest.is_long or newest.moves):
            return
        if not any(map(_can_read, self._backends.values())):
            return
        self._newest[newest.conversation.pk] = newest
        while len(self._newest) > MOST_KNOWN:
            gone, _ = self._newest.popitem(last=False)
            self._read.pop(gone, None)
        self._look(newest.conversation.pk, BREATH_SECONDS)

    def redirect(self, conversation_pk: int, setting: Setting) -> None:
        """The next turn of this conversation goes to another tier than its newest went to."""
        newest = self._newest.get(conversation_pk)
        if newest is None or newest.setting.backend == setting.backend:
            return
        setting = replace(setting, tools_chars=newest.setting.tools_chars)
        self._newest[conversation_pk] = replace(newest, setting=setting, moves=True)
        self.memory_grew(conversation_pk)

    def memory_grew(self, conversation_pk: int) -> None:
        """A chapter or a gist of this conversation was stored."""
        self._look(conversation_pk)

    def _look(self, conversation_pk: int, after: float = 0.0) -> None:
        newest = self._newest.get(conversation_pk)
        if newest is None or not self._reads(newest):
            return
        if conversation_pk in self._tasks:
            self._again.add(conversation_pk)
            return
        task = asyncio.create_task(self._attend(conversation_pk, after))
        self._tasks[conversation_pk] = task
        task.add_done_callback(partial(self._end, conversation_pk))

    async def aclose(self) -> None:
        """Break off what is being read."""
        self._newest.clear()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def settle(self) -> None:
        """Wait until nothing is being read."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _reads(self, newest: Newest) -> bool:
        return _can_read(self._backends[newest.setting.backend])

    def _end(self, conversation_pk: int, task: asyncio.Task[None]) -> None:
        if self._tasks.get(conversation_pk) is task:
            del self._tasks[conversation_pk]
            if conversation_pk in self._again:  # said when the task had looked for the last time
                self._again.discard(conversation_pk)
                self.memory_grew(conversation_pk)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a prompt could not be read in ahead", exc_info=error)

    async def _attend(self, conversation_pk: int, after: float) -> None:
        if after:
            await self._clock.sleep(after)
        while (newest := self._newest.get(conversation_pk)) is not None:
            self._again.discard(conversation_pk)
            messages = await self._store.read(foresee_prompt, newest, self._clock.now_ms())
            if messages is not None and messages != self._read.get(conversation_pk):
                await self._read_in(newest, messages)
            if conversation_pk not in self._again:
                return

    async def _read_in(self, newest: Newest, messages: tuple[bytes, ...]) -> None:
        """Have the prompt read, however often turns of others break it off."""
        name, conversation = newest.setting.backend, newest.conversation
        backend, key = self._backends[name], (conversation.pk, name)
        call = Call(
            messages=messages,
            params=dict(newest.params),
            stream=True,
            max_tokens=1,
            purpose="prefill",
            request_id=f"prefill-{conversation.id}",
            conversation=conversation.id,
        )
        self._book.begin_reading(key, messages[:-1])
        outcome: Prefilled = "dropped"
        try:
            if await self._try(backend, call):
                outcome = "done"
                self._book.end_reading(key, messages[:-1])
                self._read[conversation.pk] = messages
        except UpstreamFault as fault:
            outcome = "failed"
            said = fault.outline
            log.info("%s: the next prompt was not read in ahead: %s", conversation.id, said)
        finally:
            self._count(name, outcome)

    async def _try(self, backend: Backend, call: Call) -> bool:
        for _ in range(MOST_TRIES):
            if await backend.prefill(call):
                return True
            await self._clock.sleep(PAUSE_SECONDS)
        return False


def _can_read(backend: Any) -> bool:
    return bool(getattr(backend, "can_prefill", False))


def foresee_prompt(connection: Connection, newest: Newest, now_ms: int) -> tuple[bytes, ...] | None:
    """The prompt of the next turn as far as it is known, and a dummy in place of what is not.

    None where the next user message would see no new fold, or where something was said meanwhile.
    Where a conversation moves, a view that needs none is read in too.
    """
    found = _find_head(connection, newest)
    if found is None or not newest.habits.leading:
        return None
    conversation, head = found
    spot = Spot(conversation, head, newest.system, "", now_ms, newest.ratio)
    ground = find_ground(connection, spot, newest.setting)
    fold = foresee_fold(connection, ground.site, ground.fold)
    stays = fold is None
    if stays and newest.moves and ground.total <= ground.site.limits.start:
        fold = _as_it_is(connection, conversation, ground.fold)
    if fold is None:
        return None
    setting = newest.setting
    tail = Tail(setting.backend if setting.keep_reasoning else None)
    rows = transcript.path_between(connection, head.pk, fold.border_depth)
    for message in tail_messages(rows, _kept_notes(connection, ground, rows) if stays else ()):
        tail.add(message)
    if tail.open_calls:
        return None  # what comes next is a tool's result, not a person
    return write_ahead(
        newest.system,
        tell_memory(
            connection,
            fold.gist_pk,
            fold.versions,
            fold.shown,
            conversation_pk=conversation.pk,
            begins=None if fold.border_depth else head.pk,
        ),
        tail,
        border=fold.border_depth,
        strict_roles=setting.strict_roles,
        habits=newest.habits,
        shift=head.depth + 1 - newest.asked.depth,
    )


def _kept_notes(
    connection: Connection, ground: Ground, rows: Sequence[StoredMessage]
) -> list[NoteRow]:
    """The notes in the tail of a view whose fold stays; one that is to come drops them."""
    site, path = ground.site, {row.pk for row in rows}
    return read_notes(connection, site.conversation, site.policy.name, ground.fold, path)


def _as_it_is(
    connection: Connection, conversation: ConversationRow, fold: FoldRow | None
) -> Foreseen:
    if fold is None:
        return Foreseen(0, None, ())
    is_changed = is_asked_anew(fold, conversation.renew_after)
    return Foreseen.of(as_changed(connection, fold) if is_changed else fold)


def _find_head(connection: Connection, newest: Newest) -> tuple[ConversationRow, Node] | None:
    """The reply to the newest turn, if nothing was said since."""
    known = newest.conversation
    conversation = transcript.conversation_by_pk(connection, known.owner_pk, known.pk)
    if conversation is None or conversation.head_pk is None:
        return None
    head = transcript.node_by_pk(connection, conversation.head_pk)
    if head.role != "assistant" or head.parent_pk != newest.asked.pk:
        return None
    return conversation, head


def write_ahead(
    system: System,
    memory: Sequence[dict[str, Any]],
    tail: Tail,
    *,
    border: int,
    strict_roles: bool,
    habits: Habits,
    shift: int,
) -> tuple[bytes, ...]:
    """A coming view with a dummy as its newest message, as far as it is sure.

    A client's system text inside the tail stays or moves on with the conversation by `shift`
    messages, as it did before; of one that was not seen before neither is known, and what
    follows it is left out. The prompt ends behind a reply, so that the dummy is a turn of its own
    under every template.
    """
    steady: list[tuple[int, dict[str, Any]]] = []
    limit = tail.depths[-1] + 1 if tail.depths else border + 1
    for (depth, message), (_, text) in zip(_placed(system), encode_notes(system), strict=True):
        note = (depth, mark_of(text))
        if note in habits.steady:
            steady.append((depth, message))
        else:
            place = depth + shift if note in habits.moving else depth
            limit = min(limit, place - 1 if AROUND in message else place)
    kept = _cut_behind_reply(tail, limit)
    end = kept.depths[-1] if kept.depths else border
    # Behind an unsure one, and beside it, a steady one has no sure place either.
    known = [(depth, m) for depth, m in steady if depth <= end and depth < limit]
    kept.add(TailMessage(end + 1, "user", dumps({"role": "user", "content": DUMMY}), None))
    leading = [(depth, message) for depth, message in system if depth <= 0]
    return assemble([*leading, *known], memory, kept, border=border, strict_roles=strict_roles)


def _placed(system: System) -> list[tuple[int, dict[str, Any]]]:
    return [(depth, message) for depth, message in system if depth > 0]


def _cut_behind_reply(tail: Tail, end: int) -> Tail:
    """The tail up to its last reply at or before depth `end`."""
    count = bisect_right(tail.depths, end)
    while count and not _is_reply(tail.fragments[count - 1]):
        count -= 1
    kept = Tail(tail.reasoning_of)
    kept.fragments, kept.depths = tail.fragments[:count], tail.depths[:count]
    kept.marks = tail.marks[:count]
    return kept


def _is_reply(fragment: bytes) -> bool:
    message = loads(fragment)
    return message["role"] == "assistant" and not message.get("tool_calls")
