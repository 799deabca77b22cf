"""Bad memory that is stored already: found by today's judge, quarantined, and replaced.

What a model wrote is judged again as if it came now: chapters and facts against their span, gists
against the chapters that they cover. What was made without a model, or written by the owner, is
left alone. Views change at their next fold; a refusal is kept from them when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from gateway.flows import pins
from gateway.flows.hand import Hand
from gateway.flows.memory_edits import resummarize
from gateway.flows.scrub_material import KINDS, Kind, Material, Span, policy_of
from gateway.prompts.span import span_lines
from gateway.store import chapter_rows, gist_rows, ledger, profile_edits, quarantine
from gateway.store.gist_rows import GistRow
from gateway.store.ledger_rows import EntryRow
from gateway.store.wipes import tell_of_emptied
from policies.schema import Policy, PolicyFile
from policies.standin import condense, write_stand_in
from policies.values import Line


@dataclass(frozen=True, slots=True)
class Finding:
    """One bad text. pk: of the version, gist, entry or fact; stand_in: what takes its place."""

    kind: Kind
    id: str
    pk: int
    text: str
    backend: str | None
    reasons: tuple[str, ...]
    chapter_pk: int | None = None
    stand_in: str = ""

    def as_json(self, conversation: str) -> dict[str, Any]:
        return {
            "conversation": conversation,
            "kind": self.kind,
            "id": self.id,
            "reasons": list(self.reasons),
            "backend": self.backend,
            "text": self.text,
        }


@dataclass(slots=True)
class Report:
    """What was looked at, how many of each kind, and what was bad."""

    dry_run: bool
    conversations: int = 0
    looked: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    bad: list[dict[str, Any]] = field(default_factory=list)

    def add(self, material: Material, findings: Sequence[Finding]) -> None:
        self.conversations += 1
        for kind, count in material.count().items():
            self.looked[kind] += count
        self.bad += [finding.as_json(material.conversation.id) for finding in findings]

    def as_json(self) -> dict[str, Any]:
        return {
            "dry_run": self.dry_run,
            "conversations": self.conversations,
            "looked": self.looked,
            "bad": self.bad,
        }


# --- what is bad ---------------------------------------------------------------------------------


def judge(material: Material) -> list[Finding]:
    """Everything that today's judge would not let in. Pure; takes milliseconds a chapter."""
    findings: list[Finding] = []
    replaced: dict[int, str] = {}
    for span in material.spans:
        lines = span_lines(span.raws, material.policy.reply_fields)
        for finding in _judge_span(span, lines, material.policy):
            findings.append(finding)
            if finding.kind == "chapter":
                replaced[span.chapter.pk] = finding.stand_in
    told: list[str] = []
    for gist, id, covered in material.gists:
        notes = [replaced.get(row.pk, row.text or "") for row in covered]
        findings += _judge_gist(gist, id, notes, material.policy)
        told += notes
    findings += _judge_notes(material.notes, told)
    findings += _judge_facts(material)
    return findings


def _judge_span(span: Span, lines: Sequence[Line], policy: Policy) -> Iterator[Finding]:
    from policies.judge import judge_summary

    row, length = span.chapter, policy.chapters.length
    if row.origin == "model" and row.version_pk is not None:
        text = row.text or ""
        verdict = judge_summary(text, lines, finish_reason="stop", asked_chars=length, framed=False)
        if not verdict.accepted:
            yield Finding(
                "chapter",
                row.id,
                row.version_pk,
                text,
                row.backend,
                verdict.reasons,
                row.pk,
                _storable(write_stand_in(lines, length)),
            )
    for entry in span.entries:
        if reasons := _judge_entry(entry, lines):
            yield Finding("entry", entry.id, entry.pk, entry.text, row.backend, reasons, row.pk)


def _judge_entry(entry: EntryRow, lines: Sequence[Line]) -> tuple[str, ...]:
    """Why an entry would not be let in today: a refusal, or nothing of the span bears it out."""
    from policies.judge import is_refusal
    from policies.judge.beside import Beside
    from policies.ledger.grounding import ground
    from policies.ledger.values import NOTHING

    if entry.kind != "quote" and is_refusal(entry.text):
        return ("refusal",)
    who, about = entry.who or "", entry.about or ""
    claim = (who, entry.target or "", entry.text, entry.truth or "")
    told = {
        "fact": Beside(facts=((about, entry.text),)),
        "claim": Beside(claims=(claim,)),
        "thread": Beside(opened=(entry.text,)),
        "quote": Beside(quotes=((who, entry.text),)),
    }.get(entry.kind)
    if told is None or ground(told, lines) != NOTHING:
        return ()
    return ("ungrounded",)


def _judge_gist(gist: GistRow, id: str, notes: Sequence[str], policy: Policy) -> Iterator[Finding]:
    from policies.judge import judge_gist

    length = policy.gist.length
    verdict = judge_gist(gist.text, notes, finish_reason="stop", asked_chars=length, framed=False)
    if not verdict.accepted:
        stand_in = _storable(condense(notes, length))
        yield Finding("gist", id, gist.pk, gist.text, gist.backend, verdict.reasons, None, stand_in)


def _judge_notes(notes: Sequence[EntryRow], told: Sequence[str]) -> Iterator[Finding]:
    """Sentences that a gist had no room for: they were judged with it. told: what gists cover."""
    from policies.judge import is_refusal
    from policies.judge.heard import Heard
    from policies.judge.withheld import is_withheld

    heard = Heard([("", text) for text in told])
    for entry in notes:
        if is_refusal(entry.text) or is_withheld(entry.text, heard):
            yield Finding("entry", entry.id, entry.pk, entry.text, None, ("refusal",))


def _judge_facts(material: Material) -> Iterator[Finding]:
    from policies.judge import is_refusal
    from policies.judge.beside import Beside
    from policies.ledger.grounding import ground
    from policies.ledger.values import NOTHING

    fields = material.policy.reply_fields
    for told in material.facts:
        fact, reasons = told.fact, tuple[str, ...]()
        tale = Beside(facts=((fact.about or "", fact.text),))
        if is_refusal(fact.text):
            reasons = ("refusal",)
        elif all(ground(tale, span_lines(raws, fields)) == NOTHING for raws in told.spans):
            reasons = ("ungrounded",)
        if reasons:
            yield Finding("fact", fact.id, fact.pk, fact.text, None, reasons)


def _storable(text: str) -> str:
    """A stand-in's text as a database can hold it; a span of refusals only leaves none."""
    return text.replace("\x00", "\ufffd") or "(…)"


# --- what is done --------------------------------------------------------------------------------


def apply(
    connection: Connection, hand: Hand, file: PolicyFile, findings: Sequence[Finding]
) -> list[Finding]:
    """Quarantine what was found and put stand-ins in its place; a chapter is asked for again.

    What was changed since it was judged is left alone. Returns what was done.
    """
    policy = policy_of(connection, hand.conversation, file)
    done = [finding for finding in findings if _replace(connection, hand, finding, policy)]
    for finding in done:
        quarantine.add_quarantined(
            connection,
            hand.conversation.pk,
            chapter_pk=finding.chapter_pk,
            kind=finding.kind,
            backend=finding.backend or "",
            reasons=finding.reasons,
            text=finding.text,
            finish_reason=None,
            now_ms=hand.now_ms,
        )
    if any(finding.kind == "fact" for finding in done):
        tell_of_emptied(connection, hand.now_ms)
    if done:
        hand.finish(connection)
    return done


def _replace(connection: Connection, hand: Hand, finding: Finding, policy: Policy) -> bool:
    if finding.kind == "chapter":
        return _replace_chapter(connection, hand, finding, policy)
    if finding.kind == "gist":
        return _replace_gist(connection, hand, finding)
    if finding.kind == "fact":
        return profile_edits.reject_fact(connection, finding.pk, hand.now_ms)
    ledger.add_mark(
        connection,
        hand.conversation.pk,
        finding.pk,
        "deleted",
        origin="scrub",
        now_ms=hand.now_ms,
    )
    return True


def _replace_chapter(connection: Connection, hand: Hand, finding: Finding, policy: Policy) -> bool:
    chapter_pk = finding.chapter_pk or 0
    row = chapter_rows.chapter_by_pk(connection, hand.conversation.pk, chapter_pk)
    if row is None or row.version_pk != finding.pk:
        return False
    pins.follow_chapter(connection, hand, row, finding.stand_in)
    chapter_rows.add_version(
        connection,
        hand.conversation.pk,
        row.pk,
        text=finding.stand_in,
        origin="stand-in",
        backend=None,
        prompt=None,
        now_ms=hand.now_ms,
    )
    if policy.name:
        resummarize(connection, hand, row.id, policy.name)
    return True


def _replace_gist(connection: Connection, hand: Hand, finding: Finding) -> bool:
    row = gist_rows.gist_by_pk(connection, finding.pk)
    if row is None:
        return False
    versions = [
        gist
        for gist in gist_rows.all_gists(connection, hand.conversation.pk)
        if (gist.policy, gist.last_pk) == (row.policy, row.last_pk)
    ]
    if versions[-1].pk != row.pk:
        return False
    pins.follow_gist(connection, hand, row.policy, row.last_pk, finding.stand_in)
    gist_rows.add_gist(
        connection,
        hand.conversation.pk,
        policy=row.policy,
        last_pk=row.last_pk,
        last_depth=row.last_depth,
        sources=gist_rows.sources_of(connection, row.pk),
        text=finding.stand_in,
        origin="stand-in",
        backend=None,
        prompt=None,
        now_ms=hand.now_ms,
    )
    return True
