"""What was deleted in one database, and the same deleted in a copy that was made of it before.

Rows tell it wherever they stay: the word of a deleted conversation, a fact's state, an entry's
mark, a chapter's or gist's empty text. Facts that nothing could teach again and documents go as
rows: that one of the copy's is not there tells it, as far as its number was given out there.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from sqlalchemy import Connection, select

from gateway.store import chapter_rows, documents, gist_rows, ledger
from gateway.store.chapter_rows import chapters
from gateway.store.conversations import delete_conversation, find_anywhere
from gateway.store.documents import DocumentRow
from gateway.store.gist_rows import gists
from gateway.store.ledger_report import pins_of_chapters, pins_of_gists
from gateway.store.ledger_rows import (
    BY_OWNER,
    ENTRY_COLUMNS,
    MARK_COLUMNS,
    EntryRow,
    MarkRow,
    entries,
    marks,
    state_of,
)
from gateway.store.profile import COLUMNS, ProfileRow, end_facts, profile_facts
from gateway.store.profile_chains import settle_all
from gateway.store.profile_edits import purge_deleted
from gateway.store.rows import record
from gateway.store.transcript import conversations, messages

K = TypeVar("K")

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
    """What is deleted in a database, by ids. chapters: when each was; gists: conversation, policy,
    last message and when. named: (conversation, name) of the documents that stand; known: the
    conversations that are there."""

    conversations: Sequence[str] = ()
    facts: Gone = _NOTHING
    documents: Gone = _NOTHING
    entries: Mapping[str, GoneEntry] = field(default_factory=dict)
    chapters: Mapping[str, int] = field(default_factory=dict)
    gists: Sequence[tuple[str, str, str, int]] = ()
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
        named=frozenset((chat, name) for *_, removed, chat, name in papers if removed is None),
        known=frozenset(row[0] for row in connection.execute("SELECT id FROM conversations")),
    )


def _gone(rows: Sequence[tuple[int, str, int | None]], newest: int) -> Gone:
    """rows: number, id, and when it was deleted."""
    told = {id: at_ms for _, id, at_ms in rows if at_ms is not None}
    return Gone(told, frozenset(pk for pk, *_ in rows), newest)


def delete_again(connection: Connection, gone: Deletions, now_ms: int) -> int:
    """Delete in a copy what is deleted in the other database; how much it was, without what went
    with something else. Views that showed any of it show their memory anew at their next user
    message. Does not commit."""
    deleted = 0
    for id in gone.conversations:
        if (found := find_anywhere(connection, id)) is not None:
            delete_conversation(connection, found, elsewhere=(), now_ms=now_ms)
            deleted += 1
    touched: list[int] = []
    for step in (_delete_facts, _delete_chapters, _delete_gists, _delete_documents):
        done = list(step(connection, gone, now_ms))
        deleted += len(done)
        touched += done
    for conversation_pk, is_own in _delete_entries(connection, gone.entries):
        deleted += is_own
        touched.append(conversation_pk)
    documents.ask_anew(connection, set(touched))
    return deleted


def _delete_facts(connection: Connection, gone: Deletions, now_ms: int) -> Iterator[int]:
    """These alone: what one of them had taken the place of may stand again, as it does there."""
    standing = connection.execute(select(*COLUMNS).where(profile_facts.c.state != "deleted")).all()
    found: dict[int, list[int]] = {}
    for row in [record(ProfileRow, row) for row in standing]:
        if gone.facts.holds(row.pk, row.id):
            end_facts(connection, [row.pk], "deleted", gone.facts.told.get(row.id, now_ms))
            found.setdefault(row.owner_pk, []).append(row.pk)
            yield row.conversation_pk or 0
    for owner_pk, pks in found.items():
        settle_all(connection, owner_pk, pks)
        purge_deleted(connection, owner_pk, at_once=True)
        # Any of its owner's conversations may have shown it.
        owned = select(conversations.c.pk).where(conversations.c.owner_pk == owner_pk)
        documents.ask_anew(connection, list(connection.execute(owned).scalars()))


def _delete_chapters(connection: Connection, gone: Deletions, _now_ms: int) -> Iterator[int]:
    """Each with its pin; what models told beside it has marks of its own."""
    for id, at_ms in gone.chapters.items():
        where = chapters.c.id == id
        found = connection.execute(
            select(chapters.c.pk, chapters.c.conversation_pk).where(where)
        ).first()
        row = None
        if found is not None:
            row = chapter_rows.chapter_by_pk(connection, found.conversation_pk, found.pk)
        if found is None or row is None or row.text == "":
            continue
        chapter_rows.add_version(
            connection,
            found.conversation_pk,
            row.pk,
            text="",
            origin="owner",
            backend=None,
            prompt=None,
            now_ms=at_ms,
        )
        _unpin(connection, found.conversation_pk, at_ms, pins_of_chapters, row.pk)
        yield found.conversation_pk


def _delete_gists(connection: Connection, gone: Deletions, _now_ms: int) -> Iterator[int]:
    """The same of gists."""
    for chat, policy, last, at_ms in gone.gists:
        found = connection.execute(
            select(messages.c.pk, messages.c.conversation_pk)
            .join(conversations, conversations.c.pk == messages.c.conversation_pk)
            .where(conversations.c.id == chat, messages.c.id == last)
        ).first()
        if found is None:
            continue
        where = policy, found.pk
        newest = connection.execute(
            select(gists)
            .where(
                gists.c.conversation_pk == found.conversation_pk,
                gists.c.policy == policy,
                gists.c.last_pk == found.pk,
            )
            .order_by(gists.c.version.desc())
        ).first()
        if newest is None or newest.text == "":
            continue
        gist_rows.add_gist(
            connection,
            found.conversation_pk,
            policy=policy,
            last_pk=newest.last_pk,
            last_depth=newest.last_depth,
            sources=json.loads(newest.sources),
            text="",
            origin="owner",
            backend=None,
            prompt=None,
            now_ms=at_ms,
        )
        _unpin(connection, found.conversation_pk, at_ms, pins_of_gists, where)
        yield found.conversation_pk


def _unpin(
    connection: Connection,
    conversation_pk: int,
    at_ms: int,
    read: Callable[[Connection, int], Mapping[K, EntryRow]],
    key: K,
) -> None:
    """A pin goes with what it pinned, as by its owner's hand."""
    pin = read(connection, conversation_pk).get(key)
    if pin is not None:
        ledger.add_mark(connection, conversation_pk, pin.pk, "deleted", origin="edit", now_ms=at_ms)


def _delete_documents(connection: Connection, gone: Deletions, now_ms: int) -> Iterator[int]:
    """A text in whose place a newer one was put is no deleted one: it comes back as it was."""
    rows = connection.execute(
        select(*documents.COLUMNS, conversations.c.id.label("chat"))
        .join(conversations, conversations.c.pk == documents.documents.c.conversation_pk)
        .where(documents.documents.c.removed_ms.is_(None))
    ).all()
    for *row, chat in rows:
        paper = record(DocumentRow, row)
        is_gone = gone.documents.holds(paper.pk, paper.id) and chat in gone.known
        if is_gone and (chat, paper.name) not in gone.named:
            documents.remove_document(connection, paper, now_ms, at_once=True)
            yield paper.conversation_pk or 0


def _delete_entries(
    connection: Connection, gone: Mapping[str, GoneEntry]
) -> Iterator[tuple[int, bool]]:
    """The conversation of each, and whether it was deleted by itself."""
    for id, how in gone.items():
        found = connection.execute(
            select(entries.c.conversation_pk, *ENTRY_COLUMNS).where(entries.c.id == id)
        ).first()
        if found is None:
            continue
        conversation_pk, *columns = found
        row = record(EntryRow, columns)
        told = select(*MARK_COLUMNS).where(marks.c.entry_pk == row.pk).order_by(marks.c.pk)
        own = [record(MarkRow, mark) for mark in connection.execute(told)]
        state = state_of(row, [mark for mark in own if mark.origin in BY_OWNER])
        if state.deleted is not None or (how.reworded and state.superseded is not None):
            continue
        where = chapters.c.id == how.chapter
        ledger.add_mark(
            connection,
            conversation_pk,
            row.pk,
            "deleted",
            origin=how.origin,
            now_ms=how.at_ms,
            chapter_pk=connection.execute(select(chapters.c.pk).where(where)).scalar(),
        )
        yield conversation_pk, how.origin == "owner" and how.chapter is None
