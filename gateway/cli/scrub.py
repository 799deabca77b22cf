"""`foldgate scrub`: today's judge over the memory that is stored."""

from __future__ import annotations

from pathlib import Path

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
    settings_of,
)
from gateway.cli.selection import user_option, walk_chosen
from gateway.clock import SystemClock
from gateway.flows import scrub, scrub_material
from gateway.flows.hand import Hand
from gateway.flows.scrub import Report
from gateway.policy_file import load_policies
from gateway.store.conversations import find_anywhere
from gateway.store.engine import Store
from gateway.store.transcript import ConversationRow
from policies.schema import PolicyFile

_LINE = 120


@click.command("scrub")
@click.argument("ids", type=Called("conversation"), nargs=-1)
@click.option(
    "--all", "everything", is_flag=True, help="Every conversation, of the owner or at all."
)
@click.option(
    "--owner",
    type=Text(),
    help="Whose they are, as FOLDGATE_KEYS names it [IDs: local; --all: all].",
)
@user_option
@click.option("--dry-run", is_flag=True, help="Only tell what is bad; change nothing.")
@policies_option
@database_option
@json_option
def scrub_command(
    ids: tuple[str, ...],
    everything: bool,
    owner: str | None,
    user: str,
    dry_run: bool,
    policies: Path | None,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Find bad memory and put it into quarantine.

    Chapters, gists, entries of the ledger and facts of the profile that today's judge refuses give
    way to stand-ins, and chapters are asked for again. IDS are Foldgate's own or the client's. With
    --dry-run it ends with 1 where anything is bad.
    """
    if bool(ids) == everything:
        raise click.UsageError("Name conversations, or --all of them.")
    if user and owner is None:
        raise click.UsageError("--user needs --owner beside it.")
    settings = settings_of(policies=policies)
    file = load_policies(settings.policies, settings.environ).file
    report = Report(dry_run)
    with opened_store(database_url) as store:
        for conversation in walk_chosen(store, ids, owner, user):
            _scrub_one(store, file, conversation, report)
    if as_json:
        print_json(report.as_json())
    else:
        _tell(report)
    if dry_run and report.bad:
        raise SystemExit(1)


def _scrub_one(
    store: Store, file: PolicyFile, conversation: ConversationRow, report: Report
) -> None:
    """Judge one conversation, and change it where that is wanted."""
    material = store.reading(scrub_material.load, conversation, file)
    findings = scrub.judge(material)
    if findings and not report.dry_run:
        now_ms = SystemClock().now_ms()
        findings = store.writing(_apply, conversation, file, findings, now_ms)
    report.add(material, findings)


def _apply(
    connection: Connection,
    conversation: ConversationRow,
    file: PolicyFile,
    findings: list[scrub.Finding],
    now_ms: int,
) -> list[scrub.Finding]:
    if find_anywhere(connection, conversation.id) is None:
        return []
    return scrub.apply(connection, Hand(conversation, now_ms), file, findings)


def _tell(report: Report) -> None:
    for bad in report.bad:
        click.echo(
            f"{bad['conversation']}  {bad['kind']}  {bad['id']}  {', '.join(bad['reasons'])}: "
            f"{speakable(bad['text'])[:_LINE]}"
        )
    plurals = {"entry": "entries"}
    looked = ", ".join(
        counted(count, kind, plurals.get(kind)) for kind, count in report.looked.items()
    )
    verb = "is" if len(report.bad) == 1 else "are"
    done = "bad" if report.dry_run else "in quarantine now"
    told = counted(report.conversations, "conversation")
    click.echo(f"{told} ({looked}): {len(report.bad):,} {verb} {done}", err=True)
