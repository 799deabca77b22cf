"""The people of `make soak`: they talk through OpenAI's own client, ask again what it gives up on,
delete conversations and memories, and keep account of what they were told was safe."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Literal

import httpx
import openai

TURNS = 24
"""Turns of one conversation: enough for chapters and a gist."""
DELETED_EVERY = 4
"""Each so-manieth conversation is deleted when it is over."""
PATIENCE_SECONDS = 60.0
"""So long a person asks again before giving up."""

Kind = Literal["whole", "whole, no id", "newest"]
KINDS: tuple[Kind, ...] = ("whole", "whole, no id", "newest")

_TALES = (
    "Marta Vells carried the brass lamp number {n} to Gull Island, for which Anselm promised {n} "
    "crowns, and Captain Rook wrote it into the log of the Halcyon before the tide turned. ",
    "澪は{n}番の真鍮のランプを海猫島へ運び、安濃が{n}枚の銀貨を約束し、六条船長が日誌に書いた。",
    "Марта отнесла лампу номер {n} на остров Чаек, Ансельм обещал за неё {n} крон, и капитан Грач "
    "записал это в журнал «Гальциона» до прилива. ",
    "Marta llevó la lámpara número {n} a la isla Gaviota, Anselmo prometió {n} coronas y el "
    "capitán Roque lo anotó en el diario del Halcón antes de la marea. ",
)


@dataclass(frozen=True, slots=True)
class Told:
    """What a client may rely on: a question of which any byte of the answer's head came, or (reply)
    the whole answer, whose end came."""

    conversation: str
    question: str
    reply: str | None = None


@dataclass
class Ledger:
    """What all people together were told. offered: turns that were to be held; answered: those
    whose reply came whole; deleted: conversations of which the deletion was confirmed, each with
    the mark that stands in all it said; forgotten: the texts of memories that were deleted."""

    told: list[Told] = field(default_factory=list)
    offered: int = 0
    answered: int = 0
    deleted: dict[str, str] = field(default_factory=dict)
    forgotten: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass
class Person:
    """One client. path: its conversation as it knows it, questions and replies in turn."""

    number: int
    client: openai.AsyncOpenAI
    api: httpx.AsyncClient
    ledger: Ledger
    path: list[str] = field(default_factory=list)
    conversation: str = ""
    chats: int = 0
    turns: int = 0

    @property
    def kind(self) -> Kind:
        return KINDS[self.number % len(KINDS)]

    @property
    def mark(self) -> str:
        """Stands in everything that is said in this conversation, and nowhere else."""
        return f"[p{self.number}c{self.chats}]"

    async def talk(self, every: float, over: asyncio.Event) -> None:
        """A turn each `every` seconds until it is over. The offer does not wait for the answers:
        what was missed is caught up with, for PATIENCE_SECONDS more at most."""
        began, held = monotonic(), 0
        while not over.is_set():
            wait = began + held * every - monotonic()
            if wait > 0:
                await wait_for(over, wait)
            else:
                held += 1
                await self.take_turn()
        ended = monotonic()
        wanted = int((ended - began) / every) + 1
        while held < wanted and monotonic() < ended + PATIENCE_SECONDS:
            held += 1
            await self.take_turn()
        self.ledger.offered += max(0, wanted - held)

    async def take_turn(self) -> None:
        """One turn, and what follows the last one of a conversation."""
        self.turns += 1
        self.ledger.offered += 1
        tale = _TALES[(self.number + self.chats) % len(_TALES)]
        number = self.turns + 1_000 * self.number
        if await self._ask(f"{tale.format(n=number)} {self.mark} {self.turns}"):
            self.ledger.answered += 1
        if len(self.path) >= 2 * TURNS:
            await self._end_chat()

    async def _ask(self, question: str) -> bool:
        """Until the whole reply came: what the client does not try again, a person does."""
        limit = monotonic() + PATIENCE_SECONDS
        while monotonic() < limit:
            try:
                reply = await self._hear(question)
            except openai.APIConnectionError:
                await asyncio.sleep(0.5)
            except openai.APIStatusError as error:
                if error.status_code < 500 and error.status_code not in (409, 429):
                    self.ledger.problems.append(f"{error.status_code} {error.message}"[:300])
                await asyncio.sleep(1.0)
            except openai.APIError:  # told in the middle of a stream
                await asyncio.sleep(0.5)
            else:
                self.path += [question, reply]
                return True
        return False

    async def _hear(self, question: str) -> str:
        stream = await self.client.chat.completions.create(
            model="foldgate",
            messages=self._messages(question),
            stream=True,
            extra_headers=self._headers(),
        )
        self.conversation = stream.response.headers["x-foldgate-conversation"]
        self.ledger.told.append(Told(self.conversation, question))
        pieces: list[str] = []
        try:
            async for chunk in stream:
                pieces.append(chunk.choices[0].delta.content or "")
                if chunk.choices[0].finish_reason is not None:
                    reply = "".join(pieces)
                    self.ledger.told.append(Told(self.conversation, question, reply))
                    return reply
        except httpx.TransportError as error:
            raise openai.APIConnectionError(request=stream.response.request) from error
        finally:
            await stream.close()
        raise openai.APIConnectionError(request=stream.response.request)

    def _messages(self, question: str) -> Any:
        newest = {"role": "user", "content": question}
        if self.kind == "newest":
            return [newest]
        roles = ("user", "assistant")
        told = [{"role": roles[n % 2], "content": text} for n, text in enumerate(self.path)]
        return [*told, newest]

    def _headers(self) -> dict[str, str]:
        if self.kind == "whole, no id":
            return {}
        named = {"X-Conversation-Id": f"person{self.number}-{self.chats}"}
        if self.kind == "newest":
            named["Idempotency-Key"] = f"person{self.number}-{self.turns}"
        return named

    async def _end_chat(self) -> None:
        """A new conversation; now and then the old one is deleted, and a memory with it."""
        if self.chats % DELETED_EVERY == DELETED_EVERY - 1:
            if await self._call("DELETE", f"/api/conversations/{self.conversation}"):
                self.ledger.deleted[self.conversation] = self.mark
            await self._forget_a_memory()
        self.start_chat()

    def start_chat(self) -> None:
        """Leave the conversation as it is and begin another one."""
        self.path, self.conversation = [], ""
        self.chats += 1

    async def _forget_a_memory(self) -> None:
        text = f"The user keeps bees. {self.mark}"
        made = await self._call("POST", "/api/memories", {"text": text})
        if made and await self._call("DELETE", f"/api/memories/{made['id']}"):
            self.ledger.forgotten.append(text)

    async def _call(self, method: str, path: str, body: Any = None) -> Any:
        """What was answered, after as many tries as it takes; None where patience ended. A 404 on a
        deletion that was begun before says that it is gone."""
        limit = monotonic() + PATIENCE_SECONDS
        while monotonic() < limit:
            try:
                answer = await self.api.request(method, path, json=body)
            except httpx.TransportError:
                await asyncio.sleep(0.5)
                continue
            if answer.status_code == 404 and method == "DELETE":
                return {"deleted": True}
            if answer.is_success:
                return answer.json()
            await asyncio.sleep(1.0)
        self.ledger.problems.append(f"{method} {path} was never answered")
        return None


async def wait_for(over: asyncio.Event, seconds: float) -> None:
    """Until it is over, or so many seconds are."""
    try:
        await asyncio.wait_for(over.wait(), seconds)
    except TimeoutError:
        return
