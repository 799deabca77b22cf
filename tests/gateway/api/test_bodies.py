"""Bodies of changes: no route under /api takes one that it does not understand for its own."""

from __future__ import annotations

import json
import re

import pytest
from sqlalchemy import Connection, select

from gateway.store.profile import profile_facts
from gateway.store.transcript import conversation_by_pk, conversations, node_by_pk
from tests.gateway.api.conftest import Door
from tests.gateway.api.test_conversations import routes_with_an_id
from tests.gateway.api.test_memories import PATH, add, send
from tests.gateway.seeds import add_conversation, add_memory, talk
from tests.gateway.store.test_documents import show

BAD = [
    b"null",
    b"[]",
    b"garbage",
    b"\xff",
    b'{"nope": 1}',
    b'{"now": true, "now": false}',
    b"[" * 9_999,
    b'{"now": ' + b"[" * 1_010 + b"]" * 1_010 + b"}",
    b'{"now": ' + b"[" * 1_010 + b"]" * 1_010 + b', "now": true}',
    b'{"now": 1e999}',
    b'{"now": ' + b"9" * 5_000 + b"}",
    b'{"now": NaN}',
    *('{"now": true}'.encode(encoding) for encoding in ("utf-16", "utf-16-be", "utf-32")),
]


async def settled(door: Door) -> dict[str, str]:
    """Something to change of each kind: its id by what a path begins with."""
    chat, nodes = door.store.writing(add_conversation, talk(3))
    door.store.writing(add_memory, chat, nodes)
    await send(door, "PUT", f"/api/conversations/{chat.id}/documents", {"name": "a", "text": "A"})
    (job,) = (await door.get("/api/jobs")).json()["jobs"]
    memory = (await add(door, "お茶が好き"))["id"]
    return {"conversations": chat.id, "memories": memory, "jobs": job["id"]}


async def told(door: Door, ids: dict[str, str]) -> list[bytes]:
    one = f"/api/conversations/{ids['conversations']}"
    paths = (one, f"{one}/memory", f"{one}/documents", PATH, "/api/jobs?done=true")
    return [(await door.get(path)).content for path in paths]


@pytest.mark.parametrize("body", BAD, ids=lambda body: ascii(body[:24]))
async def test_no_change_is_made_by_a_body_that_is_not_understood(door: Door, body: bytes) -> None:
    ids = await settled(door)
    before = await told(door, ids)
    changes = [(how, path) for how, path in routes_with_an_id(door) if how not in ("GET", "HEAD")]
    assert len(changes) >= 20
    for method, path in [("POST", PATH), *changes]:
        kind = path.split("/")[2]
        path = path.replace("{id}", ids[kind]).replace("{named:path}", "a")
        answer = await send(door, method, re.sub(r"\{\w+\}", "x", path), body)
        assert (answer.status_code, method, path) == (400, method, path)
    assert await told(door, ids) == before


@pytest.mark.parametrize(
    ("body", "says", "param"),
    [
        ('{"text": "茶", "text": "酒"}', "`text` stands twice", "text"),
        ('{"text": [{"名": 1, "名": 2}]}', "`text[0].名` stands twice", "text[0].名"),
        ('{"text": {"🍵": {"a": 1, "\\u0061": 2}}}', "`text.🍵.a` stands twice", "text.🍵.a"),
    ],
)
async def test_a_key_that_stands_twice_is_told_with_its_place(
    door: Door, body: str, says: str, param: str
) -> None:
    answer = await send(door, "POST", PATH, body.encode())
    error = json.loads(answer.content)["error"]
    assert (answer.status_code, error["param"]) == (400, param)
    assert says in error["message"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32-be"])
async def test_a_body_that_is_not_utf_8_is_told_so(door: Door, encoding: str) -> None:
    answer = await send(door, "POST", PATH, '{"text": "пью чай"}'.encode(encoding))
    assert answer.status_code == 400
    message = json.loads(answer.content)["error"]["message"]
    assert f"written in {encoding[:6].upper()}; send UTF-8" in message


async def test_a_byte_order_mark_is_passed_over(door: Door) -> None:
    body = '{"text": "пью чай", "about": "user"}'.encode("utf-8-sig")
    answer = await send(door, "POST", PATH, body)
    assert (answer.status_code, json.loads(answer.content)["text"]) == (200, "пью чай")


def show_profile(connection: Connection, memory: str) -> None:
    """A view shows the memory, so that it is asked for anew where that goes at once."""
    where = profile_facts.c.id == memory
    pk = connection.execute(select(profile_facts.c.pk).where(where)).scalar_one()
    owner_pk, chat_pk = connection.execute(
        select(conversations.c.owner_pk, conversations.c.pk)
    ).one()
    chat = conversation_by_pk(connection, owner_pk, chat_pk)
    assert chat is not None and chat.head_pk is not None
    show(connection, chat, node_by_pk(connection, chat.head_pk), profile=[pk])


@pytest.mark.parametrize(
    ("query", "body", "is_now"),
    [
        ("", None, False),
        ("", {}, False),
        ("", {"now": False}, False),
        ("", {"now": True}, True),
        ("?now=true", None, True),
        ("?now=false", {"now": True}, True),
        ("?now=true", {"now": False}, True),
    ],
)
async def test_now_is_read_from_the_body_and_from_the_address(
    door: Door, query: str, body: dict[str, bool] | None, is_now: bool
) -> None:
    ids = await settled(door)
    chat = f"/api/conversations/{ids['conversations']}"
    chapter = (await door.get(f"{chat}/memory")).json()["chapters"][0]
    door.store.writing(show_profile, ids["memories"])

    def set_renewal(value: str) -> None:
        door.store.writing(
            lambda connection: connection.exec_driver_sql(
                f"UPDATE conversations SET renew_after = {value}"
            )
        )

    def renews() -> bool:
        sql = "SELECT renew_after IS NOT NULL FROM conversations"
        return bool(door.store.reading(lambda c: c.exec_driver_sql(sql).scalar()))

    for path in (f"{chat}/memory/chapters/{chapter['id']}", f"{PATH}/{ids['memories']}"):
        set_renewal("NULL")
        refused = await send(door, "DELETE", f"{path}?now=yes", body)
        assert (refused.status_code, renews()) == (400, False)
        refused = await send(door, "DELETE", path, {"now": "yes"})
        assert (refused.status_code, renews()) == (400, False)
        answer = await send(door, "DELETE", path + query, body)
        assert (answer.status_code, renews()) == (200, is_now), path


@pytest.mark.parametrize("text", ["\u200b", "\ufeff\u2060", " \u200d\n\u3000"], ids=ascii)
async def test_a_text_of_which_nothing_is_visible_is_empty(door: Door, text: str) -> None:
    ids = await settled(door)
    chat = f"/api/conversations/{ids['conversations']}"
    chapter = (await door.get(f"{chat}/memory")).json()["chapters"][0]["id"]
    for method, path, more in (
        ("POST", PATH, {}),
        ("PATCH", f"{PATH}/{ids['memories']}", {}),
        ("PATCH", f"{chat}/memory/chapters/{chapter}", {}),
        ("PUT", f"{chat}/documents", {"name": "b"}),
    ):
        answer = await send(door, method, path, {"text": text, **more})
        assert answer.status_code == 400
        assert json.loads(answer.content)["error"]["message"] == "`text` is empty."
