"""`foldgate owners`: everything that is stored of one, written out, read back, erased."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TextIO

import click
from sqlalchemy import Connection, func, select

from gateway.cli.arguments import Text
from gateway.cli.conversations import backends_elsewhere
from gateway.cli.importing import read_file, tell_imported
from gateway.cli.lines import printable_json, speakable
from gateway.cli.options import (
    OutputFile,
    counted,
    database_option,
    json_option,
    opened_store,
    policies_option,
    print_json,
    tell_progress,
)
from gateway.cli.selection import tell_owners, user_option
from gateway.clock import SystemClock, iso
from gateway.errors import NotFound
from gateway.flows.owners import erase_owner
from gateway.store.conversations import owners_named
from gateway.store.engine import Store
from gateway.store.export import owner_lines
from gateway.store.transcript import conversations, owners

_name = click.argument("name", type=Text())


@click.group("owners")
def owners_group() -> None:
    """List owners; export, import and erase everything of one."""


@owners_group.command("list")
@database_option
@json_option
def list_command(database_url: str | None, as_json: bool) -> None:
    """List every owner and user, with how many conversations they have."""
    with opened_store(database_url) as store:
        found = store.reading(_list)
    if as_json:
        print_json({"owners": found})
        return
    for one in found:
        name = speakable(" ".join(filter(None, (one["name"], one["user"]))))
        click.echo(f"{name}  {counted(one['conversations'], 'conversation')}")


def _list(connection: Connection) -> list[dict[str, Any]]:
    count = func.count(conversations.c.pk)
    rows = connection.execute(
        select(owners.c.name, owners.c.user, owners.c.created_ms, count.label("held"))
        .outerjoin(conversations, conversations.c.owner_pk == owners.c.pk)
        .group_by(owners.c.pk)
        .order_by(owners.c.name, owners.c.user)
    )
    return [
        {
            "name": row.name,
            "user": row.user,
            "conversations": row.held,
            "created_at": iso(row.created_ms),
        }
        for row in rows
    ]


@owners_group.command("export")
@_name
@user_option
@click.option("--out", type=OutputFile(), help="Write to this file; standard output without it.")
@database_option
@json_option
def export_command(
    name: str, user: str, out: Path | None, database_url: str | None, as_json: bool
) -> None:
    """Write everything of one as JSON lines.

    Conversations with all branches and their memory, and the profile; without --user those of all
    users of the owner. Keys and the work that waits are not among it.
    """
    if as_json and out is None:
        raise click.UsageError("--json tells about the file that --out names")
    with opened_store(database_url) as store:
        lines = store.reading(_export, _known(store, name, user), out)
    if as_json:
        print_json({"owner": name, "file": str(out), "lines": lines})
    else:
        click.echo(f"{counted(lines, 'line')} written", err=True)


def _export(connection: Connection, pks: list[int], out: Path | None) -> int:
    if out is None:
        return _write(connection, pks, sys.stdout, is_plain=False)
    with out.open("w", encoding="utf-8", newline="\n") as target:
        return _write(connection, pks, target, is_plain=True)


def _write(connection: Connection, pks: list[int], target: TextIO, *, is_plain: bool) -> int:
    count = 0
    for pk in pks:
        for line in owner_lines(connection, pk):
            target.write((line if is_plain else printable_json(line)) + "\n")
            count += 1
    return count


@owners_group.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--owner", type=Text(), help="Whose it becomes [whose the file says].")
@user_option
@database_option
@json_option
def import_command(
    file: Path, owner: str | None, user: str, database_url: str | None, as_json: bool
) -> None:
    """Read an export back, line for line.

    What is here already is refused by name and the rest comes in; a text that was changed on the
    way is refused with its conversation.
    """
    done = read_file(file, owner, user, database_url)
    tell_imported(done, as_json)


@owners_group.command("erase")
@_name
@user_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@policies_option
@database_option
@json_option
def erase_command(
    name: str,
    user: str,
    yes: bool,
    policies: Path | None,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Erase one for good: conversations, memories, everything that was made of them.

    One conversation after the other, so that others do not wait; ended in between it leaves the
    rest whole, and goes on when it is asked again. Backups expire by their date.
    """
    elsewhere = backends_elsewhere(policies)
    gone = 0
    with opened_store(database_url) as store:
        pks = _known(store, name, user)
        total = store.reading(_count, pks)
        whose = f"{name}'s user {user}" if user else name
        if not yes:
            said = counted(total, "conversation")
            click.confirm(f"Erase {speakable(whose)}, {said}, for good?", abort=True, err=True)
        for _ in erase_owner(store, pks, elsewhere=elsewhere, now=SystemClock().now_ms):
            gone += 1
            tell_progress(gone, max(gone, total), "conversations")
        is_empty = store.checkpointing()
    if as_json:
        print_json({"owner": name, "erased": True, "conversations": gone, "wiped": is_empty})
        return
    click.echo(f"{speakable(whose)} is erased, {counted(gone, 'conversation')}", err=True)
    if not is_empty:
        click.echo(
            "another program reads the database: the text leaves its WAL file when it ends",
            err=True,
        )


def _count(connection: Connection, pks: list[int]) -> int:
    whose = conversations.c.owner_pk.in_(pks)
    return connection.execute(select(func.count()).where(whose)).scalar_one()


def _known(store: Store, name: str, user: str) -> list[int]:
    """The row numbers of an owner, of whom something is stored. Raises NotFound."""
    pks = store.reading(owners_named, name, user)
    if not pks:
        tell_owners(store, name)
        raise NotFound(f"Nothing is stored of {name}{f' with the user {user}' if user else ''}.")
    return pks
