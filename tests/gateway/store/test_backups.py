"""Copies of a database: whole or not there, without what was deleted, gone on their day."""

from __future__ import annotations

import json
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, select, update

from gateway.errors import Conflict, NotFound, StorageFailed
from gateway.store import backups, documents
from gateway.store.backups import (
    DAY_MS,
    list_backups,
    make_backup,
    manifest_path,
    name_backup,
    prune,
    read_manifest,
)
from gateway.store.conversations import delete_conversation
from gateway.store.engine import Store
from gateway.store.migrations import HEAD
from gateway.store.transcript import conversations
from tests.gateway.databases import database_url
from tests.gateway.house import user
from tests.gateway.seeds import NOW, add_conversation, add_memory, talk

pytestmark = pytest.mark.sqlite

SAID = (
    "船長は夜明けに港を出た。",
    "船长黎明时离开了港口。",
    "선장은 새벽에 항구를 떠났다.",
    "Капитан вышел из гавани на рассвете.",
    "El capitán salió del puerto al amanecer.",
    "The captain left at dawn. 🚢⚓",
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(database_url(tmp_path / "foldgate.db"))
    made.open()
    made.writing(add_conversation, [user(text) for text in SAID], alias="harbour")
    return made


def rows(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def test_a_copy_holds_every_row(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    manifest = make_backup(store.path, target, now_ms=NOW, expires_ms=7 * DAY_MS)
    every = "SELECT * FROM messages ORDER BY pk"
    assert rows(target, every) == rows(store.path, every)
    assert [row[0] for row in rows(target, "SELECT raw ->> 'content' FROM messages")] == [*SAID]
    assert manifest == read_manifest(target)
    assert (manifest.created_ms, manifest.expires_ms) == (NOW, NOW + 604_800_000)
    assert (manifest.revision, manifest.file) == (HEAD, "copy.db")
    assert (manifest.counts["messages"], manifest.counts["conversations"]) == (6, 1)
    assert manifest.bytes == target.stat().st_size
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (target, manifest_path(target))}
    assert modes == {0o600}
    assert sorted(path.name for path in tmp_path.glob(".*")) == []
    store.close()


def test_what_was_deleted_is_in_no_page_of_the_copy(store: Store, tmp_path: Path) -> None:
    """Also where another program deleted it and left its bytes in free pages."""
    secret = "Leuchtturmwärtergeheimnis" * 400
    gone, _ = store.writing(add_conversation, [user(secret)])
    stays, _ = store.writing(add_conversation, talk(1))
    store.checkpointing()
    with closing(sqlite3.connect(store.path)) as careless:
        careless.execute("PRAGMA secure_delete=OFF")
        careless.execute("PRAGMA foreign_keys=ON")
        careless.execute("DELETE FROM conversations WHERE pk = ?", (gone.pk,))
        careless.commit()
        careless.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.writing(delete_conversation, stays, elsewhere=(), now_ms=NOW)
    word = "Leuchtturmwärtergeheimnis".encode()
    assert word in store.path.read_bytes()
    target = tmp_path / "copy.db"
    make_backup(store.path, target, now_ms=NOW)
    assert word not in target.read_bytes()
    assert b"ask? 00000" not in target.read_bytes()
    assert rows(target, "PRAGMA freelist_count") == [(0,)]
    store.close()


def test_nothing_is_overwritten(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    target.write_text("mine")
    with pytest.raises(Conflict, match="overwrites nothing"):
        make_backup(store.path, target, now_ms=NOW)
    assert target.read_text() == "mine" and not manifest_path(target).exists()
    store.close()


def test_a_name_that_is_taken_meanwhile(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "copy.db"
    digest = backups.digest_file

    def slowly(path: Path) -> str:
        target.write_text("another's")
        return digest(path)

    monkeypatch.setattr(backups, "digest_file", slowly)
    with pytest.raises(Conflict):
        make_backup(store.path, target, now_ms=NOW)
    assert target.read_text() == "another's"
    assert not manifest_path(target).exists() and [*tmp_path.glob(".*")] == []
    store.close()


def test_what_is_no_database_of_ours(tmp_path: Path) -> None:
    strange, target = tmp_path / "strange.db", tmp_path / "copy.db"
    with closing(sqlite3.connect(strange)) as connection:
        connection.execute("CREATE TABLE things (pk)")
    with pytest.raises(StorageFailed, match="no database of Foldgate"):
        make_backup(strange, target, now_ms=NOW)
    strange.write_bytes(b"no database " * 1_000)
    with pytest.raises(StorageFailed, match="cannot be made: file is not a database"):
        make_backup(strange, target, now_ms=NOW)
    with pytest.raises(StorageFailed, match="cannot be made"):
        make_backup(strange, tmp_path / "no" / "copy.db", now_ms=NOW)
    assert not target.exists() and [*tmp_path.glob(".*")] == []


def test_a_database_that_is_not_whole(store: Store, tmp_path: Path) -> None:
    store.close()
    with closing(sqlite3.connect(store.path)) as connection:
        connection.execute("DELETE FROM conversations")
        connection.commit()
    with pytest.raises(StorageFailed, match="hangs on nothing"):
        make_backup(store.path, tmp_path / "copy.db", now_ms=NOW)
    assert not (tmp_path / "copy.db").exists()


def test_a_copy_beside_a_writer_is_one_state(store: Store, tmp_path: Path) -> None:
    """Each write adds a conversation with its memory, so that any mixture of states is seen."""
    started, over = threading.Event(), threading.Event()

    def write() -> None:
        while not over.is_set():
            store.writing(_converse)
            started.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert started.wait(30)
    try:
        manifests = [
            make_backup(store.path, tmp_path / f"copy{n}.db", now_ms=NOW) for n in range(5)
        ]
    finally:
        over.set()
        thread.join()
    for manifest in manifests:
        talks = manifest.counts["conversations"] - 1
        assert talks > 0
        assert manifest.counts["messages"] == 6 + 6 * talks
        assert manifest.counts["chapters"] == 2 * talks
        assert manifest.counts["folds"] == manifest.counts["jobs"] == talks
    assert manifests[-1].counts["messages"] >= manifests[0].counts["messages"]
    store.close()


def _converse(connection: object) -> None:
    add_memory(connection, *add_conversation(connection, talk(3)))  # type: ignore[arg-type]


KILLED_AT = (
    "copy_database",
    "empty_copy",
    "pack_copy",
    "check_copy",
    "sync_file",
    "digest_file",
    "_write_manifest",
    "_give_names",
)
_KILLED = """
import os, signal, sys
from pathlib import Path
from gateway.store import backups

step, when, source, target = sys.argv[1:]
inner = getattr(backups, step)

def killed(*arguments):
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    inner(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(backups, step, killed)
backups.make_backup(Path(source), Path(target), now_ms=1_700_000_000_000)
"""


def _leave_waiting(connection: Connection) -> None:
    """A removed document: the copy is emptied of it and packed."""
    (pk,) = connection.execute(select(conversations.c.pk)).scalars()
    documents.put_document(connection, pk, "規則.md", "灯台", NOW)
    connection.execute(update(documents.documents).values(removed_ms=NOW))


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", KILLED_AT)
def test_a_kill_leaves_no_half(store: Store, tmp_path: Path, step: str, when: str) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    target = folder / "copy.db"
    store.writing(_leave_waiting)
    child = [sys.executable, "-c", _KILLED, step, when, str(store.path), str(target)]
    assert subprocess.run(child, check=False).returncode == -signal.SIGKILL
    whole = (step, when) == ("_give_names", "after")
    assert target.exists() == whole
    assert [one.path for one in list_backups(folder)] == ([target] if whole else [])
    if not whole:
        make_backup(store.path, target, now_ms=NOW)
    assert read_manifest(target).sha256 == backups.digest_file(target)
    prune(folder, now_ms=NOW)
    assert sorted(path.name for path in folder.iterdir()) == ["copy.db", "copy.db.json"]
    store.close()


def test_what_another_program_writes_now_is_left_alone(store: Store, tmp_path: Path) -> None:
    running = tmp_path / ".copy.db.1.partial"
    running.write_text("half")
    prune(tmp_path, now_ms=NOW)
    assert running.exists()
    store.close()


def test_backups_go_on_their_day(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    times = [NOW + day * DAY_MS for day in range(4)]
    made = [folder / name_backup(store.path, at) for at in times]
    assert made[0].name == "foldgate-20231114T221320.000Z.db"
    for path, at in zip(made, times, strict=True):
        make_backup(store.path, path, now_ms=at, expires_ms=10 * DAY_MS)
    assert [one.path for one in list_backups(folder)] == made
    assert prune(folder, now_ms=NOW + 10 * DAY_MS - 1) == []
    assert prune(folder, now_ms=NOW + 11 * DAY_MS) == made[:2]
    assert [one.path for one in list_backups(folder)] == made[2:]
    assert not manifest_path(made[0]).exists()
    store.close()


def test_the_newest_are_kept_and_anothers_are_left(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    other = Store(database_url(tmp_path / "other.db"))
    other.open()
    hers = folder / "hers.db"
    make_backup(other.path, hers, now_ms=NOW)
    mine = [folder / f"mine{n}.db" for n in range(3)]
    for n, path in enumerate(mine, start=1):
        make_backup(store.path, path, now_ms=NOW + n)
    assert prune(folder, now_ms=NOW + 9, source=store.path, keep=1) == mine[:2]
    assert [one.path for one in list_backups(folder)] == [hers, mine[2]]
    other.close()
    store.close()


def test_what_is_no_manifest(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    with pytest.raises(NotFound, match="no backup"):
        read_manifest(target)
    make_backup(store.path, target, now_ms=NOW)
    (tmp_path / "orphan.db.json").write_text(manifest_path(target).read_text())
    (tmp_path / "package.json").write_text("{}")
    for text in ("{}", "[", '{"format": 1, "created": "2026-01-01"}', '"half'):
        manifest_path(target).write_text(text)
        with pytest.raises(NotFound, match="no manifest"):
            read_manifest(target)
        (only,) = list_backups(tmp_path)
        assert (only.path, only.manifest) == (target, None)
        assert prune(tmp_path, now_ms=NOW + 999 * DAY_MS) == []
    store.close()


@pytest.mark.parametrize("expires", ["9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00"])
def test_a_time_that_no_calendar_holds_makes_no_manifest(
    tmp_path: Path, store: Store, expires: str
) -> None:
    target = tmp_path / "copy.db"
    make_backup(store.path, target, now_ms=NOW, expires_ms=7 * DAY_MS)
    told = json.loads(manifest_path(target).read_text())
    manifest_path(target).write_text(json.dumps({**told, "expires": expires}))
    with pytest.raises(NotFound, match="is no manifest"):
        read_manifest(target)
