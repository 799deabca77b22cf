"""A backup taken from the command line beside a running server that talks, killed on its way, and
put back under another one."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from gateway.store.backups import list_backups, read_manifest
from tests.e2e.running_gateway import PROJECT, RunningGateway

POLICIES = """
version: 1
backends:
  local: {kind: scripted}
policies:
  small:
    view: {start: 2000, ceiling: 5000, headroom: 800, keep: 400}
    chapters: {split: 1500, length: 150, stack: 600}
    gist: {length: 200}
    summaries: {backends: [local], delay: 100ms}
models:
  foldgate: {tiers: [{backend: local, policy: small}]}
"""
SAID = ("灯台が見える", "灯塔在那边", "등대가 보인다", "Маяк виден", "Se ve el faro", "A light! 🚢")
KILLS = 12


def foldgate(*arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from gateway.cli import main; main()", *arguments]
    return subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def told(*arguments: str) -> dict[str, Any]:
    out, err = (process := foldgate(*arguments, "--json")).communicate()
    assert process.returncode in (0, 1) and out, err.decode()
    found: dict[str, Any] = json.loads(out)
    return found


async def _talk(
    gateway: RunningGateway, talker: int, over: asyncio.Event, acknowledged: list[str]
) -> None:
    """Adds every question whose answer came whole."""
    number = 0
    async with httpx.AsyncClient(timeout=60) as client:
        while not over.is_set():
            question = f"{SAID[number % 6]} {talker}.{number}" + " 港" * 60
            answer = await client.post(
                f"{gateway.url}/v1/chat/completions",
                headers={"X-Conversation-Id": f"talk{talker}"},
                json={"model": "foldgate", "messages": [{"role": "user", "content": question}]},
            )
            assert answer.status_code == 200
            acknowledged.append(question)
            number += 1


async def test_backups_beside_a_server(tmp_path: Path) -> None:
    """Whatever was acknowledged before a backup began is in it; kills leave no half; what comes
    back serves."""
    folder = tmp_path / "backups"
    folder.mkdir()
    draw = random.Random(20261130)
    with RunningGateway(tmp_path, POLICIES) as gateway:
        url = f"sqlite:///{gateway.database}"
        over = asyncio.Event()
        said: list[str] = []
        talks = [asyncio.create_task(_talk(gateway, talker, over, said)) for talker in range(3)]
        for _ in range(KILLS):
            victim = foldgate("backup", "--to", str(folder), "--database-url", url)
            await asyncio.sleep(draw.uniform(0.3, 1.2))
            victim.kill()
            victim.communicate()
            whole = [one.path for one in list_backups(folder)]
            assert sorted(folder.glob("*.db")) == sorted(whole)
        acknowledged = [*said]
        made = await asyncio.to_thread(told, "backup", "--to", str(folder), "--database-url", url)
        over.set()
        await asyncio.gather(*talks)
        assert len(acknowledged) > KILLS
        assert [*folder.glob(".*")] == []  # the last backup swept what the kills left
        backup = Path(made["path"])
        assert read_manifest(backup).counts["messages"] == made["counts"]["messages"]
        refused = foldgate("backup", "restore", str(backup), "--to", str(gateway.database))
        assert b"a running server" in refused.communicate()[1] and refused.returncode == 1
        assert gateway.stop() == 0
    doctor = "doctor", "--deep", "--database-url", url, "--policies", str(gateway.policies)
    assert told(*doctor)["integrity"]["findings"] == []
    restored = tmp_path / "restored"
    restored.mkdir()
    target = restored / "foldgate.db"
    told("backup", "restore", str(backup), "--to", str(target))
    with RunningGateway(restored, POLICIES) as again:
        stored = {row[0] for row in again.rows("SELECT raw ->> 'content' FROM messages")}
        assert stored.issuperset(acknowledged)
        answer = httpx.post(
            f"{again.url}/v1/chat/completions",
            headers={"X-Conversation-Id": "talk1"},
            json={"model": "foldgate", "messages": [{"role": "user", "content": "またね"}]},
            timeout=60,
        )
        assert answer.status_code == 200
        assert again.one("SELECT count(*) FROM messages") == made["counts"]["messages"] + 2
        assert again.stop() == 0
    back = *doctor[:3], f"sqlite:///{target}", *doctor[4:]
    assert told(*back)["integrity"]["findings"] == []
