"""What a turn pays for being counted, logged and traced while nobody looks."""

from __future__ import annotations

import time
import timeit
from pathlib import Path
from typing import Any

import pytest

from gateway.api.watch import Exit, Watch
from gateway.flows.reports import tell_end, tell_fold, tell_ready, tell_span
from gateway.flows.turn_rows import Ending
from tests.gateway.house import House

MOST = 20e-6
"""Seconds of a processor; measured on an EPYC core: 15.6 µs."""

TURNS = 5_000


async def nowhere(message: Any) -> None: ...


@pytest.mark.bench
async def test_a_turn_pays_less_than_20_microseconds(tmp_path: Path) -> None:
    house = House(tmp_path)
    said = await house.say("hi", id="c")
    ctx, prepared, span = house.ctx, said.turn.prepared, said.turn.span
    watch, exit = Watch(ctx.meters, ctx.traces), Exit(nowhere, [])
    exit.status = 200
    headers = [(b"host", b"h"), (b"content-type", b"c"), (b"authorization", b"a")]
    scope = {
        "path": "/v1/chat/completions",
        "headers": headers,
        "state": {"request_id": "req_1"},
    }
    ending = Ending(
        state="done",
        reply=None,
        finish_reason="stop",
        error=None,
        prompt_tokens=100,
        cached_tokens=80,
        completion_tokens=20,
        prompt_chars=4_000,
        queued_ms=1,
        first_token_ms=300,
        move=prepared.move,
    )

    def turn() -> None:
        with watch.over(scope, exit):
            tell_fold(ctx, prepared.begun)
            tell_ready(ctx, prepared.begun, ())
            tell_end(ctx, prepared.setting, ending, "fold")
            tell_span(span, ending)

    taken = min(timeit.repeat(turn, number=TURNS, repeat=9, timer=time.process_time)) / TURNS
    house.store.close()
    assert taken < MOST
