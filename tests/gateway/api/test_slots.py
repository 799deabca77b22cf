"""Few slots, seen by clients: who waits hears pings, who comes beyond the line is told when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.faults.server import DONE, FaultServer, answer, delta, end, role, stream
from tests.gateway.api.conftest import Door, Opener
from tests.gateway.api.test_sse import Client, chat

GOOD = stream(role(), delta("ok"), end("stop"), DONE)
POLICIES = """
version: 1
backends:
  local: {{kind: llama_cpp, url: "{url}", slots: {slots}, queue: 1}}
policies:
  whole: {{}}
models:
  foldgate: {{tiers: [{{backend: local, policy: whole}}]}}
"""


@pytest.fixture(params=["pinned", "shared"])
async def narrow(
    request: pytest.FixtureRequest, opened: Opener, tmp_path: Path
) -> AsyncIterator[tuple[Door, FaultServer]]:
    """A gateway before a server with one slot, and one place in the line."""
    async with FaultServer() as server:
        window = {"default_generation_settings": {"n_ctx": 65_536}, "total_slots": 1}
        server.routes["/props"] = answer(200, window)
        server.routes["/health"] = answer(200, {"status": "ok"})
        text = POLICIES.format(url=server.url, slots=request.param)
        (tmp_path / "policies.yaml").write_text(text)
        async with opened(hold_seconds=0.0, ping_seconds=0.001) as door:
            yield door, server


async def test_who_waits_hears_pings_and_who_comes_beyond_is_told_when(
    narrow: tuple[Door, FaultServer],
) -> None:
    door, server = narrow
    hold = asyncio.Event()
    server.play(stream(role(), delta("ok"), end("stop"), DONE, hold=hold), GOOD)
    clients = [Client(chat(stream=True), x_conversation_id=name) for name in ("one", "two")]
    tasks = []
    for client in clients:
        tasks.append(asyncio.create_task(client.ask(door.app)))
        while door.context.backends["local"].slot_care.in_flight() < 1:
            await asyncio.sleep(0)
    waiting = clients[1]
    await waiting.hear(3)
    assert waiting.sent[0]["status"] == 200
    assert [message["body"] for message in waiting.sent[1:3]] == [b": ping\n\n"] * 2
    assert len(server.chats) == 1

    late = await door.client.post(
        "/v1/chat/completions", json=chat(stream=False), headers={"x-conversation-id": "late"}
    )
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) >= 1
    assert late.json()["error"]["code"] == "upstream_overloaded"

    hold.set()
    await asyncio.gather(*tasks)
    said = b"".join(message.get("body", b"") for message in waiting.sent)
    assert b'"content": "ok"' in said and said.endswith(b"data: [DONE]\n\n")
    assert len(server.chats) == 2
    assert door.context.circuits.state("local") == "closed"


async def test_readiness_tells_how_the_server_was_started(
    narrow: tuple[Door, FaultServer],
) -> None:
    door, _ = narrow
    backend = door.context.backends["local"]
    await door.context.slots.look()
    told = (await door.get("/readyz")).json()["backends"]["local"]
    assert told["ok"]
    assert told["cautions"] == list(backend.slot_care.cautions)
    assert any("--no-slots" in caution for caution in told["cautions"])
