"""A gist that a model writes while its owner changes what it is made from, or the gist itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from gateway.flows.gist_jobs import load_gist, save_gist
from gateway.flows.hand import Hand
from gateway.flows.memory_edits import edit_chapter, edit_gist
from gateway.flows.rounds import Draft
from gateway.flows.upkeep_rows import Outcome, save_failure
from gateway.jobs import leases
from gateway.jobs.leases import Held
from gateway.store import chapter_rows, gist_rows
from gateway.store.memory_report import read_memory
from gateway.store.origins import find_origin
from tests.gateway.flows.test_undone import POLICIES
from tests.gateway.house import House

DRAFT = Draft("They told the word ORCHID-1.", "local", 1)


async def in_flight(folder: Path) -> tuple[House, Held]:
    """A conversation whose first gist is being written."""
    house = House(folder, POLICIES)
    for number in range(100):
        await house.say(f"{number} " + "ab " * 120, id="c")
        for chapter, conversation, _ in house.pending():
            house.write(chapter, conversation, f"Chapter {chapter}: the word is ORCHID-{chapter}.")
        if house.rows("SELECT 1 FROM jobs WHERE kind = 'gist' AND state = 'queued'"):
            break

    def claim(connection: Connection) -> Held:
        connection.execute(text("UPDATE jobs SET state = 'done' WHERE kind = 'chapter'"))
        connection.execute(text("UPDATE jobs SET backend = 'local', run_at_ms = 0"))
        [job] = leases.claim(
            connection,
            now_ms=house.clock.ms,
            lease="L",
            lease_ms=10**9,
            blocked=(),
            spare=set(),
            limit=5,
        )
        return Held(job, "L")

    return house, house.store.writing(claim)


def add_stand_in(house: House, held: Held) -> None:
    payload = held.job.payload
    house.store.writing(
        gist_rows.add_gist,
        held.job.conversation_pk,
        policy="small",
        last_pk=payload["last_pk"],
        last_depth=payload["last_depth"],
        sources=payload["chapters"],
        text="A stand-in.",
        origin="stand-in",
        backend=None,
        prompt=None,
        now_ms=1,
    )


def hand(house: House) -> Hand:
    return Hand(house.conversation("c"), house.clock.ms, True)


def edit_first(house: House, held: Held, words: str) -> None:
    told = house.store.reading(chapter_rows.versions_by_pk, held.job.payload["chapters"])
    rows = house.store.reading(chapter_rows.all_chapters, held.job.conversation_pk)
    [first] = [row for row in rows if row.pk == told[0].chapter_pk]
    house.store.writing(edit_chapter, hand(house), first.id, words)


def texts(house: House) -> list[str]:
    return [row[0] for row in house.rows("SELECT text FROM gists ORDER BY version")]


def states(house: House) -> list[tuple[str, Any]]:
    rows = house.rows("SELECT state, error_kind FROM jobs WHERE kind = 'gist' ORDER BY pk")
    return [(row[0], row[1]) for row in rows]


async def test_what_was_not_touched_is_stored(tmp_path: Path) -> None:
    house, held = await in_flight(tmp_path)
    assert house.store.writing(save_gist, held, DRAFT, house.clock.ms)
    assert (texts(house), states(house)[0][0]) == ([DRAFT.text], "done")


@pytest.mark.parametrize("words", ["", "Nothing was said."])
async def test_a_chapter_changed_meanwhile_makes_it_stale(tmp_path: Path, words: str) -> None:
    """Law 10: a job in flight brings nothing back. It is made anew, from what there is now."""
    house, held = await in_flight(tmp_path)
    edit_first(house, held, words)
    assert not house.store.writing(save_gist, held, DRAFT, house.clock.ms)
    assert (texts(house), states(house)[0]) == ([], ("queued", "stale"))


async def test_a_stand_in_made_of_what_was_changed_is_not_stored(tmp_path: Path) -> None:
    house, held = await in_flight(tmp_path)
    edit_first(house, held, "")
    failed = Outcome(None, "judged", "judged out", "ORCHID-1 was told.")
    assert not house.store.writing(save_failure, held, failed, house.clock.ms)
    assert texts(house) == []


def retire(house: House, held: Held) -> None:
    house.store.writing(
        gist_rows.retire,
        held.job.conversation_pk,
        "small",
        held.job.payload["last_pk"],
        house.clock.ms,
    )


def edit(house: House, _held: Held) -> None:
    memory = house.store.reading(read_memory, house.conversation("c"), default_policy=None)
    house.store.writing(edit_gist, hand(house), memory["gists"][0]["id"], "The owner's words.")


@pytest.mark.parametrize(
    ("act", "left"),
    [(retire, ["A stand-in."]), (edit, ["A stand-in.", "The owner's words."])],
)
async def test_what_its_owner_did_to_it_stays(
    tmp_path: Path, act: Callable[[House, Held], None], left: list[str]
) -> None:
    house, held = await in_flight(tmp_path)
    add_stand_in(house, held)
    act(house, held)
    assert not house.store.writing(save_gist, held, DRAFT, house.clock.ms)
    assert (texts(house), states(house)[0][0]) == (left, "done")


@pytest.mark.parametrize("origin", ["model", "owner"])
async def test_a_summarizer_is_shown_no_refusal(tmp_path: Path, origin: str) -> None:
    """Law 7: one that was stored before the judge knew better gives way to what was said, also
    where its owner had brought it back."""
    house, held = await in_flight(tmp_path)
    refusal = "I'm sorry, but I can't help with summarizing this conversation."
    (first,) = house.store.reading(chapter_rows.versions_by_pk, held.job.payload["chapters"][:1])
    for name in ("model", origin):
        house.write(first.chapter_pk, held.job.conversation_pk, refusal, name)
    (policy,) = house.ctx.policies.file.policies.values()
    origin_of = house.store.reading(find_origin, held.job.conversation_pk)
    assert origin_of is not None
    found = house.store.reading(load_gist, held.job, origin_of, policy)
    assert found is not None
    assert refusal not in found.notes
    assert found.notes[0].startswith("Assistant: Reply 1.")
    assert len(found.notes) == len(held.job.payload["chapters"])
