"""The owner's hand over the ledger: entries are added and marked, never rewritten, and each act can
be undone. No function commits."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from gateway.errors import BadRequest, Conflict, NotFound
from gateway.flows.hand import Hand
from gateway.flows.taught import bring_back, edits_in, reword, withdraw, wordings
from gateway.store import ledger
from gateway.store.ledger_rows import (
    BY_OWNER,
    EntryRow,
    EntryState,
    MarkName,
    MarkRow,
    state_of,
)
from gateway.store.profile import ProfileRow, fold_text
from gateway.store.profile_ties import entries_of
from gateway.store.transcript import ConversationRow, conversation_by_pk
from gateway.store.wipes import tell_of_emptied

ACTS: dict[str, MarkName] = {
    "pin": "pinned",
    "unpin": "unpinned",
    "close": "closed",
    "reopen": "reopened",
}
FIELDS = {
    "fact": ("about",),
    "claim": ("who", "to", "truth"),
    "quote": ("who",),
    "thread": (),
    "note": (),
}
"""What of an entry can be written beside its text, by kind."""

_OPPOSITE: dict[str, MarkName] = {
    "pinned": "unpinned",
    "unpinned": "pinned",
    "closed": "reopened",
    "reopened": "closed",
    "superseded": "restored",
    "restored": "superseded",
    "deleted": "undeleted",
    "undeleted": "deleted",
}


def find_entry(connection: Connection, conversation: ConversationRow, id: str) -> EntryRow:
    """By its id, within its conversation. Raises NotFound."""
    row = ledger.entry_by_id(connection, conversation.pk, id)
    if row is None:
        raise NotFound("There is no entry of this id in the conversation.")
    return row


def edit_entry(
    connection: Connection, hand: Hand, id: str, changes: dict[str, str | None]
) -> EntryRow:
    """An entry in other words: a new one in the place of the old, which stays readable. changes:
    text, and what FIELDS names. What is pinned or closed stays so. With a fact goes what the same
    message taught the profile."""
    old = find_entry(connection, hand.conversation, id)
    state = _state(connection, hand, old)
    if state.deleted is not None:
        raise Conflict("This entry is deleted; undo that first.")
    if state.superseded is not None:
        raise Conflict("A newer entry stands in the place of this one.")
    told = {("target" if name == "to" else name): text for name, text in changes.items()}
    told = {name: text for name, text in told.items() if getattr(old, name) != text}
    if not told:
        return old
    kept = ("number", "about", "who", "target", "truth", "chapter_pk", "version_pk", "gist_pk")
    more = {name: told.get(name, getattr(old, name)) for name in (*kept, "source_pk")}
    new = ledger.add_entry(
        connection,
        hand.conversation.pk,
        kind=old.kind,  # type: ignore[arg-type]
        text=told.get("text") or old.text,
        last_pk=old.last_pk,
        last_depth=old.last_depth,
        origin="owner",
        now_ms=hand.now_ms,
        **more,
    )
    earlier = wordings(connection, hand, old)
    _mark(connection, hand, old, "superseded", new)
    reword(connection, hand, earlier, old, new)
    for mark in (state.pinned, state.closed):
        if mark is not None:
            _copy(connection, hand, mark, new)
    if state.pinned is not None:
        _follow(connection, hand, old, "unpinned", new.pk)
    hand.finish(connection)
    return new


def delete_entry(connection: Connection, hand: Hand, id: str) -> list[str]:
    """Delete an entry: no later fold shows it, and no re-summary of its chapter brings it back.

    With a fact goes what the same message taught the profile: returns the ids of these memories.
    """
    row = find_entry(connection, hand.conversation, id)
    memories: list[str] = []
    if _state(connection, hand, row).deleted is None:
        _mark(connection, hand, row, "deleted")
        memories = withdraw(connection, hand, row)
        tell_of_emptied(connection, hand.now_ms)
    hand.finish(connection)
    return memories


def delete_entries_of(connection: Connection, hand: Hand, chapter_pk: int) -> list[str]:
    """Delete what models told beside a chapter, with the chapter; the ids of the memories that go
    with it."""
    memories: list[str] = []
    told = ledger.all_entries(connection, hand.conversation.pk)
    edits = edits_in(told)
    for row, marks in told:
        is_told = row.chapter_pk == chapter_pk and row.origin == "model"
        state = state_of(row, marks)
        if is_told and state.deleted is None:
            _mark(connection, hand, row, "deleted", chapter_pk=chapter_pk)
            if state.superseded is None or state.superseded.origin != "owner":
                memories += withdraw(connection, hand, row, edits=edits)
    tell_of_emptied(connection, hand.now_ms)
    return memories


def restore_entries_of(
    connection: Connection, hand: Hand, chapter_pk: int, deleted_ms: int
) -> list[str]:
    """Take back `delete_entries_of` of the moment deleted_ms; the ids of the memories that stand
    again."""
    memories: list[str] = []
    told = ledger.all_entries(connection, hand.conversation.pk)
    edits = edits_in(told)
    for row, marks in told:
        deleted = state_of(row, marks).deleted
        if deleted is None or deleted.origin != "owner":
            continue
        if (deleted.chapter_pk, deleted.created_ms) != (chapter_pk, deleted_ms):
            continue
        _mark(connection, hand, row, "undeleted", chapter_pk=chapter_pk)
        memories += bring_back(connection, hand, row, deleted, edits=edits)
    return memories


def delete_told(connection: Connection, fact: ProfileRow, now_ms: int) -> bool:
    """After a fact of the profile was deleted: the ledger of the conversation that taught it does
    not go on telling it. Whether anything that is pinned changed."""
    was_pinned = False
    for row in entries_of(connection, fact):
        conversation_pk = fact.conversation_pk or 0
        marks = ledger.marks_of(connection, conversation_pk, [row]).get(row.pk, [])
        state = state_of(row, marks)
        if state.deleted is None:
            ledger.add_mark(
                connection, conversation_pk, row.pk, "deleted", origin="profile", now_ms=now_ms
            )
            was_pinned = was_pinned or state.pinned is not None
    return was_pinned


def reword_told(connection: Connection, before: ProfileRow, after: ProfileRow, now_ms: int) -> None:
    """After a fact of the profile was put into other words: the ledger of the conversation that
    taught it tells it in these too. What its owner said otherwise in the ledger itself stays."""
    if (before.conversation_pk, before.source) != (after.conversation_pk, after.source):
        return
    pk = before.conversation_pk
    chat = None if pk is None else conversation_by_pk(connection, before.owner_pk, pk)
    if chat is None:
        return
    hand, told = Hand(chat, now_ms), {"text": after.text, "about": after.about}
    for row in entries_of(connection, before):
        is_own = row.origin == "owner" and fold_text(row.text) != fold_text(before.text)
        if _state(connection, hand, row).is_live and not is_own:
            edit_entry(connection, hand, row.id, told)


def act(connection: Connection, hand: Hand, id: str, name: str) -> None:
    """pin, unpin, close or reopen an entry; what is so already stays so."""
    row = find_entry(connection, hand.conversation, id)
    if name in ("close", "reopen") and row.kind != "thread":
        raise BadRequest(f"Only a thread can be closed or reopened; this is a {row.kind}.")
    state = _state(connection, hand, row)
    if state.deleted is not None:
        raise Conflict("This entry is deleted; undo that first.")
    if state.superseded is not None and state.superseded.origin == "owner":
        raise Conflict("Its owner put another entry in the place of this one.")
    standing = state.pinned if name in ("pin", "unpin") else state.closed
    if (standing is None) == (name in ("pin", "close")):
        _mark(connection, hand, row, ACTS[name])
    hand.finish(connection)


def is_pinned(connection: Connection, hand: Hand, row: EntryRow) -> bool:
    """Whether an entry is pinned, whatever else became of it."""
    return _state(connection, hand, row).pinned is not None


def undo_entry(connection: Connection, hand: Hand, id: str) -> EntryRow:
    """Take back the owner's newest act on an entry, an edit among them; who undoes twice takes back
    two. Returns the entry that stands then. Raises Conflict where there is none."""
    row = find_entry(connection, hand.conversation, id)
    marks = _marks(connection, hand, row)
    steps = _steps(marks)
    if steps and steps[-1].mark == "superseded":
        return _take_back(connection, hand, row, steps[-1].by_pk)
    if steps:
        _mark(connection, hand, row, _OPPOSITE[steps[-1].mark])
        if steps[-1].mark == "deleted":
            bring_back(connection, hand, row, steps[-1])
        hand.finish(connection)
        return row
    before = _edited_from(connection, hand, row)
    if before is None:
        raise Conflict("Its owner changed nothing of this entry.")
    return _take_back(connection, hand, before, row.pk)


def _take_back(connection: Connection, hand: Hand, old: EntryRow, new_pk: int | None) -> EntryRow:
    """The entry as it was before it was edited; pinned where its successor is. Where it went with
    its chapter meanwhile, it stays deleted with it, and what it taught does too."""
    edited = ledger.entries_by_pk(connection, [] if new_pk is None else [new_pk])
    for new in edited:
        reword(connection, hand, wordings(connection, hand, new), new, old)
    _mark(connection, hand, old, "restored")
    for new in edited:
        if _state(connection, hand, new).pinned is not None:
            _follow(connection, hand, old, "pinned", new.pk)
        _follow(connection, hand, new, "deleted", old.pk)
    deleted = _state(connection, hand, old).deleted
    if deleted is not None and deleted.origin in BY_OWNER:
        withdraw(connection, hand, old, deleted)
        tell_of_emptied(connection, hand.now_ms)
    hand.finish(connection)
    return old


def _edited_from(connection: Connection, hand: Hand, row: EntryRow) -> EntryRow | None:
    """The entry whose place this one took by its owner's edit."""
    return next(iter(wordings(connection, hand, row)[1:]), None)


def _steps(marks: Sequence[MarkRow]) -> list[MarkRow]:
    """The owner's acts that stand: one that takes back an earlier one ends both."""
    steps: list[MarkRow] = []
    for mark in marks:
        if mark.origin not in BY_OWNER:
            continue
        undone = [step for step in steps if _OPPOSITE[step.mark] == mark.mark]
        if undone:
            steps.remove(undone[-1])
        else:
            steps.append(mark)
    return steps


def _marks(connection: Connection, hand: Hand, row: EntryRow) -> list[MarkRow]:
    return ledger.marks_of(connection, hand.conversation.pk, [row]).get(row.pk, [])


def _state(connection: Connection, hand: Hand, row: EntryRow) -> EntryState:
    """As all its marks leave it, on whichever branch."""
    return state_of(row, _marks(connection, hand, row))


def _mark(
    connection: Connection,
    hand: Hand,
    row: EntryRow,
    mark: MarkName,
    by: EntryRow | None = None,
    *,
    chapter_pk: int | None = None,
) -> None:
    ledger.add_mark(
        connection,
        hand.conversation.pk,
        row.pk,
        mark,
        origin="owner",
        now_ms=hand.now_ms,
        by_pk=None if by is None else by.pk,
        chapter_pk=chapter_pk,
    )


def _follow(connection: Connection, hand: Hand, row: EntryRow, mark: MarkName, by_pk: int) -> None:
    """A mark that an edit brings with it; no act of its own."""
    ledger.add_mark(
        connection,
        hand.conversation.pk,
        row.pk,
        mark,
        origin="edit",
        now_ms=hand.now_ms,
        by_pk=by_pk,
    )


def _copy(connection: Connection, hand: Hand, mark: MarkRow, new: EntryRow) -> None:
    """The same mark on the entry that takes an old one's place; no act of its own."""
    at = None
    if mark.last_pk is not None and mark.last_depth is not None:
        at = (mark.last_pk, mark.last_depth)
    ledger.add_mark(
        connection,
        hand.conversation.pk,
        new.pk,
        mark.mark,  # type: ignore[arg-type]
        origin="edit",
        now_ms=hand.now_ms,
        by_pk=mark.by_pk,
        chapter_pk=mark.chapter_pk,
        at=at,
    )
