"""The single rules of the judge, each with what it must see and what it must let pass."""

from __future__ import annotations

import pytest

from policies.judge.continuation import is_continuation
from policies.judge.echo import is_echo, measure_copied
from policies.judge.ending import is_cut
from policies.judge.frame import strings
from policies.judge.grounding import is_ungrounded, names_in
from policies.judge.heard import Heard
from policies.judge.inventions import is_invented
from policies.judge.language import is_english, is_wrong_language
from policies.judge.leaks import leaks_frame
from policies.judge.loops import is_loop
from policies.judge.moralising import is_moralising
from policies.judge.numbers import spoken_values, values
from policies.judge.reading import fold, is_unspaced, quotations, sentences, unquote, weight
from policies.judge.roots import root
from policies.judge.sizes import is_degenerate, is_long
from policies.judge.telling import TELLING
from policies.judge.terms import terms
from policies.judge.thinking import shows_thinking, strip_thinking
from tests.policies.judge_spans import GOOD, SPAN

HEARD = Heard(SPAN)


def _heard(*texts: str) -> Heard:
    return Heard([("", text) for text in texts])


# Reading


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("I can\u2019t", "i can't"),
        ("\uff29\u00a0CAN\uff07T", "i can't"),
        ("podré, señora", "podre, senora"),
        ("rechazó la petición", "rechazó la peticion"),
        ("\u30ac\u304e", "\u30ac\u304e"),
        ("Ёж и йод", "еж и йод"),
        ("a\u200bb\ufeffc", "abc"),
    ],
)
def test_folding_makes_spellings_equal(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_quotations_are_found_and_taken_out() -> None:
    text = "He said \"no\", «нет», “non”, 「いいえ」, 《书》 and 'never', it's Ana's."
    assert quotations(text) == ["no", "нет", "non", "いいえ", "书", "never"]
    assert "no" not in unquote(text).split()
    assert "Ana's" in unquote(text)


def test_a_text_that_is_one_quotation_speaks_for_itself() -> None:
    assert unquote("\u201cI can't.\u201d").strip() == "I can't."


def test_sentences_end_at_stops_and_lines_but_not_in_numbers() -> None:
    assert sentences("v1.2 is out. 好了！终于\n- done\n…") == [
        "v1.2 is out.",
        "好了！",
        "终于",
        "- done",
    ]


def test_sizes_are_compared_across_scripts() -> None:
    # 4 Han characters weigh 4 + 4 + 2 = 10 letters.
    assert (weight("hello"), weight("你好世界"), weight(" ")) == (5, 10, 0)
    assert is_unspaced("東京へ行く ok") and not is_unspaced("go to 東京") and not is_unspaced("42")


# Thinking


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("<think>a</think>b", "b"),
        ("plan plan</think>Hello", "Hello"),
        ('<think>He said "</think> is a tag"</think>b', "b"),
        ('<think>said "</think>" b', '" b'),
        ("The tag `</think>` was printed.", "The tag `</think>` was printed."),
        ("<think>open", "<think>open"),
        ("[THINK]a[/THINK] b", "b"),
        ("◁think▷a◁/think▷b", "b"),
        ("<|channel|>analysis<|message|>hm<|end|><|channel|>final<|message|>b<|return|>", "b"),
        ("no tag", "no tag"),
    ],
)
def test_closed_thinking_is_stripped(text: str, left: str) -> None:
    assert strip_thinking(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "<think>open",
        "b <|im_end|>",
        "[TOOL_CALLS] x",
        '{"name": "f", "arguments": {}}',
        "Let me summarize this.",
        "好的，用户希望我总结这段对话。",
        "ユーザーは要約を求めています。",
        "Хорошо, пользователь просит пересказ.",
        "Bien, el usuario quiere un resumen.",
    ],
)
def test_open_thinking_shows(text: str) -> None:
    assert shows_thinking(text)
    assert not shows_thinking("Mara thought aloud: `<think>` was a tag she had never seen.")


# Frame


def test_strings_are_found_to_a_bounded_depth() -> None:
    deep: object = "x"
    for _ in range(20):
        deep = [deep]
    assert strings({"a": ["b", {"c": "d"}], "e": 1}) == ["b", "d"]
    assert strings(deep) == []


# Language

RUSSIAN = "Мара ждёт в лодке под мостом, пока Финн не свистнет дважды и не выйдет из дома."
UKRAINIAN = "Мара чекає в човні під мостом, доки Фінн не свисне двічі і не вийде з її дому."
JAPANESE = "マラは橋の下の舟で待ち、フィンは二度口笛を吹くことになった。"
CHINESE = "玛拉在桥下的船上等着，芬恩出来的时候会吹两声口哨。"
KOREAN = "마라는 다리 아래 배에서 기다리고 핀은 나올 때 휘파람을 두 번 분다."
SPANISH = "Mara espera en la barca y Finn silba dos veces, pero la ronda pasa por la calle."
ENGLISH = "Mara waits in the boat and Finn will whistle twice, but the watch is on the street."
ARABIC = "تنتظر مارا في القارب تحت الجسر حتى يصفر فين مرتين."


@pytest.mark.parametrize(
    ("prose", "source", "wrong"),
    [
        *((text, text, False) for text in (RUSSIAN, UKRAINIAN, JAPANESE, CHINESE, KOREAN, SPANISH)),
        (ENGLISH, CHINESE, True),
        (CHINESE, JAPANESE, True),
        (JAPANESE, CHINESE, True),
        (KOREAN, ENGLISH, True),
        (ENGLISH, SPANISH, True),
        (SPANISH, ENGLISH, True),
        (UKRAINIAN, RUSSIAN, True),
        (RUSSIAN, UKRAINIAN, True),
        (ARABIC, ENGLISH, True),
        # Two languages in one conversation: either will do.
        (ENGLISH, CHINESE + ENGLISH, False),
        (CHINESE, CHINESE + ENGLISH, False),
        (ENGLISH, f"{SPANISH} {ENGLISH}", False),
        # Chinese talk about a few Japanese words stays Chinese.
        (CHINESE, CHINESE * 3 + "「かもしれない」", False),
        # Code is no language, quoted words are not the teller's.
        (RUSSIAN, f"{RUSSIAN} ```{ENGLISH * 9}``` https://example.org/{'path/' * 9}", False),
        (f"玛拉念了「{ENGLISH}」，芬恩没有听懂这句话的意思。", CHINESE, False),
        (f'"{ENGLISH}"', CHINESE, True),
        # Too little to tell.
        ("OK", CHINESE, False),
        (ENGLISH, "42", False),
        ("Fin", SPANISH, False),
        # Half and half is no language of its own.
        (f"{KOREAN} {ENGLISH}", RUSSIAN, False),
    ],
)
def test_the_language_is_the_conversations(prose: str, source: str, wrong: bool) -> None:
    assert is_wrong_language(prose, _heard(source)) is wrong


HARBOUR = (
    "My sister Ada lives in Oslo and she is moving to Lima in March because of her job. The captain"
    " Hartmann will carry her trunk on the Meridian, and it was 40 crowns a mile."
)
PUERTO = (
    "Mi hermana Ada vive en Oslo y se muda a Lima en marzo por su trabajo en el puerto. El capitan"
    " Hartmann lleva su baúl en el Meridian, pero no con la llave de la torre."
)


@pytest.mark.parametrize("source", [HARBOUR, PUERTO])
@pytest.mark.parametrize(
    "prose",
    [
        "Es tut mir leid, aber ich kann dieses Gespräch über Ada, Oslo und Lima nicht fassen.",
        "Je suis désolé, mais je ne peux pas résumer cet échange entre Ada, Oslo et Hartmann.",
        "Het spijt me, maar ik kan dit gesprek over Ada, Oslo en Lima helaas niet samenvatten.",
        "Przykro mi, ale nie mogę streścić rozmowy, w której jest Ada, Oslo, Lima i Hartmann.",
        "Üzgünüm ama Ada, Oslo, Lima ve Hartmann hakkındaki bu konuşmayı maalesef özetleyemem.",
        "Xin lỗi, tôi không thể tóm tắt cuộc trò chuyện này về Ada, Oslo, Lima và Hartmann.",
        "Jag är ledsen, men jag kan inte sammanfatta samtalet om Ada, Oslo och Hartmann.",
    ],
)
def test_names_of_the_source_hide_no_other_language(prose: str, source: str) -> None:
    """The words written small are neither the source's nor its language's (0 to 1 of 8 to 12)."""
    assert is_wrong_language(prose, _heard(source))


@pytest.mark.parametrize(
    ("prose", "source"),
    [
        # Hardly a word of the source, but English and Spanish small words.
        (
            "Relocation agreed; a skipper ships luggage for a fee that hardly anybody can pay.",
            HARBOUR,
        ),
        (
            "Mudanza acordada; un marino transporta el equipaje por un precio que nadie paga.",
            PUERTO,
        ),
        # Five words written small are too few.
        ("Ada packs linen, porcelain, spices, tobacco.", HARBOUR),
        # German is one of the languages that were spoken.
        (
            "Ada zieht um, und der Kapitän nimmt ihre Truhe mit.",
            f"{HARBOUR} Ada zieht um, und der Kapitän nimmt ihre schwere Truhe mit.",
        ),
    ],
)
def test_free_words_are_no_other_language(prose: str, source: str) -> None:
    assert not is_wrong_language(prose, _heard(source))


def test_english_is_told_by_its_commonest_words() -> None:
    assert is_english(ENGLISH)
    assert not is_english(SPANISH)
    assert not is_english("Mara, Finn")


# Loops and echoes


@pytest.mark.parametrize(
    "text",
    [
        "Thanks. Thanks. Thanks. Thanks, Mara.",
        "He waits by the bridge tonight. She rows. He waits by the bridge tonight.",
        "They argued over the boat's place and the boat's place.",
        "我爱美丽的美丽，" * 8,
        "カードは、どうやってるところは、" * 5,
        "by Mel, by Cara, by Ann, " * 12,
    ],
)
def test_loops(text: str) -> None:
    assert is_loop(text)


@pytest.mark.parametrize(
    "text", [GOOD, CHINESE, "Yes. No. Yes.", "Row, row, row. Home.", "", "1. Rice\n2. Salt\n3. Oil"]
)
def test_no_loops(text: str) -> None:
    assert not is_loop(text)


def test_copied_runs_are_measured_in_units() -> None:
    # a b c d e f: five of seven units in runs of three, the longest run has five.
    copied = measure_copied(list("xabcdey"), ["a b c d e f"], 3)
    assert (copied.share, copied.longest, sorted(copied.places)) == (5 / 7, 5, [1, 2, 3, 4, 5])
    assert measure_copied([], ["a b c"], 3).share == 0.0


@pytest.mark.parametrize(
    ("prose", "echo"),
    [
        (GOOD, False),
        ("Too short.", False),
        (" ".join(text for _, text in SPAN), True),
        (
            f'Mara said: "{SPAN[0][1]}" Finn nodded at her and went to look for the second window.',
            False,
        ),
        (
            "In the end he told her once more that when I come out I will whistle, twice"
            " if need be.",
            True,
        ),
    ],
)
def test_echoes(prose: str, echo: bool) -> None:
    assert is_echo(prose, HEARD) is echo


# Endings


@pytest.mark.parametrize(
    "text",
    [
        "Mara waits. Finn goes to the",
        "Mara waits, and then,",
        "Mara waits (under the bridge",
        "Mara waits (under the bridge.",
        "She has a boat. He whis",
        "玛拉在等，芬恩和",
        "マラは舟で待ち、フィンが",
        "마라는 배에서 기다리고 핀은 휘파람을",
        "Мара ждёт в лодке и",
        "Mara espera en la",
    ],
)
def test_cut_texts(text: str) -> None:
    assert is_cut(text)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        "Mara waits",
        "She whistled. 🙂",
        "He said: “Now.”",
        "- rent: 920\n- keys: Ines",
        "Talk over. Open: the billing alerts",
        "予算は保留\n次は家のこと",
        "다음 주 회의",
        "结束了。",
        "...",
    ],
)
def test_whole_texts(text: str) -> None:
    assert not is_cut(text)


# Sizes


@pytest.mark.parametrize(
    ("text", "source", "degenerate"),
    [
        ("[nothing further]", 32_000, True),
        ("N/A", 40, True),
        ("无", 40, True),
        ("Brief hand-off: migration done, tests green.", 1_700, False),
        # 1,100 / 6 = 183 letters are the least for any longer span.
        ("abcd " * 36 + "ab", 32_000, True),
        ("abcd " * 36 + "abcd", 32_000, False),
        ("Done", 300, True),
        ("迁移完成", 300, True),
        ("迁移完成了，没有问题", 300, False),
        ("7731-KQ-QKQ-MEADOW/MEADOW-LANE-MEADOWLARK-LARKING-KINGFISH/ER.EXAMPLE", 1_200, True),
        (
            "She noted https://example.org/a/long/address/that/nobody/types/by/hand and left"
            " the office, where the two of them had quarrelled.",
            1_200,
            False,
        ),
        (
            "二人は雨のなか駅まで歩き、切符を買い、古い地図を広げて次の町への道を確かめてから別れた。",
            400,
            False,
        ),
    ],
)
def test_too_little(text: str, source: int, degenerate: bool) -> None:
    assert is_degenerate(text, source, 1_100) is degenerate


@pytest.mark.parametrize(
    ("letters", "source", "long"),
    [
        (4_400, 9_000, False),
        (4_401, 9_000, True),
        (400, 50, False),
        (441, 400, True),
        (440, 400, False),
    ],
)
def test_too_much(letters: int, source: int, long: bool) -> None:
    assert is_long("a" * letters, source, 1_100) is long


# Leaks


def test_words_of_the_task_leak_only_where_nobody_said_them() -> None:
    leak = "Mara keeps it in her long-term memory, told in the past tense."
    assert leaks_frame(leak, HEARD)
    assert not leaks_frame(leak, _heard("My long-term memory is bad.", "Write in the past tense!"))
    assert leaks_frame("长期记忆里有玛拉。", HEARD)
    assert not leaks_frame(GOOD, HEARD)


# Numbers, names and terms


def test_numbers_are_values() -> None:
    assert values("1,100 at 14:35, 007 and 3.5") == {
        "1100",
        "1",
        "100",
        "14",
        "35",
        "7",
        "3.5",
        "3",
        "5",
    }
    assert spoken_values("twenty veinte двадцать") == {"20"}
    assert spoken_values("二十三 三百五 两万 十 二〇二三 万") == {
        "23",
        "305",
        "20000",
        "10",
        "2023",
        "10000",
    }


def test_names_stand_inside_sentences() -> None:
    assert names_in("The Duke met Anna-Lena and Ian's aunt. Mara, Finn and I left; Bo stayed.") == {
        "duke", "anna-lena", "ian", "finn", "bo",
    }  # fmt: skip


def test_terms_are_stems() -> None:
    assert terms("the necklaces of mara's 我们在等 서울역에서 b2b") == {
        "neckl", "mara", "我们", "们在", "在等", "서울", "울역",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("prose", "ungrounded"),
    [
        (GOOD, False),
        ("Mara told Finn that Brandt and Lady Ashcombe sleep.", True),
        ("Mara waits until 3, or 2023, or 1987.", True),
        ("Mara waits with Mr. Brandt.", False),
        ("Mara said: “We shall dance in Venice until the morning comes.”", True),
        ("“Whistle twice when you come out,” Mara said.", False),
        ("玛拉说：“月亮照着威尼斯的屋顶。”", True),
        ("They said “no”.", False),
        (
            "An old sailor paints seagulls upon driftwood, sells nothing, and forgets why"
            " autumn matters.",
            True,
        ),
    ],
)
def test_grounding(prose: str, ungrounded: bool) -> None:
    assert is_ungrounded(prose, HEARD) is ungrounded


def test_inflected_names_and_nicknames_are_known() -> None:
    heard = Heard(
        [("Маша", "Иван уехал в Казань с Катей."), ("Melanie", "Bye, Christopher-Robin!")]
    )
    assert not is_ungrounded("Потом Маше писали про Ивана, Казани и Катю.", heard)
    assert not is_ungrounded("Then Mel waved to Robin and Christopher.", heard)
    assert is_ungrounded("Потом Олег писал про Бориса и Тулу.", heard)


# Inventions


@pytest.mark.parametrize(
    ("forms", "found"),
    [
        ("plan plans planned planning planner", "plan"),
        ("decorate decorates decorated decorating decoration decorations", "decor"),
        ("swim swims swimming swimmer swimmer's", "swim"),
        ("love loves loved loving", "lov"),
        ("happy happily happiness happier happiest", "hap"),
        ("mother mom mum", "moth"),
        ("glass", "glas"),
        ("eeee", ""),
        ("ing" * 9_000, "ing"),
    ],
)
def test_forms_of_a_word_share_a_root(forms: str, found: str) -> None:
    assert {root(word) for word in forms.split()} == {found}


def test_words_of_telling_are_roots_and_name_no_thing() -> None:
    assert {"empha", "grat", "prais"} <= TELLING
    assert not {root(word) for word in "boat jewel car bus police wedding".split()} & TELLING


MARKET = Heard(
    [
        ("Nell", "I bought an old sailing dinghy on Saturday, and the varnish was peeling off."),
        ("Oscar", "Congratulations! I baked sourdough for the market and it was all sold by noon."),
        ("Nell", "My mom says the hull is sound. She decided to sand it with me in the shed."),
        ("Oscar", "That was kind of her. The regatta is in June, is it not?"),
    ]
)


KEPT = "Nell was at the shed to sand the hull of the dinghy, and the varnish was peeling."


@pytest.mark.parametrize(
    ("prose", "invented"),
    [
        # Other words for what was said: feelings, reports, kin, forms of a word, figures.
        ("Nell was excited to tell Oscar that her mother made the decision to help her.", False),
        ("Oscar praised it and emphasized that the baking was done for the market by noon.", False),
        ("In 1999 and twice in the sixty days of it, Nell was at the shed with her mom.", False),
        # Three of four words unheard, beside four and more of which a quarter is; two unheard;
        # three beside fewer than four; three beside four of which two are unheard.
        (f"{KEPT} A burglar stole the violin from the shed.", True),
        (f"{KEPT} A burglar was in the cellar with her.", False),
        ("Nell was at the shed and it was the day. A burglar stole the violin.", False),
        (
            "Nell sanded a hull in the castle with a lantern, and it was the day for her."
            " A burglar stole the violin of the queen for his own.",
            False,
        ),
        # Two sentences of three unheard things each.
        (
            "A burglar stole the violin, and it was the night. The queen of the castle fainted."
            " Nell was at the shed with her.",
            True,
        ),
        # Praise, and nothing told: 150 characters and more with none, 250 with one heard word.
        (
            "The importance of friendship is for her and for him a meaningful journey to the"
            " power of passion, and it is an inspiring story of growth and the value of support.",
            True,
        ),
        (
            "The importance of friendship is for her and for him a meaningful journey to the"
            " power of passion in the shed, and it is an inspiring story of the value of it.",
            False,
        ),
        # Kin that nobody spoke of; her mother was spoken of.
        ("Nell was in the shed with her wife Oscar, and it was good that he had the dinghy.", True),
        ("Oscar, her brother, was in the shed with Nell, and she had the dinghy with him.", True),
        ("It was in the shed that Nell had the dinghy, and she was with Oscar's mom, Nell.", False),
        # What is said in quotation marks is for other rules.
        ('Nell was in the shed. "A burglar stole the violin from the cellar," it was.', False),
        # Too little English to be sure of.
        ("A burglar stole violins, cellars, umbrellas.", False),
    ],
)
def test_inventions(prose: str, invented: bool) -> None:
    assert is_invented(prose, MARKET) is invented


@pytest.mark.parametrize("other", [RUSSIAN, SPANISH, JAPANESE])
def test_translated_talk_is_no_invention(other: str) -> None:
    prose = f"{KEPT} A burglar stole the violin from the cellar."
    assert is_invented(prose, _heard(*MARKET.texts))
    assert not is_invented(prose, _heard(*MARKET.texts, other))


def test_one_wholly_unheard_sentence_is_enough_where_much_was_said() -> None:
    prose = "It was the day of the market for Nell. The burglar stole a violin with the queen."
    assert not is_invented(prose, MARKET)
    # Seven times 287 characters of source are 2,009.
    assert is_invented(prose, Heard([*MARKET.lines] * 7))


def test_nobodys_kin_is_invented_where_no_speaker_is_named() -> None:
    prose = "Nell was at the shed with her wife Oscar, and it was the day of the regatta in June."
    assert is_invented(prose, MARKET)
    assert not is_invented(prose, _heard(*MARKET.texts, "Nell and Oscar sing."))


# Moralising


@pytest.mark.parametrize(
    ("prose", "moralising"),
    [
        ("The passage highlights how Mara waits.", True),
        ("In this story, Mara waits for Finn with a boat.", True),
        ("This scene also reminds of trust between friends.", True),
        (
            "Mara's loyalty is a testament to their bond. The night serves as a reminder of it.",
            True,
        ),
        ("Finn's journey is deeply inspiring, and it carries a message of hope.", True),
        (
            "Their plan reminds us of the power of trust and perseverance, and inspired others.",
            True,
        ),
        # One phrase is a manner; quoted ones are somebody's own.
        ("Mara called his skill a testament to practice.", False),
        ("Finn said: “The passage highlights danger.” Mara nodded.", False),
        ("The scene was quiet. They waited in the passage under the bridge.", False),
        (GOOD, False),
    ],
)
def test_moralising(prose: str, moralising: bool) -> None:
    assert is_moralising(prose, HEARD) is moralising


def test_a_talk_about_a_story_may_be_told() -> None:
    talk = _heard("I read the story of the fox.", "It is a testament to courage. Remind us of it!")
    assert not is_moralising("In the story, the fox runs. The story teaches patience.", talk)
    assert not is_moralising("It is a testament to courage, and its message of hope stays.", talk)


# Continuation


@pytest.mark.parametrize(
    "prose",
    [
        "I take the necklace and run. You follow me.",
        "Mara: I hear the watch.\nFinn: Then we wait, you and I.",
        "[Finn: Thanks Mara for waiting!]",
        "美咲、行くよ。荷物はどこかな？",
        "Wow, great! Thanks, Mara! What a night!",
        "我这就来，你等着。",
        "Жду тебя, я уже иду.",
        "Te espero, ya voy contigo.",
        "저는 지금 갈게요.",
    ],
)
def test_speech_is_no_chapter(prose: str) -> None:
    assert is_continuation(prose, HEARD)


@pytest.mark.parametrize(
    "prose",
    [
        GOOD,
        "Mara: waits with the boat.\nFinn: fetches the necklace.",
        "Note: the watch passes often.",
        '"I cannot be caught," Mara said. Finn nodded.',
        "“你等着，”玛拉说。芬恩点了点头。",
        "私立探偵は迷宮の前で待った。",
    ],
)
def test_a_chapter_is_no_speech(prose: str) -> None:
    assert not is_continuation(prose, HEARD)


def test_an_answered_question_is_no_chapter() -> None:
    talk = [
        ("Ana", "We packed the tents and the lanterns yesterday."),
        ("Luis", "The mule is fed, the saddle mended."),
        ("Ana", "And which is the longest river of France?"),
    ]
    answer = "The longest river of France is the Loire."
    assert is_continuation(answer, Heard(talk))
    assert not is_continuation(answer, Heard(talk[1:]))
    assert not is_continuation(answer, Heard([*talk, ("Luis", "No idea.")]))
    assert not is_continuation("They packed tents and lanterns; the mule was fed.", Heard(talk))


# Attribution


def test_a_telling_that_names_nobody_must_keep_closer_to_its_source() -> None:
    talk = (
        ("Mara", "The allotment was flooded again, and the tomatoes are gone, all forty of them."),
        ("Jonas", "Again? That makes three summers. The council promised a drain last October."),
        ("Mara", "They sent a letter. It says the drain is planned, and it costs nine thousand."),
        ("Jonas", "Then let us dig a ditch ourselves on Saturday. I can borrow two spades."),
    )
    lines = [(name, f"{text} Nobody wants a garden under water.") for name, text in talk] * 3
    heard = Heard(lines)
    essay = (  # of its 14 content words 6 were said: between a third and 0.55
        "A garden under water, a drain, a letter from the council: flooded ground teaches"
        " communities patience, courage, solidarity, perseverance and gratitude."
    )
    plain = (
        "The allotment was flooded again, for the third summer; forty tomatoes are gone. The"
        " council's letter says the drain is planned. A ditch is to be dug on Saturday."
    )
    assert is_ungrounded(essay, heard)
    assert is_ungrounded("The story of the flooded allotment", heard), "a title tells nothing"
    assert not is_ungrounded(plain, heard)
    assert not is_ungrounded("Mara's allotment was flooded.", heard)
    assert not is_ungrounded(f"Mara spoke of it. {essay}", heard), "a third is enough with a name"
    roles = Heard([("user", text) for _, text in lines])
    assert not is_ungrounded(essay, roles), "a role is no name that could be told"
