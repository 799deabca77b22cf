"""What `owners import` and `conversations import` share: a file read in, and told of."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.lines import one_line
from gateway.cli.options import counted, opened_store, print_json
from gateway.clock import SystemClock
from gateway.flows.imports import Imported, import_lines


def read_file(file: Path, owner: str | None, user: str, database_url: str | None) -> Imported:
    """Store what an export holds. Raises BadRequest for what is none, naming the line."""
    if user and owner is None:
        raise click.UsageError("--user needs --owner beside it.")
    now_ms = SystemClock().now_ms()
    with opened_store(database_url) as store, file.open("rb") as lines:
        return import_lines(store, lines, owner=owner, user=user, now_ms=now_ms)


def tell_imported(done: Imported, as_json: bool) -> None:
    """Ends with 1 where something was refused."""
    if as_json:
        print_json(
            {
                "conversations": done.conversations,
                "refused": done.refused,
                "memories": done.memories,
            }
        )
    else:
        memories = counted(done.memories, "memory", "memories")
        click.echo(f"{counted(len(done.conversations), 'conversation')}, {memories} read", err=True)
        for why in done.refused.values():
            click.echo(one_line(why), err=True)
    if done.refused:
        raise click.exceptions.Exit(1)
