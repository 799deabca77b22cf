"""Whose words a user's message holds where nothing is in quotation marks, in six languages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.judge.beside import Beside
from policies.ledger.grounding import ground
from policies.ledger.reports import own_words
from policies.values import Line

REPORTS = [
    ("Orla wrote to me: I have two children and live in Cork.", "The user has two children."),
    ("My sister texted: I moved to Bergen last week.", "The user moved to Bergen."),
    ("I got a letter from Orla: I live in Cork now.", "The user lives in Cork."),
    ("Her message says: I am allergic to walnuts.", "The user is allergic to walnuts."),
    ("Orla wrote:\nI live in Cork.\nI am a nurse.", "The user is a nurse."),
    ("Orla wrote:\n\nI live in Cork.", "The user lives in Cork."),
    ("> I live in Cork and work as a nurse.", "The user lives in Cork."),
    ("Read this.\nFrom: Orla\nSubject: news\n\nI live in Cork.", "The user lives in Cork."),
    ("Mira: I live in Cork.", "The user lives in Cork."),
    ("Olga me escribió: vivo en Sevilla con dos gatos.", "El usuario vive en Sevilla."),
    ("Recibí una carta de Olga: vivo en Sevilla.", "El usuario vive en Sevilla."),
    ("Мне написала Ольга: я живу в Казани.", "Пользователь живёт в Казани."),
    ("Пришло письмо от Ольги: я живу в Казани.", "Пользователь живёт в Казани."),
    ("オルラさんからの手紙：私は京都に住んでいます。", "ユーザーは京都に住んでいる。"),
    ("京都に住んでいるとオルラさんが書いてきた。", "ユーザーは京都に住んでいる。"),
    ("小莉写信给我：我住在杭州。", "用户住在杭州。"),
    ("小莉的来信：我住在杭州。", "用户住在杭州。"),
    ("민지가 말했다: 나는 부산에 살아요.", "사용자는 부산에 산다."),
    ("민지의 편지: 저는 부산에 살아요.", "사용자는 부산에 산다."),
]
OWN = [
    ("I wrote to Orla: I live in Cork.", "The user lives in Cork."),
    ("I told my sister: I am allergic to walnuts.", "The user is allergic to walnuts."),
    ("About me: I live in Cork.", "The user lives in Cork."),
    ("Two things: I live in Cork, and I am a nurse.", "The user is a nurse."),
    ("Orla wrote: come home.\n\nI live in Cork.", "The user lives in Cork."),
    ("We met at 7:30. I live in Cork.", "The user lives in Cork."),
    ("Anna: I live in Cork.", "The user lives in Cork."),
    ("My doctor told me that I have diabetes.", "The user has diabetes."),
    ("Le escribí a Olga: vivo en Sevilla.", "El usuario vive en Sevilla."),
    ("Sobre mí: vivo en Sevilla.", "El usuario vive en Sevilla."),
    ("Я написала Ольге: я живу в Казани.", "Пользователь живёт в Казани."),
    ("О себе: я живу в Казани.", "Пользователь живёт в Казани."),
    ("自己紹介：京都に住んでいます。", "ユーザーは京都に住んでいる。"),
    ("自我介绍：我住在杭州。", "用户住在杭州。"),
    ("我跟小莉说：我住在杭州。", "用户住在杭州。"),
    ("자기소개: 저는 부산에 살아요.", "사용자는 부산에 산다."),
]


def facts_of(said: str, told: str) -> int:
    lines = [
        Line("Anna", said, role="user", at=0),
        Line("Mira", "Tell me more, please.", role="assistant", at=1),
    ]
    return len(ground(Beside(facts=(("home", told),)), lines).facts)


@pytest.mark.parametrize(("said", "told"), REPORTS)
def test_what_somebody_else_wrote_is_no_fact_of_the_user(said: str, told: str) -> None:
    assert facts_of(said, told) == 0


@pytest.mark.parametrize(("said", "told"), OWN)
def test_what_the_user_says_of_themselves_is_taken(said: str, told: str) -> None:
    assert facts_of(said, told) == 1


def test_a_report_ends_with_its_paragraph_and_a_mail_with_the_message() -> None:
    told = "Hello.\nOrla wrote: I am ill.\nReally ill.\n\nI was sad.\n> old words\nBye."
    assert own_words(told) == "Hello.\n\nI was sad.\nBye."
    assert own_words("See below.\nFrom: Orla <o@x.ie>\n\nI am ill.\n\nBye.") == "See below."
    assert own_words("kai: I am tired.\nSo am I.", {"kai"}) == "So am I."


@given(st.text(st.sampled_from("Ix :：\n>。.了と言った"), max_size=60))
def test_nothing_is_added_and_the_rest_is_read_again_alike(text: str) -> None:
    kept = own_words(text)
    assert len(kept) <= len(text)
    assert set(kept) <= set(text)
    assert not any(line.lstrip().startswith(">") for line in kept.split("\n") if line.strip())
