"""Slots between turns: given back at the start, checked, and wiped of what was deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest
import pytest_asyncio
from sqlalchemy import Connection, insert

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.erase import erase_conversation
from gateway.flows.incoming import prepare
from gateway.flows.slots import SlotWatch
from gateway.meters import Meters
from gateway.store.conversations import delete_conversation, find_anywhere, outbox
from gateway.store.transcript import ConversationRow
from gateway.store.wipes import Wipe, open_wipes, slot_owners, tell_of_emptied
from gateway.wire.json_text import dump_bytes
from gateway.wire.requests import parse_chat
from tests.gateway.house import House, user


class Care:
    """The slots of a model, as far as the watch sees them."""

    def __init__(self) -> None:
        self.cautions: tuple[str, ...] = ()
        self.found: tuple[str, ...] = ()
        self.is_checked = False
        self.when_refused = lambda: None
        self.restored: Mapping[int, str] | None = None
        self.forgotten: list[str] = []
        self.wipes = 0
        self.fault: UpstreamFault | None = None
        self.hold: asyncio.Event | None = None
        self.is_dirty = False

    def waiting(self) -> int:
        return 3

    def in_flight(self) -> int:
        return 2

    async def check(self, *, is_alone: bool = False) -> tuple[str, ...]:
        assert is_alone
        if self.fault is not None:
            raise self.fault
        self.is_checked, self.cautions = True, self.found
        return self.found

    def restore(self, owners: Mapping[int, str]) -> None:
        self.restored = dict(owners)

    def forget(self, conversation: str) -> None:
        self.forgotten.append(conversation)

    async def wipe(self) -> None:
        if self.hold is not None:
            await self.hold.wait()
        if self.fault is not None:
            raise self.fault
        self.wipes += 1


class Stopped:
    """A clock whose sleepers sleep until the test ends."""

    def now_ms(self) -> int:
        return 1_800_000_000_000

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        await asyncio.Event().wait()


@pytest.fixture
def care(house: House) -> Care:
    care = Care()
    house.local.slot_care = care
    return care


@pytest_asyncio.fixture
async def watch(house: House, care: Care) -> AsyncIterator[SlotWatch]:
    watch = SlotWatch(house.store, house.ctx.backends, Stopped())
    yield watch
    await watch.aclose()


async def settle(watch: SlotWatch) -> None:
    """Until every round that began is over."""
    for _ in range(3):
        await asyncio.sleep(0)
    while watch._rounds or len(watch._tasks) > 1:
        await asyncio.sleep(0.001)


def note(house: House, conversation: str, backend: str = "local") -> None:
    """An entry of the outbox, as a deletion leaves it."""

    def write(connection: Connection) -> None:
        row = {"conversation_id": conversation, "backend": backend, "created_ms": 1}
        connection.execute(insert(outbox), [row])

    house.store.writing(write)


async def test_each_slot_goes_back_to_whoever_was_served_there_last(
    house: House, care: Care, watch: SlotWatch
) -> None:
    slots = {"아": 0, "雨": 1, "Ж": 0}
    ids = {}
    for name, slot in slots.items():
        said = await house.say(user("hi"), id=name)
        ids[name] = said.turn.prepared.begun.conversation.id
        pk = said.turn.prepared.begun.attempt_pk

        def write(connection: Connection, pk: int = pk, slot: int = slot) -> None:
            connection.exec_driver_sql("UPDATE attempts SET slot = ? WHERE pk = ?", (slot, pk))

        house.store.writing(write)
    assert house.store.reading(slot_owners) == {"local": {0: ids["Ж"], 1: ids["雨"]}}
    await watch.start()
    assert care.restored == {0: ids["Ж"], 1: ids["雨"]}


async def test_what_was_deleted_is_forgotten_before_the_first_turn_and_then_wiped(
    house: House, care: Care, watch: SlotWatch
) -> None:
    note(house, "conv_1")
    note(house, "conv_2", backend="cloud")  # which has no slots
    note(house, "conv_3", backend="gone from the file")
    await watch.start()
    assert care.forgotten == ["conv_1"]
    await settle(watch)
    assert care.wipes == 1
    assert house.store.reading(open_wipes) == [Wipe(3, "conv_3", "gone from the file")]


async def test_a_deletion_is_wiped_at_once(house: House, care: Care, watch: SlotWatch) -> None:
    house.ctx.slots = watch
    said = await house.say(user("hi"), id="아")
    id = said.turn.prepared.begun.conversation.id
    await watch.start()
    await settle(watch)

    def find(connection: Connection) -> ConversationRow:
        found = find_anywhere(connection, id)
        assert found is not None
        return found

    gone = await erase_conversation(house.ctx, find)
    assert care.forgotten[0] == gone.id == id
    await settle(watch)
    assert house.store.reading(open_wipes) == []
    assert care.wipes == 1


async def test_a_wipe_that_fails_is_tried_again(
    house: House, care: Care, watch: SlotWatch, caplog: pytest.LogCaptureFixture
) -> None:
    note(house, "conv_1")
    care.fault = UpstreamFault(FaultKind.UNAVAILABLE, "The backend local cannot be reached")
    await watch.look()
    assert len(house.store.reading(open_wipes)) == 1
    care.is_checked = True
    await watch.look()
    assert "local holds deleted conversations still: The backend local cannot" in caplog.text
    care.fault = None
    await watch.look()
    assert house.store.reading(open_wipes) == []


async def test_what_holds_a_wipe_up_is_told_once_until_it_is_something_else(
    house: House, care: Care, watch: SlotWatch, caplog: pytest.LogCaptureFixture
) -> None:
    note(house, "conv_1")
    care.is_checked = True
    lacks = UpstreamFault(
        FaultKind.NOT_FOUND, "The backend local answered 404, asked for GET /slots: no"
    )
    gone = UpstreamFault(FaultKind.UNAVAILABLE, "The backend local cannot be reached")
    for fault in (lacks, lacks, lacks, gone, gone, lacks):
        care.fault = fault
        await watch.look()
    told = "local holds deleted conversations still: The backend local "
    assert [message for message in caplog.messages if "still" in message] == [
        f"{told}answered 404, asked for GET /slots",
        f"{told}cannot be reached",
        f"{told}answered 404, asked for GET /slots",
    ]
    care.fault = None
    await watch.look()
    assert house.store.reading(open_wipes) == []
    note(house, "conv_2")
    care.fault = lacks
    await watch.look()
    assert len([message for message in caplog.messages if "still" in message]) == 4


async def test_slots_that_a_deletion_elsewhere_made_unsure_are_wiped_too(
    house: House, care: Care, watch: SlotWatch
) -> None:
    """Else they would serve nobody for ever: no row names this backend."""
    care.is_dirty = True
    await watch.look()
    assert care.wipes == 1


async def test_a_wipe_that_waits_for_its_slot_keeps_no_other_from_being_done(
    house: House, care: Care, watch: SlotWatch
) -> None:
    await watch.start()
    await settle(watch)
    care.hold = asyncio.Event()
    note(house, "conv_1")
    watch.deleted("conv_1")
    while not watch._rounds:
        await asyncio.sleep(0)
    hold, care.hold = care.hold, None
    note(house, "conv_2")
    watch.deleted("conv_2")
    while house.store.reading(open_wipes):
        await asyncio.sleep(0.001)
    hold.set()
    await settle(watch)
    assert care.forgotten.count("conv_2") >= 1


async def test_each_caution_is_logged_once(
    house: House, care: Care, watch: SlotWatch, caplog: pytest.LogCaptureFixture
) -> None:
    care.found = ("start it with --cache-ram 0",)
    await watch.look()
    care.is_checked = False
    await watch.look()
    assert caplog.text.count("backend local: start it with --cache-ram 0") == 1
    care.found, care.is_checked = ("it has one slot",), False
    await watch.look()
    assert caplog.text.count("it has one slot") == 1


async def test_a_server_that_is_not_there_yet_is_asked_later(
    house: House, care: Care, watch: SlotWatch
) -> None:
    care.fault = UpstreamFault(FaultKind.LOADING, "loading")
    await watch.look()
    assert not care.is_checked
    care.fault = None
    await watch.look()
    assert care.is_checked


async def test_the_line_stands_in_the_metrics(house: House, care: Care, watch: SlotWatch) -> None:
    meters = Meters()
    watch.report_to(meters)
    care.when_refused()
    text = meters.render()[0].decode()
    assert 'foldgate_queue_length{backend="local"} 3.0' in text
    assert 'foldgate_slots_in_use{backend="local"} 2.0' in text
    assert 'foldgate_queue_refused_total{backend="local"} 1.0' in text


def delete_elsewhere(house: House, name: str, elsewhere: tuple[str, ...] = ()) -> int:
    """What `foldgate conversations delete` does, in its own process. Returns the row number."""
    row = house.conversation(name)
    house.store.writing(delete_conversation, row, elsewhere=elsewhere, now_ms=house.clock.ms)
    return row.pk


@pytest.mark.parametrize("elsewhere", [(), ("local",)])
async def test_what_another_program_deleted_leaves_the_memory_of_this_one(
    house: House, care: Care, elsewhere: tuple[str, ...]
) -> None:
    """Law 10, also where no backend is to be wiped."""
    house.local.can_prefill = True
    for name in ("아", "雨"):
        await house.say(user(name * 3_100), id=name)
        await house.ctx.prefills.settle()
        alone = parse_chat(dump_bytes({"model": "foldgate", "messages": [user("hi")]}))
        asked = prepare(alone, owner="ann", conversation=name)
        house.ctx.turns.join(asked, house.conversation(name).id)
    ctx, kept = house.ctx, house.conversation("雨")
    stopped: list[int] = []
    ctx.stop_work = stopped.append
    assert len(ctx.turns._ids) == len(ctx.prefills._newest) == 2
    gone = delete_elsewhere(house, "아", elsewhere)
    await ctx.slots.look()
    assert {key[0] for key in ctx.views._kept if isinstance(key, tuple)} == {kept.pk}
    assert list(ctx.prefills._newest) == [kept.pk]
    assert {key[0] for key in ctx.prefixes._entries} == {kept.pk}
    assert set(ctx.turns._ids.values()) == {kept.id}
    assert stopped == [gone]
    await ctx.slots.look()
    assert stopped == [gone], "told once"


async def test_word_of_a_deletion_with_nothing_to_wipe_is_no_open_wipe(house: House) -> None:
    await house.say(user("hi"), id="아")
    gone = delete_elsewhere(house, "아", ("local",))
    assert house.store.reading(open_wipes) == []
    entry = house.rows("SELECT backend, conversation_pk, done_ms FROM kv_outbox")
    assert entry == [("", gone, house.clock.ms)]


async def test_deletions_from_before_the_start_are_no_news(house: House, care: Care) -> None:
    await house.say(user("hi"), id="아")
    delete_elsewhere(house, "아")
    told: list[tuple[int, str]] = []
    watch = SlotWatch(
        house.store, house.ctx.backends, Stopped(), lambda pk, id: told.append((pk, id))
    )
    await watch.start()
    await settle(watch)
    said = await house.say(user("hi"), id="雨")
    gone = delete_elsewhere(house, "雨")
    await watch.look()
    await watch.aclose()
    assert told == [(gone, said.conversation)]


async def test_the_wal_is_emptied_once_no_reader_is_in_the_way(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Law 10: at the start, and after each word of something that is gone."""
    monkeypatch.setattr("gateway.store.sqlite.CHECKPOINT_WAIT_MS", 1)
    wal = house.store.path.with_name(house.store.path.name + "-wal")
    await house.say(user("hi"), id="雨")
    await house.ctx.slots.look()
    assert wal.stat().st_size == 0
    await house.say(user("hm"), id="雨")
    await house.ctx.slots.look()
    assert wal.stat().st_size > 0, "nothing was emptied"
    house.store.writing(tell_of_emptied, house.clock.ms)
    with house.store._reader.begin() as reader:
        reader.exec_driver_sql("SELECT count(*) FROM messages").all()
        await house.ctx.slots.look()
    assert wal.stat().st_size > 0
    await house.ctx.slots.look()
    assert wal.stat().st_size == 0


async def test_word_of_an_emptied_text_clears_the_memories_of_views_alone(house: House) -> None:
    """As `foldgate memories delete --now` leaves it beside a server that runs."""
    said = await house.say(user("hi"), id="雨")
    pk = house.conversation("雨").pk
    house.ctx.views.keep_memory(7, [user("京都に住んでいます。")])
    told: list[tuple[int, str]] = []
    forget_memories = house.ctx.views.forget_memories
    watch = SlotWatch(
        house.store,
        house.ctx.backends,
        Stopped(),
        lambda pk, id: told.append((pk, id)),
        forget_memories,
    )
    await watch.start()
    await settle(watch)
    house.store.writing(tell_of_emptied, house.clock.ms)
    assert house.store.reading(open_wipes) == []
    await watch.look()
    await watch.aclose()
    assert (told, house.ctx.views.memory(7)) == ([], None)
    key = (pk, "small", None)
    assert house.ctx.views.tail(key) is not None, said
