"""A fact of a ledger and of the profile that one message taught: deleted and undone together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.flows import ledger_edits, memory_edits
from gateway.flows.hand import Hand
from gateway.store import chapter_rows, ledger, profile, profile_edits, profile_learning
from gateway.store.engine import Store
from gateway.store.ledger_rows import EntryRow, state_of
from gateway.store.profile_learning import Told
from gateway.store.transcript import ConversationRow, Node
from policies.values import Span
from tests.gateway.house import House, user
from tests.gateway.seeds import NOW, add_conversation

SIX = [
    ("I live in Kyoto and I keep a cat.", "The user lives in Kyoto.", "The user keeps a cat."),
    ("京都に住み、猫を飼っています。", "利用者は京都に住んでいる。", "利用者は猫を飼っている。"),
    ("我住在杭州，养了一只猫。", "用户住在杭州。", "用户养了一只猫。"),
    ("부산에 살고 고양이를 키워요.", "사용자는 부산에 산다.", "사용자는 고양이를 키운다."),
    ("Живу в Казани, держу кошку.", "Пользователь живёт в Казани.", "У пользователя есть кошка."),
    ("Vivo en Sevilla y tengo un gato.", "El usuario vive en Sevilla.", "Tiene un gato."),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    house = House(tmp_path)
    yield house.store
    house.store.close()


class Chat:
    """A conversation whose first message taught two facts, to its ledger and to the profile."""

    def __init__(self, connection: Connection, said: str, *facts: str) -> None:
        self.connection = connection
        self.row: ConversationRow
        self.nodes: list[Node]
        self.row, self.nodes = add_conversation(connection, [user(said), user("…")], owner="ann")
        self.chapter, _ = chapter_rows.add_chapter(
            connection,
            self.row.pk,
            Span(1, 1, 10),
            first_pk=self.nodes[0].pk,
            last_pk=self.nodes[0].pk,
            now_ms=NOW,
        )
        chapter_rows.add_version(
            connection,
            self.row.pk,
            self.chapter,
            text="They talked.",
            origin="model",
            backend="local",
            prompt="1",
            now_ms=NOW,
        )
        self.entries = [self._tell(text, f"thing {at}") for at, text in enumerate(facts)]

    def _tell(self, text: str, about: str) -> EntryRow:
        told = [Told(text, about, self.nodes[0].pk)]
        where = (self.row.owner_pk, self.row.pk)
        profile_learning.learn(self.connection, *where, told, span=[self.nodes[0].pk], now_ms=NOW)
        return ledger.add_entry(
            self.connection,
            self.row.pk,
            kind="fact",
            text=text,
            about=about,
            source_pk=self.nodes[0].pk,
            last_pk=self.nodes[0].pk,
            last_depth=1,
            chapter_pk=self.chapter,
            origin="model",
            now_ms=NOW,
        )

    @property
    def chapter_id(self) -> str:
        (row,) = chapter_rows.all_chapters(self.connection, self.row.pk)
        return row.id

    def hand(self, after: int = 1) -> Hand:
        return Hand(self.row, NOW + after)

    def known(self) -> set[str]:
        """The profile, as every chat of the owner is shown it."""
        return {row.text for row in profile.active(self.connection, self.row.owner_pk)}

    def told(self) -> set[str]:
        """What the ledger tells still."""
        told = ledger.all_entries(self.connection, self.row.pk)
        return {row.text for row, marks in told if state_of(row, marks).deleted is None}


@pytest.mark.parametrize(("said", "home", "cat"), SIX)
def test_a_fact_of_the_ledger_goes_with_its_memory_and_comes_back_with_it(
    store: Store, said: str, home: str, cat: str
) -> None:
    with store._writer.begin() as connection:
        chat = Chat(connection, said, home, cat)
        (fact,) = [f for f in profile.active(connection, chat.row.owner_pk) if f.text == home]
        gone = ledger_edits.delete_entry(connection, chat.hand(), chat.entries[0].id)
        assert gone == [fact.id]
        assert (chat.known(), chat.told()) == ({cat}, {cat})
        again = [Told(home, "thing 0", chat.nodes[0].pk)]
        where = (chat.row.owner_pk, chat.row.pk)
        profile_learning.learn(connection, *where, again, span=[chat.nodes[0].pk], now_ms=NOW + 2)
        assert chat.known() == {cat}, "what was deleted is not learned again"
        ledger_edits.undo_entry(connection, chat.hand(3), chat.entries[0].id)
        assert (chat.known(), chat.told()) == ({home, cat}, {home, cat})


@pytest.mark.parametrize(("said", "home", "cat"), SIX)
def test_a_memory_goes_with_its_fact_of_the_ledger_and_is_gone_for_good(
    store: Store, said: str, home: str, cat: str
) -> None:
    with store._writer.begin() as connection:
        chat = Chat(connection, said, home, cat)
        (fact,) = [f for f in profile.active(connection, chat.row.owner_pk) if f.text == home]
        memory_edits.delete_fact(connection, fact, NOW + 1, now=False)
        assert (chat.known(), chat.told()) == ({cat}, {cat})
        ledger_edits.undo_entry(connection, chat.hand(2), chat.entries[0].id)
        assert (chat.known(), chat.told()) == ({cat}, {home, cat})


def test_an_owners_wording_goes_too(store: Store) -> None:
    """The profile's fact was mended since: it is still what that message taught."""
    with store._writer.begin() as connection:
        chat = Chat(connection, "I live in Kyoto", "The user lives in Kyoto.")
        (fact,) = profile.active(connection, chat.row.owner_pk)
        profile_edits.edit_fact(connection, fact, "My home is Kyoto.", "thing 0", NOW)
        ledger_edits.delete_entry(connection, chat.hand(), chat.entries[0].id)
        assert chat.known() == set()
        ledger_edits.undo_entry(connection, chat.hand(2), chat.entries[0].id)
        assert chat.known() == {"The user lives in Kyoto."}


def test_what_stood_before_stands_again_and_gives_way_to_the_undone(store: Store) -> None:
    with store._writer.begin() as connection:
        owner_pk = Chat(connection, "hi").row.owner_pk
        profile_edits.add_fact(connection, owner_pk, "I live in Nara.", "thing 0", NOW - 9)
        chat = Chat(connection, "I live in Kyoto", "The user lives in Kyoto.")
        assert chat.known() == {"The user lives in Kyoto."}
        ledger_edits.delete_entry(connection, chat.hand(), chat.entries[0].id)
        assert chat.known() == {"I live in Nara."}
        ledger_edits.undo_entry(connection, chat.hand(2), chat.entries[0].id)
        assert chat.known() == {"The user lives in Kyoto."}


def test_a_chapter_takes_what_was_told_beside_it_along_and_gives_it_back(store: Store) -> None:
    with store._writer.begin() as connection:
        chat = Chat(connection, *SIX[0])
        first, second = chat.entries
        ledger_edits.delete_entry(connection, chat.hand(), second.id)
        gone = memory_edits.edit_chapter(connection, chat.hand(2), chat.chapter_id, "")
        assert (len(gone), chat.known(), chat.told()) == (1, set(), set())
        memory_edits.undo_chapter(connection, chat.hand(3), chat.chapter_id, None)
        assert (chat.known(), chat.told()) == ({first.text}, {first.text}), "not what went before"
        ledger_edits.undo_entry(connection, chat.hand(4), second.id)
        assert chat.told() == {first.text, second.text}


NEW = [
    "We moved to Nara last spring.",
    "この春から奈良に引っ越した。",
    "春天搬到了奈良。",
    "봄에 나라로 이사했다.",
    "Весной переехали в Нару.",
    "Se mudó a Nara 🦌.",
]


@pytest.mark.parametrize(("three", "new"), list(zip(SIX, NEW, strict=True)))
def test_a_fact_in_other_words_is_known_in_these(
    store: Store, three: tuple[str, str, str], new: str
) -> None:
    said, home, cat = three
    with store._writer.begin() as connection:
        chat = Chat(connection, said, home, cat)
        edit = {"text": new, "about": "address"}
        edited = ledger_edits.edit_entry(connection, chat.hand(), chat.entries[0].id, edit)
        assert chat.known() == {new, cat}
        (fact,) = [f for f in profile.active(connection, chat.row.owner_pk) if f.text == new]
        assert (fact.about, fact.origin, fact.conversation_pk) == (
            "address",
            "owner",
            chat.row.pk,
        )
        last = ledger_edits.edit_entry(connection, chat.hand(2), edited.id, {"text": f"{new}!"})
        assert chat.known() == {f"{new}!", cat}
        ledger_edits.delete_entry(connection, chat.hand(3), last.id)
        assert chat.known() == {cat}
        ledger_edits.undo_entry(connection, chat.hand(4), last.id)
        assert chat.known() == {f"{new}!", cat}
        ledger_edits.undo_entry(connection, chat.hand(5), last.id)
        assert chat.known() == {new, cat}
        ledger_edits.undo_entry(connection, chat.hand(6), edited.id)
        assert chat.known() == {home, cat}


def test_a_memory_takes_its_fact_of_the_ledger_along_in_whatever_words(store: Store) -> None:
    with store._writer.begin() as connection:
        chat = Chat(connection, *SIX[0])
        entry = chat.entries[0]
        edited = ledger_edits.edit_entry(connection, chat.hand(), entry.id, {"text": NEW[0]})
        last = ledger_edits.edit_entry(connection, chat.hand(), edited.id, {"text": NEW[1]})
        (fact,) = [f for f in profile.active(connection, chat.row.owner_pk) if f.text == last.text]
        memory_edits.delete_fact(connection, fact, NOW + 2, now=False)
        assert last.text not in chat.told()
        assert chat.known() == {SIX[0][2]}


def test_what_the_owner_said_in_the_profile_itself_stands(store: Store) -> None:
    with store._writer.begin() as connection:
        chat = Chat(connection, *SIX[0])
        (fact,) = [f for f in profile.active(connection, chat.row.owner_pk) if f.text == SIX[0][1]]
        profile_edits.edit_fact(connection, fact, "I left Kyoto.", fact.about, NOW)
        edit = {"text": "The user lived in Kyoto."}
        edited = ledger_edits.edit_entry(connection, chat.hand(), chat.entries[0].id, edit)
        assert chat.known() == {"I left Kyoto.", SIX[0][2]}
        ledger_edits.undo_entry(connection, chat.hand(2), edited.id)
        assert chat.known() == {"I left Kyoto.", SIX[0][2]}


def test_a_deleted_chapter_leaves_a_fact_in_its_owners_words(store: Store) -> None:
    with store._writer.begin() as connection:
        chat = Chat(connection, *SIX[0])
        ledger_edits.edit_entry(connection, chat.hand(), chat.entries[0].id, {"text": NEW[0]})
        gone = memory_edits.edit_chapter(connection, chat.hand(2), chat.chapter_id, "")
        assert (len(gone), chat.known(), chat.told()) == (1, {NEW[0]}, {NEW[0]})
        memory_edits.undo_chapter(connection, chat.hand(3), chat.chapter_id, None)
        assert chat.known() == {NEW[0], SIX[0][2]}


@pytest.mark.parametrize("how", ["entry", "chapter"])
def test_what_gave_way_to_a_newer_fact_does_not_stand_again(store: Store, how: str) -> None:
    """A1: it is brought back as what it was."""
    with store._writer.begin() as connection:
        chat = Chat(connection, "I am 20 years old.", "The user is 20 years old.")
        later = [Told("The user is 31 years old.", "thing 0", chat.nodes[1].pk)]
        where = (chat.row.owner_pk, chat.row.pk)
        profile_learning.learn(connection, *where, later, span=[chat.nodes[1].pk], now_ms=NOW + 1)
        assert chat.known() == {"The user is 31 years old."}
        if how == "entry":
            gone = ledger_edits.delete_entry(connection, chat.hand(2), chat.entries[0].id)
            ledger_edits.undo_entry(connection, chat.hand(3), chat.entries[0].id)
        else:
            gone = memory_edits.edit_chapter(connection, chat.hand(2), chat.chapter_id, "")
            memory_edits.undo_chapter(connection, chat.hand(3), chat.chapter_id, None)
        assert (gone, chat.known()) == ([], {"The user is 31 years old."})
        (newer,) = profile.active(connection, chat.row.owner_pk)
        back = profile_edits.undo_edit(connection, newer, NOW + 4)
        assert back.text == "The user is 20 years old."


def test_what_gave_way_to_what_is_deleted_gave_way_to_what_came_after(store: Store) -> None:
    """20 gave way to 21 and that to 31: without 21, 20 is as far from standing as it was."""
    with store._writer.begin() as connection:
        chat = Chat(connection, "I am 20 years old.", "The user is 20 years old.")
        later = chat.nodes[1].pk
        told = Told("The user is 21 years old.", "thing 0", later)
        profile_learning.learn(
            connection, chat.row.owner_pk, chat.row.pk, [told], span=[later], now_ms=NOW + 1
        )
        between = ledger.add_entry(
            connection,
            chat.row.pk,
            kind="fact",
            text=told.text,
            about=told.about,
            source_pk=later,
            last_pk=later,
            last_depth=2,
            origin="model",
            now_ms=NOW + 1,
        )
        Chat(connection, "I am 31 years old.", "The user is 31 years old.")
        assert chat.known() == {"The user is 31 years old."}
        ledger_edits.delete_entry(connection, chat.hand(2), between.id)
        ledger_edits.delete_entry(connection, chat.hand(3), chat.entries[0].id)
        ledger_edits.undo_entry(connection, chat.hand(4), chat.entries[0].id)
        assert chat.known() == {"The user is 31 years old."}
        ledger_edits.undo_entry(connection, chat.hand(5), between.id)
        assert chat.known() == {"The user is 31 years old."}


def test_an_undone_deletion_brings_back_what_went_with_it_alone(store: Store) -> None:
    """A2: not what a later summary told, which the first undo stepped over."""
    with store._writer.begin() as connection:
        chat = Chat(connection, *SIX[0])
        first = set(chat.told())
        memory_edits.edit_chapter(connection, chat.hand(1), chat.chapter_id, "")
        chapter_rows.add_version(
            connection,
            chat.row.pk,
            chat.chapter,
            text="They talked again.",
            origin="model",
            backend="local",
            prompt="1",
            now_ms=NOW + 2,
        )
        again = chat._tell("The user keeps one cat.", "thing 7")
        assert chat.told() == {again.text}
        memory_edits.undo_chapter(connection, chat.hand(3), chat.chapter_id, None)
        assert chat.told() == set(), "the deletion stands again"
        memory_edits.undo_chapter(connection, chat.hand(4), chat.chapter_id, None)
        assert chat.told() == first
        memory_edits.edit_chapter(connection, chat.hand(5), chat.chapter_id, "Their own words.")
        memory_edits.edit_chapter(connection, chat.hand(6), chat.chapter_id, "")
        memory_edits.undo_chapter(connection, chat.hand(7), chat.chapter_id, None)
        assert chat.told() == first


@pytest.mark.parametrize(("three", "new"), list(zip(SIX, NEW, strict=True)))
def test_a_memory_in_other_words_is_told_in_these_by_its_ledger(
    store: Store, three: tuple[str, str, str], new: str
) -> None:
    said, home, cat = three
    with store._writer.begin() as connection:
        chat = Chat(connection, said, home, cat)

        def live() -> set[str]:
            told = ledger.all_entries(connection, chat.row.pk)
            return {row.text for row, marks in told if state_of(row, marks).is_live}

        (fact,) = [f for f in profile.active(connection, chat.row.owner_pk) if f.text == home]
        ledger_edits.act(connection, chat.hand(), chat.entries[0].id, "pin")
        edited = memory_edits.edit_fact(connection, fact, new, "address", NOW + 2, now=False)
        assert (chat.known(), live()) == ({new, cat}, {new, cat})
        (pin,) = ledger.pinned(connection, chat.row.pk, chat.nodes[1], up_to_depth=2)
        assert (pin.text, pin.about, pin.origin) == (new, "address", "owner")
        back = memory_edits.undo_fact(connection, edited, NOW + 3, now=False)
        assert (back.text, chat.known(), live()) == (home, {home, cat}, {home, cat})
        # what its owner put into other words in the ledger itself stays
        ledger_edits.edit_entry(connection, chat.hand(4), chat.entries[1].id, {"text": f"{cat} 7"})
        (other,) = [f for f in profile.active(connection, chat.row.owner_pk) if f.text != home]
        profile_edits.edit_fact(connection, other, f"{cat} 8", None, NOW + 5)
        (other,) = [f for f in profile.active(connection, chat.row.owner_pk) if f.text != home]
        memory_edits.edit_fact(connection, other, new, None, NOW + 6, now=False)
        assert live() == {home, f"{cat} 7"}


def test_what_another_chat_told_before_rewords_no_ledger(store: Store) -> None:
    with store._writer.begin() as connection:
        owner_pk = Chat(connection, "hi").row.owner_pk
        profile_edits.add_fact(connection, owner_pk, "I live in Nara.", "thing 0", NOW - 9)
        chat = Chat(connection, "I live in Kyoto", "The user lives in Kyoto.")
        (fact,) = profile.active(connection, owner_pk)
        memory_edits.undo_fact(connection, fact, NOW + 2, now=False)
        assert (chat.known(), chat.told()) == ({"I live in Nara."}, {"The user lives in Kyoto."})
