"""Law 10: a conversation goes whole, out of every table, in one transaction, down to its bytes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import Connection

from gateway.flows import memory_edits
from gateway.flows.hand import Hand
from gateway.store import documents, ledger, notes, profile, profile_edits, profile_learning, search
from gateway.store.auxiliary import note_auxiliary
from gateway.store.profile_learning import Told
from gateway.store.transcript import ConversationRow, Node
from tests.gateway.api.conftest import Opener
from tests.gateway.api.test_conversations import files_of
from tests.gateway.seeds import NOW, add_conversation, add_memory, talk

WORD = "ORCHID-7"
OWNED_BY_NOBODY = {"owners", "kv_outbox", "policy_revisions", "boots", "alembic_version"}
"""Tables that hold nothing of one conversation alone."""


def fill(connection: Connection, *, alias: str, word: str) -> tuple[ConversationRow, list[Node]]:
    """A conversation that has a row in every table, the word in each that holds text."""
    said = [*talk(3), {"role": "user", "content": f"the word is {word} " * 2_000}]
    chat, nodes = add_conversation(connection, said, alias=alias)
    add_memory(connection, chat, nodes, text=f"They said {word}.")
    head = nodes[-1]
    entry = ledger.add_entry(
        connection,
        chat.pk,
        kind="thread",
        text=f"Who said {word}?",
        last_pk=nodes[1].pk,
        last_depth=2,
        origin="model",
        now_ms=NOW,
    )
    ledger.add_mark(connection, chat.pk, entry.pk, "pinned", origin="owner", now_ms=NOW)
    told = [Told(f"The user's word is {word}.", word, head.pk)]
    profile_learning.learn(connection, chat.owner_pk, chat.pk, told, span=[head.pk], now_ms=NOW)
    (fact,) = [
        row for row in profile.active(connection, chat.owner_pk) if row.conversation_pk == chat.pk
    ]
    profile_edits.edit_fact(connection, fact, f"My word is {word}!", word, NOW)
    documents.put_document(connection, chat.pk, word, f"{word} " * 2_000, NOW)
    body = {"text": f"{word} was said"}
    notes.add(
        connection,
        chat.pk,
        "local-fold",
        1,
        head,
        kind=notes.LINES,
        body=body,
        chars=20,
        now_ms=NOW,
    )
    search.index_path(connection, chat.pk, head.pk)
    (chapter, *_) = connection.exec_driver_sql(
        "SELECT id FROM chapters WHERE conversation_pk = ?", (chat.pk,)
    ).scalars()
    hand = Hand(chat, NOW)
    memory_edits.edit_chapter(connection, hand, chapter, f"In the owner's words: {word}.")
    memory_edits.resummarize(connection, hand, chapter, "local-fold")
    note_auxiliary(
        connection,
        owner_pk=chat.owner_pk,
        conversation_pk=chat.pk,
        kind="title",
        how="task",
        model="foldgate",
        backend="local-glm",
        state="done",
        started_ms=NOW,
    )
    return chat, nodes


def count_rows(database: Path) -> dict[str, int]:
    """Rows of every table that the file has, and of the index of recall."""
    connection = sqlite3.connect(database)
    try:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
            if not name.startswith("sqlite_") and not name.startswith("message_search_")
        ]
        return {
            name: connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in names
        }
    finally:
        connection.close()


async def test_every_table_is_left_without_a_row_of_it(opened: Opener, tmp_path: Path) -> None:
    async with opened() as door:
        empty = count_rows(tmp_path / "foldgate.db")
        gone, _ = door.store.writing(fill, alias="gone", word=WORD)
        full = count_rows(tmp_path / "foldgate.db")
        untouched = {name for name in full if full[name] == empty[name]}
        assert untouched <= OWNED_BY_NOBODY, "a table that no row of this test stands in"
        assert WORD.encode() in files_of(tmp_path / "foldgate.db")

        answer = await door.delete(f"/api/conversations/{gone.id}")

        assert answer.status_code == 200
        left = count_rows(tmp_path / "foldgate.db")
        more = {name: left[name] - empty[name] for name in left if left[name] != empty[name]}
        assert more == {"owners": 1, "kv_outbox": 1}
        assert WORD.encode() not in files_of(tmp_path / "foldgate.db")


async def test_what_another_conversation_holds_stays(opened: Opener, tmp_path: Path) -> None:
    async with opened() as door:
        door.store.writing(fill, alias="kept", word="TULIP-8")
        before = count_rows(tmp_path / "foldgate.db")
        memory = (await door.get("/api/conversations/kept/memory")).json()
        door.store.writing(fill, alias="gone", word=WORD)
        await door.delete("/api/conversations/gone")
        after = count_rows(tmp_path / "foldgate.db")
        assert after == {**before, "kv_outbox": before["kv_outbox"] + 1}
        kept = (await door.get("/api/conversations/kept/memory")).json()
        assert kept | {"jobs": None} == memory | {"jobs": None}
        found = (await door.get("/api/memories")).json()["memories"]
        assert [one["text"] for one in found] == ["My word is TULIP-8!"]
        assert WORD.encode() not in files_of(tmp_path / "foldgate.db")
