"""A run under its lease, and what it does for runs that are over."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from gateway.flows.context import Context
from gateway.flows.runs import RunLease
from gateway.jobs import leases
from gateway.store.attempts import attempts, begin_attempt
from gateway.store.boots import BEAT_SECONDS, LEASE_MS, Run, boots, keep_boot
from tests.gateway.flows.stage import HandClock, add_chapter_job, add_story, build, job
from tests.gateway.flows.test_upkeep import settle
from tests.gateway.seeds import NOW


@pytest.fixture
def ctx(tmp_path: Path) -> Context:
    return build(tmp_path)


def begin_elsewhere(connection: Connection) -> None:
    """Another machine's run: a reply under way, a summary leased."""
    run = Run("boot_9", 1, "elsewhere")
    keep_boot(connection, run, is_running=lambda pid: False, now_ms=NOW)
    conversation, nodes = add_story(connection)
    add_chapter_job(connection, conversation, nodes, delay_ms=0)
    begin_attempt(
        connection,
        conversation_pk=conversation.pk,
        asked_pk=nodes[-1].pk,
        backend="deepseek",
        policy="fold",
        model="foldgate",
        boot="boot_9",
        view_kind="verbatim",
        state="running",
        started_ms=NOW,
    )
    leases.claim(connection, now_ms=NOW, lease="boot_9.1", lease_ms=10 * LEASE_MS)


def running(ctx: Context) -> list[str]:
    statement = select(attempts.c.boot).where(attempts.c.state == "running")
    return list(ctx.store.reading(lambda c: c.execute(statement).scalars().all()))


def known(ctx: Context) -> dict[str, int]:
    rows = ctx.store.reading(lambda c: c.execute(select(boots)).all())
    return {row.id: row.lease_until_ms for row in rows}


async def test_whoever_beats_reaps_the_runs_that_are_over(ctx: Context) -> None:
    clock, rung = ctx.clock, list[int]()
    assert isinstance(clock, HandClock)
    ctx.ring = rung.append
    ctx.store.writing(begin_elsewhere)
    lease = RunLease(ctx)
    await lease.begin()
    await settle()
    assert (running(ctx), ctx.store.reading(job).state, rung) == (["boot_9"], "leased", [])

    # It beats no more. Its jobs' leases are longer than its own: they go with it all the same.
    for _ in range(3):
        clock.advance(BEAT_SECONDS)
        await settle()
    assert known(ctx) == {"boot_1": clock.ms + LEASE_MS}
    freed = ctx.store.reading(job)
    assert (running(ctx), freed.state, freed.attempts) == ([], "queued", 1)
    assert rung == [clock.ms]
    await lease.end()
    assert known(ctx) == {}


async def test_a_beat_that_the_database_refuses_is_told_and_the_next_one_comes(
    ctx: Context, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = ctx.clock
    assert isinstance(clock, HandClock)
    lease = RunLease(ctx)
    await lease.begin()
    await settle()
    with monkeypatch.context() as patched, caplog.at_level(logging.ERROR):
        patched.setattr(ctx.store, "write", refuse)
        clock.advance(BEAT_SECONDS)
        await settle()
    assert "the lease of this run could not be prolonged" in caplog.text
    clock.advance(BEAT_SECONDS)
    await settle()
    assert known(ctx) == {"boot_1": clock.ms + LEASE_MS}
    await lease.end()


async def refuse(*_: object) -> None:
    raise OSError("the disk is full")
