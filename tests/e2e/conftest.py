"""A real llama-server for the tests that are about meeting one.

These tests run with `make e2e` alone, and there a server that does not come up is a failure.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.demo.llama import LlamaInstall, LlamaServer, default_cache, fetch_llama

# Small, so that a test reaches its end within seconds (prefill runs at about 300 tokens/s).
WINDOW = 2048

_HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever stands in this folder is an end-to-end test; the others are left as they are."""
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session")
def llama_install() -> LlamaInstall:
    """The server's command and the model's file, fetched on the first run."""
    return fetch_llama(default_cache(os.environ), partial(print, file=sys.stderr))


@pytest.fixture
def start_llama(
    llama_install: LlamaInstall,
) -> Callable[..., AbstractAsyncContextManager[LlamaServer]]:
    """`async with start_llama(window=…, slots=…, pinned=…) as server:` for one of its own."""
    return partial(LlamaServer, llama_install)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def llama_server(llama_install: LlamaInstall) -> AsyncIterator[LlamaServer]:
    """One server with one slot of WINDOW tokens, shared by all tests: leave no request running."""
    async with LlamaServer(llama_install, window=WINDOW) as server:
        yield server
