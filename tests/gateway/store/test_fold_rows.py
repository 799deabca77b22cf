"""Folds as rows: which of them a path sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.store.engine import Store
from gateway.store.fold_rows import Shown
from tests.gateway.house import House
from tests.gateway.store.tree import Tree


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    house = House(tmp_path)
    yield house.store
    house.store.close()


def test_a_fold_is_seen_from_its_message_on(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        early = tree.fold(tree.trunk, 4, 2, [])
        late = tree.fold(tree.trunk, 8, 6, [])
        assert tree.deepest(tree.trunk, 3) is None
        assert tree.deepest(tree.trunk, 4) == early
        assert tree.deepest(tree.trunk, 7) == early
        assert tree.deepest(tree.trunk, 10) == late
        assert tree.deepest(tree.branch, 10) == early
        assert tree.deepest(tree.trunk, 10, policy="wide") is None

    store.writing(check)


def test_the_newer_fold_of_one_message_is_seen(store: Store) -> None:
    """A cut to the window behind an ordinary fold."""

    def check(connection: Connection) -> None:
        tree = Tree(connection)
        tree.fold(tree.trunk, 8, 4, [])
        again = tree.fold(tree.trunk, 8, 6, [])
        assert tree.deepest(tree.trunk, 9) == again

    store.writing(check)


def test_what_a_fold_shows_is_read_back(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        shown = Shown(profile=(3, 1), documents=(2,), open=(7,))
        assert shown.to_json() == '{"profile": [3, 1], "documents": [2], "open": [7]}'
        assert (Shown().to_json(), bool(Shown()), Shown.from_json(None)) == (None, False, Shown())
        made = tree.fold(tree.trunk, 8, 4, [], shown=shown)
        assert made.shown == shown
        assert tree.deepest(tree.trunk, 9) == made
        assert tree.fold(tree.trunk, 9, 4, []).shown == Shown()

    store.writing(check)
