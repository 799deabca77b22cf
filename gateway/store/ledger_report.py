"""The ledger as its owner reads it: each entry with what became of it, on every branch."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, select

from gateway.clock import iso
from gateway.store import gist_rows, ledger
from gateway.store.chapter_rows import chapters
from gateway.store.ledger_rows import EntryRow, EntryState, MarkRow, Path, state_of
from gateway.store.message_ids import message_ids
from gateway.store.transcript import ConversationRow, Node

K = TypeVar("K")
Line = dict[str, Any]

_LISTS = {"fact": "facts", "claim": "claims", "thread": "threads", "quote": "quotes"}


def read_ledger(connection: Connection, conversation: ConversationRow, head: Node | None) -> Line:
    """`facts`, `claims`, `threads`, `quotes` and `notes`, oldest first, and `deleted`: entries of
    any kind that were deleted and can be brought back. `pins`: the ids of what is pinned.

    What lies on the path to head stands as it stands there; what does not, as it stood last.
    """
    found: Line = {name: [] for name in (*_LISTS.values(), "notes", "deleted", "pins")}
    for line in read_entries(connection, conversation, head):
        if line["state"] == "deleted":
            found["deleted"].append(line)
            continue
        found[_LISTS.get(line["kind"], "notes")].append(line)
        if line["pinned"]:
            found["pins"].append(line["id"])
    return found


def read_entries(
    connection: Connection,
    conversation: ConversationRow,
    head: Node | None,
    pks: Collection[int] | None = None,
) -> list[Line]:
    """The entries, or those of these row numbers, as lines."""
    told = ledger.all_entries(connection, conversation.pk)
    ids = {row.pk: row.id for row, _ in told}
    wanted = [(row, marks) for row, marks in told if pks is None or row.pk in pks]
    path = None if head is None else Path(connection, head)
    sources = message_ids(
        connection, (row.source_pk for row, _ in wanted if row.source_pk is not None)
    )
    named = _chapter_ids(connection, conversation.pk)
    lines = []
    for row, marks in wanted:
        on_path = path is not None and path.holds(row.last_pk, row.last_depth)
        state = _stand(row, marks, path if on_path else None)
        lines.append(
            {
                "id": row.id,
                "kind": row.kind,
                "text": row.text,
                **_own_fields(state, ids),
                "state": _name_state(state),
                "pinned": state.pinned is not None,
                "origin": row.origin,
                "chapter": named.get(row.chapter_pk or 0),
                "source": sources.get(row.source_pk or 0),
                "created_at": iso(row.created_ms),
                "on_path": on_path,
            }
        )
    return lines


def pins_of_chapters(connection: Connection, conversation_pk: int) -> dict[int, EntryRow]:
    """The entries by which an owner pinned what chapters tell, by the chapter's row number."""
    return _standing(last_pins_of_chapters(connection, conversation_pk))


def pins_of_gists(connection: Connection, conversation_pk: int) -> dict[tuple[str, int], EntryRow]:
    """The same of gists, by policy and the last message that they cover."""
    return _standing(last_pins_of_gists(connection, conversation_pk))


def last_pins_of_chapters(connection: Connection, conversation_pk: int) -> dict[int, EntryState]:
    """The same, also where the newest pin stands no more."""
    return {
        state.row.chapter_pk: state
        for state in _pinned_texts(connection, conversation_pk)
        if state.row.chapter_pk is not None
    }


def last_pins_of_gists(
    connection: Connection, conversation_pk: int
) -> dict[tuple[str, int], EntryState]:
    """The same of gists."""
    ends = {
        row.pk: (row.policy, row.last_pk)
        for row in gist_rows.all_gists(connection, conversation_pk)
    }
    return {
        ends[state.row.gist_pk]: state
        for state in _pinned_texts(connection, conversation_pk)
        if state.row.gist_pk in ends
    }


def _pinned_texts(connection: Connection, conversation_pk: int) -> list[EntryState]:
    """In the order in which they were pinned, behind those that stand no more."""
    told = ledger.all_entries(connection, conversation_pk)
    states = [state_of(*one) for one in told if one[0].kind == "note" and one[0].origin == "owner"]
    return sorted(states, key=lambda state: (_stands(state), state.row.pk))


def _stands(state: EntryState) -> bool:
    return state.pinned is not None and state.is_live


def _standing(last: Mapping[K, EntryState]) -> dict[K, EntryRow]:
    return {key: state.row for key, state in last.items() if _stands(state)}


def _stand(row: EntryRow, marks: Sequence[MarkRow], path: Path | None) -> EntryState:
    return state_of(row, [mark for mark in marks if path is None or path.counts(mark)])


def _name_state(state: EntryState) -> str:
    """deleted, superseded (by a newer fact or by its owner's words), closed, or as it began: open
    for a thread, valid for the others."""
    if state.deleted is not None:
        return "deleted"
    if state.superseded is not None:
        return "superseded"
    if state.row.kind != "thread":
        return "valid"
    return "open" if state.closed is None else "closed"


def _own_fields(state: EntryState, ids: dict[int, str]) -> Line:
    row = state.row
    by = None if state.superseded is None else ids.get(state.superseded.by_pk or 0)
    fields: dict[str, Line] = {
        "fact": {"about": row.about},
        "claim": {"who": row.who, "to": row.target, "truth": row.truth},
        "quote": {"who": row.who},
        "thread": {
            "name": f"T{row.number}",
            "closed_at": None if state.closed is None else iso(state.closed.created_ms),
        },
    }
    return {**fields.get(row.kind, {}), "superseded_by": by}


def _chapter_ids(connection: Connection, conversation_pk: int) -> dict[int, str]:
    rows = connection.execute(
        select(chapters.c.pk, chapters.c.id).where(chapters.c.conversation_pk == conversation_pk)
    )
    return {row.pk: row.id for row in rows}
