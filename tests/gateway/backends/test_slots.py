"""The slots of one server: who gets which, and that no order of events loses one."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.slot_leases import Dropped, Lease
from gateway.backends.slots import QueueFull, SlotKeeper
from gateway.backends.waiting_line import Reason, Wish


class Time:
    """A clock that goes when it is told."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def make_keeper(
    total: int | None = 2,
    *,
    pinned: bool = True,
    queue: int = 64,
    background: int | None = None,
    clock: Callable[[], float] | None = None,
) -> SlotKeeper:
    keeper = SlotKeeper(
        "local", pinned=pinned, queue=queue, background=background, clock=clock or Time()
    )
    keeper.resize(total)
    return keeper


def ask(
    keeper: SlotKeeper, conversation: str | None, purpose: Reason = "chat"
) -> asyncio.Task[Lease]:
    return asyncio.create_task(keeper.lease(Wish(purpose, conversation)))


async def tick() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def serve(keeper: SlotKeeper, conversation: str | None, purpose: Reason = "chat") -> int:
    """A request from its beginning to its end; the slot that served it."""
    lease = await keeper.lease(Wish(purpose, conversation))
    lease.read()
    lease.end()
    assert lease.slot is not None
    return lease.slot


# --- pinned ----------------------------------------------------------------------------------


async def test_a_conversation_comes_back_to_its_slot_and_a_stranger_gets_the_oldest() -> None:
    keeper = make_keeper(2)
    served = [await serve(keeper, name) for name in ("아", "雨", "아", "Ж", "아", "雨")]
    # Ж is the third for two slots: 雨 was there longest ago. Later 雨 takes Ж's, by the same rule.
    assert served == [0, 1, 0, 1, 0, 1]


async def test_one_request_in_flight_a_slot() -> None:
    keeper = make_keeper(2)
    first = await keeper.lease(Wish("chat", "a"))
    first.read()
    second = ask(keeper, "a")
    await tick()
    assert not second.done()  # slot 1 is idle, but a's prompt is in slot 0
    assert await serve(keeper, "b") == 1
    first.end()
    assert (await second).slot == 0


async def test_one_prompt_is_read_at_a_time() -> None:
    keeper = make_keeper(2)
    first = await keeper.lease(Wish("chat", "a"))
    second = ask(keeper, "b")
    await tick()
    assert not second.done()
    first.read()
    await tick()
    assert second.done()


async def test_a_chat_waits_for_no_background_work_that_is_read_and_that_waits_for_all() -> None:
    keeper = make_keeper(4)
    summary = await keeper.lease(Wish("summary", "a"))
    chat = await keeper.lease(Wish("chat", "a"))
    other, title = ask(keeper, "b"), ask(keeper, None, "auxiliary")
    await tick()
    assert not other.done() and not title.done()
    summary.read()
    summary.end()
    chat.read()
    assert (await other).slot == 1
    other.result().read()
    assert (await title).slot == 3


async def test_a_warm_chat_waits_for_no_prompt_and_holds_up_nobody() -> None:
    keeper = make_keeper(3, background=0)
    assert await serve(keeper, "warm") == 0
    reader = await keeper.lease(Wish("chat", "long"))
    warm = asyncio.create_task(keeper.lease(Wish("chat", "warm", is_warm=True)))
    stranger = asyncio.create_task(keeper.lease(Wish("chat", "stranger", is_warm=True)))
    await tick()
    assert warm.done() and warm.result().slot == 0
    assert not stranger.done()  # nothing here is warm of it: its whole prompt is to be read
    reader.read()
    assert (await stranger).slot == 2  # though the warm one has not begun to reply


async def test_short_prompts_are_read_side_by_side_where_slots_are_shared() -> None:
    keeper = make_keeper(3, pinned=False)
    leases = [await keeper.lease(Wish("chat", name, is_short=True)) for name in ("あ", "b")]
    long = await keeper.lease(Wish("chat", "long"))
    late = ask(keeper, "late")
    await tick()
    assert not late.done()
    long.read()
    await tick()
    assert not late.done()  # no slot is left
    leases[0].end()
    assert (await late).slot is None


async def test_a_prompt_of_which_nothing_is_heard_keeps_nobody_waiting() -> None:
    keeper = make_keeper(2)
    silent = await keeper.lease(Wish("chat", "a"))
    other = ask(keeper, "b")
    await tick()
    assert not other.done()
    silent.pass_on()
    assert (await other).slot == 1
    silent.read()
    silent.end()
    assert keeper.in_flight == 1


async def test_a_slot_whose_request_was_broken_off_waits_for_the_server() -> None:
    keeper = make_keeper(1)
    (await keeper.lease(Wish("chat", "a"))).end(is_settled=False)
    waiting = ask(keeper, "b")
    await tick()
    assert not waiting.done()
    keeper.settle(0)
    assert (await waiting).slot == 0


async def test_who_waits_for_its_own_slot_keeps_it_from_strangers_while_there_is_another() -> None:
    keeper = make_keeper(2)
    assert [await serve(keeper, name) for name in ("a", "b")] == [0, 1]
    reader = await keeper.lease(Wish("chat", "b"))
    stranger, owner = ask(keeper, "c"), ask(keeper, "a")
    await tick()
    reader.end()
    # c came first and takes the slot of b, which was used last: a waits for the other.
    assert (await stranger).slot == 1
    stranger.result().read()
    assert (await owner).slot == 0


@pytest.mark.parametrize(
    ("total", "asked", "kept"),
    [
        (1, None, 0),
        (2, None, 0),
        (3, None, 1),  # from three slots on, one
        (4, 0, 0),
        (4, 2, 2),
        (4, 9, 3),  # one is always left to the chats
        (None, 2, 0),
    ],
)
async def test_background_slots(total: int | None, asked: int | None, kept: int) -> None:
    assert make_keeper(total, background=asked).background == kept


async def test_background_work_stays_in_its_slots_and_chats_in_theirs() -> None:
    keeper = make_keeper(3)
    served = [await serve(keeper, "a", purpose) for purpose in ("summary", "chat", "auxiliary")]
    assert served == [2, 0, 2]
    assert [await serve(keeper, name) for name in ("b", "c", "d")] == [1, 0, 1]


async def test_without_a_slot_of_its_own_background_work_takes_nobodys_then_the_oldest() -> None:
    keeper = make_keeper(2)
    assert await serve(keeper, "a") == 0
    assert await serve(keeper, "a", "summary") == 1  # not over a's own prompt
    assert await serve(keeper, "b") == 1
    assert await serve(keeper, "c", "summary") == 0  # a was there before b
    assert await serve(keeper, "a") == 0  # its slot is nobody's now


async def test_background_work_waits_while_a_chat_waits_but_not_for_ever() -> None:
    time = Time()
    keeper = make_keeper(2, clock=time)
    running = await keeper.lease(Wish("chat", "a"))
    running.read()
    chat, summary = ask(keeper, "a"), ask(keeper, "b", "summary")
    await tick()
    assert not summary.done()  # slot 1 is idle, but the chat of a waits for slot 0
    time.now += 61
    other = ask(keeper, "c")
    await tick()
    assert (await summary).slot == 1  # its patience of 60 s is over: before the chat that came
    assert not other.done()
    summary.result().end()
    assert (await other).slot == 1
    for lease in (running, other.result()):
        lease.end()
    assert (await chat).slot == 0


async def test_who_leaves_in_the_moment_in_which_a_slot_comes_free_is_not_granted_it() -> None:
    keeper = make_keeper(1)
    running = await keeper.lease(Wish("chat", "a"))
    leaving, next_one = ask(keeper, "b"), ask(keeper, "c")
    await tick()
    leaving.cancel()  # it has not run yet when the slot comes free
    running.end()
    assert (await next_one).slot == 0
    next_one.result().end()
    assert keeper.in_flight == 0


async def test_who_leaves_lets_those_go_who_waited_because_of_it() -> None:
    keeper = make_keeper(2)
    running = await keeper.lease(Wish("chat", "a"))
    running.read()
    chat, summary = ask(keeper, "a"), ask(keeper, "b", "summary")
    await tick()
    chat.cancel()
    assert (await summary).slot == 1


# --- prefill ---------------------------------------------------------------------------------


async def test_a_chat_drops_the_prefill_that_runs() -> None:
    keeper = make_keeper(2)
    prefill = await keeper.lease(Wish("prefill", "a"))
    told: list[str] = []
    prefill.when_dropped(lambda: told.append("dropped"))
    chat = ask(keeper, "b")
    await tick()
    assert told == ["dropped"]
    assert prefill.is_dropped and not chat.done()
    prefill.end(is_settled=False)
    assert (await chat).slot == 1


async def test_a_prefill_dropped_before_anybody_listened_is_told_at_once() -> None:
    keeper = make_keeper(1)
    prefill = await keeper.lease(Wish("prefill", "a"))
    chat = ask(keeper, "a")
    await tick()
    told: list[str] = []
    prefill.when_dropped(lambda: told.append("dropped"))
    assert told == ["dropped"]
    prefill.end()
    assert (await chat).slot == 0


async def test_a_prefill_takes_nobodys_slot_but_not_anothers() -> None:
    keeper = make_keeper(2)
    assert await serve(keeper, "a") == 0
    assert await serve(keeper, "b", "prefill") == 1
    assert await serve(keeper, "b") == 1
    waiting = ask(keeper, "c", "prefill")
    await tick()
    assert not waiting.done()
    assert await serve(keeper, "c") == 0
    with pytest.raises(Dropped):  # the chat that it would have read ahead has come
        await waiting


async def test_a_prefill_waits_while_anybody_else_does() -> None:
    keeper = make_keeper(2)
    reader = await keeper.lease(Wish("chat", "a"))
    prefill, summary = ask(keeper, "b", "prefill"), ask(keeper, "c", "summary")
    await tick()
    reader.end()
    await tick()
    assert summary.done() and not prefill.done()
    summary.result().end()
    assert (await prefill).slot == 1


# --- shared ----------------------------------------------------------------------------------


async def test_shared_slots_are_never_overrun_and_never_named() -> None:
    keeper = make_keeper(2, pinned=False)
    leases = []
    for name in ("a", "b"):
        leases.append(await keeper.lease(Wish("chat", name)))
        leases[-1].read()
    assert [lease.slot for lease in leases] == [None, None]
    third = ask(keeper, "a")
    await tick()
    assert not third.done() and keeper.in_flight == 2
    leases[0].end()
    await third
    assert keeper.in_flight == 2


async def test_several_choices_of_one_request_take_several_slots() -> None:
    keeper = make_keeper(3, pinned=False)
    two = await keeper.lease(Wish("chat", "a", width=2))
    two.read()
    other = asyncio.create_task(keeper.lease(Wish("chat", "b", width=2)))
    await tick()
    assert not other.done()  # 2 + 2 > 3
    two.end()
    await other
    assert keeper.in_flight == 2
    other.result().end()
    every = await keeper.lease(Wish("chat", "a", width=9))  # the server will refuse it itself
    assert keeper.in_flight == 3
    every.end()
    assert keeper.in_flight == 0


async def test_a_server_that_does_not_tell_its_slots_is_not_bounded_where_they_are_shared() -> None:
    keeper = make_keeper(None, pinned=False)
    for index in range(10):
        await keeper.lease(Wish("chat", f"c{index}"))
    assert keeper.in_flight == 10


async def test_a_server_that_does_not_tell_its_slots_has_one_that_can_be_pinned() -> None:
    keeper = make_keeper(None)
    assert [await serve(keeper, name) for name in ("a", "b", "a")] == [0, 0, 0]


# --- the bound of the line -------------------------------------------------------------------


async def test_whoever_comes_beyond_the_line_is_told_when_to_come_again() -> None:
    time = Time()
    keeper = make_keeper(1, queue=2, clock=time)
    for _ in range(40):  # requests take 10 s, and the keeper learns it
        lease = await keeper.lease(Wish("chat", "a"))
        time.now += 10
        lease.end()
    other: tuple[Reason, ...] = ("summary", "gist", "prefill", "wipe")
    for purpose in other:  # nobody who is turned away waits for one of these
        lease = await keeper.lease(Wish(purpose, "a", target=0 if purpose == "wipe" else None))
        time.now += 300
        lease.end()
    running = await keeper.lease(Wish("chat", "a"))
    waiting = [ask(keeper, "b"), ask(keeper, "c", "auxiliary")]
    summary = ask(keeper, "d", "summary")  # is not counted
    await tick()
    with pytest.raises(QueueFull) as caught:
        await keeper.lease(Wish("chat", "e"))
    fault = caught.value
    assert (fault.kind, fault.status) == (FaultKind.OVERLOADED, 429)
    assert fault.retry_after == 30  # 10 s × (2 who wait + 1) / 1 slot
    assert "2 requests wait already" in fault.message
    running.end()
    await tick()
    assert waiting[0].done() and not waiting[1].done()
    for task in (*waiting, summary):
        lease = await task
        lease.end()


# --- deletion --------------------------------------------------------------------------------


async def test_a_slot_of_a_deleted_conversation_serves_nobody_until_it_is_wiped() -> None:
    keeper = make_keeper(2)
    assert [await serve(keeper, name) for name in ("a", "b")] == [0, 1]
    keeper.forget("a")
    assert keeper.dirty == [0]
    assert await serve(keeper, "c") == 1
    assert await serve(keeper, "d") == 1
    wipe = await keeper.lease(Wish("wipe", target=0))
    keeper.note_wiped(wipe)
    wipe.end()
    assert keeper.dirty == []
    assert await serve(keeper, "e") == 0


async def test_a_summary_of_a_deleted_conversation_is_wiped_as_well() -> None:
    keeper = make_keeper(3)
    assert await serve(keeper, "a", "summary") == 2
    for name in ("b", "c"):
        await serve(keeper, name)
    keeper.forget("a")
    assert keeper.dirty == [2]


async def test_what_a_request_never_read_over_is_still_there() -> None:
    """b was granted a's slot and left before the server read its prompt: a's is still in it."""
    keeper = make_keeper(1)
    await serve(keeper, "a")
    (await keeper.lease(Wish("chat", "b"))).end(is_settled=False)
    keeper.settle(0)
    keeper.forget("a")
    assert keeper.dirty == [0]


async def test_a_slot_of_before_this_program_may_hold_anything() -> None:
    keeper = make_keeper(2)
    keeper.restore({0: "a"})
    await serve(keeper, "b")
    keeper.forget("c")
    assert keeper.dirty == [0]  # b was read into slot 1, so that nothing else is there


async def test_a_request_of_nobody_may_hold_anybodys_words() -> None:
    keeper = make_keeper(3)
    assert await serve(keeper, None, "auxiliary") == 2
    for name in ("a", "b"):
        await serve(keeper, name)
    keeper.forget("c")
    assert keeper.dirty == [2]


async def test_a_wipe_waits_for_the_request_in_its_slot() -> None:
    keeper = make_keeper(1)
    running = await keeper.lease(Wish("chat", "a"))
    keeper.forget("a")
    wipe = ask(keeper, None, "wipe")
    wipe.cancel()
    wipe = asyncio.create_task(keeper.lease(Wish("wipe", target=0)))
    await tick()
    assert not wipe.done()
    running.end()
    assert (await wipe).slot == 0


async def test_requests_of_a_deleted_conversation_that_wait_are_refused() -> None:
    keeper = make_keeper(1)
    running = await keeper.lease(Wish("chat", "b"))
    waiting = ask(keeper, "a")
    await tick()
    keeper.forget("a")
    with pytest.raises(UpstreamFault) as caught:
        await waiting
    assert (caught.value.status, caught.value.retryable) == (404, False)
    with pytest.raises(UpstreamFault):
        await keeper.lease(Wish("chat", "a"))
    running.end()


# --- the server changes ----------------------------------------------------------------------


async def test_owners_are_restored_once_and_only_where_nobody_was() -> None:
    keeper = make_keeper(2)
    assert await serve(keeper, "c") == 0
    keeper.restore({0: "a", 1: "b", 7: "z"})
    assert [slot.owner for slot in keeper.slots] == ["c", "b"]
    assert await serve(keeper, "b") == 1


async def test_owners_are_restored_before_the_server_said_how_many_slots_it_has() -> None:
    keeper = make_keeper(None)
    keeper.restore({0: "a", 1: "b", 2: "c", 7: "z"})
    keeper.forget("c")
    assert [slot.owner for slot in keeper.slots] == ["a"]
    keeper.resize(4)
    assert [slot.owner for slot in keeper.slots] == ["a", "b", None, None]
    assert await serve(keeper, "b") == 1


async def test_other_numbers_of_slots() -> None:
    keeper = make_keeper(1)
    running = await keeper.lease(Wish("chat", "a"))
    running.read()
    waiting = ask(keeper, "b")
    await tick()
    keeper.resize(2)
    assert (await waiting).slot == 1
    wipe = asyncio.create_task(keeper.lease(Wish("wipe", target=1)))
    await tick()
    keeper.resize(1)
    with pytest.raises(Dropped):
        await wipe
    waiting.result().end()  # its slot is gone
    assert keeper.in_flight == 1
    running.end()
    assert await serve(keeper, "b") == 0


async def test_a_hold_grants_nothing_until_it_is_resumed() -> None:
    keeper = make_keeper(2, pinned=False)
    keeper.hold()
    waiting = ask(keeper, "a")
    await tick()
    assert not waiting.done()
    keeper.resume()
    await waiting


async def test_at_the_end_everybody_is_told() -> None:
    keeper = make_keeper(1)
    await keeper.lease(Wish("chat", "a"))
    waiting = ask(keeper, "b")
    await tick()
    keeper.close(UpstreamFault(FaultKind.UNAVAILABLE, "The gateway stops"))
    with pytest.raises(UpstreamFault):
        await waiting


# --- any order of events ---------------------------------------------------------------------

NAMES = st.sampled_from(["아", "雨", "Ж", "ñ", None])
PURPOSES = st.sampled_from(["chat", "chat", "chat", "auxiliary", "summary", "gist", "prefill"])


class Slots(RuleBasedStateMachine):
    """Requests come, are read, end well or not, and leave at any moment.

    What must hold: one request in flight a slot, one prompt read at a time, no slot used while it
    settles or is dirty, no more in flight than slots, turns among conversations, nothing lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self.time = Time()
        self.waiting: list[asyncio.Task[Lease]] = []
        self.leases: list[Lease] = []
        self.unread: dict[int, bool] = {}
        self.settling: set[int] = set()
        self.overtaken: dict[asyncio.Task[Lease], Counter[str | None]] = {}
        self.gone: set[str] = set()

    @initialize(
        pinned=st.booleans(),
        total=st.integers(1, 4),
        queue=st.sampled_from([1, 3, 64]),
        background=st.sampled_from([None, 0, 1]),
    )
    def open(self, pinned: bool, total: int, queue: int, background: int | None) -> None:
        self.loop = asyncio.new_event_loop()
        self.queue = queue
        self.keeper = make_keeper(
            total, pinned=pinned, queue=queue, background=background, clock=self.time
        )

    def run(self, work: Callable[[], Awaitable[Any]]) -> None:
        async def whole() -> None:
            await work()
            await tick()

        self.loop.run_until_complete(whole())
        self.collect()

    def collect(self) -> None:
        """Take note of what became of those who waited."""
        for task in list(self.waiting):
            if not task.done():
                continue
            self.waiting.remove(task)
            tally = self.overtaken.pop(task, None)
            if task.cancelled() or isinstance(
                task.exception(), (QueueFull, Dropped, UpstreamFault)
            ):
                continue
            lease = task.result()
            if tally is not None and not self.keeper.pinned:
                assert all(count <= 1 for count in tally.values()), tally
            for other, seen in self.overtaken.items():
                if lease.wish.purpose == "chat" and other.get_name() != str(
                    lease.wish.conversation
                ):
                    seen[lease.wish.conversation] += lease.wish.conversation is not None
            if lease.slot is not None:
                assert lease.slot not in self.settling
                assert lease.slot not in [other.slot for other in self.leases]
                dirty = self.keeper.slots[lease.slot].is_dirty
                assert not dirty or lease.wish.purpose == "wipe"
            self.leases.append(lease)
            if lease.wish.purpose != "wipe":
                self.unread[id(lease)] = lease.wish.purpose in ("chat", "prefill")

    @rule(conversation=NAMES, purpose=PURPOSES, leaves=st.booleans())
    def ask(self, conversation: str | None, purpose: Reason, leaves: bool) -> None:
        if conversation in self.gone:
            conversation = None
        wish = Wish(purpose, conversation)

        async def work() -> None:
            task = asyncio.create_task(self.keeper.lease(wish), name=str(conversation))
            first = not any(other.get_name() == str(conversation) for other in self.overtaken)
            self.waiting.append(task)
            await asyncio.sleep(0)
            if leaves:
                task.cancel()
            elif purpose == "chat" and conversation is not None and first:
                self.overtaken[task] = Counter()

        self.run(work)

    @precondition(lambda self: self.waiting)
    @rule(index=st.integers(0, 99), ends=st.sampled_from(["not", "before", "after"]))
    def leave(self, index: int, ends: str) -> None:
        """Cancelled while it waits; or just after it was granted, or just before, by another's
        end in the same moment."""
        task = self.waiting[index % len(self.waiting)]

        async def work() -> None:
            if ends == "before" and self.leases:
                self.finish(self.leases[index % len(self.leases)], is_settled=True)
            task.cancel()
            if ends == "after" and self.leases:
                self.finish(self.leases[index % len(self.leases)], is_settled=True)

        self.run(work)

    def finish(self, lease: Lease, *, is_settled: bool) -> None:
        self.leases.remove(lease)
        self.unread.pop(id(lease), None)
        if lease.slot is not None and not is_settled:
            self.settling.add(lease.slot)
        lease.end(is_settled=is_settled)
        lease.end(is_settled=is_settled)

    @precondition(lambda self: self.leases)
    @rule(index=st.integers(0, 99), is_heard=st.booleans())
    def read(self, index: int, is_heard: bool) -> None:
        """Its reply began; or nothing was heard of it for so long that others go on."""

        async def work() -> None:
            lease = self.leases[index % len(self.leases)]
            self.unread.pop(id(lease), None)
            if is_heard:
                lease.read()
            else:
                lease.pass_on()

        self.run(work)

    @precondition(lambda self: self.leases)
    @rule(index=st.integers(0, 99), is_settled=st.booleans())
    def end(self, index: int, is_settled: bool) -> None:
        async def work() -> None:
            self.finish(
                self.leases[index % len(self.leases)],
                is_settled=is_settled or not self.keeper.pinned,
            )

        self.run(work)

    @precondition(lambda self: self.settling)
    @rule()
    def settle(self) -> None:
        async def work() -> None:
            self.keeper.settle(self.settling.pop())

        self.run(work)

    @rule(conversation=st.sampled_from(["아", "雨"]))
    def delete(self, conversation: str) -> None:
        async def work() -> None:
            self.gone.add(conversation)
            self.keeper.forget(conversation)

        self.run(work)

    @precondition(lambda self: self.keeper.dirty)
    @rule()
    def wipe(self) -> None:
        async def work() -> None:
            target = self.keeper.dirty[0]
            task = asyncio.create_task(self.keeper.lease(Wish("wipe", target=target)))
            await tick()
            if task.done():
                self.keeper.note_wiped(task.result())
                task.result().end()
            task.cancel()

        self.run(work)

    @rule(seconds=st.sampled_from([1.0, 30.0, 61.0]))
    def pass_time(self, seconds: float) -> None:
        """Time alone wakes nobody: background work whose patience is over goes with what happens
        next."""

        async def work() -> None:
            self.time.now += seconds
            self.keeper.hold()
            self.keeper.resume()

        self.run(work)

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "keeper"):
            return
        keeper = self.keeper
        assert keeper._next() is None, "somebody could go, and nobody told them"
        assert keeper.in_flight == len(self.leases)
        assert sum(self.unread.values()) <= 1, "two chats or prefills are read at once"
        assert len(self.unread) - sum(self.unread.values()) <= 1, "two pieces of background work"
        assert keeper.waiting <= self.queue
        if keeper.pinned:
            taken = [slot.number for slot in keeper.slots if slot.holder is not None]
            assert sorted(lease.slot or 0 for lease in self.leases) == taken
            assert {slot.number for slot in keeper.slots if slot.is_settling} == self.settling
        else:
            assert keeper.in_flight <= (keeper.total or 0)
        if not self.leases and not self.settling and not keeper.dirty:
            # A prefill may wait for its own slot; everybody else would have been served.
            assert all(self.is_prefill(task) for task in self.waiting)

    def is_prefill(self, task: asyncio.Task[Lease]) -> bool:
        return self.keeper._line.count("prefill") > 0 and len(self.keeper._line) == (
            self.keeper._line.count("prefill")
        )

    def teardown(self) -> None:
        if hasattr(self, "keeper"):
            self.run(self.drain)
            assert all(self.is_prefill(task) for task in self.waiting)
            self.run(self.dismiss)
            assert self.keeper.in_flight == 0
            self.loop.close()

    async def dismiss(self) -> None:
        for task in self.waiting:
            task.cancel()

    async def drain(self) -> None:
        """Everybody who waits is served in the end, whatever happened before."""
        for _ in range(200):
            for number in list(self.settling):
                self.settling.discard(number)
                self.keeper.settle(number)
            for number in self.keeper.dirty:
                wipe = await asyncio.wait_for(self.wipe_lease(number), 1)
                self.keeper.note_wiped(wipe)
                wipe.end()
            for lease in list(self.leases):
                self.finish(lease, is_settled=True)
            await tick()
            self.collect()
            if not self.leases and not self.settling:
                break

    async def wipe_lease(self, number: int) -> Lease:
        for lease in list(self.leases):
            if lease.slot == number:
                self.finish(lease, is_settled=True)
        return await self.keeper.lease(Wish("wipe", target=number))


TestSlots = Slots.TestCase
TestSlots.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
