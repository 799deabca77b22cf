"""What is shown of the messages that were found: within the budget, word for word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.recall.passages import Chosen, Line, cut_passage, select
from policies.recall.places import pack_place
from policies.recall.query import build_query
from policies.recall.ranking import Ranking, Scored
from tests.policies.recall.shelf import FIRST_PK, Shelf, chat, small_talk

QUESTION = build_query("Where did I lose the sapphire ring?")


def ranked(*scores: float) -> Ranking:
    """Messages at depths 1, 2, … with these scores, all of them hits."""
    scored = [
        Scored(depth, score, pack_place(FIRST_PK + depth, depth, "x", True))
        for depth, score in enumerate(scores, 1)
    ]
    return Ranking(tuple(sorted(scored, key=lambda one: -one.score)), True)


def test_what_fits_is_shown_oldest_first() -> None:
    # Each line costs its 20 characters and 10 for saying who and when: 3 x 30 = 90.
    texts = ["the sapphire ring 01", "the sapphire ring 02", "x" * 20, "the sapphire ring 04"]
    shelf = Shelf(chat(*texts))
    found = select(QUESTION, ranked(1.0, 4.0, 3.0, 2.0), shelf.get, budget=99, line_chars=10)
    assert [(one.depth, one.pk, one.text) for one in found] == [
        (2, 102, texts[1]),
        (3, 103, texts[2]),
        (4, 104, texts[3]),
    ]
    assert all(one.whole and one.hit for one in found)


@pytest.mark.parametrize("budget", [0, 10, 30])
def test_a_budget_without_room_for_a_line_reads_nothing(budget: int) -> None:
    shelf = Shelf(chat("the sapphire ring"))
    assert select(QUESTION, ranked(1.0), shelf.get, budget=budget, line_chars=30) == []
    assert shelf.read == []


def test_what_was_taken_is_empty_is_missing_or_stands_on_another_path_is_passed_over() -> None:
    lines = {
        1: Line(101, "the ring"),
        2: Line(102, ""),
        4: Line(9_999, "the ring of another branch"),
        5: Line(105, "the sapphire"),
    }
    found = select(
        QUESTION,
        ranked(5.0, 4.0, 3.0, 2.0, 1.0),
        lambda depths: {depth: lines[depth] for depth in depths if depth in lines},
        budget=1_000,
        line_chars=0,
        taken={101},
    )
    assert [one.text for one in found] == ["the sapphire"]


def test_a_tenth_of_the_best_is_too_little() -> None:
    shelf = Shelf(chat("ring", "ring", "ring"))
    found = select(QUESTION, ranked(10.0, 1.01, 1.0), shelf.get, budget=900, line_chars=0)
    assert [one.depth for one in found] == [1, 2]


def test_no_more_is_read_than_a_selection_needs() -> None:
    shelf = Shelf([("user", "the sapphire ring was lost" * 4)] * 200)
    scores = [float(score) for score in range(200, 0, -1)]
    found = select(QUESTION, ranked(*scores), shelf.get, budget=400, line_chars=0)
    assert len(found) == 3, "3 x 104; the fourth would be cut to less than a passage"
    assert len(shelf.read) <= 40


def test_of_a_long_message_the_best_passage_is_shown() -> None:
    text = (
        "We talked of the weather. " * 20
        + "On the ferry to Naxos the sapphire ring slipped into the sea. "
        + "Nobody dived. "
        + "We talked of the weather. " * 20
    )
    shelf = Shelf(chat(text))
    (one,) = select(QUESTION, ranked(1.0), shelf.get, budget=500, line_chars=20)
    assert not one.whole
    assert len(one.text) <= 500 // 3
    assert one.text.startswith(
        "On the ferry to Naxos the sapphire ring slipped into the sea. Nobody"
    )
    assert one.text in text


def test_a_long_neighbour_is_left_out() -> None:
    shelf = Shelf(chat("We talked of the weather. " * 40))
    beside = Ranking((Scored(1, 1.0, None),), True)
    assert select(QUESTION, beside, shelf.get, budget=600, line_chars=0) == []
    short = Shelf(chat("By the sea."))
    assert select(QUESTION, beside, short.get, budget=600, line_chars=0) == [
        Chosen(1, 101, "By the sea.", True, False, 1.0)
    ]


@pytest.mark.parametrize(
    ("text", "limit", "passage"),
    [
        ("No word of it. None here.", 200, ""),
        ("", 200, ""),
        # Both sentences of it fit, then what follows, then what goes before: 15 + 16 + 9 = 40.
        (
            "Far away. A sapphire ring! It lay there. Gone. Over.",
            40,
            "A sapphire ring! It lay there. Gone.",
        ),
        ("Far away. Near by. The ring.", 19, "Near by. The ring."),
        # Two words of it in one run beat one.
        ("A ring. Then nothing at all. A sapphire, a ring!", 22, "A sapphire, a ring!"),
        ("私の指輪。祖母のring。海で失くした。", 9, "祖母のring。"),
    ],
)
def test_passages(text: str, limit: int, passage: str) -> None:
    assert cut_passage(text, QUESTION, limit) == passage


def test_a_sentence_without_end_is_cut_at_a_blank() -> None:
    text = "word " * 100 + "ring " + "word " * 100
    passage = cut_passage(text, QUESTION, 60)
    assert "ring" in passage.split()
    assert len(passage) <= 60
    assert set(passage.split()) == {"word", "ring"}
    unbroken = "x" * 500 + " ring"
    assert cut_passage(unbroken, QUESTION, 60).endswith("ring")


def test_of_a_very_long_text_the_stretch_is_read_where_the_words_stand_closest() -> None:
    filler = "We talked of the weather. " * 2_000
    text = f"{filler}A ring. {filler}The Sapphire ring was lost there. {filler}I lost it."
    assert len(text) > 150_000
    passage = cut_passage(text, QUESTION, 200)
    assert "The Sapphire ring was lost there." in passage
    assert passage in text
    assert cut_passage(filler, QUESTION, 200) == ""
    # No word of it stands as it is looked for ("lose"): the beginning is read.
    assert "lost" in cut_passage(f"I lost it. {filler}", build_query("Who lost?"), 200)


WORDS = "sapphire ring lost the a sea. boat! 指輪を失くした。 кольцо 반지 \n x".split(" ")
texts = st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)


@given(texts, st.integers(1, 300))
def test_a_passage_is_an_unbroken_part_within_its_limit(text: str, limit: int) -> None:
    passage = cut_passage(text, QUESTION, limit)
    assert len(passage) <= limit
    assert passage in text


@given(
    st.lists(texts, min_size=1, max_size=30),
    texts,
    st.integers(0, 2_000),
    st.integers(0, 40),
    st.integers(0, 30),
)
def test_the_laws_of_a_selection(
    said: list[str], question: str, budget: int, line_chars: int, border: int
) -> None:
    border = min(border, len(said))
    shelf = Shelf(small_talk(4) + chat(*said))
    found = shelf.recall(question, border=border, budget=budget, line_chars=line_chars)
    assert found == shelf.recall(question, border=border, budget=budget, line_chars=line_chars)
    assert sum(len(one.text) + line_chars for one in found) <= budget
    assert all(1 <= one.depth <= border for one in found)
    assert [one.depth for one in found] == sorted({one.depth for one in found})
    for one in found:
        whole = shelf.lines[one.depth - 1][1]
        assert one.pk == FIRST_PK + one.depth
        assert one.text in whole
        assert one.whole is (one.text == whole)


def test_however_many_lines_are_left_out_the_next_one_takes_the_place() -> None:
    """Thirty lines hold the word; the reader gives the oldest of them alone."""
    shelf = Shelf(
        chat(*(f"The sapphire, line {at}." for at in range(30)), *("Soup." for _ in "ab"))
    )
    query = build_query("Where is the sapphire?")
    ranking = shelf.rank("Where is the sapphire?", neighbours=False)

    def read(depths: Sequence[int]) -> Mapping[int, Line]:
        return {depth: line for depth, line in shelf.get(depths).items() if depth == 1}

    found = select(query, ranking, read, budget=1_500, line_chars=30)
    assert [one.depth for one in found] == [1]
    assert sorted(shelf.read) == list(range(1, 31))
