"""A folded prompt that a real server has read in ahead, and what the next turn still reads."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.demo.llama import LlamaServer
from gateway.demo.script import PASSAGES
from tests.e2e.running_gateway import RunningGateway

CHAT = "/v1/chat/completions"
POLICIES = """
version: 1
backends:
  local: {{kind: llama_cpp, url: "{url}", slots: {slots}, prefill: {prefill}}}
  scribe: {{kind: scripted, latency: 0s, refusals: 0, truncations: 0}}
policies:
  small:
    view: {{start: 2600, ceiling: 4400, headroom: 1200, keep: 600}}
    chapters: {{split: 2000, length: 150, stack: 600}}
    gist: {{length: 200}}
    summaries: {{backends: [scribe], delay: 0s, rounds: 1}}
    recall: {{budget: 0}}
models:
  foldgate: {{tiers: [{{backend: local, policy: small}}]}}

...
"""
SYSTEM = {"role": "system", "content": "You are Wren, a lighthouse keeper. 灯台守です。"}

StartLlama = Callable[..., AbstractAsyncContextManager[LlamaServer]]


@asynccontextmanager
async def serving(folder: Path, policies: str) -> AsyncIterator[httpx.AsyncClient]:
    gateway = RunningGateway(folder, policies)
    await asyncio.to_thread(gateway.start)
    try:
        async with httpx.AsyncClient(base_url=gateway.url, timeout=600) as client:
            yield client
    finally:
        gateway.kill()


async def say(client: httpx.AsyncClient, history: list[dict[str, Any]], words: str) -> None:
    """A turn of a client that sends its history, its system text in front."""
    history.append({"role": "user", "content": words})
    body = {"model": "foldgate", "max_tokens": 12, "messages": [SYSTEM, *history]}
    answer = await client.post(CHAT, json=body, headers={"X-Conversation-Id": "c"})
    assert answer.status_code == 200, answer.text
    history.append(answer.json()["choices"][0]["message"])


async def newest(client: httpx.AsyncClient) -> dict[str, Any]:
    (one,) = (await client.get("/api/conversations")).json()["conversations"]
    report = (await client.get(f"/api/conversations/{one['id']}/prefix?limit=1")).json()
    turn: dict[str, Any] = report["turns"][0]
    return turn


async def readings(client: httpx.AsyncClient) -> float:
    """Prompts that were read in ahead to their end."""
    told = (await client.get("/metrics")).text
    found = re.search(r'^foldgate_prefills_total\{.*outcome="done".*\} (\S+)$', told, re.MULTILINE)
    return float(found[1]) if found else 0.0


async def waits_for_a_fold(client: httpx.AsyncClient) -> bool:
    """Whether every chapter that the next turn folds is there."""
    (one,) = (await client.get("/api/conversations")).json()["conversations"]
    told = (await client.get(f"/api/conversations/{one['id']}/memory")).json()
    (view,) = told["views"]
    shown = view["memory_chars"] + view["verbatim_chars"]
    return shown > 2_600 and not view["debt_chars"]


async def talk_until_a_fold_waits(client: httpx.AsyncClient, history: list[dict[str, Any]]) -> None:
    for words in PASSAGES:
        await say(client, history, words)
        for _ in range(20):
            if await waits_for_a_fold(client):
                return
            await asyncio.sleep(0.05)
    raise AssertionError("nothing was to be folded")


@pytest.mark.parametrize("slots", ["pinned", "shared"])
async def test_the_turn_after_a_fold_reads_no_more_than_its_own_message(
    start_llama: StartLlama, tmp_path: Path, slots: str
) -> None:
    async with start_llama(window=2048, slots=2, pinned=slots == "pinned") as llama:
        text = POLICIES.format(url=llama.url, slots=slots, prefill="true")
        async with serving(tmp_path, text) as client:
            history: list[dict[str, Any]] = []
            await talk_until_a_fold_waits(client, history)
            async with asyncio.timeout(120):
                while not await readings(client):
                    await asyncio.sleep(0.05)
            await say(client, history, "And what did the light do then?")
            turn = await newest(client)
    assert (turn["moved_by"], turn["view"]) == ("fold", "folded")
    # Some 10 tokens of question, and the template's marks around them.
    assert turn["prompt_tokens"] - turn["cached_tokens"] < 40
    assert turn["expected"] == pytest.approx(turn["reused"], abs=0.06)


async def test_without_it_the_folded_prompt_is_read_anew(
    start_llama: StartLlama, tmp_path: Path
) -> None:
    """What the other test holds is not there by itself."""
    async with start_llama(window=2048, slots=2, pinned=True) as llama:
        text = POLICIES.format(url=llama.url, slots="pinned", prefill="false")
        async with serving(tmp_path, text) as client:
            history: list[dict[str, Any]] = []
            await talk_until_a_fold_waits(client, history)
            await say(client, history, "And what did the light do then?")
            turn = await newest(client)
            assert await readings(client) == 0
    assert turn["moved_by"] == "fold"
    assert turn["prompt_tokens"] - turn["cached_tokens"] > 200
