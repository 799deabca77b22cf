"""Reading the form of LoCoMo, odd ids and all."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.wire.locomo import (
    LocomoLine,
    LocomoQuestion,
    NotLocomo,
    is_locomo,
    read_lines,
    read_questions,
    read_samples,
)


def talk(**more: Any) -> dict[str, Any]:
    return {"speaker_a": "Ann", "speaker_b": "Ben", **more}


def test_sessions_come_in_their_order_and_captions_behind_the_text() -> None:
    value = talk(
        session_10=[{"speaker": "Ben", "dia_id": "D10:1", "text": "last"}],
        session_2=[
            {"speaker": "Ann", "dia_id": "D2:01", "text": "raw", "clean_text": "clean"},
            {"speaker": "Ben", "text": "look", "blip_caption": "a red door"},
        ],
        session_2_date_time="1:56 pm",
    )
    assert read_lines(value) == [
        LocomoLine("D2:1", "user", "clean"),
        LocomoLine("", "assistant", "look [shares a red door]"),
        LocomoLine("D10:1", "assistant", "last"),
    ]


@pytest.mark.parametrize(
    ("evidence", "ids"),
    [
        (["D3:11"], ("D3:11",)),
        (["D8:6; D9:17", "D8:6"], ("D8:6", "D9:17")),
        (["D:11:26", "D30:05", "D 4 : 2"], ("D11:26", "D30:5", "D4:2")),
        ("D1:2 D1:3", ("D1:2", "D1:3")),
        (["D", "", None, 7], ()),
        (None, ()),
    ],
)
def test_ids_of_evidence(evidence: Any, ids: tuple[str, ...]) -> None:
    row = {"question": "Why?", "answer": 7, "category": 2, "evidence": evidence}
    assert read_questions(talk(qa=[row])) == [LocomoQuestion("Why?", "2", ids)]


def test_questions_that_ask_nothing_are_none() -> None:
    assert read_questions(talk(qa=[{"question": ""}, {"answer": "x"}, "x"])) == []
    assert read_questions(talk()) == []


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (talk(), "without any session"),
        (talk(session_1=[]), "without any session"),
        (talk(session_3=[{"text": "x"}]), "session_3 holds a line without a speaker"),
    ],
)
def test_what_cannot_be_read(value: dict[str, Any], why: str) -> None:
    with pytest.raises(NotLocomo, match=why):
        read_lines(value)


SAMPLE = {"sample_id": "conv-26", "conversation": talk(session_1=[]), "qa": [{"question": "Q"}]}


@pytest.mark.parametrize(
    ("value", "is_one"),
    [(talk(), True), (SAMPLE, True), ([SAMPLE], True), ({}, False), ([], False), ([{}], False)],
)
def test_what_is_of_that_form(value: Any, is_one: bool) -> None:
    assert is_locomo(value) is is_one


def test_the_published_list_holds_a_conversation_each() -> None:
    unnamed = {"conversation": talk(speaker_a="Юля"), "qa": []}
    assert read_samples([SAMPLE, unnamed, talk()], "locomo10") == [
        ("locomo10-conv-26", talk(session_1=[], qa=[{"question": "Q"}])),
        ("locomo10-2", talk(speaker_a="Юля", qa=[])),
        ("locomo10-3", talk()),
    ]
    assert read_samples(SAMPLE, "one") == [("one", talk(session_1=[], qa=[{"question": "Q"}]))]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"conversation": []}, "^a LoCoMo file is an object"),
        ([SAMPLE, 7], "^item 2 is no conversation: a LoCoMo file is .* or a list of"),
        ([], "^an empty list: a LoCoMo file"),
    ],
)
def test_other_shapes_are_told_what_is_read(value: Any, why: str) -> None:
    with pytest.raises(NotLocomo, match=why):
        read_samples(value, "x")
