"""What the tests of background work play on: a clock moved by hand, a backend that answers from a
list, a real store, and a story with an honest chapter of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select, text

from gateway.backends.base import Backend, Call, Completion, Health
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.whole_answers import check_completion
from gateway.flows.context import Context
from gateway.jobs import queue
from gateway.jobs.rows import JobRow, jobs, read_row
from gateway.policy_file import parse_policies
from gateway.replay.stage import InlineStore
from gateway.settings import Settings
from gateway.store import chapter_rows, quarantine
from gateway.store.attempts import begin_attempt
from gateway.store.engine import Store
from gateway.store.transcript import ConversationRow, Node
from gateway.wire.json_text import dump_bytes, dumps, loads
from policies.values import Span
from tests.gateway.databases import database_url
from tests.gateway.seeds import NOW, add_conversation

POLICIES = """
version: 1
backends:
  glm: {kind: llama_cpp, url: "http://127.0.0.1:1"}
  deepseek: {kind: litellm, model: deepseek/deepseek-v4-flash, api_key: k}
  grok: {kind: litellm, model: xai/grok-4.3, api_key: k}
policies:
  fold:
    chapters: {length: 500, split: 32000}
    summaries: {backends: [glm, deepseek, grok], delay: 30s}
  own: {}
  alone:
    chapters: {length: 500}
    gist: {length: 250}
    summaries: {backends: [glm]}
models:
  foldgate: {tiers: [{backend: deepseek, policy: fold}]}
  confided: {tiers: [{backend: glm, policy: alone}], private: true}
"""

STORY = [
    "Mara climbed the 212 steps of the lighthouse at Kerrin Point and found the lamp cold.",
    "Old Tobias shook his head. “The oil ran out on Tuesday, and the boat from Ansel is late.”",
    "Mara asked him how many ships had passed in the dark since then.",
    "“Three,” said Tobias. “The third was the Halcyon, and she sounded her horn twice.”",
    "Mara promised to row to Ansel before dawn and to bring back 40 litres of oil.",
    "Tobias gave her his brother Edwin's compass and warned her of the reef called the Comb.",
    "At the jetty Mara met Edwin himself, soaked to the bone, and he begged her to wait.",
    "Edwin said that the harbour master Quill had sold the oil to the Halcyon for 90 crowns.",
    "Mara did not believe him. She asked him to swear it on the compass, and he would not.",
    "He only told her that Quill kept his ledger in a blue tin box under the customs bench.",
    "Mara rowed out at four with Edwin at the tiller, and the Comb tore a plank from the boat.",
    "They reached Ansel at six, and Quill's door was open and the blue tin box was gone.",
]

CHAPTER = (
    "Mara found the lamp of the lighthouse at Kerrin Point cold, because the oil had run out on "
    "Tuesday. Tobias told her that three ships had passed in the dark, the Halcyon last. She "
    "promised to fetch 40 litres from Ansel, and he gave her Edwin's compass and warned her of the "
    "Comb. Edwin claimed that Quill had sold the oil to the Halcyon for 90 crowns but would not "
    "swear to it. They rowed out at four, lost a plank on the Comb and reached Ansel at six; Quill "
    "and his blue tin box were gone. Who took the ledger stayed open."
)

GIST = (
    "Mara learned at Kerrin Point that the oil had run out on Tuesday and rowed with Edwin to "
    "Ansel for 40 litres of it. Edwin claimed that Quill had sold it to the Halcyon for 90 crowns. "
    "The Comb cost them a plank; Quill's blue tin box was gone."
)

Outcome = str | dict[str, Any] | UpstreamFault | Exception


class HandClock:
    """A clock that moves when it is told to; sleepers wake when their time has come."""

    def __init__(self) -> None:
        self.ms = NOW
        self.mono = 1_000.0
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now_ms(self) -> int:
        return self.ms

    def monotonic(self) -> float:
        return self.mono

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self.mono + seconds, woken))
        await woken

    def advance(self, seconds: float) -> None:
        self.ms += int(seconds * 1000)
        self.mono += seconds
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self.mono]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self.mono]
        for _, woken in due:
            if not woken.done():
                woken.set_result(None)


class Listed:
    """A backend that gives its outcomes one after another, the last one for ever.

    A text is the content of a whole answer; a dict is the answer's first choice, with `usage`
    beside it where it has one. hold: awaited before each answer.
    """

    image_chars = 3_000
    off_reason: str | None = None
    can_prefill = False
    slot_care = None

    def __init__(
        self, name: str, *outcomes: Outcome, kind: str = "llama_cpp", window: int | None = None
    ) -> None:
        self.name = name
        self.kind = kind
        self.local = kind == "llama_cpp"
        self.window_tokens = window
        self.calls: list[Call] = []
        self.cancelled = 0
        self.hold: Callable[[Call], Awaitable[None]] | None = None
        self._outcomes = list(outcomes)

    async def start(self) -> None: ...

    async def aclose(self) -> None: ...

    async def health(self) -> Health:
        return Health(True)

    async def window(self) -> int | None:
        return self.window_tokens

    async def count_tokens(
        self, messages: Sequence[bytes], params: Mapping[str, Any] | None = None
    ) -> int | None:
        return None

    def dropped_params(self, params: dict[str, Any]) -> tuple[str, ...]:
        return ()

    def stream(self, call: Call) -> Any:
        raise NotImplementedError("background work asks for whole answers")

    async def complete(self, call: Call) -> Completion:
        self.calls.append(call)
        try:
            if self.hold is not None:
                await self.hold(call)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        outcome = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return answer(self.name, outcome)

    def say(self, outcome: Outcome) -> None:
        """Give this outcome from now on."""
        self._outcomes = [outcome]

    def prompts(self) -> list[str]:
        return [loads(message)["content"] for call in self.calls for message in call.messages]


def answer(name: str, outcome: str | dict[str, Any]) -> Completion:
    """A whole answer as a real backend would check it."""
    if isinstance(outcome, str):
        outcome = {"message": {"role": "assistant", "content": outcome}, "finish_reason": "stop"}
    choice = {"index": 0, **{key: value for key, value in outcome.items() if key != "usage"}}
    parsed = {"object": "chat.completion", "choices": [choice], "usage": outcome.get("usage")}
    return check_completion(name, dump_bytes(parsed), parsed)


def framed(text: str) -> str:
    return dumps({"chapter": text})


def fault(kind: FaultKind, what: str = "it failed", **more: Any) -> UpstreamFault:
    return UpstreamFault(kind, what, **more)


def build(
    folder: Path, *backends: Listed, policies: str = POLICIES, threads: bool = False
) -> Context:
    """A context with an open store in this folder; it runs in line unless threads are wanted."""
    kind = Store if threads else InlineStore
    store = kind(database_url(folder / "stage.db"), synchronous="OFF")
    store.open()
    known: dict[str, Backend] = {backend.name: backend for backend in backends}
    return Context(
        Settings(),
        HandClock(),
        store,
        parse_policies(policies, name="stage", environ={}),
        known,
        "boot_1",
    )


def story(texts: Sequence[str] = STORY) -> list[dict[str, Any]]:
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]


def add_story(
    connection: Connection, texts: Sequence[str] = STORY, *, model: str = "foldgate"
) -> tuple[ConversationRow, list[Node]]:
    """A conversation whose newest attempt ran on deepseek under the policy fold."""
    conversation, nodes = add_conversation(connection, story(texts))
    connection.execute(
        text("UPDATE conversations SET model = :model WHERE pk = :pk"),
        {"model": model, "pk": conversation.pk},
    )
    begin_attempt(
        connection,
        conversation_pk=conversation.pk,
        asked_pk=nodes[-1].pk,
        backend="deepseek",
        policy="fold",
        model=model,
        boot="boot_0",
        view_kind="verbatim",
        state="done",
        started_ms=NOW,
    )
    return conversation, nodes


def add_chapter_job(
    connection: Connection,
    conversation: ConversationRow,
    nodes: Sequence[Node],
    *,
    policy: str = "fold",
    delay_ms: int = 30_000,
    now_ms: int = NOW,
) -> int:
    """All these messages as one chapter, and its job. Returns the chapter."""
    before = nodes[0].cum_chars - nodes[0].chars
    chapter, _ = chapter_rows.add_chapter(
        connection,
        conversation.pk,
        Span(nodes[0].depth, nodes[-1].depth, nodes[-1].cum_chars - before),
        first_pk=nodes[0].pk,
        last_pk=nodes[-1].pk,
        now_ms=now_ms,
    )
    queue.enqueue(
        connection,
        key=f"chapter:{chapter}",
        kind="chapter",
        conversation_pk=conversation.pk,
        policy=policy,
        payload={"chapter": chapter},
        run_at_ms=now_ms + delay_ms,
        backend=None,
        now_ms=now_ms,
    )
    return chapter


def setup_chapter(connection: Connection, **values: Any) -> tuple[ConversationRow, int]:
    """The story with one chapter job over all of it."""
    texts, model = values.pop("texts", STORY), values.pop("model", "foldgate")
    conversation, nodes = add_story(connection, texts, model=model)
    return conversation, add_chapter_job(connection, conversation, nodes, **values)


def versions(connection: Connection) -> list[tuple[str, str, str | None]]:
    """(origin, text, backend) of every chapter version, oldest first."""
    table = chapter_rows.versions
    rows = connection.execute(
        select(table.c.origin, table.c.text, table.c.backend).order_by(table.c.pk)
    )
    return [(row[0], row[1], row[2]) for row in rows]


def quarantined(connection: Connection) -> list[tuple[str, str]]:
    """(backend, main reason) of every refused output, oldest first."""
    table = quarantine.quarantine
    rows = connection.execute(select(table.c.backend, table.c.reasons).order_by(table.c.pk))
    return [(row[0], loads(row[1])[0]) for row in rows]


def job(connection: Connection, key: str | None = None) -> JobRow:
    """The job of this key, or the only one."""
    statement = select(*jobs.c)
    if key is not None:
        statement = statement.where(jobs.c.key == key)
    return read_row(connection.execute(statement).one())
