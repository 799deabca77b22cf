"""``foldgate eval audit``: what is wrong with the memory that is stored."""

from __future__ import annotations

from pathlib import Path

import click

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
from gateway.evals.audit import KINDS, Report, audit, load
from gateway.policy_file import load_policies

_LINE = 100


@click.command("audit")
@click.option(
    "--conversation",
    "ids",
    type=Called("conversation"),
    multiple=True,
    metavar="ID",
    help="One of them; may be given again.",
)
@click.option("--all", "everything", is_flag=True, help="Every conversation.")
@click.option(
    "--owner", type=Text(), default="local", show_default=True, help="Whose the named ones are."
)
@user_option
@policies_option
@database_option
@json_option
def audit_command(
    ids: tuple[str, ...],
    everything: bool,
    owner: str,
    user: str,
    policies: Path | None,
    database_url: str | None,
    as_json: bool,
) -> None:
    """Count what is wrong with stored memory, per chapter and in sum; nothing is changed.

    \b
    claims_as_facts      what only a character said, told as a fact or as plainly so
    resolved_still_open  threads that were resolved and that a view still lists as open
    ended_still_open     open threads whose end a later chapter tells
    without_source       entries whose source message is missing or no part of their span
    misattributed        what one speaker said, tied to another
    refusals             texts that refuse, quotes left out

    Each is counted twice from the same rows: `before` reads them plainly (everything told is a
    fact, no thread is closed by its id), `after` as the ledger does. Words are compared, no model
    is asked. Ends with 1 where anything is wrong after all.
    """
    if bool(ids) == everything:
        raise click.UsageError("Name conversations with --conversation, or --all of them.")
    settings = settings_of(policies=policies)
    file = load_policies(settings.policies, settings.environ).file
    report = Report()
    with opened_store(database_url) as store:
        for conversation in walk_chosen(store, ids, None if everything else owner, user):
            stored = store.reading(load, conversation, file)
            report.add(stored, audit(stored))
    if as_json:
        print_json(report.as_json())
    else:
        _print_table(report)
    raise SystemExit(1 if report.faults else 0)


def _print_table(report: Report) -> None:
    figures = report.as_json()
    click.echo(
        f"{counted(len(figures['conversations']), 'conversation')}, "
        f"{counted(figures['chapters'], 'chapter')}, "
        f"{counted(figures['entries'], 'entry', 'entries')}, {figures['threads']:,} of them threads"
    )
    click.echo(
        "before: entries read plainly, each a fact and open; after: as the ledger tells them"
    )
    click.echo(f"{'':<22}{'before':>8}{'after':>8}")
    for kind in KINDS:
        click.echo(f"{kind:<22}{figures['before'][kind]:>8,}{figures['after'][kind]:>8,}")
    for conversation in figures["conversations"]:
        for part in conversation["chapters"]:
            where = part["chapter"] or "no chapter"
            for found in part["found"]:
                text = speakable(" ".join(found["text"].split()))[:_LINE]
                click.echo(f"{conversation['conversation']}  {where}  {found['kind']}: {text}")
