"""Backups from the command line."""

from __future__ import annotations

import json
from pathlib import Path

from gateway.cli.backup import tell_size
from gateway.store.backups import Manifest
from tests.gateway.cli.conftest import Run, Seeded


def test_a_backup_without_a_word(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    done = run("backup")
    assert done.exit_code == 0
    (copy,) = (tmp_path / "backups").glob("foldgate-*.db")
    assert done.stdout.startswith(f"backups/{copy.name}  ")
    assert "10 messages in 2 conversations, revision 00" in done.stdout
    assert (tmp_path / "backups").stat().st_mode & 0o777 == 0o700


def test_a_backup_for_programs(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    told = json.loads(run("backup", "--to", "one.db", "--expires", "12h", "--json").stdout)
    assert (told["path"], told["file"], told["removed"]) == ("one.db", "one.db", [])
    assert told["counts"]["messages"] == 10
    assert json.loads((tmp_path / "one.db.json").read_text())["sha256"] == told["sha256"]
    again = run("backup", "--to", "one.db")
    assert again.exit_code == 1 and "overwrites nothing" in again.stderr


def test_a_folder_that_is_not_there_is_made(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    for name in ("safe", "数据/", "копии-2026.12/"):
        done = run("backup", "--to", name, "--keep", "3", "--json")
        assert done.exit_code == 0, done.stderr
        folder = tmp_path / name
        assert folder.is_dir() and folder.stat().st_mode & 0o777 == 0o700
        assert len(list(folder.glob("foldgate-*.db"))) == 1
    refused = run("backup", "--to", "no/where")
    assert (refused.exit_code, "there is no folder no" in refused.stderr) == (2, True)


def test_only_the_newest_are_kept(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    kept = [run("backup", "--keep", "2", "--json") for _ in range(3)]
    paths = [json.loads(done.stdout)["path"] for done in kept]
    assert json.loads(kept[2].stdout)["removed"] == paths[:1]
    listed = json.loads(run("backup", "list", "backups", "--json").stdout)["backups"]
    assert [one["path"] for one in listed] == [f"backups/{Path(path).name}" for path in paths[1:]]
    assert [one["expired"] for one in listed] == [False, False]


def test_the_folder_beside_the_database_needs_no_name(run: Run, seeded: Seeded) -> None:
    for command in ("list", "prune"):
        assert run("backup", command).exit_code == 0, "none was ever made"
    assert run("backup", "list").stderr == "0 backups in backups\n"
    run("backup")
    listed = run("backup", "list")
    assert listed.stdout == run("backup", "list", "backups").stdout != ""
    assert listed.stderr == "1 backup in backups\n"
    named = run("backup", "list", "--database-url", f"sqlite:///{seeded.path}", "--json")
    (one,) = json.loads(named.stdout)["backups"]
    assert one["path"].startswith(str(seeded.path.parent / "backups"))
    assert run("backup", "prune").stderr == "0 backups removed\n"


def test_small_copies_are_told_in_small_units() -> None:
    def tell(bytes: int, messages: int) -> str:
        counts = {"messages": messages, "conversations": 1}
        return tell_size(Manifest(1, 2, "s.db", "f.db", bytes, "", "0006", counts))

    assert tell(487_424, 1) == "487 kB, 1 message in 1 conversation, revision 0006"
    assert tell(48_742_400, 2_008).startswith("48.7 MB, 2,008 messages in 1 conv")


def test_expired_backups_are_told_and_removed(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    run("backup")
    (beside,) = (tmp_path / "backups").glob("*.json")
    told = json.loads(beside.read_text())
    beside.write_text(json.dumps({**told, "expires": "2020-01-01T00:00:00.000Z"}))
    (tmp_path / "backups" / "lost.db").write_text("")
    (tmp_path / "backups" / "lost.db.json").write_text("{}")
    listed = run("backup", "list", "backups")
    assert "EXPIRED 2020-01-01T00:00:00.000Z" in listed.stdout
    assert "lost.db  its manifest cannot be read" in listed.stdout
    assert listed.stderr == "2 backups in backups\n"
    refused = run("backup", "restore", f"backups/{told['file']}", "--to", "back.db")
    assert refused.exit_code == 1 and "--expired" in refused.stderr
    done = run("backup", "prune", "backups")
    assert done.stdout == f"removed backups/{told['file']}\n"
    assert run("backup", "prune", "backups", "--json").stdout == '{"removed": []}\n'


def test_the_way_back(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    run("backup", "--to", "one.db")
    done = run("backup", "restore", "one.db", "--to", "back.db")
    assert done.exit_code == 0 and "What was deleted since then is in it again" in done.stdout
    database = f"sqlite:///{tmp_path}/back.db"
    shown = run("conversations", "export", "chat-1", "--database-url", database).stdout
    assert shown == run("conversations", "export", "chat-1").stdout != ""
    run("conversations", "delete", "chat-1", "--yes")
    refused = run("backup", "restore", "one.db", "--to", "foldgate.db")
    assert refused.exit_code == 1 and "--replace" in refused.stderr
    back = run("backup", "restore", "one.db", "--to", "foldgate.db", "--replace", "--json")
    told = json.loads(back.stdout)
    assert told["deleted_again"] == 1 and Path(told["replaced"]).exists()
    assert run("conversations", "show", "chat-1").exit_code == 1
    again = run("backup", "restore", "one.db", "--to", "foldgate.db", "--replace")
    assert again.exit_code == 0 and "deleted again, as it was deleted there: 1" in again.stdout


def test_wrong_use(run: Run, seeded: Seeded, tmp_path: Path) -> None:
    for arguments, words in (
        (("--database-url", "sqlite:///none.db"), "there is no database at none.db"),
        (("--database-url", "postgresql://x/y"), "pg_dump"),
        (("--database-url", "mysql://x/y"), "not supported"),
        (("--database-url", "://"), "cannot be read"),
        (("--to", "no/where.db"), "there is no folder no"),
        (("--to", "foldgate.db/"), "is no folder"),
        (("--to", "one.db", "--keep", "3"), "--keep counts"),
        (("--expires", "soon"), "is no duration"),
        (("--expires", "0s"), "is no duration"),
        (("restore", "one.db", "--to", "no/back.db"), "there is no folder no"),
    ):
        done = run("backup", *arguments)
        assert done.exit_code == 2 and words in done.stderr, arguments
    done = run("backup", "restore", "one.db", "--to", "back.db")
    assert done.exit_code == 1 and "no backup at one.db" in done.stderr
