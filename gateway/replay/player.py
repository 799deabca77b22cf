"""Plays recordings through the program: real store, real flows, real folding, real judge.

A turn every 20 virtual seconds; the chat answers what was recorded, the summarizer is the
scripted one, late (30 s) and refusing (11 %) as it is by default. Nothing waits, nothing leaves
the machine.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, func, select

from gateway.backends.base import Call
from gateway.backends.scripted import Scripted
from gateway.flows.context import Context
from gateway.flows.incoming import prepare
from gateway.flows.reroute import reroute
from gateway.flows.states import sizes
from gateway.flows.turn import Turn, open_turn
from gateway.flows.upkeep import Upkeep
from gateway.jobs import queue
from gateway.policy_file import LoadedPolicies
from gateway.prompts.notes import own_words
from gateway.replay.cast import MODEL, Cast, Wish, cast
from gateway.replay.measure import PromptMeter, Totals, TurnRecord, count_lost
from gateway.replay.recordings import RecordedTurn, Recording, split_turns
from gateway.replay.stage import InlineStore, VirtualBells, VirtualClock, VirtualLoop
from gateway.replay.switches import Switch, Switched, spans_between
from gateway.settings import Settings
from gateway.store import chapter_rows, fold_rows, gist_rows, transcript
from gateway.store.chapter_rows import versions
from gateway.store.fold_rows import FoldRow
from gateway.store.gist_rows import gists
from gateway.store.transcript import ConversationRow
from gateway.wire.requests import ChatRequest
from policies.schema import ScriptedBackend

P = ParamSpec("P")
T = TypeVar("T")

TURN_SECONDS = 20.0
SUMMARY_SECONDS = 30.0
_CONVERSATION = "replay"
_OWNER = "local"
_END = "(The recording ends here.)"


@dataclass(frozen=True, slots=True)
class Options:
    """What is played and how. refusals: percent of summary calls that refuse; switches: in the
    order of their characters."""

    policies: LoadedPolicies
    policy: str = "local-fold"
    backend: str | None = None
    recall: bool = True
    refusals: float = 11.0
    seed: int = 7
    switches: tuple[Switch, ...] = ()
    watch: Callable[[TurnRecord], None] = field(default=lambda record: None)


def play(recordings: list[Recording], options: Options) -> tuple[Totals, list[TurnRecord]]:
    """Play recordings one after another, each as a conversation of its own; sums over all.

    Raises ConfigurationError for a policy or backend that the file does not have.
    """
    totals, records = Totals(), list[TurnRecord]()
    wish = Wish(
        policies=[options.policy, *(switch.policy for switch in options.switches)],
        backend=options.backend,
        recall=options.recall,
        refusals=options.refusals,
        seed=options.seed,
    )
    played = cast(options.policies, wish)
    for recording in recordings:
        with _quiet_folder() as folder:
            _on_virtual_loop(_Run(recording, options, played, folder).play, totals, records)
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


class _Run:
    """One conversation on the stage."""

    def __init__(
        self,
        recording: Recording,
        options: Options,
        played: Cast,
        folder: Path,
    ) -> None:
        self._turns = split_turns(recording.messages)
        self._options = options
        self._cast = played
        self._store = InlineStore(f"sqlite:///{folder / 'replay.db'}", synchronous="OFF")
        self._prompt: tuple[bytes, ...] = ()
        self._reply = _END
        self._meters: dict[str, PromptMeter] = defaultdict(PromptMeter)
        self._transcript: list[str] = []
        self._chars = 0
        self._last_fold: dict[str, FoldRow | None] = {}
        self._ahead = list(options.switches)
        self._switched: list[Switched] = []

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
                await self._switch(ctx)
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
            if self._options.switches:
                told = [switched.as_json() for switched in self._switched]
                totals.switches = [*(totals.switches or ()), *told]
            self._store.reading(_count_rows, totals)

    def _context(self, clock: VirtualClock) -> Context:
        config = self._cast.policies.file.backends
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
        return Context(Settings(), clock, self._store, self._cast.policies, backends, "replay")

    def _script(self, call: Call) -> str:
        self._prompt = call.messages
        return self._reply

    async def _next_due(self) -> int | None:
        return await self._store.read(queue.next_due)

    async def _switch(self, ctx: Context) -> None:
        """Send the conversation where it is to go by now, as its owner would."""
        while self._ahead and self._chars >= self._ahead[0].at_chars:
            switch = self._ahead.pop(0)
            await reroute(ctx, _find_conversation, self._cast.backends[switch.policy])
            self._switched.append(Switched(switch))

    async def _play_turn(self, ctx: Context, number: int, turn: RecordedTurn) -> TurnRecord:
        self._reply = _END if turn.reply is None else turn.reply
        request = ChatRequest(
            model=MODEL,
            messages=[{"role": role, "content": text} for role, text in turn.sent],
            stream=True,
            include_usage=False,
            max_tokens=None,
        )
        incoming = prepare(request, owner=_OWNER, conversation=_CONVERSATION)
        running = await open_turn(ctx, incoming, f"replay-{number}")
        async for _ in running.stream():
            pass
        self._say(text for _, text in turn.sent)
        record = self._measure(number, running)
        if turn.reply is not None:
            self._say([turn.reply])
        return record

    def _say(self, texts: Iterable[str]) -> None:
        for text in texts:
            self._transcript.append(text)
            self._chars += len(text)

    def _measure(self, number: int, running: Turn) -> TurnRecord:
        begun, backend = running.prepared.begun, running.prepared.backend.name
        meter = self._meters[backend]
        folded = begun.fold != self._last_fold.get(backend)
        goes_on = meter.begins_with_last(self._prompt)
        prompt_chars, reread = meter.measure(self._prompt)
        behind = self._prompt[len(begun.memory) :]
        verbatim = [own_words(meter.text(message)) for message in behind]
        note = begun.recalled.note if begun.recalled else None
        covered = self._store.reading(_covered, begun.fold) if begun.fold else []
        record = TurnRecord(
            number=number,
            prompt_chars=prompt_chars,
            reread_chars=reread,
            view=begun.view_kind,
            folded=folded,
            lost=count_lost(self._transcript, verbatim, covered),
            recalled=note.chars if note else 0,
            moved=not (folded or goes_on),
        )
        self._note_switch(running, record)
        self._last_fold[backend] = begun.fold
        return record

    def _note_switch(self, running: Turn, record: TurnRecord) -> None:
        if not self._switched:
            return
        begun, switched = running.prepared.begun, self._switched[-1]
        switched.lost_messages += record.lost
        if switched.first_prompt_chars is not None:
            return
        if begun.setting.policy.name != switched.switch.policy:
            return  # it stays where it was until its view is ready
        before = self._last_fold.get(begun.setting.backend)
        depth = before.border_depth if before else 0
        pk = begun.conversation.pk
        spans = self._store.reading(spans_between, pk, depth, begun.fold)
        switched.arrive(spans, record.prompt_chars, sizes(begun.fold, begun.asked)[1])


def _find_conversation(connection: Connection) -> ConversationRow:
    owner_pk = transcript.find_owner(connection, _OWNER, "")
    assert owner_pk is not None, "a switch comes after a turn"
    found = transcript.find_conversation(connection, owner_pk, _CONVERSATION)
    assert found is not None
    return found


async def _inline(function: Callable[..., T], *args: Any) -> T:
    return function(*args)


def _covered(connection: Connection, fold: fold_rows.FoldRow) -> list[tuple[int, int]]:
    """The spans that a fold's memory tells of, as depths."""
    spans = [
        (version.first_depth, version.last_depth)
        for version in chapter_rows.versions_by_pk(connection, fold.memory)
    ]
    if fold.gist_pk is not None and (gist := gist_rows.gist_by_pk(connection, fold.gist_pk)):
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
