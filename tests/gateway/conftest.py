"""Databases on the tests' own server go with the test that made them.

With HOUSE_ENGINE=postgresql in the environment every test runs there that is not marked `sqlite`.
"""

from collections.abc import Iterator

import pytest

from tests.gateway.databases import dropping, engine


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if engine() == "sqlite":
        return
    left_out = [one for one in items if one.get_closest_marker("sqlite") is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [one for one in items if one.get_closest_marker("sqlite") is None]


@pytest.fixture(autouse=True)
def own_databases() -> Iterator[None]:
    with dropping():
        yield
