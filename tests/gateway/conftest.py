"""Databases on the tests' own server go with the test that made them.

With HOUSE_ENGINE=postgresql in the environment every test runs there that is not marked `sqlite`.
"""

from collections.abc import Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings

from tests.gateway.databases import dropping, engine

_SETTINGS = "_hypothesis_internal_use_settings"
_SHARE, _LEAST = 5, 10


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if engine() == "sqlite":
        return
    left_out = [one for one in items if one.get_closest_marker("sqlite") is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [one for one in items if one.get_closest_marker("sqlite") is None]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """A law costs several times as much on a server, and what it is about was tried on SQLite: so
    a fifth of its examples there."""
    law = getattr(item, "obj", None)
    whole = getattr(law, _SETTINGS, None)
    if whole is None or engine() == "sqlite":
        return (yield)
    few = max(_LEAST, whole.max_examples // _SHARE)
    setattr(law, _SETTINGS, settings(whole, max_examples=min(whole.max_examples, few)))
    try:
        return (yield)
    finally:
        setattr(law, _SETTINGS, whole)


@pytest.fixture(autouse=True)
def own_databases() -> Iterator[None]:
    with dropping():
        yield
