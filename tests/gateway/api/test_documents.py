"""Documents of a conversation over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from gateway.store.documents import put_document
from tests.gateway.api.conftest import Door, Opener
from tests.gateway.api.test_conversations import files_of
from tests.gateway.api.test_memories import KEYS, send
from tests.gateway.seeds import add_conversation, talk

TEXTS = [
    "Rule 1: whisper.\nRule 2: no fire.",
    "規則一：静かに。\n規則二：火気厳禁。",
    "规则一：安静。",
    "규칙 1: 조용히.",
    "Правило 1: тихо.",
    "Regla 1: ¡silencio!",
    "🔥🚫\u200d👩‍👩‍👧\r\n\ttab",
]


def path_of(door: Door, **more: Any) -> str:
    chat, _ = door.store.writing(add_conversation, talk(1), alias="chat-1", **more)
    return f"/api/conversations/{chat.id}/documents"


@pytest.mark.parametrize("text", TEXTS)
async def test_a_document_is_put_read_replaced_and_removed(door: Door, text: str) -> None:
    path = path_of(door)
    put = await send(door, "PUT", path, {"name": " house\n rules.md ", "text": text})
    assert put.status_code == 200
    (made,) = put.json()["documents"]
    assert (made["name"], made["text"], made["chars"]) == ("house rules.md", text, len(text))
    assert made["shown"] is False
    assert put.json()["views"] == [
        {"policy": "local-fold", "room": 5_500, "left_out": [], "reason": None, "pins_left_out": []}
    ]
    again = await send(door, "PUT", path, {"name": "house rules.md", "text": text, "now": True})
    assert again.json()["documents"] == [made]
    other = await send(door, "PUT", path, {"name": "house rules.md", "text": text + "!"})
    assert other.json()["documents"][0]["id"] != made["id"]
    listed = (await door.get("/api/conversations/chat-1/documents")).json()
    assert [one["text"] for one in listed["documents"]] == [text + "!"]
    for named in ("house%20rules.md", other.json()["documents"][0]["id"]):
        assert (await door.get(f"{path}/{named}")).json() == other.json()
    gone = await door.delete(f"{path}/house%20rules.md")
    assert (gone.json()["name"], gone.json()["deleted"]) == ("house rules.md", True)
    assert (await door.get(path)).json()["documents"] == []
    assert (await door.delete(f"{path}/house%20rules.md")).status_code == 404
    await send(door, "PUT", path, {"name": "b", "text": text})
    assert (await send(door, "DELETE", path)).status_code == 400
    assert (await send(door, "DELETE", path, {"name": "b", "now": True})).json()["name"] == "b"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "`name` is missing: it must be a text."),
        (b"[1]", "The body must be a JSON object."),
        ({"name": "a"}, "`text` is missing: it must be a text."),
        ({"name": "a", "text": ""}, "`text` is empty."),
        ({"name": " ", "text": "a"}, "`name` is empty."),
        ({"name": "x" * 201, "text": "a"}, "`name` has 201 characters; 200 are the most."),
        ({"name": "a\u202eb", "text": "a"}, "`name` holds a character that cannot be seen."),
        ({"name": "a\x07b", "text": "a"}, "`name` holds a character that cannot be seen."),
        ({"name": "\u200b", "text": "a"}, "`name` is empty."),
        ({"name": "..", "text": "a"}, "`name` is `..`, which in an address is no name but a way."),
        ({"name": " . ", "text": "a"}, "`name` is `.`, which in an address is no name but a way."),
        ({"name": "%2E%2e", "text": "a"}, "`name` is `%2E%2e`, which in an address is no name"),
        ({"name": "../../x", "text": "a"}, "`name` holds a slash or a backslash, which part"),
        ({"name": "a%2fb", "text": "a"}, "`name` holds a slash or a backslash, which part"),
        ({"name": "規則\\..", "text": "a"}, "`name` holds a slash or a backslash, which part"),
        ({"name": "a", "text": "x" * 1_000_000}, "`text` has 1,000,000 characters; 100,000"),
        ({"name": "a", "text": "x\x00"}, "`text` holds a NUL character."),
        (b'{"name": "a", "text": "\\udc00"}', "`text` holds half of a surrogate pair."),
        ({"name": "a", "text": "x", "policy": "p"}, "`policy` is no field here"),
        ({"name": "a", "text": "x", "now": "yes"}, "`now` must be true or false."),
    ],
)
async def test_what_is_no_document_is_refused_in_words(door: Door, body: Any, words: str) -> None:
    path = path_of(door)
    answer = await send(door, "PUT", path, body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert answer.json()["error"]["message"].startswith(words)
    assert (await door.get(path)).json()["documents"] == []


@pytest.mark.parametrize("name", ["...", "..rules", "a..b.md", "100 % 規則", "правила №1", "🔥.md"])
async def test_a_name_with_dots_is_one(door: Door, name: str) -> None:
    path = path_of(door)
    assert (await send(door, "PUT", path, {"name": name, "text": "x"})).status_code == 200
    gone = await door.delete(f"{path}/{quote(name)}")
    assert (gone.status_code, gone.json()["name"]) == (200, name)


async def test_a_name_from_before_that_is_a_way_goes_by_its_id(door: Door) -> None:
    chat, _ = door.store.writing(add_conversation, talk(1), alias="chat-1")
    row, _ = door.store.writing(put_document, chat.pk, "../..", "x", 1)
    gone = await door.delete(f"/api/conversations/{chat.id}/documents/{row.id}")
    assert gone.json() == {"id": row.id, "name": "../..", "deleted": True}


async def test_too_many_and_too_much_are_refused(door: Door) -> None:
    path = path_of(door)
    for name in ("a", "b"):
        await send(door, "PUT", path, {"name": name, "text": "語" * 100_000})
    answer = await send(door, "PUT", path, {"name": "c", "text": "x"})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "text")
    assert "would have 200,001 characters together" in answer.json()["error"]["message"]
    listed = (await door.get(path)).json()
    (view,) = listed["views"]
    assert (view["room"], view["left_out"]) == (5_500, ["a", "b"])
    assert view["reason"].endswith("the documents before it leave of 5,500 characters.")
    for name in ("a", "b"):
        await send(door, "PUT", path, {"name": name, "text": "x"})
    for number in range(48):
        answer = await send(door, "PUT", path, {"name": f"n{number}", "text": "x"})
        assert answer.status_code == 200
    answer = await send(door, "PUT", path, {"name": "one more", "text": "x"})
    assert answer.json()["error"]["message"] == "A conversation has at most 50 documents."
    assert (await send(door, "PUT", path, {"name": "n1", "text": "y"})).status_code == 200


async def test_a_view_without_room_for_documents_says_why(
    opened: Opener, tmp_path: Path, door: Door
) -> None:
    """A fold leaves 3,000 − 1,500; 800 verbatim, 200 of gist, 500 of chapters, twice a tenth."""
    path = path_of(door)
    small = {
        "view": {"start": 3_000, "ceiling": 4_000, "headroom": 1_500, "keep": 800},
        "chapters": {"split": 2_000, "length": 200, "stack": 700},
        "gist": {"length": 200},
    }
    file = door.context.policies.file
    policy = file.policies["local-fold"]
    policy = type(policy).model_validate({**small, "name": policy.name})
    file.policies["local-fold"] = policy
    put = await send(door, "PUT", path, {"name": "rules.md", "text": "Rule 1: whisper."})
    assert put.status_code == 200
    assert put.json()["views"] == [
        {
            "policy": "local-fold",
            "room": 0,
            "left_out": ["rules.md"],
            "reason": "This policy's views show no document: a fold leaves 1,500 characters "
            "(view.start − view.headroom), and view.keep takes 800 of them, gist, chapters, "
            "profile and ledger up to 1,000.",
            "pins_left_out": [],
        }
    ]


async def test_another_owners_conversation_is_an_unknown_one(opened: Opener) -> None:
    """Law 11."""
    async with opened(keys=KEYS) as door:
        path = path_of(door, owner="anna")
        await send(door, "PUT", path, {"name": "a", "text": "A"}, "ka")
        unknown = "/api/conversations/conv_" + "0" * 24 + "/documents"
        for method, tail, body in (
            ("GET", "", None),
            ("PUT", "", {"name": "a", "text": "B"}),
            ("PUT", "", b"not JSON"),
            ("GET", "/a", None),
            ("DELETE", "/a", None),
        ):
            other = await send(door, method, path + tail, body, "kb")
            nobody = await send(door, method, unknown + tail, body, "kb")
            assert (other.status_code, other.content) == (404, nobody.content)
        assert (await door.get(path, "ka")).json()["documents"][0]["text"] == "A"


async def test_documents_leave_no_byte(opened: Opener, tmp_path: Path) -> None:
    """Law 10."""
    async with opened() as door:
        path = path_of(door)
        database = tmp_path / "foldgate.db"
        await send(door, "PUT", path, {"name": "a", "text": "ORCHID-7 " * 2_000})
        await send(door, "PUT", path, {"name": "b", "text": "TULIP-8 " * 2_000})
        assert b"ORCHID-7" in files_of(database)
        await door.delete(f"{path}/a")
        assert b"ORCHID-7" not in files_of(database)
        await door.delete("/api/conversations/chat-1")
        assert b"TULIP-8" not in files_of(database)
