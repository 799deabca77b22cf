"""Which entries a span bears out, in six languages."""

import pytest

from policies.judge.beside import Beside
from policies.ledger.grounding import ground
from policies.ledger.values import NOTHING, Claim, Entries, Fact, Quote, Thread
from policies.values import Line
from tests.policies.ledger.spans import SCENES, Scene, span

TALK = span(
    ("user", "Ann", "I have two cats and I am 34 years old. Mira is my neighbour."),
    ("assistant", "Mira", "I sold the silver key to Bo for 500 euros. I cannot help you, Ann."),
    ("user", "Ann", "*opens the iron door* I play the violin. She lives in Rome."),
    ("system", "system", "Ann was born in Oslo."),
)


def facts(lines: list[Line], *texts: str) -> list[str]:
    return [fact.text for fact in ground(Beside(facts=tuple(("x", t) for t in texts)), lines).facts]


@pytest.mark.parametrize("scene", SCENES.values(), ids=list(SCENES))
def test_what_each_kind_of_entry_must_be(scene: Scene) -> None:
    beside = Beside(
        facts=tuple(("home", text) for text in (*scene.facts, *scene.lies)),
        claims=(scene.claim, (scene.claim[0], scene.claim[1], scene.facts[0], "")),
        opened=(scene.thread, scene.lies[0][::-1]),
        resolved=(3, 1, 3),
        quotes=((scene.claim[0], scene.quote), (scene.claim[0], scene.thread[::-1])),
    )
    assert ground(beside, scene.lines, {2, 3}) == Entries(
        facts=tuple(Fact(text, "home", 0) for text in scene.facts),
        claims=(Claim(*scene.claim, 1),),
        opened=(Thread(scene.thread, 3),),
        resolved=(3,),
        quotes=(Quote(scene.quote, scene.claim[0], 1),),
    )


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("Ann has two cats.", True),
        ("Ann has 2 cats.", True),
        ("Ann has three cats.", False),
        ("Ann has cats in Oslo.", False),  # a system text tells nothing of her own
        ("Ann is 34.", True),
        ("Ann is 35.", False),
        ("Ann plays the violin.", True),
        ("Ann plays the violin in Zagreb.", False),  # nobody named it
        ("Ann opens the iron door.", False),  # played, not told
        ("Ann lives in Rome.", False),  # of somebody else
        ("Ann's neighbour is Mira.", True),
        ("Ann's neighbour is the user.", False),  # the sentence names Mira, the fact does not
        ("Ann sold the silver key.", False),
        ("Ann", False),
        ("", False),
        ("🐈", False),
        ("Ann has two cats. " * 20, False),  # longer than 300 characters
        ("I'm sorry, but I can't help with that, Ann.", False),
        ("У Анны две кошки, и ей тридцать четыре года.", False),  # another language
    ],
)
def test_facts(text: str, stands: bool) -> None:
    assert bool(facts(TALK, text)) is stands


def test_an_echo_of_what_a_character_said_is_no_fact() -> None:
    lines = span(
        ("assistant", "Mira", "I am a doctor in Lyon."),
        ("user", "Ann", "A doctor in Lyon! My!"),
        ("user", "Ann", "I paint houses."),
        ("assistant", "Mira", "You paint houses in Lyon, then."),
    )
    assert facts(lines, "Ann is a doctor in Lyon.", "Ann paints houses.") == ["Ann paints houses."]


def test_numbers_alone_are_nobodys_fact() -> None:
    lines = span(
        ("user", "ユーザー", "51と52の鍵を持っています。"),
        ("assistant", "ミラ", "51と52のことですね。"),
    )
    assert facts(lines, "51と52のことですね。", "51、52。") == []
    assert facts(lines, "ユーザーは51と52の鍵を持っている。") != []


def test_a_characters_sentence_as_it_stands_is_no_fact() -> None:
    lines = span(
        ("user", "Ann", "I sold my red boat in Genoa, the harbour is near."),
        ("assistant", "Kai", "The red boat in Genoa is near the harbour."),
    )
    assert facts(lines, "The red boat in Genoa is near the harbour.") == []
    assert facts(lines, "Ann sold her red boat in Genoa.") == ["Ann sold her red boat in Genoa."]


def test_a_question_that_is_answered_is_no_statement_of_the_one_who_asks() -> None:
    lines = span(
        ("assistant", "Kai", "Do you live in Lisbon, Ann?"), ("user", "Ann", "Yes, in Lisbon.")
    )
    assert facts(lines, "Ann lives in Lisbon.") == ["Ann lives in Lisbon."]


def test_who_tells_more_of_it_told_it() -> None:
    lines = span(
        ("user", "Ann", "I like boats."),
        ("assistant", "Kai", "I like my red wooden boats from Genoa."),
    )
    assert facts(lines, "Ann likes red wooden boats.") == []


def test_lines_without_a_role_are_nobodys_own() -> None:
    assert facts([Line("Ann", "I have two cats.")], "Ann has two cats.") == []


def test_a_subject_is_short_or_none() -> None:
    told = Beside(
        facts=(("age", "Ann is 34."), ("x" * 61, "Ann has two cats."), ("—", "Ann is 34 years."))
    )
    assert [fact.about for fact in ground(told, TALK).facts] == ["age", "", ""]


@pytest.mark.parametrize(
    ("told", "claim"),
    [
        (("Mira", "Ann", "she sold the key to Bo", ""), ("Mira", "Ann", None)),
        (("Mira", "Zoe", "she sold the key to Bo", ""), ("Mira", "", None)),
        (("Bo", "", "Mira sold him the silver key", ""), ("Bo", "", None)),  # named, speaks nowhere
        (("Ann", "Mira", "she sold the key to Bo", ""), None),  # Mira said it
        (("Zoe", "Ann", "she sold the key to Bo", ""), None),
        (("", "Ann", "she sold the key to Bo", ""), None),
        (("Mira sold the silver key", "Ann", "she sold the key to Bo", ""), None),
        (("Ann", "", "she plays the violin and sold the silver key", ""), None),  # 2 of 5, Mira 3
        (("Dr. Mira", "Ann", "she sold the key to Bo", ""), ("Dr. Mira", "Ann", None)),
        (("Mira!", "Ann", "she sold the key to Bo", ""), None),
        (("Mira" * 20, "Ann", "she sold the key to Bo", ""), None),
        (("Mira", "Ann", "she sold the key for 700 euros", ""), None),
        (("Mira", "Ann", "the moon is made of cheese", ""), None),
        (("Mira", "Ann", "zwölf Boxkämpfer jagen", ""), None),
        # what is so must be told by narration or thought
        (("Mira", "Ann", "she sold the key to Bo", "she lives in Rome"), ("Mira", "Ann", None)),
        (
            ("Mira", "Ann", "she sold the key", "Ann opens the iron door"),
            ("Mira", "Ann", "Ann opens the iron door"),
        ),
    ],
)
def test_claims(told: tuple[str, str, str, str], claim: tuple[str, str, str | None] | None) -> None:
    found = [(c.who, c.target, c.truth) for c in ground(Beside(claims=(told,)), TALK).claims]
    assert found == ([] if claim is None else [claim])


def test_narration_and_thoughts_of_a_structured_reply_tell_what_is_so() -> None:
    lines = [
        Line("Mira", '"I love you."', role="assistant"),
        Line("Narration", "Mira hides a knife.", "told", role="assistant"),
        Line("Mira", "I hate this man.", "thought", "thinks", role="assistant"),
    ]
    told = Beside(
        claims=(
            ("Mira", "", "she loves him", "she hates this man"),
            ("Mira", "", "that she loves him", "Mira hides a knife"),
            ("Mira", "", "she loves you", "she loves you"),
        )
    )
    assert [claim.truth for claim in ground(told, lines).claims] == [
        "she hates this man",
        "Mira hides a knife",
        None,
    ]


@pytest.mark.parametrize(
    ("who", "text", "quote"),
    [
        ("Mira", "I cannot help you", ("I cannot help you", "Mira")),  # a refusal may be quoted
        ("Mira", "i CANNOT  help\nyou, Ann.", ("I cannot help you, Ann.", "Mira")),
        ("Mira", '"I cannot help you"', ("I cannot help you", "Mira")),
        ("Ann", "I cannot help you", ("I cannot help you", "Mira")),  # whose line it is
        (
            "Bo",
            "I cannot help you",
            ("I cannot help you", "Bo"),
        ),  # quoted in Mira's line, it may be
        ("Zoe", "I cannot help you", ("I cannot help you", "Mira")),
        ("Mira", "cannot hel", None),  # not from border to border
        ("Mira", "I can help you", None),
        ("Mira", "I play", None),  # stands in any span
        ("Mira", "I cannot help you " * 30, None),
        ("Mira", "", None),
    ],
)
def test_quotes(who: str, text: str, quote: tuple[str, str] | None) -> None:
    found = [(q.text, q.who) for q in ground(Beside(quotes=((who, text),)), TALK).quotes]
    assert found == ([] if quote is None else [quote])


def test_numbers_are_known_in_words_and_figures_of_each_language() -> None:
    lines = span(("user", "用户", "我有三只猫，今年三十一岁。我住在北京。"))
    assert facts(lines, "用户有3只猫。", "用户有五只猫。", "用户今年31岁。") == [
        "用户有3只猫。",
        "用户今年31岁。",
    ]
    lines = span(("user", "ユーザー", "猫を三匹飼っていて、コーヒーが好きです。"))
    assert facts(lines, "ユーザーは猫を3匹飼っている。", "ユーザーは猫とワインが好きだ。") == [
        "ユーザーは猫を3匹飼っている。"
    ]
    lines = span(("user", "사용자", "저는 고양이 세 마리를 키우고 네 시에 일어나요."))
    assert facts(lines, "사용자는 고양이를 키운다.") == ["사용자는 고양이를 키운다."]


def test_names_of_two_words_and_of_unspaced_scripts_are_names() -> None:
    lines = span(
        ("user", "Bea Lee", "I met 山田 and Kai the Bold in Genoa. Kai the Bold lied to me."),
        ("assistant", "Kai the Bold", "I was never in Genoa, Bea."),
    )
    told = Beside(
        claims=(
            ("Kai", "Bea", "he was never in Genoa", ""),
            ("山田", "", "he met Bea Lee in Genoa", ""),
            ("田中", "", "he met Bea Lee in Genoa", ""),
        ),
        facts=(
            ("", "Bea Lee met Kai the Bold in Genoa."),
            ("", "Bea Lee met a man in Genoa who lied."),
        ),
    )
    found = ground(told, lines)
    assert [(claim.who, claim.target) for claim in found.claims] == [("Kai", "Bea"), ("山田", "")]
    assert [fact.text for fact in found.facts] == ["Bea Lee met Kai the Bold in Genoa."]


def test_an_empty_span_bears_nothing_out() -> None:
    everything = Beside(
        (("a", "Ann is 3."),), (("A", "", "B", "C"),), ("D?",), (1,), (("E", "F" * 9),)
    )
    assert ground(everything, []) == NOTHING
