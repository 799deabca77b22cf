"""People who talk through the official client, and remember what they were told was safe."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, Literal

import openai

from tests.e2e.tales import LANGUAGES, tell

Kind = Literal["whole", "whole, no id", "newest"]
"""How a client tells its history: all of it under an id, all of it without one, or only the newest
message under an id, with an Idempotency-Key."""

TURNS = 40
"""Turns of one conversation: enough for chapters, and for first turns to be killed too."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What a client may rely on: a question of which any byte of the answer's head came, or
    (reply) the whole answer whose end came."""

    conversation: str
    question: str
    reply: str | None = None


@dataclass
class Talker:
    """One client. `name` ends in its number; `path`: its conversation as it knows it, questions and
    replies in turn."""

    name: str
    kind: Kind
    client: openai.AsyncOpenAI
    acknowledged: list[Acknowledged] = field(default_factory=list)
    finished: list[tuple[str, list[str]]] = field(default_factory=list)
    path: list[str] = field(default_factory=list)
    conversation: str = ""
    where: str = "idle"
    heard: asyncio.Event = field(default_factory=asyncio.Event)
    turns: int = 0
    tries: int = 0
    problems: list[str] = field(default_factory=list)

    async def talk(self, over: asyncio.Event) -> None:
        """Turn after turn until it is over; the turn under way is brought to its end."""
        while not over.is_set():
            if len(self.path) >= 2 * TURNS:
                self._close()
            self.turns += 1
            number = self.turns + 1_000 * int(self.name[-1])
            remark = tell(number, self.language) + tell(number + 11, self.language)
            await self._ask(f"{remark}🎉 [{self.name}/{self.turns}]")
        self._close()

    @property
    def language(self) -> str:
        """Each of its conversations is in one language."""
        return LANGUAGES[(int(self.name[-1]) + len(self.finished)) % len(LANGUAGES)]

    def _close(self) -> None:
        if self.path:
            self.finished.append((self.conversation, self.path))
        self.path, self.conversation = [], ""

    async def _ask(self, question: str) -> None:
        """Until the whole reply came: what the SDK does not try again, a person does."""
        while True:
            self.tries += 1
            self.where = "asking"
            try:
                reply = await self._hear(question)
            except (openai.APIConnectionError, openai.APITimeoutError):
                await asyncio.sleep(0.1)
                continue
            except openai.APIStatusError as error:
                self.problems.append(f"{error.status_code} {error.message}")
                await asyncio.sleep(0.5)
                continue
            self.path += [question, reply]
            self.where = "idle"
            return

    async def _hear(self, question: str) -> str:
        stream = await self.client.chat.completions.create(
            model="foldgate",
            messages=self._messages(question),
            stream=True,
            extra_headers=self._headers(question),
        )
        self.conversation = stream.response.headers["x-foldgate-conversation"]
        self.acknowledged.append(Acknowledged(self.conversation, question))
        self.where = "streaming"
        pieces: list[str] = []
        is_whole = False
        async for chunk in stream:
            self.heard.set()
            pieces.append(chunk.choices[0].delta.content or "")
            if chunk.choices[0].finish_reason is not None:
                is_whole = True
                reply = "".join(pieces)
                self.acknowledged.append(Acknowledged(self.conversation, question, reply))
                break
        await stream.close()
        if not is_whole:
            raise openai.APIConnectionError(request=stream.response.request)
        return reply

    def _messages(self, question: str) -> Any:
        newest = {"role": "user", "content": question}
        if self.kind == "newest":
            return [newest]
        roles = ("user", "assistant")
        told = [{"role": roles[n % 2], "content": text} for n, text in enumerate(self.path)]
        return [*told, newest]

    def _headers(self, question: str) -> dict[str, str]:
        if self.kind == "whole, no id":
            return {}
        number = len(self.finished)
        named = {"X-Conversation-Id": f"{self.name}-{number}"}
        if self.kind == "newest":
            named["Idempotency-Key"] = f"{self.name}-{number}-{self.turns}"
        return named


def is_turn(body: bytes) -> bool:
    """Whether a request wants a reply: a prompt that is read in ahead wants none."""
    return json.loads(body).get("add_generation_prompt") is not False


def question_of(body: bytes) -> str:
    """The newest user message of a request as the upstream got it."""
    return str(json.loads(body)["messages"][-1]["content"])
