"""What a gist must keep, and how it is made shorter by whole sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.gists import find_lost, shorten
from policies.standin import split_sentences

TOLD = {
    "en": (
        "Mara promised Jonas to return the silver key. The lamp burned.",
        "Mara still owes Jonas the silver key.",
        "The lamp burned until morning and nobody spoke.",
    ),
    "ru": (
        "Мара обещала Йонасу вернуть серебряный ключ. Горела лампа.",
        "Мара всё ещё должна вернуть Йонасу серебряный ключ.",
        "Лампа горела до утра, и никто не говорил.",
    ),
    "es": (
        "Mara prometió a Jonás devolver la llave de plata. La lámpara ardía.",
        "Mara debe devolver a Jonás la llave de plata.",
        "La lámpara ardió hasta la mañana y nadie habló.",
    ),
    "ja": (
        "マーラはヨナスに銀の鍵を返すと約束した。灯台は燃えていた。",
        "マーラはまだヨナスに銀の鍵を返していない。",
        "灯台は朝まで燃え、誰も話さなかった。",
    ),
    "zh": (
        "玛拉答应把银钥匙还给约纳斯。灯亮着。",
        "玛拉还没有把银钥匙还给约纳斯。",
        "灯亮到天明，没有人说话。",
    ),
    "ko": (
        "마라는 요나스에게 은열쇠를 돌려주겠다고 약속했다. 등불이 타고 있었다.",
        "마라는 아직 요나스에게 은열쇠를 돌려주지 않았다.",
        "등불은 아침까지 탔고 아무도 말하지 않았다.",
    ),
}


@pytest.mark.parametrize("language", TOLD)
def test_a_thread_that_the_notes_tell_and_the_gist_does_not_is_lost(language: str) -> None:
    notes, thread, other = TOLD[language]
    assert find_lost(notes, [notes], [thread]) == []
    assert find_lost(other, [notes], [thread]) == [thread]
    assert find_lost(other, [other], [thread]) == [], "it was lost before this gist"


LONG = {
    "en": [
        "It was quiet.",
        "Mara Lindqvist sold the boat for 4,200 crowns on 3 May.",
        "They ate.",
        "Jonas went to Bergen with Dr. Weiss.",
    ],
    "ja": ["静かだった。", "マーラは五月三日に舟を4200クローネで売った。", "二人は食べた。"],
    "zh": ["很安静。", "玛拉五月三日以4200克朗卖掉了船。", "他们吃了饭。"],
    "ko": ["조용했다.", "마라는 5월 3일에 배를 4200크로네에 팔았다.", "그들은 먹었다."],
    "ru": ["Было тихо.", "Мара продала лодку за 4200 крон 3 мая.", "Они поели."],
    "es": ["Todo calló.", "Mara vendió la barca por 4200 coronas el 3 de mayo.", "Comieron."],
}


@pytest.mark.parametrize("language", LONG)
def test_the_most_telling_sentences_stay(language: str) -> None:
    sentences = LONG[language]
    gap = "" if language in ("ja", "zh") else " "
    text = gap.join(sentences)
    made = shorten(text, len(text) - 3)
    assert made is not None
    assert len(made.moved) == 1 and made.moved[0] != sentences[1]
    least = shorten(text, len(sentences[1]))
    assert least is not None
    assert least.text == sentences[1]
    assert least.moved == (sentences[0], *sentences[2:])


def test_what_tells_a_thread_stays_before_all() -> None:
    thread = "They ate the last bread; who will buy more?"
    text = " ".join(
        [*LONG["en"][:2], "They ate the last bread and had to buy more.", LONG["en"][3]]
    )
    made = shorten(text, 50, [thread])
    assert made is not None
    assert made.text == "They ate the last bread and had to buy more."


def test_a_text_that_fits_is_left_alone_and_one_sentence_is_never_cut() -> None:
    whole = shorten("One. Two.", 9)
    assert whole is not None and (whole.text, whole.moved) == ("One. Two.", ())
    assert shorten("One endless sentence that is longer than all", 20) is None
    assert shorten("", 20) is None


@given(
    st.lists(st.sampled_from([s for told in LONG.values() for s in told]), min_size=1, max_size=30),
    st.sampled_from([" ", "\n", "\n\n"]),
    st.integers(1, 800),
)
def test_nothing_is_lost_or_cut(sentences: list[str], gap: str, most: int) -> None:
    text = gap.join(sentences)
    made = shorten(text, most)
    whole = split_sentences(text)
    if made is None:
        assert all(len(sentence) > most for sentence in whole)
        return
    assert len(made.text) <= most
    assert sorted([*split_sentences(made.text), *made.moved]) == sorted(whole)
