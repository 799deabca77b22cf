"""What `foldgate doctor` says of the machine: clock, disk, the database's files, its settings."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from gateway.clock import iso
from gateway.settings import Settings
from gateway.store.backups import FOLDER, list_backups
from gateway.store.copies import open_file

Finding = dict[str, Any]

SLACK_MS = 2_000
"""Clocks are corrected by milliseconds all day; the queue allows as much."""
BUILT_MS = 1_767_225_600_000
"""2026-01-01: a machine that says less never heard what day it is."""
MOST_FREE = 1 << 30
LEAST_FREE = 64 << 20
"""Bytes: below the first (or half of the database) there is soon no room, below the second writes
are about to fail: a WAL file alone takes 16 MB between checkpoints."""
LONG_WAL = 256 << 20
"""Bytes: sixteen times what a checkpoint leaves. Something reads an old state for very long."""


def check_machine(settings: Settings, path: Path, now_ms: int) -> dict[str, Finding]:
    """clock, disk, wal, backups and settings of an existing database, each {ok, says, advice};
    advice is empty where nothing is to be done. Changes nothing."""
    found = {
        "disk": _check_disk(path),
        "wal": _check_wal(path),
        "backups": _check_backups(path, now_ms),
    }
    try:
        with closing(open_file(path)) as connection:
            found = {"clock": _check_clock(connection, now_ms), **found}
            found["settings"] = _check_settings(connection, settings, path)
    except sqlite3.DatabaseError:
        pass  # said already, where the database was looked at
    return found


def told(ok: bool, says: str, advice: str = "") -> Finding:
    """A finding."""
    return {"ok": ok, "says": says, "advice": advice}


def _check_clock(connection: sqlite3.Connection, now_ms: int) -> Finding:
    return tell_clock(_newest(connection), now_ms)


def tell_clock(found: Iterable[int | None], now_ms: int) -> Finding:
    """This machine's clock beside the moments at which rows were written last."""
    newest = max((ms for ms in found if ms is not None), default=0)
    zone = f"{time.strftime('%Z')} (UTC{time.strftime('%z')})"
    says = f"{iso(now_ms)}, this machine's zone is {zone}"
    if newest > now_ms + SLACK_MS:
        return told(
            False,
            f"{says}; the newest row was written at {iso(newest)}",
            "The clock was set back, or stood wrong before: set it right (NTP). Work that waits "
            "keeps its wait; lists that go by time are out of order until then.",
        )
    if now_ms < BUILT_MS:
        return told(False, says, "The clock is wrong: set it right (NTP) before you serve.")
    return told(True, says)


NEWEST = (
    "SELECT created_ms FROM messages ORDER BY pk DESC LIMIT 1",
    "SELECT max(touched_ms) FROM (SELECT touched_ms FROM conversations ORDER BY pk DESC"
    " LIMIT 1000) AS recent",
    "SELECT max(latest) FROM (SELECT CASE WHEN ended_ms > started_ms THEN ended_ms"
    " ELSE started_ms END AS latest FROM attempts ORDER BY pk DESC LIMIT 1) AS last",
    "SELECT max(updated_ms) FROM jobs",
    "SELECT created_ms FROM folds ORDER BY pk DESC LIMIT 1",
    "SELECT max(beat_ms) FROM boots",
)
"""When each kind of row was written last; by indexes and row numbers, not by reading all."""


def _newest(connection: sqlite3.Connection) -> Iterator[int | None]:
    for sql in NEWEST:
        row = connection.execute(sql).fetchone()
        yield None if row is None else row[0]


def _check_disk(path: Path) -> Finding:
    free = shutil.disk_usage(path.parent).free
    size = path.stat().st_size
    says = f"{free / 1e9:,.1f} GB free beside a database of {size / 1e6:,.1f} MB"
    if free < max(LEAST_FREE, min(size // 2, MOST_FREE)):
        return told(
            False,
            says,
            "Make room: when the disk is full turns fail with 503 until there is some. Old backups "
            "go with foldgate backup prune DIR.",
        )
    if free < size:
        return told(True, says, "There is no room for a backup on this disk: --to another one.")
    return told(True, says)


def _check_wal(path: Path) -> Finding:
    beside = Path(f"{path}-wal")
    size = beside.stat().st_size if beside.exists() else 0
    says = f"{size / 1e6:,.1f} MB"
    if size > LONG_WAL:
        return told(
            False,
            says,
            "It grows while some program reads one state for very long, and holds what was deleted "
            "meanwhile. End that program; the next checkpoint, or a restart, empties it.",
        )
    return told(True, says)


def _check_backups(path: Path, now_ms: int) -> Finding:
    """Of the folder where backups go when none is named: law 10 says that they expire."""
    folder = path.parent / FOLDER
    dated = [one.manifest for one in list_backups(folder) if one.manifest is not None]
    if not dated:
        return told(True, f"none in {folder}")
    says = f"{len(dated)} in {folder}, the newest of {iso(dated[-1].created_ms)}"
    expired = sum(one.expires_ms <= now_ms for one in dated)
    if expired:
        return told(
            False,
            f"{says}; {expired} have expired",
            f"They may hold what was deleted since: foldgate backup prune {folder}",
        )
    return told(True, says)


def _check_settings(connection: sqlite3.Connection, settings: Settings, path: Path) -> Finding:
    mode = str(connection.execute("PRAGMA journal_mode").fetchone()[0])
    version = sqlite3.sqlite_version
    says = f"SQLite {version}, journal {mode}, synchronous {settings.synchronous}"
    if mode != "wal" and _has_tables(connection):
        return told(
            False,
            says,
            "Not in WAL mode, which a file on a network disk cannot be: move it to a local one.",
        )
    advice = []
    if settings.synchronous != "FULL":
        says += " (a commit survives kill -9, not a loss of power; FOLDGATE_SYNCHRONOUS=FULL does)"
    if os.name == "posix" and path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        advice.append(f"Other users of this machine can read it: chmod 600 {path}*")
    return told(True, says, " ".join(advice))


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None
