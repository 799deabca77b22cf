"""The gateway as people run it, for tests that kill it: `foldgate serve`, always on one port."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Self

import httpx

PROJECT = Path(__file__).parents[2]


class NotReady(Exception):
    """The gateway ended, or was not ready in time; the message ends with its last words."""


class RunningGateway:
    """`foldgate serve` over one SQLite file and one port, which can be started again and again.

    environ: beside the machine's own environment without anything of Foldgate's; patience: seconds
    until it must be ready (the machine may be busy).
    """

    def __init__(
        self,
        folder: Path,
        policies: str,
        *,
        environ: Mapping[str, str] | None = None,
        patience: float = 120.0,
    ) -> None:
        self.folder = folder
        self.database = folder / "foldgate.db"
        self.log = folder / "gateway.log"
        self.policies = folder / "policies.yaml"
        self.policies.write_text(policies, encoding="utf-8")
        self.port = free_port()
        self.starts = 0
        self._environ = dict(environ or {})
        self._patience = patience
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def start(self) -> None:
        """Start it and return once `/readyz` says 200. Raises NotReady."""
        command = [sys.executable, "-c", "from gateway.cli import main; main()", "serve"]
        command += ["--port", str(self.port), "--policies", str(self.policies)]
        command += ["--database-url", f"sqlite:///{self.database}"]
        kept = {name: value for name, value in os.environ.items() if "FOLDGATE" not in name}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=PROJECT,
                env={**kept, **self._environ},
            )
        self.starts += 1
        deadline = time.monotonic() + self._patience
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise NotReady(f"the gateway is not ready. Its last words:\n{self.last_words()}")
            time.sleep(0.05)

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/readyz", timeout=10).status_code == 200
        except httpx.TransportError:
            return False

    def kill(self) -> None:
        """kill -9, and reap it."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> int:
        """Ask it to end (SIGTERM); its exit code."""
        assert self._process is not None
        self._process.terminate()
        code = self._process.wait(self._patience)
        self._process = None
        return code

    def last_words(self, lines: int = 30) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        """What the database says, beside the running server or after its end; changes nothing."""
        address = f"file:{self.database}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=30)) as connection:
            return connection.execute(sql, values).fetchall()

    def one(self, sql: str, *values: Any) -> Any:
        return self.rows(sql, *values)[0][0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
