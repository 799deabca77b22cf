"""Folds: rows that are added, never rewritten. No function commits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select

from gateway.store.prepared import Prepared
from gateway.store.rows import new_pk, record
from gateway.store.tables import Fold
from gateway.store.transcript import Node, on_path

folds = Fold.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class FoldRow:
    """A fold as stored; memory holds chapter version row numbers in order."""

    pk: int
    policy: str
    at_pk: int
    at_depth: int
    border_pk: int
    border_depth: int
    border_cum: int
    kind: str
    gist_pk: int | None
    memory: tuple[int, ...]
    memory_chars: int
    stand_ins: int
    created_ms: int


_FOLD = (
    folds.c.pk,
    folds.c.policy,
    folds.c.at_pk,
    folds.c.at_depth,
    folds.c.border_pk,
    folds.c.border_depth,
    folds.c.border_cum,
    folds.c.kind,
    folds.c.gist_pk,
    folds.c.memory,
    folds.c.memory_chars,
    folds.c.stand_ins,
    folds.c.created_ms,
)
_FOLDS = Prepared(
    select(*_FOLD)
    .where(
        folds.c.conversation_pk == bindparam("conversation"),
        folds.c.policy == bindparam("policy"),
        folds.c.at_depth <= bindparam("depth"),
    )
    .order_by(folds.c.at_depth.desc(), folds.c.pk.desc())
)


def _fold(row: Any) -> FoldRow:
    values = list(row)
    values[9] = tuple(json.loads(values[9]))
    return record(FoldRow, values)


def deepest_fold(
    connection: Connection, conversation_pk: int, policy: str, head: Node
) -> FoldRow | None:
    """The fold that a view of this policy at this head uses; None while nothing is folded."""
    rows = _FOLDS.each(connection, conversation=conversation_pk, policy=policy, depth=head.depth)
    for row in map(_fold, rows):
        if on_path(connection, row.at_pk, row.at_depth, head):
            return row
    return None


def fold_by_pk(connection: Connection, pk: int) -> FoldRow:
    return _fold(connection.execute(select(*_FOLD).where(folds.c.pk == pk)).one())


def add_fold(
    connection: Connection,
    conversation_pk: int,
    *,
    policy: str,
    at: Node,
    border: tuple[int, int, int],
    kind: str,
    gist_pk: int | None,
    memory: Sequence[int],
    memory_chars: int,
    stand_ins: int,
    revision: str,
    now_ms: int,
) -> FoldRow:
    """Write a fold; border is (pk, depth, cum_chars) of the last folded message.

    Where the same message saw a fold of this policy before, the newer one is what it sees from now
    on: a cut to the window behind an ordinary fold, nothing else (`folds.fold_if_due`).
    """
    values = {
        "conversation_pk": conversation_pk,
        "policy": policy,
        "at_pk": at.pk,
        "at_depth": at.depth,
        "border_pk": border[0],
        "border_depth": border[1],
        "border_cum": border[2],
        "kind": kind,
        "gist_pk": gist_pk,
        "memory": json.dumps(list(memory)),
        "memory_chars": memory_chars,
        "stand_ins": stand_ins,
        "revision": revision,
        "created_ms": now_ms,
    }
    made = connection.execute(insert(folds).values(**values))
    return fold_by_pk(connection, new_pk(made))
