"""What a turn reads that waits for a move, or keeps a smaller view warm: never the history."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from gateway.flows import migrate, outlines, states
from gateway.flows.migrate import plan_next_gist
from gateway.store import chapter_rows, fold_rows, transcript
from policies.backlog import plan_backlog, plan_warm
from policies.budget import limits_of
from policies.values import Mark
from tests.gateway.flows.test_migrate import POLICIES, route, served, spans, talk, waits
from tests.gateway.house import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, POLICIES)


@contextmanager
def watching(module: Any, name: str) -> Iterator[list[Any]]:
    """What a function returned to whoever called it meanwhile."""
    real, seen = getattr(module, name), []

    def watch(*args: Any, **kwargs: Any) -> Any:
        seen.append(real(*args, **kwargs))
        return seen[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, watch)
        yield seen


def keep_warm(house: House) -> int | None:
    """What a turn's end plans for the small view at the newest message."""

    def plan(connection: Connection) -> int | None:
        return migrate.plan_warm_chapters(connection, site_of(connection, house))

    return house.store.writing(plan)


def site_of(connection: Connection, house: House) -> states.Site:
    conversation, policy = house.conversation("c"), house.ctx.policy("small")
    assert conversation.head_pk is not None
    head = transcript.node_by_pk(connection, conversation.head_pk)
    limits = limits_of(policy, 1.0)
    return states.Site(conversation, policy, limits, head, "revision", house.clock.ms)


async def test_a_turn_that_waits_reads_what_is_not_chaptered(house: House) -> None:
    await talk(house, 200)  # 200 x 209 = 41,800
    route(house, "local")
    with watching(transcript, "path_between") as first:
        await talk(house, 1)
    assert max(map(len, first)) > 400, "all of it is read once, to be cut into chapters"
    known = spans(house)
    with watching(transcript, "path_between") as read:
        said = await talk(house, 1)
    assert served(said)[:2] == ("cloud", "migrating")
    assert waits(said) == f"0/{len(known)}"
    # goal 1,800 and two turns of 209 are not chaptered, in messages of 9 and 200
    assert 0 < sum(map(len, read)) <= 2 * (1_800 // 209 + 3)
    assert spans(house) == known


async def test_stand_ins_of_a_whole_move_read_each_message_once(house: House) -> None:
    await talk(house, 300)
    route(house, "local")
    await talk(house, 1)

    def park(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE jobs SET state = 'parked'")

    house.store.writing(park)
    with watching(outlines.transcript, "path_between") as read:
        said = await talk(house, 1)
    assert waits(said) is not None or served(said)[0] == "local"
    assert house.one("SELECT count(*) FROM chapter_versions WHERE origin = 'stand-in'") > 30
    outlined = 2 * (1_800 // 209 + 3)
    # Its stand-ins read all 604 messages; the view that follows reads its tail again.
    assert sum(map(len, read)) <= 2 * 604 + 4 * outlined


async def test_a_warm_view_is_looked_at_from_its_newest_gist_on(house: House) -> None:
    """However long the conversation, behind the gist stand a stack's worth of chapters."""
    policy = house.ctx.policy("small")
    counts: list[int] = []
    for _ in range(2):
        for _ in range(130):
            await talk(house, 1, model="warmed")
            house.write_chapters()
            pk = house.conversation("c").pk
            payload = {"ahead": "small"}
            house.store.writing(plan_next_gist, pk, policy, payload, house.clock.ms)
            house.write_gists()
        with (
            watching(chapter_rows, "chapter_row") as whole,
            watching(transcript, "path_between") as tails,
            watching(chapter_rows, "chapter_ends") as behind,
        ):
            assert keep_warm(house) is None
        assert (whole, tails) == ([], [])
        (rows,) = behind
        counts.append(len(rows))
    assert len(spans(house)) > 20
    # a chapter costs some 50 characters, the stack 600
    assert max(counts) <= 600 // 40


async def test_a_view_that_has_become_cold_is_planned_from_its_last_chapter(house: House) -> None:
    for _ in range(60):
        await talk(house, 1, model="warmed")
        house.write_chapters()
    before = spans(house)
    with watching(transcript, "path_between") as tails:
        await talk(house, 20, model="warmed")
    assert spans(house)[: len(before)] == before
    assert len(spans(house)) > len(before)
    assert max(map(len, tails)) < 60, "the chaptered history is not read"


def check_outline(connection: Connection, house: House) -> None:
    """At the newest message an outline plans what the whole view plans."""
    site = site_of(connection, house)
    fold = fold_rows.deepest_fold(connection, site.conversation.pk, "small", site.head)
    state = states.load_state(connection, site, fold).state
    outline = outlines.load_outline(connection, site, fold)
    assert outline.state.total == state.total
    warm = plan_warm(site.limits, outline.state)
    assert (warm and outline.place(warm)) == plan_warm(site.limits, state)
    if not site.head.opens:
        state = replace(state, tail=(*state.tail, Mark(site.head.depth + 1, 0, opens=True)))
    assert migrate.plan_outlined(site, outline) == plan_backlog(site.limits, state)
