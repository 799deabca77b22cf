"""``foldgate eval recall``: what recall brings back of the lines that answer a question."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gateway.cli.options import files_argument, json_option, print_json
from gateway.evals.recall import (
    DEFAULT_BUDGET,
    Report,
    join_annotated,
    measure_recall,
    read_annotated,
)

_EVERY = 100


@click.command("recall")
@files_argument
@click.option(
    "--joined", is_flag=True, help="Measure all files as one conversation, one after another."
)
@click.option(
    "--budget-chars",
    type=click.IntRange(min=100),
    default=DEFAULT_BUDGET,
    show_default=True,
    metavar="N",
    help="Characters that recall may show for a question, neighbours included.",
)
@click.option("--framed", is_flag=True, help="Count also what says who said each line and when.")
@json_option
def recall_command(
    files: tuple[Path, ...], joined: bool, budget_chars: int, framed: bool, as_json: bool
) -> None:
    """Measure recall on annotated conversations; no model is asked.

    FILE holds a conversation in the form of LoCoMo: speaker_a, speaker_b, session_K and qa, each
    question with the dia_ids of the lines that answer it ("evidence"). A list of such conversations
    (locomo10.json: sample_id, conversation, qa) is read as several. Each question is asked as the
    newest message behind the last line. A line counts as shown where it stands whole, word for
    word, in what recall shows within N characters in all: characters of messages, neighbours
    included.

    \b
    evidence_recall      share of a question's lines shown, the mean over the questions
    all_evidence_recall  share of the questions of which every line is shown
    lines_recall         share of all lines of evidence shown
    window_only          as evidence_recall, were the newest N characters shown instead
    by_age               by how many characters were said since

    Questions without evidence, and ids that name no line, are left out and counted.
    """
    conversations = read_annotated(files)
    if joined:
        conversations = [join_annotated(conversations)]
    total = sum(len(conversation.questions) for conversation in conversations)
    report = measure_recall(
        conversations, budget_chars, lambda done: _tell(done, total), framed=framed
    )
    if as_json:
        print_json(report.as_json())
    else:
        _print_table(report)


def _tell(done: int, total: int) -> None:
    if done % _EVERY == 0 or done == total:
        click.echo(f"{done} of {total} questions asked", err=True)


def _print_table(report: Report) -> None:
    figures = report.as_json()
    click.echo(
        f"{figures['questions']} questions over {figures['messages']:,} messages "
        f"({figures['chars']:,} characters), {report.budget:,} characters each"
    )
    for name in ("evidence_recall", "all_evidence_recall", "lines_recall", "window_only"):
        click.echo(f"{name:<22}{figures[name]:>9.1%}")
    click.echo(f"{'characters shown':<22}{figures['chars_mean']:>9,.0f}  (mean)")
    click.echo(f"{'time':<22}{figures['ms_p50']:>6.1f} ms  (p95 {figures['ms_p95']:.1f} ms)")
    click.echo(f"{'nothing recalled':<22}{figures['nothing_recalled']:>9}")
    click.echo(f"{'left out':<22}{figures['without_evidence']:>9}  (no evidence)")
    for age in figures["by_age"]:
        _print_age(age)


def _print_age(age: dict[str, Any]) -> None:
    end = f"{age['to_chars']:,}" if age["to_chars"] else "more"
    stretch = f"{age['from_chars']:,} to {end} ago"
    click.echo(f"  {stretch:<24}{age['recall']:>7.1%} of {age['evidence']:,} lines")
