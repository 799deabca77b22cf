"""Which of six languages a text is written in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.language import Language, language_of

TEXTS: list[tuple[str, Language]] = [
    ("She waited at the harbour until the ship came in.", "en"),
    ("ok", "en"),
    ("Ella esperaba en el puerto hasta que llegó el barco.", "es"),
    ("¿Dónde está mi llave?", "es"),
    ("No lo sé, pero la señora dijo que sí.", "es"),
    ("Она ждала в порту, пока не пришёл корабль.", "ru"),
    ("彼女は港で船を待っていた。", "ja"),
    ("カタカナだけ", "ja"),
    ("她在港口等船，船没有来。", "zh"),
    ("他說：「明天見。」", "zh"),
    ("그녀는 항구에서 배를 기다렸다.", "ko"),
    # names and loan words in another script do not turn a text over
    ("Анна сказала: «Do it now», и ушла домой вместе с Пётром.", "ru"),
    ("彼はLondonへ行き、Emmaに会った。とても寒かった。", "ja"),
    ("她说OK，然后打开了Windows的设置。", "zh"),
    ("민수는 Python 코드를 고쳤다. 그리고 커피를 마셨다.", "ko"),
    ("😀😀 hola, ¿qué tal? 👨‍👩‍👧‍👦", "es"),
    ("She said «привет» and left.", "en"),
]


@pytest.mark.parametrize(("text", "language"), TEXTS)
def test_languages(text: str, language: Language) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize("text", ["", "   ", "12:30", "😀👍🏽", "— … !?", "\ud83d", "עברית", "ไทย"])
def test_no_letter_of_the_six(text: str) -> None:
    assert language_of(text) is None


def test_a_tenth_of_kana_makes_it_japanese() -> None:
    """9 Han and 1 kana are Japanese, 10 Han and 1 kana Chinese."""
    assert language_of("東" * 9 + "の") == "ja"
    assert language_of("東" * 10 + "の") == "zh"


def test_spanish_outnumbers_english_or_it_is_english() -> None:
    assert language_of("la the") == "en"
    assert language_of("la la the") == "es"


def test_a_long_text_is_told_by_its_ends() -> None:
    """4,000 characters at either end; what stands between is not read."""
    ends = "Он ждал. " * 500
    assert language_of(ends + "the ship and the sea " * 5_000 + ends) == "ru"


@given(st.text(max_size=80))
def test_any_text_has_an_answer_and_keeps_it(text: str) -> None:
    found = language_of(text)
    assert found in {None, "en", "ja", "zh", "ko", "ru", "es"}
    assert language_of(text) == found


@given(st.sampled_from(TEXTS), st.integers(1, 300))
def test_saying_it_again_changes_nothing(pair: tuple[str, Language], times: int) -> None:
    text, language = pair
    assert language_of((text + " ") * times) == language
