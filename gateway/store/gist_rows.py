"""Gists: older chapters folded together, each of one policy. Rows are added, never rewritten. No
function commits.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, insert, select, update

from gateway.store.chapter_rows import versions
from gateway.store.fold_rows import FoldRow
from gateway.store.prepared import Prepared
from gateway.store.rows import new_pk, record
from gateway.store.tables.memory import Gist
from gateway.store.transcript import Node, on_path

gists = Gist.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class GistRow:
    pk: int
    policy: str
    last_pk: int
    last_depth: int
    version: int
    text: str
    origin: str
    backend: str | None
    created_ms: int
    retired_ms: int | None = None


_GIST = (
    gists.c.pk,
    gists.c.policy,
    gists.c.last_pk,
    gists.c.last_depth,
    gists.c.version,
    gists.c.text,
    gists.c.origin,
    gists.c.backend,
    gists.c.created_ms,
    gists.c.retired_ms,
)

# Deeper on a path is younger, so that the row numbers of an index serve as depths do.
_GIST_ENDS = Prepared(
    select(gists.c.last_pk, gists.c.last_depth, func.length(gists.c.text))
    .where(
        gists.c.conversation_pk == bindparam("conversation"),
        gists.c.policy == bindparam("policy"),
        gists.c.last_pk <= bindparam("head"),
        gists.c.retired_ms.is_(None),
    )
    .order_by(gists.c.last_pk.desc(), gists.c.version.desc())
)
_MADE_SINCE = Prepared(
    select(gists.c.pk)
    .where(
        gists.c.conversation_pk == bindparam("conversation"),
        gists.c.policy == bindparam("policy"),
        gists.c.created_ms >= bindparam("moment"),
        gists.c.pk > bindparam("shown"),
    )
    .limit(1)
)


def count_stand_ins_of(
    connection: Connection, conversation_pk: int, now_ms: int
) -> tuple[int, int]:
    """(chapters, gists) of a conversation that were made without a model at this moment."""
    chapters = select(func.count()).where(
        versions.c.conversation_pk == conversation_pk,
        versions.c.origin == "stand-in",
        versions.c.created_ms == now_ms,
    )
    made = select(func.count()).where(
        gists.c.conversation_pk == conversation_pk,
        gists.c.origin == "stand-in",
        gists.c.created_ms == now_ms,
    )
    return connection.execute(chapters).scalar_one(), connection.execute(made).scalar_one()


_BY_PK = Prepared(select(*_GIST).where(gists.c.pk == bindparam("pk")))
_HOLDING = select(*_GIST).where(
    gists.c.conversation_pk == bindparam("conversation"),
    gists.c.policy == bindparam("policy"),
    gists.c.retired_ms.is_(None),
)
_UP_TO = Prepared(
    _HOLDING.where(gists.c.last_depth <= bindparam("border")).order_by(
        gists.c.last_depth.desc(), gists.c.version.desc()
    )
)
_BEYOND = Prepared(
    _HOLDING.where(gists.c.last_depth > bindparam("border")).order_by(
        gists.c.last_depth, gists.c.version
    )
)


def is_made_since(connection: Connection, conversation_pk: int, policy: str, fold: FoldRow) -> bool:
    """Whether a gist of this policy was written after this fold."""
    found = _MADE_SINCE.first(
        connection,
        conversation=conversation_pk,
        policy=policy,
        moment=fold.created_ms,
        shown=fold.gist_pk or 0,
    )
    return found is not None


def gist_by_pk(connection: Connection, pk: int) -> GistRow | None:
    row = _BY_PK.first(connection, pk=pk)
    return None if row is None else record(GistRow, row)


def newest_version(connection: Connection, pk: int) -> GistRow | None:
    """The newest version of the gist of which this row is one."""
    one = gist_by_pk(connection, pk)
    if one is None:
        return None
    row = connection.execute(
        select(*_GIST)
        .where(gists.c.last_pk == one.last_pk, gists.c.policy == one.policy)
        .order_by(gists.c.version.desc())
        .limit(1)
    ).one()
    return record(GistRow, row)


def newest_gist(
    connection: Connection,
    conversation_pk: int,
    policy: str,
    head: Node,
    *,
    border: int,
    ends: Collection[int] | None = None,
) -> GistRow | None:
    """The gist that covers most, up to depth `border`, on the path to head; newest version. None
    whose major GC was undone.

    ends: the depths at which it may end, so that nothing stands twice or not at all between it and
    the chapters behind it; None: anywhere.
    """
    asked = {"conversation": conversation_pk, "policy": policy, "border": border}
    for values in _UP_TO.each(connection, **asked):
        row = record(GistRow, values)
        if ends is not None and row.last_depth not in ends:
            continue
        if on_path(connection, row.last_pk, row.last_depth, head):
            return row
    return None


def gists_beyond(
    connection: Connection,
    conversation_pk: int,
    policy: str,
    head: Node,
    *,
    border: int,
    ends: Collection[int],
) -> list[GistRow]:
    """The gists on the path to head that cover more than depth `border` and end at one of `ends`:
    the newest version of each, by where they end."""
    if not ends:
        return []
    asked = {"conversation": conversation_pk, "policy": policy, "border": border}
    rows = [record(GistRow, values) for values in _BEYOND.all(connection, **asked)]
    newest = {row.last_pk: row for row in rows if row.last_depth in ends}
    return [
        gist for gist in newest.values() if on_path(connection, gist.last_pk, gist.last_depth, head)
    ]


def all_gists(connection: Connection, conversation_pk: int) -> list[GistRow]:
    rows = connection.execute(
        select(*_GIST).where(gists.c.conversation_pk == conversation_pk).order_by(gists.c.pk)
    )
    return [record(GistRow, row) for row in rows]


def gist_ends(connection: Connection, conversation_pk: int, policy: str) -> set[int]:
    """The row numbers of the messages at which a policy's gists end, on any branch."""
    rows = connection.execute(
        select(gists.c.last_pk).where(
            gists.c.conversation_pk == conversation_pk, gists.c.policy == policy
        )
    )
    return set(rows.scalars())


@dataclass(frozen=True, slots=True)
class GistEnd:
    """A gist without its text: the last message that it covers, and its length in characters."""

    last_pk: int
    last_depth: int
    length: int


def last_gist_end(
    connection: Connection, conversation_pk: int, policy: str, head: Node
) -> GistEnd | None:
    """The gist that covers most on the path to head, whether a fold shows it or not. Reads what
    lies on younger branches, and that one."""
    rows = _GIST_ENDS.each(connection, conversation=conversation_pk, policy=policy, head=head.pk)
    for row in rows:
        if on_path(connection, row[0], row[1], head):
            return record(GistEnd, row)
    return None


def sources_of(connection: Connection, pk: int) -> list[int]:
    """The chapter versions that a gist was made of."""
    text = connection.execute(select(gists.c.sources).where(gists.c.pk == pk)).scalar_one()
    return [int(version) for version in json.loads(text)]


def written_by_model(
    connection: Connection, pk: int, text: str, at_ms: int
) -> tuple[int, int] | None:
    """(row number of the conversation, when) a model last wrote this text of the gist of which pk
    is a version, until at_ms; None: none did."""
    one = gists.alias()
    row = connection.execute(
        select(gists.c.conversation_pk, gists.c.created_ms)
        .join(
            one,
            (one.c.conversation_pk == gists.c.conversation_pk)
            & (one.c.policy == gists.c.policy)
            & (one.c.last_pk == gists.c.last_pk),
        )
        .where(
            one.c.pk == pk,
            gists.c.origin == "model",
            gists.c.text == text,
            gists.c.created_ms <= at_ms,
        )
        .order_by(gists.c.created_ms.desc())
        .limit(1)
    ).first()
    return None if row is None else (int(row[0]), int(row[1]))


def retire(
    connection: Connection, conversation_pk: int, policy: str, last_pk: int, now_ms: int
) -> None:
    """Undo a major GC: no later fold shows any version of the gist that ends there."""
    connection.execute(
        update(gists)
        .where(
            gists.c.conversation_pk == conversation_pk,
            gists.c.policy == policy,
            gists.c.last_pk == last_pk,
        )
        .values(retired_ms=now_ms)
    )


def retired_at(
    connection: Connection, conversation_pk: int, policy: str, last_pk: int
) -> GistRow | None:
    """The newest version of a gist that ends there and whose major GC was undone; None where there
    is none, or where another has been made since."""
    rows = connection.execute(
        select(*_GIST)
        .where(
            gists.c.conversation_pk == conversation_pk,
            gists.c.policy == policy,
            gists.c.last_pk == last_pk,
        )
        .order_by(gists.c.version.desc())
    )
    newest = rows.first()
    found = None if newest is None else record(GistRow, newest)
    return None if found is None or found.retired_ms is None else found


def add_gist(
    connection: Connection,
    conversation_pk: int,
    *,
    policy: str,
    last_pk: int,
    last_depth: int,
    sources: Sequence[int],
    text: str,
    origin: str,
    backend: str | None,
    prompt: str | None,
    now_ms: int,
    took_ms: int | None = None,
) -> int:
    """A new version of the gist that covers everything up to the message `last_pk`. took_ms: what
    its calls took."""
    newest = connection.execute(
        select(func.max(gists.c.version)).where(
            gists.c.conversation_pk == conversation_pk,
            gists.c.policy == policy,
            gists.c.last_pk == last_pk,
        )
    ).scalar()
    made = connection.execute(
        insert(gists).values(
            conversation_pk=conversation_pk,
            policy=policy,
            last_pk=last_pk,
            last_depth=last_depth,
            version=(newest or 0) + 1,
            sources=json.dumps(list(sources)),
            text=text,
            origin=origin,
            backend=backend,
            prompt=prompt,
            took_ms=took_ms,
            created_ms=now_ms,
        )
    )
    return new_pk(made)
