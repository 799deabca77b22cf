"""Law 4: what an owner deletes or edits with `now` is so in the very next prompt, also where a
reply is only drawn again or a branch begins at an older turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.flows import ledger_edits, memory_edits
from gateway.flows.hand import Hand
from gateway.store import chapter_rows, ledger, profile, profile_edits
from gateway.wire.json_text import loads
from tests.gateway.house import House, Said, user

OLD, NEW = "Кто взял ключ? 鍵は誰が?", "Where did the cat go? 猫は?"


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def told(said: Said) -> str:
    return "\n".join(str(message["content"]) for message in said.prompt)


async def folded(house: House) -> Said:
    """Talk until the view has folded, with one thread, one memory and one chapter in it."""
    await house.say("0 " + "word " * 60, id="c")
    owner = house.conversation("c").owner_pk
    house.store.writing(profile_edits.add_fact, owner, "I live in Kyoto.", "home", house.clock.ms)
    node = house.path("c")[0]

    def open_thread(connection: Connection) -> None:
        ledger.add_entry(
            connection,
            house.conversation("c").pk,
            kind="thread",
            text=OLD,
            last_pk=node.pk,
            last_depth=node.depth,
            origin="model",
            now_ms=house.clock.ms,
        )

    house.store.writing(open_thread)
    for number in range(1, 40):
        said = await house.say(f"{number} " + "word " * 60, id="c")
        house.write_chapters()
        if said.view == "folded":
            assert OLD in told(said)
            assert "I live in Kyoto." in told(said)
            return said
    raise AssertionError("it never folded")


def entry_id(connection: Connection, hand: Hand) -> str:
    (row,) = [row for row, _ in ledger.all_entries(connection, hand.conversation.pk)][:1]
    return row.id


def delete_entry(connection: Connection, hand: Hand) -> tuple[str, str]:
    ledger_edits.delete_entry(connection, hand, entry_id(connection, hand))
    return OLD, ""


def edit_entry(connection: Connection, hand: Hand) -> tuple[str, str]:
    ledger_edits.edit_entry(connection, hand, entry_id(connection, hand), {"text": NEW})
    return OLD, NEW


def edit_chapter(connection: Connection, hand: Hand, text: str = NEW) -> tuple[str, str]:
    first = chapter_rows.all_chapters(connection, hand.conversation.pk)[0]
    memory_edits.edit_chapter(connection, hand, first.id, text)
    return first.text or "", text


def delete_chapter(connection: Connection, hand: Hand) -> tuple[str, str]:
    return edit_chapter(connection, hand, "")


def delete_fact(connection: Connection, hand: Hand) -> tuple[str, str]:
    (fact,) = profile.active(connection, hand.conversation.owner_pk)
    memory_edits.delete_fact(connection, fact, hand.now_ms, now=hand.now)
    return "I live in Kyoto.", ""


def edit_fact(connection: Connection, hand: Hand) -> tuple[str, str]:
    for text in ("I live in Nara.", NEW):
        (fact,) = profile.active(connection, hand.conversation.owner_pk)
        memory_edits.edit_fact(connection, fact, text, "home", hand.now_ms, now=hand.now)
    return "I live in Kyoto.", NEW


CHANGES = [delete_entry, edit_entry, edit_chapter, delete_chapter, delete_fact, edit_fact]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_asked_for_now_is_seen_where_a_reply_is_drawn_again(
    house: House, change: Callable[[Connection, Hand], tuple[str, str]]
) -> None:
    await folded(house)
    await house.say("so?", id="c")
    hand = Hand(house.conversation("c"), house.clock.ms, now=True)
    # as another process does it: nothing tells this one's cache of views
    old, new = house.store.writing(change, hand)
    history = [loads(row.raw) for row in house.path("c")][:-2]
    again = await house.say("so?", id="c", retried=True)
    for said in (again, await house.say(*history, user("or else?"), id="c")):
        assert old not in told(said)
        assert new in told(said)
    house.restart()
    once_more = await house.say(*history, user("so?"), id="c")
    assert once_more.bytes == again.bytes


@pytest.mark.parametrize("change", CHANGES)
async def test_without_now_a_reply_that_is_drawn_again_is_asked_for_as_before(
    house: House, change: Callable[[Connection, Hand], tuple[str, str]]
) -> None:
    await folded(house)
    before = await house.say("so?", id="c")
    hand = Hand(house.conversation("c"), house.clock.ms)
    house.store.writing(change, hand)
    assert (await house.say("so?", id="c", retried=True)).bytes == before.bytes
