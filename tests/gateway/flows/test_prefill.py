"""A folded prompt is read in ahead, byte for byte, and whoever comes first ends it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from gateway.backends.base import Call
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows import prefill as module
from gateway.flows.prefill import DUMMY, write_ahead
from gateway.flows.prefixes import Habits, mark_of
from gateway.flows.reroute import reroute
from gateway.prompts.view import AROUND, Tail, TailMessage, encode_notes
from gateway.wire.json_text import dump_bytes, loads
from tests.gateway.house import POLICIES, House, Model, Say, assistant, call_of, system, tool, user


class Reader(Model):
    """A model that reads prompts in ahead. outcomes: of its readings, then True for ever; hold is
    awaited in each."""

    can_prefill = True

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.read: list[Call] = []
        self.outcomes: list[bool | UpstreamFault] = []
        self.hold: Callable[[], Any] = lambda: None

    async def prefill(self, call: Call) -> bool:
        self.read.append(call)
        if (found := self.hold()) is not None:
            await found
        outcome = self.outcomes.pop(0) if self.outcomes else True
        if isinstance(outcome, UpstreamFault):
            raise outcome
        return outcome


def furnish(folder: Path, policies: str = POLICIES) -> tuple[House, Reader]:
    house = House(folder, policies)
    reader = Reader("local")
    house.models["local"] = reader
    house.restart()
    return house, reader


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[tuple[House, Reader]]:
    house, reader = furnish(tmp_path)
    yield house, reader
    await house.ctx.prefills.aclose()
    house.store.close()


async def grow(house: House) -> None:
    """Every chapter that is waited for is written, and what follows from it is done."""
    house.write_chapters()
    for (pk,) in house.rows("SELECT pk FROM conversations"):
        house.ctx.prefills.memory_grew(pk)
    await house.ctx.prefills.settle()


def line(number: int) -> str:
    """About 340 characters; with a reply a turn is about 350."""
    return (f"{number} " + "Le phare s'éteint. 灯台の火が消えた。 " * 20)[:341]


async def talk_into_debt(house: House, **more: Any) -> None:
    """Nine turns of 350 characters: the ninth passes 3,000 and asks for a chapter."""
    for number in range(9):
        await house.say(line(number), id="c", **more)
    assert house.pending()
    await house.ctx.prefills.settle()


async def test_the_next_prompt_is_read_in_once_its_chapter_is_there(
    place: tuple[House, Reader],
) -> None:
    house, reader = place
    await talk_into_debt(house)
    assert reader.read == [], "its chapter is not there yet"
    await grow(house)
    (call,) = reader.read
    assert (call.purpose, call.max_tokens) == ("prefill", 1)
    assert call.conversation == house.one("SELECT id FROM conversations")
    assert loads(call.messages[-1]) == user(DUMMY)
    assert house.folds() == [], "nothing is written"
    said = await house.say(line(9), id="c")
    assert said.view == "folded"
    assert said.bytes[:-1] == call.messages[:-1]


async def test_a_chapter_that_is_stored_in_the_moment_a_reading_ends_is_read_in_too(
    place: tuple[House, Reader],
) -> None:
    """After the reading looked for the last time whether there is more, and before it is over."""
    house, reader = place
    await talk_into_debt(house)
    (conversation,) = house.rows("SELECT pk FROM conversations")
    (chapter, *_) = house.pending()

    def store_another() -> None:
        house.write(chapter[0], conversation[0], "灯台の火が消えた。")
        house.ctx.prefills.memory_grew(conversation[0])

    def at_the_end() -> None:
        reader.hold = lambda: None
        asyncio.get_running_loop().call_soon(store_another)

    reader.hold = at_the_end
    await grow(house)
    assert len(reader.read) == 2
    said = await house.say(line(9), id="c")
    assert said.bytes[:-1] == reader.read[-1].messages[:-1]


async def test_what_was_read_in_is_not_read_again(place: tuple[House, Reader]) -> None:
    house, reader = place
    await talk_into_debt(house)
    await grow(house)
    await grow(house)
    assert len(reader.read) == 1


async def test_chapters_that_were_ready_when_the_turn_ended_are_read_in_then(
    place: tuple[House, Reader],
) -> None:
    """The chapter came while the reply was written."""
    house, reader = place
    await talk_into_debt(house)
    turn = await house.open(user("And then?"), id="c")
    house.write_chapters()
    await house.relay(turn)
    await house.ctx.prefills.settle()
    (call,) = reader.read
    said = await house.say(line(10), id="c")
    assert said.bytes[:-1] == call.messages[:-1]


async def test_who_answers_within_a_breath_has_nothing_looked_for(
    place: tuple[House, Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that sends turn upon turn would wait for looks that come too late for it."""
    house, reader = place
    await talk_into_debt(house)
    breaths: list[float] = []

    async def hold(seconds: float) -> None:
        breaths.append(seconds)
        await asyncio.Event().wait()

    def look(*_: Any) -> None:
        raise AssertionError("nothing is looked for")

    monkeypatch.setattr(house.clock, "sleep", hold)
    monkeypatch.setattr(module, "foresee_prompt", look)
    for number in (9, 10):
        await house.say(line(number), id="c")
        await asyncio.sleep(0)
    assert breaths == [module.BREATH_SECONDS] * 2 and reader.read == []


async def test_a_reply_that_was_stopped_is_a_turn_too(place: tuple[House, Reader]) -> None:
    house, reader = place
    await talk_into_debt(house)
    turn = await house.open(user("And then?"), id="c")
    house.write_chapters()
    stream = turn.stream()
    await anext(stream)
    await anext(stream)
    await stream.aclose()
    await house.ctx.prefills.settle()
    (call,) = reader.read
    said = await house.say(line(10), id="c")
    assert said.bytes[:-1] == call.messages[:-1]


async def test_a_turn_that_arrives_ends_it(place: tuple[House, Reader]) -> None:
    house, reader = place
    await talk_into_debt(house)
    began = asyncio.Event()

    async def wait() -> None:
        began.set()
        await asyncio.Event().wait()

    reader.hold = wait
    house.write_chapters()
    house.ctx.prefills.memory_grew(house.one("SELECT pk FROM conversations"))
    await began.wait()
    reading = next(iter(house.ctx.prefills._tasks.values()))
    said = await house.say(line(9), id="c")
    assert said.view == "folded"
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert dropped(house) == 1


def dropped(house: House) -> float:
    """Readings that were counted as dropped."""
    found = house.ctx.meters.registry.get_sample_value(
        "foldgate_prefills_total", {"backend": "local", "outcome": "dropped"}
    )
    return found or 0.0


async def test_what_others_broke_off_is_taken_up_again(place: tuple[House, Reader]) -> None:
    house, reader = place
    await talk_into_debt(house)
    reader.outcomes = [False, False]
    await grow(house)
    assert len(reader.read) == 3
    assert len({call.messages for call in reader.read}) == 1
    await grow(house)
    assert len(reader.read) == 3, "it is done"


async def test_it_is_not_tried_for_ever(
    place: tuple[House, Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_TRIES", 2)
    house, reader = place
    await talk_into_debt(house)
    reader.outcomes = [False] * 9
    await grow(house)
    assert len(reader.read) == 2


async def test_a_fault_is_no_more_than_a_prompt_that_is_not_there(
    place: tuple[House, Reader],
) -> None:
    house, reader = place
    await talk_into_debt(house)
    reader.outcomes = [UpstreamFault(FaultKind.UNAVAILABLE, "The backend local is gone")]
    await grow(house)
    said = await house.say(line(9), id="c")
    assert said.view == "folded"


async def test_nothing_is_remembered_where_no_backend_can(tmp_path: Path) -> None:
    house = House(tmp_path)
    await talk_into_debt(house)
    await grow(house)
    assert not house.ctx.prefills._newest
    house.store.close()


async def test_a_tool_call_is_no_place_for_a_person(place: tuple[House, Reader]) -> None:
    house, reader = place
    await talk_into_debt(house)
    calls = {"role": "assistant", "content": "I look.", "tool_calls": [call_of("t1")]}
    reader.answers = [[{"choices": [{"index": 0, "delta": calls, "finish_reason": "tool_calls"}]}]]
    await house.say("Look it up.", id="c")
    await grow(house)
    assert reader.read == []
    await house.say(tool("t1", "nothing"), id="c")
    await house.ctx.prefills.settle()
    assert len(reader.read) == 1


async def test_a_move_is_read_in_where_it_leads(place: tuple[House, Reader]) -> None:
    """From the cloud back to this machine: the first local prompt is there before it is asked."""
    house, reader = place
    reader.healthy = False
    for number in range(20):
        said = await house.say(line(number), id="c", model="both")
    assert said.turn.prepared.setting.backend == "cloud"
    reader.healthy = True
    house.store.writing(lambda connection: connection.execute(ROUTE))
    said = await house.say(line(20), id="c", model="both")
    assert (said.turn.prepared.begun.rule, reader.read) == ("migrating", [])
    for _ in range(4):  # the gist of many chapters follows them
        await grow(house)
        house.write_gists()
    await grow(house)
    said = await house.say(line(21), id="c", model="both")
    assert said.turn.prepared.setting.backend == "local"
    assert house.folds()[-1][3] == "migration"
    assert said.bytes[:-1] == reader.read[-1].messages[:-1]


@pytest.mark.parametrize("turns", [6, 20])
async def test_a_route_chosen_by_hand_is_read_in_where_it_leads(
    place: tuple[House, Reader], turns: int
) -> None:
    """6 turns of 350 characters go as they are, 20 are folded first."""
    house, reader = place
    reader.healthy = False
    for number in range(turns):
        await house.say(line(number), id="c", model="both")
    reader.healthy = True
    await reroute(house.ctx, lambda _: house.conversation("c"), "local")
    await house.ctx.prefills.settle()
    for _ in range(4):
        await grow(house)
        house.write_gists()
    await grow(house)
    said = await house.say(line(turns), id="c", model="both")
    assert said.turn.prepared.begun.rule == "route"
    assert (said.view == "folded") == (turns == 20)
    assert said.bytes[:-1] == reader.read[-1].messages[:-1]


async def test_a_move_to_where_nothing_is_read_ahead_reads_nothing(
    place: tuple[House, Reader],
) -> None:
    house, reader = place
    await talk_into_debt(house, model="both")
    await reroute(house.ctx, lambda _: house.conversation("c"), "cloud")
    await grow(house)
    assert reader.read == []


ROUTE = text("UPDATE conversations SET route = 'local'")


async def test_a_deleted_conversation_is_not_read(place: tuple[House, Reader]) -> None:
    house, reader = place
    await talk_into_debt(house)
    house.write_chapters()
    pk = house.one("SELECT pk FROM conversations")
    house.ctx.prefills.forget(pk)
    house.ctx.prefills.memory_grew(pk)
    await house.ctx.prefills.settle()
    assert reader.read == []


async def test_what_was_said_elsewhere_meanwhile_ends_it(place: tuple[House, Reader]) -> None:
    """Another program on the same database took a turn: what is remembered is not the newest."""
    house, reader = place
    await talk_into_debt(house)
    other = House.__new__(House)
    other.__dict__.update(house.__dict__)
    other.restart()
    await other.say("From elsewhere.", id="c")
    await other.ctx.prefills.settle()
    await grow(house)
    assert reader.read == []


async def test_those_remembered_are_bounded(
    place: tuple[House, Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_KNOWN", 2)
    house, _ = place
    for name in ("a", "b", "c"):
        for number in range(9):
            await house.say(line(number), id=name)
    assert len(house.ctx.prefills._newest) == 2


@pytest.mark.parametrize(
    ("seen", "kept"),
    [
        # the text around message 7 is gone from there in the next turn, or still there: not known
        ("new", 6),
        ("moving", 8),  # in the next turn it stands around message 9
        ("steady", 8),
    ],
)
def test_what_a_text_around_a_message_leaves_sure(seen: str, kept: int) -> None:
    tail = Tail()
    for depth in range(1, 9):
        role = "user" if depth % 2 else "assistant"
        raw = dump_bytes({"role": role, "content": f"m{depth} 灯"}).decode()
        tail.add(TailMessage(depth, role, raw, None))
    around: list[tuple[int, Say]] = [(7, {"role": "user", "content": "資料", AROUND: "before"})]
    ((_, text),) = encode_notes(around)
    note = frozenset({(7, mark_of(text))})
    nothing: frozenset[tuple[int, int]] = frozenset()
    habits = Habits(
        steady=note if seen == "steady" else nothing,
        moving=note if seen == "moving" else nothing,
    )
    ahead = write_ahead(around, [], tail, border=0, strict_roles=False, habits=habits, shift=2)
    told = [loads(message)["content"] for message in ahead]
    assert told[-1] == DUMMY
    assert len(told) == kept + 1
    assert ("資料m7 灯" in told) == (seen == "steady")


# -- the same bytes ------------------------------------------------------------------------------

WORDS = [
    "The lamp burns low and the rope is wet",
    "灯台の火が消えた夜の話をしよう",
    "旧书店的第三个书架后面",
    "그 사람이 남긴 쪽지",
    "Он ждал до полуночи у моста",
    "🗺️🌊 ¿quién vive allí?",
]
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


@dataclass(frozen=True)
class Habit:
    """How a client talks: resends its history or sends only what is new; a system text in front;
    a note that stands `deep` messages before the newest one (moves), its words perhaps changing
    every turn, and one that was said behind the first `fixed` messages (stays)."""

    resends: bool
    has_system: bool
    deep: int | None
    fixed: int | None
    changing: bool
    tools: bool
    strict: bool


HABITS = st.builds(
    Habit,
    resends=st.booleans(),
    has_system=st.booleans(),
    deep=st.none() | st.integers(0, 6),
    fixed=st.none() | st.integers(1, 15).map(lambda turns: 2 * turns),
    changing=st.booleans(),
    tools=st.booleans(),
    strict=st.booleans(),
)


def tell(history: list[Say], habit: Habit, turn: int) -> list[Say]:
    """What this client sends of its history for its turn."""
    if not habit.resends:
        return [system("You are Wren. 灯台守です。"), history[-1]][not habit.has_system :]
    sent, notes = list(history), []
    if habit.deep is not None:
        words = f"Be brief. {turn if habit.changing else ''} 短く。"
        notes.append((max(1, len(sent) - 1 - habit.deep), words))
    if habit.fixed is not None and habit.fixed < len(history):
        notes.append((habit.fixed, "A storm rises. Буря."))
    for place, words in sorted(notes, reverse=True):
        sent.insert(place, system(words))
    return [system("You are Wren. 灯台守です。"), *sent] if habit.has_system else sent


@contextmanager
def furnished(habit: Habit) -> Iterator[tuple[House, Reader]]:
    strict = "true" if habit.strict else "false"
    policies = POLICIES.replace(
        "local: {kind: scripted}", f"local: {{kind: scripted, strict_roles: {strict}}}"
    )
    with tempfile.TemporaryDirectory() as folder:
        house, reader = furnish(Path(folder), policies)
        try:
            yield house, reader
        finally:
            house.store.close()


async def play(habit: Habit, turns: list[tuple[int, int, int, str]]) -> int:
    """The conversation; how many prompts were read in ahead and then met."""
    met = 0
    history: list[Say] = []
    waiting: Call | None = None
    more: dict[str, Any] = {"tools": TOOLS} if habit.tools else {}
    with furnished(habit) as (house, reader):
        for number, (words, size, answer, event) in enumerate(turns):
            history.append(user(f"{number} " + (WORDS[words] + " ") * size))
            folds, readings = len(house.folds()), len(reader.read)
            reader.answers = [f"r{number} " + (WORDS[-1 - words] + " ") * answer]
            said = await house.say(*tell(history, habit, number), id="c", **more)
            history.append(assistant(said.text))
            kinds = {kind for _, _, _, kind, _ in house.folds()[folds:]}
            assert waiting is None or kinds, "what was read in is what comes"
            assert waiting is not None or "fold" not in kinds, "no fold comes unread"
            if waiting is not None and kinds == {"fold"}:
                check(said.bytes, waiting.messages, habit)
                met += 1
            await house.ctx.prefills.settle()
            if event != "nothing":
                await grow(house)
            if event == "gists":
                house.write_gists()
                await grow(house)
            waiting = reader.read[-1] if len(reader.read) > readings else None
    return met


def check(real: tuple[bytes, ...], read: tuple[bytes, ...], habit: Habit) -> None:
    *known, dummy = read
    assert real[: len(known)] == tuple(known)
    assert DUMMY.encode() in dummy
    if not habit.resends or (habit.deep is None and habit.fixed is None):
        assert len(real) == len(read), "all of it but the newest message"


TURNS = st.lists(
    st.tuples(
        st.integers(0, len(WORDS) - 1),
        st.integers(1, 14),
        st.integers(0, 8),
        st.sampled_from(["chapters", "chapters", "gists", "nothing"]),
    ),
    min_size=12,
    max_size=40,
)
PLAIN = Habit(False, True, None, None, False, True, False)


@settings(max_examples=25)
@given(HABITS, TURNS)
@example(PLAIN, [(n % 6, 9, 4, "chapters") for n in range(30)])
@example(
    Habit(True, True, 4, 4, False, True, False), [(n % 6, 9, 4, "chapters") for n in range(30)]
)
@example(
    Habit(True, False, 6, 26, False, False, False),
    [(0, 1, 8, "chapters"), *[(0, 1, 0, "chapters")] * 5, *[(0, 12, 0, "chapters")] * 11],
)
def test_what_is_read_in_is_the_next_prompt_up_to_its_newest_message(
    habit: Habit, turns: list[tuple[int, int, int, str]]
) -> None:
    asyncio.run(play(habit, turns))


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("deep", [None, 0, 4])
def test_folds_are_met_with_every_kind_of_note(strict: bool, deep: int | None) -> None:
    """The property says nothing where nothing is read in: here it is, several times."""
    habit = Habit(True, True, deep, 2, False, True, strict)
    assert asyncio.run(play(habit, [(n % 6, 9, 4, "chapters") for n in range(40)])) >= 3
