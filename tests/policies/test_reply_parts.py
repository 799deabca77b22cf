"""Replies that are JSON, by the names of their fields."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.reply_parts import ReplyPart, reply_parts
from policies.schema import ReplyFields

FIELDS = ReplyFields()


def read(value: Any, fields: ReplyFields = FIELDS) -> list[tuple[str, str, str]]:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return [(part.kind, part.speaker, part.text) for part in reply_parts(text, fields)]


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        # one speaker's reply, in its own order
        (
            {
                "narration": "雨が降る。",
                "speaker": "ミラ",
                "speech": "「行くわ」",
                "thought": "怖い",
            },
            [
                ("told", "", "雨が降る。"),
                ("said", "ミラ", "「行くわ」"),
                ("thought", "ミラ", "怖い"),
            ],
        ),
        # several, under a name that is nobody's
        (
            {
                "lines": [
                    {"character": "Мира", "dialogue": "Привет."},
                    {"Name": "Bo\n Lee", "SAYS": ["Hi.", "Bye."]},
                ],
                "scene": "Night.",
            },
            [
                ("said", "Мира", "Привет."),
                ("said", "Bo Lee", "Hi."),
                ("said", "Bo Lee", "Bye."),
                ("told", "", "Night."),
            ],
        ),
        # objects that say themselves what they are
        (
            [
                {"type": "narration", "text": "Se hizo de noche."},
                {"type": "thought", "who": "Inés", "text": "Miento."},
                {"kind": "speech", "who": "Inés", "text": "Estoy bien."},
            ],
            [
                ("told", "", "Se hizo de noche."),
                ("thought", "Inés", "Miento."),
                ("said", "Inés", "Estoy bien."),
            ],
        ),
        # what has no such name is kept too
        (
            {"speech": "Ha!", "mood": "angry", "hp": 12, "left": None, "why": " "},
            [("said", "", "Ha!"), ("told", "", "[mood: angry; hp: 12]")],
        ),
        ({"speech": {"speaker": "미라", "text": "안녕"}}, [("said", "미라", "안녕")]),
        ({"speech": ["Hi", 3, None, {}]}, [("said", "", "Hi")]),
        # the speaker alone says nothing; an empty text is none
        ({"speaker": "Mira", "hp": 3}, []),
        ({"speech": " ", "thoughts": []}, []),
        ('```json\n{"speech": "Hi", "name": ""}\n```', [("said", "", "Hi")]),
        ('{"speech": "broken off', []),
        ("Just words.", []),
        ("[smiles] Hello", []),
        ('"speech"', []),
    ],
)
def test_reply_parts(value: Any, parts: list[tuple[str, str, str]]) -> None:
    assert read(value) == parts


def test_the_names_are_the_policys() -> None:
    fields = ReplyFields(
        speech=("台词",), speaker=("角色",), narration=("旁白",), thoughts=("内心",)
    )
    reply = {"角色": "米拉", "旁白": "下雨了。", "台词": "走吧。", "内心": "我怕。", "speech": "?"}
    assert read(reply, fields) == [
        ("told", "", "下雨了。"),
        ("said", "米拉", "走吧。"),
        ("thought", "米拉", "我怕。"),
        ("told", "", "[speech: ?]"),
    ]
    assert read({"speech": "Hi"}, fields) == []


def test_a_reply_nested_too_deep_is_left_as_it_is() -> None:
    assert reply_parts("[" * 100_000, FIELDS) == []
    deep: Any = {"speech": "Hi"}
    for _ in range(9):
        deep = [deep]
    assert read(deep) == []


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["speech", "thought", "name", "x", "type"]), inner, max_size=4
            )
        ),
        max_leaves=12,
    )
)
def test_any_json_is_read_and_no_part_is_blank(value: Any) -> None:
    for part in reply_parts(json.dumps(value), FIELDS):
        assert isinstance(part, ReplyPart)
        assert part.text.strip()
