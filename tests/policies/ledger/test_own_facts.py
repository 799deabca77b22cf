"""Denials, wishes, pasts, relatives and quoted others are no facts of the user: six languages."""

import pytest

from policies.judge.beside import Beside
from policies.judge.reading import fold
from policies.ledger.grounding import ground
from policies.ledger.relatives import split_clauses
from policies.values import Line

KYOTO = "The user lives in Kyoto."
EN = [
    ("I live in Kyoto.", KYOTO, True),
    ("I do not live in Kyoto.", KYOTO, False),
    ("I don’t live in Kyoto.", "The user does not live in Kyoto.", True),
    ("I live in Kyoto.", "The user does not live in Kyoto.", False),
    ("I have never been married.", "The user has been married.", False),
    ("I have never been married.", "The user has never been married.", True),
    ("I used to smoke, years ago.", "The user smokes.", False),
    ("I used to smoke.", "The user used to smoke.", True),
    ("I wish I lived in Kyoto.", KYOTO, False),
    ("If I had a dog I would call it Rex.", "The user has a dog called Rex.", False),
    ("Maybe I live in Kyoto next year.", KYOTO, False),
    ("I want to live in Kyoto.", "The user wants to live in Kyoto.", True),
    ("I live in Kyoto, but I do not like it.", KYOTO, True),
    ("I am allergic to nuts, not to milk.", "The user is allergic to nuts.", True),
    ("I am allergic to nuts, not to milk.", "The user is allergic to milk.", False),
    ("My sister lives in Kyoto.", KYOTO, False),
    ("My older sister lives in Kyoto and works there.", "The user works in Kyoto.", False),
    ("My sister lives in Kyoto.", "The user's sister lives in Kyoto.", True),
    ("My sister is a nurse, and I live in Kyoto.", KYOTO, True),
    ("My dog is 9 years old.", "The user is 9 years old.", False),
    ("My sister said: “I live in Kyoto.”", KYOTO, False),
    ('"I live in Kyoto," my friend told me.', KYOTO, False),
    ('"I live in Kyoto," I say.', KYOTO, True),
    ('She smiled. "I live in Kyoto."', KYOTO, True),  # a role that the user plays
]
ES = [
    ("Vivo en Sevilla.", "El usuario vive en Sevilla.", True),
    ("Sí, vivo en Sevilla.", "El usuario vive en Sevilla.", True),
    ("No, vivo en Sevilla.", "El usuario vive en Sevilla.", True),
    ("No vivo en Sevilla.", "El usuario vive en Sevilla.", False),
    ("Antes vivía en Sevilla.", "El usuario vive en Sevilla.", False),
    ("Ojalá viviera en Sevilla.", "El usuario vive en Sevilla.", False),
    ("Mi hermana vive en Sevilla.", "El usuario vive en Sevilla.", False),
    ("Mi hermana vive en Sevilla.", "La hermana del usuario vive en Sevilla.", True),
    ("Mi hermana dijo: «Vivo en Sevilla.»", "El usuario vive en Sevilla.", False),
]
RU = [
    ("Я живу в Казани.", "Пользователь живёт в Казани.", True),
    ("Нет, я живу в Казани.", "Пользователь живёт в Казани.", True),
    ("Я не живу в Казани.", "Пользователь живёт в Казани.", False),
    ("Раньше я жил в Казани.", "Пользователь живёт в Казани.", False),
    ("Я хотел бы жить в Казани.", "Пользователь живёт в Казани.", False),
    ("Моя сестра живёт в Казани.", "Пользователь живёт в Казани.", False),
    ("Моя сестра живёт в Казани.", "Сестра пользователя живёт в Казани.", True),
    ("Сестра сказала: «Живу в Казани».", "Пользователь живёт в Казани.", False),
]
JA = [
    ("京都に住んでいます。", "ユーザーは京都に住んでいる。", True),
    ("京都には住んでいません。", "ユーザーは京都に住んでいる。", False),
    ("京都には住んでいません。", "ユーザーは京都に住んでいない。", True),
    ("以前は京都に住んでいました。", "ユーザーは京都に住んでいる。", False),
    ("京都に住みたいです。", "ユーザーは京都に住んでいる。", False),
    ("妹は京都に住んでいます。", "ユーザーは京都に住んでいる。", False),
    ("妹は京都に住んでいます。", "ユーザーの妹は京都に住んでいる。", True),
    ("妹は「京都に住んでいる」と言いました。", "ユーザーは京都に住んでいる。", False),
]
ZH = [
    ("我住在杭州。", "用户住在杭州。", True),
    ("不，我住在杭州。", "用户住在杭州。", True),
    ("我不住在杭州。", "用户住在杭州。", False),
    ("我以前住在杭州。", "用户住在杭州。", False),
    ("我希望住在杭州。", "用户住在杭州。", False),
    ("我姐姐住在杭州。", "用户住在杭州。", False),
    ("姐姐住在杭州。", "用户住在杭州。", False),
    ("我姐姐住在杭州。", "用户的姐姐住在杭州。", True),
    ("姐姐说：“我住在杭州。”", "用户住在杭州。", False),
]
KO = [
    ("저는 부산에 살아요.", "사용자는 부산에 산다.", True),
    ("아니요, 저는 부산에 살아요.", "사용자는 부산에 산다.", True),
    ("저는 부산에 살지 않아요.", "사용자는 부산에 산다.", False),
    ("예전에 부산에 살았어요.", "사용자는 부산에 산다.", False),
    ("부산에 살고 싶어요.", "사용자는 부산에 산다.", False),
    ("누나는 부산에 살아요.", "사용자는 부산에 산다.", False),
    ("우리 누나는 부산에 살아요.", "사용자의 누나는 부산에 산다.", True),
    ('누나가 말했어요. "나는 부산에 살아."', "사용자는 부산에 산다.", False),
]


@pytest.mark.parametrize(("said", "told", "stands"), [*EN, *ES, *RU, *JA, *ZH, *KO])
def test_what_the_user_says_is_so(said: str, told: str, stands: bool) -> None:
    lines = [
        Line("User", said, role="user"),
        Line("Mara", "…", role="assistant", at=1),
    ]
    assert bool(ground(Beside(facts=(("", told),)), lines).facts) is stands


@pytest.mark.parametrize(
    ("sentence", "own"),
    [
        (
            "I work, and my sister sings, plays and paints, but I cook.",
            [True, False, False, False, True],
        ),
        ("I paid 1,100 euros at 14:35.", [True]),
        ("我姐姐住在杭州，喜欢唱歌，我喜欢画画。", [False, False, True]),
        ("저는 여기 살고 여동생은 노래해요.", [True, False]),
    ],
)
def test_a_clause_without_a_subject_goes_on_with_the_one_before(
    sentence: str, own: list[bool]
) -> None:
    assert [relative is None for relative, _ in split_clauses(fold(sentence))] == own
