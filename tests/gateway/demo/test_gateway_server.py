"""`foldgate serve` as a process of the demonstration's: ready, reaped, and told about."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from pathlib import Path

import aiohttp
import pytest

from gateway.demo.gateway_server import GatewayFailed, GatewayServer, _clean_environment

POLICIES = """\
version: 1
backends:
  rehearsal: {kind: scripted}
policies:
  p: {}
models:
  m: {tiers: [{backend: rehearsal, policy: p}]}
"""


def gateway(folder: Path, text: str = POLICIES) -> GatewayServer:
    policies = folder / "policies.yaml"
    policies.write_text(text)
    return GatewayServer(policies=policies, folder=folder, log=folder / "gateway.log")


async def test_it_is_ready_on_a_port_of_its_own_and_reaped(tmp_path: Path) -> None:
    async with gateway(tmp_path) as server:
        async with aiohttp.ClientSession() as client:
            async with client.get(f"{server.url}/v1/models") as answer:
                assert [model["id"] for model in (await answer.json())["data"]] == ["m"]
        assert "Foldgate listens on" in server.log_tail()
    assert server.process is not None
    assert server.process.returncode == 0
    assert (tmp_path / "foldgate.db").exists()


async def test_a_gateway_that_cannot_start_shows_its_last_words(tmp_path: Path) -> None:
    server = gateway(tmp_path, POLICIES.replace("policy: p", "policy: q"))
    with pytest.raises(GatewayFailed, match=r"ended with exit code 2[\s\S]*q"):
        await server.start()
    assert server.process is not None and server.process.poll() == 2


PARENT = """\
import asyncio, sys
from pathlib import Path
from gateway.demo.gateway_server import GatewayServer
async def main(folder):
    log = folder / "gateway.log"
    server = GatewayServer(policies=folder / "policies.yaml", folder=folder, log=log)
    await server.start()
    print(server.process.pid, flush=True)
    await asyncio.Event().wait()
asyncio.run(main(Path(sys.argv[1])))
"""


def test_it_ends_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text(POLICIES)
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        watch = os.pidfd_open(pid)
        parent.kill()

    assert select.select([watch], [], [], 30)[0], "the gateway runs on without its parent"
    os.close(watch)


def test_settings_for_another_gateway_stay_outside() -> None:
    environ = {"FOLDGATE_KEYS": "ada=K", "FOLDGATE_POLICIES": "x.yaml", "PATH": "/bin"}
    assert _clean_environment(environ) == {"PATH": "/bin"}
