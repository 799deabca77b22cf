"""Pins over HTTP: what is pinned is shown, or it is told why not."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection

from gateway.store import documents
from tests.gateway.api.conftest import Door
from tests.gateway.api.test_conversation_memory import Chat
from tests.gateway.seeds import NOW

FRAME = len("- ") + len("\n")
"""What a pin costs beside its text."""


def room(
    *left_out: str, chars: int, room: int = 4_000, reason: str | None = None
) -> list[dict[str, Any]]:
    found = {"policy": "local-fold", "room": room, "chars": chars}
    return [{**found, "left_out": list(left_out), "reason": reason}]


@pytest.mark.parametrize("kind", ["chapters", "gists"])
async def test_a_chapter_or_gist_is_pinned_once_and_follows_its_text(door: Door, kind: str) -> None:
    chat = Chat(door)
    part = (await chat.memory())[kind][0]
    tail = f"{kind}/{part['id']}"
    for _ in range(2):
        assert (await chat.send("POST", f"{tail}/pin")).json() == {
            **part,
            "pinned": True,
            "pin_room": room(chars=len(part["text"]) + FRAME),
        }
    assert not chat.renews()

    async def pinned() -> list[str]:
        memory = await chat.memory()
        return [line["text"] for line in memory["notes"] if line["id"] in memory["pins"]]

    assert await pinned() == [part["text"]]
    await chat.send("PATCH", tail, {"text": "全部。"})
    assert await pinned() == ["全部。"]
    await chat.send("POST", f"{tail}/unpin", {"now": True})
    assert (await pinned(), chat.renews()) == ([], True)
    await chat.send("POST", f"{tail}/unpin")
    await chat.send("POST", f"{tail}/pin")
    gone = await chat.send("DELETE", tail)
    assert (await pinned(), gone.json()["pinned"]) == ([], False)
    nothing = await chat.send("POST", f"{tail}/pin")
    assert nothing.json()["error"]["message"].startswith("It tells nothing any more")


@pytest.mark.parametrize("kind", ["chapters", "gists"])
async def test_a_text_of_the_length_asked_for_is_pinned(door: Door, kind: str) -> None:
    """1,100 of a chapter, 1,500 of a gist; three chapters of that length fit 4,000."""
    chat = Chat(door)
    tail = f"{kind}/{(await chat.memory())[kind][0]['id']}"
    length = 1_100 if kind == "chapters" else 1_500
    await chat.send("PATCH", tail, {"text": "x" * length})
    pinned = await chat.send("POST", f"{tail}/pin")
    assert pinned.json()["pin_room"] == room(chars=length + FRAME)
    assert (await chat.memory())["pin_room"] == room(chars=length + FRAME)


async def test_what_no_view_has_room_for_is_not_pinned(door: Door) -> None:
    """4,000 characters by default: `- ` before it, a line end behind it."""
    chat = Chat(door)
    tail = f"chapters/{(await chat.chapter())['id']}"
    await chat.send("PATCH", tail, {"text": "x" * 3_998})
    refused = await chat.send("POST", f"{tail}/pin")
    assert (refused.status_code, refused.json()["error"]["message"]) == (
        409,
        "As a pin it has 4,001 characters. Views of local-fold have 4,000 for all pins "
        "(ledger.pins). Unpin something, shorten it, or raise ledger.pins.",
    )
    assert not (await chat.chapter())["pinned"]
    await chat.send("PATCH", tail, {"text": "x" * 3_997})
    assert (await chat.send("POST", f"{tail}/pin")).json()["pinned"]


async def test_pins_are_counted_together(door: Door) -> None:
    chat = Chat(door)
    tail = f"chapters/{(await chat.chapter())['id']}"
    await chat.send("PATCH", tail, {"text": "x" * 3_900})
    await chat.send("POST", f"{tail}/pin")
    fact, quote = (f"entries/{chat.entries[kind]}" for kind in ("fact", "quote"))
    await chat.send("PATCH", quote, {"text": "y" * 64})
    # 3,903 of 4,000 are taken; the fact has 24 + 3; the quote 64 + 2 marks + 6 of its speaker + 3
    assert (await chat.send("POST", f"{fact}/pin")).json()["pin_room"] == room(chars=3_930)
    (edited,) = [one for one in (await chat.memory())["quotes"] if one["state"] == "valid"]
    for _ in range(2):
        full = await chat.send("POST", f"entries/{edited['id']}/pin")
        assert (full.status_code, full.json()["error"]["message"]) == (
            409,
            "As a pin it has 75 characters. Views of local-fold have 4,000 for all pins "
            "(ledger.pins), and 2 pinned already take 3,930. Unpin something, shorten it, or raise "
            "ledger.pins.",
        )
    assert (await chat.send("POST", f"{fact}/pin")).status_code == 200, "it is pinned already"
    await chat.send("POST", f"{fact}/unpin")
    assert (await chat.send("POST", f"entries/{edited['id']}/pin")).json()["pinned"]


async def test_documents_share_the_room_and_it_is_told_what_they_leave_out(door: Door) -> None:
    """31,000 - 16,000 - 1,500 - 6,000 - 1,000 - 1,000 = 5,500 for documents, 1,000 of threads."""
    chat = Chat(door)
    chapter = await chat.chapter()
    tail = f"chapters/{chapter['id']}"
    await chat.send("PATCH", tail, {"text": "x" * 1_500})
    pinned = (await chat.send("POST", f"{tail}/pin")).json()
    (note,) = [line for line in (await chat.memory())["notes"] if line["text"] == pinned["text"]]
    frame = len('<document name="d">\n\n</document>\n')
    put = (documents.put_document, chat.row.pk, "d", "z" * (5_100 - frame), NOW)
    door.store.writing(*put)
    shared = (
        "all pins together have {} characters, and these views have 1,400 for them (ledger.pins; "
        "documents take 5,100 of the same room)"
    )
    # 5,500 - 5,100 + 1,000
    assert (await chat.memory())["pin_room"] == room(
        note["id"], chars=1_503, room=1_400, reason=shared.format("1,503")
    )
    listed = (await door.get(f"/api/conversations/{chat.row.id}/documents")).json()
    assert [view["pins_left_out"] for view in listed["views"]] == [[note["id"]]]
    fact = await chat.send("POST", f"entries/{chat.entries['fact']}/pin")
    assert fact.json()["error"]["message"] == (
        "As a pin it has 27 characters. Views of local-fold have 1,400 for all pins (ledger.pins; "
        "documents take 5,100 of the same room), and 1 pinned already take 1,503. Unpin something, "
        "shorten it, or raise ledger.pins."
    )
    edited = await chat.send("PATCH", tail, {"text": "x" * 1_397})
    assert edited.json()["pin_room"] == room(chars=1_400, room=1_400)
    longer = (await chat.send("PATCH", tail, {"text": "x" * 1_398})).json()
    (note,) = [line for line in (await chat.memory())["notes"] if line["text"] == longer["text"]]
    assert longer["pin_room"] == room(
        note["id"], chars=1_401, room=1_400, reason=shared.format("1,401")
    )


async def test_what_is_pinned_on_another_branch_takes_no_room(door: Door) -> None:
    chat = Chat(door)
    tail = f"chapters/{(await chat.chapter())['id']}"
    await chat.send("POST", f"{tail}/pin")
    head = chat.nodes[0].id
    assert (await chat.memory(f"?head={head}"))["pin_room"] == room(chars=0)
    assert (await chat.memory())["pin_room"] == room(chars=len("They met.") + FRAME)


async def test_a_model_that_is_gone_has_no_views_to_tell_of(door: Door) -> None:
    chat = Chat(door)

    def forget(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE conversations SET model = 'gone'")

    door.store.writing(forget)
    assert (await chat.memory())["pin_room"] == []


# ── what was pinned comes back ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["chapters", "gists"])
async def test_a_deletion_that_is_undone_gives_the_pin_back(door: Door, kind: str) -> None:
    chat = Chat(door)
    part = (await chat.memory())[kind][0]
    tail = f"{kind}/{part['id']}"
    await chat.send("POST", f"{tail}/pin")
    await chat.send("PATCH", tail, {"text": "全部。"})
    await chat.send("DELETE", tail)
    back = (await chat.send("POST", f"{tail}/undo")).json()
    assert (back["text"], back["pinned"]) == ("全部。", True)
    memory = await chat.memory()
    assert [line["text"] for line in memory["notes"] if line["id"] in memory["pins"]] == ["全部。"]
    # a pin that its owner took off before stays off
    await chat.send("POST", f"{tail}/unpin")
    await chat.send("DELETE", tail)
    assert not (await chat.send("POST", f"{tail}/undo")).json()["pinned"]


async def test_a_chapter_written_anew_has_its_pin_no_more(door: Door) -> None:
    """Other words than those that were deleted: nothing was undone."""
    chat = Chat(door)
    tail = f"chapters/{(await chat.chapter())['id']}"
    await chat.send("POST", f"{tail}/pin")
    await chat.send("DELETE", tail)
    assert not (await chat.send("PATCH", tail, {"text": "other words"})).json()["pinned"]
