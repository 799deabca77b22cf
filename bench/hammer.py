"""Many clients on few slots of a real llama-server: `make hammer`.

Sixteen clients talk through the gateway to a llama-server with two slots, in both ways of using
them, and leave at random: before the first byte, in mid-reply; some delete their conversation.
Afterwards every reply is asked for again, alone on a quiet server (hammer_proof.py). Prints one
JSON object as the last line and ends with 1 if anything foreign was found or a slot was lost;
progress goes to standard error. Run as `python -m bench.hammer [--seconds N] [--mode MODE]`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

import aiohttp

from bench.hammer_proof import Reply, Token, prove
from gateway.demo.gateway_server import GatewayServer
from gateway.demo.llama import LlamaInstall, LlamaServer, default_cache, fetch_llama

CLIENTS, SLOTS, WINDOW = 16, 2, 2_048
SECONDS = 120.0
QUEUE = 12
"""Fewer places than clients who may wait, so that some are told to come again."""
TURNS = 5
"""Of one conversation at most; then its client begins another."""
REPLY_TOKENS = 16
LEAVES, DELETES = 0.3, 0.15
"""Shares of requests that are broken off, and of conversations that are deleted at their end."""
MODES = ("pinned", "shared")
_START_SECONDS = 180.0
_IDLE_SECONDS = 30.0
_WARM = 0.25
"""Share of the time after which memory is weighed for the first time."""

POLICIES = """\
version: 1
backends:
  smollm2: {{kind: llama_cpp, url: "{url}", slots: {mode}, queue: {queue}}}
policies:
  # Nothing folds here, so that a request's history is the prompt that the model was shown.
  whole: {{summaries: {{delay: 2h}}}}
models:
  foldgate: {{tiers: [{{backend: smollm2, policy: whole}}]}}
"""

_SAID = (
    "My name is {mark}. Say my name, then say hello to me.",
    "{mark} bought {number} herons at the market. How many herons does {mark} have?",
    "I am {mark} and I live in the town of {place}. Where do I live?",
    "{mark}は{place}に住んでいます。🎉 What does {mark} like?",
    "Меня зовут {mark}. Write one sentence about {mark}.",
    "{mark} vive en {place}. Write the word {mark} three times.",
)
_ENDS = ("vor", "lin", "dra", "mek", "sul", "tan", "gri", "pol", "zeb", "hok", "wyn", "cax")


@dataclass(slots=True)
class Tally:
    """What the clients of one mode met with."""

    replies: list[Reply] = field(default_factory=list)
    disconnects: int = 0
    refused: int = 0
    deletions: int = 0
    failed: list[str] = field(default_factory=list)
    marks: set[str] = field(default_factory=set)


class Client:
    """One who talks, leaves and comes back, until told to stop. The same seed, the same life."""

    def __init__(self, session: aiohttp.ClientSession, url: str, number: int, tally: Tally) -> None:
        self._session = session
        self._url = url
        self._number = number
        self._chance = random.Random(number)
        self._tally = tally
        self._conversations = 0

    async def live(self) -> None:
        while True:
            await self._converse()

    async def _converse(self) -> None:
        self._conversations += 1
        mark = self._make_mark()
        name = f"hammer-{self._number}-{self._conversations}"
        history: list[dict[str, str]] = []
        for turn in range(self._chance.randint(1, TURNS)):
            said = self._chance.choice(_SAID)
            place, number = self._make_word(), self._chance.randint(3, 900)
            text = said.format(mark=mark, place=place, number=number)
            messages = [*history, {"role": "user", "content": text}]
            reply = await self._ask(name, mark, messages, is_streamed=turn % 3 != 2)
            if reply is not None:
                self._tally.replies.append(reply)
                history = [*messages, {"role": "assistant", "content": reply.text}]
            elif not history:
                return  # a message sent alone is new: the one that failed would stand before it
        if self._chance.random() < DELETES:
            async with self._session.delete(f"{self._url}/api/conversations/{name}") as answer:
                self._tally.deletions += answer.status == 200

    def _make_mark(self) -> str:
        """A name that nobody else has; it is in every message of its conversation."""
        while (mark := self._make_word()) in self._tally.marks:
            pass
        self._tally.marks.add(mark)
        return mark

    def _make_word(self) -> str:
        return "".join(self._chance.choices(_ENDS, k=4)).capitalize()

    async def _ask(
        self, name: str, mark: str, messages: Sequence[dict[str, str]], *, is_streamed: bool
    ) -> Reply | None:
        """One request; None where it was broken off, refused or failed."""
        body = {
            "model": "foldgate",
            "messages": messages,
            "max_tokens": REPLY_TOKENS,
            "temperature": 0,
            "seed": 1,
            "logprobs": True,
            "top_logprobs": 1,
            "stream": is_streamed,
            "stream_options": {"include_usage": True} if is_streamed else None,
        }
        patience = self._chance.uniform(0.0, 6.0) if self._chance.random() < LEAVES else None
        try:
            async with asyncio.timeout(patience):
                return await self._send(name, mark, messages, body)
        except TimeoutError:
            self._tally.disconnects += 1
            return None

    async def _send(
        self, name: str, mark: str, messages: Sequence[dict[str, str]], body: dict[str, Any]
    ) -> Reply | None:
        headers = {"X-Conversation-Id": name}
        path = f"{self._url}/v1/chat/completions"
        async with self._session.post(path, json=body, headers=headers) as answer:
            if answer.status == 429:
                self._tally.refused += 1
                await asyncio.sleep(float(answer.headers["Retry-After"]) * self._chance.random())
                return None
            if answer.status != 200:
                self._tally.failed.append(await answer.text())
                return None
            if body["stream"]:
                chunks = [chunk async for chunk in _chunks(answer)]
            else:
                chunks = [await answer.json()]
        for chunk in chunks:
            if "error" in chunk:
                self._tally.failed.append(json.dumps(chunk))
                return None
        tokens = tuple(token for chunk in chunks for token in _tokens(chunk))
        usage = next(chunk["usage"] for chunk in reversed(chunks) if chunk.get("usage"))
        return Reply(mark, tuple(messages), tokens, usage["prompt_tokens"])


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.content:
        if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
            yield json.loads(line[6:])


def _tokens(chunk: dict[str, Any]) -> list[Token]:
    return [
        Token(bytes(one["bytes"]), one["logprob"], one["id"])
        for choice in chunk["choices"]
        for one in (choice.get("logprobs") or {}).get("content") or ()
    ]


async def hammer(
    install: LlamaInstall, mode: str, *, clients: int, slots: int, seconds: float, folder: Path
) -> dict[str, Any]:
    """One mode, from the start of its servers to the proof of its replies."""
    tally = Tally()
    llama = LlamaServer(
        install,
        window=WINDOW,
        slots=slots,
        pinned=mode == "pinned",
        log=folder / f"llama-{mode}.log",
        patience=_START_SECONDS,
    )
    async with llama, _gateway(llama.url, mode, folder) as gateway:
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
        ) as session:
            crowd = [Client(session, gateway.url, number, tally) for number in range(clients)]
            growth = await _let_live(crowd, gateway, seconds, mode)
            leaked = await _count_leaked(session, llama.url, gateway.url)
    _tell(f"{mode}: {len(tally.replies)} replies, now each alone on a quiet server")
    proof = await prove(
        install, tally.replies, tally.marks, window=WINDOW, log=folder / "proof.log"
    )
    return {
        "replies": len(tally.replies),
        "disconnects": tally.disconnects,
        "deletions": tally.deletions,
        "refused_429": tally.refused,
        "failed": len(tally.failed),
        "failures": tally.failed[:3],
        "foreign_text": len(proof.foreign),
        "foreign": proof.foreign[:3],
        "tokens": proof.tokens,
        "near_ties": proof.near_ties,
        "largest_gap": round(proof.largest_gap, 3),
        "largest_mean": round(proof.largest_mean, 3),
        "controls": list(proof.controls),
        "leaked_slots": leaked,
        "rss_growth_mb": round(growth, 1),
    }


@asynccontextmanager
async def _gateway(url: str, mode: str, folder: Path) -> AsyncIterator[GatewayServer]:
    place = folder / mode
    place.mkdir()
    policies = place / "policies.yaml"
    policies.write_text(POLICIES.format(url=url, mode=mode, queue=QUEUE))
    log = place / "gateway.log"
    async with GatewayServer(
        policies=policies, folder=place, log=log, patience=_START_SECONDS
    ) as gateway:
        yield gateway


async def _let_live(
    crowd: Sequence[Client], gateway: GatewayServer, seconds: float, mode: str
) -> float:
    """Let them live so long; the growth of the gateway's memory meanwhile, in MB."""
    assert gateway.process is not None
    tasks = [asyncio.create_task(client.live()) for client in crowd]
    began = perf_counter()
    first: float | None = None
    while (gone := perf_counter() - began) < seconds:
        done, _ = await asyncio.wait(tasks, timeout=min(5.0, seconds - gone))
        for task in done:
            task.result()
        if first is None and gone >= seconds * _WARM:
            first = _rss_mb(gateway.process.pid)
    last = _rss_mb(gateway.process.pid)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    _tell(f"{mode}: {seconds:g} s are over")
    return last - (last if first is None else first)


def _rss_mb(pid: int) -> float:
    told = subprocess.run(
        ["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, check=True, text=True
    )
    return int(told.stdout) * 1024 / 1e6


async def _count_leaked(session: aiohttp.ClientSession, llama: str, gateway: str) -> int:
    """Slots that are still at work after everybody left: by the server's word or the gateway's."""
    limit = perf_counter() + _IDLE_SECONDS
    while True:
        async with session.get(f"{llama}/slots") as answer:
            busy = sum(bool(slot["is_processing"]) for slot in await answer.json())
        async with session.get(f"{gateway}/metrics") as answer:
            lines = (await answer.text()).splitlines()
        held = sum(
            float(line.rpartition(" ")[2])
            for line in lines
            if line.startswith(("foldgate_slots_in_use{", "foldgate_queue_length{"))
        )
        leaked = max(busy, int(held))
        if not leaked or perf_counter() > limit:
            if leaked:
                _tell(f"still at work: {busy} slots by the server, {held:g} by the gateway")
            return leaked
        await asyncio.sleep(0.25)


def _tell(words: str) -> None:
    sys.stderr.write(words + "\n")


def sum_up(modes: dict[str, dict[str, Any]], clients: int, slots: int, seconds: float) -> Any:
    """The modes together; memory of the one that grew more."""
    added = ("replies", "disconnects", "foreign_text", "leaked_slots", "refused_429")
    return {
        "clients": clients,
        "slots": slots,
        "seconds": seconds,
        **{key: sum(mode[key] for mode in modes.values()) for key in added},
        "rss_growth_mb": max(mode["rss_growth_mb"] for mode in modes.values()),
        "modes": modes,
    }


async def run(
    modes: Sequence[str], *, clients: int, slots: int, seconds: float, folder: Path
) -> dict[str, Any]:
    """Each mode in its turn, and what came of it."""
    install = fetch_llama(default_cache(os.environ), _tell)
    found = {}
    for mode in modes:
        _tell(f"{mode}: {clients} clients on {slots} slots for {seconds:g} s")
        found[mode] = await hammer(
            install, mode, clients=clients, slots=slots, seconds=seconds, folder=folder
        )
        _tell(f"{mode}: {json.dumps(found[mode], ensure_ascii=False)}")
    told: dict[str, Any] = sum_up(found, clients, slots, seconds)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.hammer")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each mode")
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--slots", type=int, default=SLOTS)
    parser.add_argument("--mode", choices=[*MODES, "both"], default="both")
    chosen = parser.parse_args()
    modes = MODES if chosen.mode == "both" else (chosen.mode,)
    with tempfile.TemporaryDirectory(prefix="foldgate-hammer-") as folder:
        figures = asyncio.run(
            run(
                modes,
                clients=chosen.clients,
                slots=chosen.slots,
                seconds=chosen.seconds,
                folder=Path(folder),
            )
        )
    sys.stdout.write(json.dumps(figures, ensure_ascii=False) + "\n")
    if figures["foreign_text"] or figures["leaked_slots"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
