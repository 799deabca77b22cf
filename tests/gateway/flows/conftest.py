"""A house, or contexts over a stage, for every test, closed behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.flows.context import Context
from tests.gateway.flows.stage import Listed, build
from tests.gateway.flows.upkeep_stage import Build
from tests.gateway.house import House


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    built = House(tmp_path)
    yield built
    built.store.close()


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Build]:
    """Builds contexts whose stores are closed in the end."""
    built: list[Context] = []

    def make(*backends: Listed, **values: Any) -> Context:
        built.append(build(tmp_path, *backends, **values))
        return built[-1]

    yield make
    for ctx in built:
        ctx.store.close()
