"""What stays of a deleted fact, how long, and what it keeps from being learned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from gateway.store import profile_edits, transcript
from gateway.store.conversations import delete_conversation
from gateway.store.transcript import ConversationRow
from tests.gateway.house import House
from tests.gateway.seeds import NOW
from tests.gateway.store.test_profile import SIX, Chats


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    house = House(tmp_path)
    with house.store._writer.begin() as connection:
        yield Chats(connection)
    house.store.close()


def erase(chats: Chats, chat: ConversationRow) -> None:
    delete_conversation(chats.connection, chat, elsewhere=(), now_ms=NOW + 9)


def digests(chats: Chats) -> list[tuple[str, str]]:
    rows = chats.connection.execute(text("SELECT state, text, source FROM profile_facts"))
    return [(row.state, row.text) for row in rows if row.source]


@pytest.mark.parametrize(("said", "about", "fact", "again"), SIX, ids=[six[1] for six in SIX])
def test_deleted_stays_deleted_when_the_chat_that_taught_it_goes(
    chats: Chats, said: str, about: str, fact: str, again: str
) -> None:
    """It was said in another chat before the deletion, which is summarized behind both."""
    chat, other = chats.begin(), chats.begin()
    nodes, before = chats.say(chat, said), chats.say(other, f"{said} 🦌")
    assert chats.learn(chat, nodes, (about, fact, 0)) == 1
    profile_edits.delete_fact(chats.connection, chats.row(fact), NOW + 5)
    erase(chats, chat)
    assert digests(chats) == [("deleted", "")]
    for words in (fact, again):
        assert chats.learn(other, before, (about, words, 0)) == 0
    later = chats.say(other, f"{said} {said}", parent=before[-1], now=NOW + 6)
    assert chats.learn(other, later, (about, fact, 0)) == 1


def test_with_the_last_chat_nothing_is_left_to_learn_from(chats: Chats) -> None:
    one, two = chats.begin(), chats.begin()
    for chat, about, fact in (
        (one, "pets", "The user keeps goats."),
        (two, "дом", "Дом в Казани."),
    ):
        chats.learn(chat, chats.say(chat, f"So: {fact}"), (about, fact, 0))
        profile_edits.delete_fact(chats.connection, chats.row(fact), NOW)
    own = profile_edits.add_fact(chats.connection, chats.owner, "私はアンナ。", "name", NOW)
    profile_edits.delete_fact(chats.connection, own, NOW + 1)
    erase(chats, one)
    assert digests(chats) == [("deleted", "")] * 3
    erase(chats, two)
    assert digests(chats) == []


@pytest.mark.parametrize(("said", "about", "fact", "again"), SIX, ids=[six[1] for six in SIX])
def test_what_its_owner_wrote_and_deleted_is_not_learned_from_what_was_said_before(
    chats: Chats, said: str, about: str, fact: str, again: str
) -> None:
    chat = chats.begin()
    nodes = chats.say(chat, said)
    own = profile_edits.add_fact(chats.connection, chats.owner, fact, about, NOW)
    profile_edits.delete_fact(chats.connection, own, NOW + 5)
    for words in (fact, again):
        assert chats.learn(chat, nodes, (about, words, 0)) == 0
    assert chats.learn(chat, nodes, ("", fact, 0)) == 0
    later = chats.say(chat, f"{said} {said}", parent=nodes[-1], now=NOW + 6)
    assert chats.learn(chat, later, (about, fact, 0)) == 1
    assert [row.text for row in (chats.row(fact),)] == [fact]


def test_a_copy_of_a_chat_says_what_it_says_when_the_first_did(chats: Chats) -> None:
    """Two messages tell it; the first taught it, the copy's summarizer names the second."""
    chat = chats.begin()
    first = chats.say(chat, "I raise a goat called Quill.")
    second = chats.say(chat, "Quill, my goat, is ill.", parent=first[-1])
    told = ("goat", "The user raises a goat called Quill.", 0)
    assert chats.learn(chat, first, told) == 1
    profile_edits.delete_fact(chats.connection, chats.row(told[1]), NOW + 5)
    chats.now = NOW + 1_000
    copy = chats.begin()
    start = chats.say(copy, "I raise a goat called Quill.")
    rest = chats.say(copy, "Quill, my goat, is ill.", parent=start[-1])
    assert chats.learn(copy, rest, told) == 0, "said before, by its first telling"
    assert chats.learn(copy, [*start, *rest], ("goat", "Quill is the user's goat.", 2)) == 0
    assert second
    anew = chats.say(copy, "My goat Quill is well again!", parent=rest[-1])
    assert chats.learn(copy, anew, told) == 1


MENDED = [
    ("We moved to a farm near Porto.", "The user owns a farm near Porto."),
    ("ポルトの近くの農場に引っ越した。", "ポルトの近くに農場を持っている。"),
    ("我搬到了波尔图附近的农场。", "用户在波尔图附近有一个农场。"),
    ("포르투 근처 농장으로 이사했어.", "사용자는 포르투 근처에 농장이 있다."),
    ("Мы переехали на ферму под Порту.", "У пользователя ферма под Порту."),
    ("Nos mudamos a una granja 🦌.", "El usuario tiene una granja 🦌."),
]


@pytest.mark.parametrize("now", [False, True], ids=["waits", "at once"])
@pytest.mark.parametrize(("said", "mended"), MENDED)
def test_what_its_owner_mended_and_deleted_is_known_by_both_wordings(
    chats: Chats, said: str, mended: str, now: bool
) -> None:
    """Its text may wait for a view or be gone, and the chat that taught it too."""
    chat, other = chats.begin(), chats.begin()
    nodes = chats.say(chat, "I keep nine cats.")
    before = chats.say(other, said, "I keep nine cats, as I said.")
    assert chats.learn(chat, nodes, ("", "Nine cats live there.", 0)) == 1
    learned = chats.row("Nine cats live there.")
    own = profile_edits.edit_fact(chats.connection, learned, mended, None, NOW + 2)
    if not now:
        profile_edits.end_facts(chats.connection, [own.pk, learned.pk], "deleted", NOW + 5)
        assert chats.learn(other, before, ("", mended, 0)) == 0, "its text is there still"
    profile_edits.delete_fact(chats.connection, own, NOW + 5, at_once=now)
    for _ in range(2):
        assert chats.learn(other, before, ("", mended, 0)) == 0
        assert chats.learn(other, before, ("", "Nine cats live there.", 2)) == 0
        if transcript.conversation_by_pk(chats.connection, chats.owner, chat.pk) is not None:
            erase(chats, chat)
    assert {told for _, told in digests(chats)} == {""}
    later = chats.say(other, f"{said} {said}", parent=before[-1], now=NOW + 6)
    assert chats.learn(other, later, ("", mended, 0)) == 1


def test_who_has_no_chat_leaves_no_digests(chats: Chats) -> None:
    own = profile_edits.add_fact(chats.connection, chats.owner, "我的猫叫味噌。", "猫", NOW)
    profile_edits.delete_fact(chats.connection, own, NOW + 5)
    assert digests(chats) == []
