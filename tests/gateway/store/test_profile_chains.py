"""What stands again when something in a chain of replacements leaves it or comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from gateway.errors import Conflict
from gateway.flows import ledger_edits, memory_edits
from gateway.store import fold_rows, profile, profile_edits, profile_learning, transcript
from gateway.store.conversations import delete_conversation
from gateway.store.fold_rows import Shown
from gateway.store.profile import profile_facts
from gateway.store.profile_chains import chains_holding, settle
from gateway.store.profile_learning import Told
from tests.gateway.house import House, user
from tests.gateway.seeds import NOW, add_conversation
from tests.gateway.store.test_profile_ties import Chat

SIX = [
    ("The user lives in Kyoto.", "The user moved to Osaka."),
    ("京都に住んでいる。", "大阪に引っ越した。"),
    ("用户住在杭州。", "用户搬到了宁波。"),
    ("부산에 산다.", "서울로 이사했다."),
    ("Дом в Казани.", "Переехал в Нару."),
    ("Vive en Sevilla 🦌.", "Se mudó a Cádiz."),
]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    house = House(tmp_path)
    with house.store._writer.begin() as connection:
        yield connection
    house.store.close()


def show_all(connection: Connection, chat: Chat) -> None:
    """A fold in force of a chat that shows every fact there is."""
    rows = profile.all_of(connection, chat.row.owner_pk)
    fold_rows.add_fold(
        connection,
        chat.row.pk,
        shown=Shown(profile=tuple(row.pk for row in rows)),
        policy="p",
        at=chat.nodes[-1],
        border=(0, 0, 0),
        kind="opening",
        gist_pk=None,
        memory=[],
        memory_chars=0,
        stand_ins=0,
        revision="r",
        now_ms=NOW,
    )


def go_private(connection: Connection, older: Chat, newer: Chat) -> None:
    transcript.settle_conversation(connection, older.row.pk, backend=None, private=True)
    profile_edits.release_facts(connection, older.row)


def go_away(connection: Connection, older: Chat, newer: Chat) -> None:
    delete_conversation(connection, newer.row, elsewhere=(), now_ms=NOW + 9)


def be_undone(connection: Connection, older: Chat, newer: Chat) -> None:
    (fact,) = profile.active(connection, newer.row.owner_pk)
    with pytest.raises(Conflict):
        memory_edits.undo_fact(connection, fact, NOW + 9, now=False)


def be_rejected(connection: Connection, older: Chat, newer: Chat) -> None:
    (fact,) = profile.active(connection, newer.row.owner_pk)
    assert profile_edits.reject_fact(connection, fact.pk, NOW + 9)


End = Callable[[Connection, Chat, Chat], None]
ENDS: dict[End, bool] = {go_private: True, go_away: False, be_undone: True, be_rejected: False}


@pytest.mark.parametrize("is_shown", [True, False])
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize(("old", "new"), SIX)
def test_a_deleted_fact_stands_behind_nothing(
    connection: Connection,
    old: str,
    new: str,
    end: End,
    is_shown: bool,
) -> None:
    """A newer fact took its place, its owner deleted it, and then the newer one leaves."""
    older = Chat(connection, f"1 {old}", old)
    newer = Chat(connection, f"2 {new}", new)
    if is_shown:
        show_all(connection, older)
    assert newer.known() == {new}
    ledger_edits.delete_entry(connection, older.hand(), older.entries[0].id)
    end(connection, older, newer)
    assert newer.known() == ({new} if ENDS[end] else set())
    rows = profile.all_of(connection, newer.row.owner_pk)
    assert [row.text for row in rows if row.text == old] == [old] * is_shown
    assert all(row.text for row in rows if row.state != "deleted")


@pytest.mark.parametrize(("old", "new"), SIX)
@pytest.mark.parametrize("has_one_behind", [True, False])
def test_an_undone_deletion_gives_way_to_what_was_told_since(
    connection: Connection, old: str, new: str, has_one_behind: bool
) -> None:
    if has_one_behind:
        owner = transcript.ensure_owner(connection, "ann", "", NOW)
        profile_edits.add_fact(connection, owner, "I live in Nara.", "thing 0", NOW - 9)
    older = Chat(connection, f"1 {old}", old)
    ledger_edits.delete_entry(connection, older.hand(), older.entries[0].id)
    later, nodes = add_conversation(connection, [user(new)], owner="ann", now_ms=NOW + 2)
    told = [Told(new, "thing 0", nodes[0].pk)]
    where = (connection, later.owner_pk, later.pk, told)
    profile_learning.learn(*where, span=[nodes[0].pk], now_ms=NOW + 2)
    ledger_edits.undo_entry(connection, older.hand(3), older.entries[0].id)
    assert older.known() == {new}
    delete_conversation(connection, later, elsewhere=(), now_ms=NOW + 9)
    assert older.known() == {old}


def test_what_went_with_a_chapter_stays_gone_when_an_edit_of_it_is_undone(
    connection: Connection,
) -> None:
    chat = Chat(connection, "I own boats.", "The user owns boats.", "The user keeps a cat.")
    edit: dict[str, str | None] = {"text": "I own two boats."}
    edited = ledger_edits.edit_entry(connection, chat.hand(), chat.entries[0].id, edit)
    memory_edits.edit_chapter(connection, chat.hand(2), chat.chapter_id, "")
    assert chat.known() == chat.told() == {"I own two boats."}
    ledger_edits.undo_entry(connection, chat.hand(3), edited.id)
    assert chat.known() == chat.told() == set()
    memory_edits.undo_chapter(connection, chat.hand(4), chat.chapter_id, None)
    assert chat.known() == chat.told() == {"The user owns boats.", "The user keeps a cat."}


def test_two_facts_about_one_subject_go_one_by_one(connection: Connection) -> None:
    """One message told both: each has its own entry."""
    chat = Chat(connection, "A cat and a dog.", "Has a cat, Miso.", "Keeps two parrots.")
    connection.execute(update(profile_facts).values(about="pets"))
    ledger_edits.delete_entry(connection, chat.hand(), chat.entries[0].id)
    assert chat.known() == chat.told() == {"Keeps two parrots."}
    (fact,) = profile.active(connection, chat.row.owner_pk)
    memory_edits.delete_fact(connection, fact, NOW + 2, now=False)
    assert chat.known() == chat.told() == set()
    ledger_edits.undo_entry(connection, chat.hand(3), chat.entries[0].id)
    assert chat.known() == chat.told() == {"Has a cat, Miso."}


def test_two_that_stood_for_one_are_put_in_order(connection: Connection) -> None:
    """As rows of before this rule may be: both took the place of one and stand."""
    owner = transcript.ensure_owner(connection, "ann", "", NOW)
    rows = [
        profile_edits.add_fact(connection, owner, f"Fact {at}.", f"thing {at}", NOW + at)
        for at in range(3)
    ]
    behind = update(profile_facts).where(profile_facts.c.pk != rows[0].pk)
    connection.execute(behind.values(replaces_pk=rows[0].pk))
    (chain,) = chains_holding(connection, owner, [rows[0].pk])
    assert [row.text for row in chain] == ["Fact 2.", "Fact 1.", "Fact 0."]
    stands = settle(connection, chain)
    assert stands is not None and stands.text == "Fact 2."
    links = {row.pk: row.replaces_pk for row in profile.all_of(connection, owner)}
    assert links == {rows[2].pk: rows[1].pk, rows[1].pk: rows[0].pk, rows[0].pk: None}
    assert [row.text for row in profile.active(connection, owner)] == ["Fact 2."]
