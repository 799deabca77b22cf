"""Whole runs: the shape of forgetting with a known rate, and runs that go on where they were."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.base import Call
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.scripted import Scripted
from gateway.cli.eval_forgetting import MODES
from gateway.errors import ConfigurationError
from gateway.evals.forgetting.memory import find_notes, stored_talk
from gateway.evals.forgetting.report import Report
from gateway.evals.forgetting.run import Options, run
from gateway.evals.forgetting.state import FILE, RunStopped, State, open_state
from policies.schema import Policy, ScriptedBackend
from tests.gateway.evals.long_talks import TONGUES, make_talk

SPACED = {"start": 24_000, "ceiling": 30_000, "headroom": 9_000, "keep": 8_000}
DENSE = {"start": 14_000, "ceiling": 18_000, "headroom": 5_000, "keep": 4_000}


def policy(view: Mapping[str, int] = SPACED, **more: Any) -> Policy:
    parts = {
        "view": view,
        "chapters": {"length": 1_100, "split": 20_000, "stack": 3_300},
        "gist": {"length": 1_500},
        "summaries": {"rounds": 1},
        **more,
    }
    return Policy.model_validate({"name": "p", **parts})


def options(**more: Any) -> Options:
    given = {"policy": policy(), "modes": MODES, "writer": None, "examiner": None}
    return Options(**{**given, "clock": lambda: 0.0, **more})


def play(talk: Sequence[tuple[str, str]], state: State | None = None, **more: Any) -> Report:
    return asyncio.run(run([talk], options(**more), state or State()))


def shares(report: Report, mode: str, where: str) -> list[float]:
    return [row["share"] for row in report.modes[mode].by_span() if row["where"] == where]


def test_half_is_kept_in_the_stack_nothing_lasts_in_a_rewritten_summary_and_recall_finds_it() -> (
    None
):
    """The shape that was published of a production service: a summary that is rewritten each time
    knows next to nothing beyond the newest spans, stacked chapters stay flat at about half."""
    talk = make_talk(110_000, seed=11)
    report = play(talk, keep=0.5, repeats=6)
    figures = report.as_json()["modes"]
    assert report.spans >= 8 and report.questions == 8 * report.spans
    assert (report.rejected, report.stand_ins, report.missing) == ({}, 0, 0)
    for mode in ("rolling", "rolling-long"):
        newest, second, *older = [row["share"] for row in figures[mode]["by_span"]]
        # What was folded k spans ago was kept k times: 0.5, 0.25, … within chance (48 questions).
        assert 0.3 <= newest <= 0.7
        assert 0.1 <= second <= 0.45
        assert max(older[2:]) <= 0.1
        assert figures[mode]["by_where"]["gist"] <= 0.12
    stacked = shares(report, "generational", "stack")
    assert len(stacked) >= 2
    assert all(0.3 <= share <= 0.7 for share in stacked)
    assert 0.4 <= figures["generational"]["by_where"]["stack"] <= 0.6
    # The gist has no room for half of what it reads, and still knows more than the others.
    assert figures["generational"]["by_where"]["gist"] > figures["rolling"]["by_where"]["gist"]
    recalled = figures["generational+recall"]["by_span"]
    assert min(row["share"] for row in recalled) >= 0.9
    for mode in figures.values():
        spread = mode["spread"]
        assert spread["min"] <= mode["mean"] <= spread["max"]
        assert (spread["stdev"] > 0) == (spread["min"] < spread["max"])
        assert mode["questions"] == 6 * report.questions


@pytest.mark.parametrize("language", [name for name in TONGUES if name != "en"])
def test_the_shape_is_the_same_in_other_languages(language: str) -> None:
    view = DENSE if language in ("ja", "zh", "ko") else SPACED
    talk = make_talk(45_000 if view is DENSE else 80_000, seed=5, language=language)
    figures = play(talk, policy=policy(view), keep=0.5, repeats=2).as_json()
    modes = figures["modes"]
    assert figures["stand_ins"] == 0
    assert 0.35 <= modes["generational"]["by_where"]["stack"] <= 0.65
    assert modes["rolling"]["by_where"]["gist"] <= 0.2
    assert min(row["share"] for row in modes["generational+recall"]["by_span"]) >= 0.9


def test_who_keeps_everything_forgets_only_what_a_gist_has_no_room_for() -> None:
    report = play(make_talk(60_000, seed=2), keep=1.0)
    assert set(shares(report, "generational", "stack")) == {1.0}
    assert shares(report, "rolling", "stack") == [1.0]


def test_another_seed_draws_otherwise_and_the_same_one_does_not() -> None:
    talk = make_talk(60_000, seed=2)
    one, same, other = (
        play(talk, keep=0.5, modes=("generational",), seed=seed).as_json()["modes"]
        for seed in (1, 1, 2)
    )
    assert one == same
    assert one != other


def test_the_shipped_scripted_backend_is_examined_by_code() -> None:
    """Its accounts name a few words of what was said; that it refuses a share is counted."""
    config = ScriptedBackend(latency=0, refusals=30, truncations=0)
    report = play(make_talk(60_000, seed=2), writer=Scripted("rehearsal", config), spans=3)
    figures = report.as_json()
    assert (figures["spans"], figures["questions"]) == (3, 24)
    assert figures["rejected"]["refusal"] > 0
    assert figures["malformed"] == sum(figures["rejected"].values())
    assert figures["modes"]["generational+recall"]["mean"] >= 0.9
    assert figures["calls"] == figures["asked_now"] > 3


def test_where_nobody_summarizes_stand_ins_do_and_are_counted() -> None:
    """As in a live view: extracts in place of chapters, and in place of a gist when there are too
    many of them."""
    config = ScriptedBackend(latency=0, refusals=100, truncations=0)
    writer = Scripted("rehearsal", config)
    report = play(make_talk(90_000, seed=2), writer=writer, modes=("generational",))
    assert report.stand_ins == report.spans >= 7
    assert set(report.rejected) == {"refusal"}
    assert shares(report, "generational", "gist")


def test_notes_stay_within_the_budget_of_the_policy() -> None:
    talk = make_talk(50_000, seed=3)
    question = "What did the user say about the bakery with ovens, silver coins and the printer?"
    for budget in (0, 250, 600, 900, 1_500):
        chosen = policy(recall={"budget": budget})
        with stored_talk(talk, chosen, 2, is_searched=True) as stored:
            notes = find_notes(stored, question)
        assert len(notes) <= budget
        assert bool(notes) == (budget > 300)


def test_what_is_too_short_to_be_folded_is_told() -> None:
    with pytest.raises(ConfigurationError, match=r"too short: the policy p folds nothing"):
        play(make_talk(5_000), keep=0.5)


def test_conversations_are_measured_apart_and_summed() -> None:
    talks = [make_talk(50_000, seed=seed) for seed in (1, 2)]
    chosen = options(keep=0.5, modes=("generational",), spans=2)
    report = asyncio.run(run(talks, chosen, State()))
    assert (report.conversations, report.spans, report.questions) == (2, 4, 32)
    assert [row["questions"] for row in report.modes["generational"].by_span()] == [16, 16]


# -- going on where it was ------------------------------------------------------------------------


class Exam:
    """A backend that summarizes, asks, answers and grades, and is killed when it was told to.

    asked: the calls that it got, each as its bytes. dies_after: so many of them are answered.
    """

    kind, local, can_prefill, slot_care = "llama_cpp", True, False, None
    image_chars, window_tokens, off_reason = 0, None, None

    def __init__(self, dies_after: int | None = None) -> None:
        self.name = "exam"
        self.asked: list[tuple[str, bytes]] = []
        self.dies_after = dies_after
        self._scribe = Scripted("exam", ScriptedBackend(latency=0, refusals=0, truncations=0))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scribe, name)

    async def window(self) -> int | None:
        return None

    async def complete(self, call: Call) -> Any:
        if self.dies_after is not None and len(self.asked) >= self.dies_after:
            raise KeyboardInterrupt
        self.asked.append((call.request_id, b"".join(call.messages)))
        if call.purpose != "auxiliary":
            return await self._scribe.complete(call)
        return _Answer(self._say(call))

    def _say(self, call: Call) -> str:
        name = next(iter(call.params["response_format"]["json_schema"]["schema"]["properties"]))
        prompt = json.loads(call.messages[-1])["content"]
        if name == "questions":
            number = self.asked[-1][0]
            if number.endswith("#0") and "questions 1" in number:
                return "I would rather not."
            row = {"question": f"Which harbour of {number}?", "answer": "A bakery with ovens."}
            return json.dumps({"questions": [row]})
        if name == "answer":
            return json.dumps({"answer": "UNKNOWN" if "questions 1" in prompt else "A bakery"})
        return json.dumps({"grade": "right"})


class _Answer:
    def __init__(self, text: str) -> None:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self.parsed: dict[str, Any] = {"choices": [choice]}
        self.data = json.dumps(self.parsed).encode()


def sit(folder: Path, backend: Any, **more: Any) -> Report:
    talk = make_talk(48_000, seed=4)
    chosen = options(writer=backend, examiner=backend, questions=1, spans=3, **more)
    state = open_state(folder, {"code": "the same all the time"})
    try:
        return asyncio.run(run([talk], chosen, state))
    finally:
        state.close()


def test_a_killed_run_goes_on_where_it_was_and_asks_nothing_twice(tmp_path: Path) -> None:
    whole = Exam()
    expected = sit(tmp_path / "whole", whole)
    assert expected.as_json()["modes"]["generational"]["mean"] == round(2 / 3, 4)
    total = len(whole.asked)
    for dies_after in (1, total // 2, total - 1):
        folder = tmp_path / f"{dies_after}"
        killed = Exam(dies_after)
        with pytest.raises(KeyboardInterrupt):
            sit(folder, killed)
        resumed = Exam()
        report = sit(folder, resumed)
        assert killed.asked + resumed.asked == whole.asked
        assert report.as_json()["modes"] == expected.as_json()["modes"]
        assert (report.calls, report.asked_now) == (expected.calls, total - dies_after)
    again = Exam()
    assert sit(tmp_path / "whole", again).as_json()["modes"] == expected.as_json()["modes"]
    assert again.asked == []


def test_more_repeats_and_modes_take_what_is_there_and_add_to_it(tmp_path: Path) -> None:
    first = Exam()
    sit(tmp_path, first, modes=("rolling",))
    second = Exam()
    report = sit(tmp_path, second, repeats=2)
    assert not set(first.asked) & set(second.asked)
    assert report.modes["rolling"].as_json()["questions"] == 6


def test_everything_is_in_the_file_as_it_is_made(tmp_path: Path) -> None:
    sit(tmp_path, Exam())
    kinds = [json.loads(line)["kind"] for line in (tmp_path / FILE).read_text().splitlines()]
    assert kinds[0] == "fingerprint"
    assert kinds.count("questions") == 3
    assert kinds.count("text") >= 3
    assert kinds.count("answer") == kinds.count("grade") == 3 * len(MODES)
    assert kinds.count("call") > 12


def test_what_is_no_use_is_counted_and_asked_again(tmp_path: Path) -> None:
    report = sit(tmp_path, Exam())
    assert report.questions == 3
    assert report.malformed == 1
    assert report.modes["rolling"].malformed == 0


class Out(Exam):
    """Nobody is there any more after some calls."""

    def __init__(self, fault: FaultKind, after: int) -> None:
        super().__init__()
        self.fault, self.after = fault, after

    async def complete(self, call: Call) -> Any:
        if len(self.asked) >= self.after:
            raise UpstreamFault(self.fault, "The backend exam is gone")
        return await super().complete(call)


@pytest.mark.parametrize("after", [0, 4, 8])
@pytest.mark.parametrize("kind", [FaultKind.UNAVAILABLE, FaultKind.OVERLOADED, FaultKind.AUTH])
def test_who_cannot_be_asked_ends_the_run_and_nothing_is_held_against_the_memory(
    tmp_path: Path, kind: FaultKind, after: int
) -> None:
    with pytest.raises(RunStopped, match="The backend exam is gone"):
        sit(tmp_path, Out(kind, after))
    assert sit(tmp_path, Exam()).as_json()["modes"]["generational"]["mean"] == round(2 / 3, 4)
