"""`foldgate jobs run`: background work in this process, beside a running server or without one."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import click
from sqlalchemy import Connection

from gateway.app import build_context, working
from gateway.cli.options import counted, print_json, settings_of
from gateway.clock import SystemClock
from gateway.errors import ConfigurationError
from gateway.flows.context import Context
from gateway.flows.upkeep import Upkeep
from gateway.jobs import hand, queue
from gateway.settings import Settings
from gateway.store.job_rows import find_job

LOOK_SECONDS = 2.0
"""How often it looks again for what waits for other programs."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a run did. ran: pieces of work that ended here, well or not; written: texts stored;
    parked: given up; left: what still waits or runs."""

    ran: int
    written: int
    parked: int
    left: int


def run_here(
    ids: Collection[str],
    until_idle: bool,
    policies: Path | None,
    database_url: str | None,
    as_json: bool,
) -> None:
    """What `foldgate jobs run` does. Exits with 1 where work was given up."""
    settings = settings_of(policies=policies, database_url=database_url)
    done = asyncio.run(_run(settings, ids, until_idle))
    if as_json:
        print_json({name: getattr(done, name) for name in Done.__slots__})
    else:
        click.echo(
            f"{counted(done.ran, 'job')} ran: {counted(done.written, 'text')} written, "
            f"{done.parked} given up; {counted(done.left, 'job')} left"
        )
    if done.parked:
        raise SystemExit(1)


async def _run(settings: Settings, ids: Collection[str], until_idle: bool) -> Done:
    context = build_context(settings, SystemClock())
    if not context.store.path.exists():
        context.store.close()
        raise ConfigurationError(
            f"there is no database at {context.store.path}; "
            "name it with --database-url or FOLDGATE_DATABASE_URL"
        )
    async with working(context):
        if ids:
            await context.write_timed(_make_due, ids)
        upkeep = Upkeep(context, only=set(ids) or None)
        with _Stopping(upkeep, settings.drain_seconds) as stopping:
            return await run_jobs(context, upkeep, set(ids) or None, until_idle, stopping.told)


def _make_due(connection: Connection, ids: Collection[str], *, now_ms: int) -> None:
    """All of them or none. Raises NotFound and Conflict."""
    for id in ids:
        find_job(connection, None, id)
        hand.run(connection, id, now_ms)


async def run_jobs(
    context: Context,
    upkeep: Upkeep,
    only: Collection[str] | None,
    until_idle: bool,
    told: asyncio.Event,
) -> Done:
    """Do what is due; until_idle: until nothing waits or runs anywhere. Ends when told to."""

    def look(connection: Connection) -> tuple[int, int | None]:
        return queue.count_open(connection, context.time_of(connection), only)

    ran = 0
    while True:
        ran += await upkeep.run_due()
        left, wait_ms = await context.store.read(look)
        if told.is_set() or not until_idle or wait_ms is None:
            break
        seconds = min(LOOK_SECONDS, max(0.05, wait_ms / 1000))
        sleeping = asyncio.create_task(context.clock.sleep(seconds))
        telling = asyncio.create_task(told.wait())
        await asyncio.wait([sleeping, telling], return_when=asyncio.FIRST_COMPLETED)
        sleeping.cancel()
        telling.cancel()
    counts = upkeep.counts
    return Done(ran, counts.chapters + counts.majors, counts.parked, left)


class _Stopping:
    """Signals while work runs: the first lets it end in `grace` seconds, the second at once."""

    def __init__(self, upkeep: Upkeep, grace: float) -> None:
        self.told = asyncio.Event()
        self._upkeep = upkeep
        self._grace = grace
        self._drains: list[asyncio.Task[None]] = []

    def __enter__(self) -> _Stopping:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)

    def _stop(self) -> None:
        grace = 0.0 if self.told.is_set() else self._grace
        self.told.set()
        self._drains.append(asyncio.create_task(self._upkeep.drain(grace)))
