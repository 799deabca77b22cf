"""The three programs that are measured, each a process of its own, always ended."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, sleep

_PATIENCE_SECONDS = 60.0
_POLICIES = """\
version: 1
backends:
  bench: {{kind: llama_cpp, url: "http://127.0.0.1:{port}"}}
policies:
  # Everything as shipped, but no summary falls into the time of the measurement.
  local-fold: {{summaries: {{delay: 2h}}}}
models:
  foldgate: {{tiers: [{{backend: bench, policy: local-fold}}]}}
"""


@dataclass(frozen=True, slots=True)
class Gateway:
    """A running gateway; ready_s is from its start to the first 200 of /readyz."""

    port: int
    pid: int
    ready_s: float

    @property
    def rss_mb(self) -> float:
        """The memory that it holds, in MB of 1,000,000 bytes."""
        told = subprocess.run(
            ["ps", "-o", "rss=", "-p", str(self.pid)], capture_output=True, check=True, text=True
        )
        return int(told.stdout) * 1024 / 1e6


@contextmanager
def running(*module: str) -> Iterator[int]:
    """A part of this package as a process that prints its port; yields the port."""
    command = [sys.executable, "-m", *module]
    with _ending(subprocess.Popen(command, stdout=subprocess.PIPE, text=True)) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())


@contextmanager
def gateway(folder: Path, upstream: int) -> Iterator[Gateway]:
    """`foldgate serve` on a new SQLite file in `folder`, before the upstream at that port."""
    policies = folder / "policies.yaml"
    policies.write_text(_POLICIES.format(port=upstream))
    port = _free_port()
    began = perf_counter()
    with _ending(_serve(folder, port)) as process:
        _wait_until_ready(process, port, folder)
        yield Gateway(port, process.pid, perf_counter() - began)


class Killable:
    """`foldgate serve` over one SQLite file and one port, which is killed and started again."""

    def __init__(self, folder: Path, policies: str) -> None:
        (folder / "policies.yaml").write_text(policies, encoding="utf-8")
        self._folder = folder
        self._port = _free_port()
        self._process: subprocess.Popen[str] | None = None

    @property
    def database(self) -> Path:
        return self._folder / "foldgate.db"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Returns once it is ready. Raises RuntimeError."""
        self._process = _serve(self._folder, self._port)
        _wait_until_ready(self._process, self._port, self._folder)

    def kill(self) -> None:
        """kill -9, and reap it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> int:
        """Ask it to end; its exit code."""
        assert self._process is not None
        self._process.terminate()
        code = self._process.wait(_PATIENCE_SECONDS)
        self._process = None
        return code


def _serve(folder: Path, port: int) -> subprocess.Popen[str]:
    command = [
        *(sys.executable, "-c", "from gateway.cli import main; main()", "serve"),
        *("--port", str(port), "--policies", str(folder / "policies.yaml")),
        *("--database-url", f"sqlite:///{folder / 'foldgate.db'}"),
    ]
    environ = {name: value for name, value in os.environ.items() if "FOLDGATE" not in name}
    with (folder / "gateway.log").open("a") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environ, text=True)


def _wait_until_ready(process: subprocess.Popen[str], port: int, folder: Path) -> None:
    limit = perf_counter() + _PATIENCE_SECONDS
    while not _is_ready(port):
        if process.poll() is not None or perf_counter() > limit:
            raise RuntimeError(
                "the gateway did not start:\n" + (folder / "gateway.log").read_text()
            )
        sleep(0.01)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _ending(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
