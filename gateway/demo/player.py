"""The scripted person: talks over the official client, reads while memory is made, and watches.

She sends her whole history again at every turn, as most clients do, and streams each reply. What
she learns of a turn stands in `TurnSeen`: what the client saw, what reached llama-server, and what
the gateway stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import aiohttp
import openai

from gateway.clock import Clock
from gateway.demo.policy import MAX_TOKENS, MODEL
from gateway.demo.relay import RecordingRelay
from gateway.demo.script import SYSTEM
from gateway.demo.snapshot import Shown, Snapshot, Span, covered_spans, take_snapshot
from gateway.store.engine import Store

CONVERSATION = "skarv"
WINDOWS = 4
"""How many times the slot's window the conversation is long, at least."""

MOST_TURNS = 200
TRIES = 2
"""A request that fails is sent once more, as a person would; then the demonstration ends."""

READING_SECONDS = 100.0
"""How long she waits at most for one chapter: two summaries that run into their timeout."""

READING_TOTAL_SECONDS = 300.0
"""How long she waits in all, so that the whole stays within ten minutes."""

ONE_SENTENCE = {
    "grammar": r"root ::= [A-Z] [^.!?\n]{20,200} [.!?]",
    "repeat_penalty": 1.1,
    "repeat_last_n": 512,
    "dry_multiplier": 0.8,
}
"""Fields that only llama.cpp knows, and the gateway passes on: this model would talk on until it is
stopped, and say at each turn what it said before."""

_GLANCE_SECONDS = 0.25
# A busy machine reads 4,096 tokens slowly, and a summary may be under way before it.
_PATIENCE_SECONDS = 300.0


class PlayFailed(Exception):
    """The conversation cannot go on; the message says at which turn and why."""


@dataclass(frozen=True, slots=True)
class TurnSeen:
    """One turn. Tokens as llama-server counted them; conversation_tokens: everything said so far,
    system text and reply among it. prompt: what reached llama-server; tail: the contents of its
    verbatim part; covered: spans whose chapter or gist stands in it. seconds: to the first token,
    and to the end."""

    number: int
    said: str
    reply: str
    finish_reason: str | None
    view: str
    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int
    conversation_tokens: int
    first_token_seconds: float
    seconds: float
    prompt: Sequence[dict[str, Any]]
    tail: Sequence[str]
    covered: Sequence[Span]
    transcript: Sequence[str]
    folded: Shown | None
    refused: int

    @property
    def reread_tokens(self) -> int:
        return self.prompt_tokens - self.cached_tokens

    @property
    def is_cut_by_window(self) -> bool:
        """The reply ended by length before the person's own limit of MAX_TOKENS was reached."""
        return self.finish_reason == "length" and self.completion_tokens < MAX_TOKENS

    @property
    def is_cut_by_person(self) -> bool:
        return self.finish_reason == "length" and not self.is_cut_by_window


class Watcher(Protocol):
    """Who is told what happens, as it happens. `old` and `new` are moments of the store."""

    def turn_began(self, number: int, said: str) -> None: ...

    def turn_ended(self, turn: TurnSeen) -> None: ...

    def request_failed(self, what: str) -> None: ...

    def memory_changed(self, old: Snapshot, new: Snapshot) -> None: ...

    def reading_began(self, waiting: Sequence[Span]) -> None: ...

    def reading_ended(self, seconds: float, waiting: Sequence[Span]) -> None: ...


@dataclass(frozen=True, slots=True)
class _Reply:
    text: str
    finish_reason: str | None
    usage: Any
    view: str
    first_token_seconds: float
    seconds: float


@dataclass(slots=True)
class Player:
    """Plays messages until the conversation is WINDOWS windows long, or for `turns` turns.

    window: tokens of a slot; llama_url: llama-server's root, for its counts; store: the gateway's
    database, only read.
    """

    client: openai.AsyncOpenAI
    llama_url: str
    window: int
    relay: RecordingRelay
    store: Store
    clock: Clock
    watcher: Watcher
    turns: int | None = None
    reading_seconds: float = 0.0
    _history: list[dict[str, str]] = field(
        default_factory=lambda: [{"role": "system", "content": SYSTEM}]
    )
    _seen: Snapshot = field(default_factory=lambda: Snapshot((), (), (), None))
    _fold: int | None = None

    async def play(self, messages: Iterator[str]) -> list[TurnSeen]:
        """The conversation. Raises PlayFailed where a request fails twice."""
        seen: list[TurnSeen] = []
        async with aiohttp.ClientSession(trust_env=False) as http:
            while not self._is_over(seen):
                turn = await self._play_turn(http, len(seen) + 1, next(messages))
                seen.append(turn)
                self.watcher.turn_ended(turn)
                await self._look()
                await self._read_on()
        return seen

    def _is_over(self, seen: Sequence[TurnSeen]) -> bool:
        if self.turns is not None:
            return len(seen) >= self.turns
        said = seen[-1].conversation_tokens if seen else 0
        return said >= WINDOWS * self.window or len(seen) >= MOST_TURNS

    async def _play_turn(self, http: aiohttp.ClientSession, number: int, said: str) -> TurnSeen:
        self._history.append({"role": "user", "content": said})
        self.watcher.turn_began(number, said)
        reply, refused = await self._ask_patiently(number)
        transcript = [message["content"] for message in self._history[1:]]
        self._history.append({"role": "assistant", "content": reply.text})
        shown = (await self.store.read(take_snapshot)).shown
        folded = shown if shown is not None and shown.pk != self._fold else None
        self._fold = shown.pk if shown else None
        prompt = self._prompt_for(said)
        parts = [_content(message) for message in prompt]
        memory = 2 if shown else 0
        details = reply.usage.prompt_tokens_details
        return TurnSeen(
            number=number,
            said=said,
            reply=reply.text,
            finish_reason=reply.finish_reason,
            view=reply.view,
            prompt_tokens=reply.usage.prompt_tokens,
            cached_tokens=(details.cached_tokens if details else None) or 0,
            completion_tokens=reply.usage.completion_tokens,
            conversation_tokens=await self._count_tokens(http),
            first_token_seconds=reply.first_token_seconds,
            seconds=reply.seconds,
            prompt=prompt,
            tail=parts[1 + memory :],
            covered=covered_spans(shown, parts[2] if memory else ""),
            transcript=transcript,
            folded=folded,
            refused=refused,
        )

    def _prompt_for(self, said: str) -> Sequence[dict[str, Any]]:
        """What llama-server was sent last of this turn and accepted; the record is emptied."""
        asked = [
            call.messages
            for call in self.relay.calls
            if call.status == 200 and _content(call.messages[-1]) == said
        ]
        self.relay.calls.clear()
        if not asked:
            raise PlayFailed("a reply came although llama-server was not asked for one")
        return asked[-1]

    async def _ask_patiently(self, number: int) -> tuple[_Reply, int]:
        for refused in range(TRIES):
            try:
                return await self._ask(number, refused), refused
            except openai.APIError as error:
                what = f"{type(error).__name__}: {error.message}"
                self.watcher.request_failed(what)
        raise PlayFailed(f"turn {number} failed {TRIES} times, at last with {what}")

    async def _ask(self, number: int, attempt: int) -> _Reply:
        """One streamed request, over the official client."""
        began = self.clock.monotonic()
        completions: Any = self.client.chat.completions.with_raw_response
        answer = await completions.create(
            model=MODEL,
            messages=self._history,
            max_tokens=MAX_TOKENS,
            stream=True,
            stream_options={"include_usage": True},
            temperature=0.7,
            # The same at every run, as far as the machine's arithmetic is.
            seed=100 * number + attempt,
            extra_body=ONE_SENTENCE,
            extra_headers={"X-Conversation-Id": CONVERSATION},
            timeout=_PATIENCE_SECONDS,
        )
        text, finish_reason, usage, first = "", None, None, None
        async for chunk in answer.parse():
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish_reason = choice.finish_reason or finish_reason
                if first is None and choice.delta.content:
                    first = self.clock.monotonic()
        if usage is None:
            raise PlayFailed(f"turn {number} ended without usage, which was asked for")
        ended = self.clock.monotonic()
        view = answer.headers.get("x-foldgate-view", "")
        return _Reply(text, finish_reason, usage, view, (first or ended) - began, ended - began)

    async def _count_tokens(self, http: aiohttp.ClientSession) -> int:
        """The whole conversation in tokens, by llama-server's own template and tokenizer."""
        url = f"{self.llama_url}/v1/chat/completions/input_tokens"
        async with http.post(url, json={"messages": self._history}) as answer:
            answer.raise_for_status()
            return int((await answer.json())["input_tokens"])

    async def _look(self) -> Snapshot:
        """What the store holds now; the watcher is told what is new."""
        new = await self.store.read(take_snapshot)
        old, self._seen = self._seen, new
        self.watcher.memory_changed(old, new)
        return new

    async def _read_on(self) -> None:
        """Wait while a span waits for its text, as somebody does who reads before answering."""
        most = min(READING_SECONDS, READING_TOTAL_SECONDS - self.reading_seconds)
        waiting = self._seen.waiting
        if not waiting or most <= 0:
            return
        self.watcher.reading_began(waiting)
        began = self.clock.monotonic()
        while waiting and self.clock.monotonic() - began < most:
            await self.clock.sleep(_GLANCE_SECONDS)
            waiting = (await self._look()).waiting
        seconds = self.clock.monotonic() - began
        self.reading_seconds += seconds
        self.watcher.reading_ended(seconds, waiting)


def _content(message: dict[str, Any]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""
