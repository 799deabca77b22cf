"""What an alignment reads of the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.store import tails, transcript
from gateway.store.engine import Store
from tests.gateway.databases import database_url
from tests.gateway.seeds import NOW, add_conversation, new_message

TALK = [{"role": "user" if at % 2 == 0 else "assistant", "content": f"m{at}"} for at in range(8)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(database_url(tmp_path / "tails.db"))
    store.open()
    return store


def test_a_tail_is_what_is_deeper(store: Store) -> None:
    _, nodes = store.writing(add_conversation, TALK)
    found = store.reading(tails.read_tail, nodes[-1].pk, 5)
    assert [(node.pk, node.depth, node.role) for node in found] == [
        (node.pk, node.depth, node.role) for node in nodes[5:]
    ]
    assert [node.content for node in found] == [node.content for node in nodes[5:]]
    assert [node.parent_pk for node in found] == [node.pk for node in nodes[4:-1]]
    assert store.reading(tails.read_tail, nodes[-1].pk, 8) == []
    store.close()


def test_messages_are_read_by_their_numbers(store: Store) -> None:
    _, nodes = store.writing(add_conversation, TALK)
    found = store.reading(tails.read_messages, [nodes[1].pk, nodes[4].pk])
    assert {pk: row.raw for pk, row in found.items()} == {
        nodes[1].pk: '{"role":"assistant","content":"m1"}',
        nodes[4].pk: '{"role":"user","content":"m4"}',
    }
    assert store.reading(tails.read_messages, []) == {}
    store.close()


def test_a_conversation_is_found_by_replies_that_the_gateway_gave(store: Store) -> None:
    """Those with most of them first, then the newest; what was only sent comes last; within the
    owner."""

    def give(connection: object, alias: str, owner: str, *texts: str, produced: bool = True) -> int:
        made, nodes = add_conversation(connection, TALK[:1], owner=owner, alias=alias)  # type: ignore[arg-type]
        for text in texts:
            message = {"role": "assistant", "content": text}
            nodes = transcript.append_messages(
                connection,  # type: ignore[arg-type]
                made,
                nodes[-1],
                [new_message(message, produced=produced)],
                NOW,
            )
        return made.pk

    one = store.writing(give, "c1", "ann", "a", "b")
    two = store.writing(give, "c2", "ann", "b")
    sent = store.writing(give, "c3", "ann", "a", "b", produced=False)
    store.writing(give, "c4", "bob", "a", "b")
    owner_pk = store.reading(transcript.find_owner, "ann", "")
    contents = [
        transcript.content_digest(new_message({"role": "assistant", "content": text}).canonical)
        for text in "ab"
    ]
    assert store.reading(tails.conversations_by_contents, owner_pk, contents) == [one, two, sent]
    assert store.reading(tails.conversations_by_contents, owner_pk, contents[:1]) == [one, sent]
    assert store.reading(tails.conversations_by_contents, owner_pk, ["x"]) == []
    store.close()
