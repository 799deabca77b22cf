"""What is exported comes back as it was: the same lines, into another database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.errors import BadRequest
from gateway.flows.imports import import_lines
from gateway.store import profile_edits, transcript
from gateway.store.conversations import delete_conversation
from gateway.store.engine import Store
from gateway.store.export import export_lines, owner_lines
from tests.gateway.house import House, assistant, user
from tests.gateway.seeds import NOW, add_conversation
from tests.gateway.store.test_engine import busy_house
from tests.gateway.store.test_export import write_out


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Store]:
    folder = tmp_path / "other"
    folder.mkdir()
    store = Store(f"sqlite:///{folder}/f.db")
    store.open()
    yield store
    store.close()


def written(store: Store, id: str, owner: str = "local") -> list[str]:
    def read(connection: Connection) -> list[str]:
        owner_pk = transcript.find_owner(connection, owner, "")
        assert owner_pk is not None
        found = transcript.find_conversation(connection, owner_pk, id)
        assert found is not None
        return list(export_lines(connection, found))

    return store.reading(read)


def of_owner(store: Store) -> list[str]:
    def read(connection: Connection) -> list[str]:
        owner_pk = transcript.find_owner(connection, "local", "")
        assert owner_pk is not None
        return list(owner_lines(connection, owner_pk))

    return store.reading(read)


async def test_a_conversation_comes_back_line_for_line(tmp_path: Path, other: Store) -> None:
    """Folded and folded again, with chapters, gists, notes, attempts and branches."""
    house = House(tmp_path)
    await busy_house(house)
    await house.say(user("another way 👩‍🚀 \x00 \ud83d"), assistant("はい"), user("つづき"), id="c")
    lines = written(house.store, "c", "ann")
    done = import_lines(other, lines, owner=None, user="", now_ms=NOW)
    assert (len(done.conversations), done.refused) == (1, {})
    assert written(other, "c", "ann") == lines
    kinds = {json.loads(line)["type"] for line in lines}
    assert {"conversation", "message", "chapter", "fold", "gist", "attempt"} <= kinds
    house.store.close()


def test_all_that_stands_beside_comes_back(tmp_path: Path, other: Store) -> None:
    house = House(tmp_path)
    house.store.writing(write_out)
    lines = of_owner(house.store)
    import_lines(other, lines, owner=None, user="", now_ms=NOW)
    assert of_owner(other) == lines
    kinds = [json.loads(line)["type"] for line in lines]
    assert {"entry", "mark", "document", "note", "quarantine", "memory", "owner"} <= set(kinds)
    house.store.close()


def test_an_owner_comes_back_with_chains_across_chats_and_what_was_deleted(
    tmp_path: Path, other: Store
) -> None:
    house = House(tmp_path)
    with house.store._writer.begin() as connection:
        from tests.gateway.store.test_profile import Chats

        chats = Chats(connection)
        chats.owner = transcript.ensure_owner(connection, "local", "", NOW)
        one, two = chats.begin(), chats.begin()
        for number, chat in enumerate((one, two)):
            chats.now = NOW + number * 100
            nodes = chats.say(chat, f"I live in {'Kyoto Осака'.split()[number]}.")
            chats.learn(chat, nodes, ("home", f"Home: {'Kyoto Осака'.split()[number]}.", 0))
        own = profile_edits.add_fact(connection, chats.owner, "I hate rain.", None, NOW)
        profile_edits.delete_fact(connection, own, NOW + 900)
        profile_edits.add_fact(connection, chats.owner, "お茶が好き。", "drink", NOW)
    lines = of_owner(house.store)
    done = import_lines(other, lines, owner=None, user="", now_ms=NOW)
    assert (len(done.conversations), done.memories) == (2, 2)
    again = of_owner(other)
    assert again == lines
    told = [json.loads(line) for line in again if '"memory"' in line]
    assert {(one["state"], bool(one["replaces"])) for one in told} == {
        ("active", True),
        ("replaced", False),
        ("deleted", False),
        ("active", False),
    }
    house.store.close()


def test_what_is_here_already_is_refused_and_the_rest_comes_in(
    tmp_path: Path, other: Store
) -> None:
    house = House(tmp_path)
    for alias in ("a", "b"):
        house.store.writing(add_conversation, [user(f"hello {alias}")], alias=alias)
    lines = of_owner(house.store)
    import_lines(other, written(house.store, "a"), owner=None, user="", now_ms=NOW)
    done = import_lines(other, lines, owner=None, user="", now_ms=NOW)
    assert len(done.conversations) == len(done.refused) == 1
    assert written(other, "b") == written(house.store, "b")
    # Under another owner's name its id is taken too.
    again = import_lines(other, lines, owner="eve", user="", now_ms=NOW)
    assert len(again.refused) == 2
    house.store.close()


def test_it_becomes_whose_it_is_said_to_be(tmp_path: Path, other: Store) -> None:
    house = House(tmp_path)
    house.store.writing(add_conversation, [user("hello")], alias="a")
    lines = written(house.store, "a")
    import_lines(other, lines, owner="ada", user="mia", now_ms=NOW)
    owner_pk = other.reading(transcript.find_owner, "ada", "mia")
    assert owner_pk is not None
    found = other.reading(transcript.find_conversation, owner_pk, "a")
    assert found is not None
    other.writing(delete_conversation, found, elsewhere=(), now_ms=NOW)
    import_lines(other, lines, owner=None, user="", now_ms=NOW)
    assert written(other, "a") == lines
    house.store.close()


BROKEN = [
    ("not JSON", "Line 2 is not JSON"),
    ('{"type": "message"}', "Line 2 is no line of an export"),
    ('{"type": "song"}', "Line 2 is no line of an export"),
    ("[1]", "Line 2 is no line of an export"),
]


@pytest.mark.parametrize(("line", "words"), BROKEN)
def test_a_broken_line_is_named_and_nothing_of_its_chat_stored(
    tmp_path: Path, other: Store, line: str, words: str
) -> None:
    house = House(tmp_path)
    house.store.writing(add_conversation, [user("hello"), assistant("hi")], alias="a")
    lines = written(house.store, "a")
    with pytest.raises(BadRequest, match=words):
        import_lines(other, [lines[0], line, *lines[1:]], owner=None, user="", now_ms=NOW)
    assert other.reading(transcript.find_owner, "local", "") is None
    house.store.close()


def test_a_text_that_was_changed_is_refused(tmp_path: Path, other: Store) -> None:
    house = House(tmp_path)
    house.store.writing(add_conversation, [user("I owe Ann 5 €"), assistant("hi")], alias="a")
    lines = written(house.store, "a")
    forged = [line.replace("5 €", "9 €") for line in lines]
    with pytest.raises(BadRequest, match="Line 2 holds a message whose digest"):
        import_lines(other, forged, owner=None, user="", now_ms=NOW)
    with pytest.raises(BadRequest, match="Line 2 names a message that no line before it has"):
        import_lines(other, [lines[0], *lines[2:]], owner=None, user="", now_ms=NOW)
    with pytest.raises(BadRequest, match="Line 1 comes before any conversation"):
        import_lines(other, lines[1:], owner=None, user="", now_ms=NOW)
    old = json.dumps({**json.loads(lines[0]), "format": 1})
    with pytest.raises(BadRequest, match="format 1"):
        import_lines(other, [old], owner=None, user="", now_ms=NOW)
    house.store.close()


def test_a_name_that_is_taken_is_a_conflict_that_says_so(tmp_path: Path, other: Store) -> None:
    house = House(tmp_path)
    house.store.writing(add_conversation, [user("hello")], alias="my chat")
    other.writing(add_conversation, [user("other")], alias="my chat")
    done = import_lines(other, written(house.store, "my chat"), owner=None, user="", now_ms=NOW)
    assert "'my chat'" in next(iter(done.refused.values()))
    house.store.close()
