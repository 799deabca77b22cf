"""Whose a slot is and which one is given; waiting for one is tested with the keeper."""

from __future__ import annotations

import pytest

from gateway.backends.slot_rack import Rack, Slot
from gateway.backends.waiting_line import Wish


def make_rack(total: int, wanted: int | None = 0, awaited: str = "") -> Rack:
    rack = Rack(pinned=True, wanted=wanted, is_awaited=lambda name: name == awaited)
    rack.resize(total, ())
    return rack


def serve(rack: Rack, conversation: str | None, number: int) -> Slot:
    """A whole request in this slot."""
    slot, lease = rack.slots[number], object()
    rack.give(slot, lease, Wish("chat", conversation))
    assert rack.held_by(lease, number) is slot
    assert rack.held_by(object(), number) is None
    rack.note_read(slot, conversation)
    rack.take_back(slot, is_settled=True)
    return slot


@pytest.mark.parametrize(
    ("total", "wanted", "kept"),
    [
        (1, None, 0),
        (2, None, 0),
        (3, None, 1),  # BACKGROUND_FROM
        (3, 0, 0),
        (3, 2, 2),
        (3, 9, 2),  # 3 - 1: one is left to the chats
    ],
)
def test_slots_kept_for_background_work(total: int, wanted: int | None, kept: int) -> None:
    rack = make_rack(total, wanted)
    assert (rack.background, rack.chat_capacity) == (kept, total - kept)
    assert [slot.number for slot in rack.chat_slots] == list(range(total - kept))


def test_a_rack_of_shared_slots_is_empty_and_knows_their_number() -> None:
    rack = Rack(pinned=False, wanted=None, is_awaited=bool)
    assert (rack.slots, rack.chat_capacity) == ([], None)
    rack.resize(4, ())
    assert (rack.slots, rack.chat_capacity, rack.background) == ([], 4, 0)


def test_a_strangers_slot_is_nobodys_then_not_of_one_who_waits_then_the_oldest() -> None:
    rack = make_rack(3, awaited="雨")
    serve(rack, "雨", 0)
    serve(rack, "Ж", 1)
    assert rack.place_chat("new") is rack.slots[2]
    serve(rack, "아", 2)
    assert rack.place_chat("new") is rack.slots[1]  # the oldest is awaited
    assert rack.place_chat("雨") is rack.slots[0]
    rack.slots[0].holder = object()
    assert rack.place_chat("雨") is None  # its own or none


def test_reading_ahead_is_not_worth_anothers_cache() -> None:
    rack = make_rack(2)
    serve(rack, "a", 0)
    assert rack.place_prefill("b") is rack.slots[1]
    serve(rack, "c", 1)
    assert rack.place_prefill("b") is None
    assert rack.place_prefill("a") is rack.slots[0]


def test_background_work_without_a_slot_of_its_own_may_push_out_or_not() -> None:
    rack = make_rack(2)
    assert rack.place_background(may_push_out=False) is None
    assert rack.place_background(may_push_out=True) is rack.slots[0]
    kept = make_rack(3, wanted=1)
    assert kept.place_background(may_push_out=False) is kept.slots[2]


def test_a_slot_that_settles_is_nobodys_to_take() -> None:
    rack = make_rack(1)
    lease = object()
    rack.give(rack.slots[0], lease, Wish("chat", "a"))
    rack.take_back(rack.slots[0], is_settled=False)
    assert rack.place_chat("a") is None
    assert rack.settle(0)
    assert not rack.settle(0)
    assert not rack.settle(7)
    assert rack.place_chat("a") is rack.slots[0]


def test_what_may_hold_a_deleted_conversation_is_dirty_until_it_is_wiped() -> None:
    rack = make_rack(3)
    serve(rack, "gone", 0)
    serve(rack, "kept", 1)
    rack.forget("gone")
    assert rack.dirty == [0, 2]  # nobody knows what is in the third
    assert not rack.is_nobodys(0)
    rack.note_wiped(rack.slots[0])
    assert rack.dirty == [2]
    assert rack.is_nobodys(0)
    assert not rack.is_nobodys(1)


def test_owners_of_before_are_restored_where_nobody_was_and_they_still_are() -> None:
    rack = make_rack(2)
    serve(rack, "new", 0)
    rack.restore({0: "old", 1: "gone", 2: "late"}, {"gone"})
    assert [slot.owner for slot in rack.slots] == ["new", None]
    rack.resize(3, ())
    assert [slot.owner for slot in rack.slots] == ["new", None, "late"]
