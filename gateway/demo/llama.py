"""A real llama-server with a small real model: fetched once, started, and always reaped.

The server is llama.cpp's own, from the `xllamacpp` wheel that `make setup` installs (portable
x86-64 and arm64 builds), or the executable that FOLDGATE_LLAMA_SERVER names.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import aiohttp

from gateway.demo.child import begin_child, end_child
from gateway.demo.model import (
    SMOLLM2,
    LlamaUnavailable,
    ModelSource,
    Report,
    fetch_model,
)

_GRACE_SECONDS = 5.0
_LOG_LINES = 15


class LlamaFailed(Exception):
    """The server did not come up, or went down; the message ends with the tail of its log."""


@dataclass(frozen=True, slots=True)
class LlamaInstall:
    """What `LlamaServer` starts: a command that takes llama-server's flags, and a model file."""

    command: tuple[str, ...]
    model: Path
    model_name: str


def default_cache(environ: Mapping[str, str]) -> Path:
    """Where fetched files are kept: FOLDGATE_CACHE, else `.cache/foldgate` where one stands."""
    return Path(environ.get("FOLDGATE_CACHE") or ".cache/foldgate")


def fetch_llama(cache: Path, report: Report, source: ModelSource = SMOLLM2) -> LlamaInstall:
    """The server's command, and the model's file fetched into `cache` unless it is there.

    Errors: LlamaUnavailable as `fetch_model` raises it, or when there is no server to start.
    """
    command = _find_server(os.environ)
    return LlamaInstall(command, fetch_model(source, cache, report), source.name)


def _find_server(environ: Mapping[str, str]) -> tuple[str, ...]:
    own = environ.get("FOLDGATE_LLAMA_SERVER")
    if own:
        found = shutil.which(own)
        if found is None:
            raise LlamaUnavailable(f"FOLDGATE_LLAMA_SERVER names no executable: {own}")
        return (found,)
    if importlib.util.find_spec("xllamacpp") is None:
        raise LlamaUnavailable(
            "llama.cpp's server is not installed: `make setup` or `pip install 'foldgate[demo]'` "
            "brings it, or FOLDGATE_LLAMA_SERVER names a llama-server of your own."
        )
    return (sys.executable, "-m", "gateway.demo.llama_process")


class LlamaServer:
    """One llama-server on a free loopback port, for as long as its context lasts.

    window: tokens of each slot; slots: conversations held at once; pinned: no prompt cache in
    RAM, as slots that belong to one conversation need it; log: the file its words go to (a
    temporary one if left out); patience: seconds until it must be ready.
    Nothing of it leaves the machine, and it ends with its parent, however that ends (an
    executable of one's own ends with the context only).
    """

    def __init__(
        self,
        install: LlamaInstall,
        *,
        window: int,
        slots: int = 1,
        pinned: bool = False,
        log: Path | None = None,
        patience: float = 60.0,
    ) -> None:
        self._install = install
        self._window = window
        self._slots = slots
        self._pinned = pinned
        self._own_log = log is None
        self._log = log
        self._patience = patience
        self._url = ""
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, without a slash at its end; empty before the start."""
        return self._url

    @property
    def model_name(self) -> str:
        """The name under which the server lists its model."""
        return self._install.model_name

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start the process and return once it answers `/health` with 200.

        Errors: LlamaFailed when it ends or is not ready within `patience`; it is then reaped.
        """
        if self.process is not None:
            raise RuntimeError("this llama-server was started already")
        port = _free_port()
        self._url = f"http://127.0.0.1:{port}"
        if self._log is None:
            handle, name = tempfile.mkstemp(prefix="llama-server-", suffix=".log")
            os.close(handle)
            self._log = Path(name)
        command = [*self._install.command, *self._arguments(port)]
        self.process = begin_child(command, self._log, _environment(os.environ))
        try:
            await self._wait_until_ready(self.process)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End the process (asked first, killed after five seconds) and reap it; safe to repeat."""
        process = self.process
        if process is None:
            return
        await end_child(process, _GRACE_SECONDS)
        if self._own_log and self._log is not None:
            self._log.unlink(missing_ok=True)

    def log_tail(self, lines: int = _LOG_LINES) -> str:
        """The last lines that the server wrote, for people to read."""
        if self._log is None or not self._log.exists():
            return ""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])

    def _arguments(self, port: int) -> list[str]:
        settings = {
            "--model": self._install.model,
            "--alias": self._install.model_name,
            "--host": "127.0.0.1",
            "--port": port,
            "--parallel": self._slots,
            # Without a unified cache a slot's window is its equal share of this.
            "--ctx-size": self._slots * self._window,
            # A request can be given up only between two batches; one of the default 2,048 tokens
            # takes two cores six seconds; this is how many are computed at once anyway.
            "--batch-size": 512,
            "--threads": os.cpu_count() or 1,
            # MiB. A request pinned to a busy slot would overwrite its cache through this one.
            "--cache-ram": 0 if self._pinned else 1024,
        }
        switches = ["--no-kv-unified", "--no-context-shift", "--no-webui", "--jinja", "--offline"]
        return [str(word) for pair in settings.items() for word in pair] + switches

    async def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        try:
            async with (
                asyncio.timeout(self._patience),
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2)) as client,
            ):
                while not await _is_ready(client, self._url):
                    if process.poll() is not None:
                        raise self._failure(_ending(process.returncode))
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise self._failure(f"was not ready within {self._patience:g} s") from None

    def _failure(self, what: str) -> LlamaFailed:
        return LlamaFailed(f"llama-server {what}. Its last words:\n{self.log_tail()}")


async def _is_ready(client: aiohttp.ClientSession, url: str) -> bool:
    """Whether it loaded its model: refused connections and 503 mean that it is on its way."""
    try:
        async with client.get(f"{url}/health") as answer:
            return answer.status == 200
    except (aiohttp.ClientConnectionError, TimeoutError):
        return False


def _ending(code: int) -> str:
    if code >= 0:
        return f"ended with exit code {code}"
    name = signal.Signals(-code).name
    if name == "SIGILL":
        return "died of SIGILL: its build uses instructions that this processor lacks"
    return f"died of {name}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without settings for another llama-server, keys and model hubs."""
    foreign = ("LLAMA_", "HF_")
    kept = {name: value for name, value in environ.items() if not name.startswith(foreign)}
    # Threads that spin at a barrier starve the one they wait for when the cores are shared.
    # Measured on two busy cores, 700 tokens read and 100 written: over 60 s so, 20 s with this.
    return {"OMP_WAIT_POLICY": "passive", **kept}
