"""What a streaming client hears of every way in which an answer can go wrong, and what is stored.

The first row of each table is a good answer, so that a wall that is down shows. Case numbers stand
beside the rows.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.faults.conftest import Build
from tests.faults.server import (
    DONE,
    Exchange,
    answer,
    chunk,
    completion,
    delta,
    end,
    role,
    stream,
    usage,
)
from tests.faults.wall import KEY, SHORT, Wall
from tests.gateway.backends.conftest import LITELLM_WARNS

pytestmark = LITELLM_WARNS

HALF = "灯台まで、あと"
"""Half of a sentence."""


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


async def test_a_good_answer(wall: Wall) -> None:
    wall.upstream.play(
        stream(role(), delta("Привет"), delta("! 🎉"), end("stop"), usage(9, 4), DONE)
    )
    heard = await wall.ask("hi")
    assert (heard.status, heard.text, heard.ends) == (200, "Привет! 🎉", ["stop"])
    assert heard.is_done
    assert heard.error is None
    assert heard.headers["x-foldgate-backend"] == "upstream"
    assert heard.headers["x-foldgate-view"] == "verbatim"
    assert wall.messages() == [("user", "hi", 0), ("assistant", "Привет! 🎉", 0)]
    assert wall.attempts() == [("upstream", "done", "stop", None)]


# -- after the first token: what came, an error event, no [DONE], a row marked as partial -----------

BROKEN: list[tuple[str, Exchange, int, str, str]] = [
    # case, what the server does; code of the error event, kind on the attempt's row
    ("F01", stream(role(), delta(HALF)), 502, "upstream_interrupted", "interrupted"),
    ("F01", stream(role(), delta(HALF), end="cut"), 502, "upstream_interrupted", "interrupted"),
    ("F16", stream(role(), *map(delta, HALF), end="reset"), 502, "upstream_interrupted", ""),
    ("F01", stream(role(), delta(HALF), DONE), 502, "upstream_interrupted", "interrupted"),
    (
        "F04",
        stream(role(), delta(HALF), error("too busy", code=529)),
        503,
        "upstream_overloaded",
        "overloaded",
    ),
    (
        "F04",
        stream(role(), delta(HALF), error("too busy", code=529), DONE),
        503,
        "upstream_overloaded",
        "overloaded",
    ),
    (
        "B03",
        stream(role(), delta(HALF), end("insufficient_system_resource"), DONE),
        502,
        "upstream_interrupted",
        "",
    ),
    *(
        ("B04", stream(role(), delta(HALF), end(word), DONE), 502, "upstream_interrupted", "")
        for word in ("error", "network_error", "abort", "repetition_truncation", None)
    ),
    (
        "F20",
        stream(role(), delta(HALF), b"data: {oops\n\n", delta("!"), end("stop"), DONE),
        502,
        "upstream_malformed",
        "malformed",
    ),
    (
        "F20",
        stream(role(), delta(HALF), b"data: [1, 2]\n\n", end("stop"), DONE),
        502,
        "upstream_malformed",
        "malformed",
    ),
]


@pytest.mark.parametrize(
    ("case", "exchange", "status", "code", "kind"),
    BROKEN,
    ids=[f"{row[0]}-{at}" for at, row in enumerate(BROKEN)],
)
async def test_what_breaks_after_the_first_token(
    wall: Wall, case: str, exchange: Exchange, status: int, code: str, kind: str
) -> None:
    """F01, F04, F16, F20, B03, B04: no false end, no second answer, no half that counts as whole."""
    wall.upstream.play(exchange)
    heard = await wall.ask("hi", model="two")
    assert (heard.status, heard.text) == (200, HALF)
    assert heard.error is not None
    assert heard.error["code"] == code
    assert heard.ends == []
    assert not heard.is_done
    assert KEY.encode() not in heard.body
    assert wall.replies() == [(HALF, 1)]
    ((backend, state, finish, why),) = wall.attempts()
    assert (backend, state, finish) == ("upstream", "partial", None)
    assert why == (kind or "interrupted")
    assert (len(wall.upstream.chats), len(wall.spare.chats)) == (1, 0)
    # and the chat goes on, whether or not its client kept the half
    wall.upstream.play(stream(role(), delta("Sí."), end("stop"), DONE))
    after = await wall.ask("go on", model="two")
    assert (after.text, after.is_done) == ("Sí.", True)


# -- before the first token: a status, or another attempt -----------------------------------------

REFUSALS: list[tuple[str, Exchange, int, str, str]] = [
    ("F04", stream(error("too busy", code=529)), 503, "upstream_overloaded", "overloaded"),
    ("F04", stream(role(), error("too busy", code=529)), 503, "upstream_overloaded", "overloaded"),
    (
        "B22",
        stream(b'{"error":{"code":400,"type":"exceed_context_size_error"}}'),
        400,
        "context_length_exceeded",
        "overflow",
    ),
    ("", answer(400, error("Content Exists Risk")), 400, "content_filter", "refused"),
    ("", answer(422, error("no such field")), 400, "upstream_bad_request", "bad_request"),
    ("", answer(401, error(f"bad key {KEY}")), 502, "upstream_auth", "auth"),
    ("", answer(403, error("not yours")), 502, "upstream_auth", "auth"),
    ("", answer(404, error("no model")), 502, "upstream_not_found", "not_found"),
    ("", answer(429, error("slow down")), 429, "upstream_overloaded", "overloaded"),
    ("", answer(503, error("Loading model")), 503, "upstream_loading", "loading"),
    ("", Exchange((), "reset"), 503, "upstream_unavailable", "unavailable"),
    ("", Exchange((), "cut"), 503, "upstream_unavailable", "unavailable"),
]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("case", "exchange", "status", "code", "kind"),
    REFUSALS,
    ids=[f"{row[0] or row[3]}-{at}" for at, row in enumerate(REFUSALS)],
)
async def test_what_fails_before_the_first_token_is_a_status(
    wall: Wall,
    streamed: bool,
    case: str,
    exchange: Exchange,
    status: int,
    code: str,
    kind: str,
) -> None:
    """F04, B22 and every status: told as one, the question kept, no reply."""
    if not streamed and exchange.pieces and b"event-stream" in exchange.pieces[0]:
        exchange = answer(200, error("too busy", code=529))
        status, code, kind = 503, "upstream_overloaded", "overloaded"
        if case == "B22":
            exchange = answer(200, error("x", type="exceed_context_size_error"))
            status, code, kind = 400, "context_length_exceeded", "overflow"
    wall.upstream.play(exchange, exchange)
    heard = await wall.ask("hi", stream=streamed)
    assert heard.status == status
    assert heard.error is not None
    assert heard.error["code"] == code
    assert set(heard.error) == {"message", "type", "param", "code"}
    assert KEY.encode() not in heard.body
    assert wall.messages() == [("user", "hi", 0)]
    assert {row[1:] for row in wall.attempts()} == {("failed", None, kind)}
    assert len(wall.upstream.chats) == 1
