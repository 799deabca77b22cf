"""One run: every conversation, every repeat, every mode, every question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

import policies.judge
import policies.ledger.grounding
from gateway.backends.base import Backend
from gateway.errors import ConfigurationError
from gateway.evals.forgetting.exam import Question
from gateway.evals.forgetting.examiner import CodeExaminer, Examiner, ModelExaminer, Scene
from gateway.evals.forgetting.facts import Fact, find_facts, thin
from gateway.evals.forgetting.fingerprint import take_fingerprint
from gateway.evals.forgetting.keeping import Keeper
from gateway.evals.forgetting.memory import (
    RECALL,
    Memory,
    Talk,
    find_notes,
    memory_of,
    remember,
    stored_talk,
    write_chapters,
)
from gateway.evals.forgetting.report import Graded, ModeReport, Report
from gateway.evals.forgetting.spans import ages_of
from gateway.evals.forgetting.state import Recorded, State
from gateway.evals.forgetting.writers import Writer
from policies.language import language_of
from policies.schema import Policy
from policies.values import Line

PINNED = (policies.judge, policies.ledger.grounding)
"""Loaded at once, where else they are loaded when first needed: what is judged at the end of a run
is judged by the code of its beginning."""

Messages = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Options:
    """spans: the most that are folded, None: all. keep: the share that a summarizer without a model
    keeps, None: `writer` summarizes. examiner: who questions, answers and grades; None: code does.
    tell: progress, in words."""

    policy: Policy
    modes: Sequence[str]
    writer: Backend | None
    examiner: Backend | None
    clock: Callable[[], float]
    spans: int | None = None
    questions: int = 8
    repeats: int = 1
    keep: float | None = None
    seed: int = 0
    tell: Callable[[str], None] = field(default=lambda said: None)


def fingerprint_of(
    conversations: Sequence[Messages], options: Options, people: Mapping[str, str]
) -> dict[str, str]:
    """What of a run may not change while it is resumed. people: as the configuration names them."""
    told = {**people, "seed": str(options.seed)}
    if options.keep is not None:
        told["keep"] = f"{options.keep:g}"
    return take_fingerprint(options.policy, told, conversations)


async def run(conversations: Sequence[Messages], options: Options, state: State) -> Report:
    """The figures. Raises RunStopped where a backend cannot be asked, ConfigurationError where
    nothing of a conversation would be folded."""
    report = Report(modes={mode: ModeReport() for mode in options.modes})
    for number, messages in enumerate(conversations, 1):
        await _Course(options, state, report, number).play(messages)
    return report


@dataclass(slots=True)
class _Course:
    """One conversation."""

    options: Options
    state: State
    report: Report
    number: int

    async def play(self, messages: Messages) -> None:
        options = self.options
        with self._stored(messages) as talk:
            lines = [talk.lines_of(span) for span in talk.plan.spans]
            self._check(talk)
            facts = self._find_facts(lines)
            summarizer, asked = self._writer(facts), self._asked()
            writer = Writer(summarizer, options.policy, self.state, options.clock)
            examiner = self._examiner(facts, asked)
            questions = await self._write_questions(examiner, lines)
            self._count(talk, questions, examiner)
            await self._check_grader(examiner, questions)
            await self._repeat(1, talk, questions, writer, examiner)
        for repeat in range(2, options.repeats + 1):
            with self._stored(messages) as talk:
                await self._repeat(repeat, talk, questions, writer, examiner)
        self._close(writer, examiner)
        self.report.asked_now += summarizer.asked + (asked.asked if asked else 0)

    def _stored(self, messages: Messages) -> AbstractContextManager[Talk]:
        options = self.options
        is_searched = RECALL in options.modes
        return stored_talk(messages, options.policy, options.spans, is_searched=is_searched)

    def _check(self, talk: Talk) -> None:
        if talk.plan.spans:
            return
        chars = sum(row.chars for row in talk.rows)
        view = self.options.policy.view
        raise ConfigurationError(
            f"conversation {self.number} ({chars:,} characters) is too short: the policy "
            f"{self.options.policy.name} folds nothing of it (start: {view.start:,} {view.unit}); "
            "name a policy with a smaller view, or join more files"
        )

    def _find_facts(self, lines: Sequence[Sequence[Line]]) -> list[list[Fact]]:
        options = self.options
        if options.examiner is not None and options.keep is None:
            return []
        languages = [language_of("\n".join(line.text for line in each)) or "en" for each in lines]
        facts = find_facts(lines, languages)
        if options.keep is None:
            return facts
        return thin(facts, options.keep, options.policy.chapters.length)

    def _writer(self, facts: Sequence[Sequence[Fact]]) -> Recorded:
        options = self.options
        if options.keep is not None:
            every = [fact for told in facts for fact in told]
            return Recorded(Keeper(every, options.keep, options.seed), self.state)
        assert options.writer is not None, "without a share to keep somebody must summarize"
        return Recorded(options.writer, self.state)

    def _asked(self) -> Recorded | None:
        examiner = self.options.examiner
        return None if examiner is None else Recorded(examiner, self.state)

    def _examiner(self, facts: Sequence[Sequence[Fact]], asked: Recorded | None) -> Examiner:
        count = self.options.questions
        if asked is None:
            return CodeExaminer(facts, count)
        return ModelExaminer(asked, count, self.state)

    async def _write_questions(
        self, examiner: Examiner, lines: Sequence[Sequence[Line]]
    ) -> list[list[Question]]:
        written = []
        for place, each in enumerate(lines):
            self.options.tell(f"conversation {self.number}: questions {place + 1} of {len(lines)}")
            written.append(await examiner.write(self._key(f"questions {place + 1}"), place, each))
        return written

    def _key(self, name: str) -> str:
        return f"{self.number}/{self.options.seed}/{name}"

    def _count(
        self, talk: Talk, questions: Sequence[Sequence[Question]], examiner: Examiner
    ) -> None:
        report, plan = self.report, talk.plan
        report.conversations += 1
        report.spans += len(plan.spans)
        report.span_chars += [span.chars for span in plan.spans]
        report.tail_chars += sum(row.chars for row in talk.rows[plan.border : plan.last])
        report.questions += sum(map(len, questions))
        report.missing += examiner.tally.missing

    async def _check_grader(
        self, examiner: Examiner, questions: Sequence[Sequence[Question]]
    ) -> None:
        every = [question for each in questions for question in each]
        found = await examiner.check(self._key("check"), every)
        control = self.report.control
        control.checked += found.checked
        control.right_refused += found.right_refused
        control.wrong_passed += found.wrong_passed

    async def _repeat(
        self,
        repeat: int,
        talk: Talk,
        questions: Sequence[Sequence[Question]],
        writer: Writer,
        examiner: Examiner,
    ) -> None:
        key = self._key(f"{repeat}")
        where = f"conversation {self.number}, repeat {repeat} of {self.options.repeats}"
        self.options.tell(f"{where}: {len(talk.plan.spans)} chapters")
        self.report.stand_ins += await write_chapters(talk, writer, key)
        memories: dict[str, Memory] = {}
        for mode, report in self.report.modes.items():
            self.options.tell(f"{where}: {mode}")
            before = _work_of(writer, examiner)
            if memory_of(mode) not in memories:
                memories[memory_of(mode)] = await remember(talk, memory_of(mode), writer, key)
            memory = memories[memory_of(mode)]
            report.memory_chars.append(len(memory.text))
            sitting = _Sitting(talk, memory, mode, report, examiner, repeat)
            await sitting.ask(questions, f"{key}/{mode}")
            calls, malformed = _work_of(writer, examiner)
            report.calls += calls - before[0]
            report.malformed += malformed - before[1]

    def _close(self, writer: Writer, examiner: Examiner) -> None:
        calls, malformed = _work_of(writer, examiner)
        self.report.calls += calls
        self.report.malformed += malformed
        for reason, count in writer.counts.rejected.items():
            self.report.rejected[reason] = self.report.rejected.get(reason, 0) + count


@dataclass(frozen=True, slots=True)
class _Sitting:
    """All questions, before one memory."""

    talk: Talk
    memory: Memory
    mode: str
    report: ModeReport
    examiner: Examiner
    repeat: int

    async def ask(self, questions: Sequence[Sequence[Question]], key: str) -> None:
        spans = self.talk.plan.spans
        for place, (span, age) in enumerate(zip(spans, ages_of(spans), strict=True)):
            where = self.memory.where(span)
            for number, question in enumerate(questions[place], 1):
                notes = find_notes(self.talk, question.text) if self.mode == RECALL else ""
                self.report.notes_chars.append(len(notes))
                scene = Scene(self.memory.messages, notes)
                name = f"{key}/{place + 1}.{number}"
                answer = await self.examiner.answer(f"{name}/answer", question, scene)
                right = await self.examiner.grade(f"{name}/grade", question, answer)
                self.report.grades.append(Graded(self.repeat, age, where, right))


def _work_of(writer: Writer, examiner: Examiner) -> tuple[int, int]:
    """(calls, outputs that were no use) so far."""
    calls = writer.counts.asked + examiner.tally.calls
    return calls, sum(writer.counts.rejected.values()) + examiner.tally.malformed
