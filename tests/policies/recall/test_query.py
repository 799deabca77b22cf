"""What a message asks the index for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.recall.query import MOST_TERMS, build_query


def weights(question: str, previous: str = "") -> dict[str, float]:
    query = build_query(question, previous)
    return {term.forms[0]: round(term.weight, 3) for term in query.terms if term.own}


@pytest.mark.parametrize(
    ("question", "found"),
    [
        # One for a whole word, nothing for words of grammar.
        ("What was the name of my sister's dog?", {"name": 1.0, "sister": 1.0, "dog": 1.0}),
        # Beside a question a sentence counts 0.6; 'rain' stands in both, the greater counts.
        (
            "The rain stopped. Who sold umbrellas in the rain?",
            {
                "rain": 1.0,
                "stop": 0.6,
                "sell": 1.0,
                "umbrella": 1.0,
            },
        ),
        # A date orders and is no reason: neither its month nor its day.
        ("What did we eat on 3 July?", {"eat": 1.0}),
        ("Room 12, who sleeps there?", {"room": 1.0, "12": 1.0, "sleep": 1.0}),
        # Han pairs 1, with kana 0.6, kana alone 0.3, single ones 0.35, between kana a word.
        ("猫を飼う", {"猫": 1.0, "猫を": 0.6, "を飼": 0.6, "飼": 1.0, "飼う": 0.6}),
        ("過敏", {"過敏": 1.0, "過": 0.35, "敏": 0.35}),
        ("りんご", {"りん": 0.3, "んご": 0.3}),
        ("我想 か", {}),
        # Long Hangul words 0.6 with their pairs 0.45, short ones 1.
        (
            "강아지를 데려온",
            {
                **{"강아지": 0.6, "강아": 0.45, "아지": 0.45},
                **{"데려온": 0.6, "데려": 0.45, "려온": 0.45},
            },
        ),
        ("고양이 이름", {"고양": 1.0, "이름": 1.0}),
        ("Как зовут кошку?", {"зовут": 1.0, "кошк": 1.0}),
        ("¿Cómo se llama el gato?", {"llama": 1.0, "gato": 1.0}),
    ],
)
def test_weights(question: str, found: dict[str, float]) -> None:
    assert weights(question) == found


@pytest.mark.parametrize(
    "talk",
    [
        *("ok, thanks", "Good morning! How are you today?", "haha that's so funny", "yes please"),
        *("ありがとう！", "おはよう、了解です", "なるほど", "どう思う？", "大好き"),
        *("好的，谢谢！", "早上好", "知道了", "你觉得呢？", "太厉害了"),
        *("응, 고마워!", "안녕하세요", "알겠어", "ㅋㅋㅋ"),
        *("Ладно, спасибо!", "Доброе утро", "Понял", "Я тебя люблю"),
        *("Vale, gracias!", "Buenos días, ¿cómo estás?", "Hasta mañana"),
        *("", "…", "🎂🎂"),
    ],
)
def test_small_talk_asks_for_nothing_of_its_own(talk: str) -> None:
    strong = [term for term in build_query(talk).terms if term.own and term.need]
    assert sum(term.weight for term in strong) < 1.0


def test_names_are_capitals_inside_a_sentence() -> None:
    query = build_query("Where did Caroline meet Thanks in July? Anna knows.")
    assert {term.forms[0] for term in query.terms if term.name} == {"carolin"}


@pytest.mark.parametrize(
    ("text", "asks"), [("Why?", True), ("どこですか。", True), ("何？", True), ("No. Yes.", False)]
)
def test_whether_it_asks(text: str, asks: bool) -> None:
    assert build_query(text).asks is asks


def test_a_short_question_is_helped_by_the_reply_before_it() -> None:
    query = build_query("And when was the wedding?", "Your brother married in Kamakura.")
    assert [(term.forms[0], term.weight, term.own) for term in query.terms] == [
        ("wed", 1.0, True),
        ("brother", 0.25, False),
        ("marri", 0.25, False),
        ("kamakura", 0.25, False),
    ]
    assert (
        build_query("And the wedding?", "The wedding.").terms
        == build_query("And the wedding?").terms
    )
    long = "Which umbrella, pencil, radio or ladder broke?"
    assert build_query(long, "Your brother married.") == build_query(long)
    assert build_query("ok, thanks", "Your brother married in Kamakura.").lookups == (
        *("ok", "thank", "brother", "marri", "kamakura"),
    )
    assert not any(term.own for term in build_query("ok, thanks", "Your brother.").terms)


def test_of_a_long_message_beginning_and_end_are_read() -> None:
    text = "The lighthouse. " + "filler words here. " * 400 + "Where is the anchor?"
    assert {"lighthous", "anchor"} <= set(build_query(text).lookups)
    middle = "x. " * 1_000 + "lighthouse. " + "y. " * 2_000
    assert "lighthous" not in build_query(middle).lookups


def test_a_spanish_word_is_looked_up_under_both_forms() -> None:
    query = build_query("¿Dónde están los panes de la abuela?")
    assert ("pane", "pan") in [term.forms for term in query.terms]
    assert {"pane", "pan"} <= set(query.lookups)


@given(st.text(max_size=400), st.text(max_size=100))
def test_any_text_makes_a_bounded_query(question: str, previous: str) -> None:
    query = build_query(question, previous)
    assert len(query.terms) <= MOST_TERMS
    assert len(set(query.lookups)) == len(query.lookups)
    assert all(0 < term.weight <= 1 for term in query.terms)
    assert query == build_query(question, previous)
