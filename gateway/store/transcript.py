"""The message tree: append, find, walk. Every function takes a connection; none commits.

A message's id is a digest of its parent's id and its own canonical content; the root's parent is
the conversation. What is asked again inserts nothing.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, insert, select, text, true, update

from gateway.randomness import random_hex
from gateway.store.prepared import Prepared
from gateway.store.rows import new_pk, record
from gateway.store.tables.transcript import (
    Conversation,
    ConversationAlias,
    Message,
    Owner,
    SystemText,
)

owners = Owner.__table__  # type: ignore[attr-defined]
conversations = Conversation.__table__  # type: ignore[attr-defined]
aliases = ConversationAlias.__table__  # type: ignore[attr-defined]
messages = Message.__table__  # type: ignore[attr-defined]
system_texts = SystemText.__table__  # type: ignore[attr-defined]

# Digests a lookup asks for at once: the newest few find nearly every continued conversation.
_LOOKUP_STEPS = (8, 64, 400)


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message about to be stored.

    raw is its JSON text as stored, canonical what identifies it, chars its cost in a view.
    """

    role: str
    raw: str
    canonical: bytes
    text: str | None
    chars: int
    opens: bool
    produced: bool = False
    backend: str | None = None
    finish_reason: str | None = None
    partial: bool = False
    images: int = 0
    tools: int = 0


class Node(NamedTuple):
    """Where a message stands: enough to append to it without reading its ancestors."""

    pk: int
    id: str
    depth: int
    chain: str
    cum_chars: int
    jump_pk: int | None
    jump_depth: int
    role: str
    content: str
    opens: bool
    anchored: bool
    parent_pk: int | None
    chars: int
    cum_images: int
    cum_tools: int


@dataclass(frozen=True, slots=True)
class ConversationRow:
    pk: int
    id: str
    owner_pk: int
    head_pk: int | None
    model: str
    created_ms: int
    touched_ms: int
    archived: bool
    resends: bool = False
    renew_after: int | None = None
    backend: str | None = None
    route: str | None = None
    private: bool = False
    noted: bool = False


_NODE = (
    messages.c.pk,
    messages.c.id,
    messages.c.depth,
    messages.c.chain,
    messages.c.cum_chars,
    messages.c.jump_pk,
    messages.c.jump_depth,
    messages.c.role,
    messages.c.content,
    messages.c.opens,
    messages.c.anchored,
    messages.c.parent_pk,
    messages.c.chars,
    messages.c.cum_images,
    messages.c.cum_tools,
)
CONVERSATION_COLUMNS = (
    conversations.c.pk,
    conversations.c.id,
    conversations.c.owner_pk,
    conversations.c.head_pk,
    conversations.c.model,
    conversations.c.created_ms,
    conversations.c.touched_ms,
    conversations.c.archived,
    conversations.c.resends,
    conversations.c.renew_after,
    conversations.c.backend,
    conversations.c.route,
    conversations.c.private,
    conversations.c.noted,
)

_OWNER = Prepared(
    select(owners.c.pk).where(
        owners.c.name == bindparam("name"), owners.c.user == bindparam("user")
    )
)
_NODE_BY_PK = Prepared(select(*_NODE).where(messages.c.pk == bindparam("pk")))
_NODE_BY_ID = Prepared(
    select(*_NODE).where(
        messages.c.id == bindparam("id"), messages.c.conversation_pk == bindparam("conversation")
    )
)
_CONVERSATION_BY_ID = Prepared(
    select(*CONVERSATION_COLUMNS).where(
        conversations.c.owner_pk == bindparam("owner"), conversations.c.id == bindparam("id")
    )
)
_CONVERSATION_BY_ALIAS = Prepared(
    select(*CONVERSATION_COLUMNS)
    .join(aliases, aliases.c.conversation_pk == conversations.c.pk)
    .where(aliases.c.owner_pk == bindparam("owner"), aliases.c.alias == bindparam("alias"))
)
_CONVERSATION_BY_PK = Prepared(
    select(*CONVERSATION_COLUMNS).where(
        conversations.c.owner_pk == bindparam("owner"), conversations.c.pk == bindparam("pk")
    )
)
_INSERT = Prepared(insert(messages), [column.name for column in messages.c])
_COLUMNS = [column.name for column in messages.c if column.name != "pk"]
_INSERT_ONE = Prepared(
    text(
        f"INSERT INTO messages ({', '.join(_COLUMNS)}) VALUES (:{', :'.join(_COLUMNS)})"
        " ON CONFLICT (id) DO NOTHING RETURNING pk"
    )
)
_TOUCH = Prepared(
    update(conversations)
    .where(conversations.c.pk == bindparam("which"))
    .values(
        head_pk=bindparam("head"),
        touched_ms=bindparam("now"),
        model=bindparam("asked"),
    )
)
_NEW_CONVERSATION: dict[str, Any] = {
    column.name: False if column.name in ("private", "archived", "resends", "noted") else None
    for column in conversations.c
    if column.name != "pk"
}
_CREATE = Prepared(insert(conversations).returning(conversations.c.pk), list(_NEW_CONVERSATION))
_CALL = Prepared(insert(aliases), ["owner_pk", "alias", "conversation_pk"])
_SETTLE = Prepared(
    update(conversations)
    .where(conversations.c.pk == bindparam("which"))
    .values(backend=bindparam("lives_on"), private=bindparam("stays"))
)
_SYSTEM_TEXT = Prepared(
    select(system_texts.c.pk).where(
        system_texts.c.conversation_pk == bindparam("conversation"),
        system_texts.c.digest == bindparam("digest"),
    )
)
_NEW_SYSTEM_TEXT = Prepared(
    insert(system_texts).returning(system_texts.c.pk),
    ["conversation_pk", "digest", "body", "created_ms"],
)
_SYSTEM_BODY = Prepared(select(system_texts.c.body).where(system_texts.c.pk == bindparam("pk")))
_LAST_PK = Prepared(text("SELECT seq FROM sqlite_sequence WHERE name='messages'"))
_NEXT_PKS = Prepared(
    text(
        "SELECT nextval(pg_get_serial_sequence('messages', 'pk'))"
        " FROM generate_series(1, CAST(:count AS integer))"
    )
)


def message_digest(parent_id: str, canonical: bytes) -> str:
    """A message's id: 160 bits over its parent's id and its canonical content."""
    return hashlib.blake2b(parent_id.encode() + b"\x00" + canonical, digest_size=20).hexdigest()


def chain_digest(previous: str, canonical: bytes) -> str:
    """Like the id, but with an empty root: the same for equal histories of one owner."""
    return hashlib.blake2b(previous.encode() + b"\x00" + canonical, digest_size=16).hexdigest()


def content_digest(canonical: bytes) -> str:
    """The message alone, wherever it stands."""
    return hashlib.blake2b(canonical, digest_size=12).hexdigest()


def chain_digests(canonicals: Iterable[bytes]) -> list[str]:
    """The chain digest after each message of a history."""
    chains: list[str] = []
    digest = hashlib.blake2b  # as chain_digest; a call more for each message is a fifth of it all
    previous = b""
    for canonical in canonicals:
        chain = digest(previous + b"\x00" + canonical, digest_size=16).hexdigest()
        chains.append(chain)
        previous = chain.encode()
    return chains


def find_owner(connection: Connection, name: str, user: str) -> int | None:
    """The owner's row number, or None where this owner never spoke."""
    found: int | None = _OWNER.scalar(connection, name=name, user=user)
    return found


def ensure_owner(connection: Connection, name: str, user: str, now_ms: int) -> int:
    """The owner's row number; a new owner gets a row."""
    if (found := find_owner(connection, name, user)) is not None:
        return found
    made = connection.execute(insert(owners).values(name=name, user=user, created_ms=now_ms))
    return new_pk(made)


def owner_by_pk(connection: Connection, pk: int) -> tuple[str, str]:
    """(name, forwarded user) of an owner's row number taken from another row."""
    row = connection.execute(select(owners.c.name, owners.c.user).where(owners.c.pk == pk)).one()
    return row.name, row.user


def _conversation(row: Any) -> ConversationRow | None:
    return None if row is None else record(ConversationRow, row)


def find_conversation(connection: Connection, owner_pk: int, name: str) -> ConversationRow | None:
    """By Foldgate's id or by a client's alias, always within the owner."""
    by_alias = _CONVERSATION_BY_ALIAS.first(connection, owner=owner_pk, alias=name)
    if by_alias is not None:
        return record(ConversationRow, by_alias)
    return _conversation(_CONVERSATION_BY_ID.first(connection, owner=owner_pk, id=name))


def find_id(connection: Connection, owner: str, user: str, name: str) -> str | None:
    """The id of the conversation that an owner calls by this name; None where there is none."""
    owner_pk = find_owner(connection, owner, user)
    found = None if owner_pk is None else find_conversation(connection, owner_pk, name)
    return None if found is None else found.id


def conversation_by_pk(connection: Connection, owner_pk: int, pk: int) -> ConversationRow | None:
    return _conversation(_CONVERSATION_BY_PK.first(connection, owner=owner_pk, pk=pk))


_IS_THERE = Prepared(select(conversations.c.pk).where(conversations.c.pk == bindparam("pk")))


def is_there(connection: Connection, pk: int) -> bool:
    """Whether a conversation still has its row."""
    return _IS_THERE.first(connection, pk=pk) is not None


def create_conversation(
    connection: Connection,
    owner_pk: int,
    *,
    alias: str | None,
    model: str,
    now_ms: int,
    private: bool = False,
) -> ConversationRow:
    """A new, empty conversation of this owner, under the client's alias if it gave one."""
    public = f"conv_{random_hex(12)}"
    given = {"id": public, "owner_pk": owner_pk, "model": model, "private": private}
    times = {"created_ms": now_ms, "touched_ms": now_ms}
    pk = int(_CREATE.scalar(connection, **{**_NEW_CONVERSATION, **given, **times}))
    if alias is not None:
        _CALL.run(connection, owner_pk=owner_pk, alias=alias, conversation_pk=pk)
    return ConversationRow(
        pk, public, owner_pk, None, model, now_ms, now_ms, False, private=private
    )


def touch_conversation(
    connection: Connection, pk: int, *, head_pk: int, model: str, now_ms: int
) -> None:
    """Move the newest head."""
    _TOUCH.run(connection, which=pk, head=head_pk, now=now_ms, asked=model)


def settle_conversation(
    connection: Connection, pk: int, *, backend: str | None, private: bool
) -> None:
    """Say where a conversation lives, and whether nothing of it may leave this machine."""
    _SETTLE.run(connection, which=pk, lives_on=backend, stays=private)


def route_conversation(connection: Connection, pk: int, backend: str | None) -> None:
    """Choose a conversation's backend before all rules; None: choose none."""
    connection.execute(update(conversations).where(conversations.c.pk == pk).values(route=backend))


def mark_resending(connection: Connection, pk: int) -> None:
    """Remember that this conversation's client sends its history again."""
    connection.execute(update(conversations).where(conversations.c.pk == pk).values(resends=True))


def node_by_pk(connection: Connection, pk: int) -> Node:
    """The node of a row number taken from another row; a missing one is a broken database."""
    row = _NODE_BY_PK.first(connection, pk=pk)
    if row is None:
        raise LookupError(f"message {pk} is not in the database")
    return record(Node, row)


def node_by_id(connection: Connection, conversation_pk: int, id: str) -> Node | None:
    row = _NODE_BY_ID.first(connection, id=id, conversation=conversation_pk)
    return None if row is None else record(Node, row)


def deepest_known(
    connection: Connection, conversation: ConversationRow, chains: Sequence[str]
) -> tuple[int, Node] | None:
    """The last of these chain digests that stands in the conversation: (index, node)."""
    for start, stop, size in _steps_from_tail(len(chains)):
        wanted = {chain: index for index, chain in enumerate(chains[start:stop], start)}
        rows = _KNOWN[size].all(
            connection,
            conversation=conversation.pk,
            owner=conversation.owner_pk,
            **_asked_for(chains[start:stop], size),
        )
        if rows:
            node = max((record(Node, row) for row in rows), key=lambda node: wanted[node.chain])
            return wanted[node.chain], node
    return None


def conversations_by_chain(
    connection: Connection, owner_pk: int, chains: Sequence[str]
) -> list[tuple[int, int, bool]]:
    """Who knows the deepest digest: (conversation, index, anchored), newest head first."""
    for start, stop, size in _steps_from_tail(len(chains)):
        wanted = {chain: index for index, chain in enumerate(chains[start:stop], start)}
        asked = _asked_for(chains[start:stop], size)
        rows = _HOLDERS[size].all(connection, owner=owner_pk, **asked)
        found = [(row[0], wanted[row[1]], bool(row[2])) for row in rows]
        if found:
            return sorted(found, key=lambda item: -item[1])
    return []


def _steps_from_tail(total: int) -> Iterable[tuple[int, int, int]]:
    """(start, stop, size of the step), the newest first."""
    stop, step = total, 0
    while stop > 0:
        size = _LOOKUP_STEPS[min(step, len(_LOOKUP_STEPS) - 1)]
        start = max(0, stop - size)
        yield start, stop, size
        stop, step = start, step + 1


def _any_of(size: int) -> list[Any]:
    return [bindparam(f"chain_{index}") for index in range(size)]


def _asked_for(chains: Sequence[str], size: int) -> dict[str, str]:
    """Values for _any_of(size); places that are left over ask for the last one again."""
    last = len(chains) - 1
    return {f"chain_{index}": chains[min(index, last)] for index in range(size)}


# Lists of a few fixed lengths, so that their statements can be prepared.
_KNOWN = {
    size: Prepared(
        select(*_NODE).where(
            # + 0: by the index of chains; SQLite would read the whole conversation by its own.
            messages.c.conversation_pk + 0 == bindparam("conversation"),
            messages.c.owner_pk == bindparam("owner"),
            messages.c.chain.in_(_any_of(size)),
        )
    )
    for size in _LOOKUP_STEPS
}
_HOLDERS = {
    size: Prepared(
        select(messages.c.conversation_pk, messages.c.chain, messages.c.anchored)
        .join(conversations, conversations.c.pk == messages.c.conversation_pk)
        .where(messages.c.owner_pk == bindparam("owner"), messages.c.chain.in_(_any_of(size)))
        .order_by(conversations.c.touched_ms.desc(), conversations.c.pk.desc())
    )
    for size in _LOOKUP_STEPS
}


def nodes_by_content(connection: Connection, conversation_pk: int, content: str) -> list[Node]:
    """Messages that say exactly this, newest first."""
    rows = connection.execute(
        select(*_NODE)
        .where(messages.c.conversation_pk == conversation_pk, messages.c.content == content)
        .order_by(messages.c.pk.desc())
        .limit(32)
    )
    return [record(Node, row) for row in rows]


def _reserve(connection: Connection, count: int) -> Iterator[int]:
    """`count` row numbers that nobody ever had, rising: AUTOINCREMENT and a sequence never use one
    again. Others may draw from a sequence meanwhile; a child's is drawn after its parent's."""
    if connection.dialect.name == "postgresql":
        return iter(sorted(pk for (pk,) in _NEXT_PKS.all(connection, count=count)))
    return itertools.count(int(_LAST_PK.scalar(connection) or 0) + 1)


def is_said(
    connection: Connection, conversation: ConversationRow, parent: Node, message: NewMessage
) -> bool:
    """Whether this message stands behind its parent already."""
    id = message_digest(parent.id, message.canonical)
    return node_by_id(connection, conversation.pk, id) is not None


def append_messages(
    connection: Connection,
    conversation: ConversationRow,
    parent: Node | None,
    new: Sequence[NewMessage],
    now_ms: int,
) -> list[Node]:
    """Store messages one below the other under parent; known ones are found, not inserted.

    Returns their nodes in order. A message is known when a child of the same parent has its id;
    the first raw form wins.
    """
    if len(new) == 1:
        return [_append_one(connection, conversation, parent, new[0], now_ms)]
    nodes: list[Node] = []
    seen: dict[int, Node] = {} if parent is None else {parent.pk: parent}
    rows: list[dict[str, Any]] = []
    at = parent
    fresh = False
    pks: Iterator[int] = iter(())
    for message in new:
        id = message_digest(conversation.id if at is None else at.id, message.canonical)
        if not fresh and (known := node_by_id(connection, conversation.pk, id)) is not None:
            at = known
            seen[known.pk] = known
            nodes.append(known)
            continue
        if not fresh:
            fresh = True
            pks = _reserve(connection, len(new) - len(nodes))
        at = _new_node(next(pks), id, at, message, _jump(connection, at, seen))
        seen[at.pk] = at
        nodes.append(at)
        rows.append(_message_row(conversation, at, message, now_ms))
    if rows:
        _INSERT.run_many(connection, rows)
    return nodes


def _append_one(
    connection: Connection,
    conversation: ConversationRow,
    parent: Node | None,
    message: NewMessage,
    now_ms: int,
) -> Node:
    """As append_messages, in one statement where the message is new: nearly always."""
    id = message_digest(conversation.id if parent is None else parent.id, message.canonical)
    jump = _jump(connection, parent, {} if parent is None else {parent.pk: parent})
    node = _new_node(0, id, parent, message, jump)
    row = _message_row(conversation, node, message, now_ms)
    del row["pk"]
    pk = _INSERT_ONE.scalar(connection, **row)
    if pk is not None:
        return node._replace(pk=pk)
    known = node_by_id(connection, conversation.pk, id)
    assert known is not None, "its id was in the way"
    return known


def _new_node(
    pk: int, id: str, parent: Node | None, message: NewMessage, jump: tuple[int | None, int]
) -> Node:
    return Node(
        pk=pk,
        id=id,
        depth=1 if parent is None else parent.depth + 1,
        chain=chain_digest("" if parent is None else parent.chain, message.canonical),
        cum_chars=(0 if parent is None else parent.cum_chars) + message.chars,
        jump_pk=jump[0],
        jump_depth=jump[1],
        role=message.role,
        content=content_digest(message.canonical),
        opens=message.opens,
        anchored=message.produced or (parent is not None and parent.anchored),
        parent_pk=None if parent is None else parent.pk,
        chars=message.chars,
        cum_images=(0 if parent is None else parent.cum_images) + message.images,
        cum_tools=(0 if parent is None else parent.cum_tools) + message.tools,
    )


def _message_row(
    conversation: ConversationRow, node: Node, message: NewMessage, now_ms: int
) -> dict[str, Any]:
    return {
        "pk": node.pk,
        "id": node.id,
        "conversation_pk": conversation.pk,
        "owner_pk": conversation.owner_pk,
        "parent_pk": node.parent_pk,
        "depth": node.depth,
        "jump_pk": node.jump_pk,
        "jump_depth": node.jump_depth,
        "chain": node.chain,
        "content": node.content,
        "role": node.role,
        "raw": message.raw,
        "text": message.text,
        "chars": message.chars,
        "cum_chars": node.cum_chars,
        "cum_images": node.cum_images,
        "cum_tools": node.cum_tools,
        "opens": message.opens,
        "produced": message.produced,
        "anchored": node.anchored,
        "backend": message.backend,
        "finish_reason": message.finish_reason,
        "partial": message.partial,
        "created_ms": now_ms,
    }


def _jump(
    connection: Connection, parent: Node | None, seen: dict[int, Node]
) -> tuple[int | None, int]:
    """The skip pointer of a child of parent (skew-binary: its length depends on depth alone).

    Where the two before it are of one length, it spans both; then the node between them is read.
    """
    if parent is None:
        return None, 0
    if parent.jump_pk is None:
        return parent.pk, parent.depth
    if parent.depth - parent.jump_depth != parent.jump_depth - jump_depth(parent.jump_depth):
        return parent.pk, parent.depth
    jump = seen.get(parent.jump_pk)
    if jump is None:
        jump = seen[parent.jump_pk] = node_by_pk(connection, parent.jump_pk)
    return jump.jump_pk, jump.jump_depth


def jump_depth(depth: int) -> int:
    """Where the skip pointer of a message at this depth leads: the depth less the smallest of the
    numbers 1, 3, 7, 15 and so on that it is the sum of, the greatest taken first."""
    rest, length = depth, 0
    while rest:
        length = (1 << (rest + 1).bit_length() - 1) - 1
        rest -= length
    return depth - length


_ANCESTOR_SQL = text(
    """
    WITH RECURSIVE walk(pk, depth, parent_pk, jump_pk, jump_depth) AS (
      SELECT pk, depth, parent_pk, jump_pk, jump_depth FROM messages WHERE pk = :head
      UNION ALL
      SELECT m.pk, m.depth, m.parent_pk, m.jump_pk, m.jump_depth
      FROM walk w JOIN messages m
        ON m.pk = CASE WHEN w.jump_pk IS NOT NULL AND w.jump_depth >= :depth
                       THEN w.jump_pk ELSE w.parent_pk END
      WHERE w.depth > :depth
    )
    SELECT pk FROM walk WHERE depth = :depth
    """
)
_WALK_SQL = text(
    """
    WITH RECURSIVE walk(pk, parent_pk, depth) AS (
      SELECT pk, parent_pk, depth FROM messages WHERE pk = :head
      UNION ALL
      SELECT m.pk, m.parent_pk, m.depth FROM walk w JOIN messages m ON m.pk = w.parent_pk
      WHERE w.depth - 1 > :above
    )
    SELECT m.pk, m.id, m.parent_pk, m.depth, m.role, m.raw, m.chars, m.cum_chars, m.opens,
           m.backend, m.finish_reason, m.partial, m.created_ms
    FROM walk w JOIN messages m ON m.pk = w.pk WHERE m.depth > :above ORDER BY m.depth
    """
)
_ANCESTOR = Prepared(_ANCESTOR_SQL)
_WALK = Prepared(_WALK_SQL)


class StoredMessage(NamedTuple):
    """A row of a path as it is read back; raw is the message's JSON text."""

    pk: int
    id: str
    parent_pk: int | None
    depth: int
    role: str
    raw: str
    chars: int
    cum_chars: int
    opens: bool
    backend: str | None
    finish_reason: str | None
    partial: bool
    created_ms: int


def ancestor_at(connection: Connection, head_pk: int, depth: int) -> int | None:
    """The row number of the message at this depth on the path to head; O(log depth) rows."""
    found: int | None = _ANCESTOR.scalar(connection, head=head_pk, depth=depth)
    return found


def on_path(connection: Connection, pk: int, depth: int, head: Node) -> bool:
    """Whether the message (pk at depth) is head or one of its ancestors."""
    if depth > head.depth:
        return False
    if pk in (head.pk, head.parent_pk):
        return True
    return ancestor_at(connection, head.pk, depth) == pk


def path_between(connection: Connection, head_pk: int, above: int) -> list[StoredMessage]:
    """The messages deeper than `above` up to head, oldest first: reads those rows only."""
    rows = _WALK.all(connection, head=head_pk, above=above)
    return [record(StoredMessage, row) for row in rows]


def find_openings(connection: Connection, pks: Collection[int]) -> frozenset[int]:
    """Those of these messages before which a verbatim tail may begin, by their row numbers."""
    if not pks:
        return frozenset()
    asked = select(messages.c.pk).where(messages.c.pk.in_(pks), messages.c.opens == true())
    return frozenset(connection.execute(asked).scalars())


def ensure_system_text(connection: Connection, conversation_pk: int, body: str, now_ms: int) -> int:
    """The row of this turn's system messages; the same text is stored once a conversation."""
    digest = hashlib.blake2b(body.encode(), digest_size=16).hexdigest()
    found = _SYSTEM_TEXT.scalar(connection, conversation=conversation_pk, digest=digest)
    if found is not None:
        return int(found)
    made = _NEW_SYSTEM_TEXT.scalar(
        connection, conversation_pk=conversation_pk, digest=digest, body=body, created_ms=now_ms
    )
    return int(made)


def system_text(connection: Connection, pk: int) -> str:
    """The body stored under this row number."""
    return str(_SYSTEM_BODY.scalar(connection, pk=pk))
