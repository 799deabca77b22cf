"""Learned ratios as rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.store import token_ratios
from gateway.store.engine import Store
from tests.gateway.house import House
from tests.gateway.store.tree import Tree


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    house = House(tmp_path)
    yield house.store
    house.store.close()


def test_a_learned_ratio_is_one_row_a_backend(store: Store) -> None:
    def check(connection: Connection) -> None:
        pk = Tree(connection).conversation.pk
        assert token_ratios.token_ratio(connection, pk, "local") is None
        for ratio in (3.0, 2.5):
            token_ratios.save_token_ratio(connection, pk, "local", ratio)
        token_ratios.save_token_ratio(connection, pk, "cloud", 4.0)
        assert token_ratios.token_ratio(connection, pk, "local") == 2.5
        assert token_ratios.token_ratio(connection, pk, "cloud") == 4.0

    store.writing(check)
