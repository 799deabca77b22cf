"""A fold's memory as a model is shown it: rows in, the synthetic question and answer out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from gateway.flows.backgrounds import read_background
from gateway.flows.renewed import as_changed, is_asked_anew
from gateway.flows.unfit import gist_gives_way, version_gives_way
from gateway.flows.views import ViewCache
from gateway.prompts.memory import render_memory
from gateway.prompts.span import span_lines
from gateway.store import chapter_rows, gist_rows, transcript
from gateway.store.fold_rows import NONE, FoldRow, Shown
from gateway.store.gist_rows import GistRow
from gateway.store.shown import has_private_beside
from gateway.wire.json_text import loads
from policies.language import language_of
from policies.messages import message_text
from policies.standin import write_stand_in


def show_memory(
    connection: Connection,
    fold: FoldRow | None,
    views: ViewCache,
    renew_after: int | None = None,
) -> list[dict[str, Any]]:
    """The synthetic question and answer of a fold.

    Filtered once more when read: a text that is a refusal after all gives way to a stand-in
    made from the raw messages. renew_after: of the fold's conversation; what its owner changed with
    `now` is seen on every fold that was there by then, from the rows and not from the cache, which
    another process's change does not reach.
    """
    if fold is None:
        return []
    is_changed = is_asked_anew(fold, renew_after)
    cached = None if is_changed else views.memory(fold.pk)
    # What was learned in a conversation that is private by now is shown in no other one, at once.
    if cached is not None and not (fold.shown.profile and _may_be_withheld(connection, fold)):
        return cached
    if is_changed:
        fold = as_changed(connection, fold)
    return tell_memory(
        connection,
        fold.gist_pk,
        fold.memory,
        fold.shown,
        conversation_pk=fold.conversation_pk,
        begins=None if fold.border_depth else fold.at_pk,
    )


def _may_be_withheld(connection: Connection, fold: FoldRow) -> bool:
    return has_private_beside(connection, fold.conversation_pk)


def tell_memory(
    connection: Connection,
    gist_pk: int | None,
    versions: Sequence[int],
    shown: Shown = NONE,
    *,
    conversation_pk: int = 0,
    begins: int | None = None,
) -> list[dict[str, Any]]:
    """The same of a gist, chapter versions and what stands beside them, by their row numbers.

    conversation_pk: whose view it is; what was learned in a private one is shown there alone.
    begins: a message of a view of which nothing is folded, whose first message tells the language.
    """
    gist = gist_rows.gist_by_pk(connection, gist_pk) if gist_pk else None
    texts = tell_versions(connection, versions)
    gist_text = None if gist is None else tell_gist(connection, gist)
    background = read_background(connection, shown, conversation_pk)
    language = None if begins is None else first_language(connection, begins)
    return render_memory(gist_text, texts, background, language=language)


def tell_versions(connection: Connection, versions: Sequence[int]) -> list[str]:
    """What chapter versions tell a model, in this order: in place of one that is a refusal after
    all, its messages."""
    return [
        _retell(connection, version.last_pk, version.first_depth - 1, len(version.text))
        if version_gives_way(connection, version)
        else version.text
        for version in chapter_rows.versions_by_pk(connection, versions)
    ]


def tell_gist(connection: Connection, gist: GistRow) -> str:
    """The same of a version of a gist."""
    if gist_gives_way(connection, gist):
        return _retell(connection, gist.last_pk, 0, len(gist.text))
    return gist.text


def first_language(connection: Connection, pk: int) -> str | None:
    """The language of the first message on the path to this one; None where none can be told."""
    first = transcript.ancestor_at(connection, pk, 1)
    if first is None:
        return None
    row = transcript.path_between(connection, first, 0)[0]
    return language_of(message_text(loads(row.raw)))


def _retell(connection: Connection, last_pk: int, above: int, length: int) -> str:
    """A stand-in for a span, about as long as what it takes the place of."""
    rows = transcript.path_between(connection, last_pk, above)
    return write_stand_in(span_lines([row.raw for row in rows]), length or 1_100)
