"""Attempt rows: begun, ended once, abandoned, found again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.store import attempts
from tests.gateway.house import House, user


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = House(tmp_path)
    yield built
    built.store.close()


FINISHED = {
    "reply_pk": None,
    "finish_reason": "stop",
    "error": None,
    "prompt_tokens": 1,
    "cached_tokens": None,
    "completion_tokens": 2,
    "now_ms": 9,
}


async def two_running(house: House) -> list[int]:
    turns = [await house.open(user("hi"), id=id, key="k") for id in ("a",)]
    turns.append(await house.open(user("hi"), id="b"))
    return [turn.prepared.begun.attempt_pk for turn in turns]


async def test_an_attempt_ends_with_what_it_cost(house: House) -> None:
    first, second = await two_running(house)
    assert house.store.writing(attempts.finish_attempt, first, state="done", **FINISHED)
    assert house.rows(
        "SELECT state, finish_reason, completion_tokens FROM attempts ORDER BY pk"
    ) == [
        ("done", "stop", 2),
        ("running", None, None),
    ]
    assert not house.store.writing(attempts.finish_attempt, 99, state="done", **FINISHED)
    assert house.store.reading(attempts.is_there, second)
    assert not house.store.reading(attempts.is_there, 99)


async def test_only_what_runs_is_abandoned(house: House) -> None:
    first, second = await two_running(house)
    house.store.writing(attempts.finish_attempt, first, state="done", **FINISHED)
    for pk in (first, second):
        house.store.writing(attempts.abandon_attempt, pk, "the client left", 10)
    assert house.rows("SELECT state, error FROM attempts ORDER BY pk") == [
        ("done", None),
        ("cancelled", "the client left"),
    ]


async def test_those_of_the_dead_are_ended_and_of_the_living_are_not(house: House) -> None:
    await two_running(house)
    assert house.store.writing(attempts.abandon_dead, ["boot1"], 10) == 0
    assert house.store.writing(attempts.abandon_dead, ["boot2"], 10) == 2
    assert house.store.writing(attempts.abandon_dead, [], 10) == 0


async def test_a_key_leads_to_the_question_of_its_owner(house: House) -> None:
    await two_running(house)

    def look(connection: Connection, owner: int) -> object:
        return attempts.asked_by_key(connection, owner, "k")

    owner = house.conversation("a").owner_pk
    assert house.store.reading(look, owner) == (1, 1)
    assert house.store.reading(look, owner + 1) is None


async def test_another_view_for_what_was_not_sent(house: House) -> None:
    first, _ = await two_running(house)
    house.store.writing(
        attempts.reshape_attempt,
        first,
        fold_pk=5,
        view_kind="cut",
        memory_chars=3,
        verbatim_chars=4,
    )
    rows = house.rows(
        "SELECT fold_pk, view_kind, memory_chars, verbatim_chars FROM attempts ORDER BY pk"
    )
    assert rows == [(5, "cut", 3, 4), (None, "verbatim", 0, 2)]
