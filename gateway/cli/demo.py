"""`foldgate demo`: a conversation far longer than its model's window, on a real llama-server."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import partial
from pathlib import Path

import click

from gateway.cli.demo_report import is_sound, measure, write_table
from gateway.cli.options import json_option, print_json
from gateway.clock import SystemClock
from gateway.demo import script
from gateway.demo.console import LEGEND, Console, Say
from gateway.demo.gateway_server import GatewayFailed
from gateway.demo.llama import LlamaFailed, default_cache, fetch_llama
from gateway.demo.player import CONVERSATION, WINDOWS, Player, PlayFailed
from gateway.demo.policy import MODEL, POLICY, WINDOW
from gateway.demo.snapshot import take_snapshot
from gateway.demo.stage import Stage, Stopped, put_up, run
from gateway.errors import ConfigurationError
from gateway.policy_file import load_policies
from gateway.replay.measure import TurnRecord
from gateway.replay.plot import draw

_OUT = Path("demo-out")
_PICTURE = "conversation.svg"
_RULE = "─" * 96


@click.command("demo")
@click.option("--once", is_flag=True, help="End after the conversation, with both servers.")
@click.option(
    "--turns",
    type=click.IntRange(1, 200),
    metavar="N",
    help=f"So many turns [until {WINDOWS} windows of {WINDOW:,} tokens are said].",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for database, policies, logs and picture [a new one in ./demo-out].",
)
@json_option
def demo_command(once: bool, turns: int | None, out: Path | None, as_json: bool) -> None:
    """Watch a long conversation fold on a real llama-server.

    Fetches SmolLM2-135M once (98 MB, hash-checked), starts llama-server and the gateway on free
    loopback ports, and lets a scripted person talk over the OpenAI client. Exit 0 where no message
    was lost and the window cut no reply, 1 otherwise.
    """
    say: Say = partial(click.echo, err=as_json)
    signal.signal(signal.SIGTERM, _end_plainly)
    try:
        code = _perform(say, once=once, turns=turns, out=out, as_json=as_json)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    except Stopped as end:
        code = 128 + end.number
    except (LlamaFailed, GatewayFailed, PlayFailed) as failure:
        click.echo(f"foldgate: {failure}", err=True)
        code = 1
    sys.exit(code)


def _end_plainly(number: int, _frame: object) -> None:
    """While nothing runs yet but the fetch."""
    raise Stopped(number)


def _perform(say: Say, *, once: bool, turns: int | None, out: Path | None, as_json: bool) -> int:
    say(f"A conversation of {WINDOWS} windows, through Foldgate, with a real model on this machine")
    say(_RULE)
    install = fetch_llama(default_cache(os.environ), say)
    folder = _make_folder(out)
    say(f"folder: {folder}")
    show = _Show(say, folder, turns, once=once, as_json=as_json)
    try:
        return run(show.run(partial(put_up, install, folder)))
    except Stopped:
        say("\nstopped: both servers are down, nothing runs on")
        if show.code is None:
            raise
        return show.code


def _make_folder(out: Path | None) -> Path:
    """The named folder, or a new one. ConfigurationError where it cannot be or is in use."""
    try:
        if out is None:
            _OUT.mkdir(exist_ok=True)
            stamp = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S-")
            return Path(tempfile.mkdtemp(prefix=stamp, dir=_OUT))
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigurationError(f"no folder can be made there: {error}; see --out") from error
    if (out / "foldgate.db").exists():
        raise ConfigurationError(f"{out} holds an earlier demonstration; name another folder")
    return out


class _Show:
    """The demonstration from the start of its servers to their end."""

    def __init__(
        self, say: Say, folder: Path, turns: int | None, *, once: bool, as_json: bool
    ) -> None:
        self._say = say
        self._folder = folder
        self._turns = turns
        self._once = once
        self._as_json = as_json
        self._clock = SystemClock()
        self.code: int | None = None
        """The exit code, once the conversation is over."""

    async def run(self, stage_of: Callable[[], AbstractAsyncContextManager[Stage]]) -> int:
        """The exit code. A signal after the conversation is the ordinary end."""
        began = self._clock.monotonic()
        self._say("starting llama-server and the gateway …")
        async with stage_of() as stage:
            self._introduce(stage, self._clock.monotonic() - began)
            try:
                is_good = await self._play(stage)
            except Exception:
                self._show_logs(stage)
                raise
            self.code = 0 if is_good else 1
            if not self._once:
                await self._stay(stage)
        return self.code

    def _introduce(self, stage: Stage, seconds: float) -> None:
        say = self._say
        say(f"both are ready after {seconds:.1f} s")
        say(
            f"  llama-server   {stage.llama.url}     {stage.llama.model_name}, "
            f"{WINDOW:,} tokens a slot"
        )
        say(f"  gateway        {stage.gateway.url}/v1  model: {MODEL}")
        say(_RULE)
        say(LEGEND)

    async def _play(self, stage: Stage) -> bool:
        """The conversation and its report; whether all is well."""
        player = Player(
            client=stage.client,
            llama_url=stage.llama.url,
            window=WINDOW,
            relay=stage.relay,
            store=stage.store,
            clock=self._clock,
            watcher=Console(self._say, WINDOW),
            turns=self._turns,
        )
        began = self._clock.monotonic()
        turns = await player.play(script.messages())
        seconds = self._clock.monotonic() - began
        stage.relay.is_recording = False
        figures, records = measure(turns, await stage.store.read(take_snapshot), WINDOW)
        picture = self._draw(records)
        tokens = turns[-1].conversation_tokens
        self._say(f"\n{_RULE}\n{write_table(figures, tokens, seconds)}\n")
        self._say(f"picture   {picture}")
        self._say(f"prompts   {self._folder / 'prompts.jsonl'}")
        if self._as_json:
            print_json(figures)
        return is_sound(figures)

    def _draw(self, records: Sequence[TurnRecord]) -> Path:
        loaded = load_policies(self._folder / "policies.yaml", os.environ)
        view = loaded.file.policies[POLICY].view
        title = f"{len(records)} turns in a window of {WINDOW:,} tokens"
        picture = self._folder / _PICTURE
        svg = draw(records, title=title, start=view.start, ceiling=view.ceiling)
        picture.write_text(svg, encoding="utf-8")
        return picture

    async def _stay(self, stage: Stage) -> None:
        """Leave the gateway to whoever is there, until Ctrl-C or until a server ends."""
        self._say(f"database  {self._folder / 'foldgate.db'}")
        self._say(
            "\nThe gateway stays up until Ctrl-C. Ask it yourself, in the same conversation:\n"
        )
        self._say(_curl(stage.gateway.url))
        ended = await stage.until_one_ends()
        self._show_logs(stage)
        raise PlayFailed(f"{ended} has ended")

    def _show_logs(self, stage: Stage) -> None:
        for name, tail in (
            ("llama-server.log", stage.llama.log_tail()),
            ("gateway.log", stage.gateway.log_tail()),
        ):
            click.echo(f"\nthe end of {self._folder / name}:\n{tail}", err=True)


def _curl(url: str) -> str:
    """A command for a POSIX shell: only the newest message, the conversation by its id."""
    body = {
        "model": MODEL,
        "stream": True,
        "max_tokens": 60,
        "messages": [{"role": "user", "content": "Who had taken volume seven?"}],
    }
    return (
        f"curl -N {url}/v1/chat/completions \\\n"
        f"  -H 'Content-Type: application/json' -H 'X-Conversation-Id: {CONVERSATION}' \\\n"
        f"  -d '{json.dumps(body)}'"
    )
