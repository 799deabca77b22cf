"""A model that searches the past by itself: what it is answered, and what its client sees of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.backends.base import Call, Chunk, Completion
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.recall_tool import (
    NAMES,
    TOOLS,
    Allowance,
    Past,
    allows_tools,
    read_around,
    search_past,
    with_tools,
)
from gateway.flows.recollection import Passage
from gateway.flows.search_rounds import MOST_ROUNDS, SearchRounds
from gateway.wire.json_text import dump_bytes, loads
from gateway.wire.replies import ReplyBuilder
from tests.gateway.house import Say, assistant, call_of, delta, user

USAGE = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}


def passage(depth: int, text: str, score: float = 1.0, role: str = "user") -> Passage:
    return Passage(
        pk=1_000 + depth,
        id=f"id{depth}",
        depth=depth,
        role=role,
        name=None,
        created_ms=1_700_000_000_000,
        text=text,
        whole=True,
        hit=True,
        score=score,
    )


PAST = [passage(3, "I hid the key under the third stone."), passage(9, "鍵は石の下です。", 2.0)]


class Library:
    """Stands for the store: whatever is looked for finds `found`."""

    def __init__(self, found: Sequence[Passage] = PAST) -> None:
        self.found = list(found)
        self.looks: list[tuple[Any, ...]] = []

    async def look(self, read: Any, past: Past, *asked: Any) -> list[Passage]:
        assert past == Past(1, HEAD, 20)
        self.looks.append((read, *asked))
        return list(self.found)


HEAD: Any = SimpleNamespace(pk=71)


def search(id: str, query: str = "key", **more: Any) -> dict[str, Any]:
    return call_of(id, dump_bytes({"query": query, **more}).decode(), "recall_search")


def call_deltas(*calls: dict[str, Any], text: str = "", usage: Any = None) -> list[Any]:
    """A streamed answer that calls tools, each call in two pieces."""
    chunks = [delta({"role": "assistant", "content": ""})]
    chunks += [delta({"content": text})] if text else []
    for at, call in enumerate(calls):
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        begun = {"index": at, "id": call["id"], "type": "function"}
        chunks.append(delta({"tool_calls": [{**begun, "function": {"name": name}}]}))
        rest = {"index": at, "function": {"arguments": arguments}}
        chunks.append(delta({"tool_calls": [rest]}))
    chunks.append(delta({}, "tool_calls"))
    return [*chunks, {"choices": [], "usage": usage}] if usage else chunks


def text_deltas(*pieces: str, usage: Any = None) -> list[Any]:
    chunks = [delta({"role": "assistant"}), *(delta({"content": piece}) for piece in pieces)]
    chunks.append(delta({}, "stop"))
    return [*chunks, {"choices": [], "usage": usage}] if usage else chunks


class Desk:
    """One attempt's rounds before a model that answers by script."""

    def __init__(self, *answers: Any, library: Library | None = None, **more: Any) -> None:
        self.answers = list(answers)
        self.calls: list[Call] = []
        self.library = library or Library()
        self.allowance = Allowance(more.pop("each", 1_500), more.pop("left", 6_000))
        self.rounds = SearchRounds(
            call=Call(
                messages=(dump_bytes(user("Where?")),),
                params=with_tools({"temperature": 1}),
                stream=True,
                max_tokens=100,
                purpose="chat",
                request_id="r",
                prompt_chars=1_000,
                unread_chars=10,
            ),
            prompt_chars=1_000,
            look=self.library.look,
            past=Past(1, HEAD, 20),
            allowance=self.allowance,
            keep_reasoning=more.pop("keep_reasoning", False),
        )

    async def _send(self, call: Call) -> AsyncIterator[Chunk]:
        self.calls.append(call)
        for at, parsed in enumerate(self.answers.pop(0)):
            if isinstance(parsed, UpstreamFault):
                raise parsed
            parsed = {"id": f"chatcmpl-{len(self.calls)}", "created": at, **parsed}
            yield Chunk(dump_bytes(parsed), parsed)

    async def _whole(self, call: Call) -> Completion:
        self.calls.append(call)
        reply = ReplyBuilder()
        for parsed in self.answers.pop(0):
            reply.feed(parsed)
        whole = reply.completion()
        return Completion(dump_bytes(whole), whole)

    async def stream(self) -> list[dict[str, Any]]:
        seen = []
        async for chunk in self.rounds.stream(self._send):
            assert loads(chunk.data) == chunk.parsed
            seen.append(chunk.parsed)
        return seen

    async def reply(self, how: str) -> ReplyBuilder:
        """What the client makes of it."""
        if how == "whole":
            return ReplyBuilder.from_completion((await self.rounds.complete(self._whole)).parsed)
        reply = ReplyBuilder()
        for parsed in await self.stream():
            reply.feed(parsed)
        return reply

    @property
    def told(self) -> list[Any]:
        """The contents of the answers that the model got."""
        return [loads(m["content"]) for m in self.rounds.exchange if m["role"] == "tool"]


both = pytest.mark.parametrize("how", ["stream", "whole"])


# -- what the client sees ---


@both
async def test_a_search_is_answered_and_the_client_sees_the_reply_alone(how: str) -> None:
    desk = Desk(call_deltas(search("c1"), usage=USAGE), text_deltas("Under ", "it.", usage=USAGE))
    reply = await desk.reply(how)
    assert reply.message() == assistant("Under it.")
    assert reply.finish_reason == "stop"
    assert reply.usage == {"prompt_tokens": 200, "completion_tokens": 14, "total_tokens": 214}
    line = {"date": "2023-11-14", "who": "User"}
    assert desk.told == [
        {
            "lines": [
                {"id": "3", **line, "text": "I hid the key under the third stone."},
                {"id": "9", **line, "text": "鍵は石の下です。"},
            ]
        }
    ]
    second = [loads(message) for message in desk.calls[1].messages]
    assert second == [user("Where?"), *desk.rounds.exchange]
    assert second[1] == assistant(None, tool_calls=[search("c1")]) | {
        "content": second[1]["content"]
    }
    assert second[2]["tool_call_id"] == "c1"


@both
async def test_without_a_search_nothing_is_touched(how: str) -> None:
    desk = Desk(text_deltas("Hello.", usage=USAGE))
    reply = await desk.reply(how)
    assert (reply.text, reply.usage, desk.rounds.exchange) == ("Hello.", USAGE, [])
    assert len(desk.calls) == 1


async def test_chunks_of_a_plain_stream_are_passed_on_as_they_came() -> None:
    desk = Desk(text_deltas("Hello.", usage=USAGE))
    chunks = [chunk async for chunk in desk.rounds.stream(desk._send)]
    assert [chunk.parsed["created"] for chunk in chunks] == [0, 1, 2, 3]


async def test_no_piece_of_a_search_leaves_and_all_chunks_are_of_one_reply() -> None:
    desk = Desk(call_deltas(search("c1"), text="Let me look."), text_deltas("Under it."))
    seen = await desk.stream()
    assert not any("tool_calls" in str(chunk) for chunk in seen)
    assert {chunk["id"] for chunk in seen} == {"chatcmpl-1"}
    assert [chunk["choices"][0]["finish_reason"] for chunk in seen].count("stop") == 1


@both
async def test_what_is_said_beside_a_search_is_given_and_set_off(how: str) -> None:
    desk = Desk(call_deltas(search("c1"), text="Let me look."), text_deltas("Under it."))
    reply = await desk.reply(how)
    assert reply.text == "Let me look.\n\nUnder it."
    assert desk.rounds.exchange[0]["content"] == "Let me look."


@both
async def test_a_reply_that_mixes_calls_goes_to_the_client_with_its_own(how: str) -> None:
    look = call_of("c2", '{"at": "stone"}')
    desk = Desk(call_deltas(search("c1"), look, text="Wait.", usage=USAGE))
    reply = await desk.reply(how)
    assert reply.message() == assistant("Wait.", tool_calls=[look])
    assert (reply.finish_reason, reply.usage) == ("tool_calls", USAGE)
    assert (desk.rounds.exchange, desk.library.looks) == ([], [])


@both
async def test_a_client_s_calls_behind_a_search_are_its_own(how: str) -> None:
    look = call_of("c2")
    desk = Desk(call_deltas(search("c1")), call_deltas(look, call_of("c3")))
    reply = await desk.reply(how)
    assert reply.message()["tool_calls"] == [look, call_of("c3")]
    assert reply.finish_reason == "tool_calls"
    assert len(desk.rounds.exchange) == 2


@both
async def test_rounds_are_bounded_and_the_last_may_not_search(how: str) -> None:
    searches = [call_deltas(search(f"c{at}")) for at in range(MOST_ROUNDS)]
    desk = Desk(*searches, text_deltas("I give up."))
    assert (await desk.reply(how)).text == "I give up."
    choices = [call.params.get("tool_choice") for call in desk.calls]
    assert choices == [*[None] * MOST_ROUNDS, "none"]
    assert all(call.params["tools"] == list(TOOLS) for call in desk.calls)


@both
async def test_a_model_that_does_nothing_but_search_has_answered_nothing(how: str) -> None:
    desk = Desk(*(call_deltas(search(f"c{at}")) for at in range(MOST_ROUNDS + 1)))
    with pytest.raises(UpstreamFault) as caught:
        await desk.reply(how)
    assert caught.value.kind is FaultKind.EMPTY
    assert len(desk.calls) == MOST_ROUNDS + 1


async def test_a_round_that_fails_keeps_what_was_found() -> None:
    fault = UpstreamFault(FaultKind.SERVER, "It broke")
    desk = Desk(call_deltas(search("c1")), [fault])
    with pytest.raises(UpstreamFault) as caught:
        await desk.stream()
    assert caught.value is fault
    assert len(desk.rounds.exchange) == 2


async def test_reasoning_of_a_search_stays_only_where_the_backend_wants_it_back() -> None:
    for keep, kept in ((True, "Hm."), (False, None)):
        answer = call_deltas(search("c1"))
        answer.insert(1, delta({"reasoning_content": "Hm."}))
        desk = Desk(answer, text_deltas("Here."), keep_reasoning=keep)
        await desk.stream()
        assert desk.rounds.exchange[0].get("reasoning_content") == kept


async def test_a_whole_reply_that_broke_off_has_no_search_in_it() -> None:
    message = assistant("Wait.", tool_calls=[search("c1")])
    received = {"choices": [{"index": 0, "message": message, "finish_reason": None}]}
    own = Desk().rounds.own_part(received)
    assert own["choices"][0]["message"] == assistant("Wait.")


async def test_figures_of_further_rounds() -> None:
    """1,000 characters, then 1,000 + exchange: the first prompt is held, the exchange is read."""
    desk = Desk(call_deltas(search("c1")), text_deltas("Here."))
    await desk.stream()
    added = sum(
        len(m["content"] or "") + sum(13 + 15 for _ in m.get("tool_calls", ()))
        for m in desk.rounds.exchange
    )
    assert added == 6_000 - desk.allowance.left
    assert (desk.rounds.read_chars, desk.rounds.held_chars) == (1_000 + added, 1_000)
    assert (desk.calls[1].prompt_chars, desk.calls[1].unread_chars) == (1_000 + added, added)


# -- what the model is answered ---


async def told(*calls: dict[str, Any], **more: Any) -> tuple[list[Any], Library]:
    desk = Desk(call_deltas(*calls), text_deltas("Here."), **more)
    await desk.stream()
    return desk.told, desk.library


async def test_two_searches_of_one_reply_are_both_answered() -> None:
    answers, library = await told(search("c1"), search("c2", "石"))
    assert len(answers) == 2
    assert [look[1] for look in library.looks] == ["key", "石"]


async def test_every_call_has_an_id_of_its_own() -> None:
    """Of a model that gives none, or the same again: also in a later round."""
    rounds = [call_deltas(search(""), search("c1")), call_deltas(search("c1"), search(""))]
    desk = Desk(*rounds, text_deltas("Here."))
    await desk.stream()
    asked = [call["id"] for m in desk.rounds.exchange for call in m.get("tool_calls", ())]
    answered = [m["tool_call_id"] for m in desk.rounds.exchange if m["role"] == "tool"]
    assert asked == answered == ["recall_71_0", "c1", "recall_71_2", "recall_71_3"]


async def test_lines_that_were_told_are_not_looked_for_again() -> None:
    _, library = await told(search("c1"), search("c2"))
    assert [look[3] for look in library.looks] == [frozenset(), frozenset({1_003, 1_009})]


async def test_a_limit_keeps_the_best_lines() -> None:
    ((answer,), library) = await told(search("c1", limit=1))
    assert [line["id"] for line in answer["lines"]] == ["9"]
    assert library.looks[0][0] is search_past


@pytest.mark.parametrize("limit", [0, -3, "x", None, True, 10**9, "2"])
async def test_a_strange_limit_is_none(limit: Any) -> None:
    ((answer,), _) = await told(search("c1", limit=limit))
    assert 1 <= len(answer["lines"]) <= 2


def expanding(**arguments: Any) -> dict[str, Any]:
    return call_of("c1", dump_bytes(arguments).decode(), "recall_expand")


async def test_expand_reads_around_a_line() -> None:
    ((answer,), library) = await told(expanding(id="9", before=1, after=99))
    assert [line["id"] for line in answer["lines"]] == ["3", "9"]
    assert library.looks == [(read_around, 9, 1, 20, 1_500)]
    _, library = await told(expanding(id=9))
    assert library.looks == [(read_around, 9, 3, 3, 1_500)]


@pytest.mark.parametrize("id", ["0", "21", "-1", "nine", "", None, 1.5, [9], "9" * 40])
async def test_an_id_that_is_not_of_the_past_is_told(id: Any) -> None:
    ((answer,), library) = await told(expanding(id=id))
    assert "No line of the past has this id" in answer["error"]
    assert library.looks == []


@pytest.mark.parametrize("arguments", ["", "{", "[]", "null", '{"query": 3}', '{"query": " "}'])
async def test_arguments_that_are_none_are_told(arguments: str) -> None:
    ((answer,), _) = await told(call_of("c1", arguments, "recall_search"))
    assert "a text under `query`" in answer["error"]


async def test_nothing_found_is_an_empty_list() -> None:
    ((answer,), _) = await told(search("c1"), library=Library([]))
    assert answer == {"lines": []}


async def test_an_answer_keeps_to_what_is_left() -> None:
    long = Library([passage(at, "x" * 400, score=at) for at in range(1, 9)])
    ((answer,), _) = await told(search("c1"), library=long, each=1_000, left=6_000)
    assert [line["id"] for line in answer["lines"]] == ["7", "8"]
    answers, _ = await told(search("c1"), search("c2"), library=long, each=1_000, left=1_150)
    assert len(answers[0]["lines"]) == 2
    assert "Nothing more can be shown" in answers[1]["error"]


# -- when tools are offered ---


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({}, True),
        ({"tools": [call_of("x")]}, True),
        ({"tool_choice": "auto"}, True),
        ({"tool_choice": "none"}, True),
        ({"tool_choice": "required"}, False),
        ({"tool_choice": {"type": "function", "function": {"name": "look"}}}, False),
        ({"functions": [{"name": "look"}]}, False),
        ({"tools": [{"type": "function", "function": {"name": "recall_search"}}]}, False),
        ({"tools": ["odd", {"type": "web"}]}, True),
        ({"tools": 5}, False),
        ({"tools": {"a": 1}}, False),
        ({"tools": None}, True),
        ({"n": 1}, True),
        ({"n": 2}, False),
        ({"response_format": {"type": "text"}}, True),
        ({"response_format": {"type": "json_object"}}, False),
        ({"grammar": "root ::= x"}, False),
    ],
)
def test_tools_are_offered_where_they_harm_nothing(params: dict[str, Any], expected: bool) -> None:
    assert allows_tools(params) is expected


def test_tools_stand_behind_the_client_s_own() -> None:
    own: Say = {"type": "function", "function": {"name": "look"}}
    params = {"tools": [own], "temperature": 1}
    assert with_tools(params) == {"tools": [own, *TOOLS], "temperature": 1}
    assert params["tools"] == [own]
    assert {tool["function"]["name"] for tool in TOOLS} == NAMES
