"""Plays recordings through the program: real store, real flows, real folding, real judge.

A turn every 20 virtual seconds; the chat answers what was recorded, the summarizer is the
scripted one, late (30 s) and refusing (11 %) as it is by default. Nothing waits, nothing leaves
the machine.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, func, select

from gateway.backends.base import Call
from gateway.backends.scripted import Scripted
from gateway.errors import ConfigurationError
from gateway.flows.context import Context
from gateway.flows.reconcile import prepare
from gateway.flows.turn import Turn, open_turn
from gateway.flows.upkeep import Upkeep
from gateway.jobs import queue
from gateway.policy_file import LoadedPolicies
from gateway.replay.measure import PromptMeter, Totals, TurnRecord, count_lost
from gateway.replay.recordings import RecordedTurn, Recording, split_turns
from gateway.replay.stage import InlineStore, VirtualBells, VirtualClock, VirtualLoop
from gateway.settings import Settings
from gateway.store import memory
from gateway.store.memory import gists, versions
from gateway.wire.requests import ChatRequest
from policies.schema import Backend, Model, ScriptedBackend, Tier

P = ParamSpec("P")
T = TypeVar("T")

TURN_SECONDS = 20.0
SUMMARY_SECONDS = 30.0
_CONVERSATION = "replay"
_MODEL = "replay"
_END = "(The recording ends here.)"


@dataclass(frozen=True, slots=True)
class Options:
    """What is played and how. refusals: percent of summary calls that refuse."""

    policies: LoadedPolicies
    policy: str = "local-fold"
    backend: str | None = None
    recall: bool = True
    refusals: float = 11.0
    seed: int = 7
    watch: Callable[[TurnRecord], None] = field(default=lambda record: None)


def play(recordings: list[Recording], options: Options) -> tuple[Totals, list[TurnRecord]]:
    """Play recordings one after another, each as a conversation of its own; sums over all.

    Raises ConfigurationError for a policy or backend that the file does not have.
    """
    totals, records = Totals(), list[TurnRecord]()
    policies, backend = _cast(options)
    for recording in recordings:
        with _quiet_folder() as folder:
            _on_virtual_loop(
                _Run(recording, options, policies, backend, folder).play, totals, records
            )
    return totals, records


@contextmanager
def _quiet_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="foldgate-replay-") as name:
        yield Path(name)


def _on_virtual_loop(
    main: Callable[Concatenate[VirtualLoop, P], Coroutine[Any, Any, None]],
    *args: P.args,
    **kwargs: P.kwargs,
) -> None:
    loop = VirtualLoop()
    # The runner also ends what main cancelled and did not wait for.
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(main(loop, *args, **kwargs))


def _cast(options: Options) -> tuple[LoadedPolicies, str]:
    """The policy file with every backend played by the scripted one, and who plays the chat."""
    file = options.policies.file
    if options.policy not in file.policies:
        raise ConfigurationError(
            f"There is no policy {options.policy!r}; there are: {', '.join(file.policies)}"
        )
    backend = options.backend or _backend_of(options)
    if backend not in file.backends:
        raise ConfigurationError(
            f"There is no backend {backend!r}; there are: {', '.join(file.backends)}"
        )
    policy = file.policies[options.policy]
    if not options.recall:
        policy = policy.model_copy(
            update={"recall": policy.recall.model_copy(update={"budget": 0})}
        )
    played = {name: _understudy(config, options) for name, config in file.backends.items()}
    model = Model(tiers=(Tier(backend=backend, policy=options.policy),))
    changed = file.model_copy(
        update={
            "backends": played,
            "policies": {**file.policies, options.policy: policy},
            "models": {**file.models, _MODEL: model},
        }
    )
    return replace(options.policies, file=changed), backend


def _backend_of(options: Options) -> str:
    """The first backend that some model runs under this policy; else the file's first."""
    file = options.policies.file
    for model in file.models.values():
        for tier in model.tiers:
            if tier.policy == options.policy:
                return tier.backend
    return next(iter(file.backends))


def _understudy(config: Backend, options: Options) -> ScriptedBackend:
    return ScriptedBackend(
        window=config.window,
        seed=options.seed,
        refusals=options.refusals,
        truncations=0.0,
        latency=0.0,
        image_chars=config.image_chars,
        strict_roles=config.strict_roles,
        max_output=config.max_output,
    )


class _Run:
    """One conversation on the stage."""

    def __init__(
        self,
        recording: Recording,
        options: Options,
        policies: LoadedPolicies,
        backend: str,
        folder: Path,
    ) -> None:
        self._turns = split_turns(recording.messages)
        self._options = options
        self._policies = policies
        self._backend = backend
        self._store = InlineStore(f"sqlite:///{folder / 'replay.db'}", synchronous="OFF")
        self._prompt: tuple[bytes, ...] = ()
        self._reply = _END
        self._meter = PromptMeter()
        self._transcript: list[str] = []
        self._last_fold: int | None = None

    async def play(self, loop: VirtualLoop, totals: Totals, records: list[TurnRecord]) -> None:
        clock = VirtualClock(loop)
        with closing(self._store):
            self._store.open()
            ctx = self._context(clock)
            upkeep = Upkeep(ctx, offload=_inline)
            bells = VirtualBells(clock, upkeep.run_due, self._next_due)
            ctx.ring = bells.ring
            ctx.quiet = upkeep.notice_quiet
            for number, turn in enumerate(self._turns, 1):
                await clock.sleep(TURN_SECONDS)
                record = await self._play_turn(ctx, number, turn)
                records.append(record)
                totals.add(record)
                totals.lost_messages += record.lost
                self._options.watch(record)
            await upkeep.drain(0.0)
            await bells.stop()
            totals.messages += len(self._transcript)
            totals.floor_chars += sum(map(len, self._transcript))
            totals.rejected += sum(upkeep.counts.rejected.values())
            self._store.reading(_count_rows, totals)

    def _context(self, clock: VirtualClock) -> Context:
        config = self._policies.file.backends
        backends = {}
        for name, understudy in config.items():
            assert isinstance(understudy, ScriptedBackend)
            backends[name] = Scripted(
                name,
                understudy,
                script=self._script,
                summary_latency=SUMMARY_SECONDS,
                sleep=clock.sleep,
                now=lambda: clock.now_ms() / 1000,
            )
        return Context(Settings(), clock, self._store, self._policies, backends, "replay")

    def _script(self, call: Call) -> str:
        self._prompt = call.messages
        return self._reply

    async def _next_due(self) -> int | None:
        return await self._store.read(queue.next_due)

    async def _play_turn(self, ctx: Context, number: int, turn: RecordedTurn) -> TurnRecord:
        self._reply = _END if turn.reply is None else turn.reply
        request = ChatRequest(
            model=_MODEL,
            messages=[{"role": role, "content": text} for role, text in turn.sent],
            stream=True,
            include_usage=False,
            max_tokens=None,
        )
        incoming = prepare(request, owner="local", conversation=_CONVERSATION)
        running = await open_turn(ctx, incoming, f"replay-{number}")
        async for _ in running.stream():
            pass
        self._transcript += [text for _, text in turn.sent]
        record = self._measure(number, running)
        if turn.reply is not None:
            self._transcript.append(turn.reply)
        return record

    def _measure(self, number: int, running: Turn) -> TurnRecord:
        begun = running.prepared.begun
        prompt_chars, reread = self._meter.measure(self._prompt)
        verbatim = self._prompt[len(begun.memory) :]
        covered = self._store.reading(_covered, begun.fold) if begun.fold else []
        fold = begun.fold.pk if begun.fold else None
        folded, self._last_fold = fold != self._last_fold, fold
        return TurnRecord(
            number=number,
            prompt_chars=prompt_chars,
            reread_chars=reread,
            view=begun.view_kind,
            folded=folded,
            lost=count_lost(
                self._transcript, [self._meter.text(message) for message in verbatim], covered
            ),
        )


async def _inline(function: Callable[..., T], *args: Any) -> T:
    return function(*args)


def _covered(connection: Connection, fold: memory.FoldRow) -> list[tuple[int, int]]:
    """The spans that a fold's memory tells of, as depths."""
    spans = [
        (version.first_depth, version.last_depth)
        for version in memory.versions_by_pk(connection, fold.memory)
    ]
    if fold.gist_pk is not None and (gist := memory.gist_by_pk(connection, fold.gist_pk)):
        spans.append((1, gist.last_depth))
    return spans


def _count_rows(connection: Connection, totals: Totals) -> None:
    def count(statement: Any) -> int:
        return int(connection.execute(statement).scalar() or 0)

    totals.chapters += count(select(func.count(func.distinct(versions.c.chapter_pk))))
    totals.stand_ins += count(
        select(func.count()).select_from(versions).where(versions.c.origin == "stand-in")
    )
    totals.majors += count(select(func.count()).select_from(gists))
