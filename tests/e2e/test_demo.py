"""The demonstration as a newcomer runs it: a real model, both servers, the official client."""

from __future__ import annotations

import faulthandler
import json
import os
import re
import select
import shlex
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

REPLAY_KEYS = (
    "messages, turns, folds, hard_cuts, chapters, majors, stand_ins, rejected, lost_messages, "
    "prompt_chars_mean, prompt_chars_max, reread_chars, floor_chars, reuse, cold_turns, "
    "recall_turns, recall_chars, moved_prefixes"
).split(", ")
DEMO_KEYS = ["window_tokens", "max_prompt_tokens", "finish_length", "refused", "judged_out"]

# Longer than any machine that is merely busy: what hangs is ended by it.
PATIENCE = 1_800

pytestmark = pytest.mark.usefixtures("llama_install")


class Demo:
    """`foldgate demo` in a folder of its own; everything that it starts carries its mark."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.folder = folder
        self._mark = f"DEMO_MARK={uuid.uuid4().hex}"
        name, _, value = self._mark.partition("=")
        program = [sys.executable, "-c", "from gateway.cli import main; main()", "demo"]
        self.process = subprocess.Popen(
            [*program, "--out", str(folder), *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, name: value, "PYTHONUNBUFFERED": "1"},
        )

    def lines_until(self, beginning: str) -> list[str]:
        """What is said up to the first line that begins so, that line among it."""
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line.rstrip("\n"))
            if line.startswith(beginning):
                return said
        raise AssertionError(f"no line begins with {beginning!r}: {said}")

    def survivors(self) -> list[str]:
        """Processes that run on with the mark of this demonstration, by their command lines."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if self._mark in (process / "environ").read_text(errors="replace"):
                    found.append((process / "cmdline").read_text(errors="replace"))
            except OSError:
                continue  # it ended meanwhile, or is another user's
        return found


Start = Callable[..., Demo]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Demo] = []

    def start_demo(*arguments: str) -> Demo:
        started.append(Demo(tmp_path / "out", *arguments))
        return started[-1]

    yield start_demo
    for demo in started:
        if demo.process.poll() is None:
            demo.process.terminate()
        demo.process.communicate(timeout=60)


def test_four_windows_are_told_and_nothing_is_lost(start: Start) -> None:
    # It takes minutes, which to the watch over hanging tests looks like one; its own is below.
    faulthandler.cancel_dump_traceback_later()
    demo = start("--once", "--json")
    stdout, stderr = demo.process.communicate(timeout=PATIENCE)
    figures = json.loads(stdout)
    assert demo.process.returncode == 0, stderr
    assert list(figures) == REPLAY_KEYS + DEMO_KEYS
    assert figures["lost_messages"] == figures["finish_length"] == figures["refused"] == 0
    assert figures["max_prompt_tokens"] <= figures["window_tokens"] == 4_096
    assert figures["turns"] * 2 == figures["messages"]
    assert figures["folds"] >= 3
    assert figures["judged_out"] == figures["rejected"] >= 1
    assert figures["stand_ins"] >= 1
    assert 0.5 < figures["reuse"] < 1
    said = max(int(n.replace(",", "")) for n in re.findall(r"said +([\d,]+) of", stderr))
    assert said >= 4 * 4_096
    ElementTree.parse(demo.folder / "conversation.svg")
    prompts = (demo.folder / "prompts.jsonl").read_text().splitlines()
    assert len(prompts) >= figures["turns"]
    assert demo.survivors() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_leaves_no_process(start: Start, number: signal.Signals) -> None:
    demo = start()
    demo.lines_until("turn 1")
    assert len(demo.survivors()) == 3
    demo.process.send_signal(number)
    assert demo.process.wait(timeout=60) == 128 + number
    assert demo.survivors() == []


def test_a_kill_in_the_middle_leaves_no_process(start: Start) -> None:
    demo = start()
    demo.lines_until("turn 1")
    watched = [os.pidfd_open(pid) for pid in _children(demo.process.pid)]
    assert len(watched) == 2
    demo.process.kill()
    demo.process.wait()
    for fd in watched:
        assert _has_ended(fd), demo.survivors()


def test_the_gateway_stays_usable_until_it_is_told_to_end(start: Start) -> None:
    demo = start("--turns", "1")
    said = demo.lines_until("  -d ")
    command = shlex.split(" ".join(line.rstrip("\\") for line in said[-3:]))
    answer = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    assert answer.stdout.rstrip().endswith("data: [DONE]")
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(timeout=60) == 0
    assert demo.survivors() == []


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def _has_ended(pidfd: int) -> bool:
    try:
        return bool(select.select([pidfd], [], [], 60)[0])
    finally:
        os.close(pidfd)
