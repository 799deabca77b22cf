"""What holds for every text: the judge answers, answers the same, and never lets a cut text in."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from policies.judge import is_refusal
from policies.judge.reading import fold, units
from tests.policies.judge_spans import GOOD, judge, read_texts

# Letters of every script that matters here, marks that the rules read, and a lone surrogate.
ALPHABET = (
    "ab I'\u2019 can't no not yo не я мне 我不能法请 です できません 요약 없습니다"
    '.,:;!?。！？「」“”«»"`<>/{}[]()|\\-—*#0123 一二十万\n\t\u200b\u0301\ud83d🙂'
)
TEXTS = st.text(alphabet=st.sampled_from(ALPHABET), max_size=400) | st.text(max_size=200)
LINES = st.lists(st.tuples(st.sampled_from(["", "Mara", "Finn", "user"]), TEXTS), max_size=6)


@given(output=TEXTS, span=LINES, framed=st.booleans(), finish=st.sampled_from(["stop", "length"]))
@settings(max_examples=300, deadline=None)
def test_every_output_has_one_verdict(
    output: str, span: list[tuple[str, str]], framed: bool, finish: str
) -> None:
    verdict = judge(output, span, framed=framed, finish_reason=finish)
    assert verdict == judge(output, span, framed=framed, finish_reason=finish)
    assert verdict.accepted is not bool(verdict.reasons)
    assert bool(verdict.text) is verdict.accepted
    assert finish == "stop" or not verdict.accepted
    assert verdict.text in output or framed or output.lstrip().startswith(("{", "[", "```"))


@given(text=TEXTS)
@example(text="a\u200b\u0301")
@example(text="à\u0301")
@example(text="ß\u0301")
@settings(max_examples=300, deadline=None)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(
    text=st.sampled_from([row["text"] for row in read_texts("refusals_dev")]), pad=st.integers(0, 3)
)
def test_no_wrapping_makes_a_refusal_acceptable(text: str, pad: int) -> None:
    space = "\u00a0\u200b \n"[:pad]
    assert is_refusal(space + text + space)
    assert is_refusal(json.dumps({"chapter": text}) if not text.startswith(("{", "｛")) else text)
    assert is_refusal(f"<think>Hm.</think>{space}{text}")


@given(cut=st.integers(GOOD.index(".") + 8, len(GOOD) - 1))
def test_a_chapter_cut_in_its_second_sentence_is_cut(cut: int) -> None:
    # The first sentence has its full stop, so the second must have one, too.
    assert "truncated" in judge(GOOD[:cut]).reasons


UNITS = (
    *("a", "我", "の", "가", "я", " ", "\n", '"', "「", "[", "<", "{", "'a", "x-", "1,", "no "),
    *(
        "not i can ",
        "我不",
        "この会話は",
        "이 대화는 ",
        "не я это ",
        "no se lo puedo ",
        "summary: ",
    ),
    *("the content was ", "<think"),
)


@pytest.mark.parametrize("unit", UNITS)
def test_long_repetitions_end(unit: str) -> None:
    # A pattern that backtracks without bound would not come back from these.
    text = unit * (20_000 // len(unit))
    assert not judge(text).accepted
    assert is_refusal(text) in (True, False)


def test_units_are_words_or_characters() -> None:
    assert units("go to 東京タワー now") == ["go", "to", *"東京タワー", "now"]
