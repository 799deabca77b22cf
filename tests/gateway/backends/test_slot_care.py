"""Care for slots before a server of ours: what it is asked, what is wiped, what is cautioned of."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from gateway.backends import slot_care
from gateway.backends.base import Call, Purpose
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.slot_care import SlotCare
from gateway.backends.slot_leases import Lease
from policies.schema import LlamaCppBackend

CHAT = "/v1/chat/completions"


@dataclass
class Slot:
    """A slot of the pretended server: what it holds, and for how many more looks it is busy."""

    text: str | None = None
    busy_looks: int = 0


@dataclass
class Server:
    """llama-server as far as slots go: it reads prompts, keeps them, and forgets as it does.

    ram: what --cache-ram keeps, None where it is 0. lists and erases: whether it can.
    """

    slots: list[Slot] = field(default_factory=lambda: [Slot(), Slot()])
    ram: set[str] | None = None
    lists: bool = True
    erases: bool = False
    down: bool = False
    windows: tuple[int, int] = (2_048, 8_192)
    asked: list[tuple[str, Mapping[str, Any] | None]] = field(default_factory=list)
    used: deque[int] = field(default_factory=deque)

    async def __call__(
        self, method: str, path: str, seconds: float, fields: Mapping[str, Any] | None = None
    ) -> Any:
        self.asked.append((path, fields))
        if self.down:
            raise UpstreamFault(FaultKind.UNAVAILABLE, "nobody there")
        if path == "/slots":
            return self.list_slots()
        if path == "/v1/models":
            window, trained = self.windows
            return {"data": [{"meta": {"n_ctx": window, "n_ctx_train": trained}}]}
        if "action=erase" in path:
            if not self.erases:
                raise UpstreamFault(FaultKind.SERVER, "501", status=501)
            self.slots[int(path.split("/")[2].split("?")[0])].text = None
            return {"n_erased": 1}
        assert fields is not None
        text = fields["messages"][0]["content"] if path == CHAT else fields["prompt"]
        return self.read(text, fields)

    def list_slots(self) -> list[dict[str, Any]]:
        if not self.lists:
            raise UpstreamFault(FaultKind.SERVER, "501", status=501)
        told = []
        for number, slot in enumerate(self.slots):
            fresh = {} if slot.text is None else {"id_task": 7}
            told.append({"id": number, "is_processing": slot.busy_looks > 0, **fresh})
            slot.busy_looks = max(0, slot.busy_looks - 1)
        return told

    def read(self, text: str, fields: Mapping[str, Any]) -> dict[str, Any]:
        number = fields.get("id_slot", self.least_recent())
        slot = self.slots[number]
        assert slot.busy_looks == 0, "a busy slot was named"
        known = slot.text == text and fields["cache_prompt"]
        if self.ram is not None:
            known = known or text in self.ram
            self.ram |= {slot.text} if slot.text is not None else set()
        slot.text = text
        self.used.append(number)
        return {"id_slot": number, "timings": {"prompt_n": 1 if known else len(text.split())}}

    def least_recent(self) -> int:
        idle = [number for number, slot in enumerate(self.slots) if not slot.busy_looks]
        return min(
            idle,
            key=lambda number: max(
                (place for place, used in enumerate(self.used) if used == number), default=-1
            ),
        )

    @property
    def named(self) -> list[Any]:
        """The slots that were named in requests to read something."""
        return [fields["id_slot"] for _, fields in self.asked if fields and "id_slot" in fields]


def make_care(server: Server, slots: str = "pinned", **fields: Any) -> SlotCare:
    config = LlamaCppBackend.model_validate({"url": "http://127.0.0.1:1", "slots": slots, **fields})
    care = SlotCare("local", config, server)
    care.keeper.resize(len(server.slots))
    return care


def call_of(conversation: str | None, purpose: Purpose = "chat", **params: Any) -> Call:
    return Call((), params, True, 5, purpose, "r", conversation=conversation)


@asynccontextmanager
async def serving(care: SlotCare, server: Server, conversation: str) -> AsyncIterator[Lease]:
    """A conversation's prompt read into its slot, and the reply under way."""
    lease = await care.lease(call_of(conversation))
    lease.read()
    if lease.slot is not None:
        server.slots[lease.slot].text = conversation
    yield lease
    care.end(lease, is_settled=True)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look again at once: what is tested is what is seen, not how long it is waited for."""
    for name in ("FIRST_LOOK", "LATER_LOOK", "NOTICE_SECONDS"):
        monkeypatch.setattr(slot_care, name, 0.0)


# --- requests --------------------------------------------------------------------------------


async def test_the_trace_tells_slot_and_wait() -> None:
    care = make_care(Server())
    call = call_of("雨")
    lease = await care.lease(call)
    assert call.trace.slot == 0
    assert call.trace.queued is not None
    assert (care.waiting(), care.in_flight()) == (0, 1)
    care.end(lease, is_settled=True)
    assert care.in_flight() == 0


async def test_a_broken_off_request_keeps_its_slot_until_the_server_says_idle() -> None:
    server = Server(slots=[Slot(busy_looks=3)])
    care = make_care(server)
    first = await care.lease(call_of("a"))
    care.end(first, is_settled=False)
    care.end(first, is_settled=False)
    second = await care.lease(call_of("b"))
    assert second.slot == 0
    # Three looks saw it at work, the fourth did not.
    assert [path for path, _ in server.asked] == ["/slots"] * 4


@pytest.mark.parametrize("server", [Server(down=True), Server(lists=False)], ids=["gone", "mute"])
async def test_where_nobody_tells_the_slot_is_used_again(server: Server) -> None:
    care = make_care(server)
    care.end(await care.lease(call_of("a")), is_settled=False)
    assert (await care.lease(call_of("a"))).slot == 0


async def test_a_slot_that_never_ends_is_used_again_in_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(slot_care, "SETTLE_SECONDS", 0.0)
    care = make_care(Server(slots=[Slot(busy_looks=99)]))
    care.end(await care.lease(call_of("a")), is_settled=False)
    assert (await care.lease(call_of("b"))).slot == 0
    assert "slot 0 is at work" in caplog.text


async def test_choices_count_where_slots_are_shared() -> None:
    care = make_care(Server(), "shared")
    await care.lease(call_of("a", n=2))
    assert care.in_flight() == 2


async def test_who_is_refused_is_counted() -> None:
    care = make_care(Server(slots=[Slot()]), queue=1)
    refused: list[int] = []
    care.when_refused = lambda: refused.append(1)
    await care.lease(call_of("a"))
    waiting = asyncio.create_task(care.lease(call_of("b")))
    await asyncio.sleep(0)
    with pytest.raises(UpstreamFault) as caught:
        await care.lease(call_of("c"))
    assert (caught.value.status, refused) == (429, [1])
    await care.aclose()
    with pytest.raises(UpstreamFault):
        await waiting


# --- wipes -----------------------------------------------------------------------------------


async def test_a_pinned_slot_is_overwritten_and_no_other() -> None:
    server = Server()
    care = make_care(server)
    for name in ("아", "雨"):
        async with serving(care, server, name):
            pass
    care.forget("아")
    await care.wipe()
    assert [slot.text for slot in server.slots] == [".", "雨"]
    path, fields = server.asked[-1]
    assert (path, fields and fields["id_slot"], fields and fields["cache_prompt"]) == (
        CHAT,
        0,
        False,
    )
    assert care.keeper.dirty == []


async def test_where_the_server_can_a_slot_is_erased() -> None:
    server = Server(erases=True)
    care = make_care(server)
    async with serving(care, server, "아"):
        pass
    care.forget("아")
    await care.wipe()
    assert [slot.text for slot in server.slots] == [None, None]
    assert server.named == []


async def test_a_wipe_that_failed_leaves_the_slot_unused() -> None:
    server = Server(slots=[Slot()])
    care = make_care(server)
    async with serving(care, server, "아"):
        pass
    care.forget("아")
    server.down = True
    with pytest.raises(UpstreamFault):
        await care.wipe()
    assert care.keeper.dirty == [0]
    server.down = False
    await care.wipe()
    assert care.keeper.dirty == []


async def test_every_idle_shared_slot_is_wiped_and_none_is_named() -> None:
    server = Server(slots=[Slot("a"), Slot("b", busy_looks=99), Slot("c")])
    care = make_care(server, "shared")
    async with serving(care, server, "b"):
        care.forget("a")
        await care.wipe()
    first, second, third = (slot.text for slot in server.slots)
    assert second == "b"
    assert not {first, third} & {"a", "c"}
    assert server.named == []


async def test_shared_slots_are_erased_where_the_server_can() -> None:
    server = Server(slots=[Slot("a"), Slot("b")], erases=True)
    care = make_care(server, "shared")
    care.forget("a")
    await care.wipe()
    assert [slot.text for slot in server.slots] == [None, None]


async def test_a_shared_slot_that_works_for_nobody_any_more_is_waited_for() -> None:
    """The deleted conversation's own request, broken off a moment ago."""
    server = Server(slots=[Slot("a", busy_looks=3), Slot("b")])
    care = make_care(server, "shared")
    care.end(await care.lease(call_of("a")), is_settled=False)
    care.forget("a")
    await care.wipe()
    assert "a" not in [slot.text for slot in server.slots]


async def test_a_shared_slot_is_not_wiped_before_the_deleted_reply_is_over() -> None:
    """Else its outbox entry would be done, and the slot kept what was read."""
    server = Server(slots=[Slot("a"), Slot("b")])
    care = make_care(server, "shared")
    async with serving(care, server, "a"):
        server.slots[0].busy_looks = 1_000
        care.forget("a")
        with pytest.raises(UpstreamFault, match="still answers"):
            await care.wipe()
        server.slots[0].busy_looks = 0
    await care.wipe()
    assert "a" not in [slot.text for slot in server.slots]


async def test_nobody_is_served_while_shared_slots_are_wiped() -> None:
    server = Server(slots=[Slot("a", busy_looks=3)])
    care = make_care(server, "shared")
    wipe = asyncio.create_task(care.wipe())
    await asyncio.sleep(0)
    await care.lease(call_of("b"))
    assert server.slots[0].text != "a"
    await wipe


async def test_a_server_that_gives_its_slots_to_others_is_told_of() -> None:
    server = Server(slots=[Slot("a"), Slot("b")])
    care = make_care(server, "shared")
    server.least_recent = lambda: 1  # type: ignore[method-assign]
    with pytest.raises(UpstreamFault, match=r"slots \[0\]"):
        await care.wipe()
    await care.lease(call_of("c"))  # and the line goes on


# --- how the server was started --------------------------------------------------------------


@pytest.mark.parametrize(
    ("slots", "server", "fields", "said"),
    [
        ("pinned", Server(), {}, []),
        ("shared", Server(ram=set()), {}, ["--cache-ram keeps prompts"]),
        ("pinned", Server(ram=set()), {}, ["start it with --cache-ram 0"]),
        ("shared", Server(), {}, ["keeps no prompts in memory"]),
        ("pinned", Server(slots=[Slot()]), {}, ["one slot"]),
        ("pinned", Server(), {"background_slots": 2}, ["1 are kept"]),
        ("pinned", Server(lists=False), {}, ["without --no-slots"]),
        (
            "pinned",
            Server(slots=[Slot() for _ in range(4)], windows=(8_192, 8_192)),
            {},
            ["--no-kv-unified"],
        ),
        ("pinned", Server(slots=[Slot() for _ in range(4)]), {}, []),
    ],
    ids=[
        "pinned as it should be",
        "shared as it should be: deletion is told of",
        "pinned beside a cache in memory",
        "shared without one",
        "one slot",
        "all slots for the background",
        "slots not listed",
        "slots that share a cache",
        "four that do not",
    ],
)
async def test_cautions(
    slots: str, server: Server, fields: dict[str, Any], said: list[str]
) -> None:
    care = make_care(server, slots, **fields)
    assert not care.is_checked
    found = await care.check()
    assert care.is_checked and care.cautions == found
    assert len(found) == len(said)
    assert all(part in caution for part, caution in zip(said, found, strict=True))


@pytest.mark.parametrize(("slots", "effect"), [("pinned", "slot 0"), ("shared", "not held back")])
async def test_a_server_that_does_not_count_its_slots(slots: str, effect: str) -> None:
    server = Server(lists=False)
    care = make_care(server, slots)
    care.keeper.resize(None)
    assert effect in (await care.check())[0]


async def test_the_probe_leaves_nothing_and_spares_slots_in_use() -> None:
    server = Server(slots=[Slot("아"), Slot()])
    care = make_care(server)
    await care.check()
    assert [slot.text for slot in server.slots] == ["아", "."]
    server.asked.clear()
    assert await care.check() == ()
    assert server.named == []  # no slot is unused any more: nothing is asked


async def test_alone_it_may_use_a_slot_that_no_conversation_owns() -> None:
    server = Server(slots=[Slot("아"), Slot("old")], ram=set())
    care = make_care(server)
    care.restore({0: "아"})
    (caution,) = await care.check(is_alone=True)
    assert "--cache-ram 0" in caution
    assert [slot.text for slot in server.slots] == ["아", "."]


async def test_shared_slots_at_work_are_not_probed_until_later() -> None:
    server = Server(ram=set())
    care = make_care(server, "shared")
    lease = await care.lease(call_of("a"))
    assert await care.check() == ()
    assert not care.is_checked and server.named == []
    care.end(lease, is_settled=True)
    assert len(await care.check()) == 1
    assert care.is_checked


async def test_a_server_that_is_not_there_is_not_checked() -> None:
    care = make_care(Server(down=True))
    with pytest.raises(UpstreamFault):
        await care.check()
    assert not care.is_checked
