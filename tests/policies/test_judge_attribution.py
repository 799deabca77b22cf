"""Attribution: what one speaker told must not be tied to the other, in six languages."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.judge.attribution import is_misattributed
from policies.judge.grammars import GRAMMARS
from policies.judge.heard import Heard
from policies.judge.language import guess_language
from policies.judge.ownership import find_ownership
from policies.judge.reading import fold
from policies.judge.subjects import Clause, Names, read_clauses
from tests.policies.judge_spans import judge, read_texts

Span = list[tuple[str, str]]
NAMES = {
    "en": ("Nell", "Ingrid"),
    "es": ("Inés", "Carla"),
    "ru": ("Вера", "Зоя"),
    "zh": ("小雨", "佳蓉"),
    "ja": ("美奈", "さくら"),
    "ko": ("민아", "수지"),
}
FACTS = {
    lang: [row for row in read_texts("attribution_facts") if row["lang"] == lang] for lang in NAMES
}


def exchange(text: str, first: str, second: str) -> str:
    """The text with two names in each other's place."""
    either = re.compile(f"{re.escape(first)}|{re.escape(second)}")
    return either.sub(lambda met: second if met.group() == first else first, text)


def talk_of(lang: str, facts: list[dict[str, Any]], asks: list[bool]) -> Span:
    """A talk in which two speakers tell the facts in turn and ask about some of them."""
    span: Span = []
    for at, (fact, asked) in enumerate(zip(facts, asks, strict=True)):
        who, other = NAMES[lang] if at % 2 == 0 else reversed(NAMES[lang])
        span.append((who, fact["said"]))
        if asked:
            span.append((other, fact["asked"]))
    return span


def tell(lang: str, facts: list[dict[str, Any]], answers: list[bool], wrong: set[int]) -> str:
    """The chapter of such a talk; wrong: the facts whose two people are exchanged."""
    told = []
    for at, (fact, answered) in enumerate(zip(facts, answers, strict=True)):
        who, other = NAMES[lang] if (at % 2 == 0) is (at not in wrong) else reversed(NAMES[lang])
        told.append(fact["told"].format(name=who, other=other))
        if answered:
            told.append(fact["answered"].format(name=who, other=other))
    return ("" if lang in ("zh", "ja") else " ").join(told)


def _wrong(telling: str, span: Span) -> bool:
    return is_misattributed(telling, Heard(span))


def _rows(name: str, kind: str) -> list[tuple[str, Span]]:
    return [(text, row["span"]) for row in read_texts(name) for text in row[kind]]


# The project's own talks and chapters


@pytest.mark.parametrize(("half", "good"), [("dev", 104), ("held", 18)])
def test_true_tellings_are_not_misattributed(half: str, good: int) -> None:
    told = _rows(f"attribution_{half}", "good")
    assert len(told) == good
    assert [text for text, span in told if _wrong(text, span)] == []


@pytest.mark.parametrize(("half", "bad", "found"), [("dev", 56, 52), ("held", 19, 19)])
def test_exchanged_people_are_misattributed(half: str, bad: int, found: int) -> None:
    # Missed: what somebody `has to` or `will` do, and verbs that may answer another's news.
    told = _rows(f"attribution_{half}", "bad")
    assert len(told) == bad
    assert sum(_wrong(text, span) for text, span in told) >= found
    assert {row["lang"] for row in read_texts(f"attribution_{half}")} == set(GRAMMARS)


def test_the_whole_judge_names_the_reason() -> None:
    for text, span in _rows("attribution_held", "bad"):
        assert "misattributed" in judge(text, span).reasons
    for text, span in _rows("attribution_held", "good"):
        assert judge(text, span).accepted, text


def test_names_exchanged_in_good_chapters_are_found() -> None:
    swapped = [
        (exchange(text, *dict.fromkeys(name for name, _ in span)), span)
        for text, span in _rows("attribution_held", "good")
    ]
    # A third of them tells little more than how the listener took it.
    assert sum(_wrong(text, span) for text, span in swapped) >= 13


def test_no_good_chapter_is_misattributed() -> None:
    told = [
        (row["text"], row["span"]) for half in ("dev", "held") for row in read_texts(f"good_{half}")
    ]
    assert len(told) == 115
    assert [text for text, span in told if _wrong(text, span)] == []


# Talks by template: 120 true chapters


@pytest.mark.parametrize("lang", NAMES)
def test_talks_by_template(lang: str) -> None:
    true = all_wrong = one_wrong = 0
    for seed in range(20):
        draw = random.Random(f"{lang} {seed}")
        facts = draw.sample(FACTS[lang], 6)
        asks, answers = ([draw.random() < 0.5 for _ in facts] for _ in range(2))
        span = talk_of(lang, facts, asks)
        good = tell(lang, facts, answers, set())
        assert "misattributed" not in judge(good, span).reasons
        true += not _wrong(good, span)
        all_wrong += _wrong(tell(lang, facts, answers, set(range(6))), span)
        one_wrong += _wrong(tell(lang, facts, answers, {draw.randrange(6)}), span)
    assert (true, all_wrong) == (20, 20)
    assert one_wrong >= 16


@given(data=st.data(), lang=st.sampled_from(sorted(NAMES)))
@settings(max_examples=150, deadline=None)
def test_what_is_told_of_the_right_person_is_never_misattributed(
    data: st.DataObject, lang: str
) -> None:
    size = data.draw(st.integers(2, 12))
    facts = data.draw(st.permutations(FACTS[lang]))[:size]
    asks, answers = (data.draw(st.lists(st.booleans(), min_size=size, max_size=size)) for _ in "ab")
    assert not _wrong(tell(lang, facts, answers, set()), talk_of(lang, facts, asks))


@given(data=st.data(), lang=st.sampled_from(["en", "es", "zh", "ja", "ko"]))
@settings(max_examples=100, deadline=None)
def test_names_exchanged_in_talk_and_chapter_change_nothing(data: st.DataObject, lang: str) -> None:
    facts = data.draw(st.permutations(FACTS[lang]))[:4]
    wrong = data.draw(st.sets(st.integers(0, 3)))
    span, told = talk_of(lang, facts, [True] * 4), tell(lang, facts, [True] * 4, wrong)
    other = [(exchange(name, *NAMES[lang]), text) for name, text in span]
    assert _wrong(exchange(told, *NAMES[lang]), other) is _wrong(told, span)


# Single sentences

REGATTA = Heard(
    [
        ("Nell", "I bought an old sailing dinghy on Saturday."),
        ("Oscar", "Congratulations! I spent Saturday baking sourdough with rye."),
        ("Nell", "The varnish was peeling, so I sanded the whole hull."),
        ("Oscar", "My oven broke halfway. Grandmother lent me hers."),
        ("Nell", "Have you ever sailed?"),
        ("Oscar", "Never. I entered a pastry contest in Ghent instead."),
        ("Nell", "The regatta starts in June. I want a new mainsail before that."),
        ("Oscar", "You should ask your uncle for canvas, Nell."),
        ("Narrator", "Rain drums on the roof of the harbour cafe."),
    ]
)


@pytest.mark.parametrize(
    ("prose", "wrong"),
    [
        (
            "Nell bought an old dinghy and sanded the hull. Oscar was baking sourdough at"
            " his home.",
            False,
        ),
        (
            "Oscar sanded the whole hull of a dinghy. Nell was at home, and it was the day"
            " of the rain.",
            True,
        ),
        (
            "The day was wet. Nell and Oscar sanded the varnish off the hull of the dinghy"
            " by the cafe.",
            True,
        ),
        (
            "Nell and Oscar met. They sanded the varnish off the hull of the dinghy in the"
            " rain of June.",
            True,
        ),
        (
            "Nell and Oscar talked of the varnish, the hull and the dinghy, and of the"
            " regatta to come.",
            False,
        ),
        (
            "They sanded the varnish off the hull of the dinghy, and it was the best day"
            " of the year.",
            False,
        ),
        (
            "Oscar admired the varnish on the hull of the dinghy, and he was not in the"
            " boat that day.",
            False,
        ),
        (
            "Oscar heard from Nell that the varnish on the hull of the dinghy was old, and"
            " it was so.",
            False,
        ),
        (
            "Oscar was in the rain, and Nell spent the day on sourdough with rye from the oven.",
            True,
        ),
        (
            "Oscar told Nell that the varnish on the hull of the dinghy was old, and it was so.",
            True,
        ),
        (
            "Nell is to ask for canvas, and the sourdough with rye is for the pastry"
            " contest in June.",
            False,
        ),
        (
            "Rain was on the roof. Oscar was in the harbour cafe, and the rain was on the"
            " roof of it.",
            False,
        ),
        (
            "Oscar schliff den Rumpf der Jolle ab, und Nell war zu Hause und backte das"
            " Brot im Ofen.",
            False,
        ),
    ],
)
def test_attribution(prose: str, wrong: bool) -> None:
    assert is_misattributed(prose, REGATTA) is wrong


@pytest.mark.parametrize(
    ("lang", "wrong"),
    [
        ("en", "Nell and Ingrid put newts into a pond behind the greenhouse."),
        ("es", "Inés y Carla metieron tritones en un estanque detrás del invernadero."),
        ("ru", "Вера и Зоя выкопали пруд за теплицей и пустили туда тритонов."),
        ("zh", "小雨和佳蓉在温室后面挖了池塘，放了蝾螈。"),
        ("ja", "美奈とさくらは温室の裏に池を掘り、イモリを放した。"),
        ("ko", "민아와 수지는 온실 뒤에 연못을 파고 도롱뇽을 풀었다."),
    ],
)
def test_what_one_did_is_not_what_both_did(lang: str, wrong: str) -> None:
    pond, flat, vet, test = (FACTS[lang][at] for at in (6, 3, 4, 9))
    assert _wrong(wrong, talk_of(lang, [pond, flat, vet, test] * 2, [False] * 8))
    both = talk_of(lang, [pond, pond, vet, flat] * 2, [False] * 8)
    assert not _wrong(wrong, both)


@pytest.mark.parametrize(
    ("lang", "talked", "theirs", "each"),
    [
        (
            "en",
            "Odile and Bram talked of the accordion, the customs and the ivory keys.",
            "Odile and Bram talked of their accordion, the customs and the ivory keys.",
            "Odile and Bram talked of their accordion with ivory keys and essays on Hobbes.",
        ),
        (
            "es",
            "Olga y Bruno hablaron del acordeón, la aduana y las teclas de marfil.",
            "Olga y Bruno hablaron de su acordeón, la aduana y las teclas de marfil.",
            "Olga y Bruno hablaron de su acordeón con teclas y los ensayos sobre Hobbes.",
        ),
        (
            "ru",
            "Ольга и Борис говорили про аккордеон, таможню и клавиши.",
            "Ольга и Борис говорили про свой аккордеон, таможню и клавиши.",
            "Ольга и Борис говорили про свой аккордеон с клавишами и сочинения о Гоббсе.",
        ),
        (
            "zh",
            "欧莉和博文谈到被海关扣下的手风琴和象牙琴键。",
            "欧莉和博文谈到他们的被海关扣下的手风琴和象牙琴键。",
            "欧莉和博文谈到他们的手风琴象牙琴键和霍布斯论文，以及耳塞甘草糖。",
        ),
        (
            "ja",
            "織江と武は手風琴と税関と象牙の話をした。",
            "織江と武は自分たちの手風琴と税関と象牙について話した。",
            "織江と武は自分たちの手風琴と象牙、小論文の採点について話した。",
        ),
        (
            "ko",
            "올가와 보람은 아코디언과 세관과 상아 건반 이야기를 했다.",
            "올가와 보람은 그들의 아코디언과 세관과 상아 건반 이야기를 했다.",
            "올가와 보람은 그들의 아코디언과 상아 건반, 홉스 논술 이야기를 했다.",
        ),
    ],
)
def test_what_two_talked_of_is_not_theirs(lang: str, talked: str, theirs: str, each: str) -> None:
    span = next(row["span"] for row in read_texts("attribution_held") if row["lang"] == lang)
    assert [_wrong(text, span) for text in (talked, theirs, each)] == [False, True, False]


@given(
    names=st.lists(st.text(max_size=6), min_size=2, max_size=5), lang=st.sampled_from(["en", "ja"])
)
@settings(max_examples=200, deadline=None)
def test_any_name_can_speak(names: list[str], lang: str) -> None:
    facts = FACTS[lang][: len(names)]
    span = [(name, fact["said"]) for name, fact in zip(names, facts, strict=True)]
    told = " ".join(
        fact["told"].format(name=name, other=names[0])
        for name, fact in zip(names, facts, strict=True)
    )
    assert _wrong(told, span) in (True, False)


def test_few_lines_ask_for_more() -> None:
    span: Span = [("Nell", "I sanded the hull of it."), ("Oscar", "My oven broke on the way.")]
    assert not _wrong("Oscar sanded the hull.", span)  # 2 of 2 + 1
    assert _wrong("Oscar sanded the hull.", span * 3)  # 2 of 2
    span.append(("Nell", "It is the varnished hull."))
    assert _wrong("Oscar sanded the varnished hull.", span)  # 3 of 2 + 1


def test_small_faults_add_up() -> None:
    span: Span = [("Nell", "I sanded the hull."), ("Oscar", "My oven broke in the bread.")] * 3
    span += [("Nell", "The regatta is cold."), ("Nell", "The canvas is dear and it is old.")]
    one = "Oscar was in the regatta. Oscar left the regatta. Oscar bought the canvas."
    assert not _wrong(one, span)  # 2 of 3
    assert _wrong(f"{one} Oscar has the hull.", span)  # 3 of 3
    assert not _wrong(f"{one} Oscar has the hull. Oscar ate the bread.", span)  # 3 of 3 + 2


def test_attribution_needs_two_persons() -> None:
    wrong = "Oscar sanded the whole hull of a dinghy. Nell was at home, and it was the day of rain."
    assert is_misattributed(wrong, REGATTA)
    assert not is_misattributed(wrong, Heard([("Nell", text) for text in REGATTA.texts]))
    assert not is_misattributed(wrong, Heard([]))


@pytest.mark.parametrize(
    ("user", "assistant", "lang"),
    [
        ("User", "Assistant", "en"),
        ("Usuario", "Asistente", "es"),
        ("Пользователь", "Ассистент", "ru"),
        ("用户", "助手", "zh"),
        ("ユーザー", "アシスタント", "ja"),
        ("사용자", "어시스턴트", "ko"),
    ],
)
def test_roles_are_no_persons(user: str, assistant: str, lang: str) -> None:
    # What an assistant worked out is rightly told of the user who takes it over.
    facts = FACTS[lang][:6]
    names = dict(zip(NAMES[lang], (user, assistant), strict=True))
    span = [(names[name], text) for name, text in talk_of(lang, facts, [False] * 6)]
    told = tell(lang, facts, [False] * 6, set(range(6)))
    for name, role in names.items():
        told = told.replace(name, role)
    assert not _wrong(told, span)


@pytest.mark.parametrize(
    ("text", "context", "language"),
    [
        (
            "She sanded it well.",
            "The hull is old and the varnish of it was gone, and that is it.",
            "en",
        ),
        ("Nell sanded the hull.", "", None),
        ("Es", "", None),
        ("小雨在温室后面挖了池塘。", "", "zh"),
        ("美奈は温室の裏に池を掘った。", "", "ja"),
        ("민아는 온실 뒤에 연못을 팠다.", "", "ko"),
        ("Вера выкопала пруд.", "", "ru"),
        ("Inés cavó un estanque y la casa de su hermana no es de ella.", "", "es"),
        ("Η Ελένη έσκαψε μια λίμνη.", "", None),
    ],
)
def test_the_language_of_a_telling(text: str, context: str, language: str | None) -> None:
    assert guess_language(text, context) == language


@pytest.mark.parametrize(
    ("line", "owned"),
    [
        ("I varnished it.", True),
        ("Was it varnished?", False),
        ("You varnished it.", False),
        ("Oscar varnished it.", False),
        ("Keep it varnished.", False),
        ("Well, first take the varnished one.", False),
        ("I'd have it varnished.", False),
        ("I would love it varnished.", True),
        ("*varnishes it* There.", False),
        ("(varnishes it) There.", False),
        ("There (it is varnished now).", False),
        ('"Ahoy!" The boat is varnished.', False),
        ('"I say it now" was on the varnished boat.', False),
        ('The "Heron" is varnished.', True),
    ],
)
def test_what_is_a_speakers_own(line: str, owned: bool) -> None:
    names = Names(("nell", "oscar"), GRAMMARS["en"])
    own = find_ownership([("Nell", line), ("Oscar", "Fine bread.")], names).alone
    assert ("varni" in own["nell"]) is owned
    assert own["oscar"] == {"fine", "bread"}


def test_what_a_question_repeats_stays_its_tellers_own() -> None:
    names = Names(("nell", "oscar"), GRAMMARS["en"])
    lines = [("Nell", "I varnished it."), ("Oscar", "You varnished it? How?")]
    assert find_ownership(lines, names).alone["nell"] == {"varni"}
    lines = [("Nell", "I varnished it."), ("Oscar", "I varnished mine."), ("GM", "Bread falls.")]
    assert find_ownership(lines, names).alone == {"nell": set(), "oscar": {"mine"}}


def test_what_a_person_spoke_of_is_not_quite_foreign() -> None:
    asked: Span = [("Oscar", "Did you sand the hull?"), ("Oscar", "Bread was in the oven.")] * 2
    span = [("Nell", "I sanded the hull of it."), ("Nell", "It has the keel."), *asked]
    span = [*span, ("Nell", "It is the old one.")]
    # Asking about the hull makes it nobody's claim; the keel, of which Oscar never spoke, decides.
    assert not _wrong("Oscar had the hull of sand.", [*span, ("Oscar", "Was it sanded?")])
    assert _wrong("Oscar had the hull and the keel.", span)
    owned = find_ownership(span, Names(("nell", "oscar"), GRAMMARS["en"]))
    assert owned.find_foreign("oscar", {"hull", "bread"}) == [set()]
    assert owned.find_foreign("oscar", {"hull", "keel", "bread"}) == [{"hull", "keel"}]
    assert owned.find_foreign("nell", {"hull", "keel", "bread"}) == [{"bread"}]


@pytest.mark.parametrize(
    ("lang", "told", "clauses"),
    [
        (
            "en",
            "Last week, Nell left and Oscar's oven broke, and she wept. They met. It rained.",
            [(("nell",), "left and oscar's oven broke")],
        ),
        (
            "en",
            "Nell and Oscar met. They sang, while Oscar and Nell ate; nobody slept.",
            [
                (("nell", "oscar"), "met."),
                (("nell", "oscar"), "sang"),
                (("oscar", "nell"), "ate"),
            ],
        ),
        ("en", "Nell baked and Oscar told of it", [(("nell",), "baked and oscar told of it")]),
        (
            "en",
            "Nell thanked Oscar and has left.",
            [(("nell",), "thanked oscar"), (("nell",), "has left.")],
        ),
        (
            "es",
            "Nell y Oscar cantan y Nell come; ella duerme.",
            [(("nell", "oscar"), "cantan"), (("nell",), "come")],
        ),
        (
            "ru",
            "Нелл и Оскар поют, а Нелл ест, и она спит.",
            [(("нелл", "оскар"), "поют"), (("нелл",), "ест")],
        ),
        (
            "zh",
            "小雨和佳蓉唱歌，小雨吃饭，她睡觉。",
            [(("小雨", "佳蓉"), "唱歌"), (("小雨",), "吃饭")],
        ),
        (
            "ja",
            "美奈とさくらは歌い、美奈は食べ、彼女は眠った。",
            [(("美奈", "さくら"), "歌い"), (("美奈",), "食べ")],
        ),
        (
            "ko",
            "민아와 수지는 노래하고 민아는 먹고, 그녀는 잤다.",
            [(("민아", "수지"), "노래하고"), (("민아",), "먹고")],
        ),
    ],
)
def test_of_whom_a_clause_tells(
    lang: str, told: str, clauses: list[tuple[tuple[str, ...], str]]
) -> None:
    people = {name: None for people, _ in clauses for name in people} | (
        {"nell": None, "oscar": None} if lang == "en" else {}
    )
    found = list(read_clauses(fold(told), Names(tuple(people), GRAMMARS[lang])))
    assert found == [Clause(*clause) for clause in clauses]


@pytest.mark.parametrize(
    ("lang", "forms"),
    [
        ("ru", ("купила дом", "купит дома")),
        ("ko", ("온실에서 수리했다", "온실을 수리해서")),
        ("ja", ("温室を修理した", "温室の修理")),
        ("zh", ("温室漏了", "那个温室漏")),
        ("es", ("compró invernaderos", "compra un invernadero")),
        ("en", ("varnished hulls", "varnishing a hull")),
    ],
)
def test_forms_of_one_word_are_one_matter(lang: str, forms: tuple[str, str]) -> None:
    first, second = (GRAMMARS[lang].matters(form) for form in forms)
    assert first & second
