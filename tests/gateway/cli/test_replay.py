"""A recorded conversation played from the command line: its figures, and what stops it early."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from tests.gateway.cli.conftest import Run

POLICIES = """
version: 1
backends:
  actor: {kind: scripted}
policies:
  small:
    view: {start: 6_000, ceiling: 8_000, headroom: 2_000, keep: 2_000}
    chapters: {split: 3_000, length: 400, stack: 1_500}
    gist: {length: 500}
    summaries: {delay: 1s}
models:
  foldgate: {tiers: [{backend: actor, policy: small}]}
"""


@pytest.fixture
def recording(run: Run, tmp_path: Path) -> str:
    """Ten turns, each of 2 · 8 · 72 = 1,152 characters."""
    (tmp_path / "policies.yaml").write_text(POLICIES)
    said = [
        {"role": role, "content": text.format(number) * 8}
        for number in range(10)
        for role, text in (
            (
                "user",
                "On day {} the ship Aurora reached Hakodate; 船長の田中 gave the map to Ольга. ",
            ),
            (
                "assistant",
                "So on day {} the map changed hands, and the captain kept quiet about it. ",
            ),
        )
    ]
    assert [len(message["content"]) for message in said[:2]] == [8 * 72, 8 * 72]
    (tmp_path / "talk.json").write_text(json.dumps(said))
    return "talk.json"


def test_a_recording_that_ends_amid_a_summary(
    run: Run, recording: str, caplog: pytest.LogCaptureFixture
) -> None:
    done = run("replay", recording, "--policy", "small", "--json")
    gc.collect()
    assert (done.exit_code, done.stderr) == (0, "")
    figures = json.loads(done.stdout)
    assert (figures["messages"], figures["turns"]) == (20, 10)
    assert figures["floor_chars"] == 10 * 2 * 8 * 72
    assert figures["lost_messages"] == 0
    assert figures["prompt_chars_max"] <= 8_000
    # asyncio says it here where a task was left behind.
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_a_picture_that_could_not_be_kept_is_told_first(run: Run, recording: str) -> None:
    done = run("replay", recording, "--policy", "small", "--plot", "nowhere/out.svg")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "There is no folder 'nowhere'." in done.stderr


def test_a_picture(run: Run, recording: str, tmp_path: Path) -> None:
    done = run("replay", recording, "--policy", "small", "--plot", "out.svg")
    assert done.exit_code == 0
    assert "ceiling 8,000" in (tmp_path / "out.svg").read_text()


@pytest.mark.parametrize("flags", [("--policy", "smal"), ("--policy", "small", "--backend", "x")])
def test_names_that_the_policies_file_does_not_have(
    run: Run, recording: str, flags: tuple[str, ...]
) -> None:
    done = run("replay", recording, *flags)
    assert done.exit_code == 2
    assert "there are: " in done.stderr
