"""What a fold shows once its owner wanted the memory to be seen anew, until another takes its
place: where a reply is only drawn again, or a branch begins at an older turn, none does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from gateway.store import chapter_rows, gist_rows, ledger, profile
from gateway.store.fold_rows import FoldRow, Shown
from gateway.store.ledger_rows import BY_OWNER, EntryState


def is_asked_anew(fold: FoldRow, renew_after: int | None) -> bool:
    """Whether an owner's change that acts at once (`now`) came after this fold. renew_after: of its
    conversation, a row that every turn reads."""
    return renew_after is not None and fold.pk <= renew_after


def as_changed(connection: Connection, fold: FoldRow) -> FoldRow:
    """The fold with what its owner deleted left out, and what the owner put into other words told
    in these. What models told since, and what was only closed, opened or pinned since, waits for
    the next fold. The figures are those of the fold as it was written."""
    return replace(
        fold,
        gist_pk=_gist(connection, fold.gist_pk),
        memory=_versions(connection, fold.memory),
        shown=_shown(connection, fold),
    )


def _gist(connection: Connection, pk: int | None) -> int | None:
    newest = None if pk is None else gist_rows.newest_version(connection, pk)
    return pk if newest is None or newest.origin != "owner" else newest.pk


def _versions(connection: Connection, pks: Sequence[int]) -> tuple[int, ...]:
    """An emptied text stays in the row, and leaves nothing in the view."""
    told = {row.pk: row.chapter_pk for row in chapter_rows.versions_by_pk(connection, pks)}
    newest = chapter_rows.newest_by_owner(connection, sorted(set(told.values())))
    return tuple(newest.get(told.get(pk, 0), pk) for pk in pks)


def _shown(connection: Connection, fold: FoldRow) -> Shown:
    if not fold.shown:
        return fold.shown
    shown, pk = fold.shown, fold.conversation_pk
    return replace(
        shown,
        profile=profile.as_its_owner_left(connection, shown.profile),
        pins=_entries(connection, pk, shown.pins),
        open=_entries(connection, pk, shown.open),
        closed=_entries(connection, pk, shown.closed),
    )


def _entries(connection: Connection, conversation_pk: int, pks: Sequence[int]) -> tuple[int, ...]:
    """Each in its newest wording by the owner; none that the owner deleted."""
    if not pks:
        return ()
    states = ledger.states_by_pk(connection, conversation_pk, pks)
    found = (_newest(connection, conversation_pk, states[pk]) for pk in pks if pk in states)
    return tuple(dict.fromkeys(pk for pk in found if pk is not None))


def _newest(connection: Connection, conversation_pk: int, state: EntryState) -> int | None:
    seen = {state.row.pk}
    while state.deleted is None and (newer := state.superseded) is not None:
        if newer.origin != "owner" or newer.by_pk is None or newer.by_pk in seen:
            break
        seen.add(newer.by_pk)
        state = ledger.states_by_pk(connection, conversation_pk, [newer.by_pk])[newer.by_pk]
    is_gone = state.deleted is not None and state.deleted.origin in BY_OWNER
    return None if is_gone else state.row.pk
