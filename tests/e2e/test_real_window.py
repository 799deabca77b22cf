"""The gateway over a real llama-server: overflow, clients that leave, and what is read again."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.demo.llama import LlamaServer
from tests.e2e.conftest import WINDOW
from tests.e2e.running_gateway import RunningGateway

CHAT = "/v1/chat/completions"

# Made for 64k tokens, and so far too large for the server's 2k.
LARGE = """
version: 1
backends:
  local: {{kind: llama_cpp, url: "{url}"}}
policies:
  large: {{recall: {{budget: 0}}, summaries: {{delay: 1h}}}}
models:
  foldgate: {{tiers: [{{backend: local, policy: large}}]}}

...
"""
SMALL = """
version: 1
backends:
  local: {{kind: llama_cpp, url: "{url}"}}
  scribe: {{kind: scripted, latency: 0s, refusals: 0, truncations: 0}}
policies:
  small:
    view: {{start: 2400, ceiling: 4000, headroom: 1000, keep: 600}}
    chapters: {{split: 2000, length: 150, stack: 600}}
    gist: {{length: 200}}
    summaries: {{backends: [scribe], delay: 0s, rounds: 1}}
    recall: {{budget: 0}}
models:
  foldgate: {{tiers: [{{backend: local, policy: small}}]}}

...
"""


@asynccontextmanager
async def serving(
    folder: Path, policies: str
) -> AsyncIterator[tuple[RunningGateway, httpx.AsyncClient]]:
    gateway = RunningGateway(folder, policies)
    await asyncio.to_thread(gateway.start)
    try:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=600) as client:
            yield gateway, client
    finally:
        gateway.kill()


async def busy_slots(server: LlamaServer) -> int:
    async with httpx.AsyncClient(timeout=60) as client:
        slots = (await client.get(f"{server.url}/slots")).json()
    return sum(slot["is_processing"] for slot in slots)


async def until(what: Callable[[], Any], seconds: float) -> float:
    """Wait for a condition, at most so many seconds; how long it took."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with asyncio.timeout(seconds):
        while not await what():
            await asyncio.sleep(0.02)
    return loop.time() - begun


# --- overflow ------------------------------------------------------------------------------------


def digits(draw: random.Random, length: int) -> str:
    """Text that looks like English by its letters, and costs twice its tokens."""
    return "".join(draw.choice("0123456789abcdef") for _ in range(length))


@pytest.mark.parametrize("stream", [True, False])
async def test_an_overflow_that_no_estimate_foresaw_is_cut_to_fit(
    llama_server: LlamaServer, tmp_path: Path, stream: bool
) -> None:
    draw = random.Random(4)
    history: list[dict[str, str]] = []
    for number in range(8):
        history += [
            {"role": "user", "content": f"Key {number} is {digits(draw, 240)}"},
            {"role": "assistant", "content": f"Noted, {number}: {digits(draw, 200)}"},
        ]
    # What the guess is made from reads as plain English.
    calm = "The ferry leaves at nine and comes back in the evening, as it always did before."
    history += [{"role": role, "content": calm} for role in ("user", "assistant", "user")]
    body = {"model": "foldgate", "messages": history, "stream": stream, "max_tokens": 12}
    async with serving(tmp_path, LARGE.format(url=llama_server.url)) as (gateway, client):
        response = await client.post(CHAT, json=body)
        id = response.headers["x-foldgate-conversation"]
        told = (await client.get(f"/api/conversations/{id}/messages")).json()["messages"]
    assert response.status_code == 200, response.text
    assert response.headers["x-foldgate-view"] == "cut"
    if stream:
        assert response.text.endswith("data: [DONE]\n\n")
    attempts = gateway.rows(
        "SELECT state, error, view_kind, prompt_tokens FROM attempts ORDER BY pk"
    )
    (failed, done) = attempts
    assert failed == ("failed", "overflow", "verbatim", None)
    assert done[:3] == ("done", None, "cut")
    assert done[3] < WINDOW
    # Nothing of it is lost.
    assert [m["content"] for m in told[:-1]] == [m["content"] for m in history]
    assert gateway.one("SELECT count(*) FROM folds WHERE kind = 'cut'") == 1


# --- clients that leave --------------------------------------------------------------------------

WRITING = "Tell the longest story that you know, and never stop."
READING = "The ranger walked along the river and counted the herons. " * 70
# Tokens that nobody would hear: a slot that wrote far fewer of them was freed.
OUTPUT = 600


class Reader:
    """A client that asks, and leaves in the middle."""

    def __init__(self, text: str, stream: bool) -> None:
        self.heard = ""
        self._body = {
            "model": "foldgate",
            "messages": [{"role": "user", "content": text}],
            "stream": stream,
            "max_tokens": OUTPUT,
            "ignore_eos": True,
        }

    async def ask(self, client: httpx.AsyncClient) -> None:
        async with client.stream("POST", CHAT, json=self._body) as response:
            assert response.status_code == 200, await response.aread()
            async for line in response.aiter_lines():
                if line.startswith("data: {"):
                    delta = json.loads(line[6:])["choices"][0]["delta"]
                    self.heard += delta.get("content") or ""
        raise AssertionError("the reply came to its end")


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("moment", ["reading", "writing"])
async def test_a_client_that_leaves_frees_the_slot(
    llama_server: LlamaServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    moment: str,
    stream: bool,
) -> None:
    """While the prompt is read (before the first byte) and while the reply is written."""
    # The salt keeps the prompt of one case out of the cache of another.
    text = f"{moment} {stream}. " + (READING if moment == "reading" else WRITING)
    reader, written = Reader(text, stream), [0]

    async def is_at_work() -> bool:
        if asking.done():
            asking.result()
        if moment == "reading":
            return await busy_slots(llama_server) > 0
        return len(reader.heard) > 40 if stream else await decoded(llama_server) > 12

    async def is_idle() -> bool:
        written.append(await decoded(llama_server))
        return await busy_slots(llama_server) == 0

    async def is_noted() -> bool:
        return bool(gateway.one("SELECT state FROM attempts") != "running")

    async with serving(tmp_path, LARGE.format(url=llama_server.url)) as (gateway, client):
        await until(is_idle, 300)
        asking = asyncio.create_task(reader.ask(client))
        await until(is_at_work, 200)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        noted = await until(is_noted, 60)
        # A server in the middle of a batch of the prompt reads it to its end before it looks.
        idle = noted + await until(is_idle, 200)
    with capsys.disabled():
        kind = "streamed" if stream else "whole"
        print(f" {moment}, {kind}: noted {noted:.2f} s, idle {idle:.2f} s ", end="")  # noqa: T201
    # Looked at all the while: a reply written to its end would have been seen.
    assert max(written) < OUTPUT // 2
    attempt = gateway.rows("SELECT state, error, finish_reason FROM attempts")
    assert attempt == [("cancelled", "the client left", None)]
    question, *replies = gateway.rows(
        "SELECT role, partial, finish_reason, raw FROM messages ORDER BY pk"
    )
    assert question[:3] == ("user", 0, None)
    assert [reply[:3] for reply in replies] in ([], [("assistant", 1, None)])
    if moment == "reading":
        assert (reader.heard, replies) == ("", [])
    elif stream:
        assert json.loads(replies[0][3])["content"].startswith(reader.heard)


async def decoded(server: LlamaServer) -> int:
    """Tokens that the slot has written for the request at work."""
    async with httpx.AsyncClient(timeout=60) as client:
        slots = (await client.get(f"{server.url}/slots")).json()
    token: Any = slots[0].get("next_token") or {}
    if isinstance(token, list):
        token = token[0] if token else {}
    return int(token.get("n_decoded") or 0)


# --- the prefix ----------------------------------------------------------------------------------

NEWS = (
    "The ferry {n} came in with nets and barrels, and Anselm Pryde counted {n}0 crates there.",
    "Marta Vells lit lamp {n} early because the fog stood before the breakwater like a wall.",
    "In the kitchen Ilse found letter {n}, sealed in blue, under the bread board of the old cook.",
    "Captain Rook sold {n} ropes at the Thursday market, and nobody asked where they were from.",
)


async def test_between_two_folds_only_what_is_new_is_read(
    llama_server: LlamaServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two folds and what lies between them, by the server's own count of tokens it read."""
    turns: list[tuple[int | None, int, int, int]] = []
    async with serving(tmp_path, SMALL.format(url=llama_server.url)) as (gateway, client):
        number = 0
        while gateway.one("SELECT count(*) FROM folds") < 3:
            number += 1
            assert number < 60, "the conversation never folded"
            turns.append(await _take_turn(gateway, client, number))
        turns.append(await _take_turn(gateway, client, number + 1))
    kept, folded = [], []
    for before, turn in itertools.pairwise(turns):
        (kept if turn[0] == before[0] else folded).append((before, turn))
    figures = {
        "turns": len(turns),
        "folds": len(folded),
        "prompt_tokens": sum(turn[1] for turn in turns),
        "read_again_between_folds": sum(max(0, b[1] - t[2]) for b, t in kept),
        "read_at_folds": sum(turn[3] for _, turn in folded),
        "reuse": round(1 - sum(turn[3] for turn in turns) / sum(turn[1] for turn in turns), 3),
    }
    with capsys.disabled():
        print(f"\n{json.dumps(figures)}")  # noqa: T201  # the figures of BARS.md
    assert len(folded) == 3 and len(kept) > 8
    for (_, before_prompt, *_), (_, prompt, cached, read) in kept:
        assert cached >= before_prompt
        assert cached + read == prompt
    # At a fold the memory and what stands behind it are read anew, and no more than the prompt.
    for _, (_, prompt, cached, _) in folded:
        assert cached < prompt < WINDOW


async def _take_turn(
    gateway: RunningGateway, client: httpx.AsyncClient, number: int
) -> tuple[int | None, int, int, int]:
    """(fold that the turn stood on, tokens of its prompt, from the cache, read) of one turn."""
    text = NEWS[number % len(NEWS)].format(n=number)
    body = {
        "model": "foldgate",
        "messages": [{"role": "user", "content": text}],
        "max_tokens": 24,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    response = await client.post(CHAT, json=body, headers={"X-Conversation-Id": "voyage"})
    assert response.status_code == 200, response.text
    events = [json.loads(e[6:]) for e in response.text.split("\n\n") if e.startswith("data: {")]
    (timings,) = [event["timings"] for event in events if "timings" in event][-1:]
    (usage,) = [event["usage"] for event in events if event.get("usage")][-1:]

    async def is_quiet() -> bool:
        waiting = "state = 'leased' OR (state = 'queued' AND attempts = 0)"
        return not gateway.one(f"SELECT count(*) FROM jobs WHERE {waiting}")

    await until(is_quiet, 120)
    fold = gateway.one("SELECT fold_pk FROM attempts ORDER BY pk DESC LIMIT 1")
    return fold, usage["prompt_tokens"], timings["cache_n"], timings["prompt_n"]
