"""What the surface tells of a conversation, to whom, and what is left when it is deleted."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from gateway.store import transcript
from gateway.store.conversations import outbox
from gateway.store.tables import METADATA
from tests.gateway.api.conftest import Door, Opener
from tests.gateway.seeds import NOW, add_conversation, add_memory, extend, talk

UNKNOWN = "conv_" + "0" * 24
NO_LEDGER: dict[str, list[Any]] = {
    name: [] for name in ("facts", "claims", "threads", "quotes", "notes", "deleted", "pins")
}


async def pages(door: Door, id: str, limit: int, **query: str) -> list[list[dict[str, Any]]]:
    found = []
    after: str | None = ""
    while after is not None:
        extra = "".join(f"&{name}={value}" for name, value in query.items())
        path = f"/api/conversations/{id}/messages?limit={limit}{extra}"
        answer = (await door.get(path + (f"&after={after}" if after else ""))).json()
        assert set(answer) == {"messages", "next"}
        found.append(answer["messages"])
        after = answer["next"]
    return found


@pytest.mark.parametrize(
    ("limit", "sizes"),
    [(1, [1] * 7), (3, [3, 3, 1]), (6, [6, 1]), (7, [7]), (1_000, [7])],
    ids=["1 a page", "3+3+1", "6+1", "all at once", "more than there are"],
)
async def test_pages_give_every_message_once(door: Door, limit: int, sizes: list[int]) -> None:
    said = [*talk(3), {"role": "user", "content": "and?"}]
    conversation, nodes = door.store.writing(add_conversation, said)
    found = await pages(door, conversation.id, limit)
    assert [len(page) for page in found] == sizes
    messages = [message for page in found for message in page]
    assert [message["id"] for message in messages] == [node.id for node in nodes]
    assert [message["parent"] for message in messages] == [None, *(n.id for n in nodes[:-1])]
    assert [message["content"] for message in messages] == [one["content"] for one in said]


async def test_a_message_has_these_keys_and_no_others(door: Door) -> None:
    conversation, nodes = door.store.writing(add_conversation, talk(1))
    answer = await door.get(f"/api/conversations/{conversation.id}/messages")
    assert answer.json()["messages"][1] == {
        "id": nodes[1].id,
        "parent": nodes[0].id,
        "role": "assistant",
        "content": "tell 00000",
        "created_at": "2023-11-14T22:13:20.000Z",
        "backend": "local-glm",
        "finish_reason": "stop",
        "partial": False,
    }


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "日本語 · 한국어 · Привет · ¿qué? · 👩‍👩‍👧"},
        {"role": "user", "content": "각 is not 각, Z͑͑͑"},
        {"role": "user", "content": "a\x00b\r\n  "},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "w", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "content": "", "tool_call_id": "t1", "name": "w"},
        {"role": "user", "content": "x" * 2_000_000},
    ],
    ids=["scripts", "spellings", "NUL", "parts", "null", "tool", "2 MB"],
)
async def test_content_comes_back_exactly(door: Door, message: dict[str, Any]) -> None:
    conversation, _ = door.store.writing(add_conversation, [message])
    answer = await door.get(f"/api/conversations/{conversation.id}/messages")
    (found,) = answer.json()["messages"]
    assert {key: found[key] for key in message} == message


async def test_half_an_emoji_comes_back_as_an_escape(door: Door) -> None:
    said = {"role": "user", "content": "hi \ud83d there"}
    conversation, _ = door.store.writing(add_conversation, [said])
    answer = await door.get(f"/api/conversations/{conversation.id}/messages")
    assert b'"hi \\ud83d there"' in answer.content
    assert json.loads(answer.content)["messages"][0]["content"] == said["content"]


async def test_the_newest_branch_unless_another_head_is_named(door: Door) -> None:
    conversation, nodes = door.store.writing(add_conversation, talk(2))
    other = door.store.writing(
        extend, conversation, nodes[1], [{"role": "user", "content": "no, this"}]
    )
    newest = (await pages(door, conversation.id, 10))[0]
    assert [m["id"] for m in newest] == [nodes[0].id, nodes[1].id, other[0].id]
    older = await pages(door, conversation.id, 2, head=nodes[3].id)
    assert [[m["id"] for m in page] for page in older] == [
        [nodes[0].id, nodes[1].id],
        [nodes[2].id, nodes[3].id],
    ]
    off = await door.get(f"/api/conversations/{conversation.id}/messages?after={nodes[2].id}")
    assert (off.status_code, off.json()["error"]["param"]) == (400, "after")
    shown = (await door.get(f"/api/conversations/{conversation.id}")).json()
    assert [branch["head"] for branch in shown["branches"]] == [other[0].id, nodes[3].id]
    assert (shown["head"], shown["messages"], shown["chars"]) == (other[0].id, 3, 28)


async def test_a_page_reads_its_own_rows_and_not_the_history(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation, nodes = door.store.writing(add_conversation, talk(1_000))

    def steps(limit: int, after: str) -> int:
        """SQLite's own count of the rows it visited: the handler is called every 10 operations."""
        count = 0

        def tick() -> int:
            nonlocal count
            count += 1
            return 0

        def read(connection: Any) -> None:
            connection.connection.dbapi_connection.set_progress_handler(tick, 10)
            head = transcript.node_by_pk(connection, nodes[-1].pk)
            from gateway.store.conversations import read_page

            node = transcript.node_by_id(connection, conversation.pk, after)
            assert len(read_page(connection, head, node, limit).messages) == limit
            connection.connection.dbapi_connection.set_progress_handler(None, 10)

        door.store.reading(read)
        return count

    assert steps(10, nodes[500].id) < 3 * steps(10, nodes[1_980].id)


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=-1", "limit=1001", "limit=x", "limit=1e3", "limit=", "after=a/b"]
)
async def test_bad_values_are_told(door: Door, query: str) -> None:
    conversation, _ = door.store.writing(add_conversation, talk(1))
    for path in (f"/api/conversations/{conversation.id}/messages", "/api/conversations"):
        answer = await door.get(f"{path}?{query}")
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == query.split("=")[0]


async def test_the_prefix_report_of_the_newest_turns(door: Door) -> None:
    conversation, nodes = door.store.writing(add_conversation, talk(3))
    door.store.writing(add_memory, conversation, nodes)
    path = f"/api/conversations/{conversation.id}/prefix"
    (turn,) = (await door.get(path)).json()["turns"]
    assert (turn["asked"], turn["view"], turn["prompt_tokens"]) == (nodes[4].id, "folded", 10)
    assert (turn["reused"], turn["expected"], turn["moved_by"]) == (None, None, None)
    assert (await door.get(f"{path}?limit=0")).status_code == 400
    assert (await door.get("/api/conversations/conv_none/prefix")).status_code == 404


async def test_lists_are_newest_first_and_paged(door: Door) -> None:
    made = [
        door.store.writing(add_conversation, talk(1), now_ms=NOW + at)[0].id for at in (5, 9, 9, 1)
    ]
    order = [made[2], made[1], made[0], made[3]]
    first = (await door.get("/api/conversations?limit=3")).json()
    assert [one["id"] for one in first["conversations"]] == order[:3]
    rest = (await door.get(f"/api/conversations?limit=3&after={first['next']}")).json()
    assert [one["id"] for one in rest["conversations"]] == order[3:]
    assert rest["next"] is None


async def test_memory_as_designed(door: Door) -> None:
    conversation, nodes = door.store.writing(add_conversation, talk(3))
    door.store.writing(add_memory, conversation, nodes)
    answer = (await door.get(f"/api/conversations/{conversation.id}/memory")).json()
    (chapter,) = answer["chapters"]
    assert chapter.pop("id").startswith("chap_")
    assert chapter == {
        "first": nodes[0].id,
        "last": nodes[1].id,
        "source_chars": 20,
        "text": "They met.",
        "origin": "model",
        "backend": "local-glm",
        "created_at": "2023-11-14T22:13:20.000Z",
        "version": 1,
        "restored": None,
        "versions": [
            {
                "version": 1,
                "text": "They met.",
                "origin": "model",
                "backend": "local-glm",
                "prompt": "1",
                "created_at": "2023-11-14T22:13:20.000Z",
            }
        ],
        "pinned": False,
        "on_path": True,
    }
    (gist,) = answer["gists"]
    assert gist.pop("id").startswith("gist_")
    assert len(gist.pop("versions")) == 1
    assert gist == {
        "policy": "local-fold",
        "last": nodes[1].id,
        "text": "gist: They met.",
        "origin": "model",
        "backend": "local-glm",
        "created_at": "2023-11-14T22:13:20.000Z",
        "version": 1,
        "restored": None,
        "pinned": False,
        "retired": False,
        "on_path": True,
    }
    (job,) = answer["jobs"]
    assert job.pop("id").startswith("chapter:")
    assert job == {
        "kind": "chapter",
        "state": "queued",
        "attempts": 1,
        "run_at": "2023-11-14T22:13:50.000Z",
        "error": "refusal",
        "on_path": True,
    }
    (refused,) = answer["quarantine"]
    assert refused.pop("chapter").startswith("chap_")
    del answer["chapters"], answer["gists"], answer["jobs"]
    assert answer == {
        "backend": None,
        "route": None,
        "migration": None,
        "head": nodes[-1].id,
        **NO_LEDGER,
        "profile": [],
        "documents": [],
        "quarantine": [
            {
                "on_path": True,
                "reasons": ["refusal"],
                "kind": "chapter",
                "backend": "local-glm",
                "text": "I cannot help with They met.",
                "finish_reason": "stop",
                "created_at": "2023-11-14T22:13:20.000Z",
            }
        ],
        "views": [
            {
                "policy": "local-fold",
                "border": nodes[1].id,
                "gist": "gist: They met.",
                "memory_chars": 321,
                "verbatim_chars": 60 - 20,
                "notes_chars": 0,
                "debt_chars": 20,
                "kind": "fold",
                "pins": [],
                "on_path": True,
            }
        ],
        "pin_room": [
            {"policy": "local-fold", "room": 4_000, "chars": 0, "left_out": [], "reason": None}
        ],
    }


async def test_a_conversation_without_memory_shows_its_models_policy(door: Door) -> None:
    conversation, nodes = door.store.writing(add_conversation, talk(2))
    answer = (await door.get(f"/api/conversations/{conversation.id}/memory")).json()
    assert answer == {
        "backend": None,
        "route": None,
        "migration": None,
        "head": nodes[-1].id,
        "chapters": [],
        "gists": [],
        **NO_LEDGER,
        "profile": [],
        "documents": [],
        "quarantine": [],
        "views": [
            {
                "policy": "local-fold",
                "border": None,
                "gist": None,
                "memory_chars": 0,
                "verbatim_chars": 40,
                "notes_chars": 0,
                "debt_chars": 0,
                "kind": None,
                "pins": [],
                "on_path": True,
            }
        ],
        "jobs": [],
        "pin_room": [
            {"policy": "local-fold", "room": 4_000, "chars": 0, "left_out": [], "reason": None}
        ],
    }


def routes_with_an_id(door: Door) -> list[tuple[str, str]]:
    return [
        (method, route.path)
        for router in door.app.routes
        for route in getattr(getattr(router, "original_router", None), "routes", [router])
        if "{id}" in getattr(route, "path", "")
        for method in sorted(route.methods)
    ]


async def test_anothers_id_is_answered_like_an_unknown_one(opened: Opener) -> None:
    """I04."""
    async with opened(keys={"ka": "anna", "kb": "bert"}) as door:
        conversation, nodes = door.store.writing(
            add_conversation, talk(3), owner="anna", alias="chat-1"
        )
        door.store.writing(add_memory, conversation, nodes)
        routes = routes_with_an_id(door)
        assert len(routes) >= 4
        for method, path in routes:
            answers = {
                (answer.status_code, answer.content)
                for id in (conversation.id, "chat-1", UNKNOWN, "../x", "%00", "日本")
                for answer in [
                    await door.client.request(
                        method,
                        path.replace("{id}", id),
                        headers={"authorization": "Bearer kb"},
                    )
                ]
                if "/x" not in id
            }
            assert len(answers) == 1, path
            assert {status for status, _ in answers} == {404}
        listed = (await door.get("/api/conversations", "kb")).json()
        assert listed == {"conversations": [], "next": None}
        assert (await door.get("/api/jobs", "kb")).json() == {"jobs": []}
        assert (await door.get("/api/conversations/chat-1", "ka")).json()["id"] == conversation.id
        assert len((await door.get("/api/jobs", "ka")).json()["jobs"]) == 1


async def test_a_forwarded_user_is_an_owner_of_its_own(opened: Opener) -> None:
    async with opened(keys={"ka": "anna"}) as door:
        conversation, _ = door.store.writing(add_conversation, talk(1), owner="anna", user="u1")
        path = f"/api/conversations/{conversation.id}"
        assert (await door.get(path, "ka", x_openwebui_user_id="u1")).status_code == 200
        assert (await door.get(f"{path}?user=u1", "ka")).status_code == 200
        assert (await door.get(path, "ka", x_openwebui_user_id="u2")).status_code == 404
        # Whoever holds the key may forward any user: the key alone sees them all.
        assert (await door.get(path, "ka")).status_code == 200


async def test_the_administrator_sees_everybody(opened: Opener) -> None:
    async with opened(keys={"ka": "anna", "kb": "bert"}, admin_key="root") as door:
        one, _ = door.store.writing(add_conversation, talk(1), owner="anna")
        two, _ = door.store.writing(add_conversation, talk(1), owner="bert")
        listed = (await door.get("/api/conversations", "root")).json()["conversations"]
        assert [(row["owner"], row["id"]) for row in listed] == [("bert", two.id), ("anna", one.id)]
        only = (await door.get("/api/conversations?owner=anna", "root")).json()["conversations"]
        assert [row["id"] for row in only] == [one.id]
        assert (await door.get(f"/api/conversations/{two.id}", "root")).status_code == 200
        assert (await door.get("/v1/models", "root")).status_code == 401
        assert (await door.get("/api/conversations?user=u", "root")).status_code == 400


def files_of(database: Path) -> bytes:
    return b"".join(path.read_bytes() for path in database.parent.glob(database.name + "*"))


async def test_deletion_leaves_no_byte_of_it(opened: Opener, tmp_path: Path) -> None:
    """I07."""
    word = "ORCHID-7"
    async with opened() as door:
        kept, _ = door.store.writing(add_conversation, [{"role": "user", "content": "KEPT-1"}])
        said = [*talk(3), {"role": "user", "content": f"the word is {word} " * 3_000}]
        gone, nodes = door.store.writing(add_conversation, said, alias="chat-1")
        door.store.writing(add_memory, gone, nodes, text=f"They said {word}.")
        database = tmp_path / "foldgate.db"
        assert word.encode() in files_of(database)

        answer = await door.delete("/api/conversations/chat-1")

        assert answer.json() == {"id": gone.id, "deleted": True}
        assert word.encode() not in files_of(database)
        assert b"KEPT-1" in files_of(database)
        assert (await door.get(f"/api/conversations/{gone.id}")).status_code == 404
        assert (await door.get("/api/conversations/chat-1")).status_code == 404
        assert (await door.delete("/api/conversations/chat-1")).status_code == 404
        wipes = door.store.reading(lambda connection: connection.execute(select(outbox)).all())
        assert [(wipe.conversation_id, wipe.backend, wipe.slot) for wipe in wipes] == [
            (gone.id, "local-glm", None)
        ]
        again, _ = door.store.writing(add_conversation, talk(1), alias="chat-1")
        assert again.pk != gone.pk
        shown = (await door.get("/api/conversations/chat-1")).json()
        assert shown["id"] == again.id
        door.store.writing(add_conversation, talk(1), owner="x")
    assert word.encode() not in files_of(database)
    assert kept.id != gone.id


async def test_deletion_leaves_no_orphan_in_any_table(opened: Opener, tmp_path: Path) -> None:
    async with opened() as door:
        for _ in range(2):
            gone, nodes = door.store.writing(add_conversation, talk(3), alias="a")
            door.store.writing(add_memory, gone, nodes)
            assert (await door.delete(f"/api/conversations/{gone.id}")).status_code == 200
    left = sqlite3.connect(tmp_path / "foldgate.db")
    try:
        counts = {
            name: left.execute(f"SELECT count(*) FROM {name}").fetchone()[0]
            for name in METADATA.tables
        }
    finally:
        left.close()
    assert {name: count for name, count in counts.items() if count} == {
        "owners": 1,
        "kv_outbox": 2,
        "policy_revisions": 1,
    }
