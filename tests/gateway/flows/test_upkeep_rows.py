"""Which due work is taken first."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.flows import upkeep_rows
from gateway.jobs import leases
from gateway.jobs.rows import JobRow
from gateway.store.origins import Origin
from tests.gateway.flows.test_migrate import POLICIES, route, talk
from tests.gateway.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, POLICIES)


def claim(house: House) -> list[str]:
    def choose(job: JobRow, origin: Origin) -> str:
        return "local"

    taken = house.store.writing(
        upkeep_rows.claim_due,
        choose=choose,
        now_ms=house.clock.ms,
        lease="boot.1",
        lease_ms=60_000,
        blocked=(),
        limit=8,
    )
    return [held.job.key for held in taken]


async def test_a_chapter_that_has_a_stand_in_waits_for_those_that_have_no_text(
    house: House,
) -> None:
    await talk(house, 40)
    route(house, "local")
    await talk(house, 1)
    pending = house.pending()
    for chapter, conversation, _ in pending[:-1]:
        house.write(chapter, conversation, origin="stand-in")
    last = pending[-1][0]
    assert claim(house) == [f"chapter:{last}"]
    assert claim(house) == [], "one a conversation at a time"
    for held in house.rows("SELECT pk, lease FROM jobs WHERE state = 'leased'"):
        house.store.writing(leases.complete, *held, house.clock.ms)
    assert claim(house) == [f"chapter:{pending[0][0]}"], "nothing without a text waits any more"


async def test_it_waits_for_none_that_waits_for_its_next_round(house: House) -> None:
    """Newcomers saw refused chapters run one at a time, each when the one before came due again."""
    await talk(house, 40)
    route(house, "local")
    await talk(house, 1)
    pending = house.pending()
    for chapter, conversation, _ in pending[:-1]:
        house.write(chapter, conversation, origin="stand-in")

    def postpone(pk: int) -> None:
        due_ms = house.clock.ms + 75_000  # the second wait, 60 s and a quarter
        house.store.writing(
            lambda connection: connection.exec_driver_sql(
                f"UPDATE jobs SET run_at_ms = {due_ms}, attempts = 2, state = 'queued', "
                f"lease = NULL WHERE key = 'chapter:{pk}'"
            )
        )

    postpone(pending[-1][0])  # one that nothing tells
    assert claim(house) == [f"chapter:{pending[0][0]}"]
    postpone(pending[0][0])  # one that has a stand-in, as the next
    assert claim(house) == [f"chapter:{pending[1][0]}"]
