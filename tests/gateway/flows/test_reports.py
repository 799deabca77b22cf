"""What is told of turns: to the meters, to the log, to their spans."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.auxiliary import open_chat
from gateway.flows.incoming import prepare
from gateway.logs import JsonLines
from gateway.store import transcript
from gateway.traces import OpenTelemetryTraces
from gateway.trail import Trail, following
from gateway.wire.json_text import dump_bytes
from gateway.wire.requests import parse_chat
from policies.auxiliary import Auxiliary
from tests.gateway.house import House, Say, assistant, deltas, user
from tests.gateway.test_meters import read

WHOLE = {"choices": [{"index": 0, "message": assistant("A title"), "finish_reason": "stop"}]}
LONG = "word " * 40  # 200 characters
SECRET = "ORCHID-7 비밀 🌸"
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 20,
    "prompt_tokens_details": {"cached_tokens": 75},
}


@pytest.fixture
def heard() -> Iterator[io.StringIO]:
    """The program's log as JSON lines, debugging among them."""
    out, ours = io.StringIO(), logging.getLogger("foldgate")
    handler, level = logging.StreamHandler(out), ours.level
    handler.setFormatter(JsonLines())
    ours.addHandler(handler)
    ours.setLevel(logging.DEBUG)
    yield out
    ours.removeHandler(handler)
    ours.setLevel(level)


def count(house: House, name: str) -> dict[str, float]:
    series = read(house.ctx.meters, f"foldgate_{name}")
    return {labels: value for labels, value in series.items() if value}


def usage(said: str) -> list[Any]:
    return deltas(said, usage=USAGE)  # type: ignore[arg-type]


async def talk(house: House, history: list[Say], turns: int = 1) -> None:
    for _ in range(turns):
        history.append(user(f"m{len(history)} {LONG}"))
        said = await house.say(*history, id="c")
        history.append(assistant(said.text))


async def test_a_turn_is_counted_where_it_went_with_what_it_cost(house: House) -> None:
    house.local.answers = [usage("hello"), deltas("half", finish="length")]
    await house.say("hi", id="c")
    await house.say("and?", id="c")
    assert count(house, "attempts_total") == {"local/small/done/none": 2}
    assert count(house, "finishes_total") == {"local/small/stop": 1, "local/small/length": 1}
    assert count(house, "views_total") == {"local/small/verbatim": 2}
    assert count(house, "prompt_tokens_total") == {"local/chat": 100}
    assert count(house, "cached_tokens_total") == {"local/chat": 75}
    assert count(house, "completion_tokens_total") == {"local/chat": 20}


async def test_a_fault_and_the_fallback_behind_it_are_two_attempts(house: House) -> None:
    house.local.answers = [UpstreamFault(FaultKind.TIMEOUT, "it was slow")]
    await house.say("hi", id="c", model="both")
    assert count(house, "attempts_total") == {
        "local/small/failed/timeout": 1,
        "cloud/wide/done/none": 1,
    }


async def test_a_client_that_leaves_is_a_cancelled_attempt(house: House) -> None:
    turn = await house.open(user("hi"), id="c")
    stream = turn.stream()
    await anext(stream)
    await stream.aclose()
    assert count(house, "attempts_total") == {"local/small/cancelled/the_client_left": 1}


async def test_how_long_was_waited_for_a_slot_and_a_first_piece(house: House) -> None:
    def wait() -> None:
        trace = house.local.calls[-1].trace
        trace.queued, trace.first_token = 1.5, 0.25

    house.local.opens = wait
    await house.say("hi", id="c")
    assert count(house, "queue_wait_seconds_sum") == {"local/chat": 1.5}
    assert count(house, "first_token_seconds_sum") == {"local": 0.25}


async def test_reuse_is_the_expected_beside_the_actual(house: House) -> None:
    """The second prompt holds the first and its reply; three quarters of it were there."""
    house.local.answers = [usage("hello"), usage("again")]
    await house.say("hi", id="c")
    await house.say("and?", id="c")
    (row,) = house.rows(
        "SELECT prompt_chars, expected_chars FROM attempts ORDER BY pk DESC LIMIT 1"
    )
    assert count(house, "reuse_prompt_chars_total") == {"local": row[0]}
    assert count(house, "reuse_expected_chars_total") == {"local": row[1]}
    assert count(house, "reuse_actual_chars_total") == {"local": row[0] * 0.75}


async def test_a_fold_is_counted_with_its_span(house: House) -> None:
    history: list[Say] = []
    while not house.pending():
        await talk(house, history)
    house.write_chapters()
    await talk(house, history)
    (border,) = house.rows("SELECT border_cum FROM folds")
    assert count(house, "folds_total") == {"small/fold": 1}
    assert count(house, "fold_span_chars_sum") == {"small": border[0]}
    assert count(house, "hard_cuts_total") == {}
    assert count(house, "stand_ins_total") == {}
    assert count(house, "views_total")["local/small/folded"] == 1
    moved = house.one("SELECT moved_by FROM attempts ORDER BY pk DESC LIMIT 1")
    assert moved == "fold"
    assert count(house, "prefix_moves_total")["local/fold"] == 1


async def test_a_hard_cut_is_counted_and_logged_with_its_stand_ins(
    house: House, heard: io.StringIO
) -> None:
    history: list[Say] = []
    while not house.folds():
        await talk(house, history)
    made = house.one("SELECT count(*) FROM chapter_versions WHERE origin = 'stand-in'")
    assert made > 0
    assert count(house, "hard_cuts_total") == {"local/small": 1}
    assert count(house, "stand_ins_total") == {"chapter/spot": made}
    assert count(house, "views_total")["local/small/cut"] == 1
    lines = [json.loads(line) for line in heard.getvalue().splitlines()]
    (cut,) = [line for line in lines if "hard cut" in line["message"]]
    assert (cut["level"], cut["backend"], cut["policy"]) == ("warning", "local", "small")


async def test_a_move_is_counted_while_it_waits_and_when_it_is_made(house: House) -> None:
    """Two turns before the chapters are there, one with them; a fallback is counted too."""
    history: list[Say] = []
    for _ in range(30):
        history.append(user(f"m{len(history)} {LONG}"))
        said = await house.say(*history, id="c", model="cloudy")
        history.append(assistant(said.text))
    house.local.answers = [UpstreamFault(FaultKind.TIMEOUT, "it was slow")] * 3
    await house.say("hi", id="other", model="both")
    retried = count(house, "retries_total")
    assert retried["local/timeout/elsewhere"] == 1
    house.local.answers.clear()
    await house.say(*history, user("go on"), id="c", model="both")
    pk = house.conversation("c").pk
    house.store.writing(transcript.route_conversation, pk, "local")
    for at in range(2):
        await house.say(*history, user(f"go on {at}"), id="c", model="both")
    waited = count(house, "migrations_total")["local/waiting"]
    assert waited >= 2
    while house.write_chapters() + house.write_gists():
        pass
    said = await house.say(*history, user("and now"), id="c", model="both")
    assert said.turn.prepared.backend.name == "local"
    assert count(house, "migrations_total") == {"local/waiting": waited, "local/done": 1}
    assert count(house, "folds_total") == {"small/migration": 1}


async def test_a_title_is_counted_apart_from_turns(house: House, heard: io.StringIO) -> None:
    exporter = InMemorySpanExporter()
    house.ctx.traces = OpenTelemetryTraces(exporter, at_once=True)
    await house.say("hi", id="c")
    exporter.clear()
    house.local.answers = [[{**WHOLE, "usage": USAGE}]]
    house.local.opens = lambda: setattr(house.local.calls[-1].trace, "queued", 2.0)
    body = {"model": "foldgate", "messages": [user(SECRET)]}
    incoming = prepare(
        parse_chat(dump_bytes(body)),
        owner="ann",
        conversation="c",
        auxiliary=Auxiliary("title", "task"),
    )
    with following(Trail(request="req_1")) as here:
        served = await open_chat(house.ctx, incoming, "req_1")
        await served.complete()
    assert here.conversation == house.conversation("c").id
    assert count(house, "auxiliary_requests_total") == {"local/title/done": 1}
    assert count(house, "prompt_tokens_total") == {"local/auxiliary": 100}
    assert count(house, "queue_wait_seconds_sum") == {"local/auxiliary": 2.0}
    assert count(house, "attempts_total") == {"local/small/done/none": 1}, "the turn before"
    (span,) = exporter.get_finished_spans()
    assert dict(span.attributes or {}) == {
        "foldgate.backend": "local",
        "foldgate.purpose": "auxiliary",
        "foldgate.kind": "title",
        "foldgate.state": "done",
    }
    assert "ORCHID-7" not in heard.getvalue() + span.to_json()


async def test_a_message_that_no_window_holds_is_a_failed_attempt(house: House) -> None:
    house.local.window_tokens = 1_000
    await house.say("word " * 2_000, id="c", model="both")
    assert count(house, "attempts_total") == {
        "local/small/failed/overflow": 1,
        "cloud/wide/done/none": 1,
    }


async def test_attempts_are_spans_under_their_request(house: House) -> None:
    exporter = InMemorySpanExporter()
    house.ctx.traces = traces = OpenTelemetryTraces(exporter, at_once=True)
    house.local.answers = [UpstreamFault(FaultKind.TIMEOUT, SECRET), usage(SECRET)]
    with following(Trail(request="req_1")) as here:
        here.span = request = traces.begin("request")
        await house.say(SECRET, id="c", model="both")
        request.end()
    assert here.conversation == house.conversation("c").id
    first, second, outer = exporter.get_finished_spans()
    assert outer.context is not None
    for span in (first, second):
        assert span.name == "attempt"
        assert span.parent is not None and span.parent.span_id == outer.context.span_id
    told = dict(first.attributes or {})
    assert (told["foldgate.backend"], told["foldgate.state"]) == ("local", "failed")
    assert first.status.description == "timeout"
    told = dict(second.attributes or {})
    assert (told["foldgate.backend"], told["foldgate.state"]) == ("cloud", "done")
    assert told["foldgate.rule"] == "fallback"
    assert all("ORCHID-7" not in span.to_json() for span in (first, second))


async def test_a_reply_that_is_cut_by_length_is_logged(house: House, heard: io.StringIO) -> None:
    house.local.answers = [deltas(SECRET, finish="length")]
    await house.say("hi", id="c")
    lines = [json.loads(line) for line in heard.getvalue().splitlines()]
    (line,) = [line for line in lines if line["level"] == "info"]
    assert (line["message"], line["backend"]) == ("a reply was cut by its length", "local")


async def test_the_log_names_request_and_conversation_and_no_word_of_it(
    house: House, heard: io.StringIO
) -> None:
    house.local.answers = [UpstreamFault(FaultKind.TIMEOUT, "it was slow"), usage(SECRET)]
    with following(Trail(request="req_1")):
        await house.say(SECRET, id="c", model="both")
    lines = [json.loads(line) for line in heard.getvalue().splitlines()]
    assert lines and {line["request"] for line in lines} == {"req_1"}
    assert {line["conversation"] for line in lines} == {house.conversation("c").id}
    ends = [line for line in lines if line["message"] == "an attempt ended"]
    assert [(end["backend"], end["state"]) for end in ends] == [
        ("local", "failed"),
        ("cloud", "done"),
    ]
    assert ends[0]["fault"] == "timeout"
    assert "ORCHID-7" not in heard.getvalue()
