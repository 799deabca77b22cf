"""Whether the program could run as it is configured."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from gateway.cli import doctor_machine
from gateway.cli.doctor_machine import check_machine
from gateway.settings import Settings
from gateway.store.backups import make_backup
from tests.gateway.cli.conftest import Run, Seeded
from tests.gateway.seeds import NOW, POLICIES


def report(run: Run, *arguments: str) -> tuple[int, dict[str, Any]]:
    done = run("doctor", "--json", *arguments)
    return done.exit_code, json.loads(done.stdout)


SERVED = POLICIES.replace("backend: local-glm", "backend: rehearsal")
"""Every model has a backend that answers."""


def test_a_model_that_nothing_serves_is_in_the_way(run: Run, seeded: Seeded) -> None:
    code, found = report(run)
    assert code == 1
    assert found["ok"] is False
    assert found["database"]["ok"] is True
    assert found["database"]["file"] == str(seeded.path)
    assert found["policies"]["problems"] == []
    assert found["backends"]["rehearsal"]["ok"] is True
    down = found["backends"]["local-glm"]
    assert (down["ok"], down["kind"], down["window_tokens"]) == (False, "llama_cpp", 65_536)
    assert found["models"] == {
        "foldgate": {"ok": False, "backends": []},
        "vendor/tiny": {"ok": True, "backends": ["rehearsal"]},
    }


def test_a_first_start_makes_nothing_yet(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text(SERVED)
    code, found = report(run)
    assert (code, found["database"]["says"]) == (0, "will be made at the first start")
    assert not (tmp_path / "foldgate.db").exists()


def test_everything_that_is_in_the_way(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text("version: 1\nbackends: {}\n")
    (tmp_path / "foldgate.db").write_bytes(b"no database " * 1_000)
    code, found = report(run)
    assert code == 1
    assert found["database"]["says"].startswith("cannot be read")
    assert len(found["policies"]["problems"]) >= 2
    assert found["backends"] == {}
    done = run("doctor")
    assert done.exit_code == 1
    assert done.stdout.startswith("BAD  database: cannot be read")


def test_another_kind_of_database(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text(POLICIES)
    code, found = report(run, "--database-url", "mysql://x/y")
    assert code == 1
    assert "not supported" in found["database"]["says"]


def test_a_backend_without_its_key_is_off_and_not_bad(run: Run, tmp_path: Path) -> None:
    cloud = (
        '  cloud: {kind: litellm, model: xai/grok-4.3, api_key: "${NO_KEY:-}", window: 1M tokens}\n'
    )
    open_ = cloud.replace("cloud:", "sky:").replace("${NO_KEY:-}", "sk-1")
    text = POLICIES.replace("policies:\n", f"{cloud}{open_}policies:\n")
    (tmp_path / "policies.yaml").write_text(text)
    told = run("doctor").stdout.splitlines()
    assert "ok   backend rehearsal" in told
    sky = "ok   backend sky: has what it needs, was not called, window 1,000,000 tokens"
    assert sky in told, "whether a provider answers is not known, and not claimed"
    assert "off  backend cloud: its api_key is not set" in told
    assert "BAD  model foldgate: no backend answers" in told
    assert "ok   model vendor/tiny: rehearsal" in told


def test_a_window_in_which_views_shrink_is_noted(run: Run, tmp_path: Path) -> None:
    """B06: nothing is in the way, and the owner knows."""
    narrow = SERVED.replace("{kind: scripted}", "{kind: scripted, window: 32768 tokens}")
    (tmp_path / "policies.yaml").write_text(narrow)
    code, found = report(run)
    assert code == 0
    notes = found["notes"]
    assert [note.partition(":")[0] for note in notes] == [
        "model foldgate on rehearsal",
        "model vendor/tiny on rehearsal",
    ]
    assert "56,000 chars is up to 62,223 tokens" in notes[0]
    assert f"note {notes[0]}" in run("doctor").stdout.splitlines()
    (tmp_path / "policies.yaml").write_text(SERVED)
    assert report(run)[1]["notes"] == []


def served(tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text(SERVED)


def change(seeded: Seeded, *statements: str) -> None:
    """Another program, without foreign keys."""
    with closing(sqlite3.connect(seeded.path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


# The seeded fold shows its chapter behind a gist that tells it already.
MENDED = "UPDATE folds SET gist_pk = NULL"


def test_the_machine(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    served(tmp_path)
    code, found = report(run)
    assert code == 0 and found["integrity"] is None
    machine = found["machine"]
    assert [*machine] == ["clock", "disk", "wal", "backups", "settings"]
    assert [one["ok"] for one in machine.values()] == [True] * 5
    assert "this machine's zone is" in machine["clock"]["says"]
    assert "journal wal, synchronous NORMAL" in machine["settings"]["says"]
    assert machine["settings"]["advice"] == "", "a new database is for its owner's eyes alone"
    seeded.path.chmod(0o640)  # as older versions left it
    assert f"chmod 600 {seeded.path}*" in report(run)[1]["machine"]["settings"]["advice"]


def test_a_clock_that_was_set_back(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    served(tmp_path)
    change(seeded, "UPDATE jobs SET updated_ms = 4000000000000")
    code, found = report(run)
    assert code == 1
    assert "the newest row was written at 2096-10-02" in found["machine"]["clock"]["says"]
    told = run("doctor").stdout
    assert "BAD  clock: " in told and "set it right (NTP)" in told


def test_the_machines_bounds(
    seeded: Seeded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(database_url=f"sqlite:///{seeded.path}", synchronous="FULL")

    def looked(now_ms: int = NOW) -> dict[str, tuple[bool, str]]:
        found = check_machine(settings, seeded.path, now_ms)
        return {name: (one["ok"], one["advice"]) for name, one in found.items()}

    assert "never" not in looked()["settings"][1]
    assert looked(doctor_machine.BUILT_MS - 1)["clock"][0] is False
    assert looked(doctor_machine.BUILT_MS)["clock"][0] is True
    size = seeded.path.stat().st_size
    for free, ok, words in (
        (64 << 20, True, ""),
        ((64 << 20) - 1, False, "Make room"),
    ):
        usage = SimpleNamespace(free=free)
        monkeypatch.setattr(doctor_machine.shutil, "disk_usage", lambda _, usage=usage: usage)
        fine, advice = looked()["disk"]
        assert fine is ok and words in advice
    monkeypatch.setattr(doctor_machine, "LEAST_FREE", 0)
    usage = SimpleNamespace(free=size - 1)
    monkeypatch.setattr(doctor_machine.shutil, "disk_usage", lambda _: usage)
    assert looked()["disk"] == (
        True,
        "There is no room for a backup on this disk: --to another one.",
    )
    usage.free = size // 2 - 1
    assert looked()["disk"][0] is False
    with closing(sqlite3.connect(seeded.path)) as reader:
        reader.execute("SELECT count(*) FROM messages").fetchone()
        monkeypatch.setattr(doctor_machine, "LONG_WAL", -1)
        fine, advice = looked()["wal"]
    assert fine is False and "reads one state" in advice
    change(seeded, "PRAGMA journal_mode=DELETE")
    fine, advice = looked()["settings"]
    assert fine is False and "network disk" in advice


def test_backups_that_have_expired(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    served(tmp_path)
    assert report(run)[1]["machine"]["backups"]["says"] == f"none in {tmp_path / 'backups'}"
    run("backup")
    code, found = report(run)
    assert code == 0 and found["machine"]["backups"]["says"].startswith("1 in ")
    make_backup(seeded.path, tmp_path / "backups" / "old.db", now_ms=NOW)
    code, found = report(run)
    assert code == 1 and "; 1 have expired" in found["machine"]["backups"]["says"]
    assert "foldgate backup prune" in found["machine"]["backups"]["advice"]
    run("backup")
    assert report(run)[0] == 0


def test_all_that_is_stored(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    served(tmp_path)
    change(seeded, MENDED)
    code, found = report(run, "--deep")
    assert code == 0
    assert found["integrity"]["ok"] is True
    assert found["integrity"]["says"] == "10 messages, 2 chapters, 1 folds: whole"
    change(seeded, "UPDATE messages SET raw = replace(raw, 'tell 00001', 'tell 灯台')")
    code, found = report(run, "--deep")
    assert code == 1
    (finding,) = found["integrity"]["findings"]
    assert (finding["check"], finding["count"]) == ("messages", 1)
    told = run("doctor", "--deep").stdout
    assert "BAD  integrity: 10 messages, 2 chapters, 1 folds: 1 found wanting" in told
    assert "BAD  integrity of messages: 1" in told
    assert f"of {seeded.mine.id}: its digest is not" in told
    assert finding["advice"] in told
    assert report(run)[0] == 0  # not looked for


def test_a_database_that_cannot_be_looked_into(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    served(tmp_path)
    change(seeded, "UPDATE alembic_version SET version_num = '0004'")
    code, found = report(run, "--deep")
    assert code == 0
    assert found["integrity"]["says"].startswith("not looked at: at revision 0004")
    change(seeded, "DROP TABLE alembic_version")
    assert "at revision None" in report(run, "--deep")[1]["integrity"]["says"]
    seeded.path.write_bytes(b"no database " * 1_000)
    code, found = report(run, "--deep")
    assert code == 1 and found["integrity"] is None
    assert [*found["machine"]] == ["disk", "wal", "backups"]


class _OneSlot(BaseHTTPRequestHandler):
    """A llama-server with one slot, which it does not list."""

    said: ClassVar[dict[str, Any]] = {
        "/health": {"status": "ok"},
        "/props": {"default_generation_settings": {"n_ctx": 65_536}, "total_slots": 1},
    }

    def do_GET(self) -> None:
        body = json.dumps(self.said.get(self.path, {"error": {"message": "no"}})).encode()
        self.send_response(200 if self.path in self.said else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: standard error is the command's."""


@pytest.fixture
def one_slot() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _OneSlot)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_how_a_server_was_started_is_told(run: Run, tmp_path: Path, one_slot: str) -> None:
    (tmp_path / "policies.yaml").write_text(
        f"""
version: 1
backends:
  local: {{kind: llama_cpp, url: "{one_slot}", slots: pinned}}
policies:
  fold: {{}}
models:
  foldgate: {{tiers: [{{backend: local, policy: fold}}]}}
"""
    )
    code, found = report(run)
    assert code == 0  # nothing is in the way
    cautions = found["backends"]["local"]["cautions"]
    assert len(cautions) == 2
    assert "one slot" in cautions[0] and "--no-slots" in cautions[1]
    assert f"backend local: {cautions[0]}" in found["notes"]
    assert f"note backend local: {cautions[1]}" in run("doctor").stdout
