"""``foldgate policies``: what a policies file says, and what it does to a conversation."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import click

from gateway.cli.explain import explain_command
from gateway.policy_file import PolicyFileError, Problem, find_cautions, load_policies


@click.group("policies")
def policies_group() -> None:
    """Look into a policies file."""


policies_group.add_command(explain_command)


@policies_group.command("check")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
def check_command(file: Path, as_json: bool) -> None:
    """Tell whether FILE can be used, and all that is wrong with it.

    Cautions tell of settings that do nothing yet, or less than they say; they fail nothing.
    Variables are taken from the environment of this command. Ends with 0 where the file is
    right, with 1 where it has problems, with 2 where the command itself is used wrongly.
    """
    problems, cautions = _look_into(file)
    if as_json:
        listed = [asdict(problem) for problem in problems]
        report = {"ok": not problems, "problems": listed, "cautions": cautions}
        click.echo(json.dumps(report, ensure_ascii=False))
    else:
        for problem in problems:
            click.echo(problem.render(str(file)))
        for caution in cautions:
            click.echo(f"{file}: caution: {caution}")
        if not problems:
            click.echo(f"{file}: nothing is wrong")
    raise SystemExit(1 if problems else 0)


def _look_into(file: Path) -> tuple[tuple[Problem, ...], list[str]]:
    """What is wrong with a file; where nothing is, what is still good to know."""
    try:
        return (), find_cautions(load_policies(file, os.environ).file)
    except PolicyFileError as error:
        return error.problems, []
