"""The app over a fresh database, asked in-process. Backends are reached by none of these tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from gateway.app import create_app
from gateway.settings import Settings
from tests.gateway.databases import database_url
from tests.gateway.seeds import POLICIES

OPEN = "http://127.0.0.1:8400"


class Door:
    """An app that runs, and a client at its door."""

    def __init__(self, app: FastAPI, client: httpx.AsyncClient) -> None:
        self.app = app
        self.client = client
        self.context = app.state.context
        self.store = self.context.store

    async def get(self, path: str, key: str | None = None, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers=_headers(key, headers))

    async def delete(self, path: str, key: str | None = None, **headers: str) -> httpx.Response:
        return await self.client.delete(path, headers=_headers(key, headers))


def _headers(key: str | None, headers: dict[str, str]) -> dict[str, str]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return named if key is None else {"authorization": f"Bearer {key}", **named}


Opener = Callable[..., AbstractAsyncContextManager[Door]]


@pytest.fixture
def opened(tmp_path: Path) -> Opener:
    """`async with opened(keys=…) as door`: further arguments are those of Settings."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(POLICIES)

    @asynccontextmanager
    async def open_door(**settings: Any) -> AsyncIterator[Door]:
        app = create_app(
            Settings(
                policies=policies,
                database_url=database_url(tmp_path / "foldgate.db"),
                **settings,
            )
        )
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url=OPEN) as client:
                yield Door(app, client)

    return open_door


@pytest.fixture
async def door(opened: Opener) -> AsyncIterator[Door]:
    """Without keys, on loopback."""
    async with opened() as door:
        yield door
