"""Chapters and their versions: rows that are added, never rewritten. No function commits.

A chapter is valid on a head exactly when its last message is on the path to that head (in a tree,
everything before that message then is too).
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, insert, select

from gateway.store.fold_rows import FoldRow
from gateway.store.prepared import Prepared
from gateway.store.rows import new_pk, record
from gateway.store.tables.memory import Chapter, ChapterVersion
from gateway.store.transcript import Node, on_path
from policies.values import Span

chapters = Chapter.__table__  # type: ignore[attr-defined]
versions = ChapterVersion.__table__  # type: ignore[attr-defined]


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


_newer = versions.alias("newer")
# Asked for each chapter by itself: grouping them would read every version of the conversation.
_NEWEST = (
    select(func.max(_newer.c.version))
    .where(_newer.c.chapter_pk == chapters.c.pk)
    .correlate(chapters)
    .scalar_subquery()
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
        chapters.outerjoin(
            versions, (versions.c.chapter_pk == chapters.c.pk) & (versions.c.version == _NEWEST)
        )
    )
    .where(
        chapters.c.conversation_pk == bindparam("conversation"),
        chapters.c.first_depth > bindparam("above"),
    )
    .order_by(chapters.c.first_depth, chapters.c.last_depth.desc())
)
_SHOWN_VERSIONS = versions.alias("shown_versions")
_BEHIND = Prepared(_CHAPTERS)
_SHOWN_CHAPTERS = _CHAPTERS.where(
    chapters.c.pk.in_(
        select(_SHOWN_VERSIONS.c.chapter_pk).where(
            _SHOWN_VERSIONS.c.pk.in_(bindparam("shown", expanding=True))
        )
    )
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

_TOLD_LAST = Prepared(
    select(versions.c.created_ms, versions.c.pk)
    .where(versions.c.conversation_pk == bindparam("conversation"))
    .order_by(versions.c.pk.desc())
    .limit(1)
)


def chapter_row(
    connection: Connection, conversation_pk: int, head: Node, *, above: int
) -> list[ChapterRow]:
    """The contiguous chapters on the path to head that begin right behind depth `above`."""
    found: list[ChapterRow] = []
    end = above
    for values in _BEHIND.all(connection, conversation=conversation_pk, above=above):
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


def written_by_model(
    connection: Connection, chapter_pk: int, text: str, at_ms: int
) -> tuple[int, int] | None:
    """(row number of the conversation, when) a model last wrote this text of a chapter, until
    at_ms; None: none did."""
    row = connection.execute(
        select(versions.c.conversation_pk, versions.c.created_ms)
        .where(
            versions.c.chapter_pk == chapter_pk,
            versions.c.origin == "model",
            versions.c.text == text,
            versions.c.created_ms <= at_ms,
        )
        .order_by(versions.c.created_ms.desc())
        .limit(1)
    ).first()
    return None if row is None else (int(row[0]), int(row[1]))


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
    created_ms: int


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
            versions.c.created_ms,
        )
        .join(chapters, chapters.c.pk == versions.c.chapter_pk)
        .where(versions.c.pk.in_(pks))
    )
    by_pk = {row[0]: record(VersionRow, row) for row in rows}
    return [by_pk[pk] for pk in pks if pk in by_pk]


def newest_by_owner(connection: Connection, chapter_pks: Sequence[int]) -> dict[int, int]:
    """The newest version, by row number, of each of these chapters where its owner wrote, emptied
    or brought it back."""
    if not chapter_pks:
        return {}
    rows = connection.execute(
        select(versions.c.chapter_pk, versions.c.pk)
        .join(chapters, chapters.c.pk == versions.c.chapter_pk)
        .where(
            chapters.c.pk.in_(list(chapter_pks)),
            versions.c.version == _NEWEST,
            versions.c.origin == "owner",
        )
    )
    return {int(chapter_pk): int(pk) for chapter_pk, pk in rows}


def told_last(connection: Connection, conversation_pk: int) -> tuple[int, int]:
    """When a chapter of the conversation got a text last, in milliseconds, and that version's row
    number; (0, 0): none did."""
    row = _TOLD_LAST.first(connection, conversation=conversation_pk)
    return (0, 0) if row is None else (int(row[0]), int(row[1]))


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
