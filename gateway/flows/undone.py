"""What a memory shows in place of a gist whose major GC was undone: the chapters that it took in.

These are kept behind every gist (law 6), so that nothing need be written anew.
"""

from __future__ import annotations

from sqlalchemy import Connection

from gateway.store import chapter_rows, gist_rows, transcript
from gateway.store.chapter_rows import ChapterRow
from gateway.store.gist_rows import GistRow


def unfold(connection: Connection, conversation_pk: int, gist_pk: int) -> list[ChapterRow]:
    """The chapters behind an undone gist, oldest first, each in its newest text, down to the one
    that stands behind a gist which holds, or to the first; none where this one holds.

    Raises RuntimeError where they do not tell every message that it covers: a turn that fails is
    better than a past that is lost.
    """
    found: list[ChapterRow] = []
    gist = gist_rows.gist_by_pk(connection, gist_pk)
    while gist is not None and gist.retired_ms is not None:
        rows = _chapters_in(connection, conversation_pk, gist)
        found = [*rows, *found]
        gist = _undone_before(connection, conversation_pk, gist.policy, rows[0])
    return found


def _chapters_in(connection: Connection, conversation_pk: int, gist: GistRow) -> list[ChapterRow]:
    versions = chapter_rows.versions_by_pk(connection, gist_rows.sources_of(connection, gist.pk))
    pks = [version.chapter_pk for version in versions]
    rows = chapter_rows.chapters_by_pk(connection, conversation_pk, pks)
    if not rows or rows[-1].last_depth != gist.last_depth:
        raise RuntimeError(f"the chapters of gist {gist.pk} do not end at depth {gist.last_depth}")
    return rows


def _undone_before(
    connection: Connection, conversation_pk: int, policy: str, first: ChapterRow
) -> GistRow | None:
    """The gist before a chapter, where it was undone too."""
    if first.first_depth == 1:
        return None
    parent = transcript.node_by_pk(connection, first.first_pk).parent_pk
    assert parent is not None, "only the first message has no parent"
    return gist_rows.retired_at(connection, conversation_pk, policy, parent)
