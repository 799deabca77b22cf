"""A backup put back in a database's place, without what was deleted since.

The copy is read, checked against its manifest, and made ready under a name of its own; only then it
takes its place. It knows no run of the program: the attempts and leases of the run that it was
copied under are over at its first start.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from gateway.clock import iso
from gateway.errors import Conflict, StorageFailed
from gateway.store.backups import (
    Manifest,
    check_copy,
    partial_of,
    read_manifest,
    sweep,
    sync_file,
    telling,
)
from gateway.store.copies import open_file, remove_database
from gateway.store.deletions import Deletions, read_deletions
from gateway.store.engine import Store
from gateway.store.migrations import HEAD
from gateway.store.redeletions import delete_again

log = logging.getLogger("foldgate.restores")

_CHUNK = 1 << 20
# Where SQLite locks a file (its file format, "lock-byte page"): whoever has a database in WAL mode
# open holds a shared lock on the last of these, also while nothing is read.
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510
_MAGIC = b"SQLite format 3\0"
_BESIDE = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Restored:
    """What was put back. replaced: where the database that stood there is now; deleted: how much
    was deleted since the backup and is not in it any more: conversations, facts, chapters, gists,
    entries of ledgers and documents."""

    manifest: Manifest
    replaced: Path | None
    deleted: int


def restore(
    backup: Path,
    target: Path,
    *,
    now_ms: int,
    replace: bool = False,
    expired: bool = False,
) -> Restored:
    """Put a backup at `target`. Raises Conflict, NotFound or StorageFailed; nothing changed then.

    replace: a database may stand there; it is set aside, and what was deleted in it since the
    backup was made is deleted in the backup's copy too. expired: also past its date.
    """
    manifest = read_manifest(backup)
    if manifest.expires_ms <= now_ms and not expired:
        raise Conflict(
            f"{backup} expired at {iso(manifest.expires_ms)}: it may hold what was deleted since. "
            "Where that is wanted all the same, say --expired."
        )
    if manifest.revision is not None and manifest.revision > HEAD:
        raise Conflict(
            f"{backup} is at revision {manifest.revision}, which this program (newest: {HEAD}) "
            "does not know; restore it with the newer program."
        )
    _check_target(target, replace)
    sweep(target.parent)
    partial = partial_of(target)
    with telling("the backup cannot be restored"):
        try:
            _copy(backup, partial, manifest)
            deleted = _delete_again(partial, target, manifest, now_ms)
            replaced = _set_aside(target, now_ms) if target.exists() else None
            partial.replace(target)
            sync_file(target.parent)
        finally:
            remove_database(partial)
    return Restored(manifest, replaced, deleted)


def _check_target(target: Path, replace: bool) -> None:
    if is_in_use(target):
        raise Conflict(
            f"A program has {target} open (a running server?). Stop it first: it would go on "
            "writing into the old database."
        )
    if target.exists():
        if not replace:
            raise Conflict(
                f"{target} exists. Name another place with --to, or say --replace: the database "
                "that stands there is then set aside, not removed."
            )
        return
    for end in _BESIDE:
        if (left := Path(f"{target}{end}")).exists():
            raise Conflict(
                f"{left} is left over from an earlier database and would be read into the restored "
                "one. Move it away first."
            )


def is_in_use(path: Path) -> bool:
    """Whether a program on this machine has the database open, whole or damaged as it is."""
    if not path.exists():
        return False
    number = os.open(path, os.O_RDWR)
    try:
        fcntl.lockf(number, fcntl.LOCK_EX | fcntl.LOCK_NB, _SHARED_SIZE, _SHARED_FIRST)
    except BlockingIOError:
        return True
    finally:
        os.close(number)
    return False


def _copy(backup: Path, partial: Path, manifest: Manifest) -> None:
    """Copy and compare on the way: what was compared is what takes the place."""
    found = hashlib.sha256()
    number = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with backup.open("rb") as source, open(number, "wb") as copy:
        while piece := source.read(_CHUNK):
            found.update(piece)
            copy.write(piece)
    if found.hexdigest() != manifest.sha256:
        raise StorageFailed(
            f"{backup} is not what its manifest says (another digest): it was damaged or changed "
            "since it was made. Take another backup."
        )
    revision, counts = check_copy(partial)
    if (revision, counts) != (manifest.revision, manifest.counts):
        raise StorageFailed(f"{backup} holds other rows than its manifest says.")
    with closing(open_file(partial)) as connection:
        connection.execute("DELETE FROM boots")
    sync_file(partial)


def _delete_again(partial: Path, target: Path, manifest: Manifest, now_ms: int) -> int:
    """Law 10: what was deleted in the database that stands there does not come back."""
    if not target.exists():
        return 0
    gone = _read_deletions(target, is_source=manifest.source == str(target.resolve()))
    store = Store(f"sqlite:///{partial}")
    try:
        store.open()
        deleted = store.writing(delete_again, gone, now_ms)
        store.checkpointing()
    finally:
        store.close()
    sync_file(partial)
    return deleted


def _read_deletions(target: Path, *, is_source: bool) -> Deletions:
    """None of a database that cannot be read any more, which is why it is replaced."""
    try:
        # SQLite removes the WAL file of what has not even its head: it may be of use to somebody.
        with target.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise sqlite3.DatabaseError("file is not a database")
        with closing(open_file(target)) as connection:
            return read_deletions(connection, is_source=is_source)
    except sqlite3.DatabaseError as error:
        log.warning("what was deleted in %s cannot be read: %s", target, error)
        return Deletions()


def _set_aside(target: Path, now_ms: int) -> Path:
    """Give the database that stands there another name, with all that is in its WAL file."""
    at = datetime.fromtimestamp(now_ms / 1_000, UTC)
    stamp = f"{at:%Y%m%dT%H%M%S}.{now_ms % 1_000:03d}Z"
    aside = target.with_name(f"{target.name}.replaced-{stamp}")
    if aside.exists():
        raise Conflict(f"{aside} exists; move it away first.")
    for end in _BESIDE:
        beside = Path(f"{target}{end}")
        if beside.exists():
            beside.rename(f"{aside}{end}")
    try:
        # Under both names until the copy takes the first: no kill leaves that without a database.
        os.link(target, aside)
    except OSError:  # a file system without links
        target.rename(aside)
    return aside
