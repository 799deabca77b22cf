"""`foldgate jobs`: the background work as it stands, and what a person may do with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection

from gateway.cli.arguments import Called, Text
from gateway.cli.lines import speakable
from gateway.cli.options import (
    counted,
    database_option,
    json_option,
    opened_store,
    policies_option,
    print_json,
)
from gateway.cli.selection import user_option
from gateway.clock import SystemClock
from gateway.jobs import hand
from gateway.store.conversations import list_jobs, owners_named
from gateway.store.job_rows import describe_job, find_job

MOST = 10_000


@click.group("jobs")
def jobs_group() -> None:
    """Look into the background work, cancel it, try it again, do it here."""


_owner = click.option(
    "--owner", type=Text(), help="Only this owner's work; everybody's without it."
)
_ids = click.argument("ids", type=Called("job"), nargs=-1, required=True)


@jobs_group.command("list")
@_owner
@user_option
@click.option("--all", "with_done", is_flag=True, help="What is done as well.")
@click.option("--limit", type=click.IntRange(1, MOST), default=1_000, show_default=True)
@database_option
@json_option
def list_command(
    owner: str | None,
    user: str,
    with_done: bool,
    limit: int,
    database_url: str | None,
    as_json: bool,
) -> None:
    """List what waits, runs or was given up.

    What is due first stands at the top.
    """

    def read(connection: Connection) -> list[dict[str, object]]:
        pks = _scope(connection, owner, user)
        now_ms = SystemClock().now_ms()
        return list_jobs(connection, pks, limit=limit, now_ms=now_ms, with_done=with_done)

    with opened_store(database_url) as store:
        jobs = store.reading(read)
    if as_json:
        print_json({"jobs": jobs})
        return
    for job in jobs:
        error = f"  {speakable(str(job['error']))}" if job["error"] else ""
        waits = f"  waits for {job['waits_for']}" if job["waits_for"] else ""
        click.echo(
            f"{job['run_at']}  {job['state']:<7} {job['kind']:<8} attempts {job['attempts']}  "
            f"{job['conversation']}  {job['id']}{waits}{error}"
        )
    click.echo(counted(len(jobs), "job"), err=True)


@jobs_group.command("show")
@click.argument("id", type=Called("job"))
@_owner
@user_option
@database_option
@json_option
def show_command(
    id: str, owner: str | None, user: str, database_url: str | None, as_json: bool
) -> None:
    """Show one piece of work with what was refused and written for it."""

    def read(connection: Connection) -> dict[str, Any]:
        row = find_job(connection, _scope(connection, owner, user), id)
        return describe_job(connection, row, SystemClock().now_ms())

    with opened_store(database_url) as store:
        job = store.reading(read)
    if as_json:
        print_json(job)
        return
    history = job.pop("history")
    for name, value in job.items():
        if isinstance(value, dict):
            value = "  ".join(f"{part} {told}" for part, told in value.items())
        if value is not None:
            click.echo(f"{name:<14}{value}")
    for one in history:
        why = ", ".join(one.get("reasons") or [one.get("origin", "")])
        click.echo(f"{one['at']}  {one['what']}  {one['backend'] or '-'}  {why}")


@jobs_group.command("cancel")
@_ids
@_owner
@user_option
@database_option
@json_option
def cancel_command(
    ids: tuple[str, ...], owner: str | None, user: str, database_url: str | None, as_json: bool
) -> None:
    """Give work up. No later turn asks for it again; `foldgate jobs retry` does."""
    _change(hand.cancel, ids, owner, user, database_url, as_json)


@jobs_group.command("retry")
@_ids
@_owner
@user_option
@database_option
@json_option
def retry_command(
    ids: tuple[str, ...], owner: str | None, user: str, database_url: str | None, as_json: bool
) -> None:
    """Make work due now: what was given up begins anew. A running server takes it up within
    seconds, once its backend is free."""
    _change(hand.retry, ids, owner, user, database_url, as_json)


@jobs_group.command("run")
@click.argument("ids", type=Called("job"), nargs=-1)
@click.option(
    "--until-idle",
    is_flag=True,
    help="Go on until every piece of work is done or given up; what waits is waited for.",
)
@policies_option
@database_option
@json_option
def run_command(
    ids: tuple[str, ...],
    until_idle: bool,
    policies: Path | None,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Do the work that is due, or the work of these IDS now.

    Safe beside a running server: whoever leases a piece of work has it alone. Ctrl-C or SIGTERM
    lets what runs end, a second one gives it back at once. Exits with 1 where work was given up.
    """
    # Not before: the whole program stands behind it.
    from gateway.cli.jobs_run import run_here

    run_here(ids, until_idle, policies, database_url, as_json)


def _change(
    change: Callable[[Connection, str, int], None],
    ids: tuple[str, ...],
    owner: str | None,
    user: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """All of them or none."""

    def write(connection: Connection) -> list[dict[str, Any]]:
        pks = _scope(connection, owner, user)
        now_ms = SystemClock().now_ms()
        for id in ids:
            find_job(connection, pks, id)
            change(connection, id, now_ms)
        return [describe_job(connection, find_job(connection, pks, id), now_ms) for id in ids]

    with opened_store(database_url) as store:
        changed = store.writing(write)
    if as_json:
        print_json({"jobs": changed})
        return
    for job in changed:
        click.echo(f"{job['state']:<7} {job['id']}")


def _scope(connection: Connection, owner: str | None, user: str) -> list[int] | None:
    return None if owner is None else owners_named(connection, owner, user)
