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
from aiohttp import web

from gateway.demo.llama import LlamaServer
from tests.e2e.small_model import SmallModel, answer_streamed
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


def write_talk(folder: Path) -> None:
    talk = [{"role": role, "content": text} for role, text in make_talk(11_000, seed=5)]
    (folder / "talk.json").write_text(json.dumps(talk))


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


async def sit(number: int, request: web.Request) -> web.StreamResponse:
    """A model that knows the exam: whatever it is asked for stands in the form that is demanded."""
    asked = json.loads(await request.read())
    (name, *_) = asked["response_format"]["json_schema"]["schema"]["properties"]
    question = {"question": f"Who came on day {number}?", "answer": "my neighbour"}
    said: dict[str, dict[str, Any]] = {
        "questions": {"questions": [question]},
        "answer": {"answer": "My neighbour."},
        "grade": {"grade": "right"},
        "chapter": {"chapter": "The user told of a bakery with ovens, of coins and of a printer."},
    }
    await asyncio.sleep(0.02)
    return await answer_streamed(request, [{"content": json.dumps(said[name])}])


@pytest.mark.asyncio
async def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    """kill -9 in the middle, three times: only what was in flight then is asked again."""
    write_talk(tmp_path)
    async with SmallModel() as model:
        model.script = sit
        (tmp_path / "policies.yaml").write_text(POLICIES.format(url=model.url))
        for calls in (2, 7, 12):
            process = subprocess.Popen(command(tmp_path), stdout=subprocess.DEVNULL)
            while len(model.bodies) < calls:
                assert process.poll() is None, "it ended before it was killed"
                await asyncio.sleep(0.01)
            process.kill()
            await asyncio.to_thread(process.wait)
        status, figures, _ = await run(tmp_path)
    assert status == 0
    assert figures["questions"] == 4
    assert 0 < figures["asked_now"] < figures["calls"]
    kept = len(set(model.bodies))
    assert figures["calls"] == kept
    assert len(model.bodies) - kept <= 3


@pytest.mark.asyncio
async def test_a_small_model_sits_the_whole_exam(
    tmp_path: Path, start_llama: Callable[..., AbstractAsyncContextManager[LlamaServer]]
) -> None:
    write_talk(tmp_path)
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
