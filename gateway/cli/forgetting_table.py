"""What ``foldgate eval forgetting`` tells people: a table, the curve, its warnings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gateway.evals.forgetting.report import Report


def warn(report: Report) -> bool:
    """Say what makes the figures worth little; whether there are none at all."""
    control = report.control
    if control.is_blind:
        click.echo(
            f"foldgate: of {control.checked} right and as many wrong answers the examiner graded "
            f"{control.right_refused} wrong and {control.wrong_passed} right: its figures say "
            "little; ask a more capable --examiner",
            err=True,
        )
    if not report.questions:
        what = "no question could be read: ask a more capable --examiner"
        if report.facts.get("keep") is not None:
            what = (
                "no line says anything that no other line says, so there is nothing to ask: "
                "measure another conversation, or one with an --examiner"
            )
        click.echo(f"foldgate: {what}", err=True)
    return not report.questions


def draw_curve(report: Report, title: str, html: Path | None, svg: Path | None) -> None:
    """Write the page and the picture that were asked for."""
    from gateway.evals.forgetting.curve import draw, write_page

    modes = report.as_json()["modes"]
    if svg is not None:
        svg.write_text(draw(modes, title=title), encoding="utf-8")
    if html is not None:
        html.write_text(write_page(modes, title=title, facts=tell_facts(report)), encoding="utf-8")


def tell_facts(report: Report) -> str:
    """What was measured and how, in one sentence."""
    figures = report.as_json()
    who = f"backend {figures['backend']}, examiner {figures['examiner']}"
    if figures["keep"] is not None:
        who = f"no model: a summarizer that keeps {figures['keep']:.0%} of what it reads"
    grader = figures["grader"]
    checked = ""
    if grader["checked"]:
        checked = (
            f"of {grader['checked']} right and as many wrong answers to its own questions it "
            f"graded {grader['right_refused']} wrong and {grader['wrong_passed']} right; "
        )
    return (
        f"Policy {figures['policy']}; {who}; {figures['conversations']} conversations, "
        f"{figures['spans']} spans of {figures['span_chars']:,} characters, "
        f"{figures['questions']} questions, {figures['repeats']} repeats; {figures['calls']:,} "
        f"calls, {figures['malformed']:,} outputs of no use, {figures['missing']} questions "
        f"missing, {figures['stand_ins']} stand-ins; {checked}"
        f"code {figures['fingerprint']['code'][:12]}."
    )


def print_table(report: Report) -> None:
    """The figures for people; without a question there are none, however many zeros."""
    figures = report.as_json()
    click.echo(tell_facts(report))
    if not report.questions:
        return
    click.echo(
        f"{'mode':<22}{'mean':>8}{'least':>8}{'most':>8}{'stack':>8}{'gist':>8}{'memory':>9}"
    )
    for name, mode in figures["modes"].items():
        spread, where = mode["spread"], mode["by_where"]
        parts = (mode["mean"], spread["min"], spread["max"], where.get("stack"), where.get("gist"))
        told = "".join(f"{'' if part is None else f'{part:.1%}':>8}" for part in parts)
        click.echo(f"{name:<22}{told}{mode['memory_chars']:>9,}")
    for name, mode in figures["modes"].items():
        click.echo(f"{name}, by age in spans:")
        for row in mode["by_span"]:
            click.echo(_age_line(row))


def _age_line(row: dict[str, Any]) -> str:
    spread = row["spread"]
    return (
        f"  {row['age']:>4}  {row['where']:<6}{row['share']:>7.1%}  "
        f"({spread['min']:.1%} to {spread['max']:.1%}, {row['questions']} questions)"
    )
