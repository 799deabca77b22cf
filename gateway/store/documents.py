"""Texts that stand in the stable part of views: of one conversation, or of all of a policy.

A text is never rewritten: one that is put under the same name is a row of its own, and views show
the older until their next fold. Every function takes a connection; none commits.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from sqlalchemy import (
    Connection,
    Select,
    bindparam,
    delete,
    func,
    insert,
    literal,
    or_,
    select,
    update,
)

from gateway.policy_file import PolicyDocument
from gateway.store.fold_rows import folds
from gateway.store.prepared import Prepared
from gateway.store.rows import new_pk, record
from gateway.store.shown import folds_showing, pks_shown
from gateway.store.tables.memory import Document
from gateway.store.transcript import conversations
from gateway.store.wipes import tell_of_emptied

documents = Document.__table__  # type: ignore[attr-defined]

COLUMNS = (
    documents.c.pk,
    documents.c.id,
    documents.c.conversation_pk,
    documents.c.policy,
    documents.c.name,
    documents.c.text,
    documents.c.digest,
    documents.c.chars,
    documents.c.created_ms,
    documents.c.removed_ms,
)


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document as stored: of a conversation, or (conversation_pk None) of a policy."""

    pk: int
    id: str
    conversation_pk: int | None
    policy: str | None
    name: str
    text: str
    digest: str
    chars: int
    created_ms: int
    removed_ms: int | None


_FOR_VIEW = Prepared(
    select(*COLUMNS)
    .where(
        documents.c.removed_ms.is_(None),
        or_(
            documents.c.conversation_pk == bindparam("conversation"),
            documents.c.policy == bindparam("of_policy"),
        ),
    )
    .order_by(documents.c.policy.is_(None), documents.c.pk)
)


_REMOVED = Prepared(
    select(documents.c.pk).where(
        documents.c.conversation_pk == bindparam("conversation"),
        documents.c.removed_ms.is_not(None),
    )
)


def for_view(connection: Connection, conversation_pk: int, policy: str) -> list[DocumentRow]:
    """What views of this policy are to show in this conversation: the policy's own documents, then
    the conversation's, each in the order in which they came."""
    rows = _FOR_VIEW.all(connection, conversation=conversation_pk, of_policy=policy)
    return [record(DocumentRow, row) for row in rows]


def documents_by_pk(connection: Connection, pks: Sequence[int]) -> list[DocumentRow]:
    """The documents that a fold names, in its order, whatever became of them since."""
    if not pks:
        return []
    rows = connection.execute(select(*COLUMNS).where(documents.c.pk.in_(list(pks))))
    by_pk = {row.pk: _read(row) for row in rows}
    return [by_pk[pk] for pk in pks if pk in by_pk]


def list_documents(connection: Connection, conversation_pk: int) -> list[DocumentRow]:
    """A conversation's own documents that are not removed, in the order in which they came."""
    rows = connection.execute(
        select(*COLUMNS)
        .where(documents.c.conversation_pk == conversation_pk, documents.c.removed_ms.is_(None))
        .order_by(documents.c.pk)
    )
    return [_read(row) for row in rows]


def put_document(
    connection: Connection, conversation_pk: int, name: str, text: str, now_ms: int
) -> tuple[DocumentRow, bool]:
    """Put a text under a name, in place of what stood there; whether anything changed.

    The next user message sees it: the conversation asks for its memory anew.
    """
    digest = _digest(text)
    old = [row for row in list_documents(connection, conversation_pk) if row.name == name]
    if old and old[0].digest == digest:
        return old[0], False
    _remove(connection, [row.pk for row in old], now_ms)
    pk = _insert(connection, conversation_pk=conversation_pk, name=name, text=text, now_ms=now_ms)
    ask_anew(connection, [conversation_pk])
    if purge_removed(connection, conversation_pk):
        tell_of_emptied(connection, now_ms)
    return documents_by_pk(connection, [pk])[0], True


def remove_document(
    connection: Connection, row: DocumentRow, now_ms: int, *, at_once: bool = False
) -> None:
    """Take a conversation's document away; the next user message sees none. Its text goes once no
    view shows it, or at once."""
    if at_once:
        connection.execute(delete(documents).where(documents.c.pk == row.pk))
    _remove(connection, [row.pk], now_ms)
    if row.conversation_pk is not None:
        ask_anew(connection, [row.conversation_pk])
        if purge_removed(connection, row.conversation_pk):
            tell_of_emptied(connection, now_ms)


def purge_removed(connection: Connection, conversation_pk: int, *, at_once: bool = False) -> int:
    """Delete the removed documents that no view shows any more, or all; how many there were. Where
    none waits it costs one look by an index."""
    waiting = {row[0] for row in _REMOVED.all(connection, conversation=conversation_pk)}
    if not waiting:
        return 0
    chat = [conversation_pk]
    gone = waiting if at_once else waiting - pks_shown(connection, chat, "documents", waiting)
    connection.execute(delete(documents).where(documents.c.pk.in_(list(gone))))
    return len(gone)


def ask_anew(connection: Connection, conversation_pks: Collection[int]) -> None:
    """The next user message in each view of these conversations sees their memory anew."""
    newest = connection.execute(select(func.max(folds.c.pk))).scalar() or 0
    connection.execute(
        update(conversations)
        .where(conversations.c.pk.in_(list(conversation_pks)))
        .values(renew_after=newest)
    )


def ask_anew_showing(
    connection: Connection,
    conversation_pks: Select[tuple[int]] | Collection[int],
    kind: str,
    pks: Collection[int],
) -> None:
    """The same of those of these conversations a view of which, in force, shows one of these rows
    of a kind (`profile`, `documents`, …)."""
    showing = folds_showing(connection, conversation_pks, kind, pks)
    ask_anew(connection, {one.conversation_pk for one in showing})


def keep_policy_documents(
    connection: Connection, named: Mapping[str, Sequence[PolicyDocument]], now_ms: int
) -> None:
    """Make the stored documents of policies those of the file in force, by policy.

    A text that is there already keeps its row, also one that was away for a while; what is no
    longer named is removed from later folds and stays for those that show it.
    """
    rows = [
        _read(row)
        for row in connection.execute(
            select(*COLUMNS).where(documents.c.policy.is_not(None)).order_by(documents.c.pk)
        )
    ]
    known = {(row.policy, row.name, row.digest): row for row in rows}
    wanted = {
        (policy, one.name, _digest(one.text)): one for policy, of in named.items() for one in of
    }
    gone = [row.pk for key, row in known.items() if key not in wanted and row.removed_ms is None]
    _remove(connection, gone, now_ms)
    back = [row.pk for key, row in known.items() if key in wanted and row.removed_ms is not None]
    connection.execute(update(documents).where(documents.c.pk.in_(back)).values(removed_ms=None))
    for (policy, name, _), one in wanted.items():
        if (policy, name, _digest(one.text)) not in known:
            _insert(connection, policy=policy, name=name, text=one.text, now_ms=now_ms)


def total_chars(connection: Connection, conversation_pk: int, *, besides: str = "") -> int:
    """Characters of a conversation's documents, without those of the name `besides`."""
    total = func.coalesce(func.sum(documents.c.chars), literal(0))
    return int(
        connection.execute(
            select(total).where(
                documents.c.conversation_pk == conversation_pk,
                documents.c.removed_ms.is_(None),
                documents.c.name != besides,
            )
        ).scalar_one()
    )


def _insert(
    connection: Connection,
    *,
    name: str,
    text: str,
    now_ms: int,
    conversation_pk: int | None = None,
    policy: str | None = None,
) -> int:
    made = connection.execute(
        insert(documents).values(
            id=f"doc_{secrets.token_hex(8)}",
            conversation_pk=conversation_pk,
            policy=policy,
            name=name,
            text=text,
            digest=_digest(text),
            chars=len(text),
            created_ms=now_ms,
            removed_ms=None,
        )
    )
    return new_pk(made)


def _remove(connection: Connection, pks: Collection[int], now_ms: int) -> None:
    if pks:
        connection.execute(
            update(documents).where(documents.c.pk.in_(list(pks))).values(removed_ms=now_ms)
        )


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=16).hexdigest()


def _read(row: Any) -> DocumentRow:
    return record(DocumentRow, row)
