"""What was said in private under another id: a clone, a trimmed head, the last reply alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.errors import Forbidden
from gateway.flows import privacy
from tests.gateway.house import POLICIES, House, Say, assistant, user

MORE = (
    POLICIES
    + "  secret: {tiers: [{backend: local, policy: small}], private: true}\n"
    + "  away: {tiers: [{backend: cloud, policy: wide}]}\n"
)
LONG = "Der Schlüssel liegt unter dem Stein. 鍵は石の下。"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path, MORE)
    house.cloud.local = False
    yield house
    house.store.close()


async def confide(
    house: House, *answers: str, id: str | None = "pvA", before: list[Say] | None = None
) -> list[Say]:
    """A private talk, as its client tells it again."""
    told = list(before or ())
    for number, answer in enumerate(answers):
        told.append(user(f"Only between us, number {number}."))
        house.local.answers.append(answer)
        told.append(assistant((await house.say(*told, id=id, model="secret")).text))
    return told


async def refused(house: House, *told: Say, id: str | None = "pvB", **more: Any) -> bool:
    before = house.rows("SELECT count(*) FROM conversations")
    calls = len(house.cloud.calls)
    try:
        await house.say(*told, id=id, model="away", **more)
    except Forbidden as error:
        assert error.code == "private_conversation"
        assert len(house.cloud.calls) == calls
        assert house.rows("SELECT count(*) FROM conversations") == before
        return True
    return False


@pytest.mark.parametrize("id", ["pvB", None])
@pytest.mark.parametrize("trimmed", [0, 1, 2, 3])
async def test_a_clone_of_a_private_conversation_is_private(
    house: House, id: str | None, trimmed: int
) -> None:
    told = await confide(house, LONG, LONG + "!")
    assert await refused(house, *told[trimmed:], user("And now?"), id=id)


async def test_a_clone_that_begins_on_this_machine_stays_there(house: House) -> None:
    told = await confide(house, LONG)
    assert (await house.say(*told, user("And?"), id="pvB", model="both")).text
    assert house.conversation("pvB").private
    assert await refused(house, user("Come along."))
    # what was said there is as private, and what it was given before as well
    clone = [*told, user("And?"), assistant("Reply 1.")]
    assert await refused(house, *clone, user("go"), id="pvC")


async def test_what_was_said_before_a_conversation_became_private(house: House) -> None:
    house.cloud.answers.append(LONG)
    told = [user("hi"), assistant((await house.say("hi", id="c", model="away")).text)]
    await house.say(*told, user("secret"), id="c", model="secret")
    assert await refused(house, *told, user("And now?"))


async def test_a_clone_with_the_speakers_names_and_the_thinking_in_it(house: House) -> None:
    told = await confide(house, LONG)
    named = [told[0], assistant(f"Ольга: {LONG}"), user("And?")]
    assert await refused(house, *named)
    thought = [told[0], assistant(f"<think>hm</think>{LONG}"), user("And?")]
    assert await refused(house, *thought, id="pvC")


async def test_a_short_reply_counts_behind_its_own_question_only(house: House) -> None:
    told = await confide(house, "ok")
    assert not await refused(house, assistant("ok"), user("And?"), id="one")
    assert not await refused(house, user("Fine?"), assistant("ok"), user("And?"), id="two")
    assert await refused(house, *told, user("And?"), id="three")


async def test_what_was_said_in_public_too_is_not_private(house: House) -> None:
    house.cloud.answers.append(LONG)
    open_ = [user("hi"), assistant((await house.say("hi", id="open", model="away")).text)]
    await confide(house, LONG, "Another secret reply.", before=open_)
    assert not await refused(house, *open_, user("And?"))


async def test_a_cards_greeting_and_examples_are_nobodys_secret(house: House) -> None:
    greeting = [assistant(LONG), user("Who are you?"), assistant("An old sailor, tired of the sea")]
    await confide(house, "A secret of the sea.", before=greeting)
    assert not await refused(house, *greeting, user("hm"))


async def test_other_owners_are_not_asked(house: House) -> None:
    told = await confide(house, LONG)
    assert not await refused(house, *told, user("And?"), owner="bob")


async def test_retold_words_are_not_known(house: House) -> None:
    told = await confide(house, LONG)
    squashed = user("\n".join(str(message["content"]) for message in told))
    assert not await refused(house, squashed)
    assert not await refused(house, user("hm"), assistant(LONG[:-3]), user("And?"), id="pvC")


# -- into a conversation that exists and is public ---------------------------------------------


async def chat(house: House, *answers: str, id: str = "open") -> list[Say]:
    """A talk in the cloud, as its client tells it again."""
    told: list[Say] = []
    for number, answer in enumerate(answers):
        told.append(user(f"What of the weather, number {number}?"))
        house.cloud.answers.append(answer)
        told.append(assistant((await house.say(*told, id=id, model="away")).text))
    return told


OPEN = ("It rains on the harbour today.", "雨は夕方までに止むでしょう、船長。")


@pytest.mark.parametrize(
    "mixed",
    [
        lambda own, told: [*own, *told, user("And now?")],  # behind all of it
        lambda own, told: [*own[:2], *told, user("And now?")],  # on another branch
        lambda own, told: [*told, user("And now?")],  # in its place
        lambda own, told: [*own[2:], *told, user("And now?")],  # behind a trimmed head
        lambda own, told: [*own, user("Say on."), told[1], user("And now?")],  # the reply alone
        lambda own, told: [*own, *told],  # to be continued
        lambda own, told: [*own, told[1]],
        lambda own, told: [told[1], *own[2:], user("And now?")],  # in place of the head
    ],
    ids=["behind", "branch", "instead", "trimmed", "reply", "continued", "prefix", "heading"],
)
async def test_a_private_history_does_not_leave_by_a_public_conversation(
    house: House, mixed: Any
) -> None:
    own, told = await chat(house, *OPEN), await confide(house, LONG)
    calls = len(house.cloud.calls)
    with pytest.raises(Forbidden) as refused:
        await house.say(*mixed(own, told), id="open", model="away")
    assert refused.value.code == "private_conversation"
    assert len(house.cloud.calls) == calls
    # nothing of it was kept, and the talk itself goes on where it was
    assert not house.conversation("open").private
    assert (await house.say(*own, user("And now?"), id="open", model="away")).text


async def test_what_took_in_a_private_reply_is_private_from_then_on(house: House) -> None:
    own, told = await chat(house, *OPEN), await confide(house, LONG)
    joined = [*own, *told, user("And?")]
    calls = len(house.cloud.calls)
    house.local.answers.append("Nobody hears this but you.")
    said = await house.say(*joined, id="open", model="both")
    assert house.conversation("open").private
    assert (said.text, len(house.cloud.calls)) == ("Nobody hears this but you.", calls)
    assert await refused(house, *joined, assistant(said.text), user("On."), id="open")
    assert await refused(house, *own, user("Another branch."), id="open")
    assert await refused(house, *own, user("Another name."), id="open-2")


async def test_a_short_reply_counts_in_a_public_conversation_too(house: House) -> None:
    own, told = await chat(house, *OPEN), await confide(house, "ok")
    assert not await refused(house, *own, user("Fine?"), assistant("ok"), user("And?"), id="open")
    assert await refused(house, *own, *told, user("And?"), id="open")
    assert not house.conversation("open").private


async def test_an_answer_given_in_public_too_changes_no_conversation(house: House) -> None:
    own = await chat(house, *OPEN)
    await confide(house, "Another secret.", before=own[:2])  # itself private, its beginning is not
    assert not await refused(house, *own[:2], user("A swipe of mine."), id="open")
    elsewhere = await chat(house, "One of no import at all.", id="other")
    assert not await refused(house, *elsewhere, *own, user("And?"), id="other")


async def test_only_the_owners_private_talks_count(house: House) -> None:
    told = await confide(house, LONG)
    first = await house.say("hi", id="open", model="away", owner="bob")
    own = [user("hi"), assistant(first.text)]
    more = {"id": "open", "model": "away", "owner": "bob"}
    assert (await house.say(*own, *told, user("And?"), **more)).text


async def test_a_common_turn_asks_nothing(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    own = await chat(house, *OPEN)
    asked: list[str] = []
    for name in ("has_private", "find_replies"):
        true = getattr(privacy.tails, name)

        def count(*given: Any, true: Any = true, name: str = name, **more: Any) -> Any:
            asked.append(name)
            return true(*given, **more)

        monkeypatch.setattr(privacy.tails, name, count)
    own += [user("next"), assistant((await house.say(*own, user("next"), id="open")).text)]
    assert asked == []  # nothing new but a question
    await house.say(*own[:-1], assistant("in my own words"), user("more"), id="open")
    assert asked == ["has_private"]
    await confide(house, LONG)
    asked.clear()
    await house.say(*own, user("alone"), id="open")
    assert asked == []


async def test_the_newest_of_a_history_are_looked_for(house: House) -> None:
    told = await confide(house, LONG)
    rest = [say(f"line {at}") for at in range(25) for say in (user, assistant)]
    assert await refused(house, *told, *rest[:47], user("And?"), id="one")
    assert not await refused(house, *told[1:], *rest, user("And?"), id="two")


async def test_nothing_is_read_where_nothing_is_private(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **more: Any) -> None:
        raise AssertionError("read")

    monkeypatch.setattr(privacy.tails, "find_replies", fail)
    assert not await refused(house, user("hi"), assistant(LONG), user("And?"))
    plan = house.rows(
        "EXPLAIN QUERY PLAN SELECT 1 FROM conversations WHERE owner_pk = 1 AND private LIMIT 1"
    )
    assert "ix_conversations_private" in str(plan)
