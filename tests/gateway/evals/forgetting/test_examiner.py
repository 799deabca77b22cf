"""Who questions, answers and grades: bounded draws, other forms where one is refused, windows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.backends.base import Call, Completion
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.evals.forgetting.exam import Question
from gateway.evals.forgetting.examiner import DRAWS, CodeExaminer, ModelExaminer, Scene
from gateway.evals.forgetting.facts import Fact
from gateway.evals.forgetting.state import Recorded, RunStopped, State
from policies.values import Line

LINES = [Line("Ann", f"In town {n} I bought {n}00 apples for the fair.") for n in range(1, 9)]
MEMORY = Scene([{"role": "assistant", "content": "Ann bought apples."}])
QUESTION = Question("What did Ann buy?", "apples")


class Model:
    """A backend that says what a function tells it to."""

    name, local, image_chars, can_prefill = "m", True, 0, False
    window_tokens = off_reason = slot_care = None

    def __init__(
        self, say: Callable[[Call], str], *, kind: str = "llama_cpp", window: int | None = None
    ) -> None:
        self.kind, self._say, self._window = kind, say, window
        self.calls: list[Call] = []
        self.drops: tuple[str, ...] = ()

    async def window(self) -> int | None:
        return self._window

    def dropped_params(self, params: dict[str, Any]) -> tuple[str, ...]:
        return self.drops

    async def complete(self, call: Call) -> Completion:
        self.calls.append(call)
        message = {"role": "assistant", "content": self._say(call)}
        parsed = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return Completion(json.dumps(parsed).encode(), parsed)


def examiner(model: Model, count: int = 2) -> ModelExaminer:
    return ModelExaminer(Recorded(model, State()), count, State())  # type: ignore[arg-type]


def exam(*numbers: int) -> str:
    rows = [{"question": f"How many in town {n}?", "answer": f"{n}00 apples"} for n in numbers]
    return json.dumps({"questions": rows})


async def test_at_zero_first_and_warmer_where_what_came_could_not_be_read() -> None:
    says = iter(["no", exam(1), exam(1, 2)])
    model = Model(lambda call: next(says))
    one = examiner(model)
    questions = await one.write("k", 0, LINES)
    assert [question.answer for question in questions] == ["100 apples", "200 apples"]
    assert [call.params["temperature"] for call in model.calls] == [0.0, 0.5, 0.5]
    assert len({call.params["seed"] for call in model.calls}) == 3
    # The first was no exam; one good question of two is missing after the second.
    assert (one.tally.malformed, one.tally.missing, one.tally.calls) == (1, 0, 3)
    assert "Write 1 exam questions" in json.loads(model.calls[2].messages[0])["content"]


async def test_what_nobody_writes_is_missing_after_some_draws() -> None:
    model = Model(lambda call: "no")
    one = examiner(model)
    assert await one.write("k", 0, LINES) == []
    assert (len(model.calls), one.tally.malformed, one.tally.missing) == (DRAWS, DRAWS, 2)
    assert await one.answer("a", QUESTION, MEMORY) == "no"
    silent = examiner(Model(lambda call: "{}"))
    assert await silent.answer("a", QUESTION, MEMORY) is None
    assert silent.tally.malformed == DRAWS
    assert not await silent.grade("g", QUESTION, "apples")
    assert silent.tally.malformed == 2 * DRAWS


async def test_who_does_not_know_is_wrong_without_a_grader() -> None:
    model = Model(lambda call: json.dumps({"grade": "right"}))
    one = examiner(model)
    assert not await one.grade("g", QUESTION, "UNKNOWN")
    assert not await one.grade("h", QUESTION, None)
    assert model.calls == []
    assert await one.grade("i", QUESTION, "Apples.")


async def test_a_small_window_gets_a_span_in_parts() -> None:
    model = Model(lambda call: exam(*range(1, 9)), window=1_000)
    one = examiner(model)
    await one.write("k", 0, LINES * 4)
    sizes = [len(json.loads(call.messages[0])["content"]) for call in model.calls]
    assert len(sizes) == 2
    assert max(sizes) < 3_000
    asked = [json.loads(call.messages[0])["content"] for call in model.calls]
    assert all("Write 1 exam questions" in text for text in asked)


async def test_a_window_that_was_smaller_than_it_said_gets_smaller_parts() -> None:
    def say(call: Call) -> str:
        if len(call.messages[0]) > 1_500:
            raise UpstreamFault(FaultKind.OVERFLOW, "too long")
        return exam(*range(1, 9))

    one = examiner(Model(say))
    assert len(await one.write("k", 0, LINES)) == 2


async def test_no_window_at_all_ends_the_run() -> None:
    def say(call: Call) -> str:
        raise UpstreamFault(FaultKind.OVERFLOW, "too long")

    with pytest.raises(RunStopped, match="too small to write questions"):
        await examiner(Model(say)).write("k", 0, LINES)
    with pytest.raises(RunStopped, match="does not hold the memory"):
        await examiner(Model(say)).answer("k", QUESTION, MEMORY)
    long = [Line("A" * 900, "x")]
    with pytest.raises(RunStopped, match="m: "):
        await examiner(Model(say, window=100)).write("k", 0, long)


async def test_who_refuses_a_schema_is_asked_for_any_object_and_then_in_words() -> None:
    def say(call: Call) -> str:
        if "response_format" in call.params:
            raise UpstreamFault(FaultKind.BAD_REQUEST, "what?")
        return json.dumps({"answer": "apples"})

    model = Model(say)
    one = examiner(model)
    assert await one.answer("a", QUESTION, MEMORY) == "apples"
    forms = [(call.params.get("response_format") or {}).get("type") for call in model.calls]
    assert forms == ["json_schema", "json_object", None]
    assert await one.answer("b", QUESTION, MEMORY) == "apples"
    assert len(model.calls) == 4


async def test_a_refusal_of_the_content_is_an_answer_of_no_use() -> None:
    def say(call: Call) -> str:
        raise UpstreamFault(FaultKind.REFUSED, "no")

    one = examiner(Model(say, kind="litellm"))
    assert await one.answer("a", QUESTION, MEMORY) is None
    assert one.tally.malformed == DRAWS


async def test_a_provider_is_asked_for_any_object_without_a_seed() -> None:
    model = Model(lambda call: json.dumps({"answer": "apples"}), kind="litellm")
    await examiner(model).answer("a", QUESTION, MEMORY)
    assert model.calls[0].params == {
        "temperature": 0.0,
        "response_format": {"type": "json_object"},
    }
    # It may think aloud first.
    assert model.calls[0].max_tokens > 4_000
    model.drops = ("response_format",)
    await examiner(model).answer("b", QUESTION, MEMORY)
    assert model.calls[1].params == {"temperature": 0.0}


async def test_code_asks_for_statements_and_finds_their_words() -> None:
    facts = [Fact(n, "Ann", (f"Aa{n}", f"Bb{n}"), (f"Aa{n}", f"Bb{n}"), "en") for n in range(3)]
    one = CodeExaminer([facts], 4)
    questions = await one.write("k", 0, [])
    assert len(questions) == 3
    assert one.tally.missing == 1
    shown = Scene([{"role": "assistant", "content": "aa0 and BB0"}], "Aa1 … Bb1")
    answers = [await one.answer("a", question, shown) for question in questions]
    assert answers == ["Bb0", "Bb1", None]
    grades = [
        await one.grade("g", question, answer)
        for question, answer in zip(questions, answers, strict=True)
    ]
    assert grades == [True, True, False]


def exams(*answers: str) -> list[Question]:
    return [Question(f"Question {n}?", answer) for n, answer in enumerate(answers)]


async def test_a_grader_is_checked_with_answers_whose_grade_is_known() -> None:
    def strict(call: Call) -> str:
        prompt = json.loads(call.messages[0])["content"]
        quoted = [part.split("[end record")[0] for part in prompt.split("[begin record ")[1:]]
        right, given = (text.partition("\n")[2] for text in quoted[1:])
        return json.dumps({"grade": "right" if right == given else "wrong"})

    questions = exams("green boats", "twelve apples", "green paint", "UNKNOWN")
    control = await examiner(Model(strict)).check("c", questions)
    assert (control.checked, control.right_refused, control.wrong_passed) == (4, 1, 0)
    kind = await examiner(Model(lambda call: '{"grade": "right"}')).check("c", questions[:3])
    assert (kind.checked, kind.right_refused, kind.wrong_passed) == (3, 0, 3)
    assert kind.is_blind and not control.is_blind


async def test_a_grader_is_checked_with_a_few_questions_only_and_never_with_their_like() -> None:
    model = Model(lambda call: '{"grade": "wrong"}')
    many = exams(*(f"Velm{chr(97 + n % 20)}{chr(100 + n // 20)}or" for n in range(40)))
    control = await examiner(model).check("c", many)
    assert (control.checked, len(model.calls), control.right_refused) == (8, 16, 8)
    alike = await examiner(model).check("d", exams("green boats", "boats of green"))
    assert alike.checked == 0 and not alike.is_blind
    assert (await CodeExaminer([], 1).check("e", many)).checked == 0
