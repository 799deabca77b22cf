"""What of one conversation's memory a scrub judges: all that models wrote, with what it is from.

Nothing here judges. No function commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, select

from gateway.flows.memory_edits import last_policy
from gateway.flows.papers import policies_of
from gateway.store import chapter_rows, gist_rows, ledger, profile_edits
from gateway.store.chapter_rows import ChapterRow
from gateway.store.gist_rows import GistRow
from gateway.store.ledger_rows import EntryRow, state_of
from gateway.store.memory_report import gist_id
from gateway.store.message_ids import message_ids
from gateway.store.profile import ProfileRow, source_content
from gateway.store.transcript import ConversationRow, messages, node_by_pk, path_between
from policies.schema import Policy, PolicyFile

Kind = Literal["chapter", "gist", "entry", "fact"]
MOST_BEFORE = 100
"""Messages before one that no chapter holds that may bear out what it taught."""

KINDS: tuple[Kind, ...] = ("chapter", "gist", "entry", "fact")


@dataclass(frozen=True, slots=True)
class Span:
    """A chapter that a model wrote, and the messages that it tells, as JSON texts."""

    chapter: ChapterRow
    raws: tuple[str, ...]
    entries: tuple[EntryRow, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """A fact of the profile and the spans that may bear it out, as JSON texts: those of the
    chapters that hold a message it was learned from, or what was said up to it where there is no
    such chapter; none where the message is gone."""

    fact: ProfileRow
    spans: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Material:
    """What of one conversation is to be judged. covered: the chapters behind each gist."""

    conversation: ConversationRow
    policy: Policy
    spans: tuple[Span, ...]
    gists: tuple[tuple[GistRow, str, tuple[ChapterRow, ...]], ...]
    notes: tuple[EntryRow, ...]
    facts: tuple[Told, ...]

    def count(self) -> dict[str, int]:
        """How many of each kind are looked at."""
        entries = len(self.notes) + sum(len(span.entries) for span in self.spans)
        written = sum(span.chapter.origin == "model" for span in self.spans)
        told = (written, len(self.gists), entries, len(self.facts))
        return dict(zip(KINDS, told, strict=True))


def load(connection: Connection, conversation: ConversationRow, file: PolicyFile) -> Material:
    """Read what is to be judged."""
    rows = chapter_rows.all_chapters(connection, conversation.pk)
    entries, notes = _entries(connection, conversation)
    return Material(
        conversation,
        policy_of(connection, conversation, file),
        tuple(_spans(connection, rows, entries)),
        tuple(_gists(connection, conversation)),
        tuple(notes),
        tuple(_facts(connection, conversation, rows)),
    )


def policy_of(connection: Connection, conversation: ConversationRow, file: PolicyFile) -> Policy:
    """Whose lengths were asked for: of the newest turn, else of the model, else the usual ones."""
    named = file.policies.get(last_policy(connection, conversation) or "")
    return next(iter([named] if named else policies_of(file, conversation.model)), Policy())


def _entries(
    connection: Connection, conversation: ConversationRow
) -> tuple[dict[int, list[EntryRow]], list[EntryRow]]:
    """What models told, and nobody deleted or pinned: beside chapters, by chapter, and beside
    gists."""
    found: dict[int, list[EntryRow]] = {}
    notes = []
    for row, marks in ledger.all_entries(connection, conversation.pk):
        state = state_of(row, marks)
        if row.origin != "model" or state.deleted is not None or state.pinned is not None:
            continue
        if row.chapter_pk is None:
            notes.append(row)
        else:
            found.setdefault(row.chapter_pk, []).append(row)
    return found, notes


def _spans(
    connection: Connection, rows: Sequence[ChapterRow], entries: dict[int, list[EntryRow]]
) -> Iterator[Span]:
    for row in rows:
        told = entries.get(row.pk, [])
        if row.origin == "model" or told:
            path = path_between(connection, row.last_pk, row.first_depth - 1)
            yield Span(row, tuple(message.raw for message in path), tuple(told))


def _gists(
    connection: Connection, conversation: ConversationRow
) -> Iterator[tuple[GistRow, str, tuple[ChapterRow, ...]]]:
    """The newest version of each gist, with its id and the chapters that it covers."""
    newest = {
        (row.policy, row.last_pk): row for row in gist_rows.all_gists(connection, conversation.pk)
    }
    ids = message_ids(connection, (row.last_pk for row in newest.values()))
    for row in newest.values():
        if row.origin == "model":
            end = node_by_pk(connection, row.last_pk)
            covered = chapter_rows.chapter_row(connection, conversation.pk, end, above=0)
            id = gist_id(conversation.id, row.policy, ids[row.last_pk])
            yield row, id, tuple(covered)


def _facts(
    connection: Connection, conversation: ConversationRow, rows: Sequence[ChapterRow]
) -> Iterator[Told]:
    for fact in profile_edits.learned_in(connection, conversation.pk):
        if fact.origin != "model":
            continue
        sources = connection.execute(
            select(messages.c.pk, messages.c.depth).where(
                messages.c.conversation_pk == conversation.pk,
                messages.c.content == source_content(fact),
            )
        ).all()
        spans = [
            span
            for source in sources
            for span in _spans_of(connection, rows, source.pk, source.depth)
        ]
        yield Told(fact, tuple(spans))


def _spans_of(
    connection: Connection, rows: Sequence[ChapterRow], source_pk: int, depth: int
) -> list[tuple[str, ...]]:
    """The spans of the chapters that hold a message; where there is none any more, what was said up
    to it."""
    found = []
    for row in rows:
        if row.first_depth <= depth <= row.last_depth:
            path = path_between(connection, row.last_pk, row.first_depth - 1)
            if any(message.pk == source_pk for message in path):
                found.append(tuple(message.raw for message in path))
    if not found:
        path = path_between(connection, source_pk, max(0, depth - MOST_BEFORE))
        found.append(tuple(message.raw for message in path))
    return found
