"""The figures of a demonstration: those of a replay, over what llama-server was sent."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.cli.demo_report import is_sound, measure, write_table
from gateway.demo.player import TurnSeen
from gateway.demo.snapshot import Shown, Snapshot, Span, Text, Verdict
from tests.gateway.demo.turns import turn

STAND_IN = Text(1, Span(1, 2), "stand-in", "User: aaaa", False)
SNAPSHOT = Snapshot(
    texts=(STAND_IN, Text(1, Span(1, 2), "model", "It began.", True)),
    verdicts=(Verdict(1, Span(1, 2), ("loop",), "round and round"),),
    waiting=(),
    shown=None,
)


def says(*contents: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content} for content in contents]


def conversation(**second: Any) -> list[TurnSeen]:
    """Two turns: "aaaa", "bb", "ccc", "d"; the second is folded down to a memory of 5 letters."""
    folded = {
        "number": 2,
        "prompt": says("sys", "q", "mmmm", "ccc"),
        "tail": ["ccc"],
        "covered": [Span(1, 2)],
        "transcript": ["aaaa", "bb", "ccc"],
        "reply": "d",
        "view": "stand-in",
        "folded": Shown(1, "fold", 2, 5, (STAND_IN,)),
        "prompt_tokens": 90,
    }
    first = turn(prompt=says("sys", "aaaa"), tail=["aaaa"], transcript=["aaaa"], reply="bb")
    return [first, turn(**{**folded, **second})]


def test_the_figures_of_two_turns() -> None:
    """Prompts of 3 + 4 and 3 + 1 + 4 + 3 letters: 18, of which 3 are the same: 15 read."""
    figures, records = measure(conversation(), SNAPSHOT, 4_096)
    assert figures == {
        "messages": 4,
        "turns": 2,
        "folds": 1,
        "hard_cuts": 0,
        "chapters": 1,
        "majors": 1,
        "stand_ins": 1,
        "rejected": 1,
        "lost_messages": 0,
        "prompt_chars_mean": 9.0,
        "prompt_chars_max": 11,
        "reread_chars": 15,
        "floor_chars": 10,
        "reuse": round(1 - 15 / 18, 4),
        "cold_turns": 0,
        "recall_turns": 0,
        "recall_chars": 0,
        "moved_prefixes": 0,
        "window_tokens": 4_096,
        "max_prompt_tokens": 120,
        "finish_length": 0,
        "refused": 0,
        "judged_out": 1,
    }
    assert [(record.prompt_chars, record.reread_chars) for record in records] == [(7, 7), (11, 8)]
    assert is_sound(figures)


def test_what_no_prompt_told_is_lost() -> None:
    figures, _ = measure(conversation(covered=[]), SNAPSHOT, 4_096)
    assert figures["lost_messages"] == 2
    assert not is_sound(figures)


@pytest.mark.parametrize(
    ("finish_reason", "tokens", "cut"),
    [("length", 79, 1), ("length", 80, 0), ("stop", 79, 0), (None, 79, 0)],
)
def test_only_the_window_cuts(finish_reason: str | None, tokens: int, cut: int) -> None:
    """The person asks for 80 tokens; a reply of that length is as long as was asked for."""
    ended = conversation(finish_reason=finish_reason, completion_tokens=tokens)
    figures, _ = measure(ended, SNAPSHOT, 4_096)
    assert figures["finish_length"] == cut
    assert is_sound(figures) == (not cut)


def test_refused_requests_and_prompts_beyond_the_window_are_counted() -> None:
    figures, _ = measure(conversation(refused=1, prompt_tokens=5_000), SNAPSHOT, 4_096)
    assert (figures["refused"], figures["max_prompt_tokens"]) == (1, 5_000)
    assert not is_sound(figures)


def test_the_table_says_it_in_words() -> None:
    figures, _ = measure(conversation(), SNAPSHOT, 4_096)
    table = write_table(figures, 16_400, 250.4)
    assert "16,400 tokens, 4.0 times the window; 250 s" in table
    assert "lost messages       0" in table
