"""A turn as the player sees it, for the tests of what is told and measured of turns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.demo.player import TurnSeen

_TURN = TurnSeen(
    number=1,
    said="Good evening",
    reply="Hello.",
    finish_reason="stop",
    view="verbatim",
    prompt_tokens=120,
    cached_tokens=20,
    completion_tokens=5,
    conversation_tokens=125,
    first_token_seconds=1.25,
    seconds=2.0,
    prompt=[
        {"role": "system", "content": "You are Wren."},
        {"role": "user", "content": "Good evening"},
    ],
    tail=["Good evening"],
    covered=[],
    transcript=["Good evening"],
    folded=None,
    refused=0,
)


def turn(**changes: Any) -> TurnSeen:
    """The first turn of a conversation, with these things otherwise."""
    return replace(_TURN, **changes)
