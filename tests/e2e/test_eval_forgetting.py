"""`foldgate eval forgetting` with a real small model in every part: it writes the memory, asks,
answers and grades. What a model of 135M parameters remembers is no matter here; that everything it
says is read, counted and kept is."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from gateway.demo.llama import LlamaServer
from tests.gateway.evals.long_talks import make_talk

POLICIES = """
version: 1
backends:
  small: {{kind: llama_cpp, url: "{url}"}}
policies:
  tiny:
    view: {{start: 5000, ceiling: 7000, headroom: 2000, keep: 1200}}
    chapters: {{split: 3000, length: 250, stack: 500}}
    gist: {{length: 300}}
    summaries: {{backends: [small], max_output: 160 tokens, redraws: 1, rounds: 1}}
    recall: {{budget: 800}}
models:
  foldgate: {{tiers: [{{backend: small, policy: tiny}}]}}

...
"""

MODES = "rolling,generational+recall"


def command(folder: Path, *more: str) -> list[str]:
    words = ["eval", "forgetting", str(folder / "talk.json"), "--policy", "tiny"]
    words += ["--policies", str(folder / "policies.yaml"), "--state", str(folder / "state")]
    words += [
        "--spans",
        "2",
        "--questions",
        "2",
        "--modes",
        MODES,
        "--html",
        str(folder / "curve.html"),
        "--json",
    ]
    return [str(Path(sys.executable).with_name("foldgate")), *words, *more]


async def run(folder: Path, *more: str) -> tuple[int, dict[str, Any], str]:
    done = await asyncio.to_thread(
        subprocess.run,
        command(folder, *more),
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
        check=False,
    )
    sys.stderr.write(done.stderr)
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


@pytest.mark.asyncio
async def test_a_small_model_sits_the_whole_exam(
    tmp_path: Path, start_llama: Callable[..., AbstractAsyncContextManager[LlamaServer]]
) -> None:
    talk = [{"role": role, "content": text} for role, text in make_talk(11_000, seed=5)]
    (tmp_path / "talk.json").write_text(json.dumps(talk))
    async with start_llama(window=4096) as server:
        (tmp_path / "policies.yaml").write_text(POLICIES.format(url=server.url))
        status, figures, _ = await run(tmp_path)
        again = await run(tmp_path)
    sys.stderr.write(json.dumps(figures, indent=1))
    assert figures["spans"] == 2
    assert figures["questions"] + figures["missing"] == 4
    assert status == (0 if figures["questions"] else 1)
    assert ",".join(figures["modes"]) == MODES
    for mode in figures["modes"].values():
        assert mode["questions"] == figures["questions"]
        assert 0.0 <= mode["mean"] <= 1.0
        assert {row["age"] for row in mode["by_span"]} <= {1, 2}
    assert figures["asked_now"] == figures["calls"] > 3
    # Everything is known now: the same figures, and the model was asked nothing.
    assert again[1]["asked_now"] == 0
    assert again[1]["modes"] == figures["modes"]
    assert "<svg" in (tmp_path / "curve.html").read_text()
