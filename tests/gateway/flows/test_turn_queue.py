"""The line in which requests stand that send only what is new."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.errors import Busy
from gateway.flows.incoming import Incoming, prepare
from gateway.flows.turn import open_turn
from gateway.flows.turn_queue import TurnQueue
from gateway.wire.requests import ChatRequest
from policies.auxiliary import Auxiliary
from tests.gateway.house import House, Say, assistant, deltas, system, tool, user


def incoming(*messages: Say, id: str | None = "c", owner: str = "ann", who: str = "") -> Incoming:
    request = ChatRequest("foldgate", list(messages), True, False, None)
    return prepare(request, owner=owner, user=who, conversation=id)


@pytest.mark.parametrize(
    ("request_", "key"),
    [
        (incoming(user("hi")), ("ann", "", "c")),
        (incoming(system("S"), user("hi")), ("ann", "", "c")),
        (incoming(tool("t1", "r")), ("ann", "", "c")),
        (incoming(user("hi"), owner="bob"), ("bob", "", "c")),
        (incoming(user("hi"), who="u"), ("ann", "u", "c")),
        (incoming(user("hi"), id=None), None),
        (incoming(user("a"), assistant("b"), user("c")), None),
    ],
)
def test_who_waits_for_whom(request_: Incoming, key: Any) -> None:
    assert TurnQueue.key(request_) == key


async def test_one_at_a_time_in_order() -> None:
    queue, key = TurnQueue(), ("ann", "", "c")
    order: list[str] = []
    gates = {name: asyncio.Event() for name in "abc"}

    async def turn(name: str) -> None:
        await queue.enter(key)
        order.append(f"{name} in")
        await gates[name].wait()
        order.append(f"{name} out")
        queue.leave(key)

    work = [asyncio.ensure_future(turn(name)) for name in "abc"]
    for gate in gates.values():
        await asyncio.sleep(0)
        gate.set()
    await asyncio.gather(*work)
    assert order == ["a in", "a out", "b in", "b out", "c in", "c out"]
    assert queue._places == {}


async def test_others_do_not_wait() -> None:
    queue = TurnQueue()
    for key in (("ann", "", "c"), ("bob", "", "c"), ("ann", "u", "c"), ("ann", "", "d")):
        await asyncio.wait_for(queue.enter(key), 1)


async def test_nobody_waits_in_line_for_longer_than_a_client() -> None:
    queue, key = TurnQueue(), ("ann", "", "c")
    await queue.enter(key)
    now = asyncio.get_running_loop().time()
    with pytest.raises(Busy) as told:
        async with queue.turn(incoming(user("hi")), now):
            raise AssertionError("it is not its turn")
    assert (told.value.status, told.value.code) == (504, "conversation_busy")
    queue.leave(key)
    async with queue.turn(incoming(user("hi")), now + 60):
        assert queue._places[key].waiting == 1
    assert queue._places == {}


async def test_the_line_has_an_end() -> None:
    queue, key = TurnQueue(limit=2), ("ann", "", "c")
    await queue.enter(key)
    assert not queue.is_full(key)
    waiting = asyncio.ensure_future(queue.enter(key))
    await asyncio.sleep(0)
    assert queue.is_full(key)
    assert not queue.is_full(("ann", "", "d"))
    queue.leave(key)
    await waiting
    queue.leave(key)
    assert not queue.is_full(key)


async def test_who_leaves_the_line_holds_up_nobody() -> None:
    queue, key = TurnQueue(), ("ann", "", "c")
    await queue.enter(key)
    second, third = (asyncio.ensure_future(queue.enter(key)) for _ in range(2))
    await asyncio.sleep(0)
    second.cancel()
    queue.leave(key)
    await third
    assert second.cancelled()
    queue.leave(key)
    assert queue._places == {}


async def test_two_that_send_only_what_is_new_follow_each_other(house: House) -> None:
    """The second sees the first one's reply as its parent."""
    queue = TurnQueue()

    async def ask(text: str) -> None:
        request = incoming(user(text))
        key = TurnQueue.key(request)
        assert key is not None
        await queue.enter(key)
        await house.relay(await open_turn(house.ctx, request, text))
        queue.leave(key)

    await asyncio.gather(ask("one"), ask("two"))
    assert [content for _, content in house.told("c")] == ["one", "Reply 1.", "two", "Reply 2."]


async def test_a_turn_that_fell_silent_makes_room_for_the_next(house: House) -> None:
    """F18: the timeout ends the first, which keeps what came, and the second goes on."""
    silent = UpstreamFault(FaultKind.TIMEOUT, "it fell silent", partial=True)
    house.local.answers = [[*deltas("Hi there.")[:2], silent]]
    queue = TurnQueue()

    async def ask(text: str) -> None:
        request = incoming(user(text))
        async with queue.turn(request):
            await house.relay(await open_turn(house.ctx, request, text))

    first, second = await asyncio.gather(ask("one"), ask("two"), return_exceptions=True)
    assert isinstance(first, UpstreamFault)
    assert second is None
    told = [content for _, content in house.told("c")]
    assert told == ["one", "Hi t", "two", "Reply 2."]
    assert [row.partial for row in house.path("c")] == [0, 1, 0, 0]
    assert queue._places == {}


async def test_a_crowd_at_one_moment_finds_the_end_of_the_line() -> None:
    queue, gate = TurnQueue(limit=2), asyncio.Event()

    async def ask(text: str) -> str:
        try:
            async with queue.turn(incoming(user(text))):
                await gate.wait()
                return text
        except Busy as error:
            return str(error.code)

    work = [asyncio.ensure_future(ask(text)) for text in "abcd"]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(*work) == ["a", "b", *["conversation_busy"] * 2]
    assert queue._places == {}


async def test_a_name_is_looked_up_once() -> None:
    """Until its conversation is deleted: then the name may become another's."""
    queue, asked = TurnQueue(), []

    async def find(owner: str, user: str, name: str) -> str | None:
        asked.append((owner, user, name))
        return "conv_1"

    queue.find = find
    request = incoming(user("hi"))
    assert await queue.line(request) == ("ann", "", "conv_1")
    queue.join(request, "conv_1")
    assert await queue.line(request) == ("ann", "", "conv_1")
    assert await queue.line(incoming(user("hi"), owner="bob")) == ("bob", "", "conv_1")
    queue.forget("conv_1")
    assert await queue.line(request) == ("ann", "", "conv_1")
    assert asked == [("ann", "", "c"), ("bob", "", "c"), ("ann", "", "c")]


async def test_names_that_are_remembered_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.flows.turn_queue.MOST_NAMES", 2)
    queue, asked = TurnQueue(), []

    async def find(owner: str, user: str, name: str) -> str | None:
        asked.append(name)
        return None

    queue.find = find
    for name in "abc":
        queue.join(incoming(user("hi"), id=name), f"conv_{name}")
    for name in "abc":
        await queue.line(incoming(user("hi"), id=name))
    assert asked == ["a"]


async def test_an_alias_and_the_own_id_stand_in_one_line(house: House) -> None:
    said = await house.say("one", id="mine")
    queue, order = house.ctx.turns, []

    async def ask(text: str, id: str) -> None:
        request = incoming(user(text), id=id)
        async with queue.turn(request):
            order.append(text)
            await house.relay(await open_turn(house.ctx, request, text))

    await asyncio.gather(ask("two", "mine"), ask("three", said.conversation))
    assert len(set(order)) == 2
    told = [content for _, content in house.told("mine")]
    assert told == ["one", "Reply 1.", order[0], "Reply 2.", order[1], "Reply 3."]
    assert queue._places == {}


async def test_a_conversation_that_just_began_has_one_line_under_both_names(house: House) -> None:
    queue, gate = house.ctx.turns, asyncio.Event()
    first = incoming(user("one"), id="mine")
    began: list[str] = []

    async def begin() -> None:
        async with queue.turn(first):
            turn = await open_turn(house.ctx, first, "one")
            began.append(turn.prepared.begun.conversation.id)
            queue.join(first, began[0])
            await gate.wait()
            await house.relay(turn)

    work = asyncio.ensure_future(begin())
    while not began:
        await asyncio.sleep(0)

    async def follow() -> None:
        request = incoming(user("two"), id=began[0])
        async with queue.turn(request):
            await house.relay(await open_turn(house.ctx, request, "two"))

    second = asyncio.ensure_future(follow())
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(house.local.calls) == 0
    gate.set()
    await asyncio.gather(work, second)
    told = [content for _, content in house.told("mine")]
    assert told == ["one", "Reply 1.", "two", "Reply 2."]
    assert queue._places == {}


def test_requests_that_are_no_turns_wait_for_nobody() -> None:
    request = ChatRequest("foldgate", [user("hi")], False, False, None)
    for how, key in (("marker", None), ("shape", ("ann", "", "c"))):
        aside = Auxiliary("title", how)  # type: ignore[arg-type]
        made = prepare(request, owner="ann", conversation="c", auxiliary=aside)
        assert TurnQueue.key(made) == key
