"""What the views in force show beside their chapters: facts, documents, pins, threads.

The view in force of a policy is that of its deepest fold on the path to a conversation's newest
message. Every function takes a connection; none commits.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, Select, or_, select, text

from gateway.store.fold_rows import FoldRow, deepest_fold, folds
from gateway.store.prepared import Prepared
from gateway.store.transcript import conversations, node_by_pk

_MOST_NUMBERS = 200


@dataclass(frozen=True, slots=True)
class Showing:
    """A fold in force: the conversation, the row, and what it shows, row numbers by kind."""

    conversation_pk: int
    fold: FoldRow
    shown: dict[str, list[int]]


def folds_in_force(
    connection: Connection, conversation_pks: Select[tuple[int]] | Collection[int]
) -> Iterator[Showing]:
    """The folds in force of these conversations that show anything beside chapters."""
    yield from _in_force(connection, conversation_pks, ())


def folds_showing(
    connection: Connection,
    conversation_pks: Select[tuple[int]] | Collection[int],
    kind: str,
    pks: Collection[int],
) -> list[Showing]:
    """The folds in force of these conversations that show one of these rows of a kind."""
    found = _in_force(connection, conversation_pks, pks) if pks else iter(())
    return [one for one in found if set(pks) & set(one.shown.get(kind, ()))]


def pks_shown(
    connection: Connection,
    conversation_pks: Select[tuple[int]] | Collection[int],
    kind: str,
    pks: Collection[int],
) -> set[int]:
    """Those of these rows of a kind that a view in force shows."""
    showing = folds_showing(connection, conversation_pks, kind, pks)
    return set(pks) & {pk for one in showing for pk in one.shown[kind]}


def _in_force(
    connection: Connection,
    conversation_pks: Select[tuple[int]] | Collection[int],
    pks: Collection[int],
) -> Iterator[Showing]:
    """pks: look only where a fold's text holds one of these numbers; all where there are none, or
    more than one statement may hold."""
    wanted = (
        select(folds.c.conversation_pk, folds.c.policy, conversations.c.head_pk)
        .join(conversations, conversations.c.pk == folds.c.conversation_pk)
        .where(folds.c.conversation_pk.in_(conversation_pks), folds.c.shown.is_not(None))
        .where(conversations.c.head_pk.is_not(None))
        .distinct()
    )
    if 0 < len(pks) <= _MOST_NUMBERS:
        wanted = wanted.where(or_(*(folds.c.shown.contains(str(pk)) for pk in pks)))
    for conversation_pk, policy, head_pk in connection.execute(wanted).all():
        fold = deepest_fold(connection, conversation_pk, policy, node_by_pk(connection, head_pk))
        if fold is None:
            continue
        text = connection.execute(select(folds.c.shown).where(folds.c.pk == fold.pk)).scalar()
        if text is not None:
            yield Showing(conversation_pk, fold, json.loads(text))


_PRIVATE_BESIDE = Prepared(
    text(
        "SELECT 1 FROM conversations me JOIN conversations other ON other.owner_pk = me.owner_pk"
        " WHERE me.pk = :which AND other.private AND other.pk <> me.pk LIMIT 1"
    )
)


def has_private_beside(connection: Connection, conversation_pk: int) -> bool:
    """Whether the owner of a conversation has a private one beside it. Nothing is read where there
    is none (a partial index)."""
    return _PRIVATE_BESIDE.first(connection, which=conversation_pk) is not None


def private_among(connection: Connection, conversation_pks: Collection[int]) -> set[int]:
    """Those of these conversations that are private."""
    if not conversation_pks:
        return set()
    found = select(conversations.c.pk).where(
        conversations.c.pk.in_(list(conversation_pks)), conversations.c.private
    )
    return set(connection.execute(found).scalars())
