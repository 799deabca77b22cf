"""What is deleted in one database deleted in a copy, which was made of it before that.

Each as by its owner's hand and at the moment of the first deletion, so that an undo of a chapter or
an entry finds what went with it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from sqlalchemy import Connection, insert, select

from gateway.store import chapter_rows, documents, gist_rows, ledger
from gateway.store.chapter_rows import chapters
from gateway.store.conversations import delete_conversation, find_anywhere
from gateway.store.deletions import Deletions, GoneEntry
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
from gateway.store.transcript import conversations, find_owner, messages

K = TypeVar("K")


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
    _keep_sources(connection, gone)
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


def _keep_sources(connection: Connection, gone: Deletions) -> None:
    """What was deleted after the copy was made is not learned from there again."""
    for id, name, user, chat, source, origin, created_ms, ended_ms in gone.taught:
        owner_pk = find_owner(connection, name, user)
        found = None if chat is None else find_anywhere(connection, chat)
        known = select(profile_facts.c.pk).where(profile_facts.c.id == id)
        if owner_pk is None or connection.execute(known).first() is not None:
            continue
        connection.execute(
            insert(profile_facts).values(
                id=id,
                owner_pk=owner_pk,
                conversation_pk=None if found is None else found.pk,
                text="",
                source=source,
                origin=origin,
                state="deleted",
                created_ms=created_ms,
                ended_ms=ended_ms,
            )
        )


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
