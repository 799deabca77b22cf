"""Servers that fall silent and clients that leave: nothing waits longer than it says.

The waits are fractions of a second: long enough for a loopback server, short enough to be waited
for. No test measures how long anything took; what hangs fails after ten seconds.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.faults.conftest import Build
from tests.faults.server import DONE, Exchange, delta, end, role, stream
from tests.faults.wall import Wall, hasty
from tests.gateway.backends.conftest import LITELLM_WARNS

pytestmark = LITELLM_WARNS

GOOD = stream(role(), delta("はい。"), end("stop"), DONE)


FIRST = hasty(first_token="200ms")
IDLE = hasty(idle="200ms")
TOTAL = hasty(total="500ms")

SILENT: list[tuple[str, str, Exchange, str, str]] = [
    # the short wait, what the server does; what had been given, the words that name the wait
    ("no head", FIRST, Exchange((), "stall"), "", "gave no first token within 0.2 s"),
    ("no chunk", FIRST, stream(end="stall"), "", "gave no first token within 0.2 s"),
    ("a role", IDLE, stream(role(), end="stall"), "", "fell silent for 0.2 s"),
    ("a word", IDLE, stream(role(), delta("Hi"), end="stall"), "Hi", "fell silent for 0.2 s"),
    (
        "half a chunk",
        IDLE,
        stream(role(), delta("Hi"), b'data: {"choi', end="stall"),
        "Hi",
        "fell silent for 0.2 s",
    ),
    (
        "a blank each moment, for ever",
        TOTAL,
        stream(role(), *[delta(" ")] * 9_000, pause=0.01),
        "",
        "took longer than 0.5 s in all",
    ),
    (
        "pings for ever",
        TOTAL,
        stream(*[b": ping\n\n"] * 9_000, pause=0.01),
        "",
        "took longer than 0.5 s in all",
    ),
]


@pytest.mark.parametrize(
    ("timeouts", "exchange", "given", "words"),
    [row[1:] for row in SILENT],
    ids=[row[0] for row in SILENT],
)
async def test_silence_is_told(
    build: Build, timeouts: str, exchange: Exchange, given: str, words: str
) -> None:
    """F18, F07: an error with its name, the connection closed, what came kept as a part."""
    async with build(timeouts=timeouts) as wall:
        wall.upstream.play(exchange)
        heard = await wall.ask("hi")
        assert heard.error is not None
        assert heard.error["code"] == "upstream_timeout"
        assert heard.error["message"].startswith(f"The backend upstream {words}")
        await wall.upstream.gone()
        if given:
            assert (heard.status, heard.ends, heard.is_done) == (200, [], False)
            assert heard.text == given
        else:
            assert heard.status == 504
        assert wall.replies() == ([(given, 1)] if given else [])
        state = "partial" if given else "failed"
        assert wall.attempts() == [("upstream", state, None, "timeout")]


async def test_a_whole_answer_is_waited_for_as_long_as_it_may_take(build: Build) -> None:
    """F18, without a stream."""
    async with build(timeouts=TOTAL) as wall:
        wall.upstream.play(Exchange((), "stall"))
        heard = await wall.ask("hi", stream=False)
        assert heard.status == 504
        assert heard.error is not None
        assert heard.error["message"].startswith(
            "The backend upstream took longer than 0.5 s in all (timeouts.total)."
        )
        await wall.upstream.gone()
        assert wall.attempts() == [("upstream", "failed", None, "timeout")]


async def test_pings_count_as_life(build: Build) -> None:
    """F07: sixty of them, one each 20 ms, are longer than the time for a first token."""
    async with build(timeouts=hasty(first_token="600ms")) as wall:
        pings = [b":\n\n", b": keep-alive\n\n"] * 30
        wall.upstream.play(
            stream(*pings, role(), delta("Hola"), b": ping\n\n", end("stop"), DONE, pause=0.02)
        )
        heard = await wall.ask("hi")
        assert (heard.status, heard.text, heard.is_done) == (200, "Hola", True)
        assert b"keep-alive" not in heard.body


async def test_after_silence_the_next_in_line_goes_on(build: Build) -> None:
    """F18: requests that send only what is new stand in line; the first one's end frees it."""
    async with build(timeouts=IDLE) as wall:
        wall.upstream.play(stream(role(), delta("Hi"), end="stall"), GOOD)
        first = wall.visit("one")
        await first.hear(b"Hi")
        second = wall.visit("two")
        await asyncio.wait_for(asyncio.wait({first.work, second.work}), 10)
        assert first.heard.error is not None
        assert (second.heard.text, second.heard.is_done) == ("はい。", True)
        assert wall.messages() == [
            ("user", "one", 0),
            ("assistant", "Hi", 1),
            ("user", "two", 0),
            ("assistant", "はい。", 0),
        ]


async def test_the_gateways_own_pings_are_bare_comments(build: Build) -> None:
    """F08: no id, no event, no data, and the answer after them as if they had not been."""
    async with build(hold_seconds=0.0, ping_seconds=0.01) as wall:
        gate = asyncio.Event()
        wall.upstream.play(stream(role(), delta("よし"), end("stop"), DONE, hold=gate))
        visit = wall.visit("hi")
        await visit.hear(b": ping\n\n: ping\n\n")
        assert visit.heard.status == 200
        gate.set()
        await asyncio.wait_for(visit.work, 10)
        blocks = visit.heard.body.decode().split("\n\n")
        assert all(block[:2] in ("", ": ", "da") for block in blocks)
        assert (visit.heard.text, visit.heard.is_done) == ("よし", True)


async def test_a_client_may_switch_the_pings_off(build: Build) -> None:
    """F08."""
    async with build(hold_seconds=0.0, ping_seconds=0.001) as wall:
        gate = asyncio.Event()
        wall.upstream.play(stream(role(), delta("ok"), end("stop"), DONE, hold=gate))
        visit = wall.visit("hi", headers={"x-foldgate-pings": "off"})
        await wall.upstream.asked()
        await asyncio.sleep(0.02)
        gate.set()
        await asyncio.wait_for(visit.work, 10)
        assert b"ping" not in visit.heard.body
        assert visit.heard.text == "ok"


# -- clients that leave ----------------------------------------------------------------------------


async def settled(wall: Wall) -> None:
    """Nothing is left of a request whose client is gone."""
    await wall.upstream.gone()
    assert wall.context.busy == {"upstream": 0}
    assert wall.context.turns._places == {}


@pytest.mark.parametrize("echo", [True, False], ids=["kept by the client", "forgotten"])
async def test_a_client_that_leaves_in_the_middle(wall: Wall, echo: bool) -> None:
    """F12: the upstream is let go, the half is a part, and the chat goes on."""
    wall.upstream.play(stream(role(), delta("한국"), delta("어"), end="stall"), GOOD)
    visit = wall.visit("hi")
    await visit.hear("어".encode())
    await visit.leave()
    await settled(wall)
    assert wall.replies() == [("한국어", 1)]
    assert wall.attempts() == [("upstream", "cancelled", None, "the client left")]
    history: list[Any] = ["hi"]
    if echo:
        history.append({"role": "assistant", "content": "한국어"})
    heard = await wall.ask(*history, "go on")
    assert (heard.status, heard.text, heard.is_done) == (200, "はい。", True)
    assert wall.messages()[-1] == ("assistant", "はい。", 0)


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_a_client_that_leaves_while_it_waits(wall: Wall, streamed: bool) -> None:
    """F12: before the first byte, in both forms."""
    wall.upstream.play(Exchange((), "stall"), GOOD if streamed else wall.whole("はい。"))
    visit = wall.visit("hi", stream=streamed)
    await wall.upstream.asked()
    await visit.leave()
    await settled(wall)
    assert wall.messages() == [("user", "hi", 0)]
    assert wall.attempts() == [("upstream", "cancelled", None, "the client left")]
    heard = await wall.ask("still there?", stream=streamed)
    assert (heard.status, heard.text) == (200, "はい。")


async def test_a_client_that_leaves_the_line_holds_nobody_up(wall: Wall) -> None:
    """F12, F18: neither the one in front nor the one behind."""
    gate = asyncio.Event()
    wall.upstream.play(stream(role(), delta("1"), end("stop"), DONE, hold=gate), GOOD)
    first = wall.visit("one")
    await wall.upstream.asked()
    second, third = wall.visit("two"), wall.visit("three")
    await asyncio.sleep(0)
    await second.leave()
    gate.set()
    await asyncio.wait_for(asyncio.wait({first.work, third.work}), 10)
    assert (first.heard.text, third.heard.text) == ("1", "はい。")
    assert [said for role_, said, _ in wall.messages() if role_ == "user"] == ["one", "three"]
    assert len(wall.upstream.chats) == 2
