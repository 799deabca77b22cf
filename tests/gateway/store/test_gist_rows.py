"""Gists as rows: which of them a path uses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.store import gist_rows
from gateway.store.engine import Store
from gateway.store.transcript import Node
from tests.gateway.house import House
from tests.gateway.store.tree import Tree


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    house = House(tmp_path)
    yield house.store
    house.store.close()


def test_the_gist_that_covers_most_and_lies_on_the_path(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        tree.gist(tree.trunk, 3, text="to 3")
        tree.gist(tree.trunk, 6, text="to 6")
        tree.gist(tree.trunk, 6, text="to 6, again")
        tree.gist(tree.trunk, 9, policy="wide", text="another's")
        assert tree.newest_gist(tree.trunk, 10) == "to 6, again"
        assert tree.newest_gist(tree.trunk, 5) == "to 3"
        assert tree.newest_gist(tree.trunk, 2) is None
        assert tree.newest_gist(tree.branch, 10) == "to 3", "a branch under the gist"
        assert tree.newest_gist(tree.trunk, 10, ends={3, 8}) == "to 3"
        assert tree.newest_gist(tree.trunk, 10, ends=set()) is None

    store.writing(check)


def test_the_last_gist_of_a_path_is_found_beside_a_branchs(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        tree.gist(tree.trunk, 4, text="short")
        tree.gist(tree.trunk, 6, text="longer")
        tree.gist(tree.trunk, 6, text="newest 鍵")
        tree.gist(tree.branch, 8)
        tree.gist(tree.trunk, 8, policy="wide")
        pk = tree.conversation.pk

        def found(path: list[Node], depth: int) -> tuple[int, int] | None:
            end = gist_rows.last_gist_end(connection, pk, "small", path[depth - 1])
            return None if end is None else (end.last_depth, end.length)

        assert found(tree.trunk, 10) == (6, 8)
        assert found(tree.branch, 10) == (8, 4)
        assert found(tree.branch, 7) == (4, 5)
        assert found(tree.trunk, 3) is None
        assert gist_rows.gist_ends(connection, pk, "wide") == {tree.trunk[7].pk}

    store.writing(check)


def test_a_gist_that_was_undone_is_used_no_more(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        pk = tree.conversation.pk
        tree.gist(tree.trunk, 3, text="to 3")
        old = tree.gist(tree.trunk, 6, text="to 6")
        new = tree.gist(tree.trunk, 6, text="to 6, again")
        newest = gist_rows.newest_version(connection, old)
        assert newest is not None and newest.pk == new
        last = tree.trunk[5].pk
        assert gist_rows.retired_at(connection, pk, "small", last) is None
        gist_rows.retire(connection, pk, "small", last, 5)
        undone = gist_rows.retired_at(connection, pk, "small", last)
        assert undone is not None and (undone.pk, undone.retired_ms) == (new, 5)
        assert tree.newest_gist(tree.trunk, 10) == "to 3"
        ahead = gist_rows.gists_beyond(
            connection, pk, "small", tree.trunk[-1], border=0, ends={3, 6}
        )
        assert [gist.text for gist in ahead] == ["to 3"]
        end = gist_rows.last_gist_end(connection, pk, "small", tree.trunk[-1])
        assert end is not None and end.last_depth == 3
        # what is made there later is no longer undone
        tree.gist(tree.trunk, 6, text="anew")
        assert gist_rows.retired_at(connection, pk, "small", last) is None
        assert tree.newest_gist(tree.trunk, 10) == "anew"
        assert gist_rows.newest_version(connection, 10_000) is None

    store.writing(check)
