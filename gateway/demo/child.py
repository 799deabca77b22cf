"""A server as a child process: begun in a session of its own, always ended and reaped."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def begin_child(
    command: Sequence[str], log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start a command with its output in a file. It holds the reading end of a pipe of ours, so
    that it can tell when this process is gone."""
    with log.open("wb") as output:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            # A Ctrl-C at the terminal is the parent's to act on, in its own order.
            start_new_session=True,
        )


async def end_child(process: subprocess.Popen[bytes], grace_seconds: float) -> None:
    """Ask a process to end, kill it after the grace or when this is cancelled, and reap it; safe
    to repeat."""
    if process.poll() is None:
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, grace_seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
    if process.stdin is not None:
        process.stdin.close()
