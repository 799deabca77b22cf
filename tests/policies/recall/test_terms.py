"""Words as an index compares them: two ways of writing a word are one term."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.recall.terms import MOST_TERMS, index_terms, read_words


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("I painted two paintings", ["i", "paint", "two"]),
        ("She bought children’s books", ["she", "buy", "child", "book"]),
        ("DON'T 'quote' it", ["dont", "quot", "it"]),
        ("Café CAFÉ cafe\u0301", ["cafe"]),
        ("ｉPhone15 ①", ["iphone15", "1"]),
        ("Елка ёлки котятами", ["елк", "котят"]),
        ("йога", ["йог"]),
        ("猫を飼う", ["猫", "猫を", "を飼", "飼", "飼う"]),
        ("寿司", ["寿", "寿司", "司"]),
        ("ｺｰﾋｰ", ["コー", "ーヒ", "ヒー"]),
        ("猫", ["猫"]),
        ("か", ["か"]),
        ("LINE登録", ["line", "登", "登録", "録"]),
        ("학교에서 강아지를", ["학교", "강아지", "강아", "아지"]),
        ("고양이를 고양이 ㅋㅋㅋ", ["고양"]),
        ("나는 집", ["나는", "집"]),
        ("ελληνικά ไทย", ["ελληνικα", "ไทย"]),
        ("🎂 … !?", []),
        ("", []),
    ],
)
def test_terms(text: str, terms: list[str]) -> None:
    assert index_terms(text) == terms


def test_a_spanish_word_stands_under_its_spanish_and_its_english_form() -> None:
    words = {word.folded: word for word in read_words("¿Dónde están los pasteles y los panes?")}
    assert (words["panes"].term, words["panes"].also) == ("pane", "pan")
    assert words["los"].also == ""
    assert index_terms("los panes") == ["los", "pane", "pan"]


def test_a_han_character_between_kana_is_a_word_and_one_in_a_run_is_not() -> None:
    kinds = {word.term: word.kind for word in read_words("猫と寿司")}
    assert (kinds["猫"], kinds["寿"], kinds["猫と"]) == ("word", "single", "pair")


def test_capitals_are_seen() -> None:
    assert [word.capital for word in read_words("ask Anna or Анна 15")] == [
        *(False, True, False, True),
        False,
    ]


def test_a_message_of_very_many_words_is_bounded() -> None:
    many = " ".join(f"w{number}x" for number in range(2 * MOST_TERMS))
    assert len(index_terms(many)) == MOST_TERMS


@given(st.text(max_size=300))
def test_any_text_has_terms_each_once_and_never_a_blank(text: str) -> None:
    terms = index_terms(text)
    assert len(terms) == len(set(terms))
    assert all(term and not any(letter.isspace() for letter in term) for term in terms)


@given(st.text(alphabet="abc déñ猫を飼학교에 йё", max_size=60))
def test_case_and_width_make_no_difference(text: str) -> None:
    assert index_terms(text.upper()) == index_terms(text.upper().lower())
