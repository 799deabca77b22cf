"""Routing at the surface: headers, tags, aliases, and POST /api/conversations/{id}/route."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.gateway.api.conftest import Door, Opener

POLICIES = """
version: 1
backends:
  one: {kind: scripted, latency: 0}
  two: {kind: scripted, latency: 0}
  far: {kind: litellm, model: deepseek/x, api_key: ""}
policies:
  fold: {}
models:
  talk:
    aliases: [chat]
    tiers:
      - {backend: one, policy: fold}
      - {backend: two, policy: fold}
      - {backend: far, policy: fold}
    rules:
      - {name: asked, when: {tag: two}, tier: two}
      - {name: mood, when: {header: {X-Mood: [dark, 暗い]}}, tier: two}
      - {name: annas, when: {owner: anna, user: u1}, tier: two}
"""


@pytest.fixture
async def routed(opened: Opener, tmp_path: Path) -> AsyncIterator[Door]:
    (tmp_path / "policies.yaml").write_text(POLICIES)
    async with opened(keys={"k1": "anna", "k2": "ben"}) as door:
        yield door


async def chat(door: Door, key: str = "k2", id: str = "c", **more: Any) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}", "x-conversation-id": id, **more.pop("headers", {})}
    body = {"model": "talk", "messages": [{"role": "user", "content": "¡Hola!"}], **more}
    return await door.client.post("/v1/chat/completions", json=body, headers=headers)


async def choose(door: Door, body: Any, key: str = "k2", id: str = "c") -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"}
    path = f"/api/conversations/{id}/route"
    if isinstance(body, bytes):
        return await door.client.post(path, content=body, headers=headers)
    return await door.client.post(path, json=body, headers=headers)


def served(answer: httpx.Response) -> tuple[str, str]:
    assert answer.status_code == 200, answer.text
    return answer.headers["x-foldgate-backend"], answer.headers["x-foldgate-rule"]


@pytest.mark.parametrize("stream", [False, True])
async def test_the_rule_is_told_in_a_header(routed: Door, stream: bool) -> None:
    assert served(await chat(routed, stream=stream)) == ("one", "first-healthy")
    tagged = {"x-foldgate-tag": "play, two"}
    assert served(await chat(routed, stream=stream, headers=tagged)) == ("two", "asked")
    assert served(await chat(routed, stream=stream)) == ("two", "home")


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"headers": {"X-MOOD": "dark"}}, "mood"),
        ({"headers": {"X-Mood": "Dark"}}, "first-healthy"),
        ({"metadata": {"tags": ["two"]}}, "asked"),
        ({"model": "chat"}, "first-healthy"),
        ({"key": "k1", "user": "u1"}, "annas"),
        ({"key": "k1", "user": "u2"}, "first-healthy"),
        ({"key": "k2", "user": "u1"}, "first-healthy"),
    ],
)
async def test_what_rules_look_at_comes_with_the_request(
    routed: Door, more: dict[str, Any], rule: str
) -> None:
    assert served(await chat(routed, **more))[1] == rule


async def test_aliases_are_listed_as_models(routed: Door) -> None:
    listed = (await routed.get("/v1/models", key="k2")).json()["data"]
    assert [model["id"] for model in listed] == ["talk", "chat"]
    assert (await routed.get("/v1/models/chat", key="k2")).json()["id"] == "chat"


async def test_a_backend_is_chosen_and_taken_back(routed: Door) -> None:
    await chat(routed)
    answer = await choose(routed, {"backend": "two"})
    assert answer.status_code == 200
    assert answer.json() == {
        "backend": "two",
        "policy": "fold",
        "rule": "route",
        "migration": None,
    }
    assert answer.headers["cache-control"] == "no-store"
    assert served(await chat(routed)) == ("two", "route")
    memory = (await routed.get("/api/conversations/c/memory", key="k2")).json()
    assert (memory["backend"], memory["route"], memory["migration"]) == ("two", "two", None)
    answer = await choose(routed, {"backend": None})
    assert answer.json() == {"backend": "two", "policy": "fold", "rule": "home", "migration": None}
    assert served(await chat(routed)) == ("two", "home")


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        (b"", 400, None, None),
        (b"{backend: two}", 400, "invalid_json", None),
        ([], 400, "invalid_json", None),
        ({}, 400, None, None),
        ({"backend": "two", "policy": "fold"}, 400, None, "policy"),
        ({"backend": 2}, 400, None, "backend"),
        ({"backend": "tow"}, 400, "backend_not_found", "backend"),
        ({"backend": "far"}, 503, "no_backend", "backend"),
    ],
)
async def test_what_cannot_be_chosen_is_told(
    routed: Door, body: Any, status: int, code: str | None, param: str | None
) -> None:
    await chat(routed)
    answer = await choose(routed, body)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)
    assert served(await chat(routed)) == ("one", "home")


async def test_anothers_conversation_is_a_404_whatever_the_body_says(routed: Door) -> None:
    """I05."""
    id = (await chat(routed)).headers["x-foldgate-conversation"]
    for body in ({"backend": "two"}, {"backend": "zzz"}, b"no json"):
        theirs = await choose(routed, body, key="k1", id=id)
        unknown = await choose(routed, body, key="k1", id="conv_" + "0" * 24)
        assert theirs.status_code == unknown.status_code == 404
        assert theirs.json()["error"] == unknown.json()["error"]
    assert served(await chat(routed)) == ("one", "home")
