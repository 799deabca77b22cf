"""Which messages come first, and when none is worth a place."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.recall.places import depth_of, pack_place
from policies.recall.query import Query, QueryTerm
from policies.recall.ranking import MOST, NOTHING, Ranking, Scored, rank
from tests.policies.recall.shelf import Shelf, chat, small_talk


def depths(ranking: Ranking) -> list[int]:
    return [one.depth for one in ranking.scored]


def test_nothing_is_found_of_nothing() -> None:
    shelf = Shelf(chat("The cat sleeps.", "On the sofa?"))
    assert shelf.rank("Who repaired the bicycle?") == NOTHING
    assert shelf.rank("ok, thanks") == NOTHING
    assert rank(Query((), False), {}, messages=0, border=10) == NOTHING


def test_the_rarer_word_weighs_more() -> None:
    # "dog" stands in 6 of 40 messages, "Lisbon" in one: ln(1 + 34.5/6.5) against ln(1 + 39.5/1.5).
    lines = small_talk(40)
    for at in (3, 9, 15, 21, 27, 33):
        lines[at] = (lines[at][0], "The dog barked at the gate.")
    lines[36] = (lines[36][0], "In Lisbon everything was steep.")
    found = Shelf(lines).rank("Was there a dog in Lisbon?")
    assert found.scored[0].depth == 37
    assert found.scored[0].score == pytest.approx(3.307 * (1 + 0.35 / 2) + 1.842 * 0.35, abs=0.35)


def test_the_answer_to_a_question_comes_right_after_it() -> None:
    lines = small_talk(60)
    lines[20] = ("user", "What is the wedding going to cost?")
    lines[21] = ("assistant", "Nine thousand, with the band.")
    found = Shelf(lines).rank("How expensive was the wedding?")
    # Itself 0.8, for it is a question; the reply 0.8 for being asked, and shorter; before it 0.45.
    assert set(depths(found)[:2]) == {21, 22}
    assert not next(one for one in found.scored if one.depth == 22).is_hit
    shares = {one.depth: one.score for one in found.scored}
    assert shares[21] == pytest.approx(shares[22])
    assert shares[20] < shares[22]


def test_neighbours_two_steps_away_count_a_little_and_only_when_wanted() -> None:
    lines = small_talk(30)
    lines[14] = ("user", "My grandmother gave me a sapphire.")
    shelf = Shelf(lines)
    assert sorted(depths(shelf.rank("Who gave me the sapphire?"))) == [13, 14, 15, 16, 17]
    assert depths(shelf.rank("Who gave me the sapphire?", neighbours=False)) == [15]
    score = {one.depth: one.score for one in shelf.rank("Which sapphire?").scored}
    assert score[15] > score[14] > score[16] > score[13] == score[17]


def test_nothing_beyond_the_border_is_looked_at() -> None:
    lines = small_talk(30)
    lines[9] = ("assistant", "The harbour was closed.")
    lines[25] = ("assistant", "The harbour is open again.")
    shelf = Shelf(lines)
    assert 10 in depths(shelf.rank("Is the harbour open?", border=20))
    assert max(depths(shelf.rank("Is the harbour open?", border=20))) <= 20
    assert shelf.rank("Is the harbour open?", border=8) == NOTHING
    # A neighbour of the last message that may be recalled is beyond it.
    assert max(depths(shelf.rank("Is the harbour closed?", border=10))) == 10


def test_a_name_tells_whose_words_are_asked_for() -> None:
    """Who is called Mara is the user: the assistant calls them so."""
    lines = small_talk(80)
    for at in (11, 13, 17, 19, 23):
        lines[at] = ("assistant", f"Mara, listen, that was number {at}.")
    lines[14] = ("user", "I bought a violin.")
    lines[29] = ("assistant", "I bought a violin.")
    scores = {one.depth: one.score for one in Shelf(lines).rank("Did Mara buy a violin?").scored}
    assert scores[15] > scores[30]
    swapped = [("user" if role == "assistant" else "assistant", text) for role, text in lines]
    other = {one.depth: one.score for one in Shelf(swapped).rank("Did Mara buy a violin?").scored}
    # Turned round, the assistant is Mara: the same lines are hers as before.
    assert other[15] == pytest.approx(scores[15])


def test_a_name_counts_only_near_where_it_comes_up() -> None:
    lines = small_talk(200)
    for at in (19, 99, 179):  # depths 20, 100 and 180
        lines[at] = ("user", "I bought a violin.")
    for at in (95, 97, 103):
        lines[at] = ("assistant", "Mara, listen.")
    found = Shelf(lines).rank("Did Mara buy a violin?")
    scores = {one.depth: one.score for one in found.scored}
    assert scores[100] > scores[20] == scores[180]


def test_a_name_that_was_hardly_said_tells_nothing() -> None:
    lines = small_talk(40)
    lines[11] = ("assistant", "Mara, listen.")
    lines[14] = ("user", "I bought a violin.")
    named = Shelf(lines).rank("Did Mara buy a violin?")
    assert {15, 12} <= set(depths(named))


def test_of_two_messages_that_say_as_much_the_shorter_one_comes_first() -> None:
    lines = small_talk(60)
    lines[10] = ("user", "The lantern broke. " + "And so on and so on. " * 40)
    lines[40] = ("user", "The lantern broke. ")
    assert depths(Shelf(lines).rank("Which lantern broke?"))[0] == 41


def test_ties_go_to_the_newest() -> None:
    lines = small_talk(60)
    lines[10] = lines[40] = ("user", "The lantern broke.")
    assert depths(Shelf(lines).rank("Which lantern broke?"))[:2] == [41, 11]


def test_a_word_may_stand_under_several_forms() -> None:
    term = QueryTerm(("panes", "pan"), 1.0)
    lists = {
        "panes": [(3, pack_place(3, 3, "x", True))],
        "pan": [(9, pack_place(9, 9, "x", True))],
    }
    found = rank(Query((term,), True), lists, messages=300, border=20)
    assert {one.depth for one in found.scored if one.is_hit} == {3, 9}


def test_a_speaker_of_whom_nothing_is_known_is_neither() -> None:
    """A neighbour two steps away of the only hit: nobody beside it holds a word."""
    lines = small_talk(40)
    for at in (5, 7, 9):
        lines[at] = ("assistant", "Mara, listen.")
    found = Shelf(lines).rank("Was it Mara again?")
    assert {4, 12} <= set(depths(found))


def test_a_word_of_thousands_of_messages_costs_no_more_than_its_best() -> None:
    postings = {
        "common": [(depth, pack_place(depth, depth, "x", True)) for depth in range(1, 5_000)]
    }
    found = rank(
        Query((QueryTerm(("common",), 1.0),), True), postings, messages=5_000, border=9_999
    )
    assert len(found.scored) <= MOST
    assert found.scored[0].depth > 4_800
    assert not found.relevant


FLOOR = [
    # A question: one rare word of its own is enough.
    ("Where did I leave the sapphire?", True),
    ("Do you remember Lisbon?", True),
    # Two words that are said every few lines are not: each says a fifth of the rarest one.
    ("Is it bread or soup?", False),
    # Little of what it asks is known: one word of seven.
    ("Which sapphire mines of Burma, Kashmir, Thailand, Madagascar, Tanzania closed?", False),
    # A statement needs two rare words, or a name.
    ("I lost a sapphire.", False),
    ("My grandmother wore a sapphire.", True),
    ("We thought about Lisbon.", True),
    # Small talk, whatever it says.
    ("ok, thanks", False),
    ("That is so funny, thank you!", False),
    ("Good night, sleep well!", False),
    ("What do you think?", False),
    ("", False),
]


@pytest.mark.parametrize(("message", "relevant"), FLOOR)
def test_the_relevance_floor(message: str, relevant: bool) -> None:
    lines = small_talk(300)
    lines[50] = ("user", "My grandmother gave me a sapphire.")
    lines[120] = ("assistant", "In Lisbon everything was steep.")
    lines[200] = ("user", "Thank you, that was funny, I sleep well and think of you.")
    assert Shelf(lines).rank(message).relevant is relevant


FEW = [("What colour is the umbrella?", False), ("Was the umbrella on the train red?", True)]


@pytest.mark.parametrize(("message", "relevant"), FEW)
def test_no_word_is_rare_in_a_conversation_of_a_few_lines(message: str, relevant: bool) -> None:
    lines = chat("The umbrella is red.", "Did it stay on the train?", "Yes.", "What a pity.")
    assert Shelf(lines).rank(message).relevant is relevant


words = st.sampled_from("cat dog Lisbon sapphire 猫 寿司 학교 кошка панама gato niño 42 ?".split())
said = st.lists(words, max_size=6).map(" ".join)


@given(st.lists(said, min_size=1, max_size=40), said, st.integers(0, 45))
def test_rankings_are_the_same_every_time_and_keep_to_the_border(
    texts: list[str], question: str, border: int
) -> None:
    shelf = Shelf(chat(*texts))
    found = shelf.rank(question, border=min(border, len(texts)))
    assert found == shelf.rank(question, border=min(border, len(texts)))
    assert all(1 <= one.depth <= border for one in found.scored)
    assert len(set(depths(found))) == len(found.scored)
    keys = [(-one.score, -one.depth) for one in found.scored]
    assert keys == sorted(keys)
    for one in found.scored:
        assert isinstance(one, Scored)
        assert one.score > 0
        assert one.place is None or depth_of(one.place) == one.depth


@pytest.mark.parametrize(
    "told",
    [
        "My neighbour Mordis keeps 20017 stamps in the attic.",
        "Моя соседка Варна хранит 20017 марок на чердаке.",
        "我的邻居柘维在阁楼里存着20017个邮票册。",
        "내 이웃 브린 씨는 다락방에 우표첩 20017개를 보관합니다.",
    ],
)
@pytest.mark.parametrize("lines", [1, 2, 4])
def test_in_an_index_of_a_few_lines_a_thing_said_again_is_relevant(told: str, lines: int) -> None:
    """No word of it is rare there: in one line of one ln(1 + 0.5/1.5) = 0.29 of ln(1 + 199.5/1.5) =
    4.9 each."""
    shelf = Shelf([("user", told), *chat("The fog lifted.", "So it did.", "Late.")][:lines])
    assert shelf.rank(told).relevant
    assert not shelf.rank("Thanks, that is kind of you, see you tomorrow then.").relevant
