"""kill -9 of the gateway at random moments of streamed conversations: nothing is lost.

What `synchronous` promises: the store runs in WAL with synchronous=NORMAL. A commit is then in the
operating system's hands, so that it survives the death of the process, which is what these kills
are. It need not survive the loss of power of the machine: for that FOLDGATE_SYNCHRONOUS=FULL syncs
each commit. No test here cuts the power.

Acknowledged is a question once any byte of its answer's head came to the client, and a reply once
the chunk with its finish_reason came.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from gateway.store.transcript import chain_digest, content_digest, message_digest
from gateway.wire.json_text import loads
from policies.messages import canonical_message
from tests.e2e.running_gateway import RunningGateway
from tests.e2e.small_model import SmallModel
from tests.e2e.talkers import Acknowledged, Kind, Talker, is_turn, question_of

KILLS = int(os.environ.get("FOLDGATE_E2E_KILLS", "50"))
SEED = int(os.environ.get("FOLDGATE_E2E_SEED", "20261130"))
# A killed run's jobs are leased for a minute; a summary that was judged out waits half a one.
PATIENCE_SECONDS = 420

POLICIES = """
version: 1
backends:
  local: {{kind: llama_cpp, url: "{url}"}}
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

...
"""

KINDS: tuple[Kind, ...] = ("whole", "whole, no id", "newest", "whole, no id")


@dataclass(frozen=True, slots=True)
class Moment:
    """When a kill came, and what it met. delay: seconds after the first chunk of this run."""

    delay: float
    talkers: tuple[str, ...]
    running_attempts: int
    leased_jobs: int


async def test_fifty_kills_lose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with SmallModel(pause=0.01) as model:
        gateway = RunningGateway(tmp_path, POLICIES.format(url=model.url))
        with gateway:
            talkers, moments = await _talk_and_kill(gateway)
            await _wait_for_jobs(gateway)
            paths = await asyncio.to_thread(_read_paths, gateway, talkers)
            code = await asyncio.to_thread(gateway.stop)
        bodies = [body for body in model.bodies if is_turn(body)]
    found = _examine(gateway, talkers)
    changed = _changed_prompts(bodies)
    summary = {
        "seed": SEED,
        "kills": len(moments),
        **found.figures,
        "turns": sum(talker.turns for talker in talkers),
        "tries": sum(talker.tries for talker in talkers),
        "killed_while": dict(Counter(where for m in moments for where in m.talkers)),
        "attempts_cut_off": sum(m.running_attempts for m in moments),
        "jobs_cut_off": sum(m.leased_jobs for m in moments),
        "prompts_asked_again": sum(n - 1 for n in Counter(map(question_of, bodies)).values()),
        "prompts_changed": len(changed),
    }
    with capsys.disabled():
        print(f"\n{json.dumps(summary)}")  # noqa: T201  # the figures of BARS.md

    assert code == 0, gateway.last_words()
    assert len(moments) == KILLS
    assert found.lost == []
    assert found.problems == []
    assert changed == []
    assert [problem for talker in talkers for problem in talker.problems] == []
    assert summary["jobs_stuck"] == 0 and summary["jobs_done"] > 0
    # The kills met what they were meant to meet.
    assert summary["attempts_cut_off"] > 0 and summary["jobs_cut_off"] > 0
    for told, stored in paths:
        assert stored == told


# --- the run -------------------------------------------------------------------------------------


async def _talk_and_kill(gateway: RunningGateway) -> tuple[list[Talker], list[Moment]]:
    """Four clients talk without a pause while the gateway is killed and started again."""
    draw = random.Random(SEED)
    async with openai.AsyncOpenAI(
        base_url=f"{gateway.url}/v1", api_key="any", max_retries=2, timeout=120
    ) as client:
        talkers = [Talker(f"talker{n}", kind, client) for n, kind in enumerate(KINDS)]
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for talker in talkers:
                tasks.create_task(talker.talk(over))
            moments = [await _kill_once(gateway, talkers, draw) for _ in range(KILLS)]
            over.set()
    return talkers, moments


async def _kill_once(
    gateway: RunningGateway, talkers: Sequence[Talker], draw: random.Random
) -> Moment:
    delay = draw.uniform(0, 1.5)
    await _first_chunk(talkers)
    await asyncio.sleep(delay)
    where = tuple(talker.where for talker in talkers)
    await asyncio.to_thread(gateway.kill)
    running = gateway.one("SELECT count(*) FROM attempts WHERE state = 'running'")
    leased = gateway.one(
        "SELECT count(*) FROM jobs j JOIN boots b ON j.lease LIKE b.id || '.%'"
        " WHERE j.state = 'leased'"
    )
    await asyncio.to_thread(gateway.start)
    return Moment(delay, where, running, leased)


async def _first_chunk(talkers: Sequence[Talker]) -> None:
    for talker in talkers:
        talker.heard.clear()
    waits = [asyncio.ensure_future(talker.heard.wait()) for talker in talkers]
    done, rest = await asyncio.wait(
        waits, timeout=PATIENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED
    )
    for wait in rest:
        wait.cancel()
    assert done, "no stream came up again"


async def _wait_for_jobs(gateway: RunningGateway) -> None:
    """Until nothing waits any more; what then does is counted as stuck."""
    open_jobs = "SELECT count(*) FROM jobs WHERE state NOT IN ('done', 'parked')"
    for _ in range(PATIENCE_SECONDS):
        if not gateway.one(open_jobs):
            return
        await asyncio.sleep(1)


def _read_paths(
    gateway: RunningGateway, talkers: Sequence[Talker]
) -> list[tuple[list[str], list[str]]]:
    """(what the client knows, what the surface shows) of each conversation."""
    return [
        (path, _read_branch(gateway, conversation))
        for talker in talkers
        for conversation, path in talker.finished
    ]


def _read_branch(gateway: RunningGateway, conversation: str) -> list[str]:
    address = f"{gateway.url}/api/conversations/{conversation}/messages"
    told = httpx.get(address, params={"limit": 1_000}, timeout=60).json()
    assert told["next"] is None
    return [message["content"] for message in told["messages"]]


# --- what is stored ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Found:
    figures: dict[str, Any]
    lost: list[str]
    problems: list[str]


def _examine(gateway: RunningGateway, talkers: Sequence[Talker]) -> Found:
    acknowledged = [told for talker in talkers for told in talker.acknowledged]
    lost = [*_lost(gateway, acknowledged)]
    duplicates = [*_duplicate_chapters(gateway)]
    states = dict(gateway.rows("SELECT state, count(*) FROM jobs GROUP BY state"))
    figures = {
        "acknowledged": len(acknowledged),
        "lost": len(lost),
        "duplicate_chapters": len(duplicates),
        "chapters": gateway.one("SELECT count(*) FROM chapters"),
        "stand_ins": gateway.one("SELECT count(*) FROM chapter_versions WHERE origin = 'stand-in'"),
        "gists": gateway.one("SELECT count(*) FROM gists"),
        "folds": gateway.one("SELECT count(*) FROM folds"),
        "jobs_done": states.get("done", 0),
        "jobs_parked": states.get("parked", 0),
        "jobs_stuck": sum(n for state, n in states.items() if state not in ("done", "parked")),
    }
    problems = [*duplicates, *_broken_rows(gateway), *_broken_digests(gateway)]
    return Found(figures, lost, problems)


def _lost(gateway: RunningGateway, acknowledged: Sequence[Acknowledged]) -> Iterator[str]:
    """Whatever does not stand exactly once where it was acknowledged."""
    stored: Counter[tuple[str, str, str | None, str]] = Counter()
    rows = gateway.rows(
        "SELECT c.id, m.role, p.raw, m.raw FROM messages m"
        " JOIN conversations c ON c.pk = m.conversation_pk"
        " LEFT JOIN messages p ON p.pk = m.parent_pk"
    )
    for conversation, role, parent, raw in rows:
        before = None if role == "user" or parent is None else loads(parent)["content"]
        stored[conversation, role, before, loads(raw)["content"]] += 1
    for told in acknowledged:
        if told.reply is None:
            times = stored[told.conversation, "user", None, told.question]
        else:
            times = stored[told.conversation, "assistant", told.question, told.reply]
        if times != 1:
            yield f"{times} times: {told}"


def _duplicate_chapters(gateway: RunningGateway) -> Iterator[str]:
    """Chapters that tell what another one tells, or leave a gap, on one branch; second texts."""
    parents = dict(gateway.rows("SELECT pk, parent_pk FROM messages"))
    by_last = {
        row[1]: row
        for row in gateway.rows(
            "SELECT conversation_pk, last_pk, first_pk, first_depth, last_depth FROM chapters"
        )
    }
    for conversation, head in gateway.rows("SELECT pk, head_pk FROM conversations"):
        path: set[int] = set()
        at = head
        while at is not None:
            path.add(at)
            at = parents[at]
        spans = sorted(
            (first, last)
            for owner, pk, _, first, last in by_last.values()
            if owner == conversation and pk in path
        )
        ends = [0, *(last for _, last in spans)]
        for (first, last), end in zip(spans, ends, strict=False):
            if first != end + 1:
                yield f"conversation {conversation}: {first} to {last} stands behind {end}"
    same = (
        "SELECT count(*) FROM chapters GROUP BY conversation_pk, first_pk, last_pk"
        " HAVING count(*) > 1"
    )
    yield from (f"a span has {times} chapters" for (times,) in gateway.rows(same))
    twice = (
        "SELECT chapter_pk, count(*) FROM chapter_versions WHERE origin = 'model'"
        " GROUP BY chapter_pk HAVING count(*) > 1"
    )
    yield from (f"chapter {pk} was written {times} times" for pk, times in gateway.rows(twice))
    gists = (
        "SELECT last_pk, count(*) FROM gists WHERE origin = 'model'"
        " GROUP BY conversation_pk, policy, last_pk, sources HAVING count(*) > 1"
    )
    yield from (f"the gist to {pk} was written {n} times" for pk, n in gateway.rows(gists))


def _broken_rows(gateway: RunningGateway) -> Iterator[str]:
    yield from (row[0] for row in gateway.rows("PRAGMA integrity_check") if row[0] != "ok")
    yield from (f"foreign key: {row}" for row in gateway.rows("PRAGMA foreign_key_check"))
    running = gateway.rows("SELECT id, boot FROM attempts WHERE state = 'running'")
    yield from (f"attempt {id} of {boot} still runs" for id, boot in running)
    silent = gateway.rows("SELECT key FROM jobs WHERE state = 'parked' AND error IS NULL")
    yield from (f"job {key} is parked without a reason" for (key,) in silent)
    untold = gateway.rows(
        "SELECT c.pk FROM chapters c JOIN jobs j ON j.key = 'chapter:' || c.pk"
        " WHERE j.state = 'done' AND NOT EXISTS"
        " (SELECT 1 FROM chapter_versions v WHERE v.chapter_pk = c.pk)"
    )
    yield from (f"chapter {pk} is done and has no text" for (pk,) in untold)


def _broken_digests(gateway: RunningGateway) -> Iterator[str]:
    """Every message's digests, made anew from its parent's and its own raw text."""
    roots = dict(gateway.rows("SELECT pk, id FROM conversations"))
    rows = gateway.rows(
        "SELECT pk, id, conversation_pk, parent_pk, depth, chain, content, raw, chars, cum_chars"
        " FROM messages ORDER BY pk"
    )
    known = {row[0]: row for row in rows}
    for pk, id, conversation, parent_pk, depth, chain, content, raw, chars, cum in rows:
        canonical = canonical_message(loads(raw))
        parent = known.get(parent_pk)
        above = roots[conversation] if parent is None else parent[1]
        wanted = (
            message_digest(above, canonical),
            1 if parent is None else parent[4] + 1,
            chain_digest("" if parent is None else parent[5], canonical),
            content_digest(canonical),
            chars + (0 if parent is None else parent[9]),
        )
        if (id, depth, chain, content, cum) != wanted:
            yield f"message {pk} is not what its digests say"


def _changed_prompts(bodies: Sequence[bytes]) -> list[str]:
    """Questions that were shown to the model in more than one form (law 3)."""
    forms: dict[str, set[bytes]] = {}
    for body in bodies:
        forms.setdefault(question_of(body), set()).add(body)
    return [question for question, seen in forms.items() if len(seen) > 1]
