"""Asking a source for notes, over a real connection."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from gateway.backends.lookups import MOST_BYTES, MOST_NOTES, Found, LookupClient, LookupFailed
from policies.schema import Lookup
from tests.gateway.sources import Source

QUESTION = {"query": "鍵はどこ？🗝️", "conversation": "chat-1", "owner": "ann", "user": ""}


@pytest.fixture
async def client() -> AsyncIterator[LookupClient]:
    client = LookupClient()
    yield client
    await client.aclose()


async def ask(client: LookupClient, source: Source, **config: Any) -> tuple[Found, ...]:
    return await client.ask(Lookup(url=source.url, **config), QUESTION)


async def test_what_is_asked_and_what_is_told(client: LookupClient) -> None:
    notes = [
        {"text": "Kundin seit 2019", "who": "CRM", "when": "2019-05-01"},
        {"text": "彼女は左利き", "extra": [1]},
        {"text": "Она в Омске", "who": None},
    ]
    async with Source(*notes) as source:
        found = await ask(client, source)
    assert source.questions == [QUESTION]
    assert source.seen[0]["content-type"] == "application/json"
    assert found == (
        Found("Kundin seit 2019", "CRM", "2019-05-01"),
        Found("彼女は左利き"),
        Found("Она в Омске"),
    )


async def test_headers_travel_and_empty_ones_stay_at_home(client: LookupClient) -> None:
    async with Source() as source:
        await ask(client, source, headers={"Authorization": "Bearer geheim", "X-Empty": ""})
    assert source.seen[0]["authorization"] == "Bearer geheim"
    assert "x-empty" not in source.seen[0]


async def test_nothing_found_is_no_failure(client: LookupClient) -> None:
    async with Source({"text": "  \n"}, {}) as source:
        assert await ask(client, source) == ()


async def test_one_connection_serves_several_questions(client: LookupClient) -> None:
    async with Source({"text": "a"}) as source:
        assert await ask(client, source) == await ask(client, source) == (Found("a"),)
    await client.aclose()
    await client.aclose()


async def test_of_many_notes_the_first_are_read(client: LookupClient) -> None:
    async with Source(*({"text": f"note {at}"} for at in range(MOST_NOTES + 5))) as source:
        found = await ask(client, source)
    assert [note.text for note in found] == [f"note {at}" for at in range(MOST_NOTES)]


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"notes": {}}',
        b'{"notes": ["a"]}',
        b'{"notes": [{"text": 1}]}',
        b'{"notes": [{"text": "a", "who": ["b"]}]}',
        b'{"notes": [{"text": "a", "when": 20260304}]}',
        b'{"notes": []}' + b" " * MOST_BYTES,
    ],
)
async def test_an_answer_that_is_none_is_a_failure(client: LookupClient, answer: bytes) -> None:
    async with Source() as source:
        source.answer = answer
        with pytest.raises(LookupFailed) as caught:
            await ask(client, source)
    assert caught.value.kind == "answer"


@pytest.mark.parametrize("status", [204, 301, 401, 404, 500])
async def test_every_status_but_200_is_a_failure(client: LookupClient, status: int) -> None:
    async with Source({"text": "a"}) as source:
        source.status = status
        source.headers = {"Location": source.url}
        with pytest.raises(LookupFailed) as caught:
            await ask(client, source)
    assert caught.value.kind == "status"
    assert len(source.questions) == 1


async def test_a_silent_source_is_given_up_in_time(client: LookupClient) -> None:
    async with Source() as source:
        source.silent = True
        with pytest.raises(LookupFailed) as caught:
            await ask(client, source, timeout=0.05)
    assert caught.value.kind == "timeout"


async def test_nobody_there(client: LookupClient) -> None:
    async with Source() as source:
        pass
    with pytest.raises(LookupFailed) as caught:
        await ask(client, source)
    assert caught.value.kind == "unreachable"
