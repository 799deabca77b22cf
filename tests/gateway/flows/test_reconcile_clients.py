"""Clients of the field as they are on the wire: what they change, trim and put in between.

Each test drives the whole turn and looks at two things: the transcript, which holds what the person
and the model said and nothing else, and the prompt, in which what the client put in stands where
the client put it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from gateway.errors import Conflict
from gateway.wire.json_text import loads
from tests.gateway.house import House, Say, assistant, system, user

NOTE = "[Author's note: the storm is near, keep it tense.]"


def texts(said: list[Say]) -> list[Any]:
    return [message["content"] for message in said]


def transcript(house: House, id: str = "c") -> list[Any]:
    return [content for _, content in house.told(id)]


class Chat:
    """A client's window: what it believes was said, and the words of both sides."""

    def __init__(self, house: House, id: str | None = "c") -> None:
        self.house, self.id = house, id
        self.history: list[Say] = []
        self.truth: list[Any] = []

    async def say(self, text: str, tell: Any, answer: str | None = None) -> list[Say]:
        """One turn; tell makes the wire form of the history. Returns the prompt."""
        self.history.append(user(text))
        self.truth.append(text)
        if answer is not None:
            self.house.local.answers = [answer]
        said = await self.house.say(*tell(self.history), id=self.id)
        self.history.append(assistant(said.text))
        self.truth.append(said.text)
        self.last = said
        return said.prompt

    def check(self) -> None:
        assert transcript(self.house, self.last.conversation) == self.truth
        assert self.house.one("SELECT count(*) FROM conversations") == 1


def at_depth(history: list[Say], depth: int, note: Say) -> list[Say]:
    at = max(0, len(history) - depth)
    return [*history[:at], note, *history[at:]]


# -- SillyTavern -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "id"),
    [("system", "c"), ("user", "c"), ("assistant", "c"), ("system", None), ("user", None)],
)
@pytest.mark.parametrize("depth", [0, 1, 2, 4])
async def test_an_authors_note_at_a_depth(
    house: House, depth: int, role: str, id: str | None
) -> None:
    """It moves every turn; the model sees it at its place, the transcript never holds it."""
    chat = Chat(house, id)
    note = {"role": role, "content": NOTE}
    greeting = assistant("*She looks up from the map.* Ah, there you are.")
    chat.history, chat.truth = [greeting], [greeting["content"]]
    for at in range(8):
        words = f"Turn {at}: we walk on."
        prompt = await chat.say(
            words,
            lambda told: at_depth(told, depth, note),
            f"*She folds the map.* That is {at} miles from here, and the night is near.",
        )
        expected = at_depth(chat.history[:-1], depth, note)
        if at > 3:
            assert prompt == expected, at
    chat.check()


async def test_lorebook_entries_that_change_with_what_is_spoken_of(house: House) -> None:
    chat = Chat(house)
    for at in range(8):
        lore = user(f"[Lore: the tower of {at} has {at + 3} floors.]")
        tell = partial(at_depth, depth=3, note=lore)
        prompt = await chat.say(f"Tell me of tower {at}.", tell)
        if at > 3:
            assert prompt == at_depth(chat.history[:-1], 3, lore)
    chat.check()


@pytest.mark.parametrize("id", ["c", None])
async def test_names_in_the_content(house: House, id: str | None) -> None:
    """The client writes "Bob: " before our replies; ours stand in the prompt as we gave them."""
    chat = Chat(house, id)

    def named(told: list[Say]) -> list[Say]:
        return [
            {**m, "content": f"Bob: {m['content']}"} if m["role"] == "assistant" else m
            for m in told
        ]

    for at in range(6):
        prompt = await chat.say(f"Ann: question {at}", named, f"A long enough answer, number {at}.")
    assert prompt == chat.history[:-1]
    chat.check()


async def test_strict_roles_at_the_client_join_a_note_with_a_message(house: House) -> None:
    chat = Chat(house)

    def squashed(told: list[Say]) -> list[Say]:
        joined: list[Say] = []
        for message in at_depth(told, 2, user(NOTE)):
            if joined and joined[-1]["role"] == message["role"]:
                content = f"{joined[-1]['content']}\n\n{message['content']}"
                joined[-1] = {**message, "content": content}
            else:
                joined.append(message)
        return joined

    for at in range(8):
        prompt = await chat.say(f"Turn {at}: we walk on.", squashed)
    assert prompt == squashed(chat.history[:-1]), "as it came, though the rows hold it apart"
    chat.check()


async def test_a_swipe_with_a_note_is_a_sibling(house: House) -> None:
    chat = Chat(house)
    for at in range(4):
        await chat.say(f"Turn {at}.", lambda told: at_depth(told, 2, user(NOTE)))
    told = at_depth(chat.history[:-1], 2, user(NOTE))
    said = await house.say(*told, id="c")
    assert said.prompt == told
    assert transcript(house) == [*chat.truth[:-1], said.text]
    replies = house.rows(
        "SELECT count(*) FROM messages WHERE role = 'assistant' AND depth = :d", d=8
    )
    assert replies == [(2,)]


@pytest.mark.parametrize("depth", [0, 2])
async def test_a_key_sent_again_with_a_note_is_the_same_question(house: House, depth: int) -> None:
    chat = Chat(house)
    for at in range(4):
        await chat.say(f"Turn {at}.", lambda told: at_depth(told, depth, user(NOTE)))
    told = at_depth([*chat.history, user("And now?")], depth, user(NOTE))
    first = await house.say(*told, id="c", key="k1")
    again = await house.say(*told, id="c", key="k1")
    assert again.bytes == first.bytes
    assert transcript(house)[-2] == "And now?"
    other = at_depth([*chat.history, user("Or then?")], depth, user(NOTE))
    with pytest.raises(Conflict):
        await house.say(*other, id="c", key="k1")


async def test_replies_that_were_asked_for_at_once_are_siblings(house: House) -> None:
    """RisuAI's and SillyTavern's swipes with n: whichever the person keeps is known."""
    said = [
        {"index": at, "delta": {"content": f"Answer {at}, the way I see it."}} for at in (0, 1, 2)
    ]
    ends = [{"index": at, "delta": {}, "finish_reason": "stop"} for at in (2, 1, 0)]
    house.local.answers = [[{"choices": said}, *({"choices": [end]} for end in ends)]]
    await house.say("hi", id="c", n=3)
    rows = house.rows(
        "SELECT raw, produced, finish_reason FROM messages WHERE depth = 2 ORDER BY pk"
    )
    assert [loads(row[0])["content"][:8] for row in rows] == ["Answer 0", "Answer 1", "Answer 2"]
    assert {row[1:] for row in rows} == {(1, "stop")}
    assert transcript(house)[1] == "Answer 0, the way I see it."
    kept = [user("hi"), assistant("Answer 2, the way I see it."), user("go on")]
    after = await house.say(*kept, id="c")
    assert after.prompt == kept
    assert house.one("SELECT count(*) FROM messages WHERE depth = 2") == 3


async def test_a_group_chat_goes_on_without_a_person(house: House) -> None:
    """Each character answers in turn; the nudge is the client's."""
    chat = Chat(house)
    nudge = system("[Write the next reply only as Carl.]")

    def told(history: list[Say]) -> list[Say]:
        return [
            {**m, "content": f"{'Bob' if at % 3 == 1 else 'Carl'}: {m['content']}"}
            if m["role"] == "assistant"
            else m
            for at, m in enumerate(history)
        ]

    for at in range(3):
        await chat.say(f"Ann: round {at}", told, f"Bob speaks of round {at}.")
        house.local.answers = [f"Carl speaks of round {at}."]
        said = await house.say(*told(chat.history), nudge, id="c")
        assert said.prompt[-1] == nudge
        chat.history.append(assistant(said.text))
        chat.truth.append(said.text)
    chat.check()


async def test_a_nudge_to_go_on_is_the_clients(house: House) -> None:
    """Strict roles make a user message of it."""
    chat = Chat(house)
    await chat.say("Tell me a tale.", list, "Once there was")
    nudge = user("[Continue your last message without repeating its original content.]")
    house.local.answers = [" a king."]
    said = await house.say(*chat.history, nudge, id="c")
    assert said.prompt == [*chat.history, nudge]
    grown = assistant("Once there was a king.")
    after = await house.say(user("Tell me a tale."), grown, user("And then?"), id="c")
    assert transcript(house) == [
        "Tell me a tale.",
        "Once there was",
        " a king.",
        "And then?",
        after.text,
    ]


@pytest.mark.parametrize("filler", ["[Start a new chat]", "Let's get started."])
async def test_a_filler_in_front_of_a_greeting_from_the_first_turn(
    house: House, filler: str
) -> None:
    chat = Chat(house, None)
    chat.history = [assistant("Welcome, traveller!")]
    for at in range(4):
        prompt = await chat.say(f"m{at}", lambda told: [user(filler), *told])
        assert prompt == [user(filler), *chat.history[:-1]]


# -- clients that trim -------------------------------------------------------------------------


@pytest.mark.parametrize("id", ["c", None])
@pytest.mark.parametrize("budget", [3, 6, 11])
async def test_a_client_that_trims_the_oldest(house: House, id: str | None, budget: int) -> None:
    """RisuAI by tokens, Chatbox, Jan and LobeChat by turns: nothing is forgotten here."""
    chat = Chat(house, id)
    for at in range(12):
        words = f"Question {at}: what about the number {at * 37}?"
        prompt = await chat.say(
            words, lambda told: told[-budget:], f"The number {at * 37} is a fine one, they say."
        )
        assert prompt == chat.history[:-1]
    chat.check()


def _behind(lead: Say, told: list[Say]) -> list[Say]:
    return [lead, *told[-41:]]


async def test_the_last_twenty_turns_and_retrieval_in_the_system_text(house: House) -> None:
    """AnythingLLM."""
    chat = Chat(house)
    for at in range(30):
        lead = system(f"You are helpful.\nContext:\n[CONTEXT {at}]: chapter {at} of the book")
        prompt = await chat.say(f"q{at}", partial(_behind, lead))
        assert prompt[0] == lead
    chat.check()


async def test_a_clients_own_compaction_in_place_of_the_head(house: House) -> None:
    chat = Chat(house)
    for at in range(6):
        await chat.say(f"Turn {at}: we walk on.", list)
    summary = user(
        "Summary of the conversation so far: they walked on for six turns, the weather was fine, "
        "and nobody said where they were going or why."
    )
    prompt = await chat.say("Where are we?", lambda told: [summary, *told[-4:]])
    assert prompt == [summary, *chat.history[:-1]], "what it stands for is shown as well"
    chat.check()


async def test_open_webuis_compaction_stands_in_the_system_text(house: House) -> None:
    chat = Chat(house)
    lead = system("You are kind.")
    for at in range(6):
        await chat.say(f"Turn {at}: we walk on.", lambda told: [lead, *told])
    compact = system("You are kind.\n\n[CONVERSATION SUMMARY]\nThey walked on.")
    prompt = await chat.say("Where are we?", lambda told: [compact, *told[-3:]])
    assert prompt == [compact, *chat.history[:-1]]
    chat.check()


# -- text around the newest message ---------------------------------------------------------------


@pytest.mark.parametrize("id", ["c", None])
async def test_retrieved_text_before_the_newest_message(house: House, id: str | None) -> None:
    """Open WebUI puts it before the newest message only: the next turn tells it without."""
    chat = Chat(house, id)

    def wrapped(told: list[Say]) -> list[Say]:
        lead = (
            f"### Task:\nRespond from the context.\n<context>\nPaper {len(told)}.\n</context>\n\n"
        )
        return [*told[:-1], user(lead + told[-1]["content"])]

    for at in range(6):
        prompt = await chat.say(
            f"Question {at} of many?",
            wrapped,
            f"Answer number {at}, from the papers that I was given.",
        )
        assert prompt == wrapped(chat.history[:-1])
        assert at == 0 or transcript(house, chat.last.conversation) == chat.truth
    moved = house.rows("SELECT moved_by FROM attempts ORDER BY pk")
    assert [by for (by,) in moved[2:]] == ["note"] * 4, "told by name in the prefix report"
    assert house.one("SELECT count(*) FROM messages WHERE raw GLOB '*Paper *'") == 1


async def test_continue_with_a_trailing_reply_that_grew(house: House) -> None:
    """Open WebUI: continue_final_message."""
    chat = Chat(house)
    await chat.say("Tell me a tale.", list, "Once there")
    house.local.answers = [" was a king"]
    await house.say(*chat.history, id="c")
    grown = [user("Tell me a tale."), assistant("Once there was a king")]
    house.local.answers = [" and a queen."]
    said = await house.say(*grown, id="c")
    assert texts(said.prompt) == ["Tell me a tale.", "Once there", " was a king"]
    assert transcript(house) == ["Tell me a tale.", "Once there", " was a king", " and a queen."]


# -- what stays as it was -------------------------------------------------------------------------


async def test_an_edit_in_place_of_an_older_message_is_a_branch(house: House) -> None:
    """I11: "Oslo" becomes "Lima", and what follows is sent again."""
    chat = Chat(house)
    await chat.say("I live in Oslo.", list, "A fine town by the sea.")
    await chat.say("What is the weather like?", list, "It will be cold today, I think.")
    await chat.say("And tomorrow?", list, "Tomorrow will be colder still.")
    edited = [user("I live in Lima."), *chat.history[1:], user("Where do I live?")]
    said = await house.say(*edited, id="c")
    assert said.prompt == edited
    old = house.rows("SELECT count(*) FROM messages WHERE raw LIKE '%Oslo%'")
    assert old == [(1,)]


async def test_an_edited_reply_is_a_branch(house: House) -> None:
    chat = Chat(house)
    for at in range(3):
        await chat.say(f"Question {at}?", list, f"The answer to {at} is a blue door.")
    edited = [*chat.history]
    edited[3] = assistant("The answer to 1 is a green door.")
    said = await house.say(*edited, user("Which door?"), id="c")
    assert said.prompt == [*edited, user("Which door?")]


async def test_a_foreign_chat_with_the_same_small_talk_is_another_one(house: House) -> None:
    """Without an id a short common reply is no proof."""
    chat = Chat(house, None)
    await chat.say("hi", list, "Hello!")
    await chat.say("my PIN is 1111", list, "Noted.")
    said = await house.say(user("a new chat"), assistant("Hello!"), user("what is my PIN?"))
    assert house.one("SELECT count(*) FROM conversations") == 2
    assert "1111" not in str([loads(m) for m in said.bytes])


async def test_anothers_history_is_never_found(house: House) -> None:
    chat = Chat(house, None)
    for at in range(4):
        await chat.say(
            f"Question {at}?", list, f"A long and special answer to question {at}, for Ann."
        )
    said = await house.say(*chat.history[2:], user("go on"), owner="bob")
    assert house.one("SELECT count(*) FROM conversations") == 2
    assert said.prompt == [*chat.history[2:], user("go on")]


async def test_tool_messages_that_a_client_leaves_out_are_kept(house: House) -> None:
    from tests.gateway.house import call_of, delta, tool

    calls = delta({"tool_calls": [{**call_of("t1"), "index": 0}]})
    house.local.answers = [[calls, delta({}, "tool_calls")], "It is sunny, as the tool told me."]
    await house.say(user("look"), id="c")
    await house.say(
        user("look"), assistant(None, tool_calls=[call_of("t1")]), tool("t1", "sun"), id="c"
    )
    said = await house.say(
        user("look"), assistant("It is sunny, as the tool told me."), user("thanks"), id="c"
    )
    assert [m["role"] for m in said.prompt] == ["user", "assistant", "tool", "assistant", "user"]
