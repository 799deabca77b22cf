"""The gateway as people run it: `foldgate serve` in a process of its own, always reaped."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import aiohttp

from gateway.demo.child import begin_child, end_child

_LISTENS = re.compile(r"^Foldgate listens on (http://\S+)/v1$", re.MULTILINE)
_LOG_LINES = 15
_GRACE_SECONDS = 8.0
# The command, and a watch on standard input: it ends when the parent does, however that ends.
_PROGRAM = """\
import os, signal, threading
def watch():
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
threading.Thread(target=watch, daemon=True).start()
from gateway.cli import main
main()
"""


class GatewayFailed(Exception):
    """The gateway did not come up; the message ends with the tail of its log."""


class GatewayServer:
    """`foldgate serve` on a free loopback port, for as long as its context lasts.

    folder: where its database goes; log: the file its words go to; patience: seconds until it
    must be ready (a busy machine takes a while).
    """

    def __init__(self, *, policies: Path, folder: Path, log: Path, patience: float = 120.0) -> None:
        self._policies = policies
        self._folder = folder
        self._log = log
        self._patience = patience
        self.url = ""
        self.database_url = f"sqlite:///{folder.absolute() / 'foldgate.db'}"
        self.process: subprocess.Popen[bytes] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the process and return once `/readyz` says 200.

        Errors: GatewayFailed when it ends or is not ready within its patience; it is then reaped.
        """
        command = [sys.executable, "-c", _PROGRAM, "serve", "--port=0"]
        command += [f"--policies={self._policies}", f"--database-url={self.database_url}"]
        self.process = begin_child(command, self._log, _clean_environment(os.environ))
        try:
            await self._wait_until_ready(self.process)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the process (asked first, killed after some seconds) and reap it; safe to repeat."""
        process = self.process
        if process is None:
            return
        await end_child(process, _GRACE_SECONDS)

    def log_tail(self, lines: int = _LOG_LINES) -> str:
        """The last lines that the gateway wrote, for people to read."""
        return "\n".join(self._read_log().splitlines()[-lines:])

    def _read_log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    async def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        try:
            async with (
                asyncio.timeout(self._patience),
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=10)) as client,
            ):
                while not await self._is_ready(client):
                    if process.poll() is not None:
                        raise self._failure(f"ended with exit code {process.returncode}")
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise self._failure(f"was not ready within {self._patience:g} s") from None

    async def _is_ready(self, client: aiohttp.ClientSession) -> bool:
        found = _LISTENS.search(self._read_log())
        if found is None:
            return False
        self.url = found[1]
        try:
            async with client.get(f"{self.url}/readyz") as answer:
                return answer.status == 200
        except (aiohttp.ClientConnectionError, TimeoutError):
            return False

    def _failure(self, what: str) -> GatewayFailed:
        return GatewayFailed(f"the gateway {what}. Its last words:\n{self.log_tail()}")


def _clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without settings for another gateway (keys, its database, its policies)."""
    return {name: value for name, value in environ.items() if not name.startswith("FOLDGATE_")}
