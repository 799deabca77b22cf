"""What is deleted in a database, for a copy that was made of it before.

Rows tell it wherever they stay: the word of a deleted conversation, a fact's state, an entry's
mark, a chapter's or gist's empty text. Documents go as rows, and facts with the conversation that
taught them: that one of the copy's is not there tells it, as far as its number was given out there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_ENTRIES = """
WITH RECURSIVE gone(entry, origin, at, chapter, reworded) AS (
  SELECT m.entry_pk, m.origin, m.created_ms, m.chapter_pk, 0
  FROM ledger_marks m
  WHERE m.mark = 'deleted' AND m.pk = (
    SELECT max(x.pk) FROM ledger_marks x WHERE x.entry_pk = m.entry_pk
    AND x.mark IN ('deleted', 'undeleted') AND x.origin IN ('owner', 'profile'))
  UNION
  SELECT m.entry_pk, g.origin, g.at, g.chapter, 1
  FROM gone g JOIN ledger_marks m ON m.by_pk = g.entry
  WHERE m.mark = 'superseded' AND m.origin = 'owner' AND m.pk = (
    SELECT max(x.pk) FROM ledger_marks x WHERE x.entry_pk = m.entry_pk
    AND x.mark IN ('superseded', 'restored') AND x.origin = 'owner')
)
SELECT e.id, g.origin, g.at, c.id, min(g.reworded)
FROM gone g JOIN ledger_entries e ON e.pk = g.entry LEFT JOIN chapters c ON c.pk = g.chapter
GROUP BY e.pk
"""
_CHAPTERS = """
SELECT c.id, v.created_ms FROM chapters c JOIN chapter_versions v ON v.chapter_pk = c.pk
WHERE v.text = '' AND v.origin = 'owner' AND v.version = (
  SELECT max(x.version) FROM chapter_versions x WHERE x.chapter_pk = c.pk)
"""
_GISTS = """
SELECT c.id, g.policy, m.id, g.created_ms
FROM gists g JOIN conversations c ON c.pk = g.conversation_pk JOIN messages m ON m.pk = g.last_pk
WHERE g.text = '' AND g.origin = 'owner' AND g.version = (
  SELECT max(x.version) FROM gists x WHERE x.conversation_pk = g.conversation_pk
  AND x.policy = g.policy AND x.last_pk = g.last_pk)
"""
_FACTS = """
SELECT pk, id, CASE WHEN state = 'deleted' THEN coalesce(ended_ms, created_ms) END
FROM profile_facts
"""
_TAUGHT = """
SELECT f.id, o.name, o.user, c.id, f.source, f.origin, f.created_ms,
       coalesce(f.ended_ms, f.created_ms)
FROM profile_facts f JOIN owners o ON o.pk = f.owner_pk
LEFT JOIN conversations c ON c.pk = f.conversation_pk
WHERE f.state = 'deleted' AND f.source IS NOT NULL
"""
_DOCUMENTS = """
SELECT d.pk, d.id, d.removed_ms, c.id, d.name
FROM documents d LEFT JOIN conversations c ON c.pk = d.conversation_pk
"""


@dataclass(frozen=True, slots=True)
class Gone:
    """Which rows of a table are deleted. told: the ids of those that say so, and when they were;
    taken: the numbers of all that are there; newest: the greatest that was ever given out, 0 where
    the copy was not made of this database, and that a row is not there says nothing."""

    told: Mapping[str, int]
    taken: frozenset[int]
    newest: int

    def holds(self, pk: int, id: str) -> bool:
        """Whether a row of the copy is deleted. A number that another row has by now, or that was
        not given out, is of another time of the database: an older copy took its place since."""
        return id in self.told or (pk <= self.newest and pk not in self.taken)


_NOTHING = Gone({}, frozenset(), 0)


@dataclass(frozen=True, slots=True)
class GoneEntry:
    """How an entry of a ledger was deleted. chapter: the id of the one that it went with; reworded:
    not itself, but what its owner made of it."""

    origin: str
    at_ms: int
    chapter: str | None
    reworded: bool


@dataclass(frozen=True, slots=True)
class Deletions:
    """What is deleted in a database, by ids.

    chapters: when each was; gists: conversation, policy, last message and when; taught: the facts
    of which digests are left, each with its owner's name and user, its conversation (None: that is
    gone, or its owner wrote it), source, origin, and when it was told and deleted. named:
    (conversation, name) of the documents that stand; known: the conversations that are there.
    """

    conversations: Sequence[str] = ()
    facts: Gone = _NOTHING
    documents: Gone = _NOTHING
    entries: Mapping[str, GoneEntry] = field(default_factory=dict)
    chapters: Mapping[str, int] = field(default_factory=dict)
    gists: Sequence[tuple[str, str, str, int]] = ()
    taught: Sequence[tuple[str, str, str, str | None, str, str, int, int]] = ()
    named: frozenset[tuple[str, str]] = frozenset()
    known: frozenset[str] = frozenset()


def read_deletions(connection: sqlite3.Connection, *, is_source: bool) -> Deletions:
    """What is deleted in a database, of this program's revision or an older one. is_source: the
    copy was made of it. Raises sqlite3.DatabaseError where it cannot be read."""
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    numbers: dict[str, int] = {}
    if is_source and "sqlite_sequence" in tables:
        numbers.update(connection.execute("SELECT name, seq FROM sqlite_sequence"))
    gone = connection.execute("SELECT DISTINCT conversation_id FROM kv_outbox ORDER BY 1")
    told = [row[0] for row in gone if row[0]]
    if "ledger_entries" not in tables:
        return Deletions(told)  # from before there was a memory to delete from
    facts = connection.execute(_FACTS).fetchall()
    papers = connection.execute(_DOCUMENTS).fetchall()
    return Deletions(
        conversations=told,
        facts=_gone(facts, numbers.get("profile_facts", 0)),
        documents=_gone([row[:3] for row in papers], numbers.get("documents", 0)),
        entries={
            id: GoneEntry(origin, at_ms, chapter, bool(reworded))
            for id, origin, at_ms, chapter, reworded in connection.execute(_ENTRIES)
        },
        chapters=dict(connection.execute(_CHAPTERS).fetchall()),
        gists=connection.execute(_GISTS).fetchall(),
        taught=connection.execute(_TAUGHT).fetchall(),
        named=frozenset((chat, name) for *_, removed, chat, name in papers if removed is None),
        known=frozenset(row[0] for row in connection.execute("SELECT id FROM conversations")),
    )


def _gone(rows: Sequence[tuple[int, str, int | None]], newest: int) -> Gone:
    """rows: number, id, and when it was deleted."""
    told = {id: at_ms for _, id, at_ms in rows if at_ms is not None}
    return Gone(told, frozenset(pk for pk, *_ in rows), newest)
