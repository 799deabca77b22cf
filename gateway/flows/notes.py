"""What is recalled beside a message: found once, stored with it, shown until the next fold.

A note is looked for when a question is new to a policy's view, never for its retry or its swipe,
and is stored in the commit that stores the question. From then on it is a row like any other, and
whoever shows the view again shows it too, whatever the policy says by then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from gateway.backends.lookups import Found
from gateway.clock import iso
from gateway.flows.recollection import Ask, Passage, recall
from gateway.prompts.notes import FRAME_CHARS, Line, line_chars, notes_chars, render_notes
from gateway.prompts.phrases import PHRASES
from gateway.prompts.view import TailMessage
from gateway.store import notes, search
from gateway.store.fold_rows import FoldRow
from gateway.store.notes import CALLS, LINES, NoteRow
from gateway.store.transcript import ConversationRow, Node, StoredMessage
from gateway.wire.json_text import loads
from policies.language import Language, language_of
from policies.messages import message_text
from policies.schema import Policy

MOST_INDEXED = 500
"""Messages that a fold's own commit indexes at most (some 0.1 s); what is left is indexed behind
the turn, and recalled from the next one on."""


def looks_for_notes(policy: Policy, fold: FoldRow | None) -> bool:
    """Whether a policy looks for anything beside the messages of a view on this fold."""
    if policy.recall.budget == 0:
        return False
    return _is_folded(fold) or bool(policy.recall.lookups)


def _is_folded(fold: FoldRow | None) -> bool:
    return fold is not None and fold.border_depth > 0


def _keeps_notes(conversation: ConversationRow, fold: FoldRow | None) -> bool:
    """Whether the views on a fold (None: on none) may hold notes: by the rows, whatever a policy
    says by now."""
    return _is_folded(fold) or conversation.noted


def spent_chars(
    connection: Connection,
    conversation: ConversationRow,
    policy: str,
    fold: FoldRow | None,
    head: Node,
) -> int:
    """What notes add to the view of the policy of this name at a head, in characters."""
    if not _keeps_notes(conversation, fold):
        return 0
    return notes.cost(connection, conversation.pk, policy, fold.pk if fold else None, head)


@dataclass(frozen=True, slots=True)
class Noted:
    """The notes in a tail: what they cost, the messages of the transcript that stand in them, and
    what other sources told (as digests)."""

    chars: int = 0
    messages: frozenset[int] = frozenset()
    told: frozenset[str] = frozenset()

    def plus(self, rows: Iterable[NoteRow]) -> Noted:
        """With these notes, which stand behind the ones before."""
        chars, messages, told = self.chars, set(self.messages), set(self.told)
        for row in rows:
            chars += row.chars
            messages.update(row.body.get("shown", ()))
            told.update(row.body.get("told", ()))
        return Noted(chars, frozenset(messages), frozenset(told))


NO_NOTES = Noted()


def read_notes(
    connection: Connection,
    conversation: ConversationRow,
    policy: str,
    fold: FoldRow | None,
    path: Collection[int],
    *,
    since: int = 0,
) -> list[NoteRow]:
    """The notes for these messages (row numbers) of a view, oldest first. since: the least of their
    depths."""
    if not _keeps_notes(conversation, fold):
        return []
    fold_pk = fold.pk if fold else None
    rows = notes.of_fold(connection, conversation.pk, policy, fold_pk, since=since)
    return [row for row in rows if row.asked_pk in path]


def tail_messages(rows: Sequence[StoredMessage], found: Sequence[NoteRow]) -> list[TailMessage]:
    """Stored messages with what was recalled for them, as a tail takes them."""
    if not found:
        return [TailMessage(row.depth, row.role, row.raw, row.backend) for row in rows]
    lines = {note.asked_pk: note.body["text"] for note in found if note.kind == LINES}
    calls = {note.asked_pk: note.body["messages"] for note in found if note.kind == CALLS}
    return [
        TailMessage(
            row.depth,
            row.role,
            row.raw,
            row.backend,
            notes=lines.get(row.pk),
            searches=calls.get(row.pk, ()),
        )
        for row in rows
    ]


# -- recalling ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Occasion:
    """A question that notes are looked for. rows: the newest messages of its path, itself the last.
    room: characters for its notes, frames included; noted: what stands in the view already;
    sources: what others found, by their names in order, each with its budget."""

    conversation_pk: int
    policy: str
    fold: FoldRow | None
    asked: Node
    rows: Sequence[StoredMessage]
    room: int
    noted: Noted
    sources: Sequence[tuple[str, int, Sequence[Found]]]
    now_ms: int

    @property
    def border(self) -> int:
        """The depth of the last message that the view does not show."""
        return self.fold.border_depth if self.fold else 0

    @property
    def is_folded(self) -> bool:
        return self.border > 0


@dataclass(frozen=True, slots=True)
class Recalled:
    """What became of an occasion: the note, if there was anything to show, and how long the search
    took in seconds (None: nothing was searched). wants_index: a part of the past is not indexed
    yet. fault: why the search broke off; the question goes on without it."""

    note: NoteRow | None = None
    seconds: float | None = None
    wants_index: bool = False
    fault: Exception | None = None


def write_note(
    connection: Connection, occasion: Occasion, monotonic: Callable[[], float]
) -> Recalled:
    """Find what belongs beside a question, and store it with it."""
    room = occasion.room - FRAME_CHARS
    if room <= 0:
        return Recalled()
    question = _text(occasion.rows[-1])
    told = _told_lines(occasion, room)
    room -= sum(map(line_chars, told))
    began = monotonic()
    passages, fault = _try_search(connection, occasion, question, room)
    recalled = Recalled(
        seconds=monotonic() - began if occasion.is_folded else None,
        wants_index=_wants_index(connection, occasion.fold),
        fault=fault,
    )
    language = language_of(question) if passages else None
    lines = [passage_line(passage, language) for passage in passages]
    while sum(map(line_chars, lines)) > room:
        worst = min(range(len(lines)), key=lambda at: (passages[at].hit, passages[at].score))
        del lines[worst], passages[worst]
    if not told and not lines:
        return recalled
    text = render_notes([*told, *lines], question)
    note = notes.add(
        connection,
        occasion.conversation_pk,
        occasion.policy,
        occasion.fold.pk if occasion.fold else None,
        occasion.asked,
        kind=LINES,
        body={
            "text": text,
            "shown": [passage.pk for passage in passages],
            "told": [_digest(line.text) for line in told],
        },
        chars=notes_chars(text),
        now_ms=occasion.now_ms,
    )
    if not occasion.is_folded:
        notes.mark_noted(connection, occasion.conversation_pk)
    return replace(recalled, note=note)


def _text(row: StoredMessage) -> str:
    return message_text(loads(row.raw))


def _told_lines(occasion: Occasion, room: int) -> list[Line]:
    """What other sources found and the view does not show yet, each source's best first."""
    lines: list[Line] = []
    for name, budget, found in occasion.sources:
        left = min(budget, room)
        for note in found:
            line = Line(note.text, name, note.when, note.who)
            cost = line_chars(line)
            if cost <= left and _digest(note.text) not in occasion.noted.told:
                lines.append(line)
                left, room = left - cost, room - cost
    return lines


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=8).hexdigest()


def _wants_index(connection: Connection, fold: FoldRow | None) -> bool:
    """How deep the index goes does not say it: it may do so on another branch alone."""
    if fold is None or not _is_folded(fold):
        return False
    return not search.is_indexed(connection, fold.border_pk)


def _try_search(
    connection: Connection, occasion: Occasion, question: str, room: int
) -> tuple[list[Passage], Exception | None]:
    """What was found, or why nothing was: a search is an extra, and its fault is told after the
    commit that stores the question (law 1). What the database refuses is raised: no commit
    follows."""
    try:
        return _search(connection, occasion, question, room), None
    except SQLAlchemyError:
        raise
    except Exception as fault:
        return [], fault


def _search(connection: Connection, occasion: Occasion, question: str, room: int) -> list[Passage]:
    if not occasion.is_folded:
        return []
    earlier = (row for row in reversed(occasion.rows[:-1]) if row.role == "assistant")
    reply = next(earlier, None)
    return recall(
        connection,
        Ask(
            conversation_pk=occasion.conversation_pk,
            head=occasion.asked,
            border=occasion.border,
            question=question,
            previous="" if reply is None else _text(reply),
            budget=room,
            taken=occasion.noted.messages,
        ),
    )


def passage_line(passage: Passage, language: Language | None) -> Line:
    """A passage with the number of its message, the day it was stored (UTC) and who said it, in
    the words of this language."""
    who = passage.name or PHRASES[language or "en"].speakers.get(passage.role, passage.role)
    return Line(passage.text, str(passage.depth), iso(passage.created_ms)[:10], who)


def index_past(connection: Connection, conversation_pk: int, fold: FoldRow) -> Exception | None:
    """Index what a fold has taken out of the view, oldest first, as far as a turn can wait.

    Returns why the words of those messages could not be read, as of a search: then nothing was
    indexed. What the database refuses is raised.
    """
    try:
        batch = search.gather(connection, conversation_pk, fold.border_pk, MOST_INDEXED)
    except SQLAlchemyError:
        raise
    except Exception as fault:
        return fault
    if batch is not None:
        search.add(connection, batch)
    return None
