"""When background work runs, what it may still store once it is late, and how it ends."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, func, select

from gateway.backends.base import Call
from gateway.backends.faults import FaultKind
from gateway.flows.context import Context
from gateway.flows.upkeep import (
    BEAT_SECONDS,
    LEASE_MS,
    PATIENCE_SECONDS,
    QUIET_SECONDS,
    Upkeep,
)
from gateway.jobs.rows import jobs
from gateway.replay.stage import VirtualClock, VirtualLoop
from gateway.store import chapter_rows, quarantine
from gateway.store.attempts import abandon_unsettled, begin_attempt
from tests.gateway.flows.stage import (
    CHAPTER,
    HandClock,
    Listed,
    add_story,
    build,
    fault,
    framed,
    job,
    setup_chapter,
    versions,
)
from tests.gateway.flows.upkeep_stage import (
    REFUSAL,
    Build,
    Gate,
    clock_of,
    due,
    inline,
    keep,
)
from tests.gateway.seeds import NOW


async def settle() -> None:
    """Let everything run that waits for no clock and no backend."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_a_late_result_does_not_replace_a_later_attempts(stage: Build) -> None:
    slow, quick = Listed("glm", framed("Too late. " + CHAPTER)), Listed("glm", framed(CHAPTER))
    ctx = stage(slow)
    gate = Gate(slow)
    due(ctx, policy="alone")
    first = asyncio.create_task(keep(ctx).run_due())
    await gate.entered.wait()
    # Its process stops beating for longer than a lease, and another one takes the job.
    clock_of(ctx).ms += LEASE_MS
    other = Context(ctx.settings, ctx.clock, ctx.store, ctx.policies, {"glm": quick}, boot="boot_2")
    assert await keep(other).run_due() == 1

    gate.opened.set()
    await first

    assert ctx.store.reading(versions) == [("model", CHAPTER, "glm")]
    assert ctx.store.reading(job).state == "done"


def test_a_summary_that_takes_too_long_is_cancelled_and_its_lease_beaten_meanwhile(
    stage: Build,
) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    due(ctx, policy="alone")
    leases: list[int] = []

    async def never(call: Call) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS + 1)
            leases.append((ctx.store.reading(job).lease_until_ms or 0) - ctx.clock.now_ms())

    glm.hold = never
    loop = VirtualLoop()
    ctx.clock = VirtualClock(loop)
    upkeep = keep(ctx)
    try:
        loop.run_until_complete(upkeep.run_due())
    finally:
        loop.close()

    assert loop.time() == 600.0  # summaries.timeout
    assert glm.cancelled == 1
    assert len(leases) == 28
    assert min(leases) >= LEASE_MS - BEAT_SECONDS * 1_000
    assert ctx.store.reading(job).error_kind == "timeout"
    assert upkeep.counts.faults == {"timeout": 1}


@pytest.mark.parametrize("rejected", [False, True])
async def test_a_summary_in_flight_cannot_bring_a_deleted_conversation_back(
    stage: Build, rejected: bool
) -> None:
    glm = Listed("glm", REFUSAL if rejected else framed(CHAPTER))
    ctx = stage(glm)
    gate = Gate(glm)
    due(ctx, policy="alone")
    running = asyncio.create_task(keep(ctx).run_due())
    await gate.entered.wait()

    ctx.store.writing(lambda c: c.exec_driver_sql("DELETE FROM conversations"))
    gate.opened.set()
    await running

    for table in (chapter_rows.chapters, chapter_rows.versions, quarantine.quarantine, jobs):
        statement = select(func.count()).select_from(table)
        assert ctx.store.reading(lambda c, s=statement: c.execute(s).scalar()) == 0


async def test_the_call_for_a_deleted_conversation_is_cancelled(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    gate = Gate(glm)
    due(ctx, policy="alone")
    upkeep = keep(ctx)
    running = asyncio.create_task(upkeep.run_due())
    await gate.entered.wait()
    conversation_pk = ctx.store.reading(job).conversation_pk
    ctx.store.writing(lambda c: c.exec_driver_sql("DELETE FROM conversations"))

    upkeep.forget(conversation_pk)
    await running

    assert glm.cancelled == 1


async def test_a_lost_lease_stops_the_work(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    gate = Gate(glm)
    due(ctx, policy="alone")
    running = asyncio.create_task(keep(ctx).run_due())
    await gate.entered.wait()

    clock_of(ctx).advance(BEAT_SECONDS)
    await settle()
    assert ctx.store.reading(job).lease_until_ms == ctx.clock.now_ms() + LEASE_MS
    ctx.store.writing(lambda c: c.exec_driver_sql("DELETE FROM conversations"))
    clock_of(ctx).advance(BEAT_SECONDS)
    await running

    assert glm.cancelled == 1


async def test_shutdown_lets_work_end_within_its_grace(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    gate = Gate(glm)
    due(ctx, policy="alone")
    upkeep = keep(ctx)
    running = asyncio.create_task(upkeep.run_due())
    await gate.entered.wait()

    draining = asyncio.create_task(upkeep.drain(60.0))
    await settle()
    gate.opened.set()
    await draining
    await running

    assert ctx.store.reading(job).state == "done"


async def test_nothing_begins_beside_a_running_turn(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    upkeep = keep(ctx)
    due(ctx)
    ctx.turn_began("glm")

    assert await upkeep.run_due() == 0
    assert glm.calls == []
    # What waits for a quiet moment is no reason to ring: the end of the turn is.
    assert await upkeep.next_due() is None
    rings: list[int] = []
    ctx.ring = rings.append
    ctx.turn_ended("glm")
    upkeep.notice_quiet()
    upkeep.notice_quiet()
    assert rings == [ctx.clock.now_ms()]
    assert await upkeep.run_due() == 1


async def test_turns_without_a_pause_hold_a_chapter_back_five_minutes_and_not_for_ever(
    stage: Build,
) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    upkeep = keep(ctx)
    due(ctx)
    ctx.turn_began("glm")

    for _ in range(int(PATIENCE_SECONDS) // 30):
        assert await upkeep.run_due() == 0
        clock_of(ctx).advance(30)
    assert await upkeep.run_due() == 1

    assert ctx.store.reading(versions) == [("model", CHAPTER, "glm")]


async def test_a_turn_long_ago_is_no_reason_to_go_beside_this_one(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    upkeep = keep(ctx)
    due(ctx)
    ctx.turn_began("glm")
    await upkeep.run_due()

    clock_of(ctx).advance(PATIENCE_SECONDS + 1)  # nobody looked meanwhile

    assert await upkeep.run_due() == 0


async def test_the_next_summarizers_quiet_moment_is_waited_for(stage: Build) -> None:
    glm = Listed("glm", REFUSAL)
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    due(ctx)
    ctx.turn_began("deepseek")
    running = asyncio.create_task(keep(ctx).run_due())
    await settle()
    assert (len(glm.calls), len(deepseek.calls)) == (2, 0)

    ctx.turn_ended("deepseek")
    clock_of(ctx).advance(1)
    await running

    assert ctx.store.reading(versions) == [("model", CHAPTER, "deepseek")]


async def test_one_job_a_backend_at_a_time_and_backends_side_by_side(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    gate, other = Gate(glm), Gate(deepseek)
    for policy in ("alone", "alone", "own", "own"):
        due(ctx, policy=policy, delay_ms=0)
    upkeep = keep(ctx)
    running = asyncio.create_task(upkeep.run_due())
    await gate.entered.wait()
    await other.entered.wait()
    await settle()
    assert (len(glm.calls), len(deepseek.calls)) == (1, 1)

    other.opened.set()
    await settle()
    assert (len(glm.calls), len(deepseek.calls)) == (1, 2)
    gate.opened.set()
    assert await running == 4
    assert len(glm.calls) == 2


async def test_a_ring_while_it_runs_makes_it_look_again(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    gate = Gate(glm)
    due(ctx, policy="alone")
    upkeep = keep(ctx)
    running = asyncio.create_task(upkeep.run_due())
    await gate.entered.wait()
    due(ctx, policy="own", delay_ms=0)

    assert await upkeep.run_due() == 0
    await settle()
    assert len(deepseek.calls) == 1
    gate.opened.set()
    assert await running == 2


async def test_turns_that_another_program_serves_hold_work_back_as_well(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    upkeep = keep(ctx)
    due(ctx, policy="alone")
    turn = ctx.store.writing(add_turn, boot="boot_9", backend="glm")

    assert await upkeep.run_due() == 0
    assert ctx.store.reading(job).state == "queued"
    ctx.store.writing(abandon_unsettled, [turn], NOW)
    assert await upkeep.run_due() == 1


async def test_the_next_summarizer_is_not_asked_beside_another_programs_turn(stage: Build) -> None:
    glm = Listed("glm", fault(FaultKind.UNAVAILABLE))
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    due(ctx)
    turn = ctx.store.writing(add_turn, boot="boot_9", backend="deepseek")
    running = asyncio.create_task(keep(ctx).run_due())
    await settle()
    assert (len(glm.calls), deepseek.calls) == (1, [])

    ctx.store.writing(abandon_unsettled, [turn], NOW)
    clock_of(ctx).advance(QUIET_SECONDS)
    await running
    assert len(deepseek.calls) == 1


def add_turn(connection: Connection, *, boot: str, backend: str) -> int:
    conversation, nodes = add_story(connection)
    return begin_attempt(
        connection,
        conversation_pk=conversation.pk,
        asked_pk=nodes[-1].pk,
        backend=backend,
        policy="fold",
        model="foldgate",
        boot=boot,
        view_kind="verbatim",
        state="running",
        started_ms=NOW,
    )


async def test_leases_go_by_the_databases_clock_and_no_programs_own(stage: Build) -> None:
    """Two machines, one 90 s ahead of the other: neither takes the other's work away."""
    here, there = Listed("glm", framed(CHAPTER)), Listed("glm", framed("Too late. " + CHAPTER))
    ctx = stage(here)
    ahead = HandClock()
    ahead.advance(30 + 90)
    other = Context(ctx.settings, ahead, ctx.store, ctx.policies, {"glm": there}, boot="boot_2")
    ctx.time = other.time = lambda connection: clock_of(ctx).ms
    gate = Gate(here)
    due(ctx, policy="alone")
    first = asyncio.create_task(keep(ctx).run_due())
    await gate.entered.wait()

    assert ctx.store.reading(job).lease_until_ms == ctx.clock.now_ms() + LEASE_MS
    assert await keep(other).run_due() == 0
    gate.opened.set()
    await first
    assert ctx.store.reading(versions) == [("model", CHAPTER, "glm")]


async def test_what_comes_next_is_told_in_this_programs_own_time(stage: Build) -> None:
    ctx = stage(Listed("glm", framed(CHAPTER)))
    ctx.store.writing(setup_chapter)
    ctx.time = lambda connection: clock_of(ctx).ms - 10_000

    # Due at NOW + 30 s by the database, which is 10 s behind.
    assert await keep(ctx).next_due() == NOW + 40_000


async def test_a_second_drain_gives_back_what_the_first_one_waits_for(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    gate = Gate(glm)
    due(ctx, policy="alone")
    upkeep = keep(ctx)
    running = asyncio.create_task(upkeep.run_due())
    await gate.entered.wait()

    patient = asyncio.create_task(upkeep.drain(600.0))
    await settle()
    assert ctx.store.reading(job).state == "leased"
    await upkeep.drain(0)
    await patient
    await running

    left = ctx.store.reading(job)
    assert (left.state, left.attempts, left.lease) == ("queued", 0, None)
    assert left.run_at_ms <= ctx.clock.now_ms()


async def test_only_the_work_that_is_asked_for_is_done(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    first = due(ctx, policy="alone", delay_ms=0)
    second = due(ctx, policy="alone", delay_ms=0)

    assert await Upkeep(ctx, offload=inline, only={f"chapter:{second}"}).run_due() == 1
    assert ctx.store.reading(job, f"chapter:{first}").state == "queued"
    assert ctx.store.reading(job, f"chapter:{second}").state == "done"


async def test_two_programs_on_one_file_share_the_work_and_do_none_twice(tmp_path: Path) -> None:
    """Each with a store, an upkeep and a backend of its own, as two processes have."""
    calls: list[int] = []
    at_once = 0

    async def work(_call: Call) -> None:
        nonlocal at_once
        at_once += 1
        calls.append(at_once)
        await asyncio.sleep(0.01)
        at_once -= 1

    programs = []
    for number in range(2):
        glm = Listed("glm", framed(CHAPTER))
        glm.hold = work
        ctx = replace(build(tmp_path, glm, threads=True), boot=f"boot_{number}")
        clock_of(ctx).advance(30)
        programs.append((ctx, keep(ctx)))
    store = programs[0][0].store
    for _ in range(6):
        store.writing(setup_chapter, policy="alone")
    while "queued" in store.reading(job_states):
        await asyncio.gather(*(upkeep.run_due() for _, upkeep in programs))

    assert store.reading(job_states) == ["done"] * 6
    assert len(store.reading(versions)) == 6
    assert max(calls) == 1 and len(calls) == 6, "one call a backend at a time, none twice"
    for ctx, _ in programs:
        ctx.store.close()


def job_states(connection: Connection) -> list[str]:
    return list(connection.execute(select(jobs.c.state).order_by(jobs.c.pk)).scalars())
