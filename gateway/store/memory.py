"""Folds, chapters and gists: rows that are added, never rewritten. No function commits.

A chapter is valid on a head exactly when its last message is on the path to that head (in a tree,
everything before that message then is too).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, func, insert, select

from gateway.store.prepared import Prepared
from gateway.store.rows import new_pk, record
from gateway.store.tables import (
    Chapter,
    ChapterVersion,
    Fold,
    Gist,
    Quarantined,
    TokenRatio,
)
from gateway.store.transcript import Node, on_path
from policies.values import Span

folds = Fold.__table__  # type: ignore[attr-defined]
chapters = Chapter.__table__  # type: ignore[attr-defined]
versions = ChapterVersion.__table__  # type: ignore[attr-defined]
gists = Gist.__table__  # type: ignore[attr-defined]
quarantine = Quarantined.__table__  # type: ignore[attr-defined]
ratios = TokenRatio.__table__  # type: ignore[attr-defined]


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


@dataclass(frozen=True, slots=True)
class ChapterRow:
    """A chapter with its best (newest) version, if it has one."""

    pk: int
    id: str
    first_pk: int
    last_pk: int
    first_depth: int
    last_depth: int
    source_chars: int
    created_ms: int
    version_pk: int | None
    version: int | None
    text: str | None
    origin: str | None
    backend: str | None
    written_ms: int | None


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
_NEWEST = (
    select(versions.c.chapter_pk, func.max(versions.c.version).label("version"))
    .group_by(versions.c.chapter_pk)
    .where(versions.c.conversation_pk == bindparam("conversation"))
    .subquery()
)
_CHAPTERS = (
    select(
        chapters.c.pk,
        chapters.c.id,
        chapters.c.first_pk,
        chapters.c.last_pk,
        chapters.c.first_depth,
        chapters.c.last_depth,
        chapters.c.source_chars,
        chapters.c.created_ms,
        versions.c.pk,
        versions.c.version,
        versions.c.text,
        versions.c.origin,
        versions.c.backend,
        versions.c.created_ms,
    )
    .select_from(
        chapters.outerjoin(_NEWEST, _NEWEST.c.chapter_pk == chapters.c.pk).outerjoin(
            versions,
            (versions.c.chapter_pk == chapters.c.pk) & (versions.c.version == _NEWEST.c.version),
        )
    )
    .where(
        chapters.c.conversation_pk == bindparam("conversation"),
        chapters.c.first_depth > bindparam("above"),
    )
    .order_by(chapters.c.first_depth, chapters.c.last_depth.desc())
)
_SHOWN_VERSIONS = versions.alias("shown_versions")
_SHOWN_CHAPTERS = _CHAPTERS.where(
    chapters.c.pk.in_(
        select(_SHOWN_VERSIONS.c.chapter_pk).where(
            _SHOWN_VERSIONS.c.pk.in_(bindparam("shown", expanding=True))
        )
    )
)
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
)

# Deeper on a path is younger, so that the row numbers of an index serve as depths do.
_GIST_ENDS = Prepared(
    select(gists.c.last_pk, gists.c.last_depth, func.length(gists.c.text))
    .where(
        gists.c.conversation_pk == bindparam("conversation"),
        gists.c.policy == bindparam("policy"),
        gists.c.last_pk <= bindparam("head"),
    )
    .order_by(gists.c.last_pk.desc(), gists.c.version.desc())
)
_LENGTH = (
    select(func.length(versions.c.text))
    .where(versions.c.chapter_pk == chapters.c.pk)
    .order_by(versions.c.version.desc())
    .limit(1)
    .scalar_subquery()
)
_CHAPTER_ENDS = Prepared(
    select(
        chapters.c.last_pk,
        chapters.c.first_depth,
        chapters.c.last_depth,
        chapters.c.source_chars,
        _LENGTH,
    )
    .where(
        chapters.c.conversation_pk == bindparam("conversation"),
        chapters.c.last_pk > bindparam("after"),
        chapters.c.first_depth > bindparam("above"),
    )
    .order_by(chapters.c.first_depth, chapters.c.last_depth.desc())
)
_RATIO = Prepared(
    select(ratios.c.ratio).where(
        ratios.c.conversation_pk == bindparam("conversation"),
        ratios.c.backend == bindparam("backend"),
    )
)
_NEW_RATIO = Prepared(ratios.insert(), ["conversation_pk", "backend", "ratio"])
_SET_RATIO = Prepared(
    ratios.update()
    .where(
        ratios.c.conversation_pk == bindparam("conversation"),
        ratios.c.backend == bindparam("served_by"),
    )
    .values(ratio=bindparam("learned"))
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


def chapter_row(
    connection: Connection, conversation_pk: int, head: Node, *, above: int
) -> list[ChapterRow]:
    """The contiguous chapters on the path to head that begin right behind depth `above`."""
    found: list[ChapterRow] = []
    end = above
    for values in connection.execute(_CHAPTERS, {"conversation": conversation_pk, "above": above}):
        row = record(ChapterRow, values)
        if row.first_depth != end + 1:
            continue
        if on_path(connection, row.last_pk, row.last_depth, head):
            found.append(row)
            end = row.last_depth
    return found


def chapters_of_fold(
    connection: Connection, conversation_pk: int, fold: FoldRow
) -> list[ChapterRow]:
    """The chapters that a fold shows behind its gist, in order, each with its newest version."""
    if not fold.memory:
        return []
    rows = connection.execute(
        _SHOWN_CHAPTERS,
        {"conversation": conversation_pk, "above": 0, "shown": list(fold.memory)},
    )
    return [record(ChapterRow, row) for row in rows]


def chapters_by_pk(
    connection: Connection, conversation_pk: int, pks: Sequence[int]
) -> list[ChapterRow]:
    """These chapters in order of their spans, each with its newest version."""
    if not pks:
        return []
    rows = connection.execute(
        _CHAPTERS.where(chapters.c.pk.in_(pks)), {"conversation": conversation_pk, "above": 0}
    )
    return [record(ChapterRow, row) for row in rows]


def all_chapters(connection: Connection, conversation_pk: int) -> list[ChapterRow]:
    """Every chapter of the conversation on any branch, oldest span first."""
    rows = connection.execute(_CHAPTERS, {"conversation": conversation_pk, "above": 0})
    return [record(ChapterRow, row) for row in rows]


def add_chapter(
    connection: Connection,
    conversation_pk: int,
    span: Span,
    *,
    first_pk: int,
    last_pk: int,
    now_ms: int,
) -> tuple[int, bool]:
    """A chapter row without a text: debt. Returns (row number, whether it is new)."""
    found = connection.execute(
        select(chapters.c.pk).where(
            chapters.c.conversation_pk == conversation_pk,
            chapters.c.last_pk == last_pk,
            chapters.c.first_pk == first_pk,
        )
    ).scalar()
    if found is not None:
        return int(found), False
    made = connection.execute(
        insert(chapters).values(
            id=f"chap_{secrets.token_hex(8)}",
            conversation_pk=conversation_pk,
            first_pk=first_pk,
            last_pk=last_pk,
            first_depth=span.first,
            last_depth=span.last,
            source_chars=span.chars,
            created_ms=now_ms,
        )
    )
    return new_pk(made), True


def chapter_by_pk(connection: Connection, conversation_pk: int, pk: int) -> ChapterRow | None:
    statement = _CHAPTERS.where(chapters.c.pk == pk)
    row = connection.execute(statement, {"conversation": conversation_pk, "above": 0}).first()
    return None if row is None else record(ChapterRow, row)


def told_chapters(connection: Connection, pks: Collection[int]) -> set[int]:
    """Those of these chapters that have a text."""
    if not pks:
        return set()
    told = select(versions.c.chapter_pk).where(versions.c.chapter_pk.in_(list(pks))).distinct()
    return set(connection.execute(told).scalars())


def add_version(
    connection: Connection,
    conversation_pk: int,
    chapter_pk: int,
    *,
    text: str,
    origin: str,
    backend: str | None,
    prompt: str | None,
    now_ms: int,
    took_ms: int | None = None,
) -> int:
    """A new text of a chapter, behind its earlier ones. took_ms: what its calls took. Returns its
    row number."""
    newest = connection.execute(
        select(func.max(versions.c.version)).where(versions.c.chapter_pk == chapter_pk)
    ).scalar()
    made = connection.execute(
        insert(versions).values(
            chapter_pk=chapter_pk,
            conversation_pk=conversation_pk,
            version=(newest or 0) + 1,
            text=text,
            origin=origin,
            backend=backend,
            prompt=prompt,
            took_ms=took_ms,
            created_ms=now_ms,
        )
    )
    return new_pk(made)


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


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A chapter version with the span it tells."""

    pk: int
    chapter_pk: int
    text: str
    origin: str
    first_pk: int
    last_pk: int
    first_depth: int
    last_depth: int


def versions_by_pk(connection: Connection, pks: Sequence[int]) -> list[VersionRow]:
    """The versions a fold names, in its order."""
    if not pks:
        return []
    rows = connection.execute(
        select(
            versions.c.pk,
            versions.c.chapter_pk,
            versions.c.text,
            versions.c.origin,
            chapters.c.first_pk,
            chapters.c.last_pk,
            chapters.c.first_depth,
            chapters.c.last_depth,
        )
        .join(chapters, chapters.c.pk == versions.c.chapter_pk)
        .where(versions.c.pk.in_(pks))
    )
    by_pk = {row[0]: record(VersionRow, row) for row in rows}
    return [by_pk[pk] for pk in pks if pk in by_pk]


def gist_by_pk(connection: Connection, pk: int) -> GistRow | None:
    row = connection.execute(select(*_GIST).where(gists.c.pk == pk)).first()
    return None if row is None else record(GistRow, row)


def newest_gist(
    connection: Connection,
    conversation_pk: int,
    policy: str,
    head: Node,
    *,
    border: int,
    ends: Collection[int] | None = None,
) -> GistRow | None:
    """The gist that covers most, up to depth `border`, on the path to head; newest version.

    ends: the depths at which it may end, so that nothing stands twice or not at all between it and
    the chapters behind it; None: anywhere.
    """
    rows = connection.execute(
        select(*_GIST)
        .where(
            gists.c.conversation_pk == conversation_pk,
            gists.c.policy == policy,
            gists.c.last_depth <= border,
        )
        .order_by(gists.c.last_depth.desc(), gists.c.version.desc())
    )
    for row in rows:
        if ends is not None and row.last_depth not in ends:
            continue
        if on_path(connection, row.last_pk, row.last_depth, head):
            return record(GistRow, row)
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
    rows = connection.execute(
        select(*_GIST)
        .where(
            gists.c.conversation_pk == conversation_pk,
            gists.c.policy == policy,
            gists.c.last_depth > border,
        )
        .order_by(gists.c.last_depth, gists.c.version)
    )
    newest = {row.last_pk: record(GistRow, row) for row in rows if row.last_depth in ends}
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


@dataclass(frozen=True, slots=True)
class ChapterEnd:
    """A chapter without its text. length: of its newest version in characters, None without one."""

    last_pk: int
    first_depth: int
    last_depth: int
    source_chars: int
    length: int | None


def chapter_ends(
    connection: Connection, conversation_pk: int, head: Node, *, above_pk: int, above: int
) -> list[ChapterEnd]:
    """As `chapter_row`, without texts: the contiguous chapters on the path to head behind the
    message `above_pk` at depth `above`. Reads only rows that end behind it."""
    found: list[ChapterEnd] = []
    end = above
    rows = _CHAPTER_ENDS.all(connection, conversation=conversation_pk, after=above_pk, above=above)
    for values in rows:
        row = record(ChapterEnd, values)
        if row.first_depth == end + 1 and on_path(connection, row.last_pk, row.last_depth, head):
            found.append(row)
            end = row.last_depth
    return found


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


def add_quarantined(
    connection: Connection,
    conversation_pk: int,
    *,
    chapter_pk: int | None,
    kind: str,
    backend: str,
    reasons: Sequence[str],
    text: str,
    finish_reason: str | None,
    now_ms: int,
) -> None:
    """Keep a refused output for people to read; no model ever sees it."""
    connection.execute(
        insert(quarantine).values(
            conversation_pk=conversation_pk,
            chapter_pk=chapter_pk,
            kind=kind,
            backend=backend,
            reasons=json.dumps(list(reasons)),
            text=text,
            finish_reason=finish_reason,
            created_ms=now_ms,
        )
    )


def token_ratio(connection: Connection, conversation_pk: int, backend: str) -> float | None:
    """Characters per token as learned here; None before the first usage figure."""
    found: float | None = _RATIO.scalar(connection, conversation=conversation_pk, backend=backend)
    return found


def save_token_ratio(
    connection: Connection, conversation_pk: int, backend: str, ratio: float
) -> None:
    values = {"conversation": conversation_pk, "served_by": backend, "learned": ratio}
    if _SET_RATIO.run(connection, **values) == 0:
        _NEW_RATIO.run(connection, conversation_pk=conversation_pk, backend=backend, ratio=ratio)
