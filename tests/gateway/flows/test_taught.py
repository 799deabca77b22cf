"""What a chapter's deletion costs: its ledger is read once, however much of it goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from sqlalchemy import Connection, event

from gateway.flows import memory_edits
from gateway.store import ledger
from tests.gateway.flows.test_memory_edits_laws import house as house  # one for the module
from tests.gateway.house import House
from tests.gateway.seeds import NOW
from tests.gateway.store.test_profile_ties import Chat


@contextmanager
def reads_of(connection: Connection, table: str) -> Iterator[list[str]]:
    """The statements that read a table meanwhile."""
    heard: list[str] = []

    def hear(conn: object, cursor: object, sql: str, *more: object) -> None:
        if sql.startswith("SELECT") and f"FROM {table}" in sql:
            heard.append(sql)

    event.listen(connection, "before_cursor_execute", hear)
    try:
        yield heard
    finally:
        event.remove(connection, "before_cursor_execute", hear)


@pytest.fixture
def chat(house: House) -> Iterator[Chat]:
    with house.store._writer.connect() as connection:
        yield Chat(connection, "I have many things.", "The user owns a boat.")
        connection.rollback()


def tell(chat: Chat, count: int) -> None:
    for at in range(count):
        ledger.add_entry(
            chat.connection,
            chat.row.pk,
            kind="fact",
            text=f"The user owns thing {at}.",
            about=f"thing {at}",
            source_pk=chat.nodes[0].pk,
            last_pk=chat.nodes[0].pk,
            last_depth=1,
            chapter_pk=chat.chapter,
            origin="model",
            now_ms=NOW,
        )


@pytest.mark.parametrize("count", [0, 40])
def test_a_chapter_takes_its_entries_along_in_one_reading(chat: Chat, count: int) -> None:
    tell(chat, count)
    with reads_of(chat.connection, "ledger_entries") as gone:
        memory_edits.edit_chapter(chat.connection, chat.hand(), chat.chapter_id, "")
    assert chat.told() == set()
    with reads_of(chat.connection, "ledger_entries") as back:
        memory_edits.undo_chapter(chat.connection, chat.hand(2), chat.chapter_id, None)
    assert len(chat.told()) == count + 1
    # for its pin (once more as it comes back), and for what was told beside it
    assert (len(gone), len(back)) == (2, 3)
