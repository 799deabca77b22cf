"""A wall for each way to an upstream."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.faults.server import DONE, FaultServer, delta, end, role, stream
from tests.faults.wall import MODELS, WAYS, Wall, build_wall
from tests.gateway.backends.conftest import litellm_imported as litellm_imported
from tests.gateway.backends.conftest import make_call, make_cloud, take


@pytest.fixture(scope="session")
def litellm_warm(litellm_imported: None) -> None:
    """LiteLLM's first call imports more of it, for a second or two: longer than a short wait."""

    async def call(model: str) -> None:
        async with FaultServer() as server:
            server.play(stream(role(), delta("ok"), end("stop"), DONE))
            backend = make_cloud(server, model)
            _, fault = await take(backend, make_call())
            await backend.aclose()
            assert fault is None

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in MODELS.values():
            asyncio.run(call(model))


class Build(Protocol):
    def __call__(self, **options: Any) -> AbstractAsyncContextManager[Wall]: ...


@pytest.fixture(params=WAYS)
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Build:
    """`async with build(timeouts=SHORT) as wall`, options as build_wall's."""
    if request.param != "llama_cpp":
        request.getfixturevalue("litellm_warm")
    return lambda **options: build_wall(tmp_path, request.param, **options)


@pytest.fixture
async def wall(build: Build) -> AsyncIterator[Wall]:
    """With patience."""
    async with build() as wall:
        yield wall
