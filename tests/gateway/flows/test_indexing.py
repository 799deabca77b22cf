"""The past is indexed behind the turns, a few messages a commit."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text

from gateway.flows.indexing import BATCH, BUSY_SECONDS, PAUSE_SECONDS, Indexing, Some, gather_some
from gateway.store import conversations, search
from gateway.store.transcript import ConversationRow, Node
from tests.gateway.house import House, user
from tests.gateway.seeds import add_conversation, extend


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path)
    yield house
    house.store.close()


def talk(house: House, count: int, owner: str = "ann") -> tuple[ConversationRow, list[Node]]:
    def add(connection: Connection) -> tuple[ConversationRow, list[Node]]:
        messages = [user(f"The key number {at} lies under a stone.") for at in range(count)]
        return add_conversation(connection, messages, owner=owner)

    return house.store.writing(add)


def indexing_of(house: House, running: int = 0) -> Indexing:
    return Indexing(house.store, house.clock, lambda: running)


def depth(house: House, conversation: ConversationRow, head: Node) -> int:
    return house.store.reading(search.indexed_depth, conversation.pk, head.pk)


async def test_a_path_is_indexed_up_to_the_message_that_is_wanted(house: House) -> None:
    conversation, nodes = talk(house, 2 * BATCH + 5)
    indexing = indexing_of(house)
    indexing.want(conversation.pk, nodes[-2].pk)
    await indexing.settle()
    assert depth(house, conversation, nodes[-1]) == 2 * BATCH + 4
    await indexing.settle()


async def test_several_conversations_are_taken_in_turn_and_the_newest_wish_counts(
    house: House,
) -> None:
    one, first = talk(house, 3)
    other, second = talk(house, BATCH)
    indexing = indexing_of(house)
    indexing.want(one.pk, first[0].pk)
    indexing.want(other.pk, second[-1].pk)
    indexing.want(one.pk, first[2].pk)
    await indexing.settle()
    assert depth(house, one, first[2]) == 3
    assert depth(house, other, second[-1]) == BATCH


async def test_every_branch_that_was_wanted_is_indexed(house: House) -> None:
    """One fold's past is not given up for that of another branch."""
    conversation, trunk = talk(house, 4)
    branches = [
        house.store.writing(
            extend, conversation, trunk[-1], [user(f"{tag} {at}") for at in range(9)]
        )
        for tag in ("Δάφνη", "雨", "бук")
    ]
    indexing = indexing_of(house)
    for branch in branches:
        indexing.want(conversation.pk, branch[4].pk)
        indexing.want(conversation.pk, branch[8].pk)
    await indexing.settle()
    for branch in branches:
        assert depth(house, conversation, branch[8]) == 13
    assert house.store.reading(rows_of_index) == 4 + 3 * 9


async def test_of_wishes_on_one_path_the_farthest_is_looked_at(house: House) -> None:
    conversation, nodes = talk(house, 9)
    (leaf,) = house.store.writing(extend, conversation, nodes[2], [user("другая ветвь")])
    ends = [node.pk for node in (nodes[8], leaf, nodes[2], nodes[5])]
    some = house.store.reading(gather_some, conversation.pk, ends, 99)
    assert some.ends == [nodes[8].pk, leaf.pk]
    assert some.batch is not None
    assert [entry.pk for entry in some.batch.entries] == [*(n.pk for n in nodes[:3]), leaf.pk]


async def test_what_was_deleted_is_left_alone(house: House) -> None:
    conversation, nodes = talk(house, 3)
    indexing = indexing_of(house)
    indexing.want(conversation.pk, nodes[-1].pk)
    indexing.forget(conversation.pk)
    await indexing.settle()
    assert depth(house, conversation, nodes[-1]) == 0
    assert house.store.reading(gather_some, conversation.pk + 1, [nodes[-1].pk], 5) == Some(None)


async def test_what_moved_while_words_were_read_is_not_indexed_over(house: House) -> None:
    conversation, nodes = talk(house, 9)
    first = house.store.reading(gather_some, conversation.pk, [nodes[-1].pk], 4).batch
    assert first is not None
    assert house.store.writing(search.index_path, conversation.pk, nodes[-1].pk, limit=2) == 2
    assert not house.store.writing(search.add, first)
    second = house.store.reading(gather_some, conversation.pk, [nodes[-1].pk], 4).batch
    assert second is not None
    assert [entry.pk for entry in second.entries] == [node.pk for node in nodes[2:6]]
    assert house.store.writing(search.add, second)
    assert not house.store.writing(search.add, second)
    assert depth(house, conversation, nodes[-1]) == 6


@pytest.mark.parametrize("indexed", [0, 3], ids=["never indexed", "partly indexed"])
async def test_words_of_a_deleted_conversation_do_not_come_back(house: House, indexed: int) -> None:
    conversation, nodes = talk(house, 9)
    house.store.writing(search.index_path, conversation.pk, nodes[-1].pk, limit=indexed)
    batch = house.store.reading(gather_some, conversation.pk, [nodes[-1].pk], 4).batch
    assert batch is not None
    house.store.writing(conversations.delete_conversation, conversation, elsewhere=[], now_ms=1)
    assert not house.store.writing(search.add, batch)
    assert house.store.reading(rows_of_index) == 0


def rows_of_index(connection: Connection) -> int:
    return int(connection.execute(text("SELECT count(*) FROM message_search")).scalar_one())


async def test_it_is_broken_off_at_the_end(house: House) -> None:
    conversation, nodes = talk(house, 3 * BATCH)
    indexing = indexing_of(house)
    indexing.want(conversation.pk, nodes[-1].pk)
    await indexing.aclose()
    assert depth(house, conversation, nodes[-1]) < 3 * BATCH


@pytest.mark.parametrize(("running", "pause"), [(0, PAUSE_SECONDS), (2, BUSY_SECONDS)])
async def test_turns_have_room_between_two_commits(
    house: House, running: int, pause: float
) -> None:
    conversation, nodes = talk(house, 3 * BATCH)
    indexing, began = indexing_of(house, running), house.clock.ms
    indexing.want(conversation.pk, nodes[-1].pk)
    await indexing.settle()
    # three full batches and the look that finds nothing more
    assert house.clock.ms - began == round(3 * 1_000 * pause)


async def test_what_fails_is_told_and_the_next_wish_is_heard(
    house: House, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation, nodes = talk(house, 3)
    indexing = indexing_of(house)
    write = house.store.write

    async def broken(*_: Any, **__: Any) -> None:
        raise ValueError("no")

    monkeypatch.setattr(house.store, "write", broken)
    indexing.want(conversation.pk, nodes[-1].pk)
    with caplog.at_level(logging.ERROR):
        await indexing.settle()
    assert "the past could not be indexed" in caplog.text
    monkeypatch.setattr(house.store, "write", write)
    indexing.want(conversation.pk, nodes[-1].pk)
    await indexing.settle()
    assert depth(house, conversation, nodes[-1]) == 3
