"""What an owner deleted of a chapter, on branches that leave inside its span."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.flows import ledger_edits, memory_edits
from gateway.flows.hand import Hand
from gateway.store import chapter_rows, ledger
from gateway.store.chapter_entries import add_entries
from gateway.store.ledger_rows import EntryRow
from gateway.store.transcript import Node
from policies.ledger.values import Claim, Entries, Fact, Quote, Thread
from tests.gateway.house import House
from tests.gateway.seeds import NOW
from tests.gateway.store.tree import Tree

SIX = [
    ("I live in Kyoto.", "The key of Kyoto is lost.", "Who has the key of Kyoto?"),
    ("京都に住んでいます。", "京都の鍵が無くなった。", "京都の鍵は誰が持っているのか。"),
    ("我住在杭州。", "杭州的钥匙丢了。", "谁拿着杭州的钥匙？"),
    ("저는 부산에 살아요.", "부산의 열쇠가 없어졌다.", "부산의 열쇠는 누가 갖고 있나?"),
    ("Я живу в Казани.", "Ключ от Казани пропал.", "У кого ключ от Казани?"),
    ("Vivo en Sevilla 🔑.", "La llave de Sevilla se perdió.", "¿Quién tiene la llave?"),
]


class Fork:
    """A chapter over the messages 2 to 6 of a trunk, and a branch that leaves it behind the
    fourth."""

    def __init__(self, house: House) -> None:
        self.connection = house.store._writer.connect()
        self.tree = Tree(self.connection)
        self.pk = self.tree.conversation.pk
        self.hand = Hand(self.tree.conversation, NOW + 5)

    def tell(self, path: list[Node], first: int, last: int, entries: Entries) -> list[EntryRow]:
        pk = self.tree.chapter(path, first, last, None)
        version = self.tree.version(pk, "told")
        row = chapter_rows.chapter_by_pk(self.connection, self.pk, pk)
        assert row is not None
        sources = [node.pk for node in path[first - 1 : last]]
        return add_entries(
            self.connection, self.pk, row, version, entries, sources=sources, now_ms=NOW
        )

    def chapter_id(self) -> str:
        return chapter_rows.all_chapters(self.connection, self.pk)[0].id

    def standing(self, path: list[Node]) -> set[str]:
        states = ledger.states_on_path(self.connection, self.pk, path[-1])
        return {state.row.text for state in states if state.is_live}


@pytest.fixture
def fork(tmp_path: Path) -> Iterator[Fork]:
    house = House(tmp_path)
    made = Fork(house)
    yield made
    made.connection.rollback()
    made.connection.close()
    house.store.close()


def told(fact: str, claim: str, thread: str, *, ago: int = 0) -> Entries:
    """All kinds, of the messages that are the third and fourth of a trunk. ago: by how much later
    the chapter begins."""
    return Entries(
        facts=(Fact(fact, "home", 1 - ago),),
        claims=(Claim("Mira", "Ann", claim, None, 2 - ago),),
        opened=(Thread(thread, 2 - ago),),
        quotes=(Quote(claim, "Mira", 2 - ago),),
    )


@pytest.mark.parametrize(("fact", "claim", "thread"), SIX)
def test_what_was_deleted_is_not_told_again_on_a_branch_inside_its_span(
    fork: Fork, fact: str, claim: str, thread: str
) -> None:
    trunk, branch = fork.tree.trunk, fork.tree.branch
    rows = fork.tell(trunk, 2, 6, told(fact, claim, thread))
    assert len(rows) == 4
    for row in rows:
        ledger_edits.delete_entry(fork.connection, fork.hand, row.id)
    fork.tell(branch, 3, 5, told(fact, claim, thread, ago=1))
    assert fork.standing(branch) == set()
    # what only the branch says is told, whatever it is like
    fork.tell(branch, 6, 8, told(fact, claim, thread))
    assert fork.standing(branch) == {fact, claim, thread}


@pytest.mark.parametrize(("fact", "claim", "thread"), SIX)
def test_what_went_with_a_chapter_stays_away_until_the_chapter_is_back(
    fork: Fork, fact: str, claim: str, thread: str
) -> None:
    trunk, branch = fork.tree.trunk, fork.tree.branch
    fork.tell(trunk, 2, 6, told(fact, claim, thread))
    memory_edits.edit_chapter(fork.connection, fork.hand, fork.chapter_id(), "")
    fork.tell(branch, 3, 5, told(fact, claim, thread, ago=1))
    assert (fork.standing(trunk), fork.standing(branch)) == (set(), set())
    fork.tell(trunk, 2, 6, told(fact, claim, thread))  # its owner asked for it again
    assert fork.standing(trunk) == {fact, claim, thread}
    fork.tell(branch, 3, 5, told(fact, claim, thread, ago=1))
    assert fork.standing(branch) == {fact, claim, thread}


def test_all_wordings_of_what_was_deleted_stay_away(fork: Fork) -> None:
    trunk, branch = fork.tree.trunk, fork.tree.branch
    (old,) = fork.tell(trunk, 2, 6, Entries(opened=(Thread("Who took the silver key?", 2),)))
    mended = ledger_edits.edit_entry(
        fork.connection, fork.hand, old.id, {"text": "Where did Bo go?"}
    )
    ledger_edits.delete_entry(fork.connection, fork.hand, mended.id)
    again = Entries(opened=(Thread("Who took that silver key?", 1), Thread("Where is Bo?", 1)))
    fork.tell(branch, 3, 5, again)
    assert fork.standing(branch) == set()


def test_an_undone_deletion_keeps_nothing_away(fork: Fork) -> None:
    trunk, branch = fork.tree.trunk, fork.tree.branch
    (row,) = fork.tell(trunk, 2, 6, Entries(opened=(Thread("Who took the key?", 2),)))
    ledger_edits.delete_entry(fork.connection, fork.hand, row.id)
    ledger_edits.undo_entry(fork.connection, fork.hand, row.id)
    fork.tell(branch, 3, 5, Entries(opened=(Thread("Who took the key?", 1),)))
    assert fork.standing(branch) == {"Who took the key?"}
