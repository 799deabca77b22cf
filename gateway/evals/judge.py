"""How well the judge judges: labelled rows in, counts out.

Two kinds of rows, one JSON object a line:

- ``{text, label: refuse|accept, as: summary|chat}``: the refusal rule alone, the text taken as
  the prose of a chapter; ``as: chat`` rows are skipped, for a chat reply may decline.
- ``{output, span: [[speaker, text], …], finish_reason, label: accept|reject, reasons: […]}``: the
  whole judge, the frame optional. Rows whose only reasons are `misattributed` or `thin` are hard:
  counted in hard_total and hard_rejected, beside the misattributed figures, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, TypeAdapter, ValidationError

from gateway.errors import ConfigurationError
from policies.judge import is_refusal, judge_summary
from policies.values import Line

ASKED_CHARS = 1_100
"""What a chapter is asked to have, in characters, where no policy says otherwise."""
_MISATTRIBUTED = "misattributed"
_HARD = frozenset({_MISATTRIBUTED, "thin"})
_HEAD_CHARS = 120


class TextRow(BaseModel):
    """A prose for the refusal rule alone."""

    model_config = ConfigDict(extra="allow", frozen=True)

    text: str
    label: Literal["refuse", "accept"]
    role: Literal["summary", "chat"] = Field(alias="as")

    @property
    def reasons(self) -> list[str]:
        return ["refusal"] if self.label == "refuse" else []


class OutputRow(BaseModel):
    """A summarizer's output with the span it was asked to tell."""

    model_config = ConfigDict(extra="allow", frozen=True)

    output: str
    span: list[tuple[str, str]]
    finish_reason: str | None
    label: Literal["accept", "reject"]
    reasons: list[str] = []


def _kind(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    return "output" if "output" in value else "text" if "text" in value else None


Row = Annotated[
    Annotated[TextRow, Tag("text")] | Annotated[OutputRow, Tag("output")],
    Discriminator(
        _kind,
        custom_error_type="row",
        custom_error_message="neither {text, label, as} nor {output, span, finish_reason, label}",
    ),
]
_ROW: TypeAdapter[TextRow | OutputRow] = TypeAdapter(Row)


@dataclass(frozen=True, slots=True)
class Bar:
    """What a kind of rows must reach: shares of the rows, 0 to 1. Source: design of part 1."""

    least_rejected: float
    most_lost: float


TEXT_BAR = Bar(least_rejected=0.95, most_lost=0.02)
OUTPUT_BAR = Bar(least_rejected=0.90, most_lost=0.10)


@dataclass(slots=True)
class Report:
    """The counts of one run. by_reason: labelled reason to [rejected, total]; wrong: rows judged
    otherwise than labelled, hard ones left out; misattributed: rows labelled so, alone or among
    other reasons, how many of them were rejected at all, and how many for that reason (named)."""

    refuse_total: int = 0
    refuse_rejected: int = 0
    accept_total: int = 0
    accept_rejected: int = 0
    by_reason: dict[str, list[int]] = field(default_factory=dict)
    wrong: list[dict[str, Any]] = field(default_factory=list)
    hard_total: int = 0
    hard_rejected: int = 0
    misattributed_total: int = 0
    misattributed_rejected: int = 0
    misattributed_named: int = 0

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def read_rows(lines: Iterable[str], name: str) -> Iterator[tuple[int, TextRow | OutputRow]]:
    """Yield the rows with their line numbers; blank lines are skipped.

    ConfigurationError, naming file and line, for a row of neither kind.
    """
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = _ROW.validate_json(line)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            at = f" at {place}" if place else ""
            raise ConfigurationError(f"{name}, line {number}{at}: {first['msg']}") from error
        yield number, row


def measure_judge(
    rows: Iterable[tuple[int, TextRow | OutputRow]], tell: Callable[[int], None] | None = None
) -> tuple[Report, bool]:
    """Judge every row. Returns the counts and whether every bar was reached.

    tell: called after each row with the number of rows judged so far.
    """
    report, tallies = Report(), {"text": _Tally(TEXT_BAR), "output": _Tally(OUTPUT_BAR)}
    for done, (number, row) in enumerate(rows, start=1):
        if isinstance(row, TextRow):
            if row.role == "summary":
                got = ("refusal",) if is_refusal(row.text) else ()
                _count(report, tallies["text"], number, row, got)
        else:
            _count(report, tallies["output"], number, row, _judge(row))
        if tell is not None:
            tell(done)
    for tally in tallies.values():
        report.refuse_total += tally.bad
        report.refuse_rejected += tally.bad_rejected
        report.accept_total += tally.good
        report.accept_rejected += tally.good_rejected
    return report, all(tally.passes() for tally in tallies.values())


@dataclass(slots=True)
class _Tally:
    """One kind of rows against its bar."""

    bar: Bar
    bad: int = 0
    bad_rejected: int = 0
    good: int = 0
    good_rejected: int = 0

    def passes(self) -> bool:
        return (
            self.bad_rejected >= self.bar.least_rejected * self.bad
            and self.good_rejected <= self.bar.most_lost * self.good
        )


def _judge(row: OutputRow) -> tuple[str, ...]:
    lines = [Line(speaker, text) for speaker, text in row.span]
    verdict = judge_summary(
        row.output,
        lines,
        finish_reason=row.finish_reason,
        asked_chars=ASKED_CHARS,
        framed=False,
    )
    return verdict.reasons


def _count(
    report: Report, tally: _Tally, number: int, row: TextRow | OutputRow, got: tuple[str, ...]
) -> None:
    rejected = bool(got)
    good = row.label == "accept"
    if _MISATTRIBUTED in row.reasons:
        report.misattributed_total += 1
        report.misattributed_rejected += rejected
        report.misattributed_named += _MISATTRIBUTED in got
    if not good and row.reasons and _HARD.issuperset(row.reasons):
        report.hard_total += 1
        report.hard_rejected += rejected
        return
    for reason in row.reasons:
        count = report.by_reason.setdefault(reason, [0, 0])
        count[0] += rejected
        count[1] += 1
    if good:
        tally.good += 1
        tally.good_rejected += rejected
    else:
        tally.bad += 1
        tally.bad_rejected += rejected
    if rejected == good:
        text = row.text if isinstance(row, TextRow) else row.output
        report.wrong.append(
            {
                "line": number,
                "label": row.label,
                "reasons": row.reasons,
                "got": list(got),
                "text": text[:_HEAD_CHARS],
            }
        )
