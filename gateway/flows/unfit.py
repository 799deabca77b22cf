"""Texts of models that no view shows, in whosever name they stand.

What an owner brings back by an undo stands in the owner's name and is still what a model wrote.
What an owner writes is the owner's, also where it reads like a refusal. Nothing here writes.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from gateway.errors import Conflict
from gateway.store import chapter_rows, gist_rows, quarantine
from gateway.store.gist_rows import GistRow
from gateway.store.ledger_rows import EntryRow
from gateway.store.profile import ProfileRow, profile_facts


def is_unfit_chapter(connection: Connection, chapter_pk: int, text: str, at_ms: int) -> bool:
    """Whether a model wrote this text of a chapter, and it is a refusal or stood in quarantine at
    the moment at_ms. What was found later enters a view by a version of its own (law 6)."""
    written = chapter_rows.written_by_model(connection, chapter_pk, text, at_ms)
    return _is_bad(connection, written, text, at_ms, chapter_pk=chapter_pk)


def is_unfit_gist(connection: Connection, gist_pk: int, text: str, at_ms: int) -> bool:
    """The same of a gist, named by the row number of any of its versions."""
    written = gist_rows.written_by_model(connection, gist_pk, text, at_ms)
    return _is_bad(connection, written, text, at_ms, chapter_pk=None)


def version_gives_way(connection: Connection, version: chapter_rows.VersionRow) -> bool:
    """Whether a view that names this version shows something else in its place."""
    if version.origin == "model":
        return _is_refusal(version.text)
    if version.origin != "owner":
        return False
    return is_unfit_chapter(connection, version.chapter_pk, version.text, version.created_ms)


def gist_gives_way(connection: Connection, gist: GistRow) -> bool:
    """The same of a version of a gist."""
    if gist.origin == "model":
        return _is_refusal(gist.text)
    if gist.origin != "owner":
        return False
    return is_unfit_gist(connection, gist.pk, gist.text, gist.created_ms)


def fit_entries(connection: Connection, rows: Sequence[EntryRow]) -> list[EntryRow]:
    """The entries of a ledger that a view may show: without what models refused in their own words,
    also as the pin of a chapter or gist that told it."""
    return [row for row in rows if not _is_unfit_entry(connection, row)]


def is_unfit_fact(connection: Connection, fact: ProfileRow) -> bool:
    """Whether no view shows a fact of the profile: a refusal, also where its owner brought it back
    in the place of other words."""
    if fact.origin != "model" and fact.conversation_pk is None:
        return False
    return _is_refusal(fact.text) and (fact.origin == "model" or _was_learned_so(connection, fact))


def check_fact(connection: Connection, fact: ProfileRow) -> None:
    """Raises Conflict for a fact that no view would show."""
    if is_unfit_fact(connection, fact):
        raise Conflict(
            "This is what a model wrote, word for word, and it is nothing but a refusal: no view "
            "shows it. Say it in words of your own, or delete it."
        )


def _was_learned_so(connection: Connection, fact: ProfileRow) -> bool:
    """Whether a model told a fact of the profile in just these words, in the same conversation."""
    found = connection.execute(
        select(profile_facts.c.pk)
        .where(
            profile_facts.c.owner_pk == fact.owner_pk,
            profile_facts.c.conversation_pk == fact.conversation_pk,
            profile_facts.c.origin == "model",
            profile_facts.c.text == fact.text,
        )
        .limit(1)
    )
    return found.first() is not None


def check_fit(
    connection: Connection,
    text: str,
    at_ms: int,
    *,
    chapter_pk: int | None = None,
    gist_pk: int | None = None,
) -> None:
    """Raises Conflict for a text of a chapter or gist that no view would show."""
    if chapter_pk is not None and is_unfit_chapter(connection, chapter_pk, text, at_ms):
        raise _conflict()
    if gist_pk is not None and is_unfit_gist(connection, gist_pk, text, at_ms):
        raise _conflict()


def _conflict() -> Conflict:
    return Conflict(
        "This is what a model wrote, word for word, and it is in quarantine or nothing but a "
        "refusal: no view shows it. Have it written again (`resummarize`, or `scrub`), or write "
        "it in words of your own."
    )


def _is_unfit_entry(connection: Connection, row: EntryRow) -> bool:
    if row.kind == "quote":
        return False  # attributed: exempt from the refusal rule
    if row.origin == "model":
        return _is_refusal(row.text)
    if row.chapter_pk is not None and row.kind == "note":
        return is_unfit_chapter(connection, row.chapter_pk, row.text, row.created_ms)
    if row.gist_pk is not None and row.kind == "note":
        return is_unfit_gist(connection, row.gist_pk, row.text, row.created_ms)
    return False


def _is_bad(
    connection: Connection,
    written: tuple[int, int] | None,
    text: str,
    at_ms: int,
    *,
    chapter_pk: int | None,
) -> bool:
    """written: in which conversation and when a model wrote it. What was in quarantine before that
    was let in by a later judge."""
    if written is None:
        return False
    conversation_pk, since_ms = written
    return _is_refusal(text) or quarantine.is_quarantined(
        connection,
        conversation_pk,
        text,
        chapter_pk=chapter_pk,
        since_ms=since_ms,
        until_ms=at_ms,
    )


def _is_refusal(text: str) -> bool:
    # Not at every start: its patterns take a sixth of a second to compile.
    from policies.judge import is_refusal

    return is_refusal(text)
