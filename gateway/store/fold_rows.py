"""Folds: rows that are added, never rewritten. No function commits."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select

from gateway.store.prepared import Prepared
from gateway.store.rows import new_pk, record
from gateway.store.tables.memory import Fold
from gateway.store.transcript import Node, on_path

folds = Fold.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Shown:
    """What a fold's memory holds beside gist and chapters, as row numbers: of the profile, of
    documents, and of ledger entries that are pinned, of threads that are open or were closed."""

    profile: tuple[int, ...] = ()
    documents: tuple[int, ...] = ()
    pins: tuple[int, ...] = ()
    open: tuple[int, ...] = ()
    closed: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return any(getattr(self, field.name) for field in fields(self))

    def to_json(self) -> str | None:
        """As stored; None where nothing is shown."""
        told = {field.name: list(getattr(self, field.name)) for field in fields(self)}
        return json.dumps({kind: pks for kind, pks in told.items() if pks}) if self else None

    @classmethod
    def from_json(cls, text: str | None) -> Shown:
        return cls(**{kind: tuple(pks) for kind, pks in json.loads(text).items()}) if text else NONE


NONE = Shown()


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
    shown: Shown = NONE
    conversation_pk: int = 0


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
    folds.c.shown,
    folds.c.conversation_pk,
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
    values[13] = Shown.from_json(values[13])
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
    shown: Shown = NONE,
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
        "shown": shown.to_json(),
        "revision": revision,
        "created_ms": now_ms,
    }
    made = connection.execute(insert(folds).values(**values))
    return fold_by_pk(connection, new_pk(made))
