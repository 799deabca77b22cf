"""What a streaming client hears of every way in which an answer can go wrong, and what is stored.

The first row of each table is a good answer, so that a wall that is down shows. Case numbers stand
beside the rows.
"""

from __future__ import annotations

import json
import re
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
from tests.faults.wall import KEY, Wall
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


# -- after the first token: what came, an error event, no [DONE], a row marked as partial ----------

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
    """F01, F04, F16, F20, B03, B04: no false end, no second answer, no half counted as whole."""
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


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_an_upstreams_reason_is_told_and_no_key_in_it(wall: Wall, streamed: bool) -> None:
    said = f"temperature は 2 以下です ({KEY}, Bearer abc.def)\x00\n" + "ж" * 2_000
    wall.upstream.play(answer(422, error(said)))
    heard = await wall.ask("hi", stream=streamed)
    assert (heard.status, heard.error is None) == (400, False)
    assert heard.error is not None
    told = heard.error["message"]
    assert ": temperature は 2 以下です (***, ***) жжж" in told
    assert 1_000 < len(told) < 1_200
    assert not re.search("[\x00-\x1f]", told)


async def test_no_key_is_told_in_the_midst_of_a_stream(wall: Wall) -> None:
    wall.upstream.play(stream(role(), delta(HALF), error(f"failed for {KEY} at u:p", code=500)))
    heard = await wall.ask("hi")
    assert (heard.status, heard.text) == (200, HALF)
    assert heard.error is not None
    assert "failed for *** at u:p" in heard.error["message"]
    assert KEY.encode() not in heard.body


# -- what is not whole is drawn once more ----------------------------------------------------------

AGAIN: list[tuple[str, Exchange, Exchange, str, str]] = [
    # case, streamed, whole; code and kind where it comes twice
    (
        "B07",
        stream(role(), end("stop"), DONE),
        answer(200, completion("")),
        "upstream_empty",
        "empty",
    ),
    ("B07", stream(DONE), answer(200, completion(None)), "upstream_empty", "empty"),
    (
        "B22",
        stream(role(), delta(" \n"), end("length"), usage(), DONE),
        answer(200, completion(" \n", "length")),
        "upstream_empty",
        "empty",
    ),
    (
        "F01",
        stream(role(), end="cut"),
        answer(200, completion("Half"), end="cut"),
        "upstream_interrupted",
        "interrupted",
    ),
    (
        "B04",
        stream(role(), end("error"), DONE),
        answer(200, completion("", "error")),
        "upstream_interrupted",
        "interrupted",
    ),
    (
        "F20",
        stream(b"<html>Bad gateway</html>", content_type="text/html"),
        answer(200, b"<html>Bad gateway</html>", content_type="text/html"),
        "upstream_malformed",
        "malformed",
    ),
    ("", answer(500, error("oops")), answer(500, error("oops")), "upstream_error", "server"),
]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("case", "in_stream", "whole", "code", "kind"),
    AGAIN,
    ids=[f"{row[0] or row[4]}-{at}" for at, row in enumerate(AGAIN)],
)
async def test_a_bad_answer_before_the_first_token_is_drawn_once_more(
    wall: Wall,
    streamed: bool,
    case: str,
    in_stream: Exchange,
    whole: Exchange,
    code: str,
    kind: str,
) -> None:
    """B04, B07, B22, F01, F20: once; if it comes again it is an error, and never a row."""
    # llama.cpp is asked for a stream always, and a whole answer is put together here
    sends_streams = streamed or wall.way == "llama_cpp"
    bad = in_stream if sends_streams else whole
    good = (
        stream(role(), delta("좋아요."), end("stop"), DONE)
        if sends_streams
        else answer(200, completion("좋아요."))
    )
    wall.upstream.play(bad, good)
    heard = await wall.ask("hi", stream=streamed)
    assert (heard.status, heard.text) == (200, "좋아요.")
    assert wall.replies() == [("좋아요.", 0)]
    assert [row[1] for row in wall.attempts()] == ["failed", "done"]
    assert wall.upstream.chats[0].json == wall.upstream.chats[1].json  # law 3
    wall.upstream.play(bad, bad, good)
    heard = await wall.ask("and now?", stream=streamed)
    assert heard.status == 502
    assert heard.error is not None
    assert heard.error["code"] == code
    assert [row[1:] for row in wall.attempts()[2:]] == [("failed", None, kind)] * 2
    assert wall.messages()[-1] == ("user", "and now?", 0)


# -- what is odd, and whole ------------------------------------------------------------------------


async def test_bytes_cut_anywhere(wall: Wall) -> None:
    """F05: after every single byte, so also amid a letter and an emoji."""
    wall.upstream.play(stream(role(), delta("日本語と🎉と한글"), end("stop"), DONE, cut_every=1))
    heard = await wall.ask("hi")
    assert (heard.text, heard.ends, heard.is_done) == ("日本語と🎉と한글", ["stop"], True)
    assert "\ufffd" not in heard.body.decode()
    assert wall.replies() == [("日本語と🎉と한글", 0)]


NULLS: list[Exchange] = [
    stream(chunk({"index": 0, "delta": None}), delta("Так."), end("stop"), DONE),
    stream(chunk() | {"choices": None}, delta("Так."), end("stop"), DONE),
    stream(delta("Так."), chunk({"index": 0, "delta": None, "finish_reason": "stop"}), DONE),
]


@pytest.mark.parametrize("exchange", NULLS)
async def test_null_forms_are_tolerated(wall: Wall, exchange: Exchange) -> None:
    """F20."""
    wall.upstream.play(exchange)
    heard = await wall.ask("hi")
    assert (heard.text, heard.ends, heard.is_done) == ("Так.", ["stop"], True)
    assert wall.replies() == [("Так.", 0)]


LATE: list[Exchange] = [
    stream(role(), delta("Ende."), end("stop"), delta(" Nein"), end("stop"), DONE),
    stream(role(), delta("Ende."), end("stop"), DONE, delta(" zu spät")),
    stream(role(), delta("Ende."), end("stop"), DONE, error("late")),
    stream(role(), delta("Ende."), end("stop"), end="reset"),
    stream(role(), delta("Ende."), end("stop"), b"data: {oops\n\n"),
]


@pytest.mark.parametrize("exchange", LATE)
async def test_nothing_is_taken_after_the_end(wall: Wall, exchange: Exchange) -> None:
    """F19: one truth for the client and the transcript, one end."""
    wall.upstream.play(exchange)
    heard = await wall.ask("hi")
    assert (heard.text, heard.ends, heard.is_done) == ("Ende.", ["stop"], True)
    assert wall.replies() == [("Ende.", 0)]
    assert wall.attempts() == [("upstream", "done", "stop", None)]


async def test_thinking_that_leaks_into_the_text(wall: Wall) -> None:
    """F15: without its opening tag, and cut amid the closing one: kept as thinking, not shown to
    the model again."""
    wall.upstream.play(
        stream(role(), delta("first this, then</thi"), delta("nk>Готово"), end("stop"), DONE),
        stream(role(), delta("."), end("stop"), DONE),
    )
    await wall.ask("hi")
    assert wall.replies() == [("Готово", 0)]
    await wall.ask("go on")
    sent = [m["content"] for m in wall.upstream.chats[1].json["messages"]]
    assert sent == ["hi", "Готово", "go on"]


async def test_a_closing_tag_in_code_stays(wall: Wall) -> None:
    """F15."""
    said = "Write it so:\n```\nplan</think>answer\n```"
    wall.upstream.play(stream(role(), delta(said), end("stop"), DONE))
    await wall.ask("How does the tag look?")
    assert wall.replies() == [(said, 0)]


def call(**fields: Any) -> dict[str, Any]:
    return delta(tool_calls=[{"index": 0, **fields}])


PIECES: list[list[dict[str, Any]]] = [
    [
        call(id="t1", type="function", function={"name": "clima", "arguments": ""}),
        call(function={"arguments": '{"lugar":"Mála'}),
        call(function={"arguments": 'ga"}'}),
    ],
    [
        call(
            id="t1",
            type="function",
            function={"name": "clima", "arguments": '{"lugar":"Málaga"}'},
        )
    ],
    [
        delta(
            tool_calls=[
                {
                    "id": "t1",
                    "type": "function",
                    "function": {"name": "clima", "arguments": '{"lugar":"Málaga"}'},
                }
            ]
        )
    ],
]


@pytest.mark.parametrize("pieces", PIECES, ids=["many", "one", "no index"])
async def test_arguments_of_tools_in_pieces(wall: Wall, pieces: list[dict[str, Any]]) -> None:
    """F17: one call, its arguments JSON, however it was cut."""
    wall.upstream.play(
        stream(role(), *pieces, end("tool_calls"), DONE),
        stream(role(), delta("Sol."), end("stop"), DONE),
    )
    heard = await wall.ask("¿Qué tiempo hace?")
    assert heard.ends == ["tool_calls"]
    await wall.ask({"role": "tool", "tool_call_id": "t1", "content": "sol"})
    _, asked, result = wall.upstream.chats[1].json["messages"]
    (made,) = asked["tool_calls"]
    assert (made["id"], made["function"]["name"]) == ("t1", "clima")
    assert json.loads(made["function"]["arguments"]) == {"lugar": "Málaga"}
    assert (result["role"], result["content"]) == ("tool", "sol")


async def test_arguments_that_were_cut_off_are_not_shown_again(wall: Wall) -> None:
    """F17."""
    half = call(id="t1", type="function", function={"name": "f", "arguments": '{"a":"b'})
    wall.upstream.play(
        stream(role(), half, end("length"), DONE),
        stream(role(), delta("Bien."), end("stop"), DONE),
    )
    heard = await wall.ask("hi")
    assert heard.ends == ["length"]
    await wall.ask("go on")
    assert wall.upstream.chats[1].json["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": "go on"},
    ]


async def test_reasoning_stands_apart_and_is_not_sent_to_another(wall: Wall) -> None:
    """F14: kept beside the reply, never in a prompt, of a turn with tools either."""
    wall.upstream.play(
        stream(
            role(),
            delta(reasoning_content="Ask the tool."),
            call(id="t1", type="function", function={"name": "f", "arguments": "{}"}),
            end("tool_calls"),
            DONE,
        ),
        stream(role(), delta(reasoning_content="Now."), delta("Fine."), end("stop"), DONE),
        answer(503, error("away")),
    )
    wall.spare.play(stream(role(), delta("I see."), end("stop"), DONE))
    await wall.ask("x", model="two")
    heard = await wall.ask({"role": "tool", "tool_call_id": "t1", "content": "1"}, model="two")
    assert heard.text == "Fine."
    heard = await wall.ask("go on", model="two")
    assert heard.text == "I see."
    stored = [json.loads(raw) for (raw,) in wall.rows("SELECT raw FROM messages ORDER BY pk")]
    thoughts = [message.get("reasoning_content") for message in stored]
    assert thoughts == [None, "Ask the tool.", None, "Now.", None, None]
    for request in (*wall.upstream.chats, *wall.spare.chats):
        assert b"Ask the tool" not in request.body
        assert b"reasoning_content" not in request.body


async def test_reasoning_goes_back_where_the_file_says_so(build: Build) -> None:
    """F14: to the backend that had it, of a turn with tools too; llama.cpp's template is never sent
    any."""
    async with build(cloud=", reasoning: keep") as wall:
        asks = call(id="t1", type="function", function={"name": "f", "arguments": "{}"})
        wall.upstream.play(
            stream(role(), delta(reasoning_content="Ask."), asks, end("tool_calls"), DONE),
            stream(role(), delta(reasoning_content="Now."), delta("Fine."), end("stop"), DONE),
            answer(503, error("away")),
        )
        wall.spare.play(stream(role(), delta("I see."), end("stop"), DONE))
        await wall.ask("x", model="two")
        await wall.ask({"role": "tool", "tool_call_id": "t1", "content": "1"}, model="two")
        await wall.ask("go on", model="two")
        sent = [m.get("reasoning_content") for m in wall.upstream.chats[2].json["messages"]]
        kept = wall.way != "llama_cpp"
        assert sent == ([None, "Ask.", None, "Now.", None] if kept else [None] * 5)
        assert b"reasoning_content" not in wall.spare.chats[0].body


async def test_an_allowance_that_went_into_thinking(wall: Wall) -> None:
    """B21, B02: told as it ended; the thinking never stands for the reply."""
    wall.upstream.play(
        stream(role(), delta(reasoning_content="h" * 400), end("length"), DONE),
        stream(role(), delta("Ja."), end("stop"), DONE),
    )
    heard = await wall.ask("hi")
    assert (heard.text, heard.ends, heard.is_done) == ("", ["length"], True)
    await wall.ask("go on")
    said = [m["content"] for m in wall.upstream.chats[1].json["messages"]]
    assert said == ["hi", "go on"]


async def test_a_reply_cut_by_length_is_told_and_kept_as_such(wall: Wall) -> None:
    """B13: two characters and `length` are no whole reply to anybody."""
    wall.upstream.play(stream(role(), delta("Da"), end("length"), DONE))
    heard = await wall.ask("hi")
    assert (heard.text, heard.ends) == ("Da", ["length"])
    assert wall.rows("SELECT finish_reason FROM messages WHERE role = 'assistant'") == [("length",)]
    assert wall.attempts() == [("upstream", "done", "length", None)]


async def test_a_whole_answer_without_a_true_end(wall: Wall) -> None:
    """B03, B04: kept as a part, drawn again; the client gets the whole one alone."""
    if wall.way == "llama_cpp":
        wall.upstream.play(
            stream(role(), delta(HALF), end("error"), DONE),
            stream(role(), delta("全部"), end("stop"), DONE),
        )
    else:
        wall.upstream.play(answer(200, completion(HALF, "error")), answer(200, completion("全部")))
    heard = await wall.ask("hi", stream=False)
    assert (heard.status, heard.json["choices"][0]["message"]["content"]) == (200, "全部")
    assert heard.json["choices"][0]["finish_reason"] == "stop"
    assert wall.replies() == [(HALF, 1), ("全部", 0)]
    assert [row[1] for row in wall.attempts()] == ["partial", "done"]
