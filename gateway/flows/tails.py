"""The tail of a view with its notes: what was kept of it and what is new, or all from the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.flows.lookups import Answers
from gateway.flows.notes import (
    NO_NOTES,
    Noted,
    Occasion,
    Recalled,
    looks_for_notes,
    read_notes,
    tail_messages,
    write_note,
)
from gateway.flows.states import Site, sizes
from gateway.flows.views import CachedTail
from gateway.prompts.notes import FRAME_CHARS
from gateway.prompts.view import Tail
from gateway.store import notes, transcript
from gateway.store.fold_rows import FoldRow
from gateway.store.transcript import ConversationRow, Node, StoredMessage
from policies.recall.room import notes_room

Recall = Callable[[Sequence[StoredMessage], Noted], Recalled | None]
"""Looks for notes for the last of these messages, where so much stands in the view already."""

LEAST_ROOM = FRAME_CHARS + 60
"""Characters below which not even a short line has a place."""


@dataclass(frozen=True, slots=True)
class Laid:
    """A tail up to the message that is asked, the notes in it, and what was recalled for that
    message just now."""

    tail: Tail
    noted: Noted = NO_NOTES
    recalled: Recalled | None = None


def lay_tail(
    connection: Connection,
    conversation: ConversationRow,
    policy: str,
    fold: FoldRow | None,
    asked: Node,
    *,
    reasoning_of: str | None,
    kept: CachedTail | None,
    recall: Recall | None,
) -> Laid:
    """The tail of the policy's view up to `asked`. kept: an earlier one of this conversation and
    policy, grown where it can be. recall: for a question that is new to the view."""
    kept, rows = _rows_behind(connection, kept, fold, asked)
    if kept is not None and not rows:
        return Laid(kept.tail, kept.noted)
    since = rows[0].depth
    path = {row.pk for row in rows}
    found = read_notes(connection, conversation, policy, fold, path, since=since)
    noted = (kept.noted if kept else NO_NOTES).plus(found)
    recalled = None if recall is None else recall(rows, noted)
    if recalled is not None and recalled.note is not None:
        found.append(recalled.note)
        noted = noted.plus([recalled.note])
    tail = kept.tail.copy() if kept else Tail(reasoning_of)
    for message in tail_messages(rows, found):
        tail.add(message)
    return Laid(tail, noted, recalled)


def _rows_behind(
    connection: Connection, kept: CachedTail | None, fold: FoldRow | None, asked: Node
) -> tuple[CachedTail | None, list[StoredMessage]]:
    """What was kept, if it leads to the message, and the messages behind it; else all of them."""
    if kept is not None and kept.fold_pk == (fold.pk if fold else None):
        if kept.head_pk == asked.pk:
            return kept, []
        if kept.head_depth < asked.depth:
            rows = transcript.path_between(connection, asked.pk, kept.head_depth)
            if rows[0].parent_pk == kept.head_pk:
                return kept, rows
    return None, transcript.path_between(connection, asked.pk, fold.border_depth if fold else 0)


def plan_recall(
    connection: Connection,
    site: Site,
    fold: FoldRow | None,
    answers: Answers,
    clock: Callable[[], float],
    *,
    most: int | None = None,
) -> Recall | None:
    """How notes are looked for on the occasion of a question; None where none can be: no person
    speaks, or the policy recalls nothing.

    Nothing is looked for where somebody was shown the message already. most: characters that a view
    which was just cut to its window has room for; whether anybody saw the message is then no
    matter, as long as nothing stands behind it.
    """
    policy, asked, pk = site.policy, site.head, site.conversation.pk
    if asked.role != "user" or not looks_for_notes(policy, fold):
        return None

    def recall(rows: Sequence[StoredMessage], noted: Noted) -> Recalled | None:
        total = sum(sizes(fold, asked)) + noted.chars
        room = notes_room(policy.recall, site.limits, total=total, spent=noted.chars)
        if room < LEAST_ROOM or _is_seen(connection, site, is_cut=most is not None):
            return None
        occasion = Occasion(
            conversation_pk=pk,
            policy=policy.name,
            fold=fold,
            asked=asked,
            rows=rows,
            room=room if most is None else min(room, most - total),
            noted=noted,
            sources=answers.of(policy.recall.lookups),
            now_ms=site.now_ms,
        )
        return write_note(connection, occasion, clock)

    return recall


def _is_seen(connection: Connection, site: Site, *, is_cut: bool) -> bool:
    pk, asked = site.conversation.pk, site.head
    if is_cut:
        return not notes.is_last(connection, pk, asked)
    return notes.was_shown(connection, pk, site.policy.name, asked)
