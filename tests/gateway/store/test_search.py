"""The index of recall: what it holds, on which paths, and that it goes with what it is of."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from gateway.store import search
from gateway.store.conversations import delete_conversation
from gateway.store.engine import Store
from gateway.store.transcript import ConversationRow, Node
from policies.recall.places import DEEPEST, read_place
from policies.recall.terms import index_terms
from tests.gateway.databases import database_url
from tests.gateway.seeds import NOW, add_conversation, extend

LINES = [
    {"role": "user", "content": "My grandmother left me a sapphire ring."},
    {"role": "assistant", "content": "Where do you keep the ring?"},
    {"role": "user", "content": [{"type": "text", "text": "在保险箱里。\ud83d"}]},
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "user", "content": "指輪を箱にしまった。 🎂"},
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(database_url(tmp_path / "x.db"))
    store.open()
    yield store
    store.close()


def lines(*texts: str) -> list[dict[str, object]]:
    return [
        {"role": "assistant" if at % 2 else "user", "content": said}
        for at, said in enumerate(texts)
    ]


def find(connection: Connection, conversation: ConversationRow, word: str) -> list[int]:
    """The depths of the messages that hold a word, on any branch, newest first."""
    index = search.find_index(connection, conversation.pk)
    assert index is not None
    (term,) = index_terms(word)
    return [depth for depth, _ in search.postings(connection, index, [term], 100).get(term, [])]


PLACES = {
    "sqlite": text("SELECT rowid FROM message_search ORDER BY rowid"),
    "postgresql": text("SELECT place FROM message_search ORDER BY place"),
}
TERMS = {
    "sqlite": text("SELECT terms FROM message_search ORDER BY rowid"),
    "postgresql": text(
        "SELECT string_agg(to_hex(term), ' ') FROM message_search JOIN message_terms USING (place)"
        " GROUP BY place ORDER BY place"
    ),
}


def kept_terms(connection: Connection) -> list[set[str]]:
    """What the index holds of each message, oldest first."""
    held = connection.execute(TERMS[connection.dialect.name]).scalars()
    return [set(terms.split()) for terms in held]


def rows(connection: Connection) -> int:
    return int(connection.execute(text("SELECT count(*) FROM message_search")).scalar_one())


def test_a_word_leads_to_the_messages_that_hold_it(store: Store) -> None:
    def check(connection: Connection) -> None:
        made, nodes = add_conversation(connection, LINES)
        assert search.find_index(connection, made.pk) is None
        assert search.index_path(connection, made.pk, nodes[-1].pk) == 5
        index = search.find_index(connection, made.pk)
        assert index is not None
        assert (index.messages, index.last_pk, index.last_depth) == (5, nodes[-1].pk, 5)
        found = search.postings(connection, index, ["ring", "保険", "指輪", "箱", "none"], 9)
        assert {term: [depth for depth, _ in hits] for term, hits in found.items()} == {
            "ring": [2, 1],
            "指輪": [5],
            "箱": [5, 3],
        }
        asked = read_place(found["ring"][0][1])
        assert (asked.pk, asked.depth, asked.by_user, asked.asks) == (nodes[1].pk, 2, False, True)
        told = read_place(found["ring"][1][1])
        assert (told.pk, told.depth, told.by_user, told.asks) == (nodes[0].pk, 1, True, False)
        assert search.postings(connection, index, ["ring"], 1)["ring"] == [found["ring"][0]]

    store.writing(check)


def test_what_is_indexed_is_not_indexed_again(store: Store) -> None:
    def check(connection: Connection) -> None:
        made, nodes = add_conversation(connection, lines("one", "two", "three", "four", "five"))
        assert search.indexed_depth(connection, made.pk, nodes[-1].pk) == 0
        assert search.index_path(connection, made.pk, nodes[1].pk) == 2
        assert search.indexed_depth(connection, made.pk, nodes[-1].pk) == 2
        assert find(connection, made, "four") == []
        assert search.index_path(connection, made.pk, nodes[4].pk, limit=2) == 2
        assert search.index_path(connection, made.pk, nodes[4].pk, limit=2) == 1
        assert search.index_path(connection, made.pk, nodes[4].pk, limit=2) == 0
        # An ancestor of what is indexed is indexed.
        assert search.index_path(connection, made.pk, nodes[2].pk) == 0
        assert search.indexed_depth(connection, made.pk, nodes[2].pk) == 3
        assert rows(connection) == 5

    store.writing(check)


def test_a_branch_adds_what_is_its_own(store: Store) -> None:
    def check(connection: Connection) -> None:
        made, trunk = add_conversation(
            connection, lines("root", "one", "two", "three", "four", "five", "six")
        )
        branch = extend(connection, made, trunk[2], lines("left", "right", "up"))
        search.index_path(connection, made.pk, trunk[-1].pk)
        # However deep another branch is indexed.
        assert not search.is_indexed(connection, branch[0].pk)
        # The path of the branch shares three messages with what was indexed.
        assert search.indexed_depth(connection, made.pk, branch[-1].pk) == 3
        assert search.index_path(connection, made.pk, branch[-1].pk) == 3
        assert search.indexed_depth(connection, made.pk, trunk[-1].pk) == 7
        assert search.index_path(connection, made.pk, trunk[-1].pk) == 0
        assert search.is_indexed(connection, trunk[-1].pk)
        assert search.is_indexed(connection, branch[-1].pk)
        assert find(connection, made, "left") == [4]
        assert find(connection, made, "three") == [4]
        other = extend(connection, made, None, lines("elsewhere"))
        assert search.indexed_depth(connection, made.pk, other[0].pk) == 0

    store.writing(check)


def test_an_index_ends_at_the_deepest_message_it_can_hold(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DEEPEST > 1_000_000
    monkeypatch.setattr(search, "DEEPEST", 2)

    def check(connection: Connection) -> None:
        made, nodes = add_conversation(connection, lines("one", "two", "three"))
        assert search.index_path(connection, made.pk, nodes[-1].pk) == 2
        assert search.index_path(connection, made.pk, nodes[-1].pk) == 0

    store.writing(check)


def test_conversations_and_owners_never_meet(store: Store) -> None:
    def check(connection: Connection) -> None:
        mine, my_nodes = add_conversation(connection, lines("the sapphire"))
        hers, her_nodes = add_conversation(connection, lines("so", "a sapphire"), owner="anna")
        search.index_path(connection, mine.pk, my_nodes[-1].pk)
        search.index_path(connection, hers.pk, her_nodes[-1].pk)
        assert find(connection, mine, "sapphire") == [1]
        assert find(connection, hers, "sapphire") == [2]
        first, _, last = kept_terms(connection)
        assert not first & last, "the same word is another one under another salt"

    store.writing(check)


def test_a_deletion_takes_its_search_rows_and_its_salt_along(store: Store) -> None:
    def fill(connection: Connection) -> tuple[ConversationRow, str]:
        gone, nodes = add_conversation(connection, lines("the sapphire", "of Naxos"))
        kept, others = add_conversation(connection, lines("the harbour"))
        search.index_path(connection, gone.pk, nodes[-1].pk)
        search.index_path(connection, kept.pk, others[-1].pk)
        index = search.find_index(connection, gone.pk)
        assert index is not None
        delete_conversation(connection, gone, elsewhere=[], now_ms=NOW)
        assert rows(connection) == 1
        assert search.find_index(connection, gone.pk) is None
        assert search.postings(connection, index, ["sapphir", "naxo"], 9) == {}
        assert find(connection, kept, "harbour") == [1]
        return gone, index.salt

    _, salt = store.writing(fill)
    assert store.checkpointing()
    if store.database.path is None:
        return  # when it leaves the server's files is the server's affair
    data = store.path.read_bytes()
    assert salt.encode() not in data, "what a token was made with is in no file"
    assert b"sapphire" not in data


def test_a_deletion_that_is_taken_back_leaves_the_index_as_it_was(store: Store) -> None:
    made, nodes = store.writing(lambda c: add_conversation(c, lines("the sapphire")))
    store.writing(search.index_path, made.pk, nodes[-1].pk)

    def fail(connection: Connection) -> None:
        delete_conversation(connection, made, elsewhere=[], now_ms=NOW)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        store.writing(fail)
    assert store.reading(find, made, "sapphire") == [1]


def test_an_index_is_forgotten_and_made_again(store: Store) -> None:
    def check(connection: Connection) -> None:
        made, nodes = add_conversation(connection, lines("the sapphire", "of Naxos"))
        other, others = add_conversation(connection, lines("the harbour"))
        search.index_path(connection, made.pk, nodes[-1].pk)
        search.index_path(connection, other.pk, others[-1].pk)
        before = search.find_index(connection, made.pk)
        search.forget(connection, made.pk)
        assert rows(connection) == 1
        assert search.find_index(connection, made.pk) is None
        assert search.index_path(connection, made.pk, nodes[-1].pk) == 2
        after = search.find_index(connection, made.pk)
        assert before is not None and after is not None and before.salt != after.salt
        assert find(connection, made, "naxos") == [2]

    store.writing(check)


def test_a_token_is_a_digest_under_the_salt() -> None:
    digest = hashlib.blake2b("寿司".encode(), key=b"salt", digest_size=6).hexdigest()
    assert search._tokens("salt", ["寿司"]) == [digest]


@pytest.mark.sqlite
def test_nothing_new_costs_one_read(store: Store) -> None:
    made, nodes = store.writing(lambda c: add_conversation(c, lines(*"abcdefgh")))
    store.writing(search.index_path, made.pk, nodes[-1].pk)
    seen: list[str] = []
    store.writing(
        lambda c: c.connection.dbapi_connection.set_trace_callback(seen.append)  # type: ignore[union-attr]
    )
    store.writing(search.index_path, made.pk, nodes[-1].pk)
    store.writing(lambda c: c.connection.dbapi_connection.set_trace_callback(None))  # type: ignore[union-attr]
    assert len([statement for statement in seen if statement.startswith("SELECT")]) == 1


words = st.lists(st.sampled_from(["cat", "dog", "猫", "寿司", "кот", "🎂"]), max_size=4).map(
    " ".join
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(words, min_size=1, max_size=12),
    st.lists(st.tuples(st.integers(0, 30), words), max_size=8),
    st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), min_size=1, max_size=8),
)
def test_whatever_is_indexed_in_whatever_order_every_path_is_whole_up_to_its_depth(
    store: Store,
    trunk: list[str],
    leaves: list[tuple[int, str]],
    asked: list[tuple[int, int]],
) -> None:
    def check(connection: Connection) -> None:
        made, nodes = add_conversation(connection, lines(*trunk))
        paths: list[list[Node]] = [nodes[:at] for at in range(1, len(nodes) + 1)]
        for where, said in leaves:
            under = paths[where % len(paths)]
            (leaf,) = extend(connection, made, under[-1], lines(said))
            paths.append([*under, leaf])
        for where, limit in asked:
            path = paths[where % len(paths)]
            before = search.indexed_depth(connection, made.pk, path[-1].pk)
            added = search.index_path(connection, made.pk, path[-1].pk, limit=limit)
            assert added == min(limit, len(path) - before)
            assert search.indexed_depth(connection, made.pk, path[-1].pk) == before + added
        held = {row >> 26 for row in connection.execute(PLACES[connection.dialect.name]).scalars()}
        index = search.find_index(connection, made.pk)
        assert index is not None
        mine = {node.pk for path in paths for node in path}
        assert index.messages == len(held & mine)
        for path in paths:
            depth = search.indexed_depth(connection, made.pk, path[-1].pk)
            assert [node.pk in held for node in path] == [at < depth for at in range(len(path))]

    store.writing(check)
