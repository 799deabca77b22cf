"""What is wrong with the memory that is stored: each kind of fault, per chapter and in sum.

Counted twice from the same rows. `before`: as if the outputs were read plainly, as summaries
usually are: each thing told is a fact, and a thread stays open for ever, because nothing closes it
by its id. `after`: as the ledger reads them, with claims kept apart from facts, entries grounded in
the lines of their span, and threads closed by id. Nothing is changed, and no model is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection

from gateway.flows import scrub_material
from gateway.flows.scrub_material import Told
from gateway.prompts.span import span_lines
from gateway.store import chapter_rows, gist_rows, ledger
from gateway.store.chapter_rows import ChapterRow
from gateway.store.ledger_rows import EntryRow, EntryState, state_of
from gateway.store.shown import folds_in_force
from gateway.store.transcript import ConversationRow, StoredMessage, path_between
from policies.schema import Policy, PolicyFile
from policies.values import Line

if TYPE_CHECKING:
    from policies.ledger.audit import Ending

    Endings = Sequence[tuple[int, Sequence[Ending]]]
    """What each chapter says to have ended, with the depth at which it begins."""

KINDS = (
    "claims_as_facts",
    "resolved_still_open",
    "ended_still_open",
    "without_source",
    "misattributed",
    "refusals",
)
"""claims_as_facts: what only a character said, as a fact of the user's or as a plain sentence of a
chapter. resolved_still_open: threads that a chapter resolved and a view still lists as open.
ended_still_open: threads that nobody closed though a later chapter tells how they ended.
without_source: entries whose source message is missing, or no part of their span. misattributed:
chapters, claims and quotes that tie what one speaker said to another. refusals: texts that refuse.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One fault. before, after: whether it is there in each reading."""

    kind: str
    text: str
    before: bool = True
    after: bool = True


@dataclass(slots=True)
class Part:
    """A chapter with its faults; what belongs to no chapter stands under the id ''."""

    id: str
    first: int
    last: int
    findings: list[Finding] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "chapter": self.id,
            "first": self.first,
            "last": self.last,
            "before": count(self.findings, "before"),
            "after": count(self.findings, "after"),
            "found": [{"kind": f.kind, "text": f.text} for f in self.findings if f.after],
        }


def count(findings: Iterable[Finding], reading: str) -> dict[str, int]:
    """Faults of each kind in one reading, before or after."""
    sums = dict.fromkeys(KINDS, 0)
    for finding in findings:
        sums[finding.kind] += bool(getattr(finding, reading))
    return sums


@dataclass(slots=True)
class Report:
    """Of each conversation the chapters, by its id."""

    parts: dict[str, list[Part]] = field(default_factory=dict)
    entries: int = 0
    threads: int = 0

    def add(self, stored: Stored, parts: list[Part]) -> None:
        self.parts[stored.id] = parts
        self.entries += len(stored.entries)
        self.threads += sum(state.row.kind == "thread" for state in stored.entries)

    def as_json(self) -> dict[str, Any]:
        every = [f for parts in self.parts.values() for part in parts for f in part.findings]
        return {
            "conversations": [
                {
                    "conversation": id,
                    "before": count(_findings(parts), "before"),
                    "after": count(_findings(parts), "after"),
                    "chapters": [part.as_json() for part in parts if part.id or part.findings],
                }
                for id, parts in self.parts.items()
            ],
            "chapters": sum(bool(part.id) for parts in self.parts.values() for part in parts),
            "entries": self.entries,
            "threads": self.threads,
            "before": count(every, "before"),
            "after": count(every, "after"),
        }

    @property
    def faults(self) -> int:
        return sum(f.after for parts in self.parts.values() for f in _findings(parts))


def _findings(parts: Sequence[Part]) -> list[Finding]:
    return [finding for part in parts for finding in part.findings]


# -- reading --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Stored:
    """One conversation's memory. told: each chapter that has a text, with its messages; shown: row
    numbers of the entries that a view in force lists as open; loose: gists and facts of the
    profile, which belong to no chapter."""

    id: str
    policy: Policy
    told: tuple[tuple[ChapterRow, tuple[StoredMessage, ...]], ...]
    entries: tuple[EntryState, ...]
    shown: frozenset[int]
    gists: tuple[str, ...]
    facts: tuple[Told, ...]

    def lines_of(self, messages: Sequence[str]) -> list[Line]:
        return span_lines(messages, self.policy.reply_fields)


def load(connection: Connection, conversation: ConversationRow, file: PolicyFile) -> Stored:
    """Read what is audited."""
    pk, material = conversation.pk, scrub_material.load(connection, conversation, file)
    rows = [row for row in chapter_rows.all_chapters(connection, pk) if row.text]
    showing = folds_in_force(connection, [pk])
    newest = {(row.policy, row.last_pk): row for row in gist_rows.all_gists(connection, pk)}
    return Stored(
        conversation.id,
        material.policy,
        tuple((row, tuple(_messages(connection, row))) for row in rows),
        tuple(state_of(row, marks) for row, marks in ledger.all_entries(connection, pk)),
        frozenset(entry for fold in showing for entry in fold.shown.get("open", ())),
        tuple(row.text for row in newest.values() if row.retired_ms is None),
        material.facts,
    )


def _messages(connection: Connection, row: ChapterRow) -> list[StoredMessage]:
    return path_between(connection, row.last_pk, row.first_depth - 1)


# -- judging --------------------------------------------------------------------------------------


def audit(stored: Stored) -> list[Part]:
    """The chapters with their faults, oldest first, and at the end what belongs to none."""
    from policies.ledger.audit import find_endings

    endings = [(row.first_depth, find_endings(row.text or "")) for row, _ in stored.told]
    parts = []
    by_chapter: dict[int | None, list[EntryState]] = {}
    for state in stored.entries:
        by_chapter.setdefault(state.row.chapter_pk, []).append(state)
    for row, messages in stored.told:
        lines = stored.lines_of([message.raw for message in messages])
        own = by_chapter.pop(row.pk, [])
        part = Part(row.id, row.first_depth, row.last_depth)
        part.findings += _audit_prose(row.text or "", row.origin, lines)
        part.findings += [f for state in own for f in _audit_entry(state, lines, messages)]
        part.findings += [f for state in own for f in _audit_thread(state, stored, endings)]
        parts.append(part)
    left = [state for states in by_chapter.values() for state in states]
    parts.append(_audit_rest(stored, left, endings))
    return parts


def _audit_prose(prose: str, origin: str | None, lines: Sequence[Line]) -> list[Finding]:
    """A stand-in tells each sentence under its speaker's name: nothing is claimed or exchanged."""
    from policies.judge import is_refusal
    from policies.judge.attribution import is_misattributed
    from policies.ledger.audit import find_claimed, heard_of

    found = []
    if is_refusal(prose):
        found.append(Finding("refusals", prose))
    if origin != "stand-in":
        found += [Finding("claims_as_facts", told) for told in find_claimed(prose, lines)]
        if is_misattributed(prose, heard_of(lines)):
            found.append(Finding("misattributed", prose))
    return found


def _audit_entry(
    state: EntryState, lines: Sequence[Line], messages: Sequence[StoredMessage]
) -> list[Finding]:
    from policies.judge import is_refusal
    from policies.ledger.audit import is_claim_as_fact, is_of_another_speaker

    row = state.row
    if state.deleted is not None or row.origin == "owner":
        return []
    found = []
    if row.kind == "claim":
        # Read plainly, what a character claims is one more sentence about the world.
        found.append(Finding("claims_as_facts", _said(row), after=False))
    if row.kind == "fact" and is_claim_as_fact(row.about or "", row.text, lines):
        found.append(Finding("claims_as_facts", row.text))
    if row.source_pk not in {message.pk for message in messages}:
        found.append(Finding("without_source", row.text))
    if row.kind in ("claim", "quote") and is_of_another_speaker(row.who or "", row.text, lines):
        found.append(Finding("misattributed", _said(row)))
    if row.kind != "quote" and is_refusal(row.text):
        found.append(Finding("refusals", row.text))
    return found


def _said(row: EntryRow) -> str:
    return f"{row.who}: {row.text}" if row.who else row.text


def _audit_thread(state: EntryState, stored: Stored, endings: Endings) -> list[Finding]:
    from policies.ledger.audit import is_ended

    row = state.row
    if row.kind != "thread" or state.deleted is not None or state.superseded is not None:
        return []
    if state.closed is not None:
        # Without ids it would be open still, and be shown.
        return [Finding("resolved_still_open", row.text, after=row.pk in stored.shown)]
    if any(first > row.last_depth and is_ended(row.text, ends) for first, ends in endings):
        return [Finding("ended_still_open", row.text)]
    return []


def _audit_rest(stored: Stored, states: Sequence[EntryState], endings: Endings) -> Part:
    """Gists, facts of the profile, and entries whose chapter has no text any more."""
    from policies.judge import is_refusal

    part = Part("", 0, 0)
    part.findings += [f for told in stored.facts for f in _audit_profile(told, stored)]
    part.findings += [Finding("refusals", text) for text in stored.gists if is_refusal(text)]
    for state in states:
        row = state.row
        if state.deleted is not None or row.origin == "owner":
            continue
        if row.kind != "quote" and is_refusal(row.text):
            part.findings.append(Finding("refusals", row.text))
        if row.gist_pk is None and row.source_pk is None:
            part.findings.append(Finding("without_source", row.text))
        part.findings += _audit_thread(state, stored, endings)
    return part


def _audit_profile(told: Told, stored: Stored) -> list[Finding]:
    """A fact of the profile: borne out by the user's own lines, and not by a character's."""
    from policies.judge import is_refusal
    from policies.ledger.audit import is_claim_as_fact, is_own_fact

    fact = told.fact
    found = [Finding("refusals", fact.text)] if is_refusal(fact.text) else []
    if not told.spans:
        return [*found, Finding("without_source", fact.text)]
    about, sources = fact.about or "", map(stored.lines_of, told.spans)
    spans = (stored.lines_of([message.raw for message in each]) for _, each in stored.told)
    if not any(is_own_fact(about, fact.text, lines) for lines in sources) and any(
        is_claim_as_fact(about, fact.text, lines) for lines in spans
    ):
        found.append(Finding("claims_as_facts", fact.text))
    return found
