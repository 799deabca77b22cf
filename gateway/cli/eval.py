"""``foldgate eval``: how well the program's own decisions hold on labelled rows."""

from __future__ import annotations

from pathlib import Path

import click

from gateway.cli.eval_audit import audit_command
from gateway.cli.eval_forgetting import forgetting_command
from gateway.cli.eval_recall import recall_command
from gateway.cli.options import json_option, print_json
from gateway.errors import ConfigurationError
from gateway.evals.judge import Report, measure_judge, read_rows

_EVERY = 100


@click.group("eval")
def eval_group() -> None:
    """Measure the program's own decisions on labelled rows."""


eval_group.add_command(recall_command)
eval_group.add_command(forgetting_command)
eval_group.add_command(audit_command)


@eval_group.command("judge")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@json_option
def judge_command(file: Path, as_json: bool) -> None:
    """Judge the labelled rows of FILE (JSON lines).

    \b
    A row is the prose of a chapter, for the refusal rule alone ("as": "chat" rows are skipped):
      {"text": "…", "label": "refuse" or "accept", "as": "summary"}
    or what a summarizer answered to a span, for the whole judge:
      {"output": "…", "span": [["user", "…"], …], "finish_reason": "stop",
       "label": "accept" or "reject", "reasons": ["refusal", …]}

    Ends with 0 where the bars are reached (texts: 95 % of the refusals rejected, 2 % of the good
    ones lost at most; outputs with their span: 90 % and 10 %), with 1 where they are not, with 2
    for a file that cannot be read or a row that is of neither kind.

    \b
    Beside the bars stand: hard, rows whose only reasons are misattributed or thin, which only those
    who know the story find; misattributed, all rows labelled so, how many of them were rejected at
    all, and how many for that reason.
    """
    try:
        rows = list(read_rows(file.read_text(encoding="utf-8-sig").split("\n"), str(file)))
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{file}: not UTF-8 ({error.reason})") from error
    if not rows:
        raise ConfigurationError(f"{file}: no rows")
    report, passed = measure_judge(rows, lambda done: _tell(done, len(rows)))
    if as_json:
        print_json(report.as_json())
    else:
        _print_table(report, passed)
    raise SystemExit(0 if passed else 1)


def _tell(done: int, total: int) -> None:
    if done % _EVERY == 0 or done == total:
        click.echo(f"{done} of {total} rows judged", err=True)


def _print_table(report: Report, passed: bool) -> None:
    rows: list[tuple[str, int, int]] = [
        ("to be rejected", report.refuse_rejected, report.refuse_total),
        ("to be accepted", report.accept_rejected, report.accept_total),
        ("hard (apart)", report.hard_rejected, report.hard_total),
        ("misattributed", report.misattributed_rejected, report.misattributed_total),
        ("  named as such", report.misattributed_named, report.misattributed_total),
        *((f"  {name}", met, total) for name, (met, total) in sorted(report.by_reason.items())),
    ]
    click.echo(f"{'rows':<18}{'rejected':>10}{'of':>7}{'share':>9}")
    for name, rejected, total in rows:
        share = f"{rejected / total:.1%}" if total else "–"
        click.echo(f"{name:<18}{rejected:>10}{total:>7}{share:>9}")
    for wrong in report.wrong:
        got = ", ".join(wrong["got"]) or "accepted"
        click.echo(f"line {wrong['line']}: {wrong['label']}, but {got}: {wrong['text']}")
    click.echo("the bars are reached" if passed else "below the bars")
