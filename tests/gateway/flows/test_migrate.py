"""Moving between a large view and a small one, and breaking off at any point."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from gateway.flows.erase import erase_conversation
from gateway.flows.migrate import plan_next_gist
from gateway.store import chapter_rows, gist_rows, transcript
from gateway.store.moves import Progress, find_progress
from tests.gateway.house import House, Said, user

POLICIES = """
version: 1
backends:
  cloud: {kind: scripted}
  local: {kind: scripted}
policies:
  small:
    view: {start: 3000, ceiling: 4000, headroom: 1200, keep: 600}
    chapters: {split: 1500, length: 100, stack: 600}
    gist: {length: 150}
    recall: {budget: 0}
  wide:
    view: {start: 100000, ceiling: 120000, headroom: 20000, keep: 50000}
  warm:
    view: {start: 100000, ceiling: 120000, headroom: 20000, keep: 50000}
    keep_warm: true
models:
  talk: {tiers: [{backend: cloud, policy: wide}, {backend: local, policy: small}]}
  here: {tiers: [{backend: local, policy: small}]}
  warmed: {tiers: [{backend: cloud, policy: warm}, {backend: local, policy: small}]}
"""

DELAY = 30_000


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, POLICIES)


async def talk(house: House, turns: int, *, size: int = 200, model: str = "talk") -> Said:
    """So many turns of `size` and 8 to 10 characters."""
    for number in range(turns):
        line = f"{number} «Где ключ?» 鍵はどこ? ¿Dónde está? " * 40
        said = await house.say(line[:size], id="c", model=model)
    return said


def route(house: House, backend: str | None) -> None:
    pk = house.conversation("c").pk
    house.store.writing(transcript.route_conversation, pk, backend)


def progress(house: House) -> Progress | None:
    return house.store.reading(find_progress, house.conversation("c"))


def served(said: Said) -> tuple[str, str, str]:
    """(backend, rule, view)."""
    prepared = said.turn.prepared
    return prepared.backend.name, prepared.begun.rule, said.view


def waits(said: Said) -> str | None:
    found = said.turn.prepared.begun.progress
    return None if found is None else str(found)


def spans(house: House) -> list[tuple[int, int, int]]:
    return house.rows(
        "SELECT first_depth, last_depth, source_chars FROM chapters ORDER BY first_depth"
    )


def check_whole(house: House, said: Said) -> None:
    """Gist, chapters and tail tell every message once."""
    begun = said.turn.prepared.begun

    def told(connection: Connection) -> list[int]:
        if begun.fold is None:
            return []
        gist = gist_rows.gist_by_pk(connection, begun.fold.gist_pk) if begun.fold.gist_pk else None
        depths = list(range(1, gist.last_depth + 1)) if gist else []
        for version in chapter_rows.versions_by_pk(connection, begun.fold.memory):
            depths += range(version.first_depth, version.last_depth + 1)
        return depths

    depths = house.store.reading(told)
    depths += range(begun.border + 1, begun.asked.depth + 1)
    assert depths == list(range(1, begun.asked.depth + 1))


# -- there and back ---------------------------------------------------------------------------


async def test_a_conversation_stays_until_all_of_its_backlog_is_told(house: House) -> None:
    await talk(house, 40)  # 40 x 209 = 8,360
    assert house.pending() == []
    route(house, "local")
    said = await talk(house, 1)
    assert served(said) == ("cloud", "migrating", "verbatim")
    # 3,000 - 1,200 = 1,800; 8,360 - (1,800 - 6 x 100 …) = about 7,000 in spans of 1,500
    rows = spans(house)
    assert 5 <= len(rows) <= 6
    assert rows[0][0] == 1
    assert all(second[0] == first[1] + 1 for first, second in pairwise(rows))
    assert max(chars for _, _, chars in rows) <= 1_500
    assert waits(said) == f"0/{len(rows)}"
    # due at once, not after the delay
    assert set(house.rows("SELECT run_at_ms FROM jobs")) == {(house.clock.ms,)}
    assert house.rings[-1] <= house.clock.ms
    assert house.conversation("c").backend == "cloud"

    chapter, conversation, _ = house.pending()[0]
    house.write(chapter, conversation)
    said = await talk(house, 1)
    assert (served(said)[:2], waits(said)) == (("cloud", "migrating"), f"1/{len(rows)}")
    assert spans(house) == rows, "what is asked for already is not asked for again"
    assert progress(house) == Progress(
        "local", "small", 1, len(rows), sum(chars for _, _, chars in rows)
    )

    house.write_chapters()
    said = await talk(house, 1)
    assert served(said) == ("local", "route", "folded")
    assert (waits(said), progress(house)) == (None, None)
    fold = said.turn.prepared.begun.fold
    assert fold is not None and fold.kind == "migration"
    assert sum(len(str(message["content"])) for message in said.prompt) <= 4_000
    assert house.conversation("c").backend == "local"
    check_whole(house, said)


async def test_there_and_back_and_there_again(house: House) -> None:
    await talk(house, 40)
    route(house, "local")
    await talk(house, 1)
    house.write_chapters()
    await talk(house, 1)
    folded = house.folds()
    route(house, "cloud")
    said = await talk(house, 2)
    assert served(said) == ("cloud", "route", "verbatim")
    assert len(said.prompt) == 2 * 43 + 1
    known = spans(house)
    route(house, "local")
    said = await talk(house, 1)
    # the fold of before serves: a little more was said, far below the ceiling
    assert served(said) == ("local", "route", "folded")
    assert house.folds() == folded
    assert spans(house)[: len(known)] == known
    check_whole(house, said)


async def test_a_view_below_the_ceiling_is_not_waited_for(house: House) -> None:
    await talk(house, 14)  # 2,926, and 200 more: above start, below the ceiling
    route(house, "local")
    said = await talk(house, 1)
    assert (served(said), waits(said)) == (("local", "route", "verbatim"), None)


async def test_naming_another_model_moves_too(house: House) -> None:
    await talk(house, 40)
    said = await talk(house, 1, model="here")
    # that model has no tier on which it could stay: it goes out under the ceiling, and says so
    assert served(said) == ("local", "first-healthy", "cut")
    check_whole(house, said)


async def test_it_goes_out_cut_where_the_old_backend_is_gone(house: House) -> None:
    await talk(house, 40)
    route(house, "local")
    house.cloud.healthy = False
    said = await talk(house, 1)
    assert served(said) == ("local", "route", "cut")
    assert waits(said) == "0/6"
    assert sum(len(str(message["content"])) for message in said.prompt) <= 4_000
    check_whole(house, said)
    house.write_chapters()
    said = await talk(house, 8)
    assert said.view in ("folded", "stand-in")


async def test_after_an_outage_it_comes_home_when_its_view_is_ready(house: House) -> None:
    """Its home is local; while that was gone much was said in the cloud."""
    await talk(house, 1, model="here")
    await talk(house, 1, model="talk")
    assert house.conversation("c").backend == "local"
    house.local.healthy = False
    said = await talk(house, 40)
    assert served(said)[0] == "cloud"
    assert house.conversation("c").backend == "local"
    house.local.healthy = True
    said = await talk(house, 1)
    assert served(said)[:2] == ("cloud", "migrating")
    assert house.conversation("c").backend == "local"
    house.write_chapters()
    said = await talk(house, 1)
    assert served(said) == ("local", "home", "folded")
    check_whole(house, said)


# -- breaking off -----------------------------------------------------------------------------


async def test_a_restart_amid_a_move_loses_nothing(house: House) -> None:
    await talk(house, 40)
    route(house, "local")
    said = await talk(house, 1)
    rows, before = spans(house), waits(said)
    house.restart()
    said = await talk(house, 1)
    assert (spans(house), waits(said)) == (rows, before)
    house.write_chapters()
    house.restart()
    said = await talk(house, 1)
    assert served(said)[0] == "local"
    check_whole(house, said)


async def test_a_change_of_mind_leaves_the_chapters(house: House) -> None:
    await talk(house, 40)
    route(house, "local")
    await talk(house, 1)
    rows = spans(house)
    route(house, None)
    assert progress(house) is not None, "what the newest turn waited for"
    said = await talk(house, 1)
    assert (served(said), waits(said), progress(house)) == (
        ("cloud", "home", "verbatim"),
        None,
        None,
    )
    house.write_chapters()
    route(house, "local")
    said = await talk(house, 1)
    assert served(said)[0] == "local"
    assert spans(house)[: len(rows)] == rows


async def test_an_edit_amid_a_move_takes_what_is_still_true(house: House) -> None:
    await talk(house, 40)
    route(house, "local")
    await talk(house, 1)
    rows = spans(house)
    house.write_chapters()
    told = house.told("c")
    # an edit in the third span: two chapters still lie on the path
    at = rows[2][0] + 1
    at -= at % 2
    edited = [{"role": role, "content": content} for role, content in told[:at]]
    again = [*edited, user("other " * 30)]
    for _ in range(12):
        said = await house.say(*again, id="c", model="talk")
        again += [{"role": "assistant", "content": said.text}, user("more " * 60)]
        if served(said)[0] == "cloud":
            house.write_chapters()
    assert served(said)[0] == "local"
    check_whole(house, said)
    assert {(first, last) for first, last, _ in rows[:2]} <= {row[:2] for row in spans(house)}


async def test_a_deletion_amid_a_move_leaves_nothing(house: House) -> None:
    await talk(house, 40)
    route(house, "local")
    await talk(house, 1)
    conversation = house.conversation("c")
    await erase_conversation(house.ctx, lambda connection: conversation)
    for table in ("jobs", "chapters", "folds", "messages"):
        assert house.one(f"SELECT count(*) FROM {table}") == 0
    policy = house.ctx.policy("small")
    house.store.writing(plan_next_gist, conversation.pk, policy, {"ahead": "small"}, 0)
    assert house.one("SELECT count(*) FROM jobs") == 0


async def test_work_that_was_given_up_gives_way_to_stand_ins(house: House) -> None:
    await talk(house, 40)
    route(house, "local")
    await talk(house, 1)

    def park(connection: Connection) -> None:
        connection.exec_driver_sql("UPDATE jobs SET state = 'parked'")

    house.store.writing(park)
    said = await talk(house, 1)
    assert served(said) == ("local", "route", "stand-in")
    fold = said.turn.prepared.begun.fold
    assert fold is not None and fold.kind == "migration"
    check_whole(house, said)


# -- sizes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("giant", [4_500, 60_000])
async def test_one_message_larger_than_the_budget(house: House, giant: int) -> None:
    await talk(house, 10)
    await talk(house, 1, size=1)
    await house.say("巨" * giant, id="c", model="talk")
    await talk(house, 10)
    route(house, "local")
    said = await talk(house, 1)
    assert served(said)[:2] == ("cloud", "migrating")
    large = [row for row in spans(house) if row[2] > 1_500]
    assert large == [(23, 23, giant)]
    house.write_chapters()
    said = await talk(house, 1)
    assert served(said) == ("local", "route", "folded")
    check_whole(house, said)


async def test_a_newest_message_that_is_itself_too_large(house: House) -> None:
    await talk(house, 14)
    route(house, "local")
    said = await house.say("巨" * 2_500, id="c", model="talk")
    # 2,926 + 2,500 > 4,000: it stays, and room is made
    assert served(said)[:2] == ("cloud", "migrating")
    house.write_chapters()
    said = await talk(house, 1)
    while served(said)[0] == "cloud":
        assert house.write_chapters() > 0, "it waits for something"
        said = await talk(house, 1)
    check_whole(house, said)


async def test_gists_come_ahead_of_the_view(house: House) -> None:
    """300 x 209 = 62,700: some 42 chapters of 50 characters and more each."""
    await talk(house, 300)
    route(house, "local")
    said = await talk(house, 1)
    count = len(spans(house))
    assert waits(said) == f"0/{count}"
    house.write_chapters()
    said = await talk(house, 1)
    # all chapters are written, and now their gist is missing
    assert (served(said)[1], waits(said)) == ("migrating", f"{count}/{count + 1}")
    ahead: list[Any] = []
    while served(said)[0] == "cloud":
        assert house.write_gists() == 1
        ahead.append(house.one("SELECT max(last_depth) FROM gists"))
        said = await talk(house, 1)
    assert ahead == sorted(set(ahead))
    fold = said.turn.prepared.begun.fold
    assert fold is not None
    assert (fold.kind, said.view) == ("migration", "folded")
    assert house.one("SELECT last_depth FROM gists WHERE pk = :pk", pk=fold.gist_pk) == ahead[-1]
    assert fold.memory_chars < 600 * 2 + 400
    check_whole(house, said)


async def test_the_next_gist_is_asked_for_without_a_turn(house: House) -> None:
    await talk(house, 300)
    route(house, "local")
    await talk(house, 1)
    conversation = house.conversation("c")
    policy = house.ctx.policy("small")
    payload = {"chapter": 1, "ahead": "small", "to": "local"}
    count = 0
    while house.write_chapters() or house.write_gists():
        house.store.writing(plan_next_gist, conversation.pk, policy, payload, house.clock.ms)
        count += 1
    assert count > 2
    said = await talk(house, 1)
    assert served(said) == ("local", "route", "folded")
    check_whole(house, said)


# -- kept warm --------------------------------------------------------------------------------


async def test_chapters_are_kept_warm_in_the_cloud(house: House) -> None:
    for _ in range(60):
        said = await talk(house, 1, model="warmed")
        assert served(said)[0] == "cloud"
        house.write_chapters()
    rows = spans(house)
    # 60 x 209 = 12,540: the first 1,500 when 3,000 are full, and so on
    assert len(rows) >= 6
    assert max(chars for _, _, chars in rows) <= 1_500
    assert house.folds() == []
    waited = house.rows("SELECT DISTINCT run_at_ms - created_ms FROM jobs WHERE kind = 'chapter'")
    assert waited == [(DELAY,)]
    # an outage costs one normal turn
    house.cloud.healthy = False
    said = await talk(house, 1, model="warmed")
    assert served(said) == ("local", "first-healthy", "folded")
    check_whole(house, said)


async def test_nothing_is_kept_warm_unasked(house: House) -> None:
    await talk(house, 60)
    assert house.one("SELECT count(*) FROM chapters") == 0
