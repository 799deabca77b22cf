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


@pytest.mark.parametrize(("value", "is_one"), [(talk(), True), ({}, False), ([], False)])
def test_what_is_of_that_form(value: Any, is_one: bool) -> None:
    assert is_locomo(value) is is_one
