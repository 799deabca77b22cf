"""Everything of an owner: listed, written out, read back, erased."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.store.engine import Store
from tests.gateway.cli.conftest import Run, Seeded
from tests.gateway.seeds import add_conversation


def test_an_owner_is_written_out_erased_and_read_back(
    run: Run, seeded: Seeded, tmp_path: Path
) -> None:
    run("memories", "add", "私はアンナ。🦌", "--about", "name")
    listed = json.loads(run("owners", "list", "--json").stdout)["owners"]
    held = {(one["name"], one["user"]): one["conversations"] for one in listed}
    assert held["local", ""] >= 1
    done = run("owners", "export", "local", "--out", "all.jsonl", "--json")
    lines = json.loads(done.stdout)["lines"]
    assert lines == len((tmp_path / "all.jsonl").read_text().splitlines())
    assert run("owners", "export", "local").stdout.count("\n") == lines
    kept = run("owners", "erase", "local", input="n\n")
    assert kept.exit_code == 1 and "Erase local" in kept.stderr
    erased = json.loads(run("owners", "erase", "local", "--yes", "--json").stdout)
    assert erased == {
        "owner": "local",
        "erased": True,
        "conversations": held["local", ""],
        "wiped": True,
    }
    files = b"".join(p.read_bytes() for p in seeded.path.parent.glob("foldgate.db*"))
    assert "アンナ".encode() not in files
    gone = run("owners", "export", "local")
    assert gone.exit_code == 1 and "Nothing is stored of local" in gone.stderr
    back = json.loads(run("owners", "import", "all.jsonl", "--json").stdout)
    assert (len(back["conversations"]), back["refused"], back["memories"]) == (
        held["local", ""],
        {},
        1,
    )
    assert run("owners", "export", "local").stdout == (tmp_path / "all.jsonl").read_text()
    assert run("doctor", "--deep").stdout.count("orphan") == 0


def test_another_owner_stays(run: Run, seeded: Seeded) -> None:
    store = Store(f"sqlite:///{seeded.path}")
    store.writing(add_conversation, [{"role": "user", "content": "hers"}], owner="eve", user="m")
    store.writing(add_conversation, [{"role": "user", "content": "his"}], owner="eve", user="n")
    store.close()
    assert run("owners", "erase", "eve", "--user", "m", "--yes").exit_code == 0
    left = json.loads(run("owners", "list", "--json").stdout)["owners"]
    assert ("eve", "n", 1) in {(one["name"], one["user"], one["conversations"]) for one in left}
    assert ("eve", "m") not in {(one["name"], one["user"]) for one in left}
    assert run("owners", "erase", "eve", "--user", "m", "--yes").exit_code == 1


def test_a_conversation_is_read_back(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    (one, *_) = json.loads(run("conversations", "list", "--json").stdout)["conversations"]
    run("conversations", "export", one["id"], "--out", "one.jsonl")
    refused = run("conversations", "import", "one.jsonl")
    assert refused.exit_code == 1 and "is here already" in refused.stderr
    run("conversations", "delete", one["id"], "--yes")
    done = run("conversations", "import", "one.jsonl")
    assert (done.exit_code, done.stderr) == (0, "1 conversation, 0 memories read\n")
    assert run("conversations", "export", one["id"]).stdout == (tmp_path / "one.jsonl").read_text()
    (tmp_path / "bad.jsonl").write_bytes(b"\xff\n")
    bad = run("conversations", "import", "bad.jsonl")
    assert bad.exit_code == 1 and "Line 1 is not JSON" in bad.stderr
    assert run("conversations", "import", "one.jsonl", "--user", "x").exit_code == 2
