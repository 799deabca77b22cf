"""Conversations as people read them: lists, pages, what memory holds; and their deletion.

Every function takes a connection; none commits. Rows are turned into plain values here, so that
the API and the commands tell the same.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, delete, insert, literal, select, tuple_, union

from gateway.clock import iso
from gateway.store.attempts import attempts
from gateway.store.chapter_rows import versions
from gateway.store.gist_rows import gists
from gateway.store.order import take_turn
from gateway.store.profile_edits import keep_digests, purge_deleted, release_facts
from gateway.store.quarantine import quarantine
from gateway.store.rows import record
from gateway.store.tables.calls import AuxiliaryRequest
from gateway.store.tables.work import Job, KvWipe
from gateway.store.transcript import (
    CONVERSATION_COLUMNS,
    ConversationRow,
    Node,
    StoredMessage,
    aliases,
    ancestor_at,
    conversations,
    messages,
    owners,
    path_between,
)
from gateway.wire.json_text import loads

jobs = Job.__table__  # type: ignore[attr-defined]
outbox = KvWipe.__table__  # type: ignore[attr-defined]
auxiliary = AuxiliaryRequest.__table__  # type: ignore[attr-defined]

MOST_BRANCHES = 200

_SUMMARY = (
    conversations.c.pk,
    conversations.c.id,
    conversations.c.model,
    conversations.c.created_ms,
    conversations.c.touched_ms,
    conversations.c.archived,
    conversations.c.backend,
    conversations.c.route,
    conversations.c.private,
    owners.c.name,
    owners.c.user,
    messages.c.id.label("head"),
    messages.c.depth,
    messages.c.cum_chars,
)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page of a list ended: the time and row number of its last entry."""

    ms: int
    pk: int

    def __str__(self) -> str:
        return f"{self.ms}-{self.pk}"

    @classmethod
    def parse(cls, text: str) -> Place:
        """Raises ValueError for what is none."""
        ms, _, pk = text.partition("-")
        if not (ms.isascii() and ms.isdigit() and pk.isascii() and pk.isdigit()):
            raise ValueError(f"{text!r} is no place in a list")
        if len(ms) > 16 or len(pk) > 16:
            raise ValueError(f"{text!r} is no place in a list")
        return cls(int(ms), int(pk))


def find_anywhere(connection: Connection, id: str) -> ConversationRow | None:
    """A conversation of any owner by Foldgate's id: for the administrator alone."""
    row = connection.execute(select(*CONVERSATION_COLUMNS).where(conversations.c.id == id)).first()
    return None if row is None else record(ConversationRow, row)


def owners_named(connection: Connection, name: str, user: str) -> list[int]:
    """The owner of this name with this user; without a user, the name with all its users.

    Whoever holds the name's key may forward any user, so the key alone sees them all.
    """
    statement = select(owners.c.pk).where(owners.c.name == name).order_by(owners.c.user)
    if user:
        statement = statement.where(owners.c.user == user)
    return list(connection.execute(statement).scalars())


def owner_names(connection: Connection) -> list[str]:
    """The names of all owners, each once, in their order."""
    statement = select(owners.c.name).distinct().order_by(owners.c.name)
    return list(connection.execute(statement).scalars())


def list_conversations(
    connection: Connection, owner_pks: Collection[int] | None, *, limit: int, after: Place | None
) -> tuple[list[dict[str, Any]], Place | None]:
    """A page of an owner's conversations (None: of everybody's) with their aliases, newest turn
    first.

    Returns them and where the next page begins, None at the end.
    """
    statement = _summaries().order_by(conversations.c.touched_ms.desc(), conversations.c.pk.desc())
    if owner_pks is not None:
        statement = statement.where(conversations.c.owner_pk.in_(owner_pks))
    if after is not None:
        place = tuple_(conversations.c.touched_ms, conversations.c.pk)
        statement = statement.where(place < tuple_(literal(after.ms), literal(after.pk)))
    rows = connection.execute(statement.limit(limit + 1)).all()
    more = Place(rows[limit - 1].touched_ms, rows[limit - 1].pk) if len(rows) > limit else None
    named = _aliases(connection, [row.pk for row in rows[:limit]])
    return [{**_summary(row), "aliases": named[row.pk]} for row in rows[:limit]], more


def describe_conversation(connection: Connection, conversation: ConversationRow) -> dict[str, Any]:
    """One conversation with its aliases and the heads of its branches, newest first."""
    row = connection.execute(_summaries().where(conversations.c.pk == conversation.pk)).one()
    parents = select(messages.c.parent_pk).where(
        messages.c.conversation_pk == conversation.pk, messages.c.parent_pk.is_not(None)
    )
    leaves = (
        select(messages.c.id, messages.c.depth, messages.c.created_ms)
        .where(messages.c.conversation_pk == conversation.pk, messages.c.pk.not_in(parents))
        .order_by(messages.c.pk.desc())
        .limit(MOST_BRANCHES)
    )
    return {
        **_summary(row),
        "aliases": _aliases(connection, [conversation.pk])[conversation.pk],
        "branches": [
            {"head": leaf.id, "messages": leaf.depth, "created_at": iso(leaf.created_ms)}
            for leaf in connection.execute(leaves)
        ],
    }


def _summaries() -> Select[Any]:
    return select(*_SUMMARY).select_from(
        conversations.join(owners, owners.c.pk == conversations.c.owner_pk).outerjoin(
            messages, messages.c.pk == conversations.c.head_pk
        )
    )


def _aliases(connection: Connection, pks: Sequence[int]) -> dict[int, list[str]]:
    """The names that clients gave these conversations, in alphabetical order."""
    named: dict[int, list[str]] = {pk: [] for pk in pks}
    wanted = select(aliases.c.conversation_pk, aliases.c.alias)
    for row in connection.execute(
        wanted.where(aliases.c.conversation_pk.in_(pks)).order_by(aliases.c.alias)
    ):
        named[row.conversation_pk].append(row.alias)
    return named


def _summary(row: Row[Any]) -> dict[str, Any]:
    """messages and chars are those of the newest branch."""
    return {
        "id": row.id,
        "owner": row.name,
        "user": row.user,
        "model": row.model,
        "created_at": iso(row.created_ms),
        "updated_at": iso(row.touched_ms),
        "archived": bool(row.archived),
        "backend": row.backend,
        "route": row.route,
        "private": bool(row.private),
        "head": row.head,
        "messages": row.depth or 0,
        "chars": row.cum_chars or 0,
    }


@dataclass(frozen=True, slots=True)
class Page:
    """Messages of one branch, oldest first; before is the id of the message they follow (None:
    they begin it), next the id to ask for more after, None at the branch's end."""

    before: str | None
    messages: list[StoredMessage]
    next: str | None


def read_page(connection: Connection, head: Node, after: Node | None, limit: int) -> Page:
    """The messages behind `after`, which lies on the path to head: reads those rows, and finds
    where they end by O(log n) skips."""
    above = 0 if after is None else after.depth
    last_depth = min(above + limit, head.depth)
    if last_depth == above:
        return Page(None if after is None else after.id, [], None)
    last_pk = ancestor_at(connection, head.pk, last_depth)
    assert last_pk is not None, "every depth up to the head has a message"
    found = path_between(connection, last_pk, above)
    more = found[-1].id if last_depth < head.depth else None
    return Page(None if after is None else after.id, found, more)


_OWN_KEYS = frozenset(
    {"id", "parent", "role", "content", "created_at", "backend", "finish_reason", "partial"}
)


def render_page(page: Page) -> dict[str, Any]:
    """The page as it is answered. Content is exactly what was sent; what else the message held
    (name, tool calls, reasoning) stands beside it."""
    rendered = []
    parent = page.before
    for stored in page.messages:
        raw = loads(stored.raw)
        message = {
            "id": stored.id,
            "parent": parent,
            "role": stored.role,
            "content": raw.get("content"),
            "created_at": iso(stored.created_ms),
            "backend": stored.backend,
            "finish_reason": stored.finish_reason,
            "partial": bool(stored.partial),
        }
        message.update({key: value for key, value in raw.items() if key not in _OWN_KEYS})
        rendered.append(message)
        parent = stored.id
    return {"messages": rendered, "next": page.next}


def list_jobs(
    connection: Connection,
    owner_pks: Collection[int] | None,
    *,
    limit: int,
    now_ms: int,
    with_done: bool = False,
) -> list[dict[str, Any]]:
    """Background work of an owner (None: of everybody), what is due first at the top, and what it
    waits for.

    Work that is done is left out unless asked for.
    """
    statement = (
        select(jobs, conversations.c.id.label("conversation"))
        .join(conversations, conversations.c.pk == jobs.c.conversation_pk)
        .order_by(jobs.c.run_at_ms, jobs.c.pk)
        .limit(limit)
    )
    if owner_pks is not None:
        statement = statement.where(conversations.c.owner_pk.in_(owner_pks))
    if not with_done:
        statement = statement.where(jobs.c.state != "done")
    working = under_way(connection)
    return [
        {
            **render_job(row),
            "waits_for": tell_wait(row, working, now_ms),
            "conversation": row.conversation,
            "policy": row.policy,
        }
        for row in connection.execute(statement)
    ]


def under_way(connection: Connection) -> tuple[set[str | None], set[int]]:
    """The backends and the conversations that background work is running for, whoever's it is."""
    leased = select(jobs.c.backend, jobs.c.conversation_pk).where(jobs.c.state == "leased")
    rows = connection.execute(leased).all()
    return {row.backend for row in rows}, {row.conversation_pk for row in rows}


def tell_wait(
    row: Row[Any], working: tuple[Collection[str | None], Collection[int]], now_ms: int
) -> str | None:
    """What a queued job waits for, in words; None for one in any other state. working: as
    under_way."""
    backends, conversations = working
    if row.state != "queued":
        return None
    if row.run_at_ms > now_ms:
        return "its time" if row.attempts == 0 else "its next round"
    if row.backend is None:
        return "a running gateway to choose its backend"
    if row.conversation_pk in conversations:
        return "other work of its conversation"
    if row.backend in backends:
        return f"other work on {row.backend}"
    return f"a running gateway and a quiet moment of {row.backend}"


def render_job(row: Row[Any]) -> dict[str, Any]:
    return {
        "id": row.key,
        "kind": row.kind,
        "state": row.state,
        "attempts": row.attempts,
        "run_at": iso(row.run_at_ms),
        "error": row.error or row.error_kind,
    }


def delete_conversation(
    connection: Connection,
    conversation: ConversationRow,
    *,
    elsewhere: Collection[str],
    now_ms: int,
) -> list[str]:
    """Delete a conversation and all that hangs on it; its aliases are free again.

    What it taught of its owner goes too; where another conversation told the same, that one's word
    stands again; the texts of deleted facts go that its views alone showed, and of those that it
    taught digests stay (profile_edits.keep_digests). Leaves one outbox entry
    for each backend that read any of it, except those `elsewhere` (known to run on other machines,
    whose memory is not ours to wipe). Returns those backends' names. Where there is none, one entry
    with nothing to wipe tells a program that runs beside this one.
    Work under way finds its rows gone and writes nothing.
    """
    pk = conversation.pk
    readers = union(
        *(
            select(table.c.backend).where(
                table.c.conversation_pk == pk, table.c.backend.is_not(None)
            )
            for table in (attempts, versions, gists, quarantine, jobs, auxiliary)
        )
    )
    # Where its next turn leads, its prompt may have been read in ahead: of that there is no row.
    ahead = {conversation.route, conversation.backend} - {None}
    held = sorted({*connection.execute(readers).scalars(), *ahead} - set(elsewhere))
    entry = {"conversation_id": conversation.id, "conversation_pk": pk, "created_ms": now_ms}
    entries = [{**entry, "backend": backend, "done_ms": None} for backend in held]
    release_facts(connection, conversation)
    keep_digests(connection, conversation)
    take_turn(connection)
    connection.execute(insert(outbox), entries or [{**entry, "backend": "", "done_ms": now_ms}])
    connection.execute(delete(conversations).where(conversations.c.pk == pk))
    purge_deleted(connection, conversation.owner_pk)
    return held
