"""The marks of role-play, told apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.roleplay import Segment, split_marks


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("Hello there.", [("said", "Hello there.")]),
        ("  \n ", []),
        # asterisks: the rest is speech
        (
            "*waves* Hello! **sits down**",
            [("told", "waves"), ("said", "Hello!"), ("told", "sits down")],
        ),
        # quotation marks: the rest is narration, as in novels
        (
            'She turned. "Run!" she cried. (I must not weep.)',
            [
                ("told", "She turned."),
                ("said", "Run!"),
                ("told", "she cried."),
                ("thought", "I must not weep."),
            ],
        ),
        (
            "彼女は笑った。「大丈夫よ」（嘘だけど）",
            [("told", "彼女は笑った。"), ("said", "大丈夫よ"), ("thought", "嘘だけど")],
        ),
        (
            "“我没事。”她说。（我在撒谎）",
            [("said", "我没事。"), ("told", "她说。"), ("thought", "我在撒谎")],
        ),
        (
            "«Всё хорошо», — сказала она. (Я лгу.)",
            [("said", "Всё хорошо"), ("told", ", — сказала она."), ("thought", "Я лгу.")],
        ),
        (
            "*미소 짓는다* 괜찮아. (거짓말이다)",
            [("told", "미소 짓는다"), ("said", "괜찮아."), ("thought", "거짓말이다")],
        ),
        (
            "*sonríe* Estoy bien. (Miento.)",
            [("told", "sonríe"), ("said", "Estoy bien."), ("thought", "Miento.")],
        ),
        # a mark that is not closed on its line is none
        ("2 * 3 = 6", [("said", "2 * 3 = 6")]),
        ('"Wait\nfor me', [("said", '"Wait\nfor me')]),
    ],
)
def test_split_marks(text: str, segments: list[tuple[str, str]]) -> None:
    assert split_marks(text) == [Segment(kind, said) for kind, said in segments]  # type: ignore[arg-type]


@given(st.text(alphabet='ab *"「」（）()«»“”\n🎭', max_size=60))
def test_every_letter_stands_in_one_segment_and_in_order(text: str) -> None:
    said = "".join(segment.text for segment in split_marks(text))
    letters = [letter for letter in text if letter in "ab🎭"]
    assert [letter for letter in said if letter in "ab🎭"] == letters
    assert all(segment.text.strip() for segment in split_marks(text))
