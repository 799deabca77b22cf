"""How a command says that it failed."""

from __future__ import annotations

import click

from gateway.cli.lines import one_line
from gateway.policy_file import PolicyFileError


def tell_failure(error: Exception) -> None:
    """On standard error: what is wrong, on one line; of a policies file one for each problem."""
    told = [str(error)]
    if isinstance(error, PolicyFileError):
        told = [problem.render(error.name) for problem in error.problems]
    elif isinstance(error, OSError):
        told = [error.strerror or str(error)]
        if isinstance(error.filename, str | bytes):
            told[0] = f"{click.format_filename(error.filename)}: {told[0]}"
    click.echo("foldgate: " + "\n".join(map(one_line, told)), err=True)
