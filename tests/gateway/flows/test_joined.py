"""Clients that join the whole chat with names into one user message each turn."""

from __future__ import annotations

import pytest

from gateway.errors import Conflict
from tests.gateway.house import House, Said, assistant, user


class Single:
    """Such a client: everything in one message, the system text first."""

    def __init__(self, house: House) -> None:
        self.house, self.told = house, "You are Bob.\n\n[Start a new Chat]"

    async def say(self, text: str, answer: str) -> Said:
        self.told += f"\n\nAnn: {text}"
        self.house.local.answers = [answer]
        said = await self.house.say(self.told, id="c")
        self.told += f"\n\nBob: {answer.strip()}"
        return said


TURNS = [("塔はどこ?", "丘の向こう。"), ("Почему?", "It is far.\n\nRest. "), ("😀", "Yes.")]


async def test_only_what_is_new_is_stored_and_shown(house: House) -> None:
    chat = Single(house)
    for text, answer in TURNS:
        said = await chat.say(text, answer)
    stored = [
        user("You are Bob.\n\n[Start a new Chat]\n\nAnn: 塔はどこ?"),
        assistant("丘の向こう。"),
        user("Ann: Почему?"),
        assistant("It is far.\n\nRest. "),
        user("Ann: 😀"),
    ]
    assert said.prompt == stored
    assert [content for _, content in house.told("c")] == [m["content"] for m in stored] + ["Yes."]


async def test_a_swipe_is_a_sibling(house: House) -> None:
    chat = Single(house)
    for text, answer in TURNS[:2]:
        await chat.say(text, answer)
    again = chat.told[: chat.told.rindex("\n\nBob: ")]
    said = await house.say(again, id="c")
    assert len(said.prompt) == 3
    assert house.one("SELECT count(*) FROM messages") == 5
    assert house.told("c")[-1] == ("assistant", said.text)


async def test_a_key_sent_again_is_the_same_question(house: House) -> None:
    chat = Single(house)
    await chat.say(*TURNS[0])
    asked = f"{chat.told}\n\nAnn: Why?"
    await house.say(asked, id="c", key="k")
    await house.say(asked, id="c", key="k")
    assert [said for role, said in house.told("c") if role == "user"][-1] == "Ann: Why?"
    with pytest.raises(Conflict):
        await house.say(f"{asked} Where?", id="c", key="k")


@pytest.mark.parametrize("changed", ["山", "丘の 向"])
async def test_what_cannot_be_told_is_stored_as_it_came(house: House, changed: str) -> None:
    chat = Single(house)
    await chat.say(*TURNS[0])
    asked = chat.told.replace("丘の向", changed) + "\n\nAnn: Why?"
    await house.say(asked, id="c")
    assert house.told("c")[-2] == ("user", asked)


async def test_a_person_who_repeats_herself_is_heard(house: House) -> None:
    await house.say("yes\nyes", id="c")
    await house.say("yes\nyes", id="c")
    assert [said for role, said in house.told("c") if role == "user"] == ["yes\nyes", "yes\nyes"]
