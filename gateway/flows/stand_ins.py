"""Texts made on the spot, without a model, where room is needed and none was written in time."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from gateway.flows.debts import Order, add_gist_job
from gateway.prompts.span import span_lines
from gateway.store import chapter_rows, gist_rows
from gateway.store.chapter_rows import ChapterRow
from gateway.store.gist_rows import GistRow
from gateway.store.transcript import StoredMessage
from policies.standin import condense, write_stand_in
from policies.values import Limits


def write_chapter_stand_in(
    connection: Connection,
    order: Order,
    chapter_pk: int,
    rows: Sequence[StoredMessage],
    limits: Limits,
) -> None:
    """The text of a chapter that no model wrote, from the messages of its span."""
    lines = span_lines([row.raw for row in rows])
    chapter_rows.add_version(
        connection,
        order.conversation_pk,
        chapter_pk,
        text=_told(write_stand_in(lines, limits.length)),
        origin="stand-in",
        backend=None,
        prompt=None,
        now_ms=order.now_ms,
    )


def _told(text: str) -> str:
    """A stand-in's text as a database can hold it; a span of refusals only leaves none."""
    return text.replace("\x00", "\ufffd") or "(…)"


def condense_notes(notes: Sequence[str], length: int, threads: Sequence[str]) -> str:
    """A gist without a model that tells each of these threads that the notes tell."""
    # Not at every start: its patterns take a sixth of a second to compile.
    from policies.gists import find_lost

    text = condense(notes, length)
    return "\n".join(filter(None, (text, *find_lost(text, notes, threads))))


def condense_rows(
    connection: Connection,
    order: Order,
    gist: GistRow | None,
    chapters: Sequence[ChapterRow],
    limits: Limits,
    threads: Sequence[str],
) -> GistRow:
    """Chapters that no model folded together, as a gist made on the spot. A model's succeeds it,
    as every stand-in, once there is one. threads: the open ones that it must tell."""
    notes = [*([gist.text] if gist else []), *(row.text or "" for row in chapters)]
    text = condense_notes(notes, limits.gist_length, threads)
    pk = gist_rows.add_gist(
        connection,
        order.conversation_pk,
        policy=order.policy,
        last_pk=chapters[-1].last_pk,
        last_depth=chapters[-1].last_depth,
        sources=[row.version_pk for row in chapters if row.version_pk is not None],
        text=_told(text),
        origin="stand-in",
        backend=None,
        prompt=None,
        now_ms=order.now_ms,
    )
    add_gist_job(connection, order, gist, chapters)
    made = gist_rows.gist_by_pk(connection, pk)
    assert made is not None, "it was written a line above"
    return made
