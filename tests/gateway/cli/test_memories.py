"""An owner's memory from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gateway.cli.conftest import Run, Seeded


def test_a_fact_is_added_listed_edited_and_deleted(run: Run, seeded: Seeded) -> None:
    done = run("memories", "add", " 京都に\n住んでいます。👍", "--about", "home", "--json")
    made = json.loads(done.stdout)
    assert (made["text"], made["about"]) == ("京都に 住んでいます。👍", "home")
    new = json.loads(run("memories", "edit", made["id"], "В Казани", "--json").stdout)
    assert (new["text"], new["about"]) == ("В Казани", "home")
    new = json.loads(run("memories", "edit", made["id"], "--about", "home", "--json").stdout)
    assert new["text"] == "В Казани", "it is found by the id that it had"
    listed = run("memories", "list")
    assert listed.stdout.startswith(f"{new['id']}  ")
    assert listed.stdout.endswith("  home: В Казани\n")
    assert listed.stderr == "1 memory of local\n"
    assert json.loads(run("memories", "list", "--query", "казани", "--json").stdout) == {
        "memories": [new]
    }
    assert json.loads(run("memories", "list", "--query", "x", "--json").stdout) == {"memories": []}
    kept = run("memories", "delete", new["id"], input="n\n")
    assert kept.exit_code == 1
    assert "Delete “В Казани” for good?" in kept.stderr
    done = run("memories", "delete", new["id"], "--yes", "--json")
    assert json.loads(done.stdout) == {"id": new["id"], "deleted": True}
    held = b"".join(p.read_bytes() for p in seeded.path.parent.glob("foldgate.db*"))
    assert "Казани".encode() not in held
    assert run("memories", "delete", new["id"], "--yes").exit_code == 1


def test_owners_never_meet(run: Run, seeded: Seeded) -> None:
    made = json.loads(run("memories", "add", "hers", "--owner", "anna", "--json").stdout)
    done = run("memories", "edit", made["id"], "mine")
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"foldgate: local has no memory {made['id']}\n"
    assert json.loads(run("memories", "list", "--json").stdout) == {"memories": []}


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", ""),
        ("add", " \n"),
        ("add", "x" * 1_001),
        ("add", "x", "--about", "y" * 101),
        ("edit", "mem_1"),
        ("list", "--limit", "0"),
        ("export", "--json"),
        ("forget",),
    ],
)
def test_wrong_use_is_told(run: Run, seeded: Seeded, arguments: tuple[str, ...]) -> None:
    done = run("memories", *arguments)
    assert (done.exit_code, done.stdout) == (2, "")


def test_an_export_is_json_lines(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    for text in ("one", "二"):
        run("memories", "add", text)
    out = tmp_path / "out.jsonl"
    done = run("memories", "export", "--out", str(out), "--json")
    assert json.loads(done.stdout) == {"file": str(out), "lines": 2}
    assert [json.loads(line)["text"] for line in out.read_text().splitlines()] == ["one", "二"]
    assert run("memories", "export").stdout == out.read_text()


@pytest.mark.parametrize("text", ["", " \n\u3000", "\u200b", "\ufeff\u2060"], ids=ascii)
def test_a_text_of_which_nothing_is_visible_is_empty(run: Run, seeded: Seeded, text: str) -> None:
    refused = run("memories", "add", text)
    assert (refused.exit_code, "It is empty." in refused.stderr) == (2, True)


def test_an_edit_is_undone(run: Run, seeded: Seeded) -> None:
    made = json.loads(run("memories", "add", "I like tea.", "--json").stdout)
    edited = json.loads(run("memories", "edit", made["id"], "お茶が好き。", "--json").stdout)
    again = json.loads(run("memories", "edit", edited["id"], "お茶が好き。", "--json").stdout)
    assert again["id"] == edited["id"] != made["id"], "in the same words it stays what it is"
    back = json.loads(run("memories", "undo", edited["id"], "--json").stdout)
    assert back["text"] == "I like tea."
    refused = run("memories", "undo", "mem_unknown")
    assert refused.exit_code == 1 and "no memory" in refused.stderr
