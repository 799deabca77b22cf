"""A fact of a branch that an edit left behind stands aside until that branch is the newest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.store import profile, profile_edits
from gateway.store.profile_paths import left_behind, on_branches
from gateway.store.transcript import ConversationRow, Node
from tests.gateway.house import House, assistant, user
from tests.gateway.seeds import extend
from tests.gateway.store.test_profile import Chats

SIX = [
    ("The user lives in Oslo.", "The user lives in Bergen."),
    ("ユーザーは京都に住んでいる。", "ユーザーは奈良に住んでいる。"),
    ("用户住在杭州。", "用户住在苏州。"),
    ("사용자는 부산에 산다.", "사용자는 대구에 산다."),
    ("Пользователь живёт в Казани.", "Пользователь живёт в Перми."),
    ("El usuario vive en Sevilla 🏠.", "El usuario vive en Cádiz 🏠."),
]


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    house = House(tmp_path)
    with house.store._writer.begin() as connection:
        yield Chats(connection)
    house.store.close()


def shown(chats: Chats, chat: ConversationRow, head: Node) -> list[str]:
    rows = profile.active(chats.connection, chats.owner, conversation_pk=chat.pk)
    return [row.text for row in on_branches(chats.connection, rows, chat.pk, head)]


@pytest.mark.parametrize(("old", "new"), SIX)
def test_what_an_edit_took_back_is_told_nowhere_and_comes_back_with_its_branch(
    chats: Chats, old: str, new: str
) -> None:
    chat, other = chats.begin(), chats.begin()
    start = chats.say(chat, "hello")
    told = chats.say(chat, old, "and so on", parent=start[-1])
    beside = chats.say(other, "hi")
    chats.learn(chat, told, ("home", old, 0))
    for where, head in ((chat, told[-1]), (other, beside[-1])):
        assert shown(chats, where, head) == [old]
    edited = chats.say(chat, new, parent=start[-1])
    for where, head in ((chat, edited[-1]), (other, beside[-1])):
        assert shown(chats, where, head) == []
    assert shown(chats, chat, told[-1]) == [old]  # the branch itself, where it is asked on
    chats.learn(chat, edited, ("home", new, 0))
    assert shown(chats, other, beside[-1]) == [new]
    extend(chats.connection, chat, told[-1], [user("back again"), assistant("Yes.")], chats.now)
    assert shown(chats, other, beside[-1]) == [old]


def test_a_reply_that_is_drawn_again_takes_nothing_away(chats: Chats) -> None:
    chat, other = chats.begin(), chats.begin()
    told = chats.say(chat, "I live in Oslo.", "What is the time?")
    beside = chats.say(other, "hi")
    chats.learn(chat, told, ("home", "The user lives in Oslo.", 0))
    extend(chats.connection, chat, told[2], [assistant("Noon."), user("ok")], chats.now)
    assert shown(chats, other, beside[-1]) == ["The user lives in Oslo."]


def test_the_owners_own_words_and_what_another_chat_told_stay(chats: Chats) -> None:
    chat, other = chats.begin(), chats.begin()
    start, beside = chats.say(chat, "hello"), chats.say(other, "I live in Oslo.")
    chats.learn(other, beside, ("home", "The user lives in Oslo.", 0))
    chats.now += 10
    told = chats.say(chat, "I live in Bergen.", "My cat is Mo.", parent=start[-1])
    chats.learn(chat, told, ("home", "The user lives in Bergen.", 0), ("cat", "The cat is Mo.", 2))
    profile_edits.edit_fact(
        chats.connection, chats.row("The cat is Mo."), "My cat is Max.", "cat", chats.now
    )
    edited = chats.say(chat, "I live nowhere.", parent=start[-1])
    rows = profile.active(chats.connection, chats.owner)
    assert len(left_behind(chats.connection, rows)) == 1
    assert sorted(shown(chats, chat, edited[-1])) == ["My cat is Max.", "The user lives in Oslo."]
