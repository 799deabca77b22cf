"""The owner's hand over one conversation's memory, over HTTP."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from sqlalchemy import Connection

from gateway.api import conversation_memory
from gateway.store import chapter_rows, ledger, profile_learning
from gateway.store.profile_learning import Told
from gateway.store.transcript import ConversationRow, Node
from tests.gateway.api.conftest import Door, Opener
from tests.gateway.api.test_memories import KEYS, send
from tests.gateway.seeds import NOW, add_conversation, add_memory, extend, talk

SIX = [
    "They met in Kyoto.",
    "京都で会った。",
    "他们在京都相遇。",
    "교토에서 만났다.",
    "Они встретились.",
    "¡Se vieron!",
]


class Chat:
    """A conversation with a memory, and its entries by kind."""

    def __init__(self, door: Door, owner: str = "local", key: str | None = None) -> None:
        self.door = door
        self.key = key
        self.row, self.nodes = door.store.writing(add_conversation, talk(3), owner=owner)
        door.store.writing(add_memory, self.row, self.nodes)
        self.entries = door.store.writing(add_entries, self.row, self.nodes)
        self.path = f"/api/conversations/{self.row.id}/memory"

    async def send(self, method: str, tail: str, body: Any = None) -> Any:
        return await send(self.door, method, f"{self.path}/{tail}", body, self.key)

    async def memory(self, query: str = "") -> dict[str, Any]:
        answer = await self.door.get(self.path + query, self.key)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def chapter(self) -> dict[str, Any]:
        (chapter,) = (await self.memory())["chapters"]
        found: dict[str, Any] = chapter
        return found

    async def gist(self) -> dict[str, Any]:
        (gist,) = (await self.memory())["gists"]
        found: dict[str, Any] = gist
        return found

    def renews(self) -> bool:
        sql = "SELECT renew_after IS NOT NULL FROM conversations WHERE pk = ?"
        return bool(
            self.door.store.reading(lambda c: c.exec_driver_sql(sql, (self.row.pk,)).scalar())
        )


def add_entries(
    connection: Connection, conversation: ConversationRow, nodes: list[Node]
) -> dict[str, str]:
    """One entry of each kind beside the chapter of messages 1–2, told by message 1."""
    told: dict[str, dict[str, Any]] = {
        "fact": {"text": "The user lives in Kyoto.", "about": "home"},
        "claim": {"text": "He is a king.", "who": "Sir", "target": "Ann", "truth": "A thief."},
        "thread": {"text": "Who took the key?"},
        "quote": {"text": "ask? 00000", "who": "Ann"},
        "note": {"text": "It rained."},
    }
    found = {}
    for kind, fields in told.items():
        row = ledger.add_entry(
            connection,
            conversation.pk,
            kind=kind,  # type: ignore[arg-type]
            last_pk=nodes[1].pk,
            last_depth=2,
            source_pk=nodes[0].pk,
            origin="model",
            now_ms=NOW,
            **fields,
        )
        found[kind] = row.id
    return found


# ── chapters ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("text", SIX)
async def test_a_chapter_is_edited_and_each_step_is_undone(door: Door, text: str) -> None:
    chat = Chat(door)
    chapter = await chat.chapter()
    tail = f"chapters/{chapter['id']}"
    first = await chat.send("PATCH", tail, {"text": f" {text}\n"})
    assert first.status_code == 200
    assert (first.json()["text"], first.json()["origin"], first.json()["version"]) == (
        text,
        "owner",
        2,
    )
    assert first.json() == await chat.chapter()
    same = await chat.send("PATCH", tail, {"text": text})
    assert same.json()["version"] == 2
    await chat.send("PATCH", tail, {"text": text + "!"})
    gone = await chat.send("DELETE", tail)
    assert (gone.json()["text"], gone.json()["deleted"]) == ("", True)
    steps = [(await chat.send("POST", f"{tail}/undo")).json() for _ in range(3)]
    assert [one["text"] for one in steps] == [text + "!", text, "They met."]
    # its owner put it there, and who wrote it is told still
    assert [(one["origin"], one["restored"]) for one in (gone.json(), *steps)] == [
        ("owner", None),
        ("owner", None),
        ("owner", None),
        ("owner", 1),
    ]
    assert steps[-1]["versions"][0]["origin"] == "model"
    nothing = await chat.send("POST", f"{tail}/undo")
    assert (nothing.status_code, nothing.json()["error"]["message"]) == (
        409,
        "The chapter has no earlier text to go back to.",
    )
    back = await chat.send("POST", f"{tail}/undo", {"version": 3})
    assert back.json()["text"] == text + "!"
    assert [one["text"] for one in back.json()["versions"]][:4] == [
        "They met.",
        text,
        text + "!",
        "",
    ]
    assert (await chat.send("POST", f"{tail}/undo", {"version": 99})).status_code == 400
    assert not chat.renews()
    await chat.send("PATCH", tail, {"text": "now", "now": True})
    assert chat.renews()


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "`text` is missing: it must be a text."),
        (b"nope", "The body is not valid JSON"),
        ({"text": "\n"}, "`text` is empty."),
        ({"text": 1}, "`text` must be a text."),
        ({"text": "x" * 1_000_000}, "`text` has 1,000,000 characters; "),
        ({"text": "a\x00"}, "`text` holds a NUL character."),
        (b'{"text": "\\ud83d"}', "`text` holds half of a surrogate pair."),
        ({"text": "a", "origin": "model"}, "`origin` is no field here; known: `text`, `now`."),
        ({"text": "a", "now": 1}, "`now` must be true or false."),
    ],
)
async def test_what_is_no_text_is_refused_in_words(door: Door, body: Any, words: str) -> None:
    chat = Chat(door)
    before = await chat.memory()
    for tail in (
        f"chapters/{before['chapters'][0]['id']}",
        f"gists/{before['gists'][0]['id']}",
    ):
        answer = await chat.send("PATCH", tail, body)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"].startswith(words)
    assert await chat.memory() == before


async def test_a_chapter_is_asked_for_again_once(door: Door) -> None:
    chat = Chat(door)
    chapter = await chat.chapter()
    rings: list[int] = []
    door.context.ring = rings.append
    one = await chat.send("POST", f"chapters/{chapter['id']}/resummarize")
    two = await chat.send("POST", f"chapters/{chapter['id']}/resummarize")
    assert one.json()["job"] == two.json()["job"]
    assert (len(rings), one.json()["text"]) == (2, "They met.")
    jobs = [job for job in (await chat.memory())["jobs"] if job["id"] == one.json()["job"]]
    assert [(job["kind"], job["state"], job["on_path"]) for job in jobs] == [
        ("chapter", "queued", True)
    ]
    assert (await chat.send("POST", "chapters/chap_0/resummarize")).status_code == 404


# ── gists ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_gist_is_edited_and_undone_and_then_its_major_gc(door: Door) -> None:
    chat = Chat(door)
    gist = await chat.gist()
    tail = f"gists/{gist['id']}"
    edited = await chat.send("PATCH", tail, {"text": "全部。"})
    assert (edited.json()["text"], edited.json()["version"]) == ("全部。", 2)
    back = await chat.send("POST", f"{tail}/undo")
    assert (back.json()["text"], back.json()["retired"]) == ("gist: They met.", False)
    assert (edited.json()["restored"], back.json()["restored"]) == (None, 1)
    for body in (None, {"now": True}):
        nothing = await chat.send("POST", f"{tail}/undo", body)
        assert (nothing.status_code, nothing.json()["error"]["message"]) == (
            409,
            "The gist has no earlier text to go back to. To undo the major GC itself, so that its "
            'chapters are shown again, say {"major": true}.',
        )
    assert not (await chat.gist())["retired"]
    undone = await chat.send("POST", f"{tail}/undo", {"major": True, "now": True})
    assert undone.json()["retired"]
    assert chat.renews()
    again = await chat.send("POST", f"{tail}/undo", {"major": True})
    assert again.json()["error"]["message"] == "This gist is undone already."


async def test_a_gist_that_nobody_edited_is_undone_by_its_name_alone(door: Door) -> None:
    chat = Chat(door)
    tail = f"gists/{(await chat.gist())['id']}"
    assert (await chat.send("POST", f"{tail}/undo")).status_code == 409
    both = await chat.send("POST", f"{tail}/undo", {"major": True, "version": 1})
    assert (both.status_code, both.json()["error"]["message"]) == (
        400,
        "`version` names a text to go back to, and `major` undoes the whole gist: name one.",
    )
    assert not (await chat.gist())["retired"]


async def test_a_major_gc_is_undone_at_once_where_it_says_so(door: Door) -> None:
    chat = Chat(door)
    tail = f"gists/{(await chat.gist())['id']}"
    await chat.send("PATCH", tail, {"text": "other"})
    undone = await chat.send("POST", f"{tail}/undo", {"major": True})
    assert (undone.json()["retired"], undone.json()["text"]) == (True, "other")
    gone = await chat.send("DELETE", tail)
    assert gone.json()["text"] == ""


# ── entries ───────────────────────────────────────────────────────────────────────────────────


async def test_the_ledger_is_told_by_kind(door: Door) -> None:
    chat = Chat(door)
    memory = await chat.memory()
    common = {
        "pinned": False,
        "origin": "model",
        "chapter": None,
        "source": chat.nodes[0].id,
        "created_at": "2023-11-14T22:13:20.000Z",
        "on_path": True,
        "superseded_by": None,
    }
    assert memory["facts"] == [
        {
            "id": chat.entries["fact"],
            "kind": "fact",
            "text": "The user lives in Kyoto.",
            "about": "home",
            "state": "valid",
            **common,
        }
    ]
    assert (
        memory["claims"][0] | {"who": "Sir", "to": "Ann", "truth": "A thief."}
        == (memory["claims"][0])
    )
    (thread,) = memory["threads"]
    assert (thread["name"], thread["state"], thread["closed_at"]) == ("T1", "open", None)
    assert memory["quotes"][0]["who"] == "Ann"
    assert memory["notes"][0]["text"] == "It rained."
    assert (memory["deleted"], memory["pins"]) == ([], [])


@pytest.mark.parametrize("text", SIX)
async def test_an_entry_is_edited_and_each_step_is_undone(door: Door, text: str) -> None:
    chat = Chat(door)
    old = chat.entries["thread"]
    await chat.send("POST", f"entries/{old}/pin")
    new = (await chat.send("PATCH", f"entries/{old}", {"text": f"{text}\n?"})).json()
    assert (new["text"], new["name"], new["pinned"], new["origin"]) == (
        f"{text} ?",
        "T1",
        True,
        "owner",
    )
    listed = (await chat.memory())["threads"]
    assert {line["id"]: line["state"] for line in listed} == {old: "superseded", new["id"]: "open"}
    last = (await chat.send("PATCH", f"entries/{new['id']}", {"text": "x"})).json()
    stale = await chat.send("PATCH", f"entries/{old}", {"text": "y"})
    assert stale.status_code == 409
    assert (await chat.send("POST", f"entries/{old}/pin")).status_code == 409
    back = (await chat.send("POST", f"entries/{last['id']}/undo")).json()
    assert (back["id"], back["state"]) == (new["id"], "open")
    first = (await chat.send("POST", f"entries/{new['id']}/undo")).json()
    assert (first["id"], first["state"], first["pinned"]) == (old, "open", True)
    unpinned = (await chat.send("POST", f"entries/{old}/undo")).json()
    assert not unpinned["pinned"]
    nothing = await chat.send("POST", f"entries/{old}/undo")
    assert nothing.json()["error"]["message"] == "Its owner changed nothing of this entry."
    assert (await chat.send("POST", f"entries/{new['id']}/undo")).status_code == 409


@pytest.mark.parametrize(
    ("act", "field", "value"),
    [("pin", "pinned", True), ("close", "state", "closed")],
)
async def test_acts_are_done_once_and_undone(door: Door, act: str, field: str, value: Any) -> None:
    chat = Chat(door)
    tail = f"entries/{chat.entries['thread']}"
    before = (await chat.memory())["threads"][0]
    for _ in range(2):
        done = await chat.send("POST", f"{tail}/{act}")
        assert done.json()[field] == value
    undone = (await chat.send("POST", f"{tail}/undo")).json()
    assert undone == before
    await chat.send("POST", f"{tail}/{act}", {"now": True})
    assert chat.renews()
    contrary = {"pin": "unpin", "close": "reopen"}[act]
    assert (await chat.send("POST", f"{tail}/{contrary}")).json() == before
    assert (await chat.send("POST", f"{tail}/{contrary}")).json() == before


async def test_an_entry_is_deleted_and_brought_back(door: Door) -> None:
    chat = Chat(door)
    tail = f"entries/{chat.entries['fact']}"
    gone = await chat.send("DELETE", tail)
    assert (gone.json()["state"], gone.json()["deleted"]) == ("deleted", True)
    memory = await chat.memory()
    assert (memory["facts"], [line["id"] for line in memory["deleted"]]) == (
        [],
        [chat.entries["fact"]],
    )
    for method, more, body in (("PATCH", "", {"text": "x"}), ("POST", "/pin", None)):
        assert (await chat.send(method, tail + more, body)).status_code == 409
    back = await chat.send("POST", f"{tail}/undo")
    assert (back.json()["state"], (await chat.memory())["deleted"]) == ("valid", [])


@pytest.mark.parametrize(
    ("kind", "body", "words"),
    [
        ("fact", {"who": "Ann"}, "A fact has no `who`."),
        ("thread", {"about": "x"}, "A thread has no `about`."),
        ("claim", {"who": "x" * 101}, "`who` has 101 characters; 100 are the most."),
        ("fact", {"text": "x" * 301}, "`text` has 301 characters; 300 are the most."),
        ("fact", {"text": None}, "`text` must be a text, not null."),
        ("fact", {}, "`text` or another field must say what is to change."),
        ("fact", {"kind": "thread"}, "`kind` is no field here"),
        ("quote", {"text": "\u200b\x00"}, "`text` holds a NUL character."),
    ],
)
async def test_what_is_no_change_is_refused_in_words(
    door: Door, kind: str, body: Any, words: str
) -> None:
    chat = Chat(door)
    answer = await chat.send("PATCH", f"entries/{chat.entries[kind]}", body)
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "invalid_request_error")
    assert answer.json()["error"]["message"].startswith(words)


async def test_fields_of_their_own_are_edited(door: Door) -> None:
    chat = Chat(door)
    claim = await chat.send(
        "PATCH", f"entries/{chat.entries['claim']}", {"truth": None, "to": "Боб"}
    )
    assert (claim.json()["to"], claim.json()["truth"], claim.json()["who"]) == ("Боб", None, "Sir")
    same = await chat.send("PATCH", f"entries/{claim.json()['id']}", {"to": "Боб"})
    assert same.json() == claim.json()


async def test_only_threads_are_closed(door: Door) -> None:
    chat = Chat(door)
    answer = await chat.send("POST", f"entries/{chat.entries['fact']}/close")
    assert answer.json()["error"]["message"] == (
        "Only a thread can be closed or reopened; this is a fact."
    )
    answer = await chat.send("POST", f"entries/{chat.entries['fact']}/burn")
    assert answer.status_code == 400


# ── what came of a change ─────────────────────────────────────────────────────────────────────


async def test_no_report_is_read_in_the_transaction_of_a_change(
    door: Door, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R23: the one writer waits for none."""
    chat = Chat(door)
    memory = await chat.memory()
    threads: list[str] = []

    def told(function: Any) -> Any:
        def read(*args: Any, **named: Any) -> Any:
            threads.append(threading.current_thread().name)
            return function(*args, **named)

        return read

    for name in ("read_memory", "read_entries"):
        monkeypatch.setattr(conversation_memory, name, told(getattr(conversation_memory, name)))
    for kind in ("chapters", "gists"):
        tail = f"{kind}/{memory[kind][0]['id']}"
        for method, more, body in (
            ("PATCH", "", {"text": "x"}),
            ("POST", "/pin", None),
            ("POST", "/unpin", None),
            ("POST", "/undo", None),
            ("DELETE", "", None),
        ):
            assert (await chat.send(method, tail + more, body)).status_code == 200
    await chat.send("POST", f"chapters/{memory['chapters'][0]['id']}/resummarize")
    tail = f"entries/{chat.entries['thread']}"
    for method, more in (("POST", "/pin"), ("POST", "/close"), ("POST", "/undo"), ("DELETE", "")):
        assert (await chat.send(method, tail + more)).status_code == 200
    await chat.send("PATCH", f"entries/{chat.entries['fact']}", {"text": "x"})
    assert len(threads) == 2 * 5 + 1 + 4 + 1
    assert all(name.startswith("store-read") for name in threads)


# ── paths ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_branch_marks_what_it_leaves_behind(door: Door) -> None:
    """A branch behind message 1: the chapter of 1–2 and all that hangs on it is left behind."""
    chat = Chat(door)
    parts = ("chapters", "gists", "facts", "claims", "threads", "quotes", "notes")
    asked = await chat.send("POST", f"chapters/{(await chat.chapter())['id']}/resummarize")
    before = await chat.memory()
    assert all(line["on_path"] for part in parts for line in before[part])
    other = door.store.writing(
        extend, chat.row, chat.nodes[0], [{"role": "assistant", "content": "else"}]
    )
    after = await chat.memory()
    assert after["head"] == other[0].id
    for part in (*parts, "quarantine"):
        assert [line["on_path"] for line in after[part]] == [False] * len(before[part]), part
    jobs = {job["id"]: job["on_path"] for job in after["jobs"]}
    assert jobs[asked.json()["job"]] is False
    back = await chat.memory(f"?head={chat.nodes[5].id}")
    assert back | {"jobs": None} == before | {"jobs": None}
    assert (await door.get(f"{chat.path}?head=nobody")).status_code == 404


async def test_a_branch_behind_it_leaves_it_as_it_is(door: Door) -> None:
    """A branch behind message 3: messages 1–2 are on both, the debt of 3–4 on one."""
    chat = Chat(door)
    door.store.writing(extend, chat.row, chat.nodes[2], [{"role": "assistant", "content": "else"}])
    after = await chat.memory()
    assert after["chapters"][0]["on_path"]
    assert after["facts"][0]["on_path"]
    assert [one["on_path"] for one in after["quarantine"]] == [False]


# ── owners ────────────────────────────────────────────────────────────────────────────────────


async def test_owners_never_meet(opened: Opener) -> None:
    """Law 11: another's memory is an unknown one, and so are parts of another conversation."""
    async with opened(keys=KEYS) as door:
        chat = Chat(door, "anna", "ka")
        memory = await chat.memory()
        chapter, gist = memory["chapters"][0]["id"], memory["gists"][0]["id"]
        entry = chat.entries["fact"]
        calls = [
            ("PATCH", f"chapters/{chapter}", {"text": "x"}),
            ("PATCH", f"chapters/{chapter}", b"no JSON"),
            ("DELETE", f"chapters/{chapter}", None),
            ("POST", f"chapters/{chapter}/undo", None),
            ("POST", f"chapters/{chapter}/resummarize", None),
            ("PATCH", f"gists/{gist}", {"text": "x"}),
            ("DELETE", f"gists/{gist}", None),
            ("POST", f"gists/{gist}/undo", None),
            ("POST", f"chapters/{chapter}/pin", None),
            ("POST", f"chapters/{chapter}/unpin", None),
            ("POST", f"gists/{gist}/pin", None),
            ("POST", f"gists/{gist}/unpin", None),
            ("PATCH", f"entries/{entry}", {"text": "x"}),
            ("DELETE", f"entries/{entry}", None),
            ("POST", f"entries/{entry}/pin", None),
            ("POST", f"entries/{entry}/undo", None),
        ]
        unknown = "/api/conversations/conv_" + "0" * 24 + "/memory"
        mine = Chat(door, "bert", "kb")
        for method, tail, body in calls:
            other = await send(door, method, f"{chat.path}/{tail}", body, "kb")
            nobody = await send(door, method, f"{unknown}/{tail}", body, "kb")
            assert (other.status_code, other.content) == (404, nobody.content)
            if body != b"no JSON":
                there = await send(door, method, f"{mine.path}/{tail}", body, "kb")
                assert there.status_code == 404, (method, tail)
        assert await chat.memory() | {"jobs": None} == memory | {"jobs": None}


@pytest.mark.parametrize("id", ["x", "%00", "%ff", "%F0%9F%8D%8E", "a" * 5_000])
async def test_an_unknown_part_is_a_404(door: Door, id: str) -> None:
    chat = Chat(door)
    for kind in ("chapters", "gists", "entries"):
        for method, tail, body in (
            ("PATCH", "", {"text": "x"}),
            ("DELETE", "", None),
            ("POST", "/undo", None),
        ):
            answer = await chat.send(method, f"{kind}/{id}{tail}", body)
            assert answer.status_code == 404, (kind, method, answer.text)


# ── scrub ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_scrub_tells_and_then_replaces(door: Door) -> None:
    chat = Chat(door)
    (chapter, _) = door.store.reading(chapter_rows.all_chapters, chat.row.pk)
    door.store.writing(
        chapter_rows.add_version,
        chat.row.pk,
        chapter.pk,
        text="I'm sorry, but I can't help with that.",
        origin="model",
        backend="local-glm",
        prompt="1",
        now_ms=NOW,
    )
    dry = (await chat.send("POST", "scrub", {"dry_run": True})).json()
    assert dry["dry_run"]
    assert [one["id"] for one in dry["bad"]] == [chapter.id]
    assert (await chat.chapter())["origin"] == "model"
    done = (await chat.send("POST", "scrub", {"now": True})).json()
    assert (done["bad"], chat.renews()) == (dry["bad"], True)
    assert (await chat.chapter())["origin"] == "stand-in"
    again = (await chat.send("POST", "scrub")).json()
    assert (again["dry_run"], again["bad"]) == (False, [])
    for body in (b"[]", {"dry_run": 1}, {"all": True}):
        assert (await chat.send("POST", "scrub", body)).status_code == 400


async def test_another_owners_memory_is_not_scrubbed(opened: Opener) -> None:
    async with opened(keys=KEYS) as door:
        chat = Chat(door, "anna", "ka")
        other = await send(door, "POST", f"{chat.path}/scrub", {}, "kb")
        assert other.status_code == 404
        assert (await chat.chapter())["origin"] == "model"


async def test_a_deleted_chapter_names_the_gists_that_still_tell_it(door: Door) -> None:
    chat = Chat(door)
    tail = f"chapters/{(await chat.chapter())['id']}"
    gist = (await chat.gist())["id"]
    gone = (await chat.send("DELETE", tail)).json()
    assert (gone["still_told_by"], gone["memories"]) == ([gist], [])
    await chat.send("POST", f"{tail}/undo")
    await chat.send("DELETE", f"gists/{gist}")
    assert (await chat.send("DELETE", tail)).json()["still_told_by"] == []


async def test_a_deleted_fact_names_the_memories_that_go_with_it(door: Door) -> None:
    chat = Chat(door)
    told = [Told("The user lives in Kyoto.", "home", chat.nodes[0].pk)]
    where = (chat.row.owner_pk, chat.row.pk)
    span = [chat.nodes[0].pk]
    door.store.writing(profile_learning.learn, *where, told, span=span, now_ms=NOW)
    (fact,) = (await door.get("/api/memories")).json()["memories"]
    tail = f"entries/{chat.entries['fact']}"
    gone = await chat.send("DELETE", tail)
    assert (gone.json()["state"], gone.json()["memories"]) == ("deleted", [fact["id"]])
    assert (await door.get("/api/memories")).json()["memories"] == []
    assert (await chat.send("DELETE", tail)).json()["memories"] == []
    await chat.send("POST", f"{tail}/undo")
    assert (await door.get("/api/memories")).json()["memories"] == [fact]
    await send(door, "DELETE", f"/api/memories/{fact['id']}")
    assert chat.entries["fact"] in {line["id"] for line in (await chat.memory())["deleted"]}
