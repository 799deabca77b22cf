"""The server as a process: it says where it is, ends in order, and says why it cannot start."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import Mock

import httpx
import pytest
import uvicorn

from gateway.cli.serve import Server
from gateway.jobs.bells import Bells
from gateway.settings import Settings
from tests.gateway.seeds import POLICIES


def command(tmp_path: Path, *arguments: str) -> list[str]:
    (tmp_path / "policies.yaml").write_text(POLICIES)
    return [
        sys.executable,
        "-c",
        "from gateway.cli import main; main()",
        "serve",
        "--policies",
        str(tmp_path / "policies.yaml"),
        "--database-url",
        f"sqlite:///{tmp_path / 'foldgate.db'}",
        *arguments,
    ]


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FOLDGATE")}
    return {**kept, "PYTHONPATH": str(Path(__file__).parents[3]), **more}


@contextmanager
def served(tmp_path: Path, **more: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        command(tmp_path, "--port", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**more),
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", first)
        assert found is not None, first
        yield process, found[0]
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()


def boots(tmp_path: Path) -> list[tuple[int]]:
    connection = sqlite3.connect(tmp_path / "foldgate.db")
    try:
        return connection.execute("SELECT pid FROM boots").fetchall()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///foldgate.db", "{here}/foldgate.db"),
        ("sqlite:////srv/foldgate.db", "/srv/foldgate.db"),
        ("postgresql+psycopg://ada:hush@db/foldgate", "postgresql+psycopg://ada:***@db/foldgate"),
    ],
)
async def test_it_says_in_full_where_the_data_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    url: str,
    shown: str,
) -> None:
    """Started in two folders, it had two memories without a word."""

    async def begin(server: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
        server.started = True

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(uvicorn.Server, "startup", begin)
    settings = Settings(policies=Path("policies.yaml"), database_url=url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        await Server(uvicorn.Config("none"), settings, {}, Mock(Bells)).startup([listener])
    place = shown.format(here=tmp_path)
    said = capsys.readouterr().out.splitlines()
    assert said[1] == f"policies: {tmp_path}/policies.yaml   data: {place}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["TERM", "INT"])
def test_it_serves_and_ends_in_order(tmp_path: Path, number: signal.Signals) -> None:
    with served(tmp_path) as (process, address):
        assert httpx.get(f"{address}/healthz").json() == {"status": "ok"}
        assert httpx.get(f"{address}/v1/models").json()["object"] == "list"
        assert boots(tmp_path) == [(process.pid,)]
        process.send_signal(number)
        assert process.wait(timeout=30) == 0
        assert process.stdout is not None and process.stderr is not None
        # Not communicate(): it would miss what came in one read with the first line.
        out, err = process.stdout.read(), process.stderr.read()
        assert err == ""
        assert str(tmp_path / "foldgate.db") in out
        assert "backends: rehearsal, local-glm " in out
        assert boots(tmp_path) == []
        assert not (tmp_path / "foldgate.db-wal").exists()


def test_a_run_that_was_killed_is_over_at_the_next_start(tmp_path: Path) -> None:
    with served(tmp_path) as (process, _):
        process.kill()
        process.wait()
        assert boots(tmp_path) == [(process.pid,)]
    with served(tmp_path) as (process, _):
        assert boots(tmp_path) == [(process.pid,)]


def test_it_logs_and_counts_what_it_serves_without_a_word_of_it(tmp_path: Path) -> None:
    log = {"FOLDGATE_LOG": "json", "FOLDGATE_LOG_LEVEL": "debug"}
    with served(tmp_path, **log) as (process, address):
        said = {"role": "user", "content": "ORCHID-7 비밀"}
        answer = httpx.post(
            f"{address}/v1/chat/completions",
            json={"model": "vendor/tiny", "messages": [said]},
            headers={"x-request-id": "req_1", "authorization": "Bearer sk-secret"},
        )
        counted = httpx.get(f"{address}/metrics").text
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
        assert process.stderr is not None
        err = process.stderr.read()
    conversation = answer.headers["x-foldgate-conversation"]
    lines = [json.loads(line) for line in err.splitlines()]
    (line,) = [line for line in lines if line["message"] == "an attempt ended"]
    assert (line["request"], line["conversation"]) == ("req_1", conversation)
    assert (line["backend"], line["state"]) == ("rehearsal", "done")
    assert 'foldgate_requests_total{code="none",status="200",surface="chat"} 1.0' in counted
    for text in ("ORCHID-7", "비밀", "sk-secret"):
        assert text not in err + counted


def fails(arguments: list[str]) -> str:
    done = subprocess.run(
        arguments, capture_output=True, text=True, env=environment(), timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    return done.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told = fails(command(tmp_path, "--port", port))
    assert told == f"foldgate: cannot listen on 127.0.0.1:{port}: Address already in use\n"


def test_strangers_without_keys(tmp_path: Path) -> None:
    assert "set FOLDGATE_KEYS" in fails(command(tmp_path, "--host", "0.0.0.0"))


def test_a_database_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "foldgate.db").write_bytes(b"no database " * 1_000)
    assert "the database cannot be opened" in fails(command(tmp_path, "--port", "0"))
