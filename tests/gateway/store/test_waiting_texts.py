"""Law 10 over a backup: what was deleted by then is in no byte of it, whatever view shows it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import Connection, update

from gateway.errors import StorageFailed
from gateway.flows import memory_edits
from gateway.store import documents, profile, profile_edits, profile_learning
from gateway.store.backups import DAY_MS, make_backup
from gateway.store.conversations import find_anywhere
from gateway.store.engine import Store
from gateway.store.profile_learning import Told
from gateway.store.restores import restore
from gateway.store.transcript import conversations
from tests.gateway.databases import database_url
from tests.gateway.flows.test_memory_edits import shown
from tests.gateway.house import House
from tests.gateway.seeds import NOW, add_conversation, talk
from tests.gateway.store.test_backups import rows
from tests.gateway.store.test_documents import show

pytestmark = pytest.mark.sqlite

LATER = NOW + DAY_MS
WROTE, EDITED, TOLD = "私は切手を集める。", "Держу тритонов.", "우표 수집가의 비밀 🌉"
PAPER, REPLACED, KEPT = "灯台の規則" * 900, "El faro viejo", "文書は残る"
GONE = (WROTE, EDITED, TOLD, "灯台の規則", REPLACED)


def fact_of(connection: Connection, owner_pk: int, text: str) -> profile.ProfileRow:
    return next(row for row in profile.active(connection, owner_pk) if row.text == text)


def seed(connection: Connection) -> str:
    """`shows` shows what is deleted then, without `now`; `apart` shows nothing."""
    chat, nodes = add_conversation(connection, talk(3), alias="shows")
    add_conversation(connection, talk(1), alias="apart")
    owner = chat.owner_pk
    profile_edits.add_fact(connection, owner, WROTE, "切手", NOW)
    was = profile_edits.add_fact(connection, owner, EDITED, "newts", NOW)
    profile_edits.edit_fact(connection, was, "Держу рыб.", "newts", NOW + 1)
    profile_edits.add_fact(connection, owner, "茶が好き。", None, NOW)
    told = [Told(TOLD, "우표", nodes[0].pk)]
    profile_learning.learn(connection, owner, chat.pk, told, span=[nodes[0].pk], now_ms=NOW)
    for name, text in (("規則.md", PAPER), ("b.md", REPLACED), ("c.md", KEPT)):
        documents.put_document(connection, chat.pk, name, text, NOW)
    facts = [row.pk for row in profile.all_of(connection, owner)]
    papers = [row.pk for row in documents.list_documents(connection, chat.pk)]
    show(connection, chat, nodes[4], profile=facts, documents=papers)
    return chat.id


def delete(connection: Connection, id: str) -> None:
    chat = find_anywhere(connection, id)
    assert chat is not None
    for text in (WROTE, "Держу рыб.", TOLD):
        fact = fact_of(connection, chat.owner_pk, text)
        memory_edits.delete_fact(connection, fact, LATER, now=False)
    (paper,) = (
        row for row in documents.list_documents(connection, chat.pk) if row.name == "規則.md"
    )
    documents.remove_document(connection, paper, LATER)
    documents.put_document(connection, chat.pk, "b.md", "El faro nuevo", LATER)
    connection.execute(update(conversations).values(renew_after=None))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(database_url(tmp_path / "foldgate.db"))
    made.open()
    made.writing(delete, made.writing(seed))
    return made


def found_in(path: Path) -> list[str]:
    """Which of the deleted texts stand in the bytes of a file, as they are or as JSON has them."""
    held = path.read_bytes()
    forms = {text: (text.encode(), json.dumps(text)[1:-1].encode()) for text in GONE}
    return [text for text in GONE if any(form in held for form in forms[text])]


def test_a_copy_holds_nothing_that_waits_for_a_view(store: Store, tmp_path: Path) -> None:
    store.checkpointing()
    assert found_in(store.path) == [*GONE]
    target = tmp_path / "copy.db"
    manifest = make_backup(store.path, target, now_ms=LATER)
    assert found_in(target) == []
    assert rows(target, "SELECT text FROM documents ORDER BY pk") == [(KEPT,), ("El faro nuevo",)]
    told = rows(target, "SELECT text FROM profile_facts WHERE state = 'active'")
    assert told == [("茶が好き。",)]
    # Digests of what was learned, and of what its owner wrote, stay: neither is learned again.
    left = "SELECT text, about, source IS NOT NULL FROM profile_facts WHERE state = 'deleted'"
    assert rows(target, left) == [("", None, 1)] * 4
    assert manifest.counts["profile_facts"] == 5 and manifest.counts["documents"] == 2
    assert manifest.bytes == target.stat().st_size
    assert rows(target, "PRAGMA freelist_count") == [(0,)]
    assert rows(target, "PRAGMA integrity_check") == [("ok",)]
    assert target.stat().st_mode & 0o777 == 0o600
    made = {path.name for path in tmp_path.iterdir() if not path.name.startswith("foldgate.db")}
    assert made == {"copy.db", "copy.db.json"}, "no journal, no WAL"
    store.close()


def test_the_database_in_use_stays_as_it_is(store: Store, tmp_path: Path) -> None:
    every = ("profile_facts", "documents", "conversations", "folds", "kv_outbox")
    before = [rows(store.path, f"SELECT * FROM {name} ORDER BY pk") for name in every]
    make_backup(store.path, tmp_path / "copy.db", now_ms=LATER)
    assert [rows(store.path, f"SELECT * FROM {name} ORDER BY pk") for name in every] == before
    store.close()


def test_views_of_the_copy_that_showed_it_are_told_anew(store: Store, tmp_path: Path) -> None:
    asked = "SELECT renew_after IS NOT NULL FROM conversations ORDER BY pk"
    make_backup(store.path, tmp_path / "copy.db", now_ms=LATER)
    assert rows(store.path, asked) == [(0,), (0,)]
    assert rows(tmp_path / "copy.db", asked) == [(1,), (0,)]
    again = tmp_path / "again.db"
    make_backup(tmp_path / "copy.db", again, now_ms=LATER)
    assert rows(again, asked) == [(1,), (0,)], "nothing waits in a copy"
    store.close()


def test_a_database_from_before_there_was_a_memory(store: Store, tmp_path: Path) -> None:
    store.close()
    for name in ("profile_facts", "documents"):
        rows(store.path, f"DROP TABLE {name}")
    manifest = make_backup(store.path, tmp_path / "copy.db", now_ms=LATER)
    assert "documents" not in manifest.counts and manifest.counts["conversations"] == 2


def test_what_cannot_be_emptied_is_not_handed_over(store: Store, tmp_path: Path) -> None:
    store.close()
    rows(store.path, "ALTER TABLE documents RENAME COLUMN removed_ms TO taken_ms")
    with pytest.raises(StorageFailed, match="cannot be made: no such column"):
        make_backup(store.path, tmp_path / "copy.db", now_ms=LATER)
    assert [path.name for path in tmp_path.iterdir()] == ["foldgate.db"]


async def test_a_restored_chat_goes_on_without_it(tmp_path: Path) -> None:
    house = House(tmp_path)
    await house.say("hello", id="a")
    chat = house.conversation("a")
    fact = house.store.writing(profile_edits.add_fact, chat.owner_pk, WROTE, None, 1)
    house.store.writing(memory_edits.announce_fact, fact, now=True)
    paper, _ = house.store.writing(documents.put_document, chat.pk, "規則.md", PAPER[:50], 1)
    assert WROTE in (said := shown(await house.say("so", id="a"))) and PAPER[:50] in said
    house.store.writing(memory_edits.delete_fact, fact, house.clock.ms, now=False)
    house.store.writing(documents.remove_document, paper, house.clock.ms)
    copy, place = tmp_path / "copy.db", tmp_path / "back.db"
    make_backup(house.store.path, copy, now_ms=house.clock.ms)
    assert found_in(copy) == []
    house.store.close()
    restore(copy, place, now_ms=house.clock.ms)
    house.store = Store(f"sqlite:///{place}")
    house.store.open()
    house.restart()
    after = shown(await house.say("on", id="a"))
    assert WROTE not in after and PAPER[:50] not in after
    assert house.rows("SELECT kind FROM folds ORDER BY pk DESC LIMIT 1") == [("renewal",)]
    house.store.close()
