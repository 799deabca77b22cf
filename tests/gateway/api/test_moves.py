"""A move as its owner sees it: asked for, told in a header and in the memory, and done."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.api.conftest import Door, Opener

POLICIES = """
version: 1
backends:
  cloud: {kind: scripted, latency: 0, refusals: 0, truncations: 0}
  local: {kind: scripted, latency: 0, refusals: 0, truncations: 0}
policies:
  wide:
    view: {start: 100000, ceiling: 120000, headroom: 20000, keep: 50000}
  small:
    view: {start: 6000, ceiling: 8000, headroom: 2000, keep: 2000}
    chapters: {split: 3000, length: 400, stack: 1500}
    gist: {length: 500}
models:
  talk: {tiers: [{backend: cloud, policy: wide}, {backend: local, policy: small}]}
"""

PLACES = ("Hakodate", "Владивосток", "釜山", "Vigo", "Lisbon", "Ålesund", "高雄", "Cork", "Oulu")
THINGS = ("map", "compass", "鍵", "ledger", "lamp", "письмо", "rope", "bell", "mirror", "coat")


def story(turns: int) -> list[dict[str, Any]]:
    """So many turns of about 250 characters."""
    said = []
    for day in range(turns):
        place, thing = PLACES[day % 9], THINGS[day % 10]
        asked = f"On day {day} the Aurora reached {place} and Ольга bought a {thing} for {day * 7}."
        told = f"Captain 田中 hid the {thing} of {place} in cabin {day * 3} and told nobody why."
        said += [
            {"role": "user", "content": asked + " Then the wind turned and it rained."},
            {"role": "assistant", "content": told + " The mate Ruiz saw it all the same."},
        ]
    return said


@pytest.fixture
async def moving(opened: Opener, tmp_path: Path) -> AsyncIterator[Door]:
    (tmp_path / "policies.yaml").write_text(POLICIES)
    async with opened() as door:
        yield door


async def chat(door: Door, history: list[dict[str, Any]], text: str) -> httpx.Response:
    body = {"model": "talk", "messages": [*history, {"role": "user", "content": text}]}
    answer = await door.client.post(
        "/v1/chat/completions", json=body, headers={"x-conversation-id": "c"}
    )
    assert answer.status_code == 200, answer.text
    history += [body["messages"][-1], answer.json()["choices"][0]["message"]]
    return answer


async def choose(door: Door, backend: str) -> dict[str, Any]:
    answer = await door.client.post("/api/conversations/c/route", json={"backend": backend})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def memory(door: Door) -> dict[str, Any]:
    found: dict[str, Any] = (await door.get("/api/conversations/c/memory")).json()
    return found


def told(answer: httpx.Response) -> tuple[str, str, str | None]:
    """(backend, rule, migration) of an answer's headers."""
    headers = answer.headers
    return (
        headers["x-foldgate-backend"],
        headers["x-foldgate-rule"],
        headers.get("x-foldgate-migration"),
    )


async def test_a_move_is_asked_for_followed_and_done(moving: Door) -> None:
    history = story(48)
    answer = await chat(moving, history, "What does Ruiz know?")
    assert told(answer) == ("cloud", "first-healthy", None)
    assert (await memory(moving))["migration"] is None

    chosen = await choose(moving, "local")
    move = chosen["migration"]
    assert (chosen["backend"], chosen["policy"]) == ("local", "small")
    assert (move["backend"], move["policy"]) == ("local", "small")
    assert move["total"] == -(-move["backlog_chars"] // 3_000)
    assert 0 <= move["ready"] <= move["total"]

    upkeep = moving.app.state.upkeep
    while (await memory(moving))["migration"]["ready"] < move["total"]:
        await upkeep.run_due()
        await asyncio.sleep(0)
    shown = await memory(moving)
    assert shown["migration"] == {**move, "ready": move["total"]}
    assert (shown["backend"], shown["route"]) == ("cloud", "local")

    answer = await chat(moving, history, "And what does 田中 know?")
    assert told(answer) == ("local", "route", None)
    assert answer.headers["x-foldgate-view"] == "folded"
    after = await memory(moving)
    assert (after["backend"], after["migration"]) == ("local", None)
    assert json.dumps(after).count('"origin": "stand-in"') == 0


async def test_a_turn_that_waits_says_so(moving: Door) -> None:
    history = story(48)
    await chat(moving, history, "What does Ruiz know?")
    moving.app.state.upkeep._is_draining = True  # nothing is written meanwhile
    move = (await choose(moving, "local"))["migration"]
    answer = await chat(moving, history, "And what does 田中 know?")
    assert told(answer) == ("cloud", "migrating", f"0/{move['total']}")
    assert (await memory(moving))["migration"] == move
