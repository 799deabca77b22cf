"""Databases on the tests' own server go with the test that made them."""

from collections.abc import Iterator

import pytest

from tests.gateway.databases import dropping


@pytest.fixture(autouse=True)
def own_databases() -> Iterator[None]:
    with dropping():
        yield
