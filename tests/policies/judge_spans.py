"""The judge's own texts, and short ways to judge them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from policies.judge import Verdict, judge_summary
from policies.values import Line

_TEXTS = Path(__file__).with_name("judge_texts")
ASKED = 1_100

SPAN = (
    ("Mara", "Keep your voice down. The night watch passes every quarter of an hour."),
    ("Finn", "I brought the lockpicks. Which window is the jeweller's?"),
    ("Mara", "The second one, with the green shutters. The necklace lies in the desk."),
    ("Finn", "When I come out I will whistle twice."),
    ("Mara", "I wait with the boat under the stone bridge until 3 o'clock."),
    ("Finn", "And if I am late?"),
)
GOOD = (
    "Mara and Finn planned to fetch the necklace from the jeweller's desk: second window, green"
    " shutters. Finn will whistle twice; Mara waits with the boat under the stone bridge until 3."
)


def read_texts(name: str) -> list[dict[str, Any]]:
    """The rows of one file of texts."""
    rows = (_TEXTS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(row) for row in rows]


def judge(
    output: str,
    span: Any = SPAN,
    *,
    finish_reason: str | None = "stop",
    framed: bool = False,
    asked_chars: int = ASKED,
) -> Verdict:
    """judge_summary with a span of plain pairs; prose unless a frame is asked for."""
    lines = [Line(speaker, text) for speaker, text in span]
    return judge_summary(
        output, lines, finish_reason=finish_reason, asked_chars=asked_chars, framed=framed
    )
