"""`foldgate memories`: what owners told about themselves, from the command line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection

from gateway.cli.arguments import Called, Text
from gateway.cli.lines import one_line, printable_json, speakable
from gateway.cli.options import (
    OutputFile,
    counted,
    database_option,
    json_option,
    opened_store,
    print_json,
)
from gateway.cli.selection import owner_options, tell_owners
from gateway.clock import SystemClock
from gateway.errors import NotFound
from gateway.flows.memory_edits import announce_fact, delete_fact, edit_fact, undo_fact
from gateway.store import profile, profile_edits
from gateway.store.conversations import owners_named
from gateway.store.profile import MOST_ABOUT, MOST_CHARS, ProfileRow
from gateway.store.profile_report import describe_facts
from gateway.store.transcript import ensure_owner
from gateway.wire.json_text import dumps
from gateway.wire.letters import is_blank

now_option = click.option(
    "--now", is_flag=True, help="Views change at the next user message, not at the next fold."
)


def _read_line(most: int) -> Callable[[object, object, str | None], str | None]:
    """A check of one line of text, neither empty nor too long: told before the work."""

    def read(_ctx: object, _param: object, value: str | None) -> str | None:
        if value is None:
            return None
        text = profile.one_line(value)
        if is_blank(text):
            raise click.BadParameter("It is empty.")
        if len(text) > most:
            raise click.BadParameter(f"It has {len(text):,} characters; {most:,} are the most.")
        return text

    return read


about_option = click.option(
    "--about",
    type=Text(),
    callback=_read_line(MOST_ABOUT),
    help="What it is about, in few words.",
)


@click.group("memories")
def memories_group() -> None:
    """List, add, edit, undo, delete and export what an owner told about themselves."""


@memories_group.command("list")
@owner_options
@click.option("--query", type=Text(), default="", help="Only what contains this.")
@click.option("--limit", type=click.IntRange(1), default=sys.maxsize, help="At most so many.")
@database_option
@json_option
def list_command(
    owner: str, user: str, query: str, limit: int, database_url: str | None, as_json: bool
) -> None:
    """List an owner's, the newest first."""

    def read(connection: Connection) -> list[dict[str, Any]]:
        pks = owners_named(connection, owner, user)
        rows, _ = profile.list_facts(connection, pks, words=query, limit=limit)
        return describe_facts(connection, rows)

    with opened_store(database_url) as store:
        found = store.reading(read)
        tell_owners(store, owner)
    if as_json:
        print_json({"memories": found})
        return
    for one in found:
        about = f"{one['about']}: " if one["about"] else ""
        click.echo(f"{one['id']}  {one['created_at']}  {speakable(about + one['text'])}")
    click.echo(f"{counted(len(found), 'memory', 'memories')} of {one_line(owner)}", err=True)


@memories_group.command("add")
@click.argument("text", type=Text(), callback=_read_line(MOST_CHARS))
@about_option
@now_option
@owner_options
@database_option
@json_option
def add_command(
    text: str,
    about: str | None,
    now: bool,
    owner: str,
    user: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Add a fact in the owner's own words.

    What was known about the same gives way to it.
    """
    now_ms = SystemClock().now_ms()

    def write(connection: Connection) -> dict[str, Any]:
        owner_pk = ensure_owner(connection, owner, user, now_ms)
        fact = profile_edits.add_fact(connection, owner_pk, text, about, now_ms)
        announce_fact(connection, fact, now=now)
        return describe_facts(connection, [fact])[0]

    with opened_store(database_url) as store:
        made = store.writing(write)
    _tell(made, as_json)


@memories_group.command("edit")
@click.argument("id", type=Called("memory"))
@click.argument("text", type=Text(), callback=_read_line(MOST_CHARS), required=False)
@about_option
@now_option
@owner_options
@database_option
@json_option
def edit_command(
    id: str,
    text: str | None,
    about: str | None,
    now: bool,
    owner: str,
    user: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Say a fact in other words.

    It is a new one, under a new id, in the place of the old, and is found by both.
    """
    if text is None and about is None:
        raise click.UsageError("TEXT or --about must say what is to change.")
    now_ms = SystemClock().now_ms()

    def write(connection: Connection) -> dict[str, Any]:
        old = _find(connection, owner, user, id)
        words, subject = text or old.text, about or old.about
        fact = edit_fact(connection, old, words, subject, now_ms, now=now)
        return describe_facts(connection, [fact])[0]

    with opened_store(database_url) as store:
        made = store.writing(write)
    _tell(made, as_json)


@memories_group.command("undo")
@click.argument("id", type=Called("memory"))
@now_option
@owner_options
@database_option
@json_option
def undo_command(
    id: str, now: bool, owner: str, user: str, database_url: str | None, as_json: bool
) -> None:
    """Say a fact as it was said before its newest edit.

    Where a newer one was learned in its place, the older stands again. What is deleted is gone.
    """
    now_ms = SystemClock().now_ms()

    def write(connection: Connection) -> dict[str, Any]:
        back = undo_fact(connection, _find(connection, owner, user, id), now_ms, now=now)
        return describe_facts(connection, [back])[0]

    with opened_store(database_url) as store:
        made = store.writing(write)
    _tell(made, as_json)


@memories_group.command("delete")
@click.argument("id", type=Called("memory"))
@click.option("--yes", is_flag=True, help="Do not ask.")
@now_option
@owner_options
@database_option
@json_option
def delete_command(
    id: str,
    yes: bool,
    now: bool,
    owner: str,
    user: str,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Delete a fact for good.

    It is not learned again from where it was told, and leaves the ledger of the chat that taught
    it. Views that show it do so until they fold; with --now it is gone from them at once, from the
    memory of a server that runs beside within 15 seconds.
    """
    now_ms = SystemClock().now_ms()

    def write(connection: Connection) -> str:
        fact = _find(connection, owner, user, id)
        delete_fact(connection, fact, now_ms, now=now)
        return fact.id

    with opened_store(database_url) as store:
        fact = store.reading(_find, owner, user, id)
        if not yes:
            click.confirm(f"Delete “{speakable(fact.text)}” for good?", abort=True, err=True)
        deleted = store.writing(write)
        store.checkpointing()
    if as_json:
        print_json({"id": deleted, "deleted": True})
    else:
        click.echo(f"{deleted} is deleted", err=True)


@memories_group.command("export")
@owner_options
@click.option("--out", type=OutputFile(), help="Write to this file; standard output without it.")
@database_option
@json_option
def export_command(
    owner: str, user: str, out: Path | None, database_url: str | None, as_json: bool
) -> None:
    """Write an owner's as JSON lines, the oldest first."""
    if as_json and out is None:
        raise click.UsageError("--json tells about the file that --out names")

    def read(connection: Connection) -> list[dict[str, Any]]:
        rows = profile.all_active(connection, owners_named(connection, owner, user))
        return describe_facts(connection, rows)

    with opened_store(database_url) as store:
        found = store.reading(read)
    lines = [dumps({"type": "memory", **one}) + "\n" for one in found]
    if out is None:
        for line in lines:
            click.echo(printable_json(line.rstrip()))
    else:
        out.write_text("".join(lines), encoding="utf-8", newline="\n")
    if as_json:
        print_json({"file": str(out), "lines": len(lines)})
    else:
        click.echo(f"{counted(len(lines), 'line')} written", err=True)


def _find(connection: Connection, owner: str, user: str, id: str) -> ProfileRow:
    pks = owners_named(connection, owner, user)
    found = profile_edits.find_fact(connection, pks, id, to_change=True)
    if found is None:
        raise NotFound(f"{owner} has no memory {id}")
    return found


def _tell(made: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(made)
    else:
        click.echo(f"{made['id']}  {speakable(made['text'])}")
