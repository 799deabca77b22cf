"""Which conversation people mean."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.errors import Conflict
from gateway.store.callings import MOST_TOLD, find_called
from gateway.store.engine import Store
from tests.gateway.databases import database_url
from tests.gateway.seeds import add_conversation, talk


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    store = Store(database_url(tmp_path / "foldgate.db"))
    store.open()
    try:
        with store._writer.begin() as opened:
            yield opened
    finally:
        store.close()


def add(connection: Connection, user: str, alias: str | None = "X", owner: str = "ada") -> str:
    made, _ = add_conversation(connection, talk(1), owner=owner, user=user, alias=alias)
    return made.id


def called(connection: Connection, name: str, user: str = "", owner: str = "ada") -> str | None:
    found = find_called(connection, owner, user, name)
    return None if found is None else found.id


def test_nobody_calls_it_so(connection: Connection) -> None:
    assert called(connection, "X") is None
    hers = add(connection, "mia")
    assert called(connection, "Y") is None
    assert called(connection, "X", user="bob") is None
    assert called(connection, "X", owner="ben") is None
    assert called(connection, hers, owner="ben") is None


def test_one_of_ones_own_comes_first(connection: Connection) -> None:
    add(connection, "mia")
    own = add(connection, "")
    add(connection, "bob")
    assert called(connection, "X") == own


def test_the_only_user_who_calls_it_so(connection: Connection) -> None:
    hers = add(connection, "mia")
    add(connection, "bob", "Y")
    add(connection, "bob", "X", owner="ben")
    assert called(connection, "X") == hers


def test_several_users_call_it_so(connection: Connection) -> None:
    hers, his = add(connection, "mia"), add(connection, "船長")
    with pytest.raises(Conflict) as caught:
        called(connection, "X")
    assert caught.value.message == (
        f"2 users of ada call a conversation X: mia ({hers}), 船長 ({his}). "
        "Say which user's is meant, or name it by its own id."
    )
    assert caught.value.code == "ambiguous_conversation"
    assert (called(connection, "X", user="mia"), called(connection, "X", user="船長")) == (
        hers,
        his,
    )
    assert (called(connection, hers), called(connection, his)) == (hers, his)


def test_an_id_is_nobodys_alias(connection: Connection) -> None:
    """A user who calls a chat by another's id does not stand before it."""
    hers = add(connection, "mia")
    add(connection, "bob", hers)
    assert called(connection, hers) == hers
    assert called(connection, hers, user="mia") == hers


def test_so_many_that_not_all_are_told(connection: Connection) -> None:
    for number in range(MOST_TOLD + 2):
        add(connection, f"u{number:02d}")
    with pytest.raises(Conflict, match=r"^14 users of ada .* u11 \(conv_\w+\) and 2 more\. Say"):
        called(connection, "X")
