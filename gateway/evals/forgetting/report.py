"""Shares of questions that the memory still answers, by mode and age, and how repeats differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean, stdev
from typing import Any

from gateway.evals.forgetting.examiner import Control


@dataclass(frozen=True, slots=True)
class Graded:
    """One question as it was answered. age: how many spans were folded since its own, 1 for the
    newest; where: what tells of its span in the memory, stack or gist."""

    repeat: int
    age: int
    where: str
    right: bool


@dataclass(slots=True)
class ModeReport:
    """calls, malformed: of the mode's own texts, answers and grades. memory_chars: of each memory
    that was asked; notes_chars: of what was recalled for each question."""

    grades: list[Graded] = field(default_factory=list)
    calls: int = 0
    malformed: int = 0
    memory_chars: list[int] = field(default_factory=list)
    notes_chars: list[int] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "mean": _mean_of_repeats(self.grades),
            "spread": _spread(self.grades),
            "by_where": {
                where: _mean_of_repeats(rows)
                for where, rows in sorted(_grouped(self.grades, "where").items())
            },
            "by_span": self.by_span(),
            "questions": len(self.grades),
            "malformed": self.malformed,
            "calls": self.calls,
            "memory_chars": round(fmean(self.memory_chars)) if self.memory_chars else 0,
            "notes_chars": round(fmean(self.notes_chars)) if self.notes_chars else 0,
        }

    def by_span(self) -> list[dict[str, Any]]:
        """Newest first; an age that is told by the stack here and by the gist there has two."""
        groups: dict[tuple[int, str], list[Graded]] = defaultdict(list)
        for grade in self.grades:
            groups[grade.age, grade.where].append(grade)
        return [
            {
                "age": age,
                "where": where,
                "share": _mean_of_repeats(rows),
                "spread": _spread(rows),
                "questions": len(rows),
            }
            for (age, where), rows in sorted(groups.items())
        ]


@dataclass(slots=True)
class Report:
    """The figures of one run. tail_chars: what stands verbatim behind the folded spans: nothing of
    it is asked about. asked_now: calls that were made in this run, the others were known."""

    modes: dict[str, ModeReport] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    fingerprint: Mapping[str, str] = field(default_factory=dict)
    conversations: int = 0
    spans: int = 0
    span_chars: list[int] = field(default_factory=list)
    tail_chars: int = 0
    questions: int = 0
    missing: int = 0
    malformed: int = 0
    calls: int = 0
    asked_now: int = 0
    stand_ins: int = 0
    control: Control = field(default_factory=Control)
    rejected: dict[str, int] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """questions: written, all spans together; missing: those that nobody could write. malformed
        and calls: of everything, modes included. rejected: summaries that the judge turned away.
        grader: how it graded answers of which the grade is known; blind: its figures say little."""
        return {
            **self.facts,
            "modes": {name: mode.as_json() for name, mode in self.modes.items()},
            "conversations": self.conversations,
            "spans": self.spans,
            "span_chars": round(fmean(self.span_chars)) if self.span_chars else 0,
            "tail_chars": self.tail_chars,
            "questions": self.questions,
            "missing": self.missing,
            "malformed": self.malformed,
            "calls": self.calls,
            "asked_now": self.asked_now,
            "stand_ins": self.stand_ins,
            "grader": {**asdict(self.control), "blind": self.control.is_blind},
            "rejected": dict(sorted(self.rejected.items())),
            "fingerprint": dict(self.fingerprint),
        }


def _grouped(grades: Iterable[Graded], name: str) -> dict[Any, list[Graded]]:
    groups: dict[Any, list[Graded]] = defaultdict(list)
    for grade in grades:
        groups[getattr(grade, name)].append(grade)
    return groups


def _shares(grades: Sequence[Graded]) -> list[float]:
    """The share of each repeat."""
    return [
        sum(grade.right for grade in rows) / len(rows)
        for _, rows in sorted(_grouped(grades, "repeat").items())
    ]


def _mean_of_repeats(grades: Sequence[Graded]) -> float:
    shares = _shares(grades)
    return round(fmean(shares), 4) if shares else 0.0


def _spread(grades: Sequence[Graded]) -> dict[str, float]:
    """Of the repeats' shares; with one repeat nothing is known of it."""
    shares = _shares(grades)
    if not shares:
        return {"min": 0.0, "max": 0.0, "stdev": 0.0}
    deviation = stdev(shares) if len(shares) > 1 else 0.0
    return {
        "min": round(min(shares), 4),
        "max": round(max(shares), 4),
        "stdev": round(deviation, 4),
    }
