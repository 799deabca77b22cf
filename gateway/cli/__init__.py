"""The `foldgate` command. Each subcommand is imported when it is asked for, and only then."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Any

import click
from click.exceptions import NoArgsIsHelpError

from gateway.errors import ConfigurationError, GatewayError

# What each subcommand is, and where it is written: "module:attribute".
_COMMANDS = {
    "serve": "gateway.cli.serve:serve_command",
    "demo": "gateway.cli.demo:demo_command",
    "doctor": "gateway.cli.doctor:doctor_command",
    "policies": "gateway.cli.policies:policies_group",
    "conversations": "gateway.cli.conversations:conversations_group",
    "memories": "gateway.cli.memories:memories_group",
    "owners": "gateway.cli.owners:owners_group",
    "scrub": "gateway.cli.scrub:scrub_command",
    "jobs": "gateway.cli.jobs:jobs_group",
    "backup": "gateway.cli.backup:backup_group",
    "vacuum": "gateway.cli.vacuum:vacuum_command",
    "stats": "gateway.cli.stats:stats_command",
    "replay": "gateway.cli.replay:replay_command",
    "eval": "gateway.cli.eval:eval_group",
}
_HELP = {
    "serve": "Run the gateway.",
    "demo": "Watch a long conversation fold on a real llama-server.",
    "doctor": "Check the database, the policies file and every backend.",
    "policies": "Look into a policies file.",
    "conversations": "List, show, export, import and delete conversations.",
    "memories": "What owners told about themselves: list, add, edit, delete, export.",
    "owners": "List owners; export, import and erase everything of one.",
    "scrub": "Judge the stored memory anew, and quarantine what is bad.",
    "jobs": "List, show, cancel, retry and run the background work.",
    "backup": "Copy the database while the server runs; list, prune, restore copies.",
    "vacuum": "Write the database anew, without traces of what was deleted.",
    "stats": "How it has been going: chapters, folds, rejections, cuts, reuse.",
    "replay": "Play recorded conversations through the program on a virtual clock.",
    "eval": "Measure the judge, recall and what is forgotten.",
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports the one that runs.

    A ConfigurationError ends the program with 2 (wrong use), a GatewayError and what the system
    refuses (OSError) with 1 (found wanting), each told on standard error without a traceback.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = _COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list of commands, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _HELP[name]) for name in _COMMANDS])

    def invoke(self, ctx: click.Context) -> Any:
        _take_any_letters()
        try:
            return super().invoke(ctx)
        except (NoArgsIsHelpError, BrokenPipeError):
            raise  # click prints the help, and ends quietly where nobody reads on
        except click.UsageError as error:
            from gateway.cli.lines import one_line

            raise click.UsageError(one_line(error.format_message()), error.ctx) from error
        except (ConfigurationError, GatewayError, OSError) as error:
            # Not before: most of the program stands behind it.
            from gateway.cli.failures import tell_failure

            tell_failure(error)
            sys.exit(2 if isinstance(error, ConfigurationError) else 1)


def _take_any_letters() -> None:
    """Standard output writes what its encoding has no letter for as escapes, as standard error does
    anyhow; an answer that is no text is read as a wrong one."""
    for stream, errors in ((sys.stdout, "backslashreplace"), (sys.stdin, "replace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="foldgate", prog_name="foldgate")
def main() -> None:
    """A gateway that keeps every conversation whole and shows each model a view that fits it."""
