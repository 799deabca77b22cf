"""Backups put back: checked, beside no server, and without what was deleted since."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from gateway.errors import Conflict, StorageFailed
from gateway.store.attempts import begin_attempt
from gateway.store.backups import DAY_MS, make_backup, manifest_path
from gateway.store.boots import Run, keep_boot
from gateway.store.conversations import delete_conversation, find_anywhere
from gateway.store.engine import Store
from gateway.store.profile import active, all_of, profile_by_pk
from gateway.store.profile_edits import delete_fact
from gateway.store.restores import is_in_use, restore
from gateway.store.transcript import ensure_owner
from tests.gateway.databases import database_url
from tests.gateway.house import user
from tests.gateway.seeds import NOW, add_conversation
from tests.gateway.store.test_backups import SAID, rows

pytestmark = pytest.mark.sqlite

LATER = NOW + DAY_MS
_HOLDER = """
import sys
from gateway.store.engine import Store
store = Store(sys.argv[1])
store.open()
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    store = Store(database_url(tmp_path / "foldgate.db"))
    store.open()
    for alias in ("first", "second"):
        store.writing(add_conversation, [user(text) for text in SAID], alias=alias)
    made = tmp_path / "copy.db"
    make_backup(store.path, made, now_ms=NOW)
    store.close()
    return made


def test_a_backup_is_put_back(backup: Path, tmp_path: Path) -> None:
    target = tmp_path / "back.db"
    done = restore(backup, target, now_ms=LATER)
    assert (done.replaced, done.deleted) == (None, 0)
    every = "SELECT * FROM messages ORDER BY pk"
    assert rows(target, every) == rows(tmp_path / "foldgate.db", every)
    assert target.stat().st_mode & 0o777 == 0o600
    store = Store(f"sqlite:///{target}")
    store.open()
    assert store.examine()[0]
    store.close()


def test_runs_of_the_copied_database_are_over(tmp_path: Path) -> None:
    """Its server may still run, on the other file: it does not hold up the restored one."""
    store = Store(database_url(tmp_path / "foldgate.db"))
    store.open()
    made, nodes = store.writing(add_conversation, [user("안녕, 船長")])
    store.writing(keep_boot, Run("boot_1", 1, "m"), is_running=lambda pid: True, now_ms=NOW)
    store.writing(
        begin_attempt,
        conversation_pk=made.pk,
        asked_pk=nodes[0].pk,
        system_pk=None,
        fold_pk=None,
        backend="local",
        policy="fold",
        model="foldgate",
        boot="boot_1",
        view_kind="verbatim",
        state="running",
        started_ms=NOW,
    )
    make_backup(store.path, tmp_path / "copy.db", now_ms=NOW)
    store.close()
    target = tmp_path / "back.db"
    restore(tmp_path / "copy.db", target, now_ms=LATER)
    back = Store(f"sqlite:///{target}")
    back.open()
    run = Run("boot_2", 2, "m")
    begun = back.writing(keep_boot, run, is_running=lambda pid: True, now_ms=LATER)
    assert begun == 1
    assert rows(target, "SELECT state FROM attempts") == [("cancelled",)]
    back.close()


def test_an_expired_backup_is_refused(backup: Path, tmp_path: Path) -> None:
    target = tmp_path / "back.db"
    with pytest.raises(Conflict, match="expired at 2023-12-14"):
        restore(backup, target, now_ms=NOW + 30 * DAY_MS)
    assert not target.exists()
    restore(backup, target, now_ms=NOW + 30 * DAY_MS, expired=True)
    assert target.exists()


def test_a_changed_backup_is_refused(backup: Path, tmp_path: Path) -> None:
    held = bytearray(backup.read_bytes())
    held[len(held) // 2] ^= 1
    backup.write_bytes(held)
    with pytest.raises(StorageFailed, match="another digest"):
        restore(backup, tmp_path / "back.db", now_ms=LATER)
    held[len(held) // 2] ^= 1
    backup.write_bytes(held)
    told = manifest_path(backup).read_text().replace('"messages": 12', '"messages": 13')
    manifest_path(backup).write_text(told)
    with pytest.raises(StorageFailed, match="other rows"):
        restore(backup, tmp_path / "back.db", now_ms=LATER)
    newer = told.replace('"revision": "0', '"revision": "9')
    manifest_path(backup).write_text(newer)
    with pytest.raises(Conflict, match="newer program"):
        restore(backup, tmp_path / "back.db", now_ms=LATER)
    assert not (tmp_path / "back.db").exists() and [*tmp_path.glob(".*")] == []


def test_a_server_on_the_target(backup: Path, tmp_path: Path) -> None:
    """It is seen although it does nothing, and it is not disturbed."""
    target = tmp_path / "foldgate.db"
    before = target.read_bytes()
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, f"sqlite:///{target}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None and holder.stdin is not None
    assert holder.stdout.readline() == b"open\n"
    assert is_in_use(target)
    with pytest.raises(Conflict, match="a running server"):
        restore(backup, target, now_ms=LATER, replace=True)
    holder.stdin.close()
    holder.stdout.close()
    assert holder.wait() == 0
    assert not is_in_use(target)
    assert target.read_bytes() == before
    restore(backup, target, now_ms=LATER, replace=True)


def test_nothing_is_replaced_unasked(backup: Path, tmp_path: Path) -> None:
    target = tmp_path / "foldgate.db"
    with pytest.raises(Conflict, match="--replace"):
        restore(backup, target, now_ms=LATER)
    left = tmp_path / "back.db-wal"
    left.write_bytes(b"an earlier database's")
    with pytest.raises(Conflict, match="left over"):
        restore(backup, tmp_path / "back.db", now_ms=LATER)


def test_what_was_deleted_since_does_not_come_back(tmp_path: Path) -> None:
    """Law 10: conversations and facts that were deleted after the copy was made."""
    store = Store(database_url(tmp_path / "foldgate.db"))
    store.open()
    gone, _ = store.writing(add_conversation, [user("秘密のランタン")], alias="gone")
    stays, _ = store.writing(add_conversation, [user("un farol cualquiera")], alias="stays")
    owner = store.reading(lambda connection: ensure_owner(connection, "local", "", NOW))
    with closing(sqlite3.connect(store.path)) as connection:
        for id, text in (("mem_1", "Меня зовут Анна"), ("mem_2", "我住在海边")):
            connection.execute(
                "INSERT INTO profile_facts (id, owner_pk, text, origin, state, created_ms)"
                " VALUES (?, ?, ?, 'owner', 'active', ?)",
                (id, owner, text, NOW),
            )
        connection.commit()
    backup = tmp_path / "copy.db"
    make_backup(store.path, backup, now_ms=NOW)
    store.writing(delete_conversation, gone, elsewhere=(), now_ms=LATER)
    first = store.reading(all_of, owner)[-1]
    assert first.id == "mem_1"
    store.writing(delete_fact, first, LATER)
    later, _ = store.writing(add_conversation, [user("later than the copy")])
    store.close()

    done = restore(backup, tmp_path / "foldgate.db", now_ms=LATER, replace=True)
    assert done.deleted == 2
    back = Store(database_url(tmp_path / "foldgate.db"))
    back.open()
    assert back.reading(find_anywhere, gone.id) is None
    assert back.reading(find_anywhere, later.id) is None
    assert back.reading(find_anywhere, stays.id) is not None
    assert [row.text for row in back.reading(active, owner)] == ["我住在海边"]
    assert back.reading(profile_by_pk, [first.pk]) == []
    back.close()
    restored = (tmp_path / "foldgate.db").read_bytes()
    assert "ランタン".encode() not in restored and "Анна".encode() not in restored
    assert done.replaced is not None
    assert "later than the copy" in str(rows(done.replaced, "SELECT raw FROM messages"))


_KILLED = """
import os, signal, sys
from pathlib import Path
from gateway.store import restores

step, when, backup, target = sys.argv[1:]
inner = getattr(restores, step)

def killed(*arguments):
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    inner(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)

setattr(restores, step, killed)
restores.restore(Path(backup), Path(target), now_ms=1_700_086_400_000, replace=True)
"""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("step", ["_copy", "_delete_again", "_set_aside", "sync_file"])
def test_a_kill_leaves_one_database_whole(
    backup: Path, tmp_path: Path, step: str, when: str
) -> None:
    target = tmp_path / "foldgate.db"
    with closing(sqlite3.connect(target)) as connection:
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("DELETE FROM messages WHERE pk = 12")
        connection.commit()
    child = [sys.executable, "-c", _KILLED, step, when, str(backup), str(target)]
    assert subprocess.run(child, check=False).returncode == -signal.SIGKILL
    assert rows(target, "SELECT count(*) FROM messages") == [(11,)]
    assert rows(target, "PRAGMA integrity_check") == [("ok",)]
    restore(backup, target, now_ms=LATER + 1, replace=True)
    assert rows(target, "SELECT count(*) FROM messages") == [(12,)]
    assert [*tmp_path.glob(".*")] == []


def test_a_damaged_database_is_replaced(
    backup: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "foldgate.db"
    target.write_bytes(b"no database " * 1_000)
    wal = tmp_path / "foldgate.db-wal"
    wal.write_bytes(b"its own")
    done = restore(backup, target, now_ms=LATER, replace=True)
    assert done.replaced == tmp_path / "foldgate.db.replaced-20231115T221320.000Z"
    assert Path(f"{done.replaced}-wal").read_bytes() == b"its own" and not wal.exists()
    assert rows(target, "SELECT count(*) FROM messages") == [(12,)]
    assert "cannot be read" in caplog.text
