"""How much of what answers a question recall brings back: annotated conversations in, shares out.

No model. A conversation (in the form of LoCoMo, with `qa`) is stored in a database of its own and
indexed by the functions that serve turns. Each of its questions is then asked as the newest user
message behind the last line, with nothing else in view and a budget of N characters, and the lines
that `gateway.flows.recollection.recall` would show are laid beside the annotation.

What counts, strictly: a line of evidence is shown where it stands whole and word for word among
the passages; neighbours are paid out of the same N characters; questions that the relevance floor
turns away count as nothing shown. Characters are those of the messages, as the sizes of the data
are counted; where frames are counted, each line also costs what says who said it and when. Evidence
ids that name no line, and questions of which none is left, are left out and counted.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection

from gateway.errors import ConfigurationError
from gateway.flows.new_messages import to_new_message
from gateway.flows.recollection import LINE_CHARS, Ask, recall
from gateway.store import search, transcript
from gateway.store.engine import Store
from gateway.wire.json_text import NotJson, loads
from gateway.wire.locomo import NotLocomo, read_lines, read_questions, read_samples
from policies.messages import canonical_message

DEFAULT_BUDGET = 8_000
_AGES = (8_000, 32_000, 64_000, 128_000, 256_000, 512_000)
_IMAGE_CHARS = 3_000


@dataclass(frozen=True, slots=True)
class Question:
    """evidence: indexes of the messages that answer it."""

    text: str
    category: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Annotated:
    """One conversation with its questions. left_out: questions without any line of evidence."""

    name: str
    messages: tuple[tuple[str, str], ...]
    questions: tuple[Question, ...]
    left_out: int
    unknown: int


@dataclass(slots=True)
class Tally:
    """Lines of evidence, and how many of them were shown."""

    evidence: int = 0
    shown: int = 0

    def add(self, evidence: int, shown: int) -> None:
        self.evidence += evidence
        self.shown += shown

    def as_json(self) -> dict[str, Any]:
        return {"evidence": self.evidence, "recall": _share(self.shown, self.evidence)}


@dataclass(slots=True)
class Report:
    """The figures of one run over one or several conversations."""

    budget: int
    line_chars: int = 0
    messages: int = 0
    chars: int = 0
    left_out: int = 0
    unknown: int = 0
    recalls: list[float] = field(default_factory=list)
    windows: list[float] = field(default_factory=list)
    costs: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    nothing: int = 0
    lines: Tally = field(default_factory=Tally)
    ages: dict[int, Tally] = field(default_factory=dict)
    categories: dict[str, Tally] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """evidence_recall, window_only: means over the questions of the share of a question's lines
        that are shown, by recall and by the newest `budget_chars` alone. all_evidence_recall: the
        share of questions of which every line is. lines_recall: the share of all lines of evidence,
        whatever question they belong to. chars_mean: characters spent a question, frames
        included where they are counted. ms: of one recall, milliseconds. by_age: by how many
        characters were said since."""
        return {
            "questions": len(self.recalls),
            "evidence_recall": _mean(self.recalls),
            "all_evidence_recall": _share(sum(r == 1 for r in self.recalls), len(self.recalls)),
            "lines_recall": _share(self.lines.shown, self.lines.evidence),
            "window_only": _mean(self.windows),
            "chars_mean": round(fmean(self.costs), 1) if self.costs else 0.0,
            "ms_p50": round(median(self.times), 3) if self.times else 0.0,
            "ms_p95": round(_p95(self.times), 3),
            "by_age": self._by_age(),
            "by_category": {
                name: tally.as_json() for name, tally in sorted(self.categories.items())
            },
            "budget_chars": self.budget,
            "line_chars": self.line_chars,
            "messages": self.messages,
            "chars": self.chars,
            "nothing_recalled": self.nothing,
            "without_evidence": self.left_out,
            "unknown_evidence": self.unknown,
        }

    def _by_age(self) -> list[dict[str, Any]]:
        ends = (*_AGES, None)
        return [
            {"from_chars": start, "to_chars": end, **self.ages[start].as_json()}
            for start, end in zip((0, *_AGES), ends, strict=True)
            if start in self.ages
        ]


def read_annotated(paths: Iterable[Path]) -> list[Annotated]:
    """The conversations of these files. ConfigurationError for a file that holds none, or one
    without qa."""
    return [conversation for path in paths for conversation in _read(path)]


def join_annotated(parts: Sequence[Annotated]) -> Annotated:
    """One conversation out of several, one after another, with all their questions."""
    messages: list[tuple[str, str]] = []
    questions: list[Question] = []
    for part in parts:
        offset = len(messages)
        messages += part.messages
        questions += [
            Question(one.text, one.category, tuple(index + offset for index in one.evidence))
            for one in part.questions
        ]
    return Annotated(
        "+".join(part.name for part in parts),
        tuple(messages),
        tuple(questions),
        sum(part.left_out for part in parts),
        sum(part.unknown for part in parts),
    )


def measure_recall(
    conversations: Sequence[Annotated],
    budget: int,
    tell: Callable[[int], None] | None = None,
    *,
    framed: bool = False,
) -> Report:
    """Ask every question, with a budget in characters. tell: called after each with the number
    asked so far. framed: each line also costs LINE_CHARS."""
    report = Report(budget, LINE_CHARS if framed else 0)
    for conversation in conversations:
        with TemporaryDirectory(prefix="foldgate-recall-") as folder:
            store = Store(f"sqlite:///{Path(folder) / 'recall.db'}")
            store.open()
            try:
                _measure(store, conversation, report, tell)
            finally:
                store.close()
    return report


def _measure(
    store: Store, conversation: Annotated, report: Report, tell: Callable[[int], None] | None
) -> None:
    pk, head = store.writing(_keep, conversation)
    while store.writing(search.index_path, pk, head.pk):
        pass
    ages = _ages(conversation.messages)
    report.messages += len(ages)
    report.chars += sum(len(text) for _, text in conversation.messages)
    report.left_out += conversation.left_out
    report.unknown += conversation.unknown
    for question in conversation.questions:
        ask = Ask(
            pk,
            head,
            head.depth,
            question.text,
            budget=report.budget,
            line_chars=report.line_chars,
        )
        started = time.perf_counter()
        passages = store.reading(recall, ask)
        report.times.append((time.perf_counter() - started) * 1_000)
        report.costs.append(sum(len(passage.text) + report.line_chars for passage in passages))
        report.nothing += not passages
        _count(report, question, {p.depth - 1 for p in passages if p.whole}, ages)
        if tell is not None:
            tell(len(report.recalls))


def _count(report: Report, question: Question, shown: set[int], ages: Sequence[int]) -> None:
    total = len(question.evidence)
    met = [index in shown for index in question.evidence]
    report.recalls.append(sum(met) / total)
    # The age of a line is what was said from its beginning on: it must fit as a whole.
    near = sum(ages[index] <= report.budget for index in question.evidence)
    report.windows.append(near / total)
    report.lines.add(total, sum(met))
    report.categories.setdefault(question.category, Tally()).add(total, sum(met))
    for index, is_shown in zip(question.evidence, met, strict=True):
        start = max(edge for edge in (0, *_AGES) if edge == 0 or ages[index] > edge)
        report.ages.setdefault(start, Tally()).add(1, int(is_shown))


def _ages(messages: Sequence[tuple[str, str]]) -> list[int]:
    """For each message the characters from its beginning to the end of the conversation."""
    ages, so_far = [], 0
    for _, text in reversed(messages):
        so_far += len(text)
        ages.append(so_far)
    return ages[::-1]


def _keep(connection: Connection, conversation: Annotated) -> tuple[int, transcript.Node]:
    """Store the conversation as turns would; its row number and last message."""
    owner = transcript.ensure_owner(connection, "eval", "", 0)
    made = transcript.create_conversation(connection, owner, alias=None, model="eval", now_ms=0)
    messages = [{"role": role, "content": text} for role, text in conversation.messages]
    new = [to_new_message(m, canonical_message(m), _IMAGE_CHARS) for m in messages]
    return made.pk, transcript.append_messages(connection, made, None, new, 0)[-1]


def _read(path: Path) -> list[Annotated]:
    try:
        value = loads(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error
    except NotJson as error:
        raise ConfigurationError(f"{path}: not JSON: {error}") from error
    try:
        return [_annotate(name, sample) for name, sample in read_samples(value, path.stem)]
    except NotLocomo as error:
        raise ConfigurationError(f"{path}: {error}") from error


def _annotate(name: str, sample: dict[str, Any]) -> Annotated:
    """One conversation. Raises NotLocomo where it has no line, or no question about its lines."""
    lines = read_lines(sample)
    places = {line.id: index for index, line in enumerate(lines) if line.id}
    questions, left_out, unknown = [], 0, 0
    for row in read_questions(sample):
        known = tuple(places[id] for id in row.evidence if id in places)
        unknown += len(row.evidence) - len(known)
        left_out += not known
        if known:
            questions.append(Question(row.question, row.category, known))
    if not questions:
        raise NotLocomo(f"{name} has no question (qa) whose evidence names one of its lines")
    messages = tuple((line.role, line.text) for line in lines)
    return Annotated(name, messages, tuple(questions), left_out, unknown)


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def _mean(values: Sequence[float]) -> float:
    return round(fmean(values), 4) if values else 0.0


def _p95(times: Sequence[float]) -> float:
    return quantiles(times, n=20)[-1] if len(times) > 1 else sum(times)
