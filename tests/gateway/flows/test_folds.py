"""What a view takes in next is known when a reply ends, and nothing is written to know it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.flows.folds import foresee_fold
from gateway.flows.memories import show_memory, tell_memory
from gateway.flows.showings import Foreseen
from gateway.flows.turn import Turn
from gateway.flows.turn_rows import site_of
from gateway.flows.views import ViewCache
from gateway.store import fold_rows, transcript
from tests.gateway.house import House, assistant, user


def line(number: int) -> str:
    """341 characters; with a reply of 8 or 9 a turn is about 350."""
    return (f"{number} " + "Le phare s'éteint. 灯台の火が消えた。 " * 20)[:341]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def foresee(house: House, turn: Turn) -> Foreseen | None:
    """What a user message behind the newest message of the turn's conversation would see."""
    begun, setting = turn.prepared.begun, turn.prepared.setting

    def read(connection: Connection) -> Foreseen | None:
        head_pk = house.one("SELECT head_pk FROM conversations")
        head = transcript.node_by_pk(connection, head_pk)
        site = site_of(begun, setting, head, begun.ratio, house.clock.ms)
        fold = fold_rows.deepest_fold(connection, begun.conversation.pk, setting.policy.name, head)
        return foresee_fold(connection, site, fold)

    return house.store.reading(read)


@pytest.mark.parametrize("newest", [0, 1, 30, 1_900])
async def test_the_next_fold_is_known_whatever_is_said_next(house: House, newest: int) -> None:
    # 9 x 349 = 3,141 > 3,000: with the ninth turn the debt is asked for
    for number in range(9):
        said = await house.say(line(number), id="c")
        assert foresee(house, said.turn) is None, "the chapter is not there yet"
    house.write_chapters()
    before = len(house.folds())
    foreseen = foresee(house, said.turn)
    assert foreseen is not None
    assert len(house.folds()) == before == 0
    said = await house.say("x" * newest, id="c")
    fold = said.turn.prepared.begun.fold
    assert fold is not None
    assert (fold.border_depth, fold.gist_pk, fold.memory) == (
        foreseen.border_depth,
        foreseen.gist_pk,
        foreseen.versions,
    )
    told = house.store.reading(tell_memory, foreseen.gist_pk, foreseen.versions)
    assert told == house.store.reading(show_memory, fold, ViewCache())


async def test_a_cut_is_not_foreseen(house: House) -> None:
    """A message that brings the view to the ceiling is shown what its own size asks for."""
    for number in range(10):
        said = await house.say(line(number), id="c")
    # 3,491 of 4,000: nothing is ready, so the next one goes out whole or cut
    assert foresee(house, said.turn) is None
    said = await house.say("x" * 509, id="c")
    assert said.view == "cut"


TWO_A_TURN = """
version: 1
backends:
  local: {kind: scripted}
policies:
  small:
    view: {start: 12000, ceiling: 100000, headroom: 4000, keep: 2000}
    chapters: {split: 5000, length: 1100, stack: 6000}
    recall: {budget: 0}
models:
  foldgate: {tiers: [{backend: local, policy: small}]}
"""


@pytest.mark.parametrize("told", [None, 4])
async def test_debt_grows_with_whatever_a_turn_adds(tmp_path: Path, told: int | None) -> None:
    """A client that adds two messages a turn, 1,000 + 50, and is answered in 50: 500 characters
    behind a multiple of 1,100, where neither the newest message nor the reply passes one. told: how
    many messages of the past it sends again, None: all."""
    house = House(tmp_path, TWO_A_TURN)
    try:
        house.local.answers = [f"{number:050}" for number in range(60)]
        history = [user("x" * 500)]
        for number in range(30):
            history += [user(f"{number:01000}"), user(f"{number:050}")]
            past = 0 if told is None else max(0, len(history) - 2 - told)
            said = await house.say(*history[past:], id="c")
            history.append(assistant(said.text))
            chars = house.path("c")[-1].cum_chars
            assert chars == 500 + (number + 1) * 1_100
            asked_for = house.one("SELECT coalesce(sum(source_chars), 0) FROM chapters")
            # each turn passes a multiple of 1,100, and more than 12,000 - 4,000 / 2 waits for none
            if chars > 12_000:
                assert chars - asked_for <= 10_000
        assert house.folds() == []
    finally:
        house.store.close()
