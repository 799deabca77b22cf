"""`foldgate vacuum`: the database written anew, without copies of what was deleted."""

from __future__ import annotations

import click

from gateway.cli.options import database_option, json_option, opened_store, print_json


@click.command("vacuum")
@database_option
@json_option
def vacuum_command(database_url: str | None, as_json: bool) -> None:
    """Write the database anew: smaller, and without traces of deleted words.

    SQLite overwrites what is deleted, but where it moves rows between pages a copy of one may stay
    in the unused part of a page. A server that runs on the database waits meanwhile: about 25
    seconds for a gigabyte, and as much free space is needed.
    """
    with opened_store(database_url) as store:
        before = store.database.size()
        is_empty = store.vacuuming()
        after = store.database.size()
    told = {"bytes_before": before, "bytes_after": after, "wiped": is_empty}
    if as_json:
        print_json(told)
        return
    click.echo(f"{before:,} bytes before, {after:,} after")
    if not is_empty:
        click.echo(
            "another program reads the database: old pages leave its WAL file when it ends",
            err=True,
        )
