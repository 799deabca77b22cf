"""Kill the gateway again and again under people who talk, and count what was lost.

One process on SQLite, before an upstream that fails one request in ten. People offer 30 % of what
was measured to be its capacity, through OpenAI's client, and ask again as people do. The last line
is one JSON object; the program ends with 1 where a bound of bench/soak_counts.py is not kept.
Progress goes to standard error.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic
from typing import Any

import httpx
import openai
from sqlalchemy import create_engine

from bench.servers import Killable, running
from bench.soak_counts import count, find_missed
from bench.soak_people import Ledger, Person

KILLS = 100
PEOPLE = 8
SHARE = 0.30
"""Of the measured capacity that is offered."""
MEASURE_SECONDS = 15.0
UP_SECONDS = (0.2, 10.0)
"""A kill comes this long after the gateway was ready."""
SETTLE_SECONDS = 300.0
"""Work that is neither done nor given up so long after the last kill is stuck."""

POLICIES = """\
version: 1
backends:
  local: {{kind: llama_cpp, url: "http://127.0.0.1:{port}"}}
  scribe: {{kind: scripted, latency: 200ms}}
  understudy: {{kind: scripted, latency: 100ms, refusals: 0, truncations: 0, seed: 8}}
policies:
  small:
    view: {{start: 2000, ceiling: 5000, headroom: 800, keep: 400}}
    chapters: {{split: 1500, length: 150, stack: 600}}
    gist: {{length: 200}}
    summaries: {{backends: [scribe, understudy], delay: 200ms, rounds: 1}}
    recall: {{budget: 0}}
models:
  foldgate: {{tiers: [{{backend: local, policy: small}}]}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--kills", type=int, default=KILLS, help="how many [%(default)s]")
    parser.add_argument("--seed", type=int, default=20261201, help="of chance [%(default)s]")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foldgate-soak-") as folder:
        figures = asyncio.run(soak(Path(folder), options.kills, options.seed))
    missed = find_missed(figures)
    for sentence in missed:
        _say(sentence)
    sys.stdout.write(json.dumps(figures) + "\n")
    raise SystemExit(1 if missed else 0)


async def soak(folder: Path, kills: int, seed: int) -> dict[str, Any]:
    """The figures of a soak in an empty folder."""
    draw = random.Random(seed)
    async with AsyncExitStack() as stack:
        upstream = stack.enter_context(running("bench.soak_upstream", str(seed)))
        gateway = Killable(folder, POLICIES.format(port=upstream))
        stack.callback(gateway.kill)
        await asyncio.to_thread(gateway.start)
        ledger = Ledger()
        client = await stack.enter_async_context(
            openai.AsyncOpenAI(
                base_url=f"{gateway.url}/v1", api_key="any", max_retries=2, timeout=60
            )
        )
        api = await stack.enter_async_context(httpx.AsyncClient(base_url=gateway.url, timeout=60))
        people = [Person(number, client, api, ledger) for number in range(PEOPLE)]
        rate = await _measure(people)
        _say(f"capacity {rate:.1f} turns a second; offered: {SHARE * rate:.1f}")
        # What was said while measuring stays acknowledged; the ratio is of what comes now.
        ledger.offered = ledger.answered = 0
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            every = PEOPLE / (SHARE * rate)
            for person in people:
                person.start_chat()
                tasks.create_task(person.talk(every, over))
            for number in range(1, kills + 1):
                await asyncio.sleep(draw.uniform(*UP_SECONDS))
                await asyncio.to_thread(gateway.kill)
                await asyncio.to_thread(gateway.start)
                if number % 10 == 0:
                    _say(f"{number} kills, {ledger.answered} of {ledger.offered} turns answered")
            over.set()
        await _settle(api)
        code = await asyncio.to_thread(gateway.stop)
    for problem in (*ledger.problems, *([] if code == 0 else [f"it ended with {code}"])):
        _say(problem)
    engine = create_engine(f"sqlite:///{gateway.database}")
    with engine.connect() as connection:
        figures = count(connection, ledger, kills)
    engine.dispose()
    return figures


async def _measure(people: Sequence[Person]) -> float:
    """Turns a second with everybody talking without a pause and nobody killing."""
    limit = monotonic() + MEASURE_SECONDS

    async def hurry(person: Person) -> None:
        while monotonic() < limit:
            await person.take_turn()

    began, ledger = monotonic(), people[0].ledger
    await asyncio.gather(*map(hurry, people))
    return ledger.answered / (monotonic() - began)


async def _settle(api: httpx.AsyncClient) -> None:
    """Until no work waits any more, SETTLE_SECONDS at most; what waits for its next round is run
    now, as a person may have it."""
    limit = monotonic() + SETTLE_SECONDS
    while monotonic() < limit:
        jobs = (await api.get("/api/jobs", params={"limit": 1_000})).json()["jobs"]
        waiting = [job for job in jobs if job["state"] in ("queued", "leased")]
        if not waiting:
            return
        for job in waiting:
            if job["waits_for"] == "its next round":
                await api.post(f"/api/jobs/{job['id']}/run")
        await asyncio.sleep(1.0)


def _say(what: str) -> None:
    sys.stderr.write(f"{what}\n")


if __name__ == "__main__":
    main()
