"""The owner's memory over HTTP: whose it is, what may be written, what a deletion leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from sqlalchemy import Connection

from gateway.store import profile_learning
from gateway.store.profile_learning import Told
from tests.gateway.api.conftest import Door, Opener
from tests.gateway.api.test_conversations import files_of
from tests.gateway.seeds import NOW, add_conversation, talk

PATH = "/api/memories"
KEYS = {"ka": "anna", "kb": "bert"}


async def send(
    door: Door, method: str, path: str, body: Any = None, key: str | None = None, **headers: str
) -> httpx.Response:
    """body: bytes as they are, anything else as JSON."""
    sent = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    named = {"authorization": f"Bearer {key}"} if key else {}
    named |= {name.replace("_", "-"): value for name, value in headers.items()}
    return await door.client.request(method, path, content=sent, headers=named)


async def add(door: Door, text: str, key: str | None = None, **more: Any) -> dict[str, Any]:
    answer = await send(door, "POST", PATH, {"text": text, **more}, key)
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def texts(door: Door, query: str = "", key: str | None = None) -> list[str]:
    answer = await door.get(f"{PATH}{query}", key)
    return [one["text"] for one in answer.json()["memories"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["🎻 lessons on Monday!", "私は京都に住む。"]),
        ("%00", []),
        ("%20", []),
        ("!", []),
        ("。", []),
        ("%E2%80%8D", []),
        ("🎻", ["🎻 lessons on Monday!"]),
        ("🎻!", ["🎻 lessons on Monday!"]),
        ("🎺", []),
        ("京都!", ["私は京都に住む。"]),
    ],
)
async def test_words_without_letters_find_nothing(door: Door, query: str, found: list[str]) -> None:
    await add(door, "私は京都に住む。")
    await add(door, "🎻 lessons on Monday!")
    assert await texts(door, f"?q={query}") == found


@pytest.mark.parametrize(
    "text",
    [
        "I live in Kyoto.",
        "京都に住んでいます。",
        "我住在杭州。",
        "부산에 살아요.",
        "Я живу в Казани.",
        "¡Vivo en Sevilla!",
        "👩‍👩‍👧 are my family",
    ],
)
async def test_a_fact_is_added_listed_found_edited_and_deleted(door: Door, text: str) -> None:
    made = await add(door, f"  {text}\n ", about=" my\thome ")
    assert (made["text"], made["about"], made["origin"]) == (text, "my home", "owner")
    assert (made["conversation"], made["owner"], made["user"]) == (None, "local", "")
    assert await texts(door) == [text]
    assert await texts(door, f"?q={text[2:6]}") == [text]
    assert await texts(door, "?q=zzz") == []
    shown = await door.get(f"{PATH}/{made['id']}")
    assert shown.json() == made
    new = await send(door, "PATCH", f"{PATH}/{made['id']}", {"text": f"{text} {text}"})
    assert (new.json()["text"], new.json()["about"]) == (f"{text} {text}", "my home")
    assert await texts(door) == [f"{text} {text}"]
    assert (await door.get(f"{PATH}/{made['id']}")).json() == new.json()
    same = await send(door, "PATCH", f"{PATH}/{made['id']}", {"text": new.json()["text"]})
    assert same.json() == new.json(), "in the same words it stays what it is"
    back = await send(door, "POST", f"{PATH}/{new.json()['id']}/undo")
    assert (await texts(door), back.json()["text"]) == ([text], text)
    gone = await door.delete(f"{PATH}/{back.json()['id']}")
    assert gone.json() == {"id": back.json()["id"], "deleted": True}
    assert await texts(door) == []


async def test_a_fact_is_found_by_the_ids_that_it_had(door: Door) -> None:
    """As long as its owner alone changed it; where it is gone, so are they."""
    first = (await add(door, "I live in Kyoto.", about="home"))["id"]
    second = (await send(door, "PATCH", f"{PATH}/{first}", {"text": "I live in Nara."})).json()
    third = (await send(door, "PATCH", f"{PATH}/{first}", {"text": "I live in Osaka."})).json()
    assert await texts(door) == ["I live in Osaka."]
    assert len({first, second["id"], third["id"]}) == 3
    for old in (first, second["id"], third["id"]):
        assert (await door.get(f"{PATH}/{old}")).json() == third
    back = (await send(door, "POST", f"{PATH}/{first}/undo")).json()
    assert (back["text"], await texts(door)) == ("I live in Nara.", ["I live in Nara."])
    added = await add(door, "I live in Kobe.", about="home")
    assert (await door.get(f"{PATH}/{first}")).json() == added
    gone = await door.delete(f"{PATH}/{first}?now=true")
    assert gone.json() == {"id": added["id"], "deleted": True}
    assert await texts(door) == []
    for old in (first, second["id"], third["id"], added["id"]):
        for method in ("GET", "PATCH", "DELETE"):
            answer = await send(door, method, f"{PATH}/{old}", {"text": "x"})
            assert answer.status_code == 404


async def test_what_was_learned_in_its_place_is_changed_by_its_own_id_alone(door: Door) -> None:
    made = await add(door, "I live in Kyoto.", about="home")
    row, nodes = door.store.writing(add_conversation, talk(1))
    told, span = [Told("The user lives in Nara.", "home", nodes[0].pk)], [nodes[0].pk]
    later = {"span": span, "now_ms": NOW}

    def learn(connection: Connection) -> None:
        # said after the owner wrote it
        connection.exec_driver_sql("UPDATE messages SET created_ms = 4000000000000")
        profile_learning.learn(connection, row.owner_pk, row.pk, told, **later)

    door.store.writing(learn)
    (learned,) = (await door.get(PATH)).json()["memories"]
    assert learned["text"] == "The user lives in Nara."
    assert (await door.get(f"{PATH}/{made['id']}")).json() == learned
    for method, tail in (("PATCH", ""), ("DELETE", ""), ("POST", "/undo")):
        body = {"text": "x"} if method == "PATCH" else None
        refused = await send(door, method, f"{PATH}/{made['id']}{tail}", body)
        assert (refused.status_code, refused.json()["error"]["message"]) == (
            409,
            f"Something newer was learned in the place of this memory: {learned['id']}. Change "
            "that one.",
        )
    assert await texts(door) == ["The user lives in Nara."]
    assert (await door.delete(f"{PATH}/{learned['id']}")).status_code == 200


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "`text` is missing: it must be a text."),
        (b"{", "The body is not valid JSON"),
        (b"[]", "The body must be a JSON object."),
        (b"\xff{}", "The body is not valid JSON"),
        ({"text": ""}, "`text` is empty."),
        ({"text": " \n\u3000"}, "`text` is empty."),
        ({"text": None}, "`text` must be a text, not null."),
        ({"text": 7}, "`text` must be a text."),
        ({"text": ["a"]}, "`text` must be a text."),
        ({"text": "x" * 1_000_000}, "`text` has 1,000,000 characters; 1,000 are the most."),
        ({"text": "a\x00b"}, "`text` holds a NUL character."),
        (b'{"text": "a\\ud83d"}', "`text` holds half of a surrogate pair."),
        ({"text": "a", "about": "x" * 101}, "`about` has 101 characters; 100 are the most."),
        ({"text": "a", "about": 3}, "`about` must be a text."),
        ({"text": "a", "now": "yes"}, "`now` must be true or false."),
        ({"text": "a", "txt": "b"}, "`txt` is no field here; known: `text`, `about`, `now`."),
        (b'{"text": "a", "\\ud83d": 1}', "`\ufffd` is no field here"),
    ],
)
async def test_what_is_no_fact_is_refused_in_words(door: Door, body: Any, words: str) -> None:
    made = await add(door, "kept")
    for method, path in (("POST", PATH), ("PATCH", f"{PATH}/{made['id']}")):
        answer = await send(door, method, path, body)
        assert answer.status_code == 400
        if not (method == "PATCH" and body == b""):
            assert answer.json()["error"]["message"].startswith(words)
    assert await texts(door) == ["kept"]


async def test_an_edit_must_say_what_changes(door: Door) -> None:
    made = await add(door, "kept", about="x")
    answer = await send(door, "PATCH", f"{PATH}/{made['id']}", {"now": True})
    assert answer.status_code == 400
    new = (await send(door, "PATCH", f"{PATH}/{made['id']}", {"about": None})).json()
    assert (new["text"], new["about"]) == ("kept", None)
    alone = await add(door, "another")
    undone = await send(door, "POST", f"{PATH}/{alone['id']}/undo", {})
    assert (undone.status_code, undone.json()["error"]["code"]) == (409, "conflict")


@pytest.mark.parametrize("id", ["mem_" + "0" * 16, "x", "%00", "%F0%9F", "a" * 5_000, "export/x"])
async def test_an_unknown_id_is_a_404(door: Door, id: str) -> None:
    for method in ("GET", "PATCH", "DELETE"):
        answer = await send(
            door, method, f"{PATH}/{id}", None if method == "GET" else {"text": "a"}
        )
        assert answer.status_code == 404, (method, answer.text)


async def test_pages_give_every_fact_once(door: Door) -> None:
    for number in range(7):
        await add(door, f"fact {number}")
    found, after = [], ""
    while after is not None:
        answer = (await door.get(f"{PATH}?limit=3&after={after}")).json()
        found.append([one["text"] for one in answer["memories"]])
        after = answer["next"]
    assert found == [
        ["fact 6", "fact 5", "fact 4"],
        ["fact 3", "fact 2", "fact 1"],
        ["fact 0"],
    ]
    for query in ("after=x", "limit=0", "limit=x", "q=" + "x" * 201):
        assert (await door.get(f"{PATH}?{query}")).status_code == 400


async def test_owners_never_meet(opened: Opener) -> None:
    """Law 11."""
    async with opened(keys=KEYS, admin_key="root") as door:
        hers = await add(door, "anna's", "ka")
        of_user = await send(door, "POST", PATH, {"text": "u1's"}, "ka", x_openwebui_user_id="u1")
        assert of_user.json()["user"] == "u1"
        assert await texts(door, key="kb") == []
        for method, path, body in (
            ("GET", hers["id"], None),
            ("PATCH", hers["id"], {"text": "mine"}),
            ("PATCH", hers["id"], b"not even JSON"),
            ("POST", f"{hers['id']}/undo", None),
            ("DELETE", hers["id"], None),
        ):
            other = await send(door, method, f"{PATH}/{path}", body, "kb")
            nobody = path.replace(hers["id"], "mem_" + "0" * 16)
            unknown = await send(door, method, f"{PATH}/{nobody}", body, "kb")
            assert other.status_code == unknown.status_code == 404
            assert other.content == unknown.content
        assert (await send(door, "GET", f"{PATH}/export", key="kb")).content == b""
        # The key alone sees those of all its users; a user only its own.
        assert await texts(door, key="ka") == ["u1's", "anna's"]
        assert await texts(door, "?user=u1", "ka") == ["u1's"]
        assert await texts(door, "?user=u2", "ka") == []
        assert await texts(door, key="root") == ["u1's", "anna's"]
        assert await texts(door, "?owner=bert", "root") == []
        assert await texts(door, "?owner=anna", "ka") == ["u1's", "anna's"]
        refused = await send(door, "GET", f"{PATH}?owner=bert", key="ka")
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "owner")
        assert (await send(door, "GET", f"{PATH}?owner=nobody", key="ka")).status_code == 400
        assert (await send(door, "POST", PATH, {"text": "x"}, "root")).status_code == 400
        made = await send(door, "POST", f"{PATH}?owner=bert", {"text": "x"}, "root")
        assert made.json()["owner"] == "bert"
        assert (await door.get(PATH)).status_code == 401


async def test_an_export_is_every_fact_oldest_first(door: Door) -> None:
    for number in range(3):
        await add(door, f"факт {number} 京")
    answer = await door.get(f"{PATH}/export")
    assert answer.headers["content-type"] == "application/x-ndjson"
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [(one["type"], one["text"]) for one in lines] == [
        ("memory", f"факт {number} 京") for number in range(3)
    ]


async def test_a_deleted_fact_leaves_no_byte(opened: Opener, tmp_path: Path) -> None:
    async with opened() as door:
        kept = await add(door, "KEPT-1")
        made = await add(door, "the word is ORCHID-7", about="ORCHID-7")
        new = await send(door, "PATCH", f"{PATH}/{made['id']}", {"text": "it is ORCHID-8"})
        database = tmp_path / "foldgate.db"
        assert b"ORCHID-7" in files_of(database)
        await door.delete(f"{PATH}/{new.json()['id']}?now=true")
        assert b"ORCHID" not in files_of(database)
        assert b"KEPT-1" in files_of(database)
        assert (await door.delete(f"{PATH}/{kept['id']}?now=1")).status_code == 400


async def test_what_was_learned_goes_with_its_conversation(opened: Opener, tmp_path: Path) -> None:
    """Law 10."""
    async with opened() as door:
        chat, nodes = door.store.writing(add_conversation, talk(1), alias="chat-1")
        told = [Told("The user's word is ORCHID-7.", "word", nodes[0].pk)]
        span = [node.pk for node in nodes]
        door.store.writing(
            profile_learning.learn, chat.owner_pk, chat.pk, told, span=span, now_ms=NOW
        )
        (one,) = (await door.get(PATH)).json()["memories"]
        assert (one["origin"], one["conversation"]) == ("model", chat.id)
        await send(door, "PATCH", f"{PATH}/{one['id']}", {"text": "My word is ORCHID-7!"})
        await add(door, "I like tea")
        await door.delete("/api/conversations/chat-1")
        assert await texts(door) == ["I like tea"]
        assert b"ORCHID-7" not in files_of(tmp_path / "foldgate.db")


async def test_a_change_asked_for_now_renews_the_views(door: Door) -> None:
    chat, _ = door.store.writing(add_conversation, talk(1))

    def renews() -> bool:
        sql = "SELECT renew_after IS NOT NULL FROM conversations"
        return bool(door.store.reading(lambda c: c.exec_driver_sql(sql).scalar()))

    made = await add(door, "quietly")
    assert not renews()
    await send(door, "PATCH", f"{PATH}/{made['id']}", {"text": "loudly", "now": True})
    assert renews()
    assert chat.renew_after is None
