"""What is learned of an owner, what takes its place, and what is never learned again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from gateway.errors import Conflict
from gateway.store import profile, profile_edits, profile_learning, transcript
from gateway.store.profile import ProfileRow
from gateway.store.profile_learning import Told
from gateway.store.transcript import ConversationRow, Node
from tests.gateway.house import House, assistant, user
from tests.gateway.seeds import NOW, extend


class Chats:
    """Conversations of one owner, told to the profile message by message."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.owner = transcript.ensure_owner(connection, "ann", "", NOW)
        self.now = NOW

    def begin(self, *, private: bool = False) -> ConversationRow:
        return transcript.create_conversation(
            self.connection, self.owner, alias=None, model="foldgate", now_ms=NOW, private=private
        )

    def say(
        self, chat: ConversationRow, *texts: str, parent: Node | None = None, now: int = 0
    ) -> list[Node]:
        said = [m for told in texts for m in (user(told), assistant("I see."))]
        return extend(self.connection, chat, parent, said, now or self.now)

    def learn(self, chat: ConversationRow, nodes: list[Node], *told: tuple[str, str, int]) -> int:
        """told: (about, text, which of the nodes)."""
        facts = [Told(words, about, nodes[at].pk) for about, words, at in told]
        span = [node.pk for node in nodes]
        return profile_learning.learn(
            self.connection, self.owner, chat.pk, facts, span=span, now_ms=self.now + 1
        )

    def active(self, chat: ConversationRow | None = None) -> list[str]:
        rows = profile.active(self.connection, self.owner, conversation_pk=chat.pk if chat else 0)
        return [row.text for row in rows]

    def row(self, words: str) -> ProfileRow:
        (row,) = [r for r in profile.active(self.connection, self.owner) if r.text == words]
        return row

    def become_private(self, chat: ConversationRow) -> None:
        transcript.settle_conversation(self.connection, chat.pk, backend=None, private=True)
        profile_edits.release_facts(self.connection, chat)

    def drop(self, chat: ConversationRow) -> None:
        profile_edits.release_facts(self.connection, chat)
        self.connection.execute(text("DELETE FROM conversations WHERE pk = :pk"), {"pk": chat.pk})


@pytest.fixture
def chats(tmp_path: Path) -> Iterator[Chats]:
    house = House(tmp_path)
    with house.store._writer.begin() as connection:
        yield Chats(connection)
    house.store.close()


SIX = [
    ("I live in Kyoto.", "home", "The user lives in Kyoto.", "The user's home is Kyoto."),
    ("京都に住んでいます。", "住まい", "ユーザーは京都に住んでいる。", "ユーザーの住まいは京都。"),
    ("我住在杭州。", "住处", "用户住在杭州。", "用户的家在杭州。"),
    ("저는 부산에 살아요.", "집", "사용자는 부산에 산다.", "사용자의 집은 부산에 있다."),
    ("Я живу в Казани.", "дом", "Пользователь живёт в Казани.", "Дом пользователя в Казани."),
    ("Vivo en Sevilla.", "casa", "El usuario vive en Sevilla.", "Su casa está en Sevilla."),
]


@pytest.mark.parametrize(("said", "about", "fact", "again"), SIX, ids=[six[1] for six in SIX])
def test_a_deleted_fact_is_not_learned_again_from_its_source(
    chats: Chats, said: str, about: str, fact: str, again: str
) -> None:
    chat = chats.begin()
    nodes = chats.say(chat, said, "👍")
    assert chats.learn(chat, nodes, (about, fact, 0)) == 1
    profile_edits.delete_fact(chats.connection, chats.row(fact), NOW + 5)
    assert chats.active() == []
    for words in (fact, again):
        assert chats.learn(chat, nodes, (about, words, 0)) == 0
        assert chats.learn(chat, nodes, ("", words, 0)) == 0
        # A re-summary may hold another message of the span for the source.
        assert chats.learn(chat, nodes, (about, words, 2)) == 0
    # The same words in another chat are the same source.
    other = chats.begin()
    copy = chats.say(other, said)
    assert chats.learn(other, copy, (about, fact, 0)) == 0
    # What is said anew, later, is news.
    later = chats.say(chat, f"{said} {said}", parent=nodes[-1], now=NOW + 6)
    assert chats.learn(chat, later, (about, fact, 0)) == 1


def test_what_was_said_before_the_deletion_teaches_it_no_more(chats: Chats) -> None:
    chat = chats.begin()
    first = chats.say(chat, "I raise a goat called Quill.")
    second = chats.say(chat, "Quill, my goat, is ill.", parent=first[-1])
    told = ("goat", "The user raises a goat called Quill.", 0)
    assert chats.learn(chat, first, told) == 1
    profile_edits.delete_fact(chats.connection, chats.row(told[1]), NOW + 5)
    # Another span, another message, said at NOW: no later than what was deleted at NOW + 5.
    assert chats.learn(chat, second, told) == 0
    assert chats.learn(chat, second, ("", "The user raises a goat called Quill.", 0)) == 0
    assert chats.learn(chat, second, ("illness", "A goat of the user's is ill.", 0)) == 1


def test_what_two_chats_told_stays_when_one_becomes_private(chats: Chats) -> None:
    one, two = chats.begin(), chats.begin()
    for chat in (one, two):
        chats.learn(chat, chats.say(chat, "I live in Kyoto"), ("home", "Lives in Kyoto.", 0))
    assert chats.active() == ["Lives in Kyoto."]
    chats.become_private(one)
    assert chats.active() == ["Lives in Kyoto."]
    chats.drop(one)
    assert chats.active() == ["Lives in Kyoto."]


def test_what_a_private_chat_told_last_hides_nothing_from_the_others(chats: Chats) -> None:
    one, two = chats.begin(), chats.begin()
    chats.learn(one, chats.say(one, "home is Kyoto"), ("home", "Lives in Kyoto.", 0))
    nara = chats.say(two, "home is Nara", now=NOW + 9)
    chats.learn(two, nara, ("home", "Lives in Nara.", 0))
    chats.become_private(two)
    assert chats.active() == ["Lives in Kyoto."]
    assert chats.active(two) == ["Lives in Nara.", "Lives in Kyoto."]


def test_an_undo_brings_nothing_out_of_a_private_chat(chats: Chats) -> None:
    one, two = chats.begin(), chats.begin()
    chats.learn(one, chats.say(one, "Leo grows saffron"), ("Leo", "Leo grows saffron.", 0))
    sells = chats.say(two, "Leo sells saffron", now=NOW + 9)
    chats.learn(two, sells, ("Leo", "Leo sells saffron.", 0))
    chats.become_private(one)
    with pytest.raises(Conflict):
        profile_edits.undo_edit(chats.connection, chats.row("Leo sells saffron."), NOW + 10)
    own = profile_edits.add_fact(chats.connection, chats.owner, "Leo is away.", "Leo", NOW + 11)
    back = profile_edits.undo_edit(chats.connection, own, NOW + 12)
    assert (back.text, back.conversation_pk) == ("Leo sells saffron.", two.pk)
    chats.drop(two)
    assert [row.text for row in profile.active(chats.connection, chats.owner)] == ["Leo is away."]


def test_the_text_of_a_deleted_fact_is_gone(chats: Chats) -> None:
    chat = chats.begin()
    nodes = chats.say(chat, "I have a cat")
    chats.learn(chat, nodes, ("pet", "The user has a cat.", 0))
    profile_edits.delete_fact(chats.connection, chats.row("The user has a cat."), NOW)
    (kept,) = chats.connection.execute(text("SELECT state, text, about FROM profile_facts")).all()
    assert tuple(kept) == ("deleted", "", None)
    own = profile_edits.add_fact(chats.connection, chats.owner, "I like tea.", None, NOW)
    profile_edits.delete_fact(chats.connection, own, NOW)
    rows = chats.connection.execute(text("SELECT state, text, about, source FROM profile_facts"))
    *_, written = rows.all()
    assert tuple(written)[:3] == ("deleted", "", None)
    assert written.source.startswith("::") and "tea" not in written.source


def test_the_newer_takes_the_place_of_the_older(chats: Chats) -> None:
    chat = chats.begin()
    nodes = chats.say(chat, "I live in Kyoto", "I moved to Osaka", "I have two cats")
    chats.learn(chat, nodes[:2], ("home", "Lives in Kyoto.", 0), ("pets", "Has two cats.", 0))
    assert chats.learn(chat, nodes[2:], ("Home ", "Lives in Osaka.", 0)) == 1
    assert chats.active() == ["Lives in Osaka.", "Has two cats."]
    # The old span is summarized anew: what it tells is older, whenever it is told.
    assert chats.learn(chat, nodes[:2], ("home", "The user lives in Kyoto.", 0)) == 0
    assert chats.active() == ["Lives in Osaka.", "Has two cats."]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The user is 32 years old.", "The user is 33 years old."),
        ("ユーザーは32歳。", "ユーザーは33歳。"),
        ("用户32岁。", "用户33岁。"),
        ("사용자는 32살이다.", "사용자는 33살이다."),
        ("Пользователю 32 года.", "Пользователю 33 года."),
        ("El usuario tiene 32 años.", "El usuario tiene 33 años."),
    ],
)
def test_the_same_words_with_another_number_are_the_newer(
    chats: Chats, older: str, newer: str
) -> None:
    chat = chats.begin()
    nodes = chats.say(chat, "32", "33")
    chats.learn(chat, nodes[:2], ("", older, 0))
    chats.learn(chat, nodes[2:], ("", newer, 0))
    assert chats.active() == [newer]


def test_an_older_span_summarized_later_does_not_win(chats: Chats) -> None:
    chat = chats.begin()
    nodes = chats.say(chat, "I live in Kyoto", "I moved to Osaka")
    chats.learn(chat, nodes[2:], ("home", "Lives in Osaka.", 0))
    assert chats.learn(chat, nodes[:2], ("home", "Lives in Kyoto.", 0)) == 0
    assert chats.active() == ["Lives in Osaka."]


def test_one_chapter_tells_two_things_about_one_subject(chats: Chats) -> None:
    chat = chats.begin()
    nodes = chats.say(chat, "I have a cat named Miso and a dog named Taro")
    told = ("pets", "Has a cat named Miso.", 0), ("pets", "Has a dog named Taro.", 0)
    assert chats.learn(chat, nodes, *told) == 2
    assert chats.active() == ["Has a dog named Taro.", "Has a cat named Miso."]
    assert chats.learn(chat, nodes, *told) == 0
    assert len(chats.active()) == 2


def test_what_another_chat_told_too_survives_the_first(chats: Chats) -> None:
    one, two = chats.begin(), chats.begin()
    chats.learn(one, chats.say(one, "my name is Ann"), ("name", "The user is called Ann.", 0))
    first = chats.row("The user is called Ann.")
    said = chats.say(two, "Ann here", now=NOW + 9)
    assert chats.learn(two, said, ("name", "The user is called Ann.", 0)) == 0
    assert chats.active() == ["The user is called Ann."]
    chats.drop(one)
    (left,) = profile.active(chats.connection, chats.owner)
    assert (left.text, left.conversation_pk) == (first.text, two.pk)
    chats.drop(two)
    assert chats.active() == []


def test_a_newer_fact_that_goes_with_its_chat_gives_the_older_back(chats: Chats) -> None:
    one, two, three = chats.begin(), chats.begin(), chats.begin()
    for chat, city, at in ((one, "Kyoto", 0), (two, "Osaka", 9), (three, "Nara", 18)):
        nodes = chats.say(chat, f"home is {city}", now=NOW + at)
        chats.learn(chat, nodes, ("home", f"Lives in {city}.", 0))
    assert chats.active() == ["Lives in Nara."]
    chats.drop(two)
    assert chats.active() == ["Lives in Nara."]
    chats.drop(three)
    assert chats.active() == ["Lives in Kyoto."]


def test_a_deleted_fact_brings_nothing_older_back(chats: Chats) -> None:
    one, two = chats.begin(), chats.begin()
    first = chats.say(one, "home is Kyoto")
    chats.learn(one, first, ("home", "Lives in Kyoto.", 0))
    chats.learn(two, chats.say(two, "home is Osaka", now=NOW + 9), ("home", "Lives in Osaka.", 0))
    profile_edits.delete_fact(chats.connection, chats.row("Lives in Osaka."), NOW)
    assert chats.active() == []
    chats.drop(two)
    assert chats.active() == []
    assert chats.learn(one, first, ("home", "Lives in Kyoto.", 0)) == 0


def test_nothing_of_a_private_chat_reaches_another(chats: Chats) -> None:
    secret, open_ = chats.begin(private=True), chats.begin()
    nodes = chats.say(secret, "I am ill")
    assert chats.learn(secret, nodes, ("health", "The user is ill.", 0)) == 0
    said = chats.say(open_, "I like tea")
    assert chats.learn(open_, said, ("drink", "The user likes tea.", 0)) == 1
    # Once private, always private: also what was learned there before.
    transcript.settle_conversation(chats.connection, open_.pk, backend=None, private=True)
    assert chats.active() == []
    assert chats.active(open_) == ["The user likes tea."]


def test_an_edit_is_a_row_and_a_re_summary_does_not_undo_it(chats: Chats) -> None:
    chat = chats.begin()
    nodes = chats.say(chat, "I am 32 years old", "x", "I turned 33")
    chats.learn(chat, nodes, ("age", "The user is 23.", 0))
    old = chats.row("The user is 23.")
    chats.now += 50
    new = profile_edits.edit_fact(chats.connection, old, "The user is 32.", "age", chats.now)
    assert (new.replaces_pk, new.origin, new.conversation_pk) == (old.pk, "owner", chat.pk)
    assert [r.text for r in profile.profile_by_pk(chats.connection, [old.pk, new.pk])] == [
        "The user is 23.",
        "The user is 32.",
    ]
    assert chats.learn(chat, nodes[:2], ("age", "The user is 23 years old.", 0)) == 0
    assert chats.active() == ["The user is 32."]
    later = chats.say(chat, "I turned 33", parent=nodes[-1], now=chats.now + 10)
    assert chats.learn(chat, later, ("age", "The user is 33.", 0)) == 1
    assert chats.active() == ["The user is 33."]


def test_an_own_fact_stands_before_what_was_learned(chats: Chats) -> None:
    chat = chats.begin()
    profile_edits.add_fact(chats.connection, chats.owner, "Call me Ann.", None, NOW)
    chats.learn(chat, chats.say(chat, "tea!"), ("drink", "The user likes tea.", 0))
    assert chats.active() == ["Call me Ann.", "The user likes tea."]
    profile_edits.add_fact(chats.connection, chats.owner, "I like coffee now.", "Drink", NOW)
    assert chats.active() == ["I like coffee now.", "Call me Ann."]


def test_what_was_learned_is_the_owners_own_once_they_say_it(chats: Chats) -> None:
    chat = chats.begin()
    chats.learn(chat, chats.say(chat, "tea!"), ("drink", "Likes tea.", 0))
    own = profile_edits.add_fact(chats.connection, chats.owner, "Likes tea.", "drink", NOW)
    again = profile_edits.add_fact(chats.connection, chats.owner, "Likes tea.", "drink", NOW)
    assert (own, chats.active()) == (again, ["Likes tea."])
    chats.drop(chat)
    assert chats.active() == ["Likes tea."]


def test_a_source_outside_the_span_is_no_source(chats: Chats) -> None:
    chat = chats.begin()
    nodes = chats.say(chat, "one", "two")
    facts = [Told("The user said two.", "", nodes[2].pk)]
    span = [nodes[0].pk, nodes[1].pk]
    arguments = (chats.connection, chats.owner, chat.pk, facts)
    assert profile_learning.learn(*arguments, span=span, now_ms=NOW) == 0


def test_lists_are_the_owners(chats: Chats) -> None:
    for number in range(5):
        profile_edits.add_fact(chats.connection, chats.owner, f"Fact ＃{number}", None, NOW)
    other = transcript.ensure_owner(chats.connection, "bob", "", NOW)
    profile_edits.add_fact(chats.connection, other, "Bob's", None, NOW)
    page, more = profile.list_facts(chats.connection, [chats.owner], limit=3)
    assert [row.text for row in page] == ["Fact ＃4", "Fact ＃3", "Fact ＃2"]
    page, end = profile.list_facts(chats.connection, [chats.owner], limit=3, before=more)
    assert ([row.text for row in page], end) == (["Fact ＃1", "Fact ＃0"], None)
    found, _ = profile.list_facts(chats.connection, None, words="FACT #3", limit=9)
    assert [row.text for row in found] == ["Fact ＃3"]
    fact = page[0]
    assert profile_edits.find_fact(chats.connection, [other], fact.id) is None
    assert profile_edits.find_fact(chats.connection, [chats.owner], fact.id) == fact


PERSONAL = [
    ("The user's mail is bob@example.com.", "mail", "mail"),
    ("ユーザーの携帯は090-1234-5678。", "", "phone"),
    ("用户的手机号是13812345678。", "手机", "phone"),
    ("사용자의 주민번호는 900101-1234567이다.", "", "national_id"),
    ("Паспорт пользователя 45 08 123456.", "", "national_id"),
    ("El DNI del usuario es 12345678Z.", "DNI", "national_id"),
    ("Pays with 4111 1111 1111 1111.", "", "card"),
    ("Is paid to an account.", "GB82 WEST 1234 5698 7654 32", "iban"),
]


@pytest.mark.parametrize(("fact", "about", "kind"), PERSONAL)
def test_no_address_and_no_number_of_a_person_is_learned(
    chats: Chats, fact: str, about: str, kind: str
) -> None:
    chat = chats.begin()
    nodes = chats.say(chat, "this and that")
    lives = ("home", "Lives in Kyoto since 2019.", 0)
    assert chats.learn(chat, nodes, (about, fact, 0), lives) == 1
    assert chats.active() == ["Lives in Kyoto since 2019."]
    assert profile_learning.personal_kinds(Told(fact, about, 1)) == {kind}


def test_an_owner_may_add_them_by_hand(chats: Chats) -> None:
    fact = PERSONAL[0][0]
    profile_edits.add_fact(chats.connection, chats.owner, fact, None, NOW)
    assert chats.active() == [fact]
