"""What an audit sees in a memory beside its source, in six languages."""

from __future__ import annotations

import pytest

from policies.ledger.audit import (
    find_claimed,
    find_endings,
    heard_of,
    is_claim_as_fact,
    is_ended,
    is_of,
    is_of_another_speaker,
    is_own_fact,
)
from policies.values import Line
from tests.policies.ledger.spans import SCENES, span

LANGUAGES = sorted(SCENES)

CLAIMS = {
    "en": (
        "The castle of Aldmoor burned down in the war, and the queen fled to Venice.",
        "The castle of Aldmoor burned down in the war.",
        "Mira said that the castle of Aldmoor burned down in the war.",
    ),
    "es": (
        "El castillo de Aldmoor ardió durante la guerra y la reina huyó a Venecia.",
        "El castillo de Aldmoor ardió durante la guerra.",
        "Mira dijo que el castillo de Aldmoor ardió durante la guerra.",
    ),
    "ru": (
        "Замок Альдмур сгорел во время войны, а королева бежала в Венецию.",
        "Замок Альдмур сгорел во время войны.",
        "Мира рассказала, что замок Альдмур сгорел во время войны.",
    ),
    "ja": (
        "アルドムア城は戦争で焼け落ち、女王は船で逃亡した。",
        "アルドムア城は戦争で焼け落ちた。",
        "アルドムア城は戦争で焼け落ちたとミラは言った。",
    ),
    "zh": (
        "奥德摩城堡在战争中烧毁，女王乘船逃往威尼斯。",
        "奥德摩城堡在战争中烧毁。",
        "米拉说奥德摩城堡在战争中烧毁。",
    ),
    "ko": (
        "올드무어 성은 전쟁 중에 불탔고 여왕은 베네치아로 도망쳤어.",
        "올드무어 성은 전쟁 중에 불탔다.",
        "미라는 올드무어 성은 전쟁 중에 불탔다고 말했다.",
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_claim_that_is_told_as_so_is_found_and_one_that_is_told_as_said_is_not(
    language: str,
) -> None:
    claim, plain, reported = CLAIMS[language]
    lines = span(("user", "Ann", "…?"), ("assistant", "Mira", claim))
    assert find_claimed(plain, lines) == [plain]
    assert find_claimed(reported, lines) == []
    assert find_claimed(f"{reported}\n{plain}", lines) == [plain]


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_user_or_narration_bears_out_is_no_claim(language: str) -> None:
    claim, plain, _ = CLAIMS[language]
    said = span(("user", "Ann", claim), ("assistant", "Mira", claim))
    assert find_claimed(plain, said) == []
    narrated = span(("user", "Ann", "…?"), ("assistant", "Mira", f"*{claim}*"))
    assert find_claimed(plain, narrated) == []
    both = span(("assistant", "Mira", f'*{claim}* "{claim}"'))
    assert find_claimed(plain, both) == []
    thought = [Line("Mira", claim, "thought", "thinks", "assistant"), *said[1:]]
    assert find_claimed(plain, thought) == []


def test_what_is_asked_quoted_or_said_by_nobody_is_no_claim() -> None:
    _, plain, _ = CLAIMS["en"]
    asked = span(("assistant", "Mira", "Did the castle of Aldmoor burn down in the war?"))
    assert find_claimed(plain, asked) == []
    told = span(("assistant", "Mira", plain))
    assert find_claimed(f"Mira lit the lamp: “{plain}”", told) == []
    assert find_claimed("They sailed to Norway with twelve barrels of herring.", told) == []
    assert find_claimed("It burned.", told) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_characters_words_are_no_fact_of_the_users(language: str) -> None:
    scene = SCENES[language]
    assert all(is_own_fact("", fact, scene.lines) for fact in scene.facts)
    assert not any(is_claim_as_fact("", fact, scene.lines) for fact in scene.facts)
    # The second lie of each scene stands in the character's lines word for word.
    assert is_claim_as_fact("", scene.lies[1], scene.lines)


def test_a_fact_that_nobody_said_is_no_claim_either() -> None:
    lines = SCENES["en"].lines
    assert not is_claim_as_fact("", "The user's horse won eleven races.", lines)


ENDS = {
    "en": (
        "Find the silver key of the northern lighthouse.",
        "In the cellar Ann found the silver key of the northern lighthouse.",
        "Ann still has to find the silver key of the northern lighthouse; none was found.",
    ),
    "es": (
        "Encontrar la llave de plata del faro norte.",
        "En el sótano Ann encontró por fin la llave de plata del faro norte.",
        "Ann todavía busca la llave de plata del faro norte; no la encontró.",
    ),
    "ru": (
        "Найти серебряный ключ от северного маяка.",
        "В подвале Анна наконец нашла серебряный ключ от северного маяка.",
        "Анна пока не нашла серебряный ключ от северного маяка.",
    ),
    "ja": (
        "北の灯台の銀の鍵を探す。",
        "地下室でついに北の灯台の銀の鍵が見つかった。",
        "北の灯台の銀の鍵はまだ見つかっていない。",
    ),
    "zh": (
        "寻找北方灯塔的银钥匙。",
        "安在地下室终于找到北方灯塔的银钥匙。",
        "北方灯塔的银钥匙尚未找到。",
    ),
    "ko": (
        "북쪽 등대의 은빛 열쇠를 찾는다.",
        "안은 지하실에서 마침내 북쪽 등대의 은빛 열쇠를 찾았다.",
        "북쪽 등대의 은빛 열쇠는 아직 찾았다는 소식이 없다.",
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_end_is_told_where_a_sentence_holds_the_thread_and_says_so(language: str) -> None:
    thread, end, still = ENDS[language]
    assert is_ended(thread, find_endings(end))
    assert not is_ended(thread, find_endings(still))
    assert not is_ended(thread, find_endings(thread))


def test_an_end_may_be_told_in_two_sentences_and_not_of_another_thing() -> None:
    thread = ENDS["en"][0]
    assert is_ended(
        thread, find_endings("Ann looked for the silver key of the lighthouse. She found the key.")
    )
    assert not is_ended(
        thread, find_endings("The silver key of the lighthouse is old. Bob sold a cow.")
    )
    assert not is_ended(thread, find_endings("Bob finally found his golden ring in the mill."))
    assert not is_ended(
        thread, find_endings("Was the silver key of the northern lighthouse found?")
    )
    assert not is_ended("Find it.", find_endings("They found it."))


def test_words_that_stand_in_anothers_lines_alone_are_that_speakers() -> None:
    lines = span(
        ("user", "Ann", "I painted my boat green in August and sailed to Malta."),
        ("assistant", "Mira Stone", "Lovely! I baked seven loaves of rye bread for the harbour."),
    )
    painted, baked = "she painted her boat green in August", "baked seven loaves of rye bread"
    assert is_of_another_speaker("Mira", painted, lines)
    assert not is_of_another_speaker("Ann", painted, lines)
    assert is_of_another_speaker("Ann", baked, lines)
    assert not is_of_another_speaker("Mira Stone", baked, lines)
    assert not is_of_another_speaker("Ann", "she bought a violin from Prague", lines)
    assert not is_of_another_speaker("Ann", "rye", lines)


def test_names_mean_speakers_by_one_of_their_words() -> None:
    assert is_of("Mira Stone", "mira") and is_of("Mira", "Mira Stone") and is_of("ミラ", "ミラ")
    assert not is_of("Mira", "Ann")


def test_narration_is_heard_without_a_speaker() -> None:
    told = Line("Narrator", "The lamp went out.", "told", role="assistant")
    heard = heard_of([told, Line("Ann", "Oh!", role="user")])
    assert heard.lines == [("", "The lamp went out."), ("Ann", "Oh!")]
