"""What the gateway does after a failure, and what it leaves alone: one budget, on every way."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.faults.conftest import Build
from tests.faults.server import (
    DONE,
    Exchange,
    answer,
    completion,
    delta,
    end,
    role,
    stream,
)
from tests.faults.wall import Wall
from tests.gateway.backends.conftest import LITELLM_WARNS

pytestmark = LITELLM_WARNS

GOOD = stream(role(), delta("Да."), end("stop"), DONE)
DOWN = answer(503, {"error": {"message": "away"}})
REFUSED = answer(400, {"error": {"message": "Content Exists Risk"}})
OVERFLOW = answer(400, {"error": {"message": "x", "type": "exceed_context_size_error"}})
EMPTY = stream(role(), end("stop"), DONE)


def busy(seconds: int) -> Exchange:
    return answer(429, {"error": {"message": "slow down"}}, {"Retry-After": str(seconds)})


def history(chars: int) -> list[dict[str, Any]]:
    """Messages of 250 characters each, one after the other said by both sides."""
    said = []
    for number in range(chars // 250):
        text = f"Message {number}: the lamp, the sea, the boat and the reef; "
        roles = ("user", "assistant")
        said.append({"role": roles[number % 2], "content": (text * 6)[:250]})
    return said


# -- waits -----------------------------------------------------------------------------------------


async def test_a_moment_that_the_upstream_names_is_waited_for(wall: Wall) -> None:
    wall.clock.skips = frozenset({7.0})
    wall.upstream.play(busy(7), GOOD)
    heard = await wall.ask("hi")
    assert (heard.status, heard.text, heard.is_done) == (200, "Да.", True)
    assert wall.clock.skipped == [7.0]
    assert wall.attempts() == [
        ("upstream", "failed", None, "overloaded"),
        ("upstream", "done", "stop", None),
    ]
    assert wall.upstream.chats[0].body == wall.upstream.chats[1].body


async def test_a_moment_too_far_away_is_handed_on(wall: Wall) -> None:
    """20 s are the budget."""
    wall.upstream.play(busy(21))
    heard = await wall.ask("hi")
    assert (heard.status, heard.headers["retry-after"]) == (429, "21")
    assert wall.clock.skipped == []
    assert len(wall.upstream.chats) == 1


async def test_all_waits_of_a_turn_have_one_budget(wall: Wall) -> None:
    """12 + 12 are more than 20."""
    wall.clock.skips = frozenset({12.0})
    wall.upstream.play(busy(12), busy(12))
    heard = await wall.ask("hi", stream=False)
    assert (heard.status, heard.headers["retry-after"]) == (429, "12")
    assert wall.clock.skipped == [12.0]
    assert len(wall.upstream.chats) == 2


async def test_nobody_waits_where_another_tier_serves(wall: Wall) -> None:
    wall.upstream.play(busy(7))
    wall.spare.play(GOOD)
    heard = await wall.ask("hi", model="two")
    assert (heard.text, heard.headers["x-foldgate-backend"]) == ("Да.", "spare")
    assert heard.headers["x-foldgate-rule"] == "fallback"
    assert wall.clock.skipped == []


async def test_a_client_hears_when_to_come_back_though_the_upstream_did_not_say(
    wall: Wall,
) -> None:
    wall.upstream.play(DOWN)
    heard = await wall.ask("hi")
    assert (heard.status, heard.headers["retry-after"]) == (503, "5")


# -- other tiers -----------------------------------------------------------------------------------

OUTAGES: dict[str, Exchange] = {
    "503": DOWN,
    "loading": answer(503, {"error": {"message": "Loading model"}}),
    "500": answer(500, {"error": {"message": "oops"}}),
    "401": answer(401, {"error": {"message": "no"}}),
    "404": answer(404, {"error": {"message": "no"}}),
    "529 in a stream": stream(role(), {"error": {"message": "busy", "code": 529}}),
    "reset": Exchange((), "reset"),
}


@pytest.mark.parametrize("name", OUTAGES)
async def test_an_outage_is_served_by_the_next_tier(wall: Wall, name: str) -> None:
    """F04: before the first token."""
    wall.upstream.play(OUTAGES[name])
    wall.spare.play(GOOD)
    heard = await wall.ask("hi", model="two")
    assert (heard.status, heard.text, heard.is_done) == (200, "Да.", True)
    assert heard.headers["x-foldgate-backend"] == "spare"
    assert wall.replies() == [("Да.", 0)]
    assert [row[:2] for row in wall.attempts()] == [("upstream", "failed"), ("spare", "done")]


async def test_a_fallback_has_its_own_view(wall: Wall) -> None:
    """B09: built for the tier that serves, and not the bytes that failed."""
    said = history(6_000)
    wall.upstream.play(GOOD, DOWN, GOOD)
    wall.spare.play(GOOD)
    await wall.ask(*said, "one", model="two", id=None)
    rows = wall.rows("SELECT id FROM conversations")
    id = rows[0][0]
    heard = await wall.ask("two", model="two", id=id)
    assert heard.headers["x-foldgate-backend"] == "spare"
    failed = wall.upstream.chats[1].json["messages"]
    served = wall.spare.chats[0].json["messages"]
    assert failed[0] == said[0]
    assert sum(len(m["content"]) for m in failed) > 6_000
    assert sum(len(m["content"]) for m in served) <= 4_000  # the ceiling of its policy
    assert served[-1] == failed[-1] == {"role": "user", "content": "two"}
    assert heard.headers["x-foldgate-view"] == "cut"  # its chapters were not made yet: told
    back = await wall.ask("three", model="two", id=id)
    assert back.headers["x-foldgate-backend"] == "upstream"
    assert back.headers["x-foldgate-view"] == "verbatim"


async def test_the_first_fault_is_told_where_all_fail(wall: Wall) -> None:
    """B09."""
    wall.upstream.play(busy(30))
    wall.spare.play(answer(401, {"error": {"message": "no"}}))
    heard = await wall.ask("hi", model="two")
    assert (heard.status, heard.headers["retry-after"]) == (429, "30")
    assert heard.error is not None
    assert "upstream" in heard.error["message"]
    assert "spare" not in heard.error["message"]


async def test_a_tier_that_is_down_is_not_waited_for(wall: Wall) -> None:
    """The next tier says that it cannot serve: then the first one's moment counts."""
    wall.spare.routes["/health"] = DOWN
    wall.clock.skips = frozenset({3.0})
    wall.upstream.play(busy(3), GOOD)
    heard = await wall.ask("hi", model="two")
    assert (heard.text, heard.headers["x-foldgate-backend"]) == ("Да.", "upstream")
    assert wall.spare.chats == []


async def test_three_attempts_are_all_there_are(wall: Wall) -> None:
    """Over retries and fallbacks."""
    wall.upstream.play(EMPTY, EMPTY, GOOD)
    wall.spare.play(EMPTY, GOOD)
    heard = await wall.ask("hi", model="two")
    assert (heard.status, heard.error and heard.error["code"]) == (502, "upstream_empty")
    assert (len(wall.upstream.chats), len(wall.spare.chats)) == (2, 1)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("exchange", "code"),
    [(REFUSED, "content_filter"), (OVERFLOW, "context_length_exceeded")],
    ids=["refused", "overflow"],
)
async def test_what_is_wrong_with_the_request_goes_elsewhere_only_by_policy(
    wall: Wall, exchange: Exchange, code: str, streamed: bool
) -> None:
    wall.upstream.play(exchange, exchange)
    heard = await wall.ask("hi", model="two", stream=streamed)
    assert (heard.status, heard.error and heard.error["code"]) == (400, code)
    assert (len(wall.upstream.chats), len(wall.spare.chats)) == (1, 0)
    wall.spare.play(GOOD)
    heard = await wall.ask("hi", model="lenient", id="d", stream=streamed)
    assert (heard.status, heard.text) == (200, "Да.")
    assert heard.headers["x-foldgate-backend"] == "spare"


async def test_once_headers_left_nothing_is_tried_elsewhere(build: Build) -> None:
    async with build(hold_seconds=0.0, ping_seconds=0.01) as wall:
        gate = asyncio.Event()
        wall.upstream.play(answer(503, {"error": {"message": "away"}}, hold=gate))
        visit = wall.visit("hi", model="two")
        await visit.hear(b": ping")
        gate.set()
        await asyncio.wait_for(visit.work, 10)
        assert visit.heard.status == 200
        assert visit.heard.error is not None
        assert visit.heard.error["code"] == "upstream_overloaded"
        assert not visit.heard.is_done
        assert wall.spare.chats == []


async def test_after_headers_the_same_backend_may_be_asked_again(build: Build) -> None:
    """B07, F04: the client has heard nothing but pings yet; a prompt may take longer to read than
    headers are held back."""
    async with build(hold_seconds=0.0, ping_seconds=0.01) as wall:
        wall.clock.skips = frozenset({7.0})
        gate = asyncio.Event()
        wall.upstream.play(stream(role(), end("stop"), DONE, hold=gate), busy(7), GOOD)
        visit = wall.visit("hi", model="two")
        await visit.hear(b": ping")
        gate.set()
        await asyncio.wait_for(visit.work, 10)
        assert (visit.heard.text, visit.heard.is_done) == ("Да.", True)
        assert wall.clock.skipped == [7.0]
        assert len(wall.upstream.chats) == 3
        assert wall.spare.chats == []


async def test_a_view_that_is_cut_after_headers_left_is_told_in_a_comment(build: Build) -> None:
    """Law 9: never silently smaller."""
    async with build(hold_seconds=0.0, ping_seconds=0.01) as wall:
        wall.upstream.play(GOOD)
        await wall.ask(*history(2_500), "one", model="small", id="k")
        gate = asyncio.Event()
        error = {
            "type": "exceed_context_size_error",
            "message": "too long",
            "n_prompt_tokens": 1_500,
            "n_ctx": 1_100,
        }
        wall.upstream.play(answer(400, {"error": error}, hold=gate), GOOD)
        visit = wall.visit("two", model="small", id="k")
        await visit.hear(b": ping")
        assert visit.heard.headers.get("x-foldgate-view") in (None, "verbatim")
        gate.set()
        await asyncio.wait_for(visit.work, 10)
        assert (visit.heard.text, visit.heard.is_done) == ("Да.", True)
        assert b": x-foldgate-view: cut\n" in visit.heard.body


# -- circuits --------------------------------------------------------------------------------------


async def open_circuit(wall: Wall) -> None:
    """Five failures in a row."""
    wall.upstream.play(*[DOWN] * 5)
    for number in range(5):
        await wall.ask("hi", id=f"f{number}")
    assert len(wall.upstream.chats) == 5


async def ready(wall: Wall) -> Any:
    transport = httpx.ASGITransport(wall.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return (await client.get("/readyz")).json()


async def test_a_backend_that_keeps_failing_is_left_alone(wall: Wall) -> None:
    """503 and Retry-After at once, the question stored; after the rest one request decides."""
    await open_circuit(wall)
    heard = await wall.ask("anyone?")
    assert heard.status == 503
    assert heard.error is not None
    assert heard.error["code"] == "upstream_resting"
    assert 1 <= int(heard.headers["retry-after"]) <= 15
    assert len(wall.upstream.chats) == 5
    assert wall.messages()[-1] == ("user", "anyone?", 0)
    assert wall.attempts()[-1] == ("upstream", "failed", None, "resting")
    assert (await ready(wall))["backends"]["upstream"]["circuit"] == "open"
    wall.clock.ahead += 15
    assert (await ready(wall))["backends"]["upstream"]["circuit"] == "half-open"
    wall.upstream.play(GOOD)
    heard = await wall.ask("and now?")
    assert (heard.status, heard.text) == (200, "Да.")
    assert (await ready(wall))["backends"]["upstream"]["circuit"] == "closed"


async def test_half_open_lets_one_through(wall: Wall) -> None:
    await open_circuit(wall)
    wall.clock.ahead += 15
    gate = asyncio.Event()
    wall.upstream.play(stream(role(), delta("1"), end("stop"), DONE, hold=gate))
    probe = wall.visit("first", id="p")
    await wall.upstream.asked(5)
    heard = await wall.ask("second", id="q")
    assert (heard.status, heard.headers["retry-after"]) == (503, "1")
    gate.set()
    await asyncio.wait_for(probe.work, 10)
    assert probe.heard.text == "1"
    wall.upstream.play(GOOD)
    assert (await wall.ask("third", id="q")).text == "Да."


async def test_a_probe_that_fails_begins_another_rest(wall: Wall) -> None:
    await open_circuit(wall)
    wall.clock.ahead += 15
    wall.upstream.play(DOWN)
    assert (await wall.ask("probe")).status == 503
    heard = await wall.ask("again")
    assert heard.error is not None
    assert heard.error["code"] == "upstream_resting"
    assert len(wall.upstream.chats) == 6


async def test_an_open_circuit_is_not_chosen(wall: Wall) -> None:
    await open_circuit(wall)
    wall.spare.play(GOOD, GOOD)
    for streamed in (True, False):
        heard = await wall.ask("hi", model="two", id=f"n{streamed}", stream=streamed)
        assert (heard.status, heard.headers["x-foldgate-backend"]) == (200, "spare")
    assert len(wall.upstream.chats) == 5


async def test_refusals_open_no_circuit(wall: Wall) -> None:
    wall.upstream.play(*[REFUSED] * 7)
    for number in range(7):
        heard = await wall.ask("hi", id=f"r{number}")
        assert heard.error is not None
        assert heard.error["code"] == "content_filter"
    assert len(wall.upstream.chats) == 7


# -- the client's patience -------------------------------------------------------------------------


async def test_a_whole_reply_is_given_up_before_its_client_gives_up(build: Build) -> None:
    """The upstream may take longer; what came is kept as a part."""
    async with build(patience_seconds=0.4) as wall:
        silent = stream(role(), delta("그때"), end="stall")
        if wall.way != "llama_cpp":
            silent = answer(200, completion("그때"), end="stall")
        wall.upstream.play(silent)
        heard = await wall.ask("hi", stream=False)
        assert heard.status == 504
        assert heard.error is not None
        assert heard.error["code"] == "upstream_timeout"
        assert "its client would have given up" in heard.error["message"]
        await wall.upstream.gone()
        assert wall.context.circuits.state("upstream") == "closed"
        assert wall.attempts()[0][3] == "timeout"
        if wall.way == "llama_cpp":
            assert wall.replies() == [("그때", 1)]
        else:
            assert wall.replies() == []


async def test_a_stream_that_goes_on_has_no_such_end(build: Build) -> None:
    async with build(patience_seconds=0.2) as wall:
        wall.upstream.play(stream(role(), *[delta("라")] * 20, end("stop"), DONE, pause=0.03))
        heard = await wall.ask("hi")
        assert (heard.text, heard.is_done) == ("라" * 20, True)


async def test_a_silent_stream_without_pings_is_given_up(
    build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its client hears nothing and would leave; one that hears pings waits on."""
    monkeypatch.setattr("gateway.api.sse._GRACE_SECONDS", 0.0)
    # Long enough for a busy machine to have made the call by then.
    async with build(patience_seconds=1.5, hold_seconds=0.05, ping_seconds=0.02) as wall:
        wall.upstream.play(Exchange((), "stall"))
        heard = await wall.ask("hi", headers={"x-foldgate-pings": "off"})
        assert heard.error is not None
        assert heard.error["code"] == "upstream_timeout"
        assert heard.error["message"].startswith("There is no word after 1.5 s")
        await wall.upstream.gone()
        gate = asyncio.Event()
        wall.upstream.play(stream(role(), delta("네"), end("stop"), DONE, hold=gate))
        visit = wall.visit("hi")
        await visit.hear(b": ping\n\n" * 20)
        gate.set()
        await asyncio.wait_for(visit.work, 10)
        assert visit.heard.text == "네"


async def test_nobody_waits_for_a_moment_beyond_the_clients_patience(build: Build) -> None:
    async with build(patience_seconds=5.0) as wall:
        wall.upstream.play(busy(7))
        heard = await wall.ask("hi", stream=False)
        assert (heard.status, heard.headers["retry-after"]) == (429, "7")
        assert wall.clock.skipped == []


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_nobody_stands_in_line_for_longer_than_a_client_waits(
    build: Build, streamed: bool
) -> None:
    async with build(patience_seconds=0.3) as wall:
        gate = asyncio.Event()
        wall.upstream.play(stream(role(), delta("1"), end("stop"), DONE, hold=gate), GOOD)
        first = wall.visit("one")
        await wall.upstream.asked()
        heard = await wall.ask("two", stream=streamed)
        assert (heard.status, heard.error and heard.error["code"]) == (504, "conversation_busy")
        gate.set()
        await asyncio.wait_for(first.work, 10)
        assert first.heard.text == "1"


async def test_nobody_at_the_address(wall: Wall) -> None:
    await wall.upstream.__aexit__()
    for streamed in (True, False):
        heard = await wall.ask("hi", stream=streamed)
        assert heard.status == 503
        assert heard.error is not None
        assert heard.error["code"] == "upstream_unavailable"
        assert "retry-after" in heard.headers
