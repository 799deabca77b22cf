"""Whatever an owner does to a memory, undoing each step brings back what was there."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from gateway.errors import Conflict
from gateway.flows import ledger_edits, memory_edits
from gateway.flows.hand import Hand
from gateway.store import chapter_rows, ledger
from gateway.store.ledger_report import read_ledger
from gateway.store.transcript import ConversationRow, Node, node_by_pk
from policies.values import Span
from tests.gateway.house import House
from tests.gateway.seeds import NOW, add_conversation, talk

TEXTS = st.sampled_from(["a", "б", "京", "a!", "👍", ""])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("edit"), TEXTS.filter(bool)),
        st.tuples(st.sampled_from(["pin", "unpin", "close", "reopen", "delete"]), st.just("")),
    ),
    max_size=8,
)


class Memory:
    """A conversation with one chapter and one thread, in a transaction that is rolled back."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.chat: ConversationRow
        self.nodes: list[Node]
        self.chat, self.nodes = add_conversation(connection, talk(2))
        first, last = self.nodes[0], self.nodes[1]
        self.chapter, _ = chapter_rows.add_chapter(
            connection, self.chat.pk, Span(1, 2, 20), first_pk=first.pk, last_pk=last.pk, now_ms=NOW
        )
        chapter_rows.add_version(
            connection,
            self.chat.pk,
            self.chapter,
            text="told",
            origin="model",
            backend=None,
            prompt=None,
            now_ms=NOW,
        )
        self.thread = ledger.add_entry(
            connection,
            self.chat.pk,
            kind="thread",
            text="asked",
            last_pk=last.pk,
            last_depth=2,
            origin="model",
            now_ms=NOW,
        )
        self.hand = Hand(self.chat, NOW)

    def text(self) -> str:
        row = chapter_rows.chapter_by_pk(self.connection, self.chat.pk, self.chapter)
        assert row is not None
        return str(row.text)

    def chapter_id(self) -> str:
        row = chapter_rows.chapter_by_pk(self.connection, self.chat.pk, self.chapter)
        assert row is not None
        return row.id

    def standing(self) -> list[tuple[Any, ...]]:
        """The threads that stand, as their owner sees them."""
        told = read_ledger(
            self.connection, self.chat, node_by_pk(self.connection, self.nodes[-1].pk)
        )
        return [
            (line["text"], line["name"], line["state"], line["pinned"])
            for line in told["threads"]
            if line["state"] != "superseded"
        ]


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with tempfile.TemporaryDirectory() as folder:
        built = House(Path(folder))
        yield built
        built.store.close()


SHARED = [HealthCheck.function_scoped_fixture]


@given(texts=st.lists(TEXTS, max_size=8))
@settings(max_examples=100, suppress_health_check=SHARED)
def test_every_text_of_a_chapter_comes_back(house: House, texts: list[str]) -> None:
    """The steps are the texts as they changed; going back to the one before is one step back."""
    with house.store._writer.connect() as connection:
        memory = Memory(connection)
        id, steps = memory.chapter_id(), ["told"]
        for text in texts:
            memory_edits.edit_chapter(connection, memory.hand, id, text)
            if len(steps) > 1 and steps[-2] == text:
                steps.pop()
            elif steps[-1] != text:
                steps.append(text)
        while len(steps) > 1:
            steps.pop()
            memory_edits.undo_chapter(connection, memory.hand, id, None)
            assert memory.text() == steps[-1]
        with pytest.raises(Conflict):
            memory_edits.undo_chapter(connection, memory.hand, id, None)
        connection.rollback()


def act(memory: Memory, id: str, name: str, text: str) -> str:
    """One step; the id of the entry that stands then."""
    connection, hand = memory.connection, memory.hand
    if name == "edit":
        return ledger_edits.edit_entry(connection, hand, id, {"text": text}).id
    if name == "delete":
        ledger_edits.delete_entry(connection, hand, id)
    else:
        ledger_edits.act(connection, hand, id, name)
    return id


@given(steps=STEPS)
@settings(max_examples=200, suppress_health_check=SHARED)
def test_every_act_on_an_entry_is_undone(house: House, steps: list[tuple[str, str]]) -> None:
    with house.store._writer.connect() as connection:
        memory = Memory(connection)
        before, id = memory.standing(), memory.thread.id
        for name, text in steps:
            try:
                id = act(memory, id, name, text)
            except Conflict:
                assert memory.standing() == []  # it is deleted: nothing else can be done to it
        for _ in range(len(steps) + 1):
            try:
                id = ledger_edits.undo_entry(connection, memory.hand, id).id
            except Conflict:
                break
        else:
            raise AssertionError("there is always one more step to undo")
        assert (memory.standing(), id) == (before, memory.thread.id)
        connection.rollback()
