"""The rows behind the prefix report, as they are answered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.store import attempts
from gateway.store.prefixes import read_prefixes
from tests.gateway.house import House, user
from tests.gateway.store.test_attempts import FINISHED


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = House(tmp_path)
    yield built
    built.store.close()


def read(house: House, limit: int = 10) -> list[dict[str, Any]]:
    pk = house.conversation("c").pk
    return house.store.reading(lambda connection: read_prefixes(connection, pk, limit=limit))


async def test_shares_are_of_the_prompt(house: House) -> None:
    turn = await house.open(user("灯台"), id="c")
    assert read(house) == [], "it has not ended"
    told = {
        **FINISHED,
        "prompt_tokens": 400,
        "cached_tokens": 300,
        "prompt_chars": 1_000,
        "expected_chars": 900,
        "moved_at": 3,
        "moved_by": "note",
        "slot": 1,
        "first_token_ms": 120,
        "queued_ms": 0,
    }
    house.store.writing(
        attempts.finish_attempt, turn.prepared.begun.attempt_pk, state="done", **told
    )
    (found,) = read(house)
    assert found.pop("id").startswith("att_")
    assert found == {
        "asked": turn.prepared.begun.asked.id,
        "at": "2027-01-15T08:00:01.000Z",
        "backend": "local",
        "policy": "small",
        "view": "verbatim",
        "state": "done",
        "slot": 1,
        "prompt_chars": 1_000,
        "expected_chars": 900,
        "prompt_tokens": 400,
        "cached_tokens": 300,
        "expected": 0.9,  # 900 / 1,000 characters
        "reused": 0.75,  # 300 / 400 tokens
        "moved_at": 3,
        "moved_by": "note",
        "first_token_ms": 120,
        "queued_ms": 0,
    }


async def test_what_is_not_known_is_none(house: House) -> None:
    await house.say("one", id="c")
    (found,) = read(house)
    assert (found["expected"], found["reused"]) == (None, None)


async def test_the_newest_are_first_and_bounded(house: House) -> None:
    for words in ("one", "two", "three"):
        await house.say(words, id="c")
    await house.say("elsewhere", id="d")
    asked = [row.id for row in house.path("c") if row.role == "user"]
    assert [turn["asked"] for turn in read(house, 2)] == [asked[2], asked[1]]
