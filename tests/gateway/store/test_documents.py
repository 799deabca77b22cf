"""Documents: what a view is to show, what stays for the views that stand, what goes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from gateway.policy_file import PolicyDocument
from gateway.store import documents, fold_rows, shown, transcript, wipes
from gateway.store.transcript import ConversationRow, Node
from tests.gateway.house import House
from tests.gateway.seeds import NOW, add_conversation, talk


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    house = House(tmp_path)
    with house.store._writer.begin() as connection:
        yield connection
    house.store.close()


def names(connection: Connection, chat: ConversationRow, policy: str = "small") -> list[str]:
    return [row.name for row in documents.for_view(connection, chat.pk, policy)]


def show(
    connection: Connection, chat: ConversationRow, at: Node, **what: list[int]
) -> fold_rows.FoldRow:
    """A fold of the policy `small` from this message on, that shows these rows."""
    fold = fold_rows.add_fold(
        connection,
        chat.pk,
        policy="small",
        at=at,
        border=(0, 0, 0),
        kind="opening",
        gist_pk=None,
        memory=[],
        memory_chars=10,
        stand_ins=0,
        revision="r",
        now_ms=NOW,
    )
    connection.execute(
        update(fold_rows.folds)
        .where(fold_rows.folds.c.pk == fold.pk)
        .values(shown=json.dumps(what))
    )
    return fold


def renews(connection: Connection, chat: ConversationRow) -> bool:
    found = transcript.conversation_by_pk(connection, chat.owner_pk, chat.pk)
    assert found is not None
    return found.renew_after is not None


def test_a_text_takes_the_place_of_the_one_of_its_name(connection: Connection) -> None:
    chat, _ = add_conversation(connection, talk(2))
    first, changed = documents.put_document(connection, chat.pk, "規則.md", "一\n二", NOW)
    assert (changed, first.chars, renews(connection, chat)) == (True, 3, True)
    documents.put_document(connection, chat.pk, "b", "B", NOW)
    again, changed = documents.put_document(connection, chat.pk, "規則.md", "一\n二", NOW + 1)
    assert (again, changed) == (first, False)
    new, changed = documents.put_document(connection, chat.pk, "規則.md", "三", NOW + 2)
    assert changed
    assert names(connection, chat) == ["b", "規則.md"]
    assert documents.documents_by_pk(connection, [new.pk, first.pk]) == [new]
    assert documents.total_chars(connection, chat.pk) == 2
    assert documents.total_chars(connection, chat.pk, besides="b") == 1


def test_what_a_view_shows_stays_until_it_folds(connection: Connection) -> None:
    chat, nodes = add_conversation(connection, talk(3))
    row, _ = documents.put_document(connection, chat.pk, "a", "A", NOW)
    show(connection, chat, nodes[0], documents=[row.pk])
    documents.remove_document(connection, row, NOW + 1)
    assert names(connection, chat) == []
    assert [one.text for one in documents.documents_by_pk(connection, [row.pk])] == ["A"]
    show(connection, chat, nodes[4], documents=[])
    assert documents.purge_removed(connection, chat.pk) == 1
    assert documents.documents_by_pk(connection, [row.pk]) == []


def test_what_is_emptied_leaves_word(connection: Connection) -> None:
    """So that its text goes from the WAL too, and other programs forget it."""
    chat, nodes = add_conversation(connection, talk(3))
    shown_one, _ = documents.put_document(connection, chat.pk, "a", "A", NOW)
    show(connection, chat, nodes[0], documents=[shown_one.pk])
    documents.remove_document(connection, shown_one, NOW + 1)
    assert wipes.newest_entry(connection) == 0  # a view shows it still
    row, _ = documents.put_document(connection, chat.pk, "b", "日本", NOW + 2)
    documents.remove_document(connection, row, NOW + 3)
    (word,) = wipes.deletions_after(connection, 0)
    assert (word.conversation_pk, word.conversation) == (None, "")


def test_a_view_on_another_branch_is_not_in_force(connection: Connection) -> None:
    chat, nodes = add_conversation(connection, talk(3))
    show(connection, chat, nodes[4], documents=[7], profile=[70])
    assert shown.pks_shown(connection, [chat.pk], "documents", [7, 70]) == {7}
    assert [one.shown for one in shown.folds_in_force(connection, [chat.pk])] == [
        {"documents": [7], "profile": [70]}
    ]
    transcript.touch_conversation(
        connection, chat.pk, head_pk=nodes[1].pk, model="foldgate", now_ms=NOW
    )
    assert shown.pks_shown(connection, [chat.pk], "documents", [7]) == set()
    assert shown.folds_showing(connection, [chat.pk], "documents", []) == []


def test_documents_of_policies_follow_the_file(connection: Connection) -> None:
    chat, _ = add_conversation(connection, talk(1))
    documents.put_document(connection, chat.pk, "own", "x", NOW)
    a, b = PolicyDocument("a.md", "А"), PolicyDocument("b.md", "日本")
    documents.keep_policy_documents(connection, {"small": [a, b], "wide": [b]}, NOW)
    assert names(connection, chat) == ["a.md", "b.md", "own"]
    assert names(connection, chat, "wide") == ["b.md", "own"]
    before = documents.for_view(connection, chat.pk, "small")
    changed = PolicyDocument("a.md", "Б")
    documents.keep_policy_documents(connection, {"small": [changed, b]}, NOW + 1)
    assert [row.text for row in documents.for_view(connection, chat.pk, "small")] == [
        "日本",
        "Б",
        "x",
    ]
    assert names(connection, chat, "wide") == ["own"]
    documents.keep_policy_documents(connection, {"small": [a, b], "wide": [b]}, NOW + 2)
    assert documents.for_view(connection, chat.pk, "small") == before
    assert names(connection, chat, "nobody's") == ["own"]


def test_another_conversation_has_none_of_it(connection: Connection) -> None:
    chat, _ = add_conversation(connection, talk(1))
    other, _ = add_conversation(connection, talk(1))
    documents.put_document(connection, chat.pk, "a", "A", NOW)
    assert names(connection, other) == []
    assert documents.list_documents(connection, other.pk) == []
