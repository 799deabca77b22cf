"""What a frame holds beside its prose, in JSON and in plain tagged text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.judge import judge_summary
from policies.judge.beside import MOST_ITEMS, NOTHING, Beside, read_beside
from policies.judge.frame import unwrap_frame
from policies.values import Line

PROSE = "Ann told Kai that she had moved to Lisbon in 2019 and that her sister Beatriz sang there."
SPAN = [
    Line(
        "Ann", "I moved to Lisbon in 2019. My sister Beatriz sings there in a choir.", role="user"
    ),
    Line("Kai", "How lovely! Does Beatriz sing every day?", role="assistant"),
]
FRAME = {
    "chapter": PROSE,
    "facts": [{"about": "home", "text": "Ann lives in Lisbon."}],
    "claims": [{"who": "Kai", "to": "Ann", "said": "Lisbon is lovely", "truth": ""}],
    "opened": ["Does Beatriz sing every day?"],
    "resolved": ["T3", "t4: the key"],
    "quotes": [{"who": "Kai", "text": "How lovely!"}],
}
BESIDE = Beside(
    facts=(("home", "Ann lives in Lisbon."),),
    claims=(("Kai", "Ann", "Lisbon is lovely", ""),),
    opened=("Does Beatriz sing every day?",),
    resolved=(3, 4),
    quotes=(("Kai", "How lovely!"),),
)
TAGGED = f"""[chapter]
{PROSE}

[facts]
- home | Ann lives in Lisbon.

-
[claims]
1. Kai | Ann | Lisbon is lovely
【Opened】
* Does Beatriz sing every day?
[resolved] T3, t4
[quotes]
• Kai｜How lovely!
"""


def judge(output: str) -> Any:
    return judge_summary(output, SPAN, finish_reason="stop", asked_chars=300)


@pytest.mark.parametrize(
    "output",
    [
        json.dumps(FRAME),
        json.dumps(FRAME, ensure_ascii=False, indent=1),
        f"```json\n{json.dumps(FRAME)}\n```",
        TAGGED,
        f"```\n{TAGGED}\n```",
        f"<think>Let me see.</think>\n{TAGGED}",
    ],
)
def test_an_accepted_frame_brings_what_stands_beside_its_prose(output: str) -> None:
    verdict = judge(output)
    assert (verdict.accepted, verdict.text, verdict.beside) == (True, PROSE, BESIDE)


@pytest.mark.parametrize(
    "lists",
    [
        {},
        {"facts": None, "claims": "none", "opened": {}, "resolved": 3, "quotes": [[]]},
        {
            "facts": [None, 3, {"about": "home"}, {"text": " - "}, "None"],
            "opened": ["", "N/A", "なし"],
        },
        {"resolved": ["key", "", True, -1, 0, None, {"id": 3}], "quotes": [{"who": "Kai"}]},
    ],
)
def test_lists_that_are_missing_or_ill_formed_are_empty_and_no_rejection(lists: Any) -> None:
    verdict = judge(json.dumps({"chapter": PROSE, **lists}))
    assert (verdict.accepted, verdict.beside) == (True, NOTHING)


def test_a_bare_text_stands_for_an_entry_and_spaces_are_one() -> None:
    found = read_beside(
        {"facts": ["Ann\n lives\tin Lisbon."], "quotes": ["Oh!"], "resolved": [7, "T8"]}
    )
    assert found == Beside(
        facts=(("", "Ann lives in Lisbon."),), resolved=(7, 8), quotes=(("", "Oh!"),)
    )


def test_what_no_database_holds_is_replaced() -> None:
    found = read_beside({"opened": ["a\x00b\ud83d\ude00", "c\ud83d"]})
    assert found.opened == ("a\ufffdb😀", "c\ufffd")


def test_no_list_is_read_without_end() -> None:
    many = read_beside({"opened": [f"thread {number}" for number in range(1_000)]})
    assert len(many.opened) == MOST_ITEMS


@pytest.mark.parametrize(
    ("output", "reasons"),
    [
        (f"[facts]\nhome | Ann lives in Lisbon.\n{PROSE}", ("frame",)),  # no prose under a tag
        (PROSE, ("frame",)),
        ("[" * 100_000, ("frame",)),
        ("[chapter]\nI'm sorry, but I can't help with that.\n[facts]\n", ("refusal",)),
        (json.dumps({**FRAME, "chapter": "I'm sorry, but I can't help with that."}), ("refusal",)),
    ],
)
def test_a_rejected_answer_brings_nothing(output: str, reasons: tuple[str, ...]) -> None:
    verdict = judge(output)
    assert verdict.reasons[0] in reasons
    assert verdict.beside == NOTHING


def test_only_a_frame_that_is_asked_for_is_read_by_its_tags() -> None:
    found = unwrap_frame(TAGGED, framed=False)
    assert (found.prose, found.beside) == (TAGGED.strip(), NOTHING)


def test_the_first_section_of_a_name_counts() -> None:
    found = unwrap_frame("[chapter] One.\n[opened]\n[chapter] Two.\n[opened] Three?", framed=True)
    assert (found.prose, found.beside.opened) == ("One.", ())


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["text", "who", "said", "about"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(list(FRAME)), _VALUES))
def test_any_frame_is_read_and_holds_texts_that_can_be_stored(frame: dict[str, Any]) -> None:
    found = read_beside(frame)
    texts = [
        *found.opened,
        *(part for row in (*found.facts, *found.claims, *found.quotes) for part in row),
    ]
    for text in texts:
        assert "\x00" not in text
        text.encode()
    assert all(number > 0 for number in found.resolved)
