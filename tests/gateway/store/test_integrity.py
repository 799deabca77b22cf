"""A database that is broken on purpose: what is wrong is found, and nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert

from gateway.flows.identity import without_thinking
from gateway.flows.new_messages import to_new_message
from gateway.store import chapter_rows, fold_rows, gist_rows, transcript
from gateway.store.attempts import begin_attempt
from gateway.store.conversations import delete_conversation, jobs
from gateway.store.engine import Store
from gateway.store.integrity import ADVICE, EXAMPLES, Examined, examine
from gateway.store.ledger_rows import entries, marks
from gateway.store.search import index_path
from gateway.store.tables.memory import Note, ProfileFact
from gateway.store.transcript import ConversationRow, Node
from policies.messages import canonical_message
from policies.values import Span
from tests.gateway.databases import database_url
from tests.gateway.seeds import NOW

pytestmark = pytest.mark.sqlite

notes = Note.__table__  # type: ignore[attr-defined]
facts = ProfileFact.__table__  # type: ignore[attr-defined]

SAID = (
    "船長は夜明けに港を出た。",
    "船长黎明时离开了港口。",
    "선장은 새벽에 항구를 떠났다.",
    "Капитан вышел из гавани на рассвете.",
    "El capitán salió del puerto al amanecer.",
    "The captain left at dawn. 🚢⚓",
    "<think>hm</think>Aye, 은하수!",
    "half an emoji \ud83d",
)


def chapter(
    connection: Connection, made: ConversationRow, path: list[Node], first: int, last: int
) -> tuple[int, int]:
    """(chapter, version)"""
    above = path[first - 1].cum_chars - path[first - 1].chars
    pk, _ = chapter_rows.add_chapter(
        connection,
        made.pk,
        Span(first, last, path[last - 1].cum_chars - above),
        first_pk=path[first - 1].pk,
        last_pk=path[last - 1].pk,
        now_ms=NOW,
    )
    more = {"text": "港 told", "origin": "model", "backend": None, "prompt": None, "now_ms": NOW}
    return pk, chapter_rows.add_version(connection, made.pk, pk, **more)  # type: ignore[arg-type]


def say(
    connection: Connection,
    made: ConversationRow,
    parent: Node | None,
    said: list[dict[str, Any]],
) -> list[Node]:
    """As a turn stores it."""
    new = [to_new_message(message, canonical_message(message), 3_000) for message in said]
    path = transcript.append_messages(connection, made, parent, new, NOW)
    transcript.touch_conversation(
        connection, made.pk, head_pk=path[-1].pk, model="foldgate", now_ms=NOW
    )
    return path


def converse(
    connection: Connection, owner: str, alias: str, said: list[dict[str, Any]]
) -> tuple[ConversationRow, list[Node]]:
    owner_pk = transcript.ensure_owner(connection, owner, "", NOW)
    made = transcript.create_conversation(
        connection, owner_pk, alias=alias, model="foldgate", now_ms=NOW
    )
    return made, say(connection, made, None, said)


def seed(connection: Connection) -> None:
    """Twenty messages in six languages, with a branch behind the twelfth; chapters 1-4, 5-8, 9-12
    and on the branch 13-14; a gist to 8; a fold at 17 that shows it and chapter 9-12."""
    said: list[dict[str, Any]] = [
        {"role": "user" if at % 2 == 0 else "assistant", "content": f"{SAID[at % 8]} {at}"}
        for at in range(20)
    ]
    said[2]["content"] = [
        {"type": "text", "text": "見て"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
    ]
    made, path = converse(connection, "local", "chat", said)
    branch = [*path[:12], *say(connection, made, path[11], said[:4])]
    versions = [chapter(connection, made, path, at, at + 3)[1] for at in (1, 5, 9)]
    first = connection.execute(chapter_rows.chapters.select()).first()
    assert first is not None
    chapter(connection, made, branch, 13, 14)
    gist = gist_rows.add_gist(
        connection,
        made.pk,
        policy="fold",
        last_pk=path[7].pk,
        last_depth=8,
        sources=versions[:2],
        text="要約",
        origin="model",
        backend=None,
        prompt=None,
        now_ms=NOW,
    )
    fact = {
        "conversation_pk": made.pk,
        "kind": "fact",
        "text": "Меня зовут Анна",
        "chapter_pk": first.pk,
        "version_pk": versions[0],
        "source_pk": path[0].pk,
        "last_pk": path[3].pk,
        "last_depth": 4,
        "origin": "model",
        "created_ms": NOW,
    }
    connection.execute(insert(entries), [{**fact, "id": "e1"}, {**fact, "id": "e2"}])
    connection.execute(
        insert(marks).values(
            conversation_pk=made.pk,
            entry_pk=1,
            mark="superseded",
            by_pk=2,
            last_pk=path[3].pk,
            last_depth=4,
            origin="model",
            created_ms=NOW,
        )
    )
    fold = fold_rows.add_fold(
        connection,
        made.pk,
        policy="fold",
        at=path[16],
        border=(path[11].pk, 12, path[11].cum_chars),
        kind="fold",
        gist_pk=gist,
        memory=[versions[2]],
        memory_chars=10,
        stand_ins=0,
        revision="r",
        now_ms=NOW,
        shown=fold_rows.Shown(pins=(2,)),
    )
    connection.execute(
        insert(notes).values(
            conversation_pk=made.pk,
            policy="fold",
            fold_pk=fold.pk,
            asked_pk=path[16].pk,
            asked_depth=17,
            kind="lines",
            body="[]",
            chars=0,
            created_ms=NOW,
        )
    )
    _work(connection, made, path, first.pk, gist, versions)
    system = transcript.ensure_system_text(connection, made.pk, "[]", NOW)
    begin_attempt(
        connection,
        conversation_pk=made.pk,
        asked_pk=path[16].pk,
        system_pk=system,
        fold_pk=fold.pk,
        backend="local",
        policy="fold",
        model="foldgate",
        boot="boot_1",
        view_kind="folded",
        state="running",
        started_ms=NOW,
    )
    index_path(connection, made.pk, path[11].pk)
    connection.execute(
        insert(facts).values(
            id="mem_1",
            owner_pk=made.owner_pk,
            conversation_pk=made.pk,
            text="我住在海边",
            origin="model",
            state="active",
            created_ms=NOW,
        )
    )
    converse(connection, "anna", "hers", said[:2])


def _work(
    connection: Connection,
    made: ConversationRow,
    path: list[Node],
    first: int,
    gist: int,
    versions: list[int],
) -> None:
    told = {
        "chapter:1": f'{{"chapter": {first}}}',
        "gist:1": f'{{"gist": {gist}, "chapters": [{versions[2]}], "last_pk": {path[11].pk},'
        ' "last_depth": 12}',
        "gist:2": f'{{"gist": null, "chapters": [], "last_pk": {path[7].pk}, "last_depth": 8}}',
    }
    for key, payload in told.items():
        connection.execute(
            insert(jobs).values(
                key=key,
                kind=key.partition(":")[0],
                conversation_pk=made.pk,
                state="queued",
                run_at_ms=NOW,
                attempts=0,
                policy="fold",
                payload=payload,
                created_ms=NOW,
                updated_ms=NOW,
            )
        )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(database_url(tmp_path / "foldgate.db"))
    made.open()
    made.writing(seed)
    return made


def found_after(store: Store, *statements: str) -> Examined:
    """What is found once another program, without foreign keys, did this."""
    with closing(sqlite3.connect(store.path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
    found = store.reading(examine)
    store.close()
    return found


def test_what_is_whole(store: Store) -> None:
    found = found_after(store)
    assert found.counts == {}
    assert found.looked == {"messages": 26, "chapters": 4, "folds": 1}
    assert found.as_json() == {"ok": True, "looked": found.looked, "findings": []}


def test_what_a_deletion_leaves_is_whole(store: Store) -> None:
    found = store.reading(transcript.find_conversation, 1, "chat")
    assert found is not None
    store.writing(delete_conversation, found, elsewhere=(), now_ms=NOW)
    assert found_after(store).counts == {}


BREAKS: dict[str, tuple[str, dict[str, int], str]] = {
    "a text": (
        "UPDATE messages SET raw = replace(raw, '港', '海') WHERE pk = 1",
        {"messages": 1},
        "its digest is not",
    ),
    "an id": ("UPDATE messages SET id = 'f00' WHERE pk = 5", {"messages": 1}, "its digest is not"),
    "a chain": ("UPDATE messages SET chain = 'f00' WHERE pk = 5", {"messages": 1}, "its digest"),
    "a content": ("UPDATE messages SET content = '' WHERE pk = 5", {"messages": 1}, "its digest"),
    "no JSON": ("UPDATE messages SET raw = '{' WHERE pk = 5", {"messages": 1}, "is no message"),
    "no object": ("UPDATE messages SET raw = '[]' WHERE pk = 5", {"messages": 1}, "is no message"),
    "a role": ("UPDATE messages SET role = 'user' WHERE pk = 6", {"messages": 1}, "of user"),
    "a sum": (
        "UPDATE messages SET cum_chars = cum_chars + 5 WHERE pk = 15",
        {"messages": 1},
        "its sums",
    ),
    "images": ("UPDATE messages SET cum_images = 0 WHERE pk = 3", {"messages": 1}, "its sums"),
    "tools": ("UPDATE messages SET cum_tools = 1 WHERE pk = 3", {"messages": 1}, "its sums"),
    "a parent": (
        "UPDATE messages SET parent_pk = 25 WHERE pk = 19",
        {"messages": 1},
        "the message before it is not there",
    ),
    "a skip pointer": (
        "UPDATE messages SET jump_pk = 2 WHERE pk = 20",
        {"messages": 1},
        "its skip pointer leads elsewhere",
    ),
    "its length": (
        "UPDATE messages SET jump_depth = jump_depth - 1 WHERE pk = 20",
        {"messages": 1},
        "its skip pointer has another length",
    ),
    "an owner of a message": (
        "UPDATE messages SET owner_pk = 2 WHERE pk = 20",
        {"owners": 1},
        "its owner is not",
    ),
    "an owner of an alias": (
        "UPDATE conversation_aliases SET owner_pk = 2 WHERE alias = 'chat'",
        {"owners": 1},
        "another owner's",
    ),
    "an owner of a fact": (
        "UPDATE profile_facts SET owner_pk = 2",
        {"owners": 1},
        "another owner's conversation",
    ),
    "a conversation": (
        "DELETE FROM conversations WHERE id IN (SELECT c.id FROM conversations c"
        " JOIN owners o ON o.pk = c.owner_pk WHERE o.name = 'anna')",
        {"foreign keys": 3},  # its alias and two messages
        "its row in conversations is not there",
    ),
    "a head": ("UPDATE conversations SET head_pk = 99 WHERE pk = 1", {"targets": 1}, "its head_pk"),
    "another's head": ("UPDATE conversations SET head_pk = 1 WHERE pk = 2", {"targets": 1}, "head"),
    "a span's size": (
        "UPDATE chapters SET source_chars = source_chars + 1 WHERE pk = 2",
        {"chapters": 1},
        "characters, its messages have",
    ),
    "a span's end": (
        "UPDATE chapters SET first_depth = 6, first_pk = 21, source_chars = 0 WHERE pk = 4",
        {"chapters": 1, "depths": 1},
        "are not one stretch",
    ),
    "a chapter in between": (
        "DELETE FROM chapters WHERE pk = 1",
        # its version; the chapter behind it; what tells of it
        {"foreign keys": 1, "chapters": 1, "targets": 3, "jobs": 1},
        "no chapter ends right before it",
    ),
    "a depth": ("UPDATE chapters SET last_depth = 5 WHERE pk = 1", {"depths": 1}, "its last_depth"),
    "a version": (
        "DELETE FROM chapter_versions WHERE pk = 2",
        {"targets": 1},
        "its sources names what is not in chapter_versions",
    ),
    "a gist's end": (
        "UPDATE gists SET last_pk = 7, last_depth = 7",
        {"gists": 1, "folds": 1},
        "no chapter ends where it does",
    ),
    "a gist": ("DELETE FROM gists", {"targets": 1, "folds": 1, "jobs": 1}, "names nothing"),
    "a gap in a view": (
        "UPDATE folds SET memory = '[]'",
        {"folds": 1},
        "its memory ends at message 8, its border is 12",
    ),
    "a view told twice": (
        "UPDATE folds SET memory = '[1, 2, 3]'",
        {"folds": 1},
        "message 1 comes behind 8",
    ),
    "another path's chapter": (
        "UPDATE folds SET memory = '[3, 4]', border_pk = 14, border_depth = 14,"
        " border_cum = (SELECT cum_chars FROM messages WHERE pk = 14)",
        {"folds": 1},
        "it shows what ends at message 14 of another path",
    ),
    "a border elsewhere": (
        "UPDATE folds SET border_pk = 24, border_depth = 16,"
        " border_cum = (SELECT cum_chars FROM messages WHERE pk = 24)",
        {"folds": 1},
        "its border, message 16, is not on the path",
    ),
    "a border's size": ("UPDATE folds SET border_cum = 1", {"folds": 1}, "it folds 1 characters"),
    "nothing folded": (
        "UPDATE folds SET border_pk = 0, border_depth = 0, border_cum = 0",
        {"folds": 1},
        "it folds nothing and shows chapters",
    ),
    "a memory": ("UPDATE folds SET memory = '['", {"targets": 1}, "its memory cannot be read"),
    "a pin": (
        "UPDATE folds SET shown = '{\"pins\": [2, 7]}'",
        {"targets": 1},
        "its shown names what is not in ledger_entries",
    ),
    "an entry": (
        "DELETE FROM ledger_entries WHERE id = 'e1'",
        {"foreign keys": 1, "targets": 1},  # its mark, seen by its key and by what it names
        "its entry_pk",
    ),
    "an entry's source": ("UPDATE ledger_entries SET source_pk = 26", {"targets": 2}, "source_pk"),
    "a note's fold": ("UPDATE notes SET fold_pk = 9", {"targets": 1}, "its fold_pk"),
    "a note's place": ("UPDATE notes SET asked_depth = 9", {"depths": 1}, "its asked_depth"),
    "an attempt's reply": ("UPDATE attempts SET reply_pk = 99", {"targets": 1}, "its reply_pk"),
    "a job's chapter": (
        "UPDATE jobs SET payload = '{\"chapter\": 99}' WHERE key = 'chapter:1'",
        {"jobs": 1},
        "its chapter is not there",
    ),
    "a job's message": (
        "UPDATE jobs SET payload = '{\"last_pk\": 26}' WHERE key = 'gist:1'",
        {"jobs": 1},
        "its last_pk is not there",
    ),
    "a posting of nothing": (
        "INSERT INTO message_search (rowid, terms) VALUES (99 << 26, 'x')",
        {"search": 1},
        "a message that is not there",
    ),
    "a posting elsewhere": (
        "UPDATE message_search SET rowid = rowid + 64 WHERE rowid >> 26 = 3",
        {"search": 1},
        "says another depth",
    ),
    "a posting that is lost": (
        "DELETE FROM message_search WHERE rowid >> 26 = 3",
        {"search": 1},
        "does not hold as many",
    ),
}


@pytest.mark.parametrize("what", BREAKS)
def test_each_break_is_found_alone(store: Store, what: str) -> None:
    statement, counts, says = BREAKS[what]
    found = found_after(store, statement)
    assert found.counts == counts
    told = [words for examples in found.examples.values() for _, words in examples]
    assert any(says in words for words in told), told
    for finding in found.as_json()["findings"]:
        assert finding["advice"] == ADVICE[finding["check"]]


def test_where_it_is_is_told(store: Store) -> None:
    found = found_after(store, "UPDATE messages SET cum_chars = 0 WHERE pk = 20")
    ((where, _),) = found.examples["messages"]
    assert where.startswith("message 20 of conv_")


def test_a_message_that_is_gone(store: Store) -> None:
    """Its child, its chapter, what was indexed: the trigger takes its posting."""
    found = found_after(store, "DELETE FROM messages WHERE pk = 6")
    assert {"messages", "chapters"} <= set(found.counts)
    assert found.counts["messages"] >= 1


def test_many_findings_are_counted(store: Store) -> None:
    found = found_after(store, "UPDATE messages SET chars = chars + 1")
    assert found.counts["messages"] == 26
    assert len(found.examples["messages"]) == EXAMPLES


def test_thinking_that_leaked(store: Store) -> None:
    """A reply is known by what it says without it, in whichever form it was stored."""
    said = {"role": "assistant", "content": "<think>だめ</think>はい"}
    made = store.reading(transcript.find_conversation, 1, "chat")
    assert made is not None and made.head_pk is not None
    head = store.reading(transcript.node_by_pk, made.head_pk)
    bare = canonical_message(without_thinking(said))
    new = [to_new_message(said, bare, 3_000)]
    store.writing(transcript.append_messages, made, head, new, NOW)
    assert found_after(store).counts == {}


def test_a_damaged_file(store: Store) -> None:
    store.checkpointing()
    store.close()
    held = bytearray(store.path.read_bytes())
    with closing(sqlite3.connect(store.path)) as connection:
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'messages'"
        ).fetchone()
    held[(root - 1) * page : root * page] = b"\xff" * page
    store.path.write_bytes(held)
    broken = Store(f"sqlite:///{store.path}")
    found = broken.reading(examine)
    broken.close()
    assert [*found.counts] == ["file"] and found.looked == {}
