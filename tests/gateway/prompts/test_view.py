"""Rows to the messages that a model is shown."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gateway.prompts.memory import render_memory
from gateway.prompts.phrases import PHRASES
from gateway.prompts.view import (
    AROUND,
    Tail,
    TailMessage,
    assemble,
)
from gateway.wire.json_text import dumps, loads
from gateway.wire.letters import is_blank
from tests.gateway.house import Say, assistant, call_of, system, tool, user


def tail_of(*messages: Say, reasoning_of: str | None = None, backend: str = "local") -> Tail:
    tail = Tail(reasoning_of)
    for depth, message in enumerate(messages, start=1):
        tail.add(TailMessage(depth, message["role"], dumps(message), backend))
    return tail


def shown(
    *messages: Say,
    lead: list[tuple[int, Say]] | None = None,
    memory: list[Say] | None = None,
    border: int = 0,
    strict: bool = False,
) -> list[Say]:
    made = assemble(
        lead or [], memory or [], tail_of(*messages), border=border, strict_roles=strict
    )
    return [loads(message) for message in made]


def test_no_memory_no_pair() -> None:
    """A18."""
    assert shown(user("hi")) == [user("hi")]


# -- the tail -------------------------------------------------------------------------------------


def test_a_call_without_a_result_gets_an_interrupted_one() -> None:
    """E02."""
    calls = assistant(None, tool_calls=[call_of("t1"), call_of("t2")])
    said = shown(user("look"), calls, tool("t2", "found"), user("never mind"))
    assert said == [
        user("look"),
        calls,
        tool("t2", "found"),
        tool("t1", PHRASES["en"].interrupted),
        user("never mind"),
    ]


def test_a_call_that_still_waits_is_left_open() -> None:
    calls = assistant(None, tool_calls=[call_of("t1")])
    assert shown(user("look"), calls) == [user("look"), calls]


@pytest.mark.parametrize("arguments", ['{"city": "北', "{", '{"a": 1,}', "nonsense"])
def test_a_call_cut_in_its_arguments_is_left_out_with_its_result(arguments: str) -> None:
    """F17."""
    broken = assistant("Let me see.", tool_calls=[call_of("t1", arguments), call_of("t2")])
    said = shown(user("x"), broken, tool("t1", "error"), tool("t2", "ok"), user("y"))
    assert said == [
        user("x"),
        assistant("Let me see.", tool_calls=[call_of("t2")]),
        tool("t2", "ok"),
        user("y"),
    ]


def test_only_a_broken_call_leaves_no_trace() -> None:
    broken = assistant(None, tool_calls=[call_of("t1", "{")])
    assert shown(user("x"), broken, user("y")) == [user("x"), user("y")]


@pytest.mark.parametrize("arguments", ["", " ", "{}", '{"a": [1]}'])
def test_whole_and_empty_arguments_stay(arguments: str) -> None:
    calls = assistant(None, tool_calls=[call_of("t1", arguments)])
    assert shown(user("x"), calls)[1] == calls


@pytest.mark.parametrize("content", ["", " \n", None, "​", []])
def test_an_empty_assistant_turn_is_left_out(content: Any) -> None:
    """E08, E10."""
    assert shown(user("x"), assistant(content), user("y")) == [user("x"), user("y")]


def test_null_beside_calls_stays_null_and_empty_stays_empty() -> None:
    """E09."""
    null = assistant(None, tool_calls=[call_of("t1")])
    empty = assistant("", tool_calls=[call_of("t1")])
    assert shown(user("x"), null)[1]["content"] is None
    assert shown(user("x"), empty)[1]["content"] == ""


def test_reasoning_is_left_out_wherever_it_stands() -> None:
    thought = assistant(
        [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "42"}],
        reasoning_content="hm",
        reasoning_details=[{}],
    )
    (_, said) = shown(user("x"), thought)
    assert said == assistant([{"type": "text", "text": "42"}])


def test_a_backend_is_sent_its_own_reasoning_only() -> None:
    """F14: DeepSeek's is nothing to Gemini."""
    thought = assistant("42", reasoning_content="hm")
    for produced, kept in (("deepseek", True), ("gemini", False)):
        tail = tail_of(user("x"), thought, reasoning_of="deepseek", backend=produced)
        assert ("reasoning_content" in loads(tail.fragments[1])) is kept


def test_lone_halves_become_one_mark_towards_the_model_only() -> None:
    stored = dumps(user("hi \ud83d there 😀"))
    tail = Tail()
    tail.add(TailMessage(1, "user", stored, None))
    assert loads(tail.fragments[0]) == user("hi \ufffd there 😀")
    assert loads(stored) == user("hi \ud83d there 😀")


def test_numbers_and_nests_that_the_fast_writer_refuses() -> None:
    deep = loads("[" * 400 + "]" * 400)
    message = user("x") | {"seed": 2**80, "deep": deep}
    tail = Tail()
    big = '{"role":"user","content":"\\ud800","seed":' + str(2**80) + "}"
    tail.add(TailMessage(1, "user", big, None))
    assert loads(tail.fragments[0].replace(str(2**80).encode(), b"1"))["content"] == "\ufffd"
    tail.add(TailMessage(2, "user", dumps({**message, "seed": 1}), None))
    assert loads(tail.fragments[1])["deep"] == deep


def test_a_copy_grows_alone() -> None:
    tail = tail_of(user("a"), assistant(None, tool_calls=[call_of("t1")]))
    other = tail.copy()
    other.add(TailMessage(3, "user", dumps(user("b")), None))
    assert (len(tail.fragments), len(other.fragments)) == (2, 4)
    assert (tail.open_calls, other.open_calls) == (["t1"], [])
    assert other.size == sum(map(len, other.fragments))


_MESSAGES = st.one_of(
    st.text(max_size=6).map(user),
    st.text(max_size=6).map(assistant),
    st.sampled_from(
        [
            assistant(None, tool_calls=[call_of("t1")]),
            assistant("", tool_calls=[call_of("t1"), call_of("t2")]),
            assistant(None, tool_calls=[call_of("t3", "{")]),
            tool("t1", "r"),
            tool("t2", ""),
            tool("t3", "x"),
            user([{"type": "text", "text": "p"}]),
        ]
    ),
)


@given(st.lists(_MESSAGES, max_size=12), st.integers(0, 12))
def test_growing_is_the_same_as_rendering_at_once(messages: list[Say], cut: int) -> None:
    """Law 3 in small: a tail that was kept and one from the rows are byte for byte the same."""
    grown = tail_of(*messages[:cut]).copy()
    for depth, message in enumerate(messages[cut:], start=cut + 1):
        grown.add(TailMessage(depth, message["role"], dumps(message), "local"))
    assert grown == tail_of(*messages)


@given(st.lists(_MESSAGES, min_size=1, max_size=10), st.data())
def test_more_messages_only_add(messages: list[Say], data: st.DataObject) -> None:
    """Law 4 in small."""
    cut = data.draw(st.integers(0, len(messages)))
    before = assemble([], [], tail_of(*messages[:cut]), border=0)
    assert assemble([], [], tail_of(*messages), border=0)[: len(before)] == before


# -- system messages ------------------------------------------------------------------------------


def test_system_messages_keep_their_place() -> None:
    said = shown(
        user("1"),
        assistant("2"),
        user("3"),
        lead=[(0, system("A")), (2, system("B")), (2, system("C")), (3, system("D"))],
    )
    assert [m["content"] for m in said] == ["A", "1", "2", "B", "C", "3", "D"]


def test_those_of_a_folded_part_stand_behind_the_memory() -> None:
    """E07: never lost in a fold."""
    tail = Tail()
    for depth in (11, 12, 13):
        message = user(str(depth))
        tail.add(TailMessage(depth, "user", dumps(message), None))
    lead = [(0, system("A")), (4, system("B")), (10, system("C")), (12, system("D"))]
    memory = render_memory(None, ["They spoke."])
    made = [loads(m) for m in assemble(lead, memory, tail, border=10)]
    assert [m["content"] for m in made if m not in memory] == ["A", "B", "C", "11", "12", "D", "13"]
    assert made[1:3] == memory


def test_a_system_text_goes_out_unchanged() -> None:
    """C05: nothing is tidied."""
    text = "  You are helpful.\r\n\r\n"
    assert shown(user("hi"), lead=[(0, system(text))])[0] == system(text)


# -- strict roles ---------------------------------------------------------------------------------


def test_strict_merges_neighbours_of_one_role() -> None:
    """E06."""
    said = shown(user("a"), user("b"), assistant("c"), assistant("d"), user("e"), strict=True)
    assert said == [user("a\n\nb"), assistant("c\n\nd"), user("e")]


def test_strict_keeps_a_leading_greeting_behind_a_neutral_line() -> None:
    """E04."""
    said = shown(assistant("Hello, traveller!"), user("hi"), strict=True)
    assert said == [user(PHRASES["en"].opening), assistant("Hello, traveller!"), user("hi")]
    spanish = shown(
        assistant("¡Hola! ¿Qué tal está el viajero de la montaña?"), user("hola"), strict=True
    )
    assert spanish[0] == user(PHRASES["es"].opening)


def test_strict_begins_with_a_user_also_where_the_first_is_blank() -> None:
    said = shown(user(" "), assistant("Hello!"), user("hi"), strict=True)
    assert [m["role"] for m in said] == ["user", "assistant", "user"]


def test_strict_tells_late_system_messages_as_notes_of_the_user() -> None:
    """E07."""
    lead = [(0, system("A")), (0, system("B")), (2, system("From now on French."))]
    said = shown(user("1"), assistant("2"), user("3"), lead=lead, strict=True)
    assert said == [
        system("A\n\nB"),
        user("1"),
        assistant("2"),
        user("[System note] From now on French.\n\n3"),
    ]


def test_strict_leaves_parts_and_calls_alone() -> None:
    parts = user([{"type": "text", "text": "look"}])
    calls = assistant(None, tool_calls=[call_of("t1")])
    said = shown(user("a"), parts, calls, tool("t1", "r"), assistant("b"), strict=True)
    assert said == [user("a"), parts, calls, tool("t1", "r"), assistant("b")]


_SAID = st.sampled_from(["", "  ", "hola", "привет", "**hi**", "船長!"])
_ANY = st.one_of(
    _SAID.map(user),
    _SAID.map(assistant),
    _SAID.map(lambda text: tool("t1", text)),
    st.just(user([{"type": "text", "text": "a"}])),
    st.sampled_from(["{}", '{"cut']).map(
        lambda arguments: assistant(None, tool_calls=[call_of("t1", arguments)])
    ),
)


@given(st.lists(_ANY, max_size=8), st.booleans())
def test_every_prompt_goes_on_from_the_one_before(more: list[Say], strict: bool) -> None:
    """Law 4, whatever the order of roles: the last message may be continued, nothing else moves.
    A prompt that ends in a blank message after another role is left out: it says nothing."""
    history = [user("start"), *more]
    before: list[Say] = []
    for count, newest in enumerate(history, start=1):
        prompt = shown(*history[:count], strict=strict)
        if newest["role"] == "assistant" or prompt[-1]["content"] in ("", "  "):
            continue
        if before:
            last, now = before[-1], prompt[len(before) - 1]
            assert prompt[: len(before) - 1] == before[:-1]
            assert now["role"] == last["role"]
            assert str(now["content"]).startswith(str(last["content"]))
        before = prompt


def test_strict_never_sends_a_blank_result() -> None:
    """E09: refused by some providers."""
    calls = assistant(None, tool_calls=[call_of("t1")])
    said = shown(user("a"), calls, tool("t1", " "), strict=True)
    assert said[2] == tool("t1", "[no output]")
    assert shown(user("a"), calls, tool("t1", ""))[2] == tool("t1", "")


def test_strict_memory_and_tail_alternate() -> None:
    memory = render_memory(None, ["They spoke."])
    said = shown(user("11"), memory=memory, strict=True)
    assert [m["role"] for m in said] == ["user", "assistant", "user"]


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=5)), max_size=12),
    st.lists(st.tuples(st.integers(0, 12), st.text(min_size=1, max_size=4)), max_size=3),
    st.booleans(),
)
@example(said=[("user", "0"), ("user", "\r")], lead=[], with_memory=False)
def test_strict_always_alternates_and_is_deterministic(
    said: list[tuple[str, str]], lead: list[tuple[int, str]], with_memory: bool
) -> None:
    messages = [{"role": role, "content": text} for role, text in said]
    texts = sorted(((depth, system(text)) for depth, text in lead), key=lambda pair: pair[0])
    memory = render_memory(None, ["They spoke."]) if with_memory else []
    made = shown(*messages, lead=texts, memory=memory, strict=True)
    assert made == shown(*messages, lead=texts, memory=memory, strict=True)
    body = [m for m in made if m["role"] != "system"]
    assert len(made) - len(body) <= 1
    if body:
        assert body[0]["role"] == "user"
    for first, second in itertools.pairwise(body):
        assert first["role"] != second["role"]
    if (
        messages
        and messages[-1]["role"] == "user"
        and not is_blank(messages[-1]["content"])
        and not any(d >= len(messages) for d, _ in texts)
    ):
        assert str(body[-1]["content"]).endswith(messages[-1]["content"])


@given(st.lists(st.text(min_size=1, max_size=5), min_size=2, max_size=8), st.data())
def test_strict_merging_only_adds_text(texts: list[str], data: st.DataObject) -> None:
    """The bytes that a model reads grow at their end, although messages merge."""
    roles = [data.draw(st.sampled_from(["user", "assistant"])) for _ in texts]
    messages = [
        {"role": role, "content": f"{text}x"} for role, text in zip(roles, texts, strict=True)
    ]
    cut = data.draw(st.integers(1, len(messages) - 1))

    def flat(made: list[Say]) -> str:
        return "".join(
            f"\n\n{m['content']}"
            if at and m["role"] == made[at - 1]["role"]
            else f"|{m['content']}"
            for at, m in enumerate(made)
        )

    assert flat(shown(*messages, strict=True)).startswith(flat(shown(*messages[:cut], strict=True)))


# -- what a client puts in ------------------------------------------------------------------------


def around(side: str, text: str) -> Say:
    return {"role": "user", "content": text, AROUND: side}


@pytest.mark.parametrize("strict", [False, True])
def test_text_around_a_message_stands_around_it(strict: bool) -> None:
    lead = [(1, around("before", "Papers: one.\n\n")), (3, around("after", "\n\n[note]"))]
    said = shown(user("1"), assistant("2"), user("3"), lead=lead, strict=strict)
    assert said == [user("Papers: one.\n\n1"), assistant("2"), user("3\n\n[note]")]


def test_text_around_parts_is_a_part() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    lead = [(1, around("before", "a")), (1, around("after", "b"))]
    said = shown(user([image]), lead=lead)
    text = [{"type": "text", "text": word} for word in "ab"]
    assert said == [user([text[0], image, text[1]])]
    assert shown(user(None), lead=[(1, around("after", "b"))]) == [user("b")]


def test_text_around_a_folded_message_stands_behind_the_memory() -> None:
    tail = Tail()
    tail.add(TailMessage(3, "user", dumps(user("3")), None))
    told = assemble([(1, around("before", "Papers."))], render_memory(None, ["C."]), tail, border=2)
    assert [loads(m) for m in told[2:]] == [user("Papers."), user("3")]


def test_a_systems_text_is_never_joined_to_a_message() -> None:
    lead = [(1, {**system("S"), AROUND: "before"})]
    assert shown(user("1"), assistant("2"), lead=lead)[0] == user("1")


def test_strict_leaves_a_clients_notes_what_they_are() -> None:
    lead = [(0, system("A")), (0, user("[What was said before.]")), (1, assistant("(she thinks)"))]
    said = shown(user("1"), assistant("2"), lead=lead, strict=True)
    assert said == [
        system("A"),
        user("[What was said before.]\n\n1"),
        assistant("(she thinks)\n\n2"),
    ]
