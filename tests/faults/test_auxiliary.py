"""Requests that are no turns, before servers that break: the chat beside them stays as it was."""

from __future__ import annotations

import pytest

from tests.faults.conftest import Build
from tests.faults.server import DONE, Exchange, answer, delta, end, role, stream
from tests.faults.wall import Wall
from tests.gateway.backends.conftest import LITELLM_WARNS

pytestmark = LITELLM_WARNS

TITLE = {"x-foldgate-task": "title"}


def say(said: str) -> Exchange:
    return stream(role(), delta(said), end("stop"), DONE)


async def test_a_title_between_two_turns_moves_nothing_of_the_chat(build: Build) -> None:
    """C06: on a server with one slot the next turn's prompt is still the one before it and what is
    new, and a title's request is not sent as the chat's."""
    async with build(local=", slots: pinned") as wall:
        wall.upstream.routes["/props"] = answer(200, {"total_slots": 1})
        wall.upstream.play(say("おはよう。"), wall.whole("朝の挨拶"), say("元気です。"))
        await wall.ask("おはよう")
        heard = await wall.ask(
            {"role": "system", "content": "Name chats."},
            "おはよう",
            stream=False,
            headers=TITLE,
        )
        assert heard.json["choices"][0]["message"]["content"] == "朝の挨拶"
        assert heard.headers["x-foldgate-view"] == "passthrough"
        await wall.ask("元気?")
        first, _, second = [request.json["messages"] for request in wall.upstream.chats]
        assert second[: len(first)] == first
        assert [said for _, said, _ in wall.messages()] == [
            "おはよう",
            "おはよう。",
            "元気?",
            "元気です。",
        ]


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "whole"])
async def test_a_title_that_fails_leaves_no_trace_in_the_chat(wall: Wall, streamed: bool) -> None:
    wall.upstream.play(say("Hi."), answer(401, {"error": {"message": "no"}}), say("Yes."))
    await wall.ask("hi")
    heard = await wall.ask("hi", stream=streamed, headers=TITLE)
    assert (heard.status, heard.error and heard.error["code"]) == (502, "upstream_auth")
    assert (await wall.ask("still there?")).text == "Yes."
    assert len(wall.attempts()) == 2
    assert wall.rows("SELECT kind, state, error FROM auxiliary_requests") == [
        ("title", "failed", "auth")
    ]


async def test_a_title_is_served_by_another_tier_where_one_is_down(wall: Wall) -> None:
    wall.upstream.play(answer(503, {"error": {"message": "away"}}))
    wall.spare.play(say("Утро"))
    heard = await wall.ask("Доброе утро", model="two", headers=TITLE)
    assert (heard.text, heard.headers["x-foldgate-backend"]) == ("Утро", "spare")
    assert wall.messages() == []
