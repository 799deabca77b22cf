"""Where requests stand: what clients of the field do, one habit a test."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.errors import BadRequest, Conflict
from gateway.flows.incoming import prepare
from gateway.flows.turn import open_turn
from gateway.wire.json_text import loads
from gateway.wire.requests import parse_chat
from tests.gateway.house import (
    House,
    Say,
    assistant,
    call_of,
    delta,
    deltas,
    system,
    tool,
    user,
)


def count(house: House, table: str) -> int:
    return int(house.one(f"SELECT count(*) FROM {table}"))


async def chat(house: House, *texts: str, lead: list[Say] | None = None, **more: Any) -> list[Say]:
    """A full-history client says these, one a turn. Returns its history."""
    history: list[Say] = list(lead or [])
    for text in texts:
        history.append(user(text))
        history.append(assistant((await house.say(*history, **more)).text))
    return history


def broken(text: str) -> list[Any]:
    """An answer of which only the first pieces come."""
    return [*deltas(text)[:3], UpstreamFault(FaultKind.INTERRUPTED, "cut", partial=True)]


# -- full histories -----------------------------------------------------------------------------


@pytest.mark.parametrize("id", [None, "chat-7"])
async def test_a_full_history_stores_each_message_once(house: House, id: str | None) -> None:
    await chat(house, "one", "two", "three", id=id)
    assert count(house, "conversations") == 1
    # 3 questions + 3 replies
    assert count(house, "messages") == 6
    assert count(house, "attempts") == 3


@pytest.mark.parametrize("id", [None, "chat-7"])
async def test_regenerating_keeps_both_replies(house: House, id: str | None) -> None:
    history = await chat(house, "one", "two", id=id)
    again = await house.say(*history[:-1], id=id)
    assert again.text != history[-1]["content"]
    assert count(house, "conversations") == 1
    assert count(house, "messages") == 5
    replies = house.rows("SELECT parent_pk FROM messages WHERE role = 'assistant' AND depth = 4")
    assert len(replies) == 2 and len(set(replies)) == 1


async def test_an_equal_reply_is_shared_and_keeps_its_own_attempt(house: House) -> None:
    house.local.answers = ["Same.", "Same.\n"]
    first = await house.say("hi", id="c")
    await house.say("hi", id="c", retried=True)
    assert count(house, "messages") == 2
    assert (
        house.rows("SELECT reply_pk FROM attempts")[0]
        == house.rows("SELECT reply_pk FROM attempts ORDER BY pk DESC")[0]
    )
    assert house.told(first.conversation)[-1] == ("assistant", "Same.")


@pytest.mark.parametrize("id", [None, "chat-7"])
async def test_an_edit_in_the_middle_is_a_branch(house: House, id: str | None) -> None:
    history = await chat(house, "one", "two", "three", id=id)
    said = await house.say(*history[:2], user("two, edited"), id=id)
    assert count(house, "conversations") == 1
    assert count(house, "messages") == 6 + 2
    assert [content for _, content in house.told(said.conversation)] == [
        "one",
        "Reply 1.",
        "two, edited",
        "Reply 4.",
    ]
    assert said.prompt == [*history[:2], user("two, edited")]


async def test_an_edit_of_the_first_message_is_a_branch_from_the_root(house: House) -> None:
    history = await chat(house, "one", "two", id="c")
    said = await house.say(user("ONE"), *history[1:], user("three"), id="c")
    assert count(house, "conversations") == 1
    # 5 of the edited history anew, its reply, and the 4 of the old branch
    assert count(house, "messages") == 4 + 5 + 1
    assert said.prompt[0] == user("ONE")


async def test_both_branches_can_be_gone_on_with(house: House) -> None:
    history = await chat(house, "one", "two")
    left = [*history, user("left")]
    right = [*history[:2], user("other"), assistant("Reply 4."), user("right")]
    await house.say(*left)
    await house.say(*right[:3])
    said = await house.say(*right)
    assert said.prompt == right
    back = await house.say(*left, assistant("Reply 3."), user("back"))
    assert back.prompt == [*left, assistant("Reply 3."), user("back")]
    assert count(house, "conversations") == 1


async def test_a_lone_first_message_of_a_client_that_resends_is_a_swipe(house: House) -> None:
    history = await chat(house, "one", "two", id="c")
    said = await house.say(history[0], id="c")
    assert said.prompt == [user("one")]
    assert count(house, "messages") == 5


# -- newest message only ------------------------------------------------------------------------


async def test_a_client_may_send_only_what_is_new(house: House) -> None:
    await house.say(system("Be kind."), user("one"), id="c")
    said = await house.say("two", id="c")
    assert said.prompt == [system("Be kind."), user("one"), assistant("Reply 1."), user("two")]
    assert count(house, "conversations") == 1


async def test_yes_twice_is_two_messages(house: House) -> None:
    """I13."""
    for _ in range(2):
        await house.say("yes", id="c")
    assert [content for _, content in house.told("c")] == ["yes", "Reply 1.", "yes", "Reply 2."]


async def test_a_person_may_open_with_the_same_word_again(house: House) -> None:
    await house.say("yes", id="c")
    await house.say("no", id="c")
    await house.say("yes", id="c", retried=False)
    assert len(house.path("c")) == 6


async def test_the_gateways_own_id_works_like_an_alias(house: House) -> None:
    first = await house.say("one", id="mine")
    second = await house.say("two", id=first.conversation)
    assert second.conversation == first.conversation
    assert len(second.bytes) == 3


async def test_results_of_tools_alone_follow_the_call(house: House) -> None:
    calls = delta({"tool_calls": [{**call_of("t1"), "index": 0}]})
    house.local.answers = [[calls, delta({}, "tool_calls")]]
    await house.say(system("S"), user("look"), id="c")
    said = await house.say(tool("t1", "found"), id="c")
    assert [m["role"] for m in said.prompt] == ["system", "user", "assistant", "tool"]


async def test_an_echoed_call_before_its_result_is_known_and_the_system_text_stays(
    house: House,
) -> None:
    calls = delta({"tool_calls": [{**call_of("t1"), "index": 0}]})
    house.local.answers = [[calls, delta({}, "tool_calls")]]
    await house.say(system("S"), user("look"), id="c")
    echoed = assistant(None, tool_calls=[call_of("t1")])
    said = await house.say(echoed, tool("t1", "found"), id="c")
    assert [m["role"] for m in said.prompt] == ["system", "user", "assistant", "tool"]
    after = await house.say("thanks", id="c")
    assert len(after.bytes) == 6, "it is still taken as a client that sends only what is new"


# -- retries --------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [None, "chat-7"])
async def test_the_same_history_again_is_a_retry(house: House, id: str | None) -> None:
    """I13."""
    history = await chat(house, "one", id=id)
    house.local.answers = [UpstreamFault(FaultKind.REFUSED, "no")]
    await house.try_to_say(*history, user("two"), id=id)
    said = await house.say(*history, user("two"), id=id)
    assert house.local.seen[-1] == house.local.seen[-2]
    assert count(house, "messages") == 4
    assert len(said.bytes) == 3


async def test_a_lone_message_is_a_retry_where_the_sdk_says_so(house: House) -> None:
    await house.say("one", id="c")
    await house.say("yes", id="c")
    said = await house.say("yes", id="c", retried=True)
    assert said.bytes == house.local.seen[1]
    assert [content for _, content in house.told("c")] == ["one", "Reply 1.", "yes", "Reply 3."]


@pytest.mark.parametrize("before", [[], ["one"]])
async def test_a_lone_message_that_nothing_replied_to_is_sent_again(
    house: House, before: list[str]
) -> None:
    """A failed first turn of any client, and whatever a newest-only client sends once more."""
    for text in before:
        await house.say(text, id="c")
    house.local.answers = [UpstreamFault(FaultKind.REFUSED, "no")] * 2
    for _ in range(2):
        await house.try_to_say("yes", id="c")
    said = await house.say("yes", id="c")
    assert said.prompt[-1] == user("yes")
    assert [content for _, content in house.told("c")].count("yes") == 1
    assert len(said.bytes) == 2 * len(before) + 1


async def test_a_retry_says_nothing_about_the_clients_habits(house: House) -> None:
    """Afterwards a lone "one" is new, not a swipe of the first message."""
    await house.say("one", id="c")
    await house.say("one", id="c", retried=True)
    await house.say("two", id="c")
    said = await house.say("one", id="c")
    assert len(said.bytes) == 5


async def test_a_retry_with_other_words_is_new(house: House) -> None:
    await house.say("one", id="c")
    said = await house.say("two", id="c", retried=True)
    assert len(said.bytes) == 3


async def test_a_retry_of_a_client_that_resends(house: House) -> None:
    history = await chat(house, "one", "two", id="c")
    await house.say("three", id="c")
    said = await house.say("three", id="c", retried=True)
    assert said.prompt == [*history, user("three")]


async def test_two_results_sent_again_stand_once(house: House) -> None:
    pieces = {"tool_calls": [{**call_of(id), "index": at} for at, id in enumerate(("t1", "t2"))]}
    house.local.answers = [[delta(pieces), delta({}, "tool_calls")]]
    await house.say("look", id="c")
    results = [tool("t1", "a"), tool("t2", "b")]
    await house.say(*results, id="c")
    said = await house.say(*results, id="c", retried=True)
    assert [m["role"] for m in said.prompt] == ["user", "assistant", "tool", "tool"]
    assert count(house, "messages") == 6


async def test_an_idempotency_key_names_the_question(house: House) -> None:
    await house.say("yes", id="c", key="k1")
    said = await house.say("yes", id="c", key="k1")
    assert said.bytes == house.local.seen[0]
    other = await house.say("yes", id="c", key="k2")
    assert len(other.bytes) == 3


async def test_a_late_repeat_does_not_rewind_the_conversation(house: House) -> None:
    await house.say("hi", id="c", key="k1")
    await house.say("my name is Ada", id="c", key="k2")
    await house.say("hi", id="c", key="k1")
    said = await house.say("who am I?", id="c", key="k3")
    assert [message["content"] for message in said.prompt if message["role"] == "user"] == [
        "hi",
        "my name is Ada",
        "who am I?",
    ]


async def test_a_key_used_again_for_something_else_is_told(house: House) -> None:
    await house.say("yes", id="c", key="k1")
    for wrong in ({"id": "c", "text": "no"}, {"id": "d", "text": "yes"}):
        with pytest.raises(Conflict) as told:
            await house.say(wrong["text"], id=wrong["id"], key="k1")
        assert told.value.code == "idempotency_key_reused"
    assert count(house, "conversations") == 1


async def test_a_key_is_the_owners_own(house: House) -> None:
    mine = await house.say("yes", key="k1", owner="ann")
    theirs = await house.say("no", key="k1", owner="bob")
    assert mine.conversation != theirs.conversation


async def test_a_first_turn_tried_again_finds_itself(house: House) -> None:
    first = await house.say("hi")
    again = await house.say("hi", retried=True)
    assert again.conversation == first.conversation


async def test_a_first_turn_tried_again_is_no_older_chat_with_the_same_opening(
    house: House,
) -> None:
    """The first try of the second chat never arrived."""
    old = await chat(house, "hi", "my PIN is 1111")
    first = house.one("SELECT id FROM conversations")
    again = await house.say("hi", retried=True)
    assert again.conversation != first
    assert again.prompt == [old[0]]


# -- identity -------------------------------------------------------------------------------------


async def test_the_same_opening_in_two_chats_stays_two(house: House) -> None:
    """I02."""
    one = await house.say("hi")
    two = await house.say("hi")
    assert one.conversation != two.conversation
    assert two.prompt == [user("hi")]
    assert count(house, "messages") == 4


async def test_equal_openings_and_replies_go_on_in_the_newest(house: House) -> None:
    house.local.answers = ["Hello.", "Hello."]
    await house.say("hi")
    second = await house.say("hi")
    said = await house.say(user("hi"), assistant("Hello."), user("go on"))
    assert said.conversation == second.conversation


async def test_a_reply_that_we_did_not_give_finds_nothing(house: House) -> None:
    await house.say(user("hi"), assistant("from elsewhere"), user("one"))
    house.local.answers = ["Another."]
    said = await house.say(user("hi"), assistant("from elsewhere"), user("two"))
    assert count(house, "conversations") == 2
    assert said.prompt == [user("hi"), assistant("from elsewhere"), user("two")]


@pytest.mark.parametrize(
    "others",
    [{"owner": "bob"}, {"user": "u2"}, {"owner": "bob", "user": "u2"}],
)
async def test_two_owners_with_one_id_have_two_conversations(
    house: House, others: dict[str, str]
) -> None:
    """I04."""
    mine = await house.say("my secret is 42", id="chat")
    theirs = await house.say("what did we discuss?", id="chat", **others)
    assert theirs.conversation != mine.conversation
    assert theirs.prompt == [user("what did we discuss?")]
    by_id = await house.say("and by its id?", id=mine.conversation, **others)
    assert by_id.conversation not in (mine.conversation, theirs.conversation)
    assert by_id.prompt == [user("and by its id?")]


async def test_two_owners_with_one_history_have_two_conversations(house: House) -> None:
    """I01."""
    history = await chat(house, "hi", owner="ann")
    said = await house.say(*history, user("go on"), owner="bob")
    assert count(house, "conversations") == 2
    assert said.prompt == [*history, user("go on")]


async def test_an_unknown_id_begins_a_conversation_under_that_alias(house: House) -> None:
    first = await house.say("one", id="new-id")
    assert house.conversation("new-id").id == first.conversation
    assert (await house.say("two", id="new-id")).conversation == first.conversation


async def test_another_model_or_backend_changes_nothing(house: House) -> None:
    """I03."""
    history = await chat(house, "one")
    said = await house.say(*history, user("two"), model="cloudy")
    assert count(house, "conversations") == 1
    assert said.prompt == [*history, user("two")]


# -- what clients change --------------------------------------------------------------------------


async def test_an_echo_without_its_trailing_space_is_known_and_the_prompt_is_ours(
    house: House,
) -> None:
    house.local.answers = ["Line one\r\n\n\n  Line two  \n"]
    await house.say("hi", id="c")
    said = await house.say(user("hi"), assistant("Line one\n\n\n  Line two"), user("go on"), id="c")
    assert count(house, "messages") == 4
    assert said.prompt[1] == assistant("Line one\r\n\n\n  Line two  \n")


async def test_an_echo_in_another_composition_is_known(house: House) -> None:
    house.local.answers = ["각 é"]
    await house.say("hi")
    said = await house.say(user("hi"), assistant("각 é"), user("go on"))
    assert count(house, "conversations") == 1
    assert said.prompt[1] == assistant("각 é")


async def test_an_echo_without_reasoning_is_known(house: House) -> None:
    thought = {"reasoning_content": "Let me think.", "content": "42"}
    house.local.answers = [[delta(thought), delta({}, "stop")]]
    await house.say("hi")
    said = await house.say(user("hi"), assistant("42"), user("go on"))
    assert count(house, "conversations") == 1
    stored = loads(house.one("SELECT raw FROM messages WHERE role = 'assistant' ORDER BY pk"))
    assert stored["reasoning_content"] == "Let me think."
    assert said.prompt[1] == assistant("42")


async def test_a_head_that_is_trimmed_is_kept(house: House) -> None:
    history = await chat(house, "one", "two", "three", id="c")
    said = await house.say(*history[2:], user("four"), id="c")
    assert said.prompt == [*history, user("four")]
    assert count(house, "messages") == 8


async def test_a_head_trimmed_to_the_last_reply(house: House) -> None:
    history = await chat(house, "one", "two", id="c")
    said = await house.say(history[-1], user("three"), id="c")
    assert said.prompt == [*history, user("three")]


async def test_a_filler_before_a_trimmed_head_is_no_message(house: House) -> None:
    history = await chat(house, "one", "two", "three", id="c")
    said = await house.say(user("[Start a new chat]"), *history[3:], user("four"), id="c")
    assert said.prompt == [*history, user("four")]


async def test_a_mid_conversation_system_message_of_a_trimmed_head_keeps_its_place(
    house: House,
) -> None:
    history = await chat(house, "one", "two", id="c")
    sent = [system("S"), history[2], history[3], system("From now on French."), user("three")]
    said = await house.say(*sent, id="c")
    assert said.prompt == [
        system("S"),
        *history,
        system("From now on French."),
        user("three"),
    ]


async def test_a_system_text_that_changes_every_turn_is_passed_on(house: House) -> None:
    history: list[Say] = []
    for at in range(3):
        history.append(user(f"m{at}"))
        said = await house.say(system(f"Time: {at}"), *history)
        history.append(assistant(said.text))
        assert said.prompt[0] == system(f"Time: {at}")
    assert count(house, "conversations") == 1
    assert count(house, "messages") == 6
    assert count(house, "system_texts") == 3


async def test_a_resending_client_that_drops_its_system_text_has_none(house: House) -> None:
    history = await chat(house, "one", lead=[system("S")])
    said = await house.say(*history[1:], user("two"))
    assert said.prompt == [*history[1:], user("two")]


async def test_system_messages_between_keep_their_place(house: House) -> None:
    sent = [
        system("A"),
        user("one"),
        {"role": "developer", "content": "B"},
        assistant("greetings"),
        user("two"),
        system("note at the end"),
    ]
    said = await house.say(*sent, id="c")
    assert said.prompt == sent
    assert [role for role, _ in house.told("c")] == ["user", "assistant", "user", "assistant"]
    after = await house.say(*sent[:5], assistant("Reply 1."), user("three"), id="c")
    assert after.prompt == [*sent[:5], assistant("Reply 1."), user("three")]


async def test_a_leading_greeting_is_part_of_the_conversation(house: House) -> None:
    greeting = assistant("*She waves.* Hello, traveller!")
    history = await chat(house, "hi", "where am I?", lead=[greeting])
    assert count(house, "conversations") == 1
    assert count(house, "messages") == 5
    assert [loads(m) for m in house.local.seen[-1]] == history[:-1]


async def test_another_greeting_is_another_conversation(house: House) -> None:
    await chat(house, "hi", lead=[assistant("Hello!")])
    await chat(house, "hi", lead=[assistant("Good evening.")])
    assert count(house, "conversations") == 2


async def test_going_on_with_the_last_reply(house: House) -> None:
    """A trailing assistant message: the model is asked to continue it."""
    history = await chat(house, "one")
    said = await house.say(*history)
    assert said.prompt == history
    assert [role for role, _ in house.told(said.conversation)] == ["user", "assistant", "assistant"]


# -- replies that broke off -----------------------------------------------------------------------


async def half(house: House) -> str:
    """A reply of which the client heard the first two pieces."""
    house.local.answers = [broken("Half of an answer that breaks off")]
    await house.try_to_say("one", id="c")
    role, said = house.told("c")[-1]
    assert role == "assistant"
    return str(said)


async def test_a_partial_reply_that_is_echoed_is_known(house: House) -> None:
    said = await half(house)
    after = await house.say(user("one"), assistant(said), user("two"), id="c")
    assert after.prompt == [user("one"), assistant(said), user("two")]
    assert count(house, "messages") == 4


async def test_a_partial_reply_that_is_not_echoed_stays_on_its_branch(house: House) -> None:
    await half(house)
    after = await house.say(user("one"), user("two"), id="c")
    assert after.prompt == [user("one"), user("two")]
    # one, its half, two, its reply
    assert count(house, "messages") == 4


async def test_after_a_partial_reply_a_newest_message_follows_it(house: House) -> None:
    said = await half(house)
    after = await house.say("two", id="c")
    assert after.prompt == [user("one"), assistant(said), user("two")]


async def test_a_shorter_echo_than_was_stored_is_a_branch(house: House) -> None:
    said = await half(house)
    after = await house.say(user("one"), assistant(said[:4]), user("two"), id="c")
    assert after.prompt == [user("one"), assistant(said[:4]), user("two")]


# -- the door -------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ['"content":"x","deep":%s', '"content":[{"type":"new","x":%s}]'])
async def test_a_nest_too_deep_to_be_stored_is_told(house: House, place: str) -> None:
    message = '{"role":"user",' + place % ("[" * 985 + "]" * 985) + "}"
    body = '{"model":"foldgate","messages":[' + message + "]}"
    with pytest.raises(BadRequest):
        await open_turn(house.ctx, prepare(parse_chat(body.encode()), owner="ann"), "r")
    assert count(house, "messages") == 0


# -- what a turn added --------------------------------------------------------------------------


async def test_a_turn_adds_all_that_its_client_added(house: House) -> None:
    house.local.answers = ["12345", "67890"]

    async def before(*messages: Say) -> int:
        said = await house.say(*messages, id="c")
        return said.turn.prepared.begun.question.placement.chars_before

    first = [user("x" * 100), user("y" * 10)]
    assert await before(*first) == 0
    second = [*first, assistant("12345"), user("one " * 250), user("o" * 50)]
    assert await before(*second) == 100 + 10 + 5
    trimmed = [*second[3:], assistant("67890"), user("two " * 250), user("t" * 50)]
    assert await before(*trimmed) == 115 + 1_000 + 50 + 5
    # told again, nothing is new: the newest message is asked once more
    assert await before(*trimmed) == 1_170 + 1_000
