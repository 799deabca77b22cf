"""Conversations from the command line: told to their owner, written out whole, deleted for good."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from gateway.flows import pins
from gateway.flows.hand import Hand
from gateway.flows.memory_edits import find_chapter, undo_gist
from gateway.policy_file import load_policies
from gateway.store import documents, ledger, profile_edits
from gateway.store.engine import Store
from gateway.store.memory_report import read_memory
from gateway.store.transcript import ensure_owner
from tests.gateway.cli.conftest import Run, Seeded
from tests.gateway.seeds import add_conversation, extend, talk


def test_list_is_the_owners(run: Run, seeded: Seeded) -> None:
    done = run("conversations", "list", "--json")
    (mine,) = json.loads(done.stdout)["conversations"]
    assert (mine["id"], mine["messages"], mine["owner"]) == (seeded.mine.id, 7, "local")
    done = run("conversations", "list", "--owner", "anna", "--user", "u1", "--json")
    assert [one["id"] for one in json.loads(done.stdout)["conversations"]] == [seeded.hers.id]
    assert json.loads(run("conversations", "list", "--owner", "x", "--json").stdout) == {
        "conversations": []
    }


def test_list_for_people(run: Run, seeded: Seeded) -> None:
    done = run("conversations", "list")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"{seeded.mine.id}  2023-11-14T22:13:20.001Z")
    assert "7 messages" in done.stdout
    assert done.stdout.rstrip().endswith("  chat-1")
    assert done.stderr == "1 conversation of local\n"


def test_show_as_json(run: Run, seeded: Seeded) -> None:
    shown = json.loads(run("conversations", "show", "chat-1", "--json").stdout)
    assert shown["conversation"]["id"] == seeded.mine.id
    assert [m["id"] for m in shown["messages"]] == [node.id for node in seeded.nodes]
    assert shown["messages"][-1]["content"] == "half \ud83d, 全部, 👍"
    assert shown["memory"]["views"][0]["border"] == seeded.nodes[1].id
    assert shown["prefix"][0]["asked"] == seeded.nodes[4].id
    last = json.loads(run("conversations", "show", "chat-1", "--last", "2", "--json").stdout)
    assert last["messages"] == shown["messages"][-2:]


@pytest.mark.parametrize(("last", "prompts"), [(1, 0), (2, 1), (3, 1), (99, 1)])
def test_the_newest_messages_come_with_their_own_prompts(
    run: Run, seeded: Seeded, last: int, prompts: int
) -> None:
    """Of seven messages the fifth was asked and the sixth is its reply."""
    done = run("conversations", "show", "chat-1", "--last", str(last))
    said = [line for line in done.stdout.splitlines() if line.startswith("2023-")]
    assert len(said) == min(last, 7)
    assert done.stdout.count("prompt of 10 tokens") == prompts


def test_show_for_people(run: Run, seeded: Seeded) -> None:
    done = run("conversations", "show", seeded.mine.id)
    lines = done.stdout.splitlines()
    assert lines[0] == "2023-11-14T22:13:20.000Z  user: ask? 00000"
    assert lines[6].endswith("user: half �, 全部, 👍")
    assert "view of local-fold: memory 321, verbatim" in done.stdout
    assert "prompt of 10 tokens on local-glm: nothing is known of what was used again" in lines
    assert done.stderr == "", "a report is no progress: `| less` and `> file` hold all of it"


def test_show_tells_how_far_a_move_is(run: Run, seeded: Seeded) -> None:
    store = Store(f"sqlite:///{seeded.path}")
    store.open()
    for change in (
        "UPDATE conversations SET backend = 'rehearsal', route = 'local-glm'",
        "UPDATE attempts SET rule = 'migrating'",
        'UPDATE jobs SET payload = \'{"ahead": "local-fold", "to": "local-glm"}\'',
    ):
        store.writing(lambda connection, sql: connection.exec_driver_sql(sql), change)
    store.close()
    done = run("conversations", "show", seeded.mine.id)
    told = done.stdout.splitlines()
    assert "lives on rehearsal, is sent to local-glm" in told
    # behind the border one chapter of two messages of ten characters, without a text yet
    assert "moves to local-glm (local-fold): 0 of 1 texts ready for 20 characters" in told
    shown = json.loads(run("conversations", "show", "chat-1", "--json").stdout)["memory"]
    assert shown["migration"] == {
        "backend": "local-glm",
        "policy": "local-fold",
        "ready": 0,
        "total": 1,
        "backlog_chars": 20,
    }


@pytest.mark.parametrize("command", ["show", "export", "delete"])
def test_what_is_not_the_owners_is_not_there(run: Run, seeded: Seeded, command: str) -> None:
    for id in (seeded.hers.id, "conv_none"):
        done = run("conversations", command, id)
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr == f"foldgate: local has no conversation {id}\n"


def test_what_several_users_call_so_is_nobodys_without_its_user(run: Run, seeded: Seeded) -> None:
    store = Store(f"sqlite:///{seeded.path}")
    store.open()
    hers, his = (
        store.writing(add_conversation, talk(1), owner="ada", user=user, alias="X")[0].id
        for user in ("mia", "bob")
    )
    store.close()
    said = f"foldgate: 2 users of ada call a conversation X: bob ({his}), mia ({hers}). "
    for command in (["show"], ["export"], ["delete", "--yes"]):
        done = run("conversations", *command, "X", "--owner", "ada")
        assert (done.exit_code, done.stdout) == (1, "")
        assert done.stderr.startswith(said)
    kept = run("conversations", "delete", "X", "--owner", "ada", "--user", "bob", input="n\n")
    assert kept.stderr.startswith(f"Delete {his} of ada's user bob, 2 messages, for good? [y/N]")
    done = run("conversations", "delete", "X", "--owner", "ada", "--user", "bob", "--yes")
    assert done.stderr == f"{his} of ada's user bob is deleted\n"
    assert run("conversations", "delete", "X", "--owner", "ada", input="y\n").exit_code == 0


def lines_of(text: str) -> dict[str, list[dict[str, Any]]]:
    kinds: dict[str, list[dict[str, Any]]] = {}
    for line in text.splitlines():
        one = json.loads(line)
        kinds.setdefault(one.pop("type"), []).append(one)
    return kinds


def test_export_holds_every_branch_and_the_memory(run: Run, seeded: Seeded) -> None:
    kinds = lines_of(run("conversations", "export", seeded.mine.id).stdout)
    nodes = seeded.nodes
    assert kinds["conversation"][0]["aliases"] == ["chat-1"]
    assert [(m["id"], m["parent"]) for m in kinds["message"]] == [
        (nodes[0].id, None),
        *((child.id, parent.id) for parent, child in pairwise(nodes)),
        (seeded.other.id, nodes[4].id),
    ]
    assert json.loads(kinds["message"][6]["raw"]) == {
        "role": "user",
        "content": "half \ud83d, 全部, 👍",
    }
    chapter, debt = kinds["chapter"]
    assert (chapter["first"], chapter["last"]) == (nodes[0].id, nodes[1].id)
    assert [version["text"] for version in chapter["versions"]] == ["They met."]
    assert debt["versions"] == []
    (fold,) = kinds["fold"]
    assert fold["memory"] == [[chapter["id"], 1]]
    assert fold["gist"] == ["local-fold", nodes[1].id, 1]
    assert (fold["at"], fold["border"]) == (nodes[4].id, nodes[1].id)
    (gist,) = kinds["gist"]
    assert gist["sources"] == [[chapter["id"], 1]]
    (attempt,) = kinds["attempt"]
    assert (attempt["asked"], attempt["reply"], attempt["system"]) == (nodes[4].id, nodes[5].id, 1)
    assert attempt["fold"] == fold["number"] == 1
    assert kinds["system"][0]["messages"] == [[0, {"role": "system", "content": "They met."}]]
    assert kinds["quarantine"][0]["chapter"] == debt["id"]
    assert kinds["ratio"] == [{"backend": "local-glm", "chars_per_token": 3.5}]


def test_export_to_a_file_is_the_same(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = run("conversations", "export", seeded.mine.id, "--out", str(out), "--json")
    text = out.read_text()
    assert json.loads(done.stdout) == {
        "id": seeded.mine.id,
        "file": str(out),
        "lines": len(text.splitlines()),
    }
    assert text == run("conversations", "export", seeded.mine.id).stdout


def test_delete_asks_and_then_deletes(run: Run, seeded: Seeded) -> None:
    kept = run("conversations", "delete", "chat-1", input="n\n")
    assert (kept.exit_code, kept.stdout) == (1, "")
    assert run("conversations", "show", "chat-1").exit_code == 0
    done = run("conversations", "delete", "chat-1", "--yes", "--json")
    assert json.loads(done.stdout) == {"id": seeded.mine.id, "deleted": True}
    assert run("conversations", "show", "chat-1").exit_code == 1
    held = b"".join(p.read_bytes() for p in seeded.path.parent.glob("foldgate.db*"))
    assert b"They met." not in held
    assert seeded.hers.id.encode() in held


def test_delete_without_a_policies_file_says_so(run: Run, seeded: Seeded) -> None:
    Path("policies.yaml").write_text("version: 1\n")
    done = run("conversations", "delete", "chat-1", "--yes")
    assert done.exit_code == 0
    assert "without the policies file" in done.stderr


def test_show_tells_the_ledger_and_what_stands_beside_it(run: Run, seeded: Seeded) -> None:
    store = Store(f"sqlite:///{seeded.path}")
    store.open()
    last = {"last_pk": seeded.nodes[1].pk, "last_depth": 2, "origin": "model", "now_ms": 1}
    ids = {}
    for kind, text in (("fact", "京都に\n住む。"), ("thread", "Who?"), ("quote", "gone")):
        row = store.writing(ledger.add_entry, seeded.mine.pk, kind=kind, text=text, **last)
        ids[kind] = row.id
    mark = {"origin": "owner", "now_ms": 1}
    store.writing(ledger.add_mark, seeded.mine.pk, row.pk, "deleted", **mark)
    store.writing(ledger.add_mark, seeded.mine.pk, row.pk - 1, "pinned", **mark)
    rules, _ = store.writing(documents.put_document, seeded.mine.pk, "rules", "静かに。", 1)
    hers = (seeded.mine.owner_pk, "I have a 犬.", None, 1)
    fact = store.writing(profile_edits.add_fact, *hers)
    shown = f'{{"profile": [{fact.pk}]}}'
    store.writing(lambda c: c.exec_driver_sql("UPDATE folds SET shown = ?", (shown,)))
    memory = store.reading(read_memory, seeded.mine, default_policy=None)
    store.close()
    told = run("conversations", "show", "chat-1").stdout.splitlines()
    (chapter,), (gist,) = memory["chapters"], memory["gists"]
    for line in (
        f"{chapter['id']}  chapter of 20 characters (model): They met.",
        f"{gist['id']}  gist of local-fold (model): gist: They met.",
        f"{ids['fact']}  fact: 京都に 住む。",
        f"{ids['thread']}  thread T1, pinned: Who?",
        f"{fact.id}  of its owner: I have a 犬.",
        f"{rules.id}  document rules: 4 characters",
    ):
        assert line in told
    assert not [line for line in told if "gone" in line]


def test_show_tells_what_is_pinned_undone_and_left_behind(run: Run, seeded: Seeded) -> None:
    store = Store(f"sqlite:///{seeded.path}")
    store.open()
    memory = store.reading(read_memory, seeded.mine, default_policy=None)
    (chapter,), (gist,) = memory["chapters"], memory["gists"]
    owner = Hand(seeded.mine, 1)

    def change(connection: Connection) -> None:
        row = find_chapter(connection, seeded.mine, chapter["id"])
        pins.pin_chapter(connection, owner, load_policies(Path("policies.yaml"), {}).file, row)
        undo_gist(connection, owner, gist["id"], None, major=True)
        first = {"role": "assistant", "content": "else"}
        extend(connection, seeded.mine, seeded.nodes[0], [first])

    store.writing(change)
    (note,) = store.reading(read_memory, seeded.mine, default_policy=None)["notes"]
    store.close()
    told = run("conversations", "show", "chat-1").stdout.splitlines()
    assert (
        f"{chapter['id']}  chapter of 20 characters (model, pinned, elsewhere): They met." in told
    )
    assert f"{gist['id']}  gist of local-fold (model, undone, elsewhere): gist: They met." in told
    assert not [line for line in told if line.startswith(note["id"])], "its branch is not shown"


@pytest.mark.parametrize("group", ["conversations", "memories"])
def test_a_list_of_an_owner_who_is_none_names_those_who_are(
    run: Run, seeded: Seeded, group: str
) -> None:
    told = run(group, "list", "--owner", "Анна", "--json")
    assert json.loads(told.stdout) == {group: []}
    said = "there is no owner Анна; there are owners anna, local: name one with --owner\n"
    assert told.stderr == said
    assert run(group, "list", "--owner", "anna", "--json").stderr == ""


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["ada"], "; there is the owner ada: name it with --owner ada\n"),
        (["ada", "ben"], "; there are owners ada, ben: name one with --owner\n"),
        ([f"o{n:02}" for n in range(14)], ", o11 and 2 more: name one with --owner\n"),
    ],
)
def test_the_default_owner_may_be_none(
    run: Run, tmp_path: Path, names: list[str], said: str
) -> None:
    assert "no database" in run("conversations", "list").stderr
    store = Store(f"sqlite:///{tmp_path / 'foldgate.db'}")
    store.open()
    try:
        for name in names:
            store.writing(ensure_owner, name, "u1", 1)
    finally:
        store.close()
    done = run("conversations", "list", "--json")
    assert done.stderr.startswith("there is no owner local; there ")
    assert done.stderr.endswith(said)
