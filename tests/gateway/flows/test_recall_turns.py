"""Turns whose model searches the past: what is stored and what later prompts show of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.recall_tool import TOOLS, TOOLS_CHARS
from gateway.wire.json_text import dumps, loads
from gateway.wire.replies import ReplyBuilder
from tests.gateway.flows.test_notes import FACT, SMALL, begins_with, filler, told, told_unindexed
from tests.gateway.flows.test_search_rounds import USAGE, call_deltas, search, text_deltas
from tests.gateway.house import House, Said, Say, assistant, call_of, tool, user

POLICIES = f"""
version: 1
backends:
  local: {{kind: scripted}}
  cloud: {{kind: scripted}}
policies:
  small: {SMALL}
    recall: {{budget: 0, tool: true}}
  still: {SMALL}
    recall: {{budget: 0}}
models:
  foldgate: {{tiers: [{{backend: local, policy: small}}]}}
  plain: {{tiers: [{{backend: local, policy: still}}]}}
"""
FOUND = call_deltas(search("c1", "brass key lighthouse"), usage=USAGE)
ANSWER = text_deltas("Beneath the third flowerpot.", usage=USAGE)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path, POLICIES)
    yield house
    house.store.close()


async def ask(house: House, history: list[Say], question: str, *answers: Any, **more: Any) -> Said:
    """A question behind a history, which grows; answers: of the model, one a call."""
    house.local.answers = list(answers)
    history.append(user(question))
    said = await house.say(*history, **more)
    history.append(assistant(said.text))
    return said


def last(house: House) -> list[Any]:
    """The last prompt that the model was sent."""
    return [loads(message) for message in house.local.calls[-1].messages]


async def test_a_search_is_answered_from_the_conversation_s_own_past(house: House) -> None:
    other: list[Say] = []
    await ask(house, other, FACT.replace("brass", "other"), id="other")
    history = await told(house, id="c")
    said = await ask(house, history, "Where is it?", FOUND, ANSWER, id="c")
    assert said.text == "Beneath the third flowerpot."
    *before, question, asked, answered = last(house)
    assert [loads(message) for message in said.bytes] == [*before, question]
    assert asked["tool_calls"] == [search("c1", "brass key lighthouse")]
    lines = loads(answered["content"])["lines"]
    assert {"id": "3", "date": "2027-01-15", "who": "User", "text": FACT} in lines
    assert "other" not in answered["content"]


async def test_a_past_that_was_indexed_for_another_branch_alone_is_found_by_the_next_search(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = await told_unindexed(house, monkeypatch, id="c")
    await ask(house, history, "Where is it?", FOUND, ANSWER, id="c")
    assert FACT not in last(house)[-1]["content"]
    await house.ctx.indexing.settle()
    await ask(house, history, "Look again.", FOUND, ANSWER, id="c")
    assert FACT in last(house)[-1]["content"]


async def test_the_transcript_and_the_client_know_nothing_of_it(house: House) -> None:
    history = await told(house, id="c")
    await ask(house, history, "Where is it?", FOUND, ANSWER, id="c")
    assert house.told("c")[-2:] == [
        ("user", "Where is it?"),
        ("assistant", "Beneath the third flowerpot."),
    ]
    assert "recall_search" not in str(house.told("c"))
    assert house.rows("SELECT asked_depth, kind FROM notes") == [(len(history), "calls")]


async def test_later_prompts_go_on_from_what_the_model_read(house: House) -> None:
    """Law 4: the prompt of the last round, the reply, what is new."""
    history = await told(house, id="c")
    await ask(house, history, "Where is it?", FOUND, ANSWER, id="c")
    rounds = house.local.calls[-1].messages
    said = await ask(house, history, "Thank you.", text_deltas("Welcome."), id="c")
    assert said.bytes[: len(rounds)] == rounds
    assert last(house)[len(rounds) :] == [history[-3], history[-2]]
    assert house.one("SELECT moved_by FROM attempts ORDER BY pk DESC LIMIT 1") is None
    house.restart()
    assert (await house.say(*history[:-1], id="c")).bytes == said.bytes


async def test_a_swipe_shows_the_question_as_it_was(house: House) -> None:
    history = await told(house, id="c")
    said = await ask(house, history, "Where is it?", FOUND, ANSWER, id="c")
    house.local.answers = [text_deltas("I forgot.")]
    swipe = await house.say(*history[:-1], id="c")
    assert swipe.bytes == said.bytes
    other = [*history[:-1], assistant("I forgot."), user("Think!")]
    branch = await house.say(*other, id="c")
    assert "c1" not in str(branch.prompt)
    again = await house.say(*history, user("Thank you."), id="c")
    assert "c1" in str(again.prompt)


async def test_a_reply_that_was_given_before_without_a_search_is_shown_without_one(
    house: House,
) -> None:
    history = await told(house, id="c")
    await ask(house, history, "Where is it?", text_deltas("In the well."), id="c")
    after = await house.say(*history, user("Sure?"), id="c")
    house.local.answers = [FOUND, text_deltas("In the well.")]
    await house.say(*history[:-1], id="c")
    assert house.one("SELECT count(*) FROM notes") == 0
    assert (await house.say(*history, user("Sure?"), id="c")).bytes == after.bytes


async def test_after_the_next_fold_searches_are_gone(house: House) -> None:
    history = await told(house, id="c")
    await ask(house, history, "Where is it?", FOUND, ANSWER, id="c")
    folds = len(house.folds())
    while len(house.folds()) == folds:
        said = await ask(house, history, filler(len(history)), text_deltas("Hm."), id="c")
        house.write_chapters()
    assert "recall_search" not in str(said.prompt)


async def test_figures_are_those_of_both_rounds(house: House) -> None:
    history = await told(house, id="c")
    turn = await house.open(*history, user("Where is it?"), id="c")
    house.local.answers = [FOUND, ANSWER]
    reply = ReplyBuilder()
    async for chunk in turn.stream():
        reply.feed(chunk.parsed)
    assert reply.usage == {"prompt_tokens": 200, "completion_tokens": 14, "total_tokens": 214}
    prompt, completion, chars, expected = house.rows(
        "SELECT prompt_tokens, completion_tokens, prompt_chars, expected_chars FROM attempts"
        " ORDER BY pk DESC LIMIT 1"
    )[0]
    exchange = house.one("SELECT chars FROM notes")
    one = turn.prepared.prompt_chars
    assert (prompt, completion, chars) == (200, 14, one + one + exchange)
    assert turn.prepared.move.expected_chars is not None
    assert expected == turn.prepared.move.expected_chars + one
    assert (
        house.one(
            "SELECT count(*) FROM attempts WHERE asked_pk = :pk", pk=turn.prepared.begun.asked.pk
        )
        == 1
    )
    sample = house.ctx.meters.registry.get_sample_value
    assert sample("foldgate_notes_total", {"policy": "small", "kind": "calls"}) == 1


async def test_searches_count_in_the_view(house: House) -> None:
    history = await told(house, id="c")
    await ask(house, history, "Where is it?", FOUND, ANSWER, id="c")
    said = await ask(house, history, "Thank you.", text_deltas("Welcome."), id="c")
    begun = said.turn.prepared.begun
    assert begun.noted.chars == house.one("SELECT chars FROM notes")
    assert begun.fixed_chars == TOOLS_CHARS


async def test_a_whole_reply_searches_too(house: House) -> None:
    history = await told(house, id="c")
    turn = await house.open(*history, user("Where is it?"), id="c", stream=False)
    house.local.answers = [[_whole(FOUND)], [_whole(ANSWER)]]
    completion = await turn.complete()
    (choice,) = completion.parsed["choices"]
    assert choice["message"]["content"] == "Beneath the third flowerpot."
    assert loads(completion.data) == completion.parsed
    assert house.told("c")[-1] == ("assistant", "Beneath the third flowerpot.")


def _whole(chunks: Any) -> dict[str, Any]:
    reply = ReplyBuilder()
    for chunk in chunks:
        reply.feed(chunk)
    return reply.completion()


async def test_tools_are_offered_only_where_a_past_is_folded(house: House) -> None:
    history: list[Say] = []
    await ask(house, history, "Hello.", id="c")
    assert "tools" not in house.local.calls[-1].params
    history = await told(house, id="d")
    await ask(house, history, "Hello.", id="d", tools=[_own()])
    assert house.local.calls[-1].params["tools"] == [_own(), *TOOLS]
    await ask(house, history, "Hello.", id="d", tool_choice="required", tools=[_own()])
    assert house.local.calls[-1].params["tools"] == [_own()]
    history = await told(house, id="e", model="plain")
    await ask(house, history, "Hello.", id="e", model="plain")
    assert "tools" not in house.local.calls[-1].params


def _own() -> dict[str, Any]:
    return {"type": "function", "function": {"name": "look", "parameters": {}}}


async def test_tools_are_not_offered_where_the_backend_takes_none(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house.local, "dropped_params", lambda params: sorted({"tools"} & {*params}))
    history = await told(house, id="c")
    said = await ask(house, history, "Where is it?", ANSWER, id="c")
    assert "tools" not in house.local.calls[-1].params
    assert list(said.turn.prepared.dropped) == []


async def test_a_client_s_tools_go_on_as_before(house: House) -> None:
    history = await told(house, id="c")
    look = call_of("c9", '{"at": "pot"}')
    history.append(user("Look."))
    house.local.answers = [call_deltas(search("c1"), usage=USAGE), call_deltas(look)]
    turn = await house.open(*history, id="c", tools=[_own()])
    reply = ReplyBuilder()
    async for chunk in turn.stream():
        reply.feed(chunk.parsed)
    assert reply.message()["tool_calls"] == [look]
    history += [assistant(None, tool_calls=[look]), tool("c9", "a key")]
    house.local.answers = [text_deltas("A key!")]
    said = await house.say(*history, id="c", tools=[_own()])
    assert said.text == "A key!"
    roles = [message["role"] for message in said.prompt[-5:]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]
    assert begins_with(said, Said(turn, "", house.local.calls[-2].messages))


async def test_a_later_round_that_fails_is_tried_again_from_the_start(house: House) -> None:
    """Nothing was given: the turn's budget of attempts pays, and the past is searched anew."""
    history = await told(house, id="c")
    fault = UpstreamFault(FaultKind.MALFORMED, "It broke")
    count = len(house.local.calls)
    said = await ask(house, history, "Where is it?", FOUND, fault, FOUND, ANSWER, id="c")
    assert said.text == "Beneath the third flowerpot."
    assert len(house.local.calls) == count + 4
    states = house.rows("SELECT state FROM attempts ORDER BY pk DESC LIMIT 2")
    assert states == [("done",), ("failed",)]
    assert house.one("SELECT count(*) FROM notes") == 1


async def test_a_client_that_leaves_in_the_second_round_leaves_a_partial_reply(
    house: House,
) -> None:
    history = await told(house, id="c")
    house.local.answers = [FOUND, ANSWER]
    turn = await house.open(*history, user("Where is it?"), id="c")
    stream = turn.stream()
    async for chunk in stream:
        if "Beneath" in dumps(chunk.parsed):
            break
    await stream.aclose()
    assert house.rows("SELECT state FROM attempts ORDER BY pk DESC LIMIT 1") == [("cancelled",)]
    assert house.told("c")[-1] == ("assistant", "Beneath the third flowerpot.")
    assert house.one("SELECT count(*) FROM notes WHERE kind = 'calls'") == 1


async def test_the_next_prompt_is_foreseen_with_the_tools_that_it_will_have(house: House) -> None:
    seen: list[Any] = []
    house.ctx.prefills.turn_ended = seen.append  # type: ignore[method-assign]
    history: list[Say] = []
    await ask(house, history, "Hello.", id="c")
    assert "tools" not in house.local.calls[-1].params
    assert seen[-1].params["tools"] == list(TOOLS)


NARROW = """
    view: {start: 5000, ceiling: 7000, headroom: 2500, keep: 1000}
    chapters: {split: 3000, length: 100, stack: 600}
    gist: {length: 150}
"""


async def test_notes_leave_room_for_a_search_in_a_small_view(tmp_path: Path) -> None:
    """A third of 2,500 are 833: notes have 233 of them."""
    text = POLICIES.replace(SMALL, NARROW).replace("budget: 0, tool", "budget: 400, tool")
    house = House(tmp_path, text)
    try:
        history = await told(house, id="c")
        question = "Where did I say that the brass key of the lighthouse lies?"
        for at in range(3):
            await ask(house, history, f"{question} {at}", text_deltas("Hm."), id="c")
        assert 0 < house.one("SELECT sum(chars) FROM notes") <= 233
        await ask(house, history, "Where is it?", FOUND, ANSWER, id="c")
        answered = last(house)[-1]
        assert answered["role"] == "tool"
        assert "error" not in answered["content"]
        assert house.one("SELECT sum(chars) FROM notes") <= 833
    finally:
        house.store.close()


async def test_no_tools_where_no_search_could_be_answered(tmp_path: Path) -> None:
    """A third of 1,700 are 566, and one search with its answer takes 600."""
    text = POLICIES.replace(SMALL, NARROW.replace("2500", "1700"))
    house = House(tmp_path, text)
    try:
        history = await told(house, id="c")
        await ask(house, history, "Where is it?", text_deltas("Hm."), id="c")
        assert "tools" not in house.local.calls[-1].params
    finally:
        house.store.close()
