"""What is told of a turn, a fold, a verdict and a text: in a line each."""

from __future__ import annotations

import pytest

from gateway.demo.console import (
    Console,
    _head,
    describe_fold,
    describe_text,
    describe_turn,
    describe_verdict,
)
from gateway.demo.player import TurnSeen
from gateway.demo.snapshot import Shown, Snapshot, Span, Text, Verdict
from tests.gateway.demo.turns import turn

CHAPTER = Text(1, Span(1, 8), "model", "They met.", False)
STAND_IN = Text(2, Span(9, 12), "stand-in", "User: Good evening.", False)
GIST = Text(1, Span(1, 8), "stand-in", "They met.", True)


def test_a_turn_is_told_in_columns() -> None:
    assert describe_turn(turn(), 4_096) == (
        "prompt   120 of 4,096   read   100   first token  1.2 s   view verbatim   "
        "said    125 of 16,384"
    )


@pytest.mark.parametrize(
    ("fold", "told"),
    [
        (
            Shown(1, "fold", 8, 300, (CHAPTER,)),
            "messages 1–8 are now told in 300 characters: 1 chapter, no stand-in",
        ),
        (
            Shown(2, "cut", 12, 1_300, (GIST, STAND_IN)),
            "HARD CUT: messages 1–12 are now told in 1,300 characters: a gist of messages 1–8, "
            "1 chapter, 2 stand-ins among them",
        ),
    ],
)
def test_a_fold_says_what_is_shown_instead(fold: Shown, told: str) -> None:
    assert describe_fold(fold) == told


def test_a_verdict_gives_its_reasons_in_words() -> None:
    verdict = Verdict(1, Span(1, 8), ("loop", "new-reason"), "{}")
    assert describe_verdict(verdict) == (
        "the model's chapter of messages 1–8 is out: it goes in circles, new-reason"
    )
    assert describe_verdict(Verdict(1, None, ("empty",), "")) == "the model's gist is out: empty"


def test_a_text_says_who_made_it() -> None:
    assert describe_text(CHAPTER) == (
        "the model's chapter of messages 1–8 was accepted: “They met.”"
    )
    assert describe_text(STAND_IN) == (
        "a stand-in for the chapter of messages 9–12 is ready: 19 characters, sentences of its span"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("two\nlines\n\n of it", "two lines of it"),
        ("Good evening, Wren", "Good even…"),
        ("霧の夜には三度", "霧の夜に…"),
        ("", ""),
    ],
)
def test_a_head_fits_its_columns(text: str, told: str) -> None:
    assert _head(text, 9 if told.endswith("…") else 40) == told


def lines_of(*turns: TurnSeen) -> list[str]:
    said: list[str] = []
    console = Console(said.append, 4_096)
    for seen in turns:
        console.turn_began(seen.number, seen.said)
        console.turn_ended(seen)
    return said


def test_a_reply_that_the_window_cut_is_said_to_be_cut() -> None:
    cut = turn(finish_reason="length", completion_tokens=40)
    by_person = turn(finish_reason="length", completion_tokens=80)
    assert [line for line in lines_of(cut) if "CUT" in line] == [
        "  CUT      the window ended this reply"
    ]
    assert not [line for line in lines_of(by_person) if "CUT" in line]


def test_only_what_is_new_in_memory_is_told() -> None:
    said: list[str] = []
    console = Console(said.append, 4_096)
    one = Verdict(1, Span(1, 8), ("loop",), "round and round")
    two = Verdict(2, Span(1, 8), ("echo",), "Good evening")
    old = Snapshot((CHAPTER,), (one,), (), None)
    console.memory_changed(old, Snapshot((CHAPTER, GIST), (one, two), (), None))
    assert said == [
        "  judge    the model's chapter of messages 1–8 is out: it repeats its source",
        "           “Good evening”",
        "  memory   a stand-in for the gist of messages 1–8 is ready: 9 characters, "
        "sentences of its chapters",
    ]
