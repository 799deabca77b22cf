"""Who questions, answers and grades: a model, or code that looks for the words of statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from gateway.backends.base import Call
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.evals.forgetting import exam
from gateway.evals.forgetting.exam import Asked, Question
from gateway.evals.forgetting.facts import Fact, ask_about, fold_text
from gateway.evals.forgetting.state import Recorded, RunStopped, State
from gateway.prompts.summary import render_lines
from policies.budget import first_ratio
from policies.chapters import group_lines
from policies.ledger.content import content
from policies.retries import draw_share
from policies.values import Line

CHECKS = 8
"""Questions by which a grader is checked."""

DRAWS = 3
"""How often a model is asked for one thing before what came is counted and left."""

_WARMER = 0.5
"""The temperature of what is asked again: at 0 the same words would come."""

_MARGIN_TOKENS = 300
_LEAST_CHARS = 400
_THINKING_TOKENS = 4_096
"""Beside the answer, for models that cannot be kept from thinking aloud."""


@dataclass(slots=True)
class Tally:
    """malformed: outputs that could not be read, or questions that were no use. calls: those that
    the figures rest on. missing: questions that nobody wrote."""

    malformed: int = 0
    calls: int = 0
    missing: int = 0


@dataclass(slots=True)
class Control:
    """How a grader does where the grade is known. checked: questions, each with its own right
    answer and with the answer to another one; right_refused, wrong_passed: graded wrongly."""

    checked: int = 0
    right_refused: int = 0
    wrong_passed: int = 0

    @property
    def is_blind(self) -> bool:
        """Whether its grades say little: more than a fifth of them are wrong."""
        return self.right_refused + self.wrong_passed > 2 * self.checked / 5


@dataclass(frozen=True, slots=True)
class Scene:
    """What somebody is shown who is asked a question."""

    memory: Sequence[Mapping[str, Any]]
    notes: str = ""

    @property
    def text(self) -> str:
        return "\n".join([*(str(message["content"]) for message in self.memory), self.notes])


class Examiner(Protocol):
    """key: names the question, span or grade, and draws the seeds. Counts what it does in tally."""

    tally: Tally

    async def write(self, key: str, span: int, lines: Sequence[Line]) -> list[Question]: ...

    async def answer(self, key: str, question: Question, scene: Scene) -> str | None: ...

    async def grade(self, key: str, question: Question, answer: str | None) -> bool: ...

    async def check(self, key: str, questions: Sequence[Question]) -> Control: ...


@dataclass(slots=True)
class CodeExaminer:
    """Asks for the statements of a span; an answer is right where all words of the statement stand
    in what is shown."""

    facts: Sequence[Sequence[Fact]]
    count: int
    tally: Tally = field(default_factory=Tally)
    _asked: dict[str, Fact] = field(default_factory=dict)

    async def write(self, key: str, span: int, lines: Sequence[Line]) -> list[Question]:
        chosen = ask_about(self.facts[span], self.count)
        self.tally.missing += self.count - len(chosen)
        self._asked.update((fact.question, fact) for fact in chosen)
        return [Question(fact.question, fact.answer) for fact in chosen]

    async def answer(self, key: str, question: Question, scene: Scene) -> str | None:
        fact = self._asked[question.text]
        return fact.answer if fact.stands_in(fold_text(scene.text)) else None

    async def grade(self, key: str, question: Question, answer: str | None) -> bool:
        return answer == question.answer

    async def check(self, key: str, questions: Sequence[Question]) -> Control:
        """Nothing: words stand there or they do not."""
        return Control()


class ModelExaminer:
    """Asks a backend: at temperature 0 first, warmer where what came could not be read."""

    def __init__(self, backend: Recorded, count: int, state: State) -> None:
        self.tally = Tally()
        self._backend = backend
        self._count = count
        self._state = state
        self._form = "schema" if backend.kind == "llama_cpp" else "object"

    async def write(self, key: str, span: int, lines: Sequence[Line]) -> list[Question]:
        limit = await self._limit(lines)
        for _ in range(DRAWS):
            try:
                return await self._write(key, lines, limit)
            except _TooLong:
                limit //= 2
        raise RunStopped(f"{self._backend.name}: its window is too small to write questions")

    async def _write(self, key: str, lines: Sequence[Line], limit: int) -> list[Question]:
        try:
            groups = group_lines(lines, limit)
        except ValueError as error:
            raise RunStopped(f"{self._backend.name}: {error}") from error
        found: list[Question] = []
        for number, (group, share) in enumerate(_share_out(groups, self._count)):
            found += await self._draw_questions(f"{key}.{number}", render_lines(group), share)
        found = list({question.text: question for question in found}.values())
        self.tally.missing += self._count - len(found)
        rows = [{"question": each.text, "answer": each.answer} for each in found]
        self._state.add("questions", key, rows)
        return found

    async def _draw_questions(self, key: str, text: str, count: int) -> list[Question]:
        found: dict[str, Question] = {}
        for draw in range(DRAWS):
            output = await self._ask(key, exam.ask_questions(text, count - len(found)), draw)
            told, bad = exam.read_questions(output or "", text)
            self.tally.malformed += bad
            found.update((question.text, question) for question in told)
            if len(found) >= count:
                break
        return list(found.values())[:count]

    async def answer(self, key: str, question: Question, scene: Scene) -> str | None:
        asked = exam.ask_answer(scene.memory, scene.notes, question.text)
        for draw in range(DRAWS):
            answer = exam.read_answer(await self._ask_short(key, asked, draw))
            if answer is not None:
                break
            self.tally.malformed += 1
        self._state.add("answer", key, answer)
        return answer

    async def grade(self, key: str, question: Question, answer: str | None) -> bool:
        """What nobody could answer, or in no readable way, is wrong without being asked."""
        grade: bool | None = None
        if answer is not None and not exam.is_unknown(answer):
            asked = exam.ask_grade(question, answer)
            for draw in range(DRAWS):
                grade = exam.read_grade(await self._ask_short(key, asked, draw))
                if grade is not None:
                    break
                self.tally.malformed += 1
        self._state.add("grade", key, grade or False)
        return grade or False

    async def check(self, key: str, questions: Sequence[Question]) -> Control:
        """Have some answers graded whose grade is known, spread over all questions."""
        control = Control()
        step = max(1, -(-len(questions) // CHECKS))
        for number, question in enumerate(questions[::step]):
            other = _unlike(question, questions)
            if other is None:
                continue
            control.checked += 1
            is_right = await self.grade(f"{key}.{number}/right", question, question.answer)
            control.right_refused += not is_right
            control.wrong_passed += await self.grade(f"{key}.{number}/wrong", question, other)
        return control

    async def _ask_short(self, key: str, asked: Asked, draw: int) -> str:
        try:
            return await self._ask(key, asked, draw) or ""
        except _TooLong as error:
            raise RunStopped(
                f"{self._backend.name}: its window does not hold the memory and a question"
            ) from error

    async def _limit(self, lines: Sequence[Line]) -> int:
        """Characters of a record in one prompt."""
        text = render_lines(lines)
        window = await self._backend.window()
        if window is None:
            return max(_LEAST_CHARS, len(text) + 3 * len(lines) + 1)
        asked = exam.ask_questions("", self._count)
        fixed = len(asked.messages[0]) // 3 + self._most(asked) + _MARGIN_TOKENS
        return max(_LEAST_CHARS, int((window - fixed) * first_ratio(text)))

    async def _ask(self, key: str, asked: Asked, draw: int) -> str | None:
        """What the model said; None where the backend gave nothing. Raises _TooLong."""
        while True:
            try:
                return await self._complete(key, asked, draw)
            except UpstreamFault as fault:
                if fault.kind is FaultKind.OVERFLOW:
                    raise _TooLong from fault
                if fault.kind is not FaultKind.BAD_REQUEST or self._form == "plain":
                    return None
            # A refused request is other bytes the next time, for this call and those after it.
            self._form = "object" if self._form == "schema" else "plain"

    async def _complete(self, key: str, asked: Asked, draw: int) -> str:
        seed = int(draw_share(f"{key}:{draw}") * 2**31)
        params: dict[str, Any] = {"temperature": _WARMER if draw else 0.0, **self._demand(asked)}
        if self._backend.kind == "llama_cpp":
            params |= {"seed": seed, "chat_template_kwargs": {"enable_thinking": False}}
        call = Call(
            messages=asked.messages,
            params=params,
            stream=False,
            max_tokens=self._most(asked),
            purpose="auxiliary",
            request_id=f"{key}#{draw}",
        )
        self.tally.calls += 1
        completion = await self._backend.complete(call)
        choices = completion.parsed.get("choices") or [{}]
        content = (choices[0].get("message") or {}).get("content")
        return content if isinstance(content, str) else ""

    def _most(self, asked: Asked) -> int:
        if self._backend.kind == "llama_cpp":
            return asked.most
        return asked.most + _THINKING_TOKENS

    def _demand(self, asked: Asked) -> dict[str, Any]:
        """How JSON is demanded; in words alone where the backend passes nothing else on."""
        form: dict[str, Any] = {"type": "json_object"}
        if self._form == "schema":
            schema = {"name": "exam", "strict": True, "schema": asked.schema}
            form = {"type": "json_schema", "json_schema": schema}
        demand = {"response_format": form}
        return {} if self._form == "plain" or self._backend.dropped_params(demand) else demand


def _unlike(question: Question, questions: Sequence[Question]) -> str | None:
    """The answer to another question that shares nothing with this one's."""
    mine = content(question.answer)
    place = questions.index(question)
    others = (*questions[place + 1 :], *questions[:place])
    found = (each.answer for each in others if mine and not mine & content(each.answer))
    return next(found, None)


class _TooLong(Exception):
    """A prompt that the window does not hold."""


def _share_out(groups: Sequence[Sequence[Line]], count: int) -> list[tuple[Sequence[Line], int]]:
    """How many of the questions each group gets; where there are more groups than questions, so
    many groups spread over the span."""
    if len(groups) > count:
        groups = [groups[place * len(groups) // count] for place in range(count)]
    total = len(groups)
    return [
        (group, count * (place + 1) // total - count * place // total)
        for place, group in enumerate(groups)
    ]
