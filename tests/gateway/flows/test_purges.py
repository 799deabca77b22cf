"""Whatever ends that a view shows a deleted text empties it: a fold, a cut, another branch, the
deletion of the conversation."""

from __future__ import annotations

import pytest

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows import memory_edits
from gateway.flows.erase import erase_conversation
from gateway.store import documents, profile_edits
from gateway.store.transcript import find_owner
from tests.gateway.house import House, Said, assistant, user

FACTS = ["I live in Kyoto.", "京都に住んでいます。", "Я живу в Казани.", "Vivo en Sevilla 🦌."]


def shown(said: Said) -> str:
    return "\n".join(str(message["content"]) for message in said.prompt)


async def show_and_delete(house: House, fact: str) -> Said:
    """A fact that the view of `a` shows and its owner deleted, to go at the next fold."""
    await house.say("hello", id="x")
    owner = house.store.reading(find_owner, "ann", "")
    assert owner is not None
    row = house.store.writing(profile_edits.add_fact, owner, fact, None, house.clock.ms)
    said = await house.say(user("hi there"), id="a")
    assert fact in shown(said)
    house.store.writing(memory_edits.delete_fact, row, house.clock.ms, now=False)
    assert texts(house) == [(fact,)]
    return said


def texts(house: House) -> list[tuple[str]]:
    return house.rows("SELECT text FROM profile_facts WHERE text != ''")


@pytest.mark.parametrize("fact", FACTS)
async def test_it_goes_with_the_conversation_that_showed_it(house: House, fact: str) -> None:
    await show_and_delete(house, fact)
    await erase_conversation(house.ctx, lambda connection: house.conversation("x"))
    assert texts(house) == [(fact,)], "the other one shows it still"
    await erase_conversation(house.ctx, lambda connection: house.conversation("a"))
    assert texts(house) == []


@pytest.mark.parametrize("fact", FACTS)
async def test_it_goes_when_its_owner_goes_to_another_branch(house: House, fact: str) -> None:
    said = await show_and_delete(house, fact)
    history = [user("hi there"), assistant(said.text), user("so")]
    await house.say(*history, id="a")
    assert texts(house) == [(fact,)]
    words = house.one("SELECT count(*) FROM kv_outbox WHERE conversation_id = ''")
    other = await house.say(user("hi, you"), assistant(said.text), user("and"), id="a")
    assert house.conversation("a").head_pk == other.turn.prepared.begun.asked.pk + 1
    assert (fact in shown(other), texts(house)) == (False, [])
    assert house.one("SELECT count(*) FROM kv_outbox WHERE conversation_id = ''") == words + 1
    back = await house.say(*history, assistant("Reply 3."), user("on"), id="a")
    assert fact not in shown(back)


async def test_a_document_that_another_branch_showed_goes_too(house: House) -> None:
    said = await house.say(user("hi there"), id="a")
    chat = house.conversation("a")
    put = house.store.writing(documents.put_document, chat.pk, "plan", "PLAN-7", house.clock.ms)
    history = [user("hi there"), assistant(said.text)]
    assert "PLAN-7" in shown(await house.say(*history, user("so"), id="a"))
    house.store.writing(documents.remove_document, put[0], house.clock.ms)
    assert house.rows("SELECT text FROM documents") == [("PLAN-7",)]
    await house.say(*history, user("or else"), id="a")
    assert house.rows("SELECT text FROM documents") == []


async def test_it_goes_at_a_cut(house: House) -> None:
    said = await show_and_delete(house, FACTS[0])
    history = [user("hi there"), assistant(said.text)]
    for at in range(6):
        history.append(user(f"{'word ' * 80}{at}"))
        history.append(assistant((await house.say(*history, id="a")).text))
    assert (texts(house), len(house.folds())) == ([(FACTS[0],)], 1)
    overflow = UpstreamFault(
        FaultKind.OVERFLOW, "too long", prompt_tokens=2_600, window_tokens=2_000
    )
    house.local.answers = [overflow]
    cut = await house.say(*history, user("go on"), id="a")
    assert cut.view == "cut"
    assert (FACTS[0] in shown(cut), texts(house)) == (False, [])
