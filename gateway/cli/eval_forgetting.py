"""``foldgate eval forgetting``: how much of a conversation its memory still answers, by age."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gateway.backends.base import Backend
from gateway.cli.arguments import Text
from gateway.cli.forgetting_table import draw_curve, print_table, warn
from gateway.cli.lines import speakable
from gateway.cli.options import (
    OutputFile,
    files_argument,
    json_option,
    policies_option,
    print_json,
    settings_of,
)
from gateway.clock import SystemClock
from gateway.errors import ConfigurationError
from gateway.policy_file import LoadedPolicies, load_policies
from gateway.replay.recordings import RecordingError, join, read_recordings
from policies.schema import Policy

# Not at every start of the command line: the judge's patterns take a sixth of a second to compile.
if TYPE_CHECKING:
    from gateway.evals.forgetting.report import Report
    from gateway.evals.forgetting.run import Options
    from gateway.evals.forgetting.state import State

MODES = ("rolling", "rolling-long", "generational", "generational+recall")
_RECALL = MODES[-1]
_SECRETS = {"api_key", "api_base", "url"}


class _ModesType(click.ParamType):  # type: ignore[type-arg]
    """Names of modes, joined by commas."""

    name = "modes"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, ...]:
        if isinstance(value, tuple):
            return value
        names = tuple(dict.fromkeys(name.strip() for name in str(value).split(",")))
        unknown = [name for name in names if name not in MODES]
        if unknown:
            self.fail(f"{unknown[0]!r} is none of {', '.join(MODES)}", param, ctx)
        return names


@click.command("forgetting")
@files_argument
@click.option("--joined", is_flag=True, help="Make one conversation of all files.")
@click.option(
    "--policy",
    type=Text(),
    default="local-fold",
    show_default=True,
    help="The policy to evaluate.",
)
@click.option(
    "--backend",
    type=Text(),
    metavar="NAME",
    help="Who summarizes [the policy's first summarizer].",
)
@click.option(
    "--examiner",
    type=Text(),
    metavar="NAME",
    help="Who writes the questions, answers and grades [the same backend].",
)
@click.option(
    "--keep",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="No model at all: a summarizer that keeps this share of what it reads.",
)
@click.option(
    "--modes",
    type=_ModesType(),
    metavar="MODE,…",
    help=f"What is compared [{','.join(MODES)}].",
)
@click.option(
    "--spans", type=click.IntRange(min=1), metavar="N", help="Fold so many spans at most."
)
@click.option(
    "--questions",
    type=click.IntRange(1, 50),
    default=8,
    show_default=True,
    metavar="N",
    help="Questions about each span.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1, 100),
    default=1,
    show_default=True,
    metavar="R",
    help="Write every memory so often, each time with other seeds.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Another one draws otherwise.")
@click.option(
    "--state",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Keep everything made here; a run that was ended goes on where it was.",
)
@click.option("--fresh", is_flag=True, help="Begin the state anew.")
@click.option("--html", type=OutputFile(), metavar="FILE", help="Write the curve and its figures.")
@click.option("--svg", type=OutputFile(), metavar="FILE", help="Draw the curve.")
@policies_option
@json_option
def forgetting_command(
    files: tuple[Path, ...],
    joined: bool,
    policy: str,
    backend: str | None,
    examiner: str | None,
    keep: float | None,
    modes: tuple[str, ...] | None,
    spans: int | None,
    questions: int,
    repeats: int,
    seed: int,
    folder: Path | None,
    fresh: bool,
    html: Path | None,
    svg: Path | None,
    policies: Path | None,
    as_json: bool,
) -> None:
    """Measure what is forgotten: LoCoMo files, OpenAI message lists, SillyTavern chats.

    Each conversation is cut into spans where a live view under the policy would fold it, and its
    memory is written by the program's own recorder, judge and gist rules. A model writes questions
    about each span, sees nothing but the final memory when it answers them, and grades strictly.

    \b
    rolling              one summary, rewritten at each fold
    rolling-long         the same with four times the length
    generational         chapters stack, the older half joins a gist now and then
    generational+recall  the same, and what is found in the transcript for each question

    With --keep no model is asked: what is kept and what is answered is told by the words of
    distinctive statements. A scripted backend is examined in the same way. Ages are counted in
    spans; `where` says whether a span's chapter still stands in the stack or went into the gist.

    Ends with 1 where a backend cannot be asked any more, or nobody wrote a question.
    """
    from gateway.evals.forgetting.run import Options, fingerprint_of
    from gateway.evals.forgetting.state import open_state

    if keep is not None and (backend or examiner):
        raise click.UsageError("--keep asks no model: leave out --backend and --examiner")
    if fresh and folder is None:
        raise click.UsageError("--fresh begins a state anew: name it with --state DIR")
    conversations = _read(files, joined)
    loaded = load_policies(settings_of(policies=policies).policies, os.environ)
    chosen = _policy(loaded, policy)
    cast = _Cast(loaded, chosen, backend, examiner) if keep is None else None
    options = Options(
        policy=chosen,
        modes=_modes(chosen, modes),
        writer=cast.writer if cast else None,
        examiner=cast.examiner if cast else None,
        clock=SystemClock().monotonic,
        spans=spans,
        questions=questions,
        repeats=repeats,
        keep=keep,
        seed=seed,
        tell=lambda said: click.echo(said, err=True),
    )
    fingerprint = fingerprint_of(conversations, options, cast.people if cast else {})
    state = open_state(folder, fingerprint, fresh=fresh)
    report = _run(conversations, options, state)
    report.fingerprint = fingerprint
    report.facts = {
        "policy": policy,
        "backend": cast.writer.name if cast else None,
        "examiner": cast.examiner.name if cast and cast.examiner else "code",
        "keep": keep,
        "repeats": repeats,
        "seed": seed,
    }
    title = speakable(f"{', '.join(path.name for path in files)} under {policy}")
    draw_curve(report, title, html, svg)
    paths = {"state": state.path, "html": html, "svg": svg}
    told = {name: None if path is None else str(path) for name, path in paths.items()}
    if as_json:
        print_json({**report.as_json(), "paths": told})
    else:
        print_table(report)
    if warn(report):
        sys.exit(1)


def _read(files: Sequence[Path], joined: bool) -> list[Sequence[tuple[str, str]]]:
    try:
        recordings = read_recordings(files)
    except RecordingError as error:
        raise ConfigurationError(str(error)) from error
    if joined:
        recordings = [join(recordings)]
    return [recording.messages for recording in recordings]


def _policy(loaded: LoadedPolicies, name: str) -> Policy:
    known = loaded.file.policies
    if name not in known:
        raise ConfigurationError(
            f"there is no policy {name}; there are: {', '.join(known)}; name one with --policy"
        )
    return known[name]


def _modes(policy: Policy, wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    if policy.recall.budget:
        return wanted or MODES
    if wanted and _RECALL in wanted:
        raise ConfigurationError(f"the policy {policy.name} recalls nothing (recall.budget is 0)")
    return wanted or MODES[:-1]


class _Cast:
    """Who summarizes, and who examines: nobody where code does. people: as digests tell them
    apart; where they are, and their keys, are no part of it."""

    def __init__(
        self, loaded: LoadedPolicies, policy: Policy, backend: str | None, examiner: str | None
    ) -> None:
        # The whole program stands behind it, and no other evaluation needs that.
        from gateway.app import build_backends

        self._backends = build_backends(loaded.file, SystemClock())
        first = backend or next(iter(policy.summaries.backends), None)
        if first is None:
            raise ConfigurationError(
                f"the policy {policy.name} names no summarizer: name one with --backend, or "
                "measure without a model with --keep 0.5"
            )
        self.writer = self._find(first)
        asked = self._find(examiner or first)
        self.examiner: Backend | None = None if asked.kind == "scripted" else asked
        self.people: Mapping[str, str] = {
            "backend": _describe(loaded, self.writer.name),
            "examiner": _describe(loaded, asked.name),
        }

    def _find(self, name: str) -> Backend:
        found = self._backends.get(name)
        if found is None:
            raise ConfigurationError(
                f"there is no backend {name}; there are: {', '.join(self._backends)}"
            )
        if found.off_reason is not None:
            raise ConfigurationError(f"the backend {name} is off: {found.off_reason}")
        return found


def _describe(loaded: LoadedPolicies, name: str) -> str:
    config = loaded.file.backends[name]
    return f"{name} {config.kind} {config.model_dump_json(exclude=_SECRETS)}"


def _run(
    conversations: Sequence[Sequence[tuple[str, str]]], options: Options, state: State
) -> Report:
    """The report; ends the program with 1 where a backend cannot be asked any more."""
    from gateway.evals.forgetting.state import RunStopped

    try:
        return asyncio.run(_play(conversations, options, state))
    except RunStopped as error:
        click.echo(f"foldgate: {error}{_where_kept(state)}", err=True)
        sys.exit(1)
    finally:
        state.close()


async def _play(
    conversations: Sequence[Sequence[tuple[str, str]]], options: Options, state: State
) -> Report:
    from gateway.evals.forgetting.run import run

    backends = {id(b): b for b in (options.writer, options.examiner) if b is not None}.values()
    try:
        for backend in backends:
            await backend.start()
        return await run(conversations, options, state)
    finally:
        for backend in backends:
            await backend.aclose()


def _where_kept(state: State) -> str:
    if state.path is None:
        return ". Nothing was kept: with --state DIR a run goes on where it was"
    return f". What was made is kept in {state.path.parent}: the same command goes on from there"
