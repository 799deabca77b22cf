"""`foldgate jobs`: the background work as it stands."""

from __future__ import annotations

import click
from sqlalchemy import Connection

from gateway.cli.options import database_option, json_option, opened_store, print_json
from gateway.store.conversations import list_jobs, owners_named

MOST = 10_000


@click.group("jobs")
def jobs_group() -> None:
    """Look into the background work."""


@jobs_group.command("list")
@click.option("--owner", help="Only this owner's work; everybody's without it.")
@click.option("--user", default="", help="A user that this owner's client forwards.")
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
        pks = None if owner is None else owners_named(connection, owner, user)
        return list_jobs(connection, pks, limit=limit, with_done=with_done)

    with opened_store(database_url) as store:
        jobs = store.reading(read)
    if as_json:
        print_json({"jobs": jobs})
        return
    for job in jobs:
        error = f"  {job['error']}" if job["error"] else ""
        click.echo(
            f"{job['run_at']}  {job['state']:<7} {job['kind']:<8} attempts {job['attempts']}  "
            f"{job['conversation']}  {job['id']}{error}"
        )
    click.echo(f"{len(jobs)} jobs", err=True)
