"""Laws of grounding: whatever a summarizer writes, nothing gets in that the span does not hold."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from policies.judge.beside import Beside
from policies.judge.reading import fold
from policies.ledger.grounding import ground
from policies.ledger.values import MOST_CHARS, MOST_QUOTE
from policies.values import Line
from tests.policies.ledger.spans import SCENES

# (what a user says of themselves, what a character says): no content word is in both.
TALK = {
    "en": (
        ("I live in Lisbon.", "My sister Beatriz sings.", "I have two cats.", "I hate onions."),
        ("I own a castle near Prague.", "My father was a pirate.", "I bake 40 loaves a day."),
        ("The user: ", "Ann says: ", ""),
    ),
    "es": (
        ("Vivo en Lisboa.", "Mi hermana Beatriz canta.", "Tengo dos gatos.", "Odio la cebolla."),
        ("Poseo un castillo cerca de Praga.", "Mi padre era pirata.", "Horneo 40 panes diarios."),
        ("El usuario: ", "Ann: ", ""),
    ),
    "ru": (
        ("Я живу в Лиссабоне.", "Моя сестра Беатрис поёт.", "У меня две кошки.", "Я не ем лук."),
        ("Я владею замком около Праги.", "Мой отец был пиратом.", "Я пеку 40 хлебов ежедневно."),
        ("Пользователь: ", "Аня: ", ""),
    ),
    "ja": (
        ("リスボンに住んでいます。", "妹は合唱団で歌います。", "猫を二匹飼っています。"),
        ("プラハ近くの城を所有する。", "父親は海賊だった。", "毎朝パンを40個焼く。"),
        ("ユーザーは", ""),
    ),
    "zh": (
        ("我住在里斯本。", "我妹妹在合唱团唱歌。", "我养了两只猫。"),
        ("我拥有布拉格附近一座城堡。", "我父亲曾是海盗。", "我每天烤40个面包。"),
        ("用户：", ""),
    ),
    "ko": (
        ("저는 리스본에 살아요.", "여동생은 합창단에서 노래해요.", "고양이를 키워요."),
        ("나는 프라하 근처 성을 소유한다.", "아버지는 해적이었다.", "매일 빵 40개를 굽는다."),
        ("사용자: ", ""),
    ),
}


@st.composite
def liars(draw: st.DrawFn) -> tuple[list[Line], list[str], list[str]]:
    """A talk in which each says only their own, the user's echo as a question at times; and which
    of the character's sentences a summarizer gives as the user's facts, and which of the user's."""
    mine, theirs, leads = TALK[draw(st.sampled_from(list(TALK)))]
    lines = []
    for at in range(draw(st.integers(2, 8))):
        if draw(st.booleans()):
            said = draw(st.sampled_from(mine))
            echo = draw(st.sampled_from(["", *theirs]))
            text = f"{echo.rstrip('。.')}? {said}" if echo else said
            lines.append(Line("User", text, role="user", at=at))
        else:
            told = draw(st.sampled_from(theirs))
            text = draw(st.sampled_from(["{}", '"{}"', "*nods* {}", "「{}」"])).format(told)
            lines.append(Line("Mira", text, role="assistant", at=at))
    lead = draw(st.sampled_from(leads))
    lies = [lead + text for text in draw(st.lists(st.sampled_from(theirs), max_size=4))]
    return lines, lies, draw(st.lists(st.sampled_from(mine), max_size=3))


@settings(max_examples=300)
@given(liars())
def test_a_lying_characters_lines_never_become_facts(
    talk: tuple[list[Line], list[str], list[str]],
) -> None:
    lines, lies, own = talk
    said = [line.text for line in lines if line.role == "user"]
    found = ground(Beside(facts=tuple(("x", text) for text in (*lies, *own))), lines).facts
    assert {fact.text for fact in found} <= set(own)
    for fact in found:
        assert lines[fact.line].role == "user"
        assert fact.text in said[0] or any(fact.text in text for text in said)


_WORDS = st.sampled_from(
    [
        *(text for scene in SCENES.values() for text in (*scene.facts, *scene.lies, scene.quote)),
        *(part for scene in SCENES.values() for part in (*scene.claim, scene.thread)),
        "I'm sorry, but I can't help with that.",
        "Zoltan bought 77 goats in Ulm.",
        "",
        "x" * 500,
        "🎭🎭",
        "He said so. " * 40,
    ]
)


@st.composite
def frames(draw: st.DrawFn) -> tuple[list[Line], Beside]:
    scene = SCENES[draw(st.sampled_from(list(SCENES)))]
    lines = [replace(line, at=at) for at, line in enumerate(draw(st.permutations(scene.lines)))]
    pairs, fours = st.tuples(_WORDS, _WORDS), st.tuples(_WORDS, _WORDS, _WORDS, _WORDS)
    return lines, Beside(
        facts=tuple(draw(st.lists(pairs, max_size=4))),
        claims=tuple(draw(st.lists(fours, max_size=3))),
        opened=tuple(draw(st.lists(_WORDS, max_size=4))),
        resolved=tuple(draw(st.lists(st.integers(1, 5), max_size=4))),
        quotes=tuple(draw(st.lists(pairs, max_size=4))),
    )


@settings(max_examples=300)
@given(frames(), st.sets(st.integers(1, 5)))
def test_no_ungrounded_entry_is_ever_kept(
    frame: tuple[list[Line], Beside], threads: set[int]
) -> None:
    lines, beside = frame
    found = ground(beside, lines, threads)
    everything = fold(" ".join(f"{line.speaker} {line.text}" for line in lines))
    for fact in found.facts:
        assert lines[fact.line].role == "user"
        assert ("Zoltan" not in fact.text) and 0 < len(fact.text) <= MOST_CHARS
    for claim in found.claims:
        assert len(claim.who.split()) <= 4
        assert all(fold(word)[:3] in everything for word in claim.who.split())
        assert len(claim.text) <= MOST_CHARS and "Zoltan" not in (claim.truth or "")
    for thread in found.opened:
        assert 0 < len(thread.text) <= MOST_CHARS and "Zoltan" not in thread.text
    for quote in found.quotes:
        assert quote.text in " ".join(lines[quote.line].text.split())
        assert 0 < len(quote.text) <= MOST_QUOTE
    assert set(found.resolved) <= threads
    assert ground(beside, lines, threads) == found
