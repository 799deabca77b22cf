"""What the turn after a fold costs a person: `make bench-fold`.

A real llama-server with a small real model (two pinned slots of 8,192 tokens), the gateway as
people run it, chapters by the scripted summarizer; one person whose conversation folds at least
five times, and a second one who talks beside. Prints one JSON object as the last line; progress
goes to standard error. Run as `python -m bench.fold [--no-prefill]`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import aiohttp

from gateway.demo.gateway_server import GatewayServer
from gateway.demo.llama import LlamaServer, default_cache, fetch_llama
from gateway.demo.script import messages

WINDOW, SLOTS = 8_192, 2
FOLDS = 5
PAUSE_SECONDS = 18.0
"""Between a reply's end and the person's next message, in which a person reads some 20 words and
writes the 1,900 characters of the script: whoever types needs minutes."""
OTHER_CHARS = 950
"""Of each message of the second person, who talks in the middle of every pause."""
REPLY_TOKENS = 24
MOST_SECONDS = 440.0
_START_SECONDS = 180.0

POLICIES = """\
version: 1
backends:
  smollm2:
    kind: llama_cpp
    url: {url}
    slots: pinned
    prefill: {prefill}
  recorder: {{kind: scripted, refusals: 0, truncations: 0}}
policies:
  # The numbers of local-fold, which is made for 64k tokens, scaled to a slot of 8,192: of English
  # this model takes about 3.9 characters to a token, so a fold leads from 2.8k to 1.5k tokens.
  small-fold:
    view: {{start: 10_400, ceiling: 17_000, headroom: 3_600, keep: 3_000}}
    chapters: {{split: 9_000, length: 400, stack: 1_600}}
    gist: {{length: 400}}
    summaries: {{backends: [recorder], delay: 1s}}
    recall: {{budget: 0}}
models:
  foldgate: {{tiers: [{{backend: smollm2, policy: small-fold}}]}}
"""


@dataclass(slots=True)
class Person:
    """Somebody who talks: what is said, and the seconds to the first piece of each reply."""

    name: str
    says: Iterator[str]
    waits: list[float] = field(default_factory=list)
    turns: list[dict[str, Any]] = field(default_factory=list)
    conversation: str = ""

    @property
    def folds(self) -> int:
        return sum(turn["moved_by"] == "fold" for turn in self.turns)

    def waited(self, cause: str | None) -> list[float]:
        """Of the turns whose prompt was moved by this; None: of those that went on."""
        told = zip(self.turns, self.waits, strict=True)
        return [seconds for turn, seconds in told if turn["moved_by"] == cause]


class Client:
    """A person's side of the gateway."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def say(self, person: Person) -> None:
        """One turn, to its end; then what its prompt used again."""
        body = {
            "model": "foldgate",
            "stream": True,
            "max_tokens": REPLY_TOKENS,
            "temperature": 0,
            "messages": [{"role": "user", "content": next(person.says)}],
        }
        began, first = perf_counter(), None
        async with self._session.post(
            f"{self._url}/v1/chat/completions",
            json=body,
            headers={"X-Conversation-Id": person.name},
        ) as answer:
            answer.raise_for_status()
            person.conversation = answer.headers["x-foldgate-conversation"]
            async for chunk in _chunks(answer):
                if first is None and _says(chunk):
                    first = perf_counter() - began
        if first is None:
            raise RuntimeError(f"{person.name} got a reply without a word")
        person.waits.append(first)
        person.turns.append(await self._newest_turn(person))

    async def _newest_turn(self, person: Person) -> dict[str, Any]:
        path = f"{self._url}/api/conversations/{person.conversation}/prefix?limit=1"
        async with self._session.get(path) as answer:
            answer.raise_for_status()
            turn: dict[str, Any] = (await answer.json())["turns"][0]
            return turn


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[dict[str, Any]]:
    async for line in answer.content:
        if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
            chunk = json.loads(line[6:])
            if "error" in chunk:
                raise RuntimeError(f"a reply broke off: {chunk['error']}")
            yield chunk


def _says(chunk: dict[str, Any]) -> bool:
    return any(choice["delta"].get("content") for choice in chunk["choices"])


async def measure(*, prefill: bool, folder: Path) -> dict[str, Any]:
    """The whole run. Whatever was started is ended, in the reverse order."""
    async with AsyncExitStack() as opened:
        install = fetch_llama(default_cache(os.environ), _tell)
        llama = await opened.enter_async_context(
            LlamaServer(
                install,
                window=WINDOW,
                slots=SLOTS,
                pinned=True,
                log=folder / "llama-server.log",
                patience=_START_SECONDS,
            )
        )
        policies = folder / "policies.yaml"
        policies.write_text(POLICIES.format(url=llama.url, prefill=str(prefill).lower()))
        served = await opened.enter_async_context(
            GatewayServer(
                policies=policies,
                folder=folder,
                log=folder / "gateway.log",
                patience=_START_SECONDS,
            )
        )
        timeout = aiohttp.ClientTimeout(total=MOST_SECONDS)
        session = await opened.enter_async_context(aiohttp.ClientSession(timeout=timeout))
        return await _talk(Client(session, served.url), prefill=prefill)


async def _talk(client: Client, *, prefill: bool) -> dict[str, Any]:
    person = Person("person", messages())
    other = Person("other", (said[:OTHER_CHARS] for said in islice(messages(), 20, None)))
    began = perf_counter()
    _tell(
        f"the person pauses {PAUSE_SECONDS:g} s between a reply and the next message of about "
        f"1,900 characters (nobody types as fast); in the middle another says {OTHER_CHARS}"
    )
    beside: asyncio.Task[None] | None = None
    while True:
        await _turn(client, person, began)
        if person.folds >= FOLDS or perf_counter() - began > MOST_SECONDS:
            break
        await asyncio.sleep(PAUSE_SECONDS / 2)
        # The other one talks in the middle of the pause, when the next prompt may be read in.
        if beside is None or beside.done():
            if beside is not None:
                await beside
            beside = asyncio.create_task(_turn(client, other, began))
        await asyncio.sleep(PAUSE_SECONDS / 2)
    if beside is not None:
        await beside
    return sum_up(person, other, perf_counter() - began, prefill=prefill)


async def _turn(client: Client, person: Person, began: float) -> None:
    await client.say(person)
    turn, number = person.turns[-1], len(person.turns)
    moved = f" after a {turn['moved_by']}" if turn["moved_by"] else ""
    _tell(
        f"{perf_counter() - began:5.0f} s  {person.name:6}  turn {number:2}{moved}: "
        f"{person.waits[-1]:.2f} s to the first word, {turn['cached_tokens']} of "
        f"{turn['prompt_tokens']} tokens used again"
    )


def sum_up(person: Person, other: Person, seconds: float, *, prefill: bool) -> dict[str, Any]:
    """The figures: medians in milliseconds, and the share of prompts' tokens used again."""
    ordinary, after = person.waited(None), person.waited("fold")
    ordinary_ms = median(ordinary) * 1_000 if ordinary else 0.0
    after_ms = median(after) * 1_000 if after else 0.0
    later = person.turns[1:]  # there is nothing to use again in a first turn
    read = sum(turn["prompt_tokens"] or 0 for turn in later)
    reused = sum(turn["cached_tokens"] or 0 for turn in later)
    return {
        "folds": person.folds,
        "ordinary_ttft_ms": round(ordinary_ms),
        "after_fold_ttft_ms": round(after_ms),
        "ratio": round(after_ms / ordinary_ms, 3) if ordinary_ms else None,
        "reuse": round(reused / read, 4) if read else None,
        "turns": len(person.turns),
        "beside": {"turns": len(other.turns), "folds": other.folds},
        "moved_by": _count(person.turns),
        "pause_s": PAUSE_SECONDS,
        "prefill": prefill,
        "seconds": round(seconds),
    }


def _count(turns: list[dict[str, Any]]) -> dict[str, int]:
    causes = [turn["moved_by"] for turn in turns if turn["moved_by"]]
    return {cause: causes.count(cause) for cause in sorted(set(causes))}


def _tell(words: str) -> None:
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def main() -> int:
    """Exit 0 where the conversation folded often enough to say anything, else 1."""
    parser = argparse.ArgumentParser(prog="bench.fold")
    parser.add_argument(
        "--no-prefill", action="store_true", help="do not read folded prompts in ahead"
    )
    parser.add_argument("--keep", type=Path, help="leave logs and database in this directory")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foldgate-bench-") as scratch:
        folder = chosen.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        figures = asyncio.run(measure(prefill=not chosen.no_prefill, folder=folder))
    sys.stdout.write(json.dumps(figures) + "\n")
    return 0 if figures["folds"] >= FOLDS else 1


if __name__ == "__main__":
    sys.exit(main())
