"""The index of recall: for each word of a conversation, the messages that hold it.

SQLite's FTS5 serves as posting lists; on PostgreSQL the table `message_terms` does, beside one of
the places that are indexed, `message_search`. What a word is, `policies.recall.terms` says; here it
is a digest under a salt of its conversation, so that a list holds the messages of one conversation
only (its cost does not grow with others, and owners never meet in it) and that what FTS5 keeps of a
deleted row until its next merge says nothing once the salt is gone. A rowid is the message's
place (`policies.recall.places`), so that a ranking reads no row of what it does not show.

A path is indexed from its first message on, so that of an indexed message every ancestor is. What
deletes a message deletes its search row (a trigger; on PostgreSQL, where a message goes with its
conversation only, the rows hang on that), and the salt goes with the conversation.
No function commits.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Connection,
    bindparam,
    column,
    delete,
    func,
    insert,
    select,
    table,
    text,
    update,
)

from gateway.store.prepared import Prepared
from gateway.store.rows import record
from gateway.store.tables.transcript import Message, SearchKey
from gateway.store.transcript import StoredMessage, ancestor_at, node_by_pk, on_path, path_between
from gateway.wire.json_text import loads
from policies.messages import message_text
from policies.recall.places import DEEPEST, PK_AT, pack_place
from policies.recall.terms import index_terms

Posting = tuple[int, int]
"""(depth, packed place) of a message that holds a term."""

keys = SearchKey.__table__  # type: ignore[attr-defined]
messages = Message.__table__  # type: ignore[attr-defined]
_LISTS = [table(name, column("conversation_pk")) for name in ("message_search", "message_terms")]

_KEY = Prepared(
    select(
        keys.c.conversation_pk, keys.c.salt, keys.c.messages, keys.c.last_pk, keys.c.last_depth
    ).where(keys.c.conversation_pk == bindparam("conversation"))
)
_MOVE = Prepared(
    update(keys)
    .where(keys.c.conversation_pk == bindparam("conversation"))
    .values(
        messages=keys.c.messages + bindparam("added"),
        last_pk=bindparam("last"),
        last_depth=bindparam("depth"),
    )
)
# On PostgreSQL a term is the same digest as a number: twelve hexadecimal digits are 48 bits.
_TERMS = (
    "(SELECT CAST(CAST('x' || digest AS bit(48)) AS bigint)"
    " FROM unnest(string_to_array(:terms, ' ')) AS digest WHERE digest <> '') AS t(term)"
)
_ADD = Prepared(
    text("INSERT INTO message_search (rowid, terms) VALUES (:place, :terms)"),
    postgresql=text(
        "WITH said AS (INSERT INTO message_search (conversation_pk, place)"
        " VALUES (:conversation, :place))"
        " INSERT INTO message_terms (conversation_pk, term, place)"
        " SELECT DISTINCT CAST(:conversation AS bigint), term, CAST(:place AS bigint)"
        f" FROM {_TERMS}"
    ),
)
_HAS = Prepared(
    text("SELECT rowid FROM message_search WHERE rowid BETWEEN :first AND :last"),
    postgresql=text(
        "SELECT s.place FROM messages m JOIN message_search s"
        " ON s.conversation_pk = m.conversation_pk AND s.place BETWEEN :first AND :last"
        " WHERE m.pk = :pk"
    ),
)
_DROP = Prepared(text("DELETE FROM message_search WHERE rowid BETWEEN :first AND :last"))
DENSE = 200
DENSE_SHARE = 8
"""A word that more than an eighth of an index holds, and more than 200 messages, is left out of a
search: its weight would be a quarter of a rare word's."""

_POSTINGS = Prepared(
    text(
        "SELECT (rowid >> 6) & 1048575, rowid FROM message_search"
        " WHERE message_search MATCH :token ORDER BY rowid DESC LIMIT :most"
    ),
    postgresql=text(
        "SELECT CAST((place >> 6) & 1048575 AS integer), place FROM message_terms"
        " WHERE conversation_pk = :conversation AND term = :term ORDER BY place DESC LIMIT :most"
    ),
)
_IS_DENSE = Prepared(
    text(
        "SELECT rowid FROM message_search WHERE message_search MATCH :token LIMIT 1 OFFSET :least"
    ),
    postgresql=text(
        "SELECT place FROM message_terms WHERE conversation_pk = :conversation AND term = :term"
        " LIMIT 1 OFFSET :least"
    ),
)
WALK = """
WITH RECURSIVE walk(pk, depth, parent_pk, jump_pk, jump_depth) AS (
  SELECT pk, depth, parent_pk, jump_pk, jump_depth FROM messages WHERE pk = :head
  UNION ALL
  SELECT m.pk, m.depth, m.parent_pk, m.jump_pk, m.jump_depth
  FROM walk w JOIN messages m
    ON m.pk = CASE WHEN w.jump_pk IS NOT NULL AND w.jump_depth >= :last
                   THEN w.jump_pk ELSE w.parent_pk END
  WHERE w.depth > :first
)
"""
"""The messages of a path from :head along skip pointers to depth :last, then from parent to parent
to depth :first; those deeper than :last are steps on the way only."""
_STRETCH = Prepared(
    text(
        WALK
        + """
        SELECT m.pk, m.id, m.depth, m.role, m.raw, m.created_ms
        FROM walk w JOIN messages m ON m.pk = w.pk WHERE w.depth <= :last ORDER BY w.depth
        """
    )
)


@dataclass(frozen=True, slots=True)
class Said:
    """A message as recall shows it; raw is its JSON text."""

    pk: int
    id: str
    depth: int
    role: str
    raw: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class Index:
    """What there is of a conversation's index. messages: how many it holds, of all branches;
    last_pk and last_depth: the message that was indexed last."""

    conversation_pk: int
    salt: str
    messages: int
    last_pk: int
    last_depth: int


def find_index(connection: Connection, conversation_pk: int) -> Index | None:
    """None where nothing of the conversation was indexed yet."""
    row = _KEY.first(connection, conversation=conversation_pk)
    return None if row is None else record(Index, row)


def index_path(
    connection: Connection, conversation_pk: int, last_pk: int, *, limit: int = 500
) -> int:
    """Index what is not yet indexed on the path that ends at message last_pk, oldest first.

    At most `limit` messages at once; returns how many it were, so that `limit` says that more may
    be left. The cost is that of the new messages alone; one row is read where there are none.
    """
    batch = gather(connection, conversation_pk, last_pk, limit)
    if batch is not None:
        add(connection, batch)
    return 0 if batch is None else len(batch.entries)


@dataclass(frozen=True, slots=True)
class Entry:
    """A message as the index holds it: its packed place, and its terms under the salt."""

    pk: int
    place: int
    terms: str


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages that go into the index next, worked out outside of the write. after: the index as it
    was then; only on that it may be added."""

    after: Index
    entries: Sequence[Entry]
    last_depth: int


def gather(connection: Connection, conversation_pk: int, last_pk: int, limit: int) -> Batch | None:
    """The next messages, at most `limit`, of the path that ends at message last_pk; None where all
    of it is indexed. Reads only: all the work on their words is done here."""
    index = find_index(connection, conversation_pk)
    if index is not None and index.last_pk == last_pk:
        return None
    done = _depth(connection, index, last_pk)
    last = node_by_pk(connection, last_pk)
    target = min(last.depth, done + limit, DEEPEST)
    end = last_pk if target == last.depth else ancestor_at(connection, last_pk, target)
    if target <= done or end is None:
        return None
    after = index or Index(conversation_pk, secrets.token_hex(16), 0, 0, 0)
    rows = path_between(connection, end, done)
    return Batch(after, [_entry(after.salt, row) for row in rows], rows[-1].depth)


def add(connection: Connection, batch: Batch) -> bool:
    """Put a batch into the index; False, and nothing done, where that has moved since or a message
    is no longer there."""
    after = batch.after
    pks = [entry.pk for entry in batch.entries]
    there = select(func.count()).where(messages.c.pk.in_(pks))
    if connection.execute(there).scalar_one() != len(pks):
        return False
    now = find_index(connection, after.conversation_pk)
    if now is None and not after.messages:
        _begin(connection, after)
    elif now != after:
        return False
    whose = after.conversation_pk
    _ADD.run_many(
        connection,
        [{"conversation": whose, "place": one.place, "terms": one.terms} for one in batch.entries],
    )
    _MOVE.run(
        connection,
        conversation=whose,
        added=len(pks),
        last=pks[-1],
        depth=batch.last_depth,
    )
    return True


def _entry(salt: str, row: StoredMessage) -> Entry:
    said = message_text(loads(row.raw))
    place = pack_place(row.pk, row.depth, said, row.role == "user")
    return Entry(row.pk, place, " ".join(_tokens(salt, index_terms(said))))


def is_indexed(connection: Connection, pk: int) -> bool:
    """Whether a message, and with it the whole path that leads to it, is indexed: one row is read,
    whatever other branches were indexed since."""
    return _HAS.first(connection, **_places_of(pk)) is not None


def indexed_depth(connection: Connection, conversation_pk: int, last_pk: int) -> int:
    """The depth up to which the path to this message is indexed; 0 where nothing of it is."""
    return _depth(connection, find_index(connection, conversation_pk), last_pk)


def _depth(connection: Connection, index: Index | None, last_pk: int) -> int:
    if index is None:
        return 0
    last = node_by_pk(connection, last_pk)
    if index.last_depth and on_path(connection, index.last_pk, index.last_depth, last):
        return index.last_depth
    if is_indexed(connection, last_pk):
        return last.depth
    least, most = 0, last.depth - 1
    while least < most:
        depth = (least + most + 1) // 2
        pk = ancestor_at(connection, last_pk, depth)
        if pk is not None and is_indexed(connection, pk):
            least = depth
        else:
            most = depth - 1
    return least


def postings(
    connection: Connection, index: Index, terms: Iterable[str], limit: int
) -> dict[str, list[Posting]]:
    """For each term the messages that hold it, on any branch: at most `limit`, newest first.

    A word that stands in very many of them tells nothing of any and is left out: counting so far
    costs a tenth of what reading and ranking its list does.
    """
    found: dict[str, list[Posting]] = {}
    wanted = list(terms)
    least = max(DENSE, index.messages // DENSE_SHARE)
    for term, token in zip(wanted, _tokens(index.salt, wanted), strict=True):
        if index.messages > least and _is_dense(connection, index, token, least):
            continue
        rows = _POSTINGS.all(connection, **_asked_for(index, token), most=limit)
        if rows:
            found[term] = rows
    return found


_DENSE_KEPT = 4_096
_GROWN = 1.25


def _is_dense(connection: Connection, index: Index, token: str, least: int) -> bool:
    """Whether more messages than `least` hold a word; once so, until the index has grown by a
    quarter.

    Counting one costs up to 0.1 ms. What was counted is kept beside the driver's connection, which
    one thread has at a time: words as FTS5 holds them (salted, so each is one conversation's) with
    the messages that the index held then; the oldest go first.
    """
    known: dict[str, int] = connection.info.setdefault("dense", {})
    if index.messages <= _GROWN * known.get(token, 0):
        return True
    if _IS_DENSE.first(connection, **_asked_for(index, token), least=least) is None:
        return False
    known.pop(token, None)
    known[token] = index.messages
    if len(known) > _DENSE_KEPT:
        del known[next(iter(known))]
    return True


def read_stretch(connection: Connection, head_pk: int, first: int, last: int) -> list[Said]:
    """The messages at the depths first to last of the path to head, oldest first: O(log n) rows to
    reach them, then those rows only."""
    rows = _STRETCH.all(connection, head=head_pk, first=first, last=last)
    return [record(Said, row) for row in rows]


def forget(connection: Connection, conversation_pk: int) -> None:
    """Drop a conversation's index; `index_path` makes it again."""
    if connection.dialect.name == "postgresql":
        for held in _LISTS:
            connection.execute(delete(held).where(held.c.conversation_pk == conversation_pk))
    else:
        _forget_rows(connection, conversation_pk)
    connection.execute(delete(keys).where(keys.c.conversation_pk == conversation_pk))


def _forget_rows(connection: Connection, conversation_pk: int) -> None:
    held = connection.execute(
        select(messages.c.pk).where(messages.c.conversation_pk == conversation_pk)
    ).scalars()
    for pk in held.all():
        _DROP.run(connection, **_places_of(pk))


def _begin(connection: Connection, index: Index) -> None:
    connection.execute(
        insert(keys).values(
            conversation_pk=index.conversation_pk,
            salt=index.salt,
            messages=0,
            last_pk=0,
            last_depth=0,
        )
    )


def _places_of(pk: int) -> dict[str, int]:
    """The places that a message may have, whatever its depth and marks."""
    return {"pk": pk, "first": pk << PK_AT, "last": (pk + 1 << PK_AT) - 1}


def _asked_for(index: Index, token: str) -> dict[str, Any]:
    """A word as each kind of database looks it up."""
    return {
        "conversation": index.conversation_pk,
        "token": f'"{token}"',
        "term": int(token, 16),
    }


def _tokens(salt: str, terms: Collection[str]) -> list[str]:
    """What FTS5 holds for these terms: twelve hexadecimal digits each."""
    key = salt.encode()
    return [
        hashlib.blake2b(term.encode("utf-8", "replace"), key=key, digest_size=6).hexdigest()
        for term in terms
    ]
