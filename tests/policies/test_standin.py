"""Stand-ins: whole sentences, spread over the span, in every language, never a refusal."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from policies.standin import condense, write_stand_in
from policies.values import Line

TALK = [
    Line("Anna", "Good morning! I moved to Lisbon on 3 May 2019. It rains."),
    Line("Kai", "Oh, nice. How are you?"),
    Line("Anna", "My sister Beatriz works at the Gulbenkian museum. Well, you know."),
    Line("Kai", "Yes. That is so good to hear."),
    Line("Anna", "The rent is 1,150 euros a month. Anyway."),
]


def test_the_telling_sentences_are_chosen() -> None:
    assert write_stand_in(TALK, 130).splitlines() == [
        "Anna: I moved to Lisbon on 3 May 2019.",
        "Anna: My sister Beatriz works at the Gulbenkian museum.",
        "Anna: The rent is 1,150 euros a month.",
    ]


LANGUAGES = {
    "en": ("Dr. Miller came at 3.5 p.m. ", "She left with Tom! ", "Why did she go? "),
    "es": ("Vivo en Lima desde 2004. ", "¡Hola, la Sra. Paz llegó! ", "¿Cómo estás tú, Ana? "),
    "ru": ("Вчера я был в Москве. ", "Там было холодно… ", "А ты был в Казани? "),
    "ja": (
        "昨日は京都の清水寺に行った。",
        "「本当に嬉しい！」と美咲は言った。",
        "コーヒーを3杯飲む？",
    ),
    "zh": ("我昨天去了北京。", "他说：“我要走了。”", "真的是这样吗？！"),
    "ko": ("저는 부산에 살아요. ", "어제 민수를 만났어요! ", "커피를 3잔 마셨어요? "),
    "emoji": ("We won 🎉 ", "Rex the dog is home 🐕 ", "Here is our family 👨‍👩‍👧‍👦 "),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_end_where_each_language_ends_them(language: str) -> None:
    sentences = LANGUAGES[language]
    text = write_stand_in([Line("A", "".join(sentences).strip())], 400)
    assert text.splitlines() == [f"A: {sentence.strip()}" for sentence in sentences]


REFUSALS = [
    "I'm sorry, but I can't help with that.",
    "As an AI language model, I must decline.",
    "I cannot continue this story.",
    "Lo siento, pero no puedo ayudar con eso.",
    "Извините, но я не могу помочь с этим.",
    "申し訳ありませんが、お手伝いできません。",
    "抱歉，我无法提供这个内容。",
    "죄송하지만 도와드릴 수 없습니다.",
]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_no_refusal_is_carried(refusal: str) -> None:
    story = "Rex barked at 7. The ferry to Bergen left at 9 with forty sheep on board. It rained. "
    lines = [Line("Kai", refusal), *TALK, Line("Kai", story * 2 + refusal)]
    text = write_stand_in(lines, 2_000)
    assert refusal not in text
    assert text.startswith("Anna: Good morning!")
    assert text.endswith("Kai: It rained.")


def test_nothing_but_refusals_leaves_nothing() -> None:
    assert write_stand_in([Line("Kai", refusal) for refusal in REFUSALS], 1_100) == ""
    assert write_stand_in([], 1_100) == ""
    assert condense([], 1_500) == ""


def test_what_is_said_every_day_is_told_once_before_the_rest() -> None:
    """A topic of five is said on every fifth of 100 days; all of them have room, in any script."""
    topics = (
        "昨日、船長は灯台の鍵を海に落としました。とても悲しかったです。",
        "Мы нашли старую карту в подвале библиотеки вчера ночью.",
        "El gato de mi vecina se llama Bigotes y duerme en el tejado.",
        "My name is Keiko and I live in Bergen, I am allergic to walnuts.",
        "지난밤에 우리는 도서관 지하실에서 낡은 지도를 찾았습니다.",
    )
    lines = [Line("User", f"Day {i}: {topics[i % 5]}") for i in range(100)]
    told = write_stand_in(lines, 600)
    for topic in topics:
        assert topic.split("。")[0] in told
    # where nothing else is left, what repeats fills the room
    same = [Line("User", f"Day {i}: {topics[2]}") for i in range(100)]
    assert len(write_stand_in(same, 600)) >= 500


def test_it_is_spread_from_beginning_to_end() -> None:
    lines = [
        Line("AB"[i % 2], f"On day {i} the captain of ship {i * 7} sailed to harbour {i * 3}.")
        for i in range(400)
    ]
    days = [int(day) for day in regex.findall(r"On day (\d+)", write_stand_in(lines, 1_100))]
    assert days == sorted(days)
    assert days[0] < 60 and days[-1] >= 340
    assert all(later - earlier < 110 for earlier, later in pairwise(days))


def test_what_is_said_again_stands_once() -> None:
    lines = [Line("Anna", "My cat is called Snow. It is white.")] * 300
    assert write_stand_in(lines, 1_100) == "Anna: My cat is called Snow.\nAnna: It is white."


def test_a_giant_message_is_read_in_windows() -> None:
    """2 MB in milliseconds: whole sentences from its beginning to its end."""
    days = [f"On day {i} the captain of ship {i * 7} sailed." for i in range(50_000)]
    for text in (" ".join(days), "\n".join(days)):
        extract = write_stand_in([Line("A", "A log: "), Line("A", text)], 1_100).splitlines()
        said = [line.removeprefix("A: ") for line in extract]
        assert set(said) <= {*days, "A log:"}
        found = [days.index(day) for day in said if day in days]
        assert found[0] < 10_000 and found[-1] > 40_000


def test_a_giant_text_without_sentences_is_cut_like_any() -> None:
    extract = write_stand_in([Line("A", "字" * 500_000)], 1_100)
    assert extract.startswith("A: 字") and extract.endswith(" …")


def test_a_tools_mark_is_never_cut() -> None:
    lines = [Line("tool", "[result of f: Rain. Then sun. Wind 7.]"), Line("Kai", "It rains.")]
    assert write_stand_in(lines, 300) == (
        "tool: [result of f: Rain. Then sun. Wind 7.]\nKai: It rains."
    )


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("word " * 5_000, "A: word word"),
        ("字" * 32_000, "A: 字字"),
        ("👨‍👩‍👧‍👦" * 4_500, "A: 👨‍👩‍👧‍👦"),
        ("!" * 32_000, "A: !!"),
    ],
)
def test_one_endless_sentence_is_cut_at_a_clean_place_and_says_so(
    text: str, beginning: str
) -> None:
    extract = write_stand_in([Line("A", text)], 1_100)
    assert extract.startswith(beginning) and extract.endswith(" …")
    assert 800 <= len(extract) <= 1_375
    graphemes = regex.findall(r"\X", text)
    assert all(grapheme in graphemes for grapheme in regex.findall(r"\X", extract[3:-2]))


def test_a_gist_of_chapters() -> None:
    chapters = [
        "Anna moved to Lisbon in 2019. She found a flat near the river.",
        "Anna: My sister Beatriz works at the Gulbenkian museum.\nKai: The rent is 1,150 euros.",
    ]
    gist = condense(chapters, 110)  # 29 + 55 + 28 characters; with the 33 it would be 148
    assert gist.splitlines() == [
        "Anna moved to Lisbon in 2019.",
        "Anna: My sister Beatriz works at the Gulbenkian museum.",
        "Kai: The rent is 1,150 euros.",
    ]


def test_stand_ins_of_stand_ins_keep_their_speakers() -> None:
    text = condense([write_stand_in(TALK, 200), write_stand_in(TALK[2:], 200)], 300)
    assert all(line.startswith(("Anna: ", "Kai: ")) for line in text.splitlines())


sentences = st.text(st.sampled_from("ab Zя字カ각0👩\u200d🏽é́,"), min_size=1, max_size=40)
stops = st.sampled_from([". ", "! ", "? ", "。", "！？", "… ", "\n", "」", " 🎉 "])


@st.composite
def talks(draw: st.DrawFn) -> list[Line]:
    lines = draw(st.lists(st.lists(st.tuples(sentences, stops), min_size=1), max_size=20))
    return [
        Line("AB"[i % 2], "".join(said + stop for said, stop in line))
        for i, line in enumerate(lines)
    ]


def said_by(lines: list[Line]) -> Iterator[tuple[str, int, str]]:
    for place, line in enumerate(lines):
        for paragraph in line.text.splitlines():
            yield line.speaker, place, paragraph


@given(talks(), st.integers(20, 600))
def test_an_extract_stands_in_its_source_in_order(lines: list[Line], length: int) -> None:
    text = write_stand_in(lines, length)
    assert text == write_stand_in(lines, length)
    assert len(text) <= length * 1.25
    if text.endswith(" …"):
        return
    place = 0
    for extract in text.splitlines():
        speaker, _, sentence = extract.partition(": ")
        places = [at for name, at, source in said_by(lines) if name == speaker]
        assert places
        found = [
            at for name, at, source in said_by(lines) if name == speaker and sentence in source
        ]
        assert found and found[-1] >= place
        place = min(at for at in found if at >= place)
