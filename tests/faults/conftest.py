"""A wall for each way to an upstream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.faults.wall import WAYS, Wall, build_wall
from tests.gateway.backends.conftest import litellm_imported as litellm_imported


class Build(Protocol):
    def __call__(self, **options: Any) -> AbstractAsyncContextManager[Wall]: ...


@pytest.fixture(params=WAYS)
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Build:
    """`async with build(timeouts=SHORT) as wall`, options as build_wall's."""
    if request.param != "llama_cpp":
        request.getfixturevalue("litellm_imported")
    return lambda **options: build_wall(tmp_path, request.param, **options)


@pytest.fixture
async def wall(build: Build) -> AsyncIterator[Wall]:
    """With patience."""
    async with build() as wall:
        yield wall
