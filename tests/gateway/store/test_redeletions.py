"""Law 10 over a backup: what its owner deleted since is deleted in the copy that is put back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from gateway.flows import ledger_edits, memory_edits
from gateway.flows.hand import Hand
from gateway.store import chapter_rows, documents, gist_rows, ledger, profile, profile_learning
from gateway.store.backups import DAY_MS, make_backup
from gateway.store.conversations import delete_conversation, find_anywhere
from gateway.store.engine import Store
from gateway.store.ledger_rows import EntryRow, state_of
from gateway.store.memory_report import gist_id
from gateway.store.message_ids import message_ids
from gateway.store.profile_learning import Told
from gateway.store.restores import restore
from gateway.store.transcript import ConversationRow, conversations
from tests.gateway.databases import database_url
from tests.gateway.seeds import NOW, add_conversation, add_memory, talk

pytestmark = pytest.mark.sqlite

LATER = NOW + DAY_MS
HOME, BOAT, VOW = "私は京都に住む。", "У меня есть лодка.", "We meet at the pier 🌉."
SECOND, TWIN = "second.md", "twin.md"


def seed(connection: Connection) -> str:
    """A chapter that told two facts, which the profile knows too, and a quote; its pin and its
    gist; documents."""
    chat, nodes = add_conversation(connection, talk(3))
    add_memory(connection, chat, nodes, text="灯台の章")
    chapter = chapter_rows.all_chapters(connection, chat.pk)[0]
    end, made = (nodes[1].pk, 2), {"chapter_pk": chapter.pk, "version_pk": chapter.version_pk}
    for at, (kind, text, about) in enumerate(
        [("fact", HOME, "home"), ("fact", BOAT, "boat"), ("quote", VOW, None)]
    ):
        ledger.add_entry(
            connection,
            chat.pk,
            kind=kind,  # type: ignore[arg-type]
            text=text,
            about=about,
            last_pk=end[0],
            last_depth=end[1],
            origin="model",
            now_ms=NOW,
            source_pk=nodes[at].pk,
            **made,
        )
    pin = ledger.add_entry(
        connection,
        chat.pk,
        kind="note",
        text="灯台の章",
        last_pk=end[0],
        last_depth=end[1],
        origin="owner",
        now_ms=NOW,
        **made,
    )
    ledger.add_mark(connection, chat.pk, pin.pk, "pinned", origin="owner", now_ms=NOW)
    for at, (text, about) in enumerate([(HOME, "home"), (BOAT, "boat")]):
        told = [Told(text, about, nodes[at].pk)]
        profile_learning.learn(
            connection, chat.owner_pk, chat.pk, told, span=[nodes[at].pk], now_ms=NOW
        )
    for name in ("first.md", SECOND, TWIN):
        documents.put_document(connection, chat.pk, name, f"text of {name}", NOW)
    connection.execute(update(conversations).values(renew_after=None))
    return chat.id


def find(connection: Connection, id: str) -> ConversationRow:
    chat = find_anywhere(connection, id)
    assert chat is not None
    return chat


def hand(connection: Connection, id: str) -> Hand:
    return Hand(find(connection, id), LATER)


def entry(connection: Connection, chat: ConversationRow, text: str) -> EntryRow:
    rows = [row for row, _ in ledger.all_entries(connection, chat.pk) if row.text == text]
    return rows[0]


def standing(connection: Connection, id: str) -> dict[str, Any]:
    """What is told to models, by kind."""
    chat = find(connection, id)
    return {
        "memories": {row.text for row in profile.active(connection, chat.owner_pk)},
        "entries": {
            row.text
            for row, marks in ledger.all_entries(connection, chat.pk)
            if state_of(row, marks).is_live
        },
        "chapters": [row.text for row in chapter_rows.all_chapters(connection, chat.pk)],
        "gists": [row.text for row in gist_rows.all_gists(connection, chat.pk)][-1],
        "documents": [row.name for row in documents.list_documents(connection, chat.pk)],
    }


# --- what an owner deletes -----------------------------------------------------------------------


def the_memory(connection: Connection, id: str) -> None:
    chat = find(connection, id)
    (fact,) = (row for row in profile.active(connection, chat.owner_pk) if row.text == HOME)
    memory_edits.delete_fact(connection, fact, LATER, now=True)


def the_entry(connection: Connection, id: str) -> None:
    chat = find(connection, id)
    ledger_edits.delete_entry(connection, hand(connection, id), entry(connection, chat, BOAT).id)


def the_quote(connection: Connection, id: str) -> None:
    chat = find(connection, id)
    ledger_edits.delete_entry(connection, hand(connection, id), entry(connection, chat, VOW).id)


def what_became_of_an_entry(connection: Connection, id: str) -> None:
    """It is not there in the copy: what stands there in its words of before is what goes."""
    row = entry(connection, find(connection, id), BOAT)
    for text in ("Tengo un barco.", "Tengo una barca."):
        row = ledger_edits.edit_entry(connection, hand(connection, id), row.id, {"text": text})
    ledger_edits.delete_entry(connection, hand(connection, id), row.id)


def the_chapter(connection: Connection, id: str) -> None:
    chapter = chapter_rows.all_chapters(connection, find(connection, id).pk)[0]
    memory_edits.edit_chapter(connection, hand(connection, id), chapter.id, "")


def the_gist(connection: Connection, id: str) -> None:
    chat = find(connection, id)
    gist = gist_rows.all_gists(connection, chat.pk)[-1]
    last = message_ids(connection, [gist.last_pk])[gist.last_pk]
    named = gist_id(chat.id, gist.policy, last)
    memory_edits.edit_gist(connection, hand(connection, id), named, "")


def a_document(connection: Connection, id: str) -> None:
    rows = documents.list_documents(connection, find(connection, id).pk)
    (row,) = (row for row in rows if row.name == SECOND)
    documents.remove_document(connection, row, LATER)


DELETED: dict[Callable[[Connection, str], None], str] = {
    the_memory: "memories",
    the_entry: "entries",
    the_quote: "entries",
    what_became_of_an_entry: "entries",
    the_chapter: "chapters",
    the_gist: "gists",
    a_document: "documents",
}


ALL = [act for act in DELETED if act is not the_entry]
"""What can be done one after the other."""


def put_back(
    tmp_path: Path, *acts: Callable[[Connection, str], None]
) -> tuple[Store, str, dict[str, Any], dict[str, Any]]:
    """A database of which a backup was made, acts, and the backup in its place; what stood before
    the acts, and after them."""
    store = Store(database_url(tmp_path / "foldgate.db"))
    store.open()
    id = store.writing(seed)
    make_backup(store.path, tmp_path / "copy.db", now_ms=NOW)
    before = store.reading(standing, id)
    for act in acts:
        store.writing(act, id)
    stood = store.reading(standing, id)
    store.close()
    restore(tmp_path / "copy.db", store.path, now_ms=LATER + 1, replace=True)
    back = Store(database_url(tmp_path / "foldgate.db"))
    back.open()
    return back, id, before, stood


@pytest.mark.parametrize("act", DELETED, ids=lambda act: act.__name__)
def test_what_is_deleted_does_not_come_back(
    tmp_path: Path, act: Callable[[Connection, str], None]
) -> None:
    back, id, before, stood = put_back(tmp_path, act)
    restored = back.reading(standing, id)
    assert restored == stood
    assert restored[DELETED[act]] != before[DELETED[act]]
    renewed = select(conversations.c.renew_after).where(conversations.c.id == id)
    assert back.reading(lambda connection: connection.execute(renewed).scalar()) is not None
    back.close()


def test_everything_at_once(tmp_path: Path) -> None:
    back, id, _, stood = put_back(tmp_path, *ALL)
    assert back.reading(standing, id) == stood
    assert stood == {
        "memories": set(),
        "entries": set(),
        "chapters": ["", None],
        "gists": "",
        "documents": ["first.md", TWIN],
    }
    back.close()


def test_what_was_not_deleted_stays(tmp_path: Path) -> None:
    """What was undone, put into other words or replaced comes back as it was copied."""

    def undo(connection: Connection, id: str) -> None:
        chat = find(connection, id)
        the_quote(connection, id)
        quote = entry(connection, chat, VOW)
        ledger_edits.undo_entry(connection, hand(connection, id), quote.id)
        the_chapter(connection, id)
        chapter = chapter_rows.all_chapters(connection, chat.pk)[0]
        memory_edits.undo_chapter(connection, hand(connection, id), chapter.id, None)

    def change(connection: Connection, id: str) -> None:
        chat = find(connection, id)
        boat = entry(connection, chat, BOAT)
        ledger_edits.edit_entry(connection, hand(connection, id), boat.id, {"text": "Bote."})
        documents.put_document(connection, chat.pk, TWIN, "another text", LATER)

    back, id, before, _ = put_back(tmp_path, undo, change)
    assert back.reading(standing, id) == before
    back.close()


def test_a_chapter_that_was_deleted_again_can_be_undone(tmp_path: Path) -> None:
    """With what it told, as where it was deleted first."""
    back, id, before, _ = put_back(tmp_path, the_chapter)

    def undo(connection: Connection) -> None:
        chapter = chapter_rows.all_chapters(connection, find(connection, id).pk)[0]
        memory_edits.undo_chapter(connection, hand(connection, id), chapter.id, None)

    back.writing(undo)
    assert back.reading(standing, id) == before
    back.close()


def learn_cat(connection: Connection, id: str) -> None:
    chat = find(connection, id)
    at = chapter_rows.all_chapters(connection, chat.pk)[1].last_pk
    told = [Told("Мою кошку зовут Муся.", "cat", at)]
    profile_learning.learn(connection, chat.owner_pk, chat.pk, told, span=[at], now_ms=LATER)


def test_what_was_learned_and_deleted_meanwhile_is_not_learned_again(tmp_path: Path) -> None:
    def learn_and_delete(connection: Connection, id: str) -> None:
        learn_cat(connection, id)
        chat = find(connection, id)
        (cat,) = (row for row in profile.active(connection, chat.owner_pk) if row.about == "cat")
        memory_edits.delete_fact(connection, cat, LATER, now=True)

    back, id, before, _ = put_back(tmp_path, learn_and_delete)
    back.writing(learn_cat, id)
    assert back.reading(standing, id) == before
    back.close()


def test_another_conversation_s_deletion_touches_nothing(tmp_path: Path) -> None:
    def other(connection: Connection, _id: str) -> None:
        made = seed(connection)
        for act in (the_quote, the_chapter, the_gist, a_document):
            act(connection, made)
        delete_conversation(connection, find(connection, made), elsewhere=(), now_ms=LATER)

    back, id, before, _ = put_back(tmp_path, other)
    assert back.reading(standing, id) == before
    back.close()
