"""A major GC that is undone: its chapters stand where the gist stood, from the next fold on."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection, text

from gateway.flows.undone import unfold
from gateway.store import documents, gist_rows
from gateway.store.fold_rows import FoldRow
from tests.gateway.house import House, Said

POLICIES = """
version: 1
backends:
  local: {kind: scripted}
policies:
  small:
    view: {start: 2400, ceiling: 3200, headroom: 900, keep: 300}
    chapters: {split: 900, length: 60, stack: 150}
    gist: {length: 100}
models:
  foldgate: {tiers: [{backend: local, policy: small}]}
"""


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path, POLICIES)


async def talk_on(house: House, gists: int) -> Said:
    """Until a fold shows the so-and-so-many-th gist."""
    for number in range(100):
        said = await house.say(f"{number} " + "ab " * 120, id="c")
        fold = fold_of(said)
        if fold is not None and fold.gist_pk is not None and fold.gist_pk >= gists:
            return said
        house.write_chapters()
        house.write_gists()
    raise AssertionError("no fold showed it")


def fold_of(said: Said) -> FoldRow | None:
    return said.turn.prepared.begun.fold


def undo(house: House, pk: int, *, now: bool = True) -> None:
    def write(connection: Connection) -> None:
        gist = gist_rows.gist_by_pk(connection, pk)
        assert gist is not None
        where = house.conversation("c").pk
        gist_rows.retire(connection, where, gist.policy, gist.last_pk, house.clock.ms)
        if now:
            documents.ask_anew(connection, [where])

    house.store.writing(write)


def told(said: Said) -> str:
    return str(said.prompt[1]["content"])


async def test_chapters_come_back_in_place_of_their_gist(house: House) -> None:
    before = await talk_on(house, 1)
    fold = fold_of(before)
    assert fold is not None and fold.gist_pk == 1
    assert "<earlier>" in told(before)
    undo(house, 1, now=False)
    same = await house.say("go on", id="c")
    assert same.bytes[: len(before.bytes)] == before.bytes, "law 4: not before the next fold"
    house.store.writing(documents.ask_anew, [house.conversation("c").pk])
    said = await house.say("and now", id="c")
    renewed = fold_of(said)
    assert renewed is not None
    assert (renewed.kind, renewed.gist_pk, renewed.border_pk) == ("renewal", None, fold.border_pk)
    assert "<earlier>" not in told(said)
    behind = house.rows("SELECT sources FROM gists")[0][0]
    assert list(renewed.memory)[: len(renewed.memory) - len(fold.memory)] == eval_list(behind)
    assert renewed.memory[-len(fold.memory) :] == fold.memory or not fold.memory


def eval_list(text: str) -> list[int]:
    return [int(one) for one in text.strip("[]").split(",")]


async def test_the_same_gc_is_not_made_again_and_a_later_one_is(house: House) -> None:
    before = await talk_on(house, 1)
    first = house.rows("SELECT last_depth FROM gists")[0][0]
    undo(house, 1)
    for number in range(60):
        said = await house.say(f"more {number} " + "ab " * 120, id="c")
        house.write_chapters()
        house.write_gists()
        fold = fold_of(said)
        assert fold is not None
        if fold.gist_pk is not None:
            break
    assert before is not said
    ends = [depth for (depth,) in house.rows("SELECT last_depth FROM gists ORDER BY pk")]
    assert ends[0] == first
    assert first not in ends[1:], "the stack has grown since"
    assert fold.gist_pk is not None


async def test_a_gist_that_stands_on_an_earlier_one_gives_way_to_it(house: House) -> None:
    await talk_on(house, 2)
    undo(house, 2)
    said = await house.say("and now", id="c")
    fold = fold_of(said)
    assert fold is not None and fold.gist_pk == 1
    undo(house, 1)
    said = await house.say("and again", id="c")
    fold = fold_of(said)
    assert fold is not None and fold.gist_pk is None
    sources = house.rows("SELECT sources FROM gists WHERE pk <= 2 ORDER BY pk")
    both = [pk for (one,) in sources for pk in eval_list(one)]
    assert list(fold.memory)[: len(both)] == both


async def test_both_may_be_undone_before_a_fold_shows_it(house: House) -> None:
    await talk_on(house, 2)
    undo(house, 1, now=False)
    undo(house, 2)
    said = await house.say("and now", id="c")
    fold = fold_of(said)
    assert fold is not None and fold.gist_pk is None
    sources = house.rows("SELECT sources FROM gists WHERE pk <= 2 ORDER BY pk")
    both = [pk for (one,) in sources for pk in eval_list(one)]
    assert list(fold.memory)[: len(both)] == both


async def test_what_a_gist_took_in_must_be_there(house: House) -> None:
    await talk_on(house, 1)
    undo(house, 1)
    pk = house.conversation("c").pk
    house.store.writing(lambda c: c.execute(text("UPDATE gists SET sources = '[]'")))
    with pytest.raises(RuntimeError, match="do not end at depth"):
        house.store.reading(unfold, pk, 1)
