"""`foldgate replay`: recorded conversations through the program, nothing waiting, no network."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from gateway.cli.arguments import Text
from gateway.cli.lines import speakable
from gateway.cli.options import (
    OutputFile,
    files_argument,
    json_option,
    policies_option,
    print_json,
    settings_of,
)
from gateway.errors import ConfigurationError
from gateway.policy_file import load_policies
from gateway.replay import (
    Options,
    RecordingError,
    Switch,
    Totals,
    TurnRecord,
    play,
    read_recordings,
)
from gateway.replay.plot import draw
from gateway.replay.recordings import join

_EVERY = 200


class _SwitchType(click.ParamType):  # type: ignore[type-arg]
    """CHARACTERS:POLICY, such as 150000:local-fold."""

    name = "switch"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Switch:
        if isinstance(value, Switch):
            return value
        chars, colon, policy = str(value).partition(":")
        digits = chars.replace("_", "")
        if not (colon and policy and digits.isascii() and digits.isdigit() and len(digits) < 16):
            self.fail(
                f"{value!r} is none: write characters and a policy, such as 150000:local-fold",
                param,
                ctx,
            )
        return Switch(int(digits), policy)


@click.command("replay")
@files_argument
@click.option("--joined", is_flag=True, help="Make one conversation of all files.")
@click.option(
    "--policy", type=Text(), default="local-fold", show_default=True, help="The policy to play."
)
@click.option(
    "--switch",
    "switches",
    type=_SwitchType(),
    multiple=True,
    metavar="CHARS:POLICY",
    help="Move to this policy once so much was said; may be given again.",
)
@click.option("--backend", type=Text(), help="The backend whose place the scripted one takes.")
@click.option("--no-recall", is_flag=True, help="Without recalled notes.")
@click.option(
    "--refusals",
    type=click.FloatRange(0, 100),
    default=11.0,
    show_default=True,
    metavar="PERCENT",
    help="Share of summary calls that refuse.",
)
@click.option(
    "--plot",
    type=OutputFile(),
    metavar="FILE.svg",
    help="Draw prompt size, folds and re-read characters.",
)
@policies_option
@json_option
def replay_command(
    files: tuple[Path, ...],
    joined: bool,
    policy: str,
    switches: tuple[Switch, ...],
    backend: str | None,
    no_recall: bool,
    refusals: float,
    plot: Path | None,
    policies: Path | None,
    as_json: bool,
) -> None:
    """Play LoCoMo files, OpenAI message lists (JSON, JSONL) or SillyTavern chats.

    A turn every 20 virtual seconds; the scripted summarizer takes 30 s. All sizes are characters.

    \b
    folds         how often the view folded; of these, hard_cuts on the overflowing turn itself
    chapters      written by the end; majors: gists; stand_ins: extracts in a chapter's place
    rejected      summaries that the judge turned away
    reread_chars  characters read that the prompt before did not begin with
    floor_chars   all that was said, once
    reuse         share of the prompts that the prompt before began with already
    cold_turns    turns that read more than 5,000 characters again
    recall_turns  turns beside whose message something was recalled; recall_chars of notes in all
    moved_prefixes  prompts that did not begin with the one before though nothing was folded: 0
    switches      of each --switch: the backlog that the first view under the new policy took in
                  as chapters, that view's prompt, and the messages lost until the next one
    """
    try:
        recordings = read_recordings(files)
    except RecordingError as error:
        raise ConfigurationError(str(error)) from error
    loaded = load_policies(settings_of(policies=policies).policies, os.environ)
    options = Options(
        policies=loaded,
        policy=policy,
        backend=backend,
        recall=not no_recall,
        refusals=refusals,
        switches=tuple(sorted(switches, key=lambda switch: switch.at_chars)),
        watch=_watch,
    )
    totals, records = play([join(recordings)] if joined else recordings, options)
    if plot is not None:
        view = loaded.file.policies[policy].view
        title = speakable(f"{', '.join(path.name for path in files)} under {policy}")
        drawn = draw(records, title=title, start=view.start, ceiling=view.ceiling)
        plot.write_text(drawn, encoding="utf-8")
    figures = totals.as_json()
    _tell_missed(options.switches, totals)
    if as_json:
        print_json(figures)
        return
    moves = figures.pop("switches", [])
    for name, value in figures.items():
        click.echo(f"{name:<20}{value:>14,}")
    for move in moves:
        click.echo(f"switch at {move.pop('at_chars'):,} to {move.pop('to')}")
        for name, value in move.items():
            shown = "-" if value is None else f"{value:,}"
            click.echo(f"  {name:<18}{shown:>14}")


def _tell_missed(switches: Sequence[Switch], totals: Totals) -> None:
    """Say which switches no recording was long enough for."""
    made = {(move["at_chars"], move["to"]) for move in totals.switches or ()}
    for switch in dict.fromkeys(switches):
        if (switch.at_chars, switch.policy) not in made:
            click.echo(
                f"foldgate: the switch at {switch.at_chars:,} to {switch.policy} was not made: no "
                f"turn begins so late ({totals.floor_chars:,} characters were played)",
                err=True,
            )


def _watch(record: TurnRecord) -> None:
    if record.number % _EVERY == 0:
        click.echo(f"turn {record.number}: prompt {record.prompt_chars:,} characters", err=True)
