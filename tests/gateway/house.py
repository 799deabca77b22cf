"""A small house to drive turns in: a real store in a folder, a clock by hand, models by script."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, text

from gateway.backends.base import Call, Chunk, Completion, Health
from gateway.backends.faults import UpstreamFault
from gateway.flows.context import Context
from gateway.flows.incoming import prepare
from gateway.flows.turn import Turn, open_turn
from gateway.policy_file import parse_policies
from gateway.settings import Settings
from gateway.store import chapter_rows, gist_rows, transcript
from gateway.store.engine import Store
from gateway.store.transcript import ConversationRow, StoredMessage
from gateway.wire.json_text import dump_bytes, loads
from gateway.wire.requests import parse_chat
from tests.gateway.databases import house_url

POLICIES = """
version: 1
backends:
  local: {kind: scripted}
  cloud: {kind: scripted}
policies:
  small:
    view: {start: 3000, ceiling: 4000, headroom: 1200, keep: 600}
    chapters: {split: 1500, length: 100, stack: 600}
    gist: {length: 150}
    recall: {budget: 0}
  wide:
    view: {start: 100000, ceiling: 120000, headroom: 20000, keep: 50000}
    recall: {budget: 0}
models:
  foldgate: {tiers: [{backend: local, policy: small}]}
  cloudy: {tiers: [{backend: cloud, policy: wide}]}
  both: {tiers: [{backend: local, policy: small}, {backend: cloud, policy: wide}]}
"""

Say = dict[str, Any]
Answer = str | UpstreamFault | Sequence[dict[str, Any] | UpstreamFault]


def user(content: Any) -> Say:
    return {"role": "user", "content": content}


def assistant(content: Any, **more: Any) -> Say:
    return {"role": "assistant", "content": content, **more}


def system(content: str) -> Say:
    return {"role": "system", "content": content}


def call_of(id: str, arguments: str = "{}", name: str = "look") -> Say:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(id: str, content: str) -> Say:
    return {"role": "tool", "tool_call_id": id, "content": content}


class HandClock:
    """Time stands still until somebody moves it."""

    def __init__(self, now_ms: int = 1_800_000_000_000) -> None:
        self.ms = now_ms

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.ms / 1000

    async def sleep(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)


def delta(said: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": dict(said), "finish_reason": finish}]}


def deltas(said: str, finish: str = "stop", usage: Mapping[str, int] | None = None) -> list[Any]:
    """A streamed answer: a role, the text in pieces, its end, and usage if there is any."""
    third = len(said) // 3 + 1
    pieces = [said[at : at + third] for at in range(0, len(said), third)]
    chunks = [delta({"role": "assistant", "content": ""})]
    chunks += [delta({"content": piece}) for piece in pieces]
    chunks.append(delta({}, finish))
    if usage is not None:
        chunks.append({"choices": [], "usage": dict(usage)})
    return chunks


class Model:
    """A backend that answers by script and remembers what it was asked.

    answers: taken one a call, then "Reply <n>." for ever. seen: the prompts, as bytes. opens is
    called when a call comes in, events before each chunk of a stream: to look at the world, or to
    change it, in between (awaited where they return something to await).
    """

    kind = "scripted"
    local = True
    image_chars = 3_000
    can_prefill = False
    slot_care: Any = None
    off_reason: str | None = None

    def __init__(self, name: str, window: int | None = None) -> None:
        self.name = name
        self.window_tokens = window
        self.answers: list[Answer] = []
        self.calls: list[Call] = []
        self.counts: Callable[[Sequence[bytes]], int | None] = lambda messages: None
        self.healthy = True
        self.closed = 0
        self.opens: Callable[[], Any] = lambda: None
        self.events: Callable[[], Any] = lambda: None

    @property
    def seen(self) -> list[tuple[bytes, ...]]:
        return [call.messages for call in self.calls]

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...

    async def health(self) -> Health:
        return Health(self.healthy)

    async def window(self) -> int | None:
        return self.window_tokens

    async def count_tokens(
        self, messages: Sequence[bytes], params: Mapping[str, Any] | None = None
    ) -> int | None:
        return self.counts(messages)

    def dropped_params(self, params: dict[str, Any]) -> tuple[str, ...]:
        return ()

    async def _answer(self, call: Call) -> Answer:
        self.calls.append(call)
        if (found := self.opens()) is not None:
            await found
        return self.answers.pop(0) if self.answers else f"Reply {len(self.calls)}."

    async def stream(self, call: Call) -> AsyncIterator[Chunk]:
        answer = await self._answer(call)
        if isinstance(answer, UpstreamFault):
            raise answer
        try:
            for piece in deltas(answer) if isinstance(answer, str) else answer:
                found = self.events()
                if found is not None:
                    await found
                if isinstance(piece, UpstreamFault):
                    raise piece
                yield Chunk(dump_bytes(piece), piece)
        finally:
            self.closed += 1

    async def complete(self, call: Call) -> Completion:
        answer = await self._answer(call)
        if isinstance(answer, UpstreamFault):
            raise answer
        if not isinstance(answer, str):
            (whole,) = answer
            if isinstance(whole, UpstreamFault):
                raise whole
        else:
            message = assistant(answer)
            whole = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return Completion(dump_bytes(whole), whole)


@dataclass(frozen=True, slots=True)
class Said:
    """What one request came to. prompt: the messages of the last call, decoded; bytes: as sent."""

    turn: Turn
    text: str
    bytes: tuple[bytes, ...]

    @property
    def prompt(self) -> list[dict[str, Any]]:
        return [loads(message) for message in self.bytes]

    @property
    def conversation(self) -> str:
        return self.turn.prepared.begun.conversation.id

    @property
    def view(self) -> str:
        return self.turn.prepared.begun.view_kind


@dataclass
class House:
    """The flows over a store of their own."""

    folder: Path
    policies: str = POLICIES
    clock: HandClock = field(default_factory=HandClock)
    models: dict[str, Model] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = Store(house_url(self.folder / "house.db"))
        self.store.open()
        self.models = {name: Model(name) for name in ("local", "cloud")}
        self.rings: list[int] = []
        self._numbers = itertools.count(1)
        self.restart()

    def restart(self) -> None:
        """A fresh context over the same rows, as after a restart: nothing is remembered."""
        loaded = parse_policies(self.policies, name="house.yaml", environ={})
        self.ctx = Context(
            Settings(),
            self.clock,
            self.store,
            loaded,
            self.models,
            f"boot{next(self._numbers)}",
            ring=self.rings.append,
        )

    @property
    def local(self) -> Model:
        return self.models["local"]

    @property
    def cloud(self) -> Model:
        return self.models["cloud"]

    async def open(
        self, *messages: Say, id: str | None = None, owner: str = "ann", **more: Any
    ) -> Turn:
        """A turn stored and prepared, not yet called. Extra fields: of the request's body, except
        user, key, retried, headers and tags, which are the request's own."""
        names = ("user", "retried", "headers", "tags")
        placed = {name: more.pop(name) for name in names if name in more}
        key = more.pop("key", None)
        body = {"model": "foldgate", "stream": True, "messages": list(messages), **more}
        incoming = prepare(
            parse_chat(dump_bytes(body)),
            owner=owner,
            conversation=id,
            idempotency_key=key,
            **placed,
        )
        self.clock.ms += 1_000
        return await open_turn(self.ctx, incoming, f"req{next(self._numbers)}")

    async def say(self, *messages: Say | str, **more: Any) -> Said:
        """One whole turn, streamed."""
        turn = await self.open(*(user(m) if isinstance(m, str) else m for m in messages), **more)
        return await self.relay(turn)

    async def relay(self, turn: Turn) -> Said:
        said = ""
        async for chunk in turn.stream():
            for choice in chunk.parsed.get("choices") or ():
                said += (choice.get("delta") or {}).get("content") or ""
        return Said(turn, said, turn.prepared.call.messages)

    async def try_to_say(self, *messages: Say | str, **more: Any) -> None:
        with suppress(UpstreamFault):
            await self.say(*messages, **more)

    # -- what is stored -----------------------------------------------------------------------

    def rows(self, sql: str, **values: Any) -> list[tuple[Any, ...]]:
        def run(connection: Connection) -> list[tuple[Any, ...]]:
            return [tuple(row) for row in connection.execute(text(sql), values)]

        return self.store.reading(run)

    def one(self, sql: str, **values: Any) -> Any:
        return self.rows(sql, **values)[0][0]

    def conversation(self, id: str, owner: str = "ann", user: str = "") -> ConversationRow:
        def find(connection: Connection) -> ConversationRow:
            pk = transcript.find_owner(connection, owner, user)
            assert pk is not None
            found = transcript.find_conversation(connection, pk, id)
            assert found is not None
            return found

        return self.store.reading(find)

    def path(self, id: str, owner: str = "ann") -> list[StoredMessage]:
        """The newest branch, oldest message first."""
        head = self.conversation(id, owner).head_pk
        return [] if head is None else self.store.reading(transcript.path_between, head, 0)

    def told(self, id: str, owner: str = "ann") -> list[tuple[str, Any]]:
        """(role, content) along the newest branch."""
        return [(row.role, loads(row.raw).get("content")) for row in self.path(id, owner)]

    # -- memory ---------------------------------------------------------------------------------

    def pending(self) -> list[tuple[int, int, int]]:
        """(chapter, its conversation, source characters) of chapters without a text."""
        return self.rows(  # type: ignore[return-value]
            "SELECT pk, conversation_pk, source_chars FROM chapters c WHERE NOT EXISTS"
            " (SELECT 1 FROM chapter_versions v WHERE v.chapter_pk = c.pk) ORDER BY pk"
        )

    def write(
        self, chapter: int, conversation: int, text: str | None = None, origin: str = "model"
    ) -> int:
        """A version of a chapter."""
        return self.store.writing(
            chapter_rows.add_version,
            conversation,
            chapter,
            text=text or f"Chapter {chapter}: they spoke of many things.",
            origin=origin,
            backend="local" if origin == "model" else None,
            prompt=None,
            now_ms=self.clock.ms,
        )

    def write_chapters(self) -> int:
        """Every pending chapter gets a text. Returns how many there were."""
        pending = self.pending()
        for chapter, conversation, _ in pending:
            self.write(chapter, conversation)
        return len(pending)

    def write_gists(self) -> int:
        """Every gist job that waits is done. Returns how many there were."""
        jobs = self.rows(
            "SELECT pk, conversation_pk, policy, payload FROM jobs"
            " WHERE kind = 'gist' AND state = 'queued' ORDER BY pk"
        )
        for pk, conversation, policy, payload in jobs:
            told = loads(payload)
            self.store.writing(
                gist_rows.add_gist,
                conversation,
                policy=policy,
                last_pk=told["last_pk"],
                last_depth=told["last_depth"],
                sources=told["chapters"],
                text=f"Gist to {told['last_depth']}.",
                origin="model",
                backend="local",
                prompt=None,
                now_ms=self.clock.ms,
            )
            self.store.writing(_done, pk)
        return len(jobs)

    def folds(self) -> list[tuple[Any, ...]]:
        """(policy, depth at which it was first seen, border's depth, kind, chapter versions)."""
        return self.rows(
            "SELECT policy, at_depth, border_depth, kind, memory FROM folds ORDER BY pk"
        )


def _done(connection: Connection, pk: int) -> None:
    connection.execute(text("UPDATE jobs SET state = 'done' WHERE pk = :pk"), {"pk": pk})
