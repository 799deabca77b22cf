"""`foldgate conversations`: what is stored, from the command line of the machine it is on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from sqlalchemy import Connection

from gateway.cli.arguments import Called, Text
from gateway.cli.importing import read_file, tell_imported
from gateway.cli.lines import one_line, printable_json, speakable
from gateway.cli.memory_lines import tell_memory
from gateway.cli.options import (
    OutputFile,
    counted,
    database_option,
    json_option,
    opened_store,
    policies_option,
    print_json,
    settings_of,
)
from gateway.cli.selection import (
    find_named,
    list_owned,
    owner_options,
    tell_owners,
    user_option,
)
from gateway.clock import SystemClock
from gateway.errors import ConfigurationError, NotFound
from gateway.policy_file import load_policies
from gateway.store.conversations import (
    delete_conversation,
    describe_conversation,
    find_anywhere,
    read_page,
    render_page,
)
from gateway.store.export import export_lines
from gateway.store.memory_report import read_memory
from gateway.store.prefixes import read_prefixes
from gateway.store.transcript import ConversationRow, node_by_pk, owner_by_pk

_PROMPTS = 20


@click.group("conversations")
def conversations_group() -> None:
    """List, show, export, import and delete conversations."""


@conversations_group.command("list")
@owner_options
@click.option("--limit", type=click.IntRange(1), help="At most so many; all without it.")
@database_option
@json_option
def list_command(
    owner: str, user: str, limit: int | None, database_url: str | None, as_json: bool
) -> None:
    """List an owner's, the newest turn first."""
    with opened_store(database_url) as store:
        found = store.reading(list_owned, owner, user, limit)
        tell_owners(store, owner)
    if as_json:
        print_json({"conversations": found})
        return
    for one in found:
        messages = counted(one["messages"], "message")
        click.echo(
            f"{one['id']}  {one['updated_at']}  {messages:>15}  "
            f"{one['chars']:>10,} characters  "
            f"{speakable('  '.join([one['model'], *one['aliases']]))}"
        )
    click.echo(f"{counted(len(found), 'conversation')} of {one_line(owner)}", err=True)


@conversations_group.command("show")
@click.argument("id", type=Called("conversation"))
@owner_options
@click.option(
    "--last", type=click.IntRange(1), help="Only the newest so many messages and their prompts."
)
@database_option
@json_option
def show_command(
    id: str, owner: str, user: str, last: int | None, database_url: str | None, as_json: bool
) -> None:
    """Show one: messages, memory, and what its newest prompts used again.

    The messages are those of its newest branch. ID is Foldgate's own or the client's.
    """
    with opened_store(database_url) as store:
        shown = store.reading(_show, owner, user, id, last)
    if as_json:
        print_json(shown)
        return
    _print_messages(shown["messages"])
    for line in tell_memory(shown["memory"]):
        click.echo(line)
    _print_prefix(shown["prefix"])


def _show(
    connection: Connection, owner: str, user: str, id: str, last: int | None
) -> dict[str, Any]:
    conversation = find_named(connection, owner, user, id)
    found: list[dict[str, Any]] = []
    if conversation.head_pk is not None:
        head = node_by_pk(connection, conversation.head_pk)
        page = read_page(connection, head, None, head.depth)
        found = render_page(page)["messages"]
    prompts = read_prefixes(connection, conversation.pk, limit=_PROMPTS)
    if last:
        asked = _asked_by(found, last)
        found, prompts = found[-last:], [one for one in prompts if one["asked"] in asked]
    return {
        "conversation": describe_conversation(connection, conversation),
        "messages": found,
        "memory": read_memory(connection, conversation, default_policy=None),
        "prefix": prompts,
    }


def _asked_by(found: list[dict[str, Any]], last: int) -> set[str]:
    """The questions among the newest messages, and that of a reply which is the first of them."""
    start = max(0, len(found) - last)
    if start > 0 and found[start]["role"] == "assistant":
        start -= 1
    return {message["id"] for message in found[start:]}


def _print_messages(messages: list[dict[str, Any]]) -> None:
    for message in messages:
        content = message["content"]
        text = content if isinstance(content, str) else f"({_describe(message)})"
        cut = "  [cut off]" if message["partial"] else ""
        click.echo(f"{message['created_at']}  {message['role']}{cut}: {speakable(text)}")


def _describe(message: dict[str, Any]) -> str:
    if isinstance(message["content"], list):
        return ", ".join(str(part.get("type")) for part in message["content"])
    calls = message.get("tool_calls")
    return f"{len(calls)} tool calls" if isinstance(calls, list) else "nothing said"


def _print_prefix(turns: list[dict[str, Any]]) -> None:
    """A line for each of the newest prompts, oldest first."""
    for turn in reversed(turns):
        tokens = turn["prompt_tokens"]
        size = "an unknown number of" if tokens is None else f"{tokens:,}"
        click.echo(f"prompt of {size} tokens on {turn['backend']}: {_tell_reuse(turn)}")


def _tell_reuse(turn: dict[str, Any]) -> str:
    """What was used again, what should have been and what moved it, as far as it is known."""
    shares = ((turn["reused"], "used again"), (turn["expected"], "expected"))
    told = [f"{share:.0%} {what}" for share, what in shares if share is not None]
    if turn["moved_by"] == "new":
        told.insert(0, "the first there")
    elif turn["moved_by"]:
        at = "" if turn["moved_at"] is None else f" at message {turn['moved_at'] + 1:,}"
        told.append(f"moved by {turn['moved_by']}{at}")
    return ", ".join(told) or "nothing is known of what was used again"


@conversations_group.command("export")
@click.argument("id", type=Called("conversation"))
@owner_options
@click.option(
    "--out",
    type=OutputFile(),
    help="Write to this file; standard output without it.",
)
@database_option
@json_option
def export_command(
    id: str, owner: str, user: str, out: Path | None, database_url: str | None, as_json: bool
) -> None:
    """Write one as JSON lines.

    All messages of all branches, and the memory. ID is Foldgate's own or the client's.
    """
    if as_json and out is None:
        raise click.UsageError("--json tells about the file that --out names")
    with opened_store(database_url) as store:
        lines = store.reading(_export, owner, user, id, out)
    if as_json:
        print_json({"id": id, "file": str(out), "lines": lines})
    else:
        click.echo(f"{counted(lines, 'line')} written", err=True)


def _export(connection: Connection, owner: str, user: str, id: str, out: Path | None) -> int:
    conversation = find_named(connection, owner, user, id)
    target = sys.stdout if out is None else out.open("w", encoding="utf-8", newline="\n")
    count = 0
    try:
        for line in export_lines(connection, conversation):
            target.write((printable_json(line) if out is None else line) + "\n")
            count += 1
    finally:
        if out is not None:
            target.close()
    return count


@conversations_group.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--owner", type=Text(), help="Whose it becomes [whose the file says].")
@user_option
@database_option
@json_option
def import_command(
    file: Path, owner: str | None, user: str, database_url: str | None, as_json: bool
) -> None:
    """Read an export back, line for line.

    It keeps its id, its branches and its memory. What is here already is refused.
    """
    tell_imported(read_file(file, owner, user, database_url), as_json)


@conversations_group.command("delete")
@click.argument("id", type=Called("conversation"))
@owner_options
@click.option("--yes", is_flag=True, help="Do not ask.")
@policies_option
@database_option
@json_option
def delete_command(
    id: str,
    owner: str,
    user: str,
    yes: bool,
    policies: Path | None,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Delete one for good.

    Everything that was made from it goes too. ID is Foldgate's own or the client's.
    """
    elsewhere = backends_elsewhere(policies)
    with opened_store(database_url) as store:
        conversation = store.reading(find_named, owner, user, id)
        whose = f"{conversation.id} of {store.reading(_tell_owner, conversation)}"
        if not yes:
            said = counted(store.reading(_count_messages, conversation), "message")
            click.confirm(f"Delete {whose}, {said}, for good?", abort=True, err=True)
        now_ms = SystemClock().now_ms()

        def delete(connection: Connection) -> list[str]:
            found = find_anywhere(connection, conversation.id)
            if found is None:
                raise NotFound(f"{conversation.id} is gone already")
            return delete_conversation(connection, found, elsewhere=elsewhere, now_ms=now_ms)

        store.writing(delete)
        if not store.checkpointing():
            click.echo(
                "another program reads the database: the text leaves its WAL file when it ends",
                err=True,
            )
    if as_json:
        print_json({"id": conversation.id, "deleted": True})
    else:
        click.echo(f"{whose} is deleted", err=True)


def _tell_owner(connection: Connection, conversation: ConversationRow) -> str:
    name, user = owner_by_pk(connection, conversation.owner_pk)
    return speakable(f"{name}'s user {user}" if user else name)


def _count_messages(connection: Connection, conversation: ConversationRow) -> int:
    """Those of the newest branch."""
    return int(describe_conversation(connection, conversation)["messages"])


def backends_elsewhere(policies: Path | None) -> set[str]:
    """The backends whose memory is not ours to wipe: providers'. Deleting works without a policies
    file too: then every backend that read the conversation is noted as one to be wiped."""
    settings = settings_of(policies=policies)
    try:
        file = load_policies(settings.policies, settings.environ).file
    except ConfigurationError as error:
        click.echo(f"without the policies file ({one_line(str(error).splitlines()[0])})", err=True)
        return set()
    return {name for name, backend in file.backends.items() if backend.kind == "litellm"}
