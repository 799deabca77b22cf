"""Whose own telling a sentence is, in six languages."""

import pytest

from policies.judge.reading import fold
from policies.ledger.persons import is_of_another, is_question


@pytest.mark.parametrize(
    ("sentence", "told", "of_another"),
    [
        ("I live in Lisbon.", "She lives in Lisbon.", False),
        ("You live in Lisbon.", "The user lives in Lisbon.", True),
        ("You gave me the key.", "The user has the key.", False),
        ("He lives in Rome.", "The user lives in Rome.", True),
        ("He lives in Rome.", "The user said he lives in Rome.", False),
        ("Two cats and a dog.", "The user has two cats.", False),
        ("Vivo en Lisboa.", "Vive en Lisboa.", False),
        ("Estas flores son de Lisboa.", "Tiene flores de Lisboa.", False),
        ("Usted vive en Lisboa.", "El usuario vive en Lisboa.", True),
        ("Ella vive en Roma.", "El usuario vive en Roma.", True),
        ("У меня две кошки.", "У пользователя две кошки.", False),
        ("Ты живёшь в замке.", "Пользователь живёт в замке.", True),
        ("Она живёт в Риме.", "Пользователь живёт в Риме.", True),
        ("リスボンに住んでいます。", "リスボンに住んでいる。", False),
        ("あなたは城に住んでいます。", "城に住んでいる。", True),
        ("彼はローマに住んでいる。", "ローマに住んでいる。", True),
        ("我住在里斯本。", "住在里斯本。", False),
        ("你住在城堡里。", "住在城堡里。", True),
        ("她住在罗马。", "住在罗马。", True),
        ("저는 리스본에 살아요.", "리스본에 산다.", False),
        ("당신은 성에 살잖아요.", "성에 산다.", True),
        ("그녀는 로마에 살아요.", "로마에 산다.", True),
        ("그래서 로마에 살아요.", "로마에 산다.", False),  # 그래서: therefore
    ],
)
def test_is_of_another(sentence: str, told: str, of_another: bool) -> None:
    assert is_of_another(fold(sentence), fold(told)) is of_another


@pytest.mark.parametrize(
    ("sentence", "asks"),
    [
        ("Are you a doctor?", True),
        ("¿Eres médica", True),
        ("ты врач？", True),
        ("医者ですか。", True),
        ("パリで生まれましたか", True),
        ("你是医生吗", True),
        ("의사입니까.", True),
        ("네 시에 일어나요.", False),
        ("I wonder.", False),
        ("猫がいます。", False),
    ],
)
def test_is_question(sentence: str, asks: bool) -> None:
    assert is_question(fold(sentence)) is asks
