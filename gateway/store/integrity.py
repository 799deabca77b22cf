"""Whether what is stored is what was written: every row read once, nothing changed.

The reading is O(rows) with O(log n) look-ups a chapter, in bounded memory: rows come in pages, the
database lays rows beside each other (integrity_rows.py), and only what is wrong is kept, a few
examples a check. The walk of the messages is in integrity_messages.py. 100,000 messages of 600
characters (267 MB with their index) took 3.4 s of one core's time and 76 MB, the program included.

Not looked for: facts and documents that a fold names, because their rows go at a deletion and the
view passes over them until its next fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from json import loads
from typing import Any

from sqlalchemy import Connection, inspect, text
from sqlalchemy.exc import DatabaseError

from gateway.store.integrity_messages import walk_messages
from gateway.store.integrity_rows import LOOKS
from gateway.store.prepared import Prepared
from gateway.store.transcript import ancestor_at

EXAMPLES = 20
"""Findings of a check that are told one by one; the rest are counted."""

_RESTORE = (
    "Restore the newest backup (foldgate backup restore), or export what can be read (foldgate "
    "conversations export) and delete the conversation."
)
ADVICE = {
    "file": "The file is damaged, by its disk or by a program that copied it while it was written. "
    "Keep a copy of all its files (-wal too), check the disk, and restore the newest backup.",
    "foreign keys": "Rows hang on what is not there: another program deleted with foreign keys "
    f"off. {_RESTORE}",
    "messages": f"A message is not what was stored, or not where. {_RESTORE}",
    "chapters": "A summary tells a span that is not there as one stretch. Its texts may be shown "
    f"where they do not belong. {_RESTORE}",
    "gists": f"An old summary ends where no chapter does: a part would be told twice. {_RESTORE}",
    "folds": f"A view stands on memory that is not there or leaves a gap. {_RESTORE}",
    "depths": f"A row says another place than its message has. {_RESTORE}",
    "targets": f"A row names another one that is not there, or not in its conversation. {_RESTORE}",
    "owners": f"A row is another owner's than its conversation: law 11. {_RESTORE}",
    "jobs": "A piece of work names rows that are not there. It would be parked when it runs; "
    "foldgate jobs list shows it.",
    "search": "The index of recall holds what is not there, or not all. It is made again where it "
    "is dropped: DELETE FROM search_keys and from message_search for that conversation.",
}
_PAGE = 1_000

_CHAPTERS = Prepared(
    text(
        "SELECT h.pk, h.id, h.first_depth, h.last_depth, h.source_chars, h.first_pk, h.last_pk,"
        " f.cum_chars - f.chars, l.cum_chars, f.parent_pk, c.id,"
        " EXISTS (SELECT 1 FROM chapters e WHERE e.conversation_pk = h.conversation_pk"
        " AND e.last_pk = f.parent_pk)"
        " FROM chapters h JOIN messages f ON f.pk = h.first_pk JOIN messages l ON l.pk = h.last_pk"
        " JOIN conversations c ON c.pk = h.conversation_pk"
        " WHERE h.pk > :after AND f.conversation_pk = h.conversation_pk"
        " AND l.conversation_pk = h.conversation_pk ORDER BY h.pk LIMIT :page"
    )
)
_FOLDS = Prepared(
    text(
        "SELECT f.pk, c.id, f.at_pk, f.border_pk, f.border_depth, f.border_cum, b.cum_chars,"
        " g.last_pk, g.last_depth,"
        " (SELECT json_group_array(json_array(h.first_depth, h.last_depth, h.last_pk))"
        "  FROM json_each(f.memory) j JOIN chapter_versions v ON v.pk = j.value"
        "  JOIN chapters h ON h.pk = v.chapter_pk)"
        " FROM folds f JOIN conversations c ON c.pk = f.conversation_pk"
        " JOIN messages a ON a.pk = f.at_pk"
        " LEFT JOIN messages b ON b.pk = f.border_pk LEFT JOIN gists g ON g.pk = f.gist_pk"
        " WHERE f.pk > :after AND (b.pk IS NOT NULL OR f.border_pk = 0)"
        " AND json_valid(f.memory) ORDER BY f.pk LIMIT :page"
    )
)


@dataclass(slots=True)
class Examined:
    """What was looked at, and what is wrong. looked: rows by table. counts: findings by check;
    examples: (where, what) of the first of them."""

    looked: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def note(self, check: str, where: str, says: str) -> None:
        self.counts[check] = self.counts.get(check, 0) + 1
        told = self.examples.setdefault(check, [])
        if len(told) < EXAMPLES:
            told.append((where, says))

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": not self.counts,
            "looked": self.looked,
            "findings": [
                {
                    "check": check,
                    "count": count,
                    "advice": ADVICE[check],
                    "examples": [
                        {"where": where, "says": says} for where, says in self.examples[check]
                    ],
                }
                for check, count in self.counts.items()
            ],
        }


def read_revision(connection: Connection) -> str | None:
    """The revision that the database is at; None for one without tables."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def examine(connection: Connection) -> Examined:
    """Read everything in one transaction, beside a running server too. The database must be at the
    newest revision. A damaged file ends the reading where it is damaged."""
    found = Examined()
    try:
        _check_file(connection, found)
        if "file" not in found.counts:
            found.looked["messages"] = walk_messages(connection, found.note)
            found.looked["chapters"] = _check_chapters(connection, found)
            found.looked["folds"] = _check_folds(connection, found)
            for look in LOOKS:
                for row in connection.execute(text(look.sql)):
                    found.note(look.check, look.where(row), look.says)
    except DatabaseError as error:
        found.note("file", "the database", f"reading ended: {error.orig}")
    if "file" in found.counts:
        # SQLite refuses to commit on what is damaged, also where nothing was written.
        connection.rollback()
    return found


def _check_file(connection: Connection, found: Examined) -> None:
    for (said,) in connection.execute(text(f"PRAGMA integrity_check({EXAMPLES})")):
        if said != "ok":
            found.note("file", "the database", str(said))
    if found.counts:
        return
    for row in connection.execute(text("PRAGMA foreign_key_check")):
        found.note("foreign keys", f"{row[0]} row {row[1]}", f"its row in {row[2]} is not there")


def _check_chapters(connection: Connection, found: Examined) -> int:
    looked = after = 0
    while rows := _CHAPTERS.all(connection, after=after, page=_PAGE):
        for row in rows:
            says = _fault_of_chapter(connection, row)
            if says is not None:
                found.note("chapters", f"{row[1]} of {row[10]}", says)
        looked, after = looked + len(rows), rows[-1][0]
    return looked


def _fault_of_chapter(connection: Connection, row: Sequence[Any]) -> str | None:
    _, _, first_depth, last_depth, chars, first_pk, last_pk, above, through, parent, _, joins = row
    if first_depth > last_depth or ancestor_at(connection, last_pk, first_depth) != first_pk:
        return f"messages {first_depth} to {last_depth} are not one stretch of a path"
    if chars != through - above:
        return f"it says {chars} characters, its messages have {through - above}"
    if parent is not None and not joins:
        return f"it begins at message {first_depth}, and no chapter ends right before it"
    return None


def _check_folds(connection: Connection, found: Examined) -> int:
    looked = after = 0
    while rows := _FOLDS.all(connection, after=after, page=_PAGE):
        for row in rows:
            says = _fault_of_fold(connection, row, loads(row[9]))
            if says is not None:
                found.note("folds", f"fold {row[0]} of {row[1]}", says)
        looked, after = looked + len(rows), rows[-1][0]
    return looked


def _fault_of_fold(
    connection: Connection, row: Sequence[Any], spans: list[list[int]]
) -> str | None:
    _, _, at_pk, border_pk, border, border_cum, cum, gist_pk, gist_depth, _ = row
    if border_pk == 0:
        return "it folds nothing and shows chapters" if border or spans or gist_pk else None
    if ancestor_at(connection, at_pk, border) != border_pk:
        return f"its border, message {border}, is not on the path to where it was made"
    if border_cum != cum:
        return f"it folds {border_cum} characters, its messages have {cum}"
    ends = [] if gist_pk is None else [(1, gist_depth, gist_pk)]
    told = 0
    for first, last, last_pk in [*ends, *spans]:
        if first != told + 1:
            return f"its memory has a gap: message {first} comes behind {told}"
        if last > border or ancestor_at(connection, border_pk, last) != last_pk:
            return f"it shows what ends at message {last} of another path"
        told = last
    return None if told == border else f"its memory ends at message {told}, its border is {border}"
