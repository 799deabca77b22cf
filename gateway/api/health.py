"""/healthz and /readyz: for whoever keeps the program running."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request
from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError
from starlette.responses import Response

from gateway.api.deps import context_of, is_stranger
from gateway.backends.base import Backend
from gateway.errors import StorageFailed
from gateway.wire.json_text import dump_bytes

router = APIRouter()

# A prober gives up after some seconds; a backend that is slower than this is not healthy.
PROBE_SECONDS = 4.0
DATABASE_SECONDS = 4.0


@router.get("/healthz")
async def healthz() -> Response:
    """The process runs and its event loop turns."""
    return _json({"status": "ok"})


@router.get("/readyz")
async def readyz(request: Request) -> Response:
    """200 where a turn can be served: the database answers and at least one backend is on and
    healthy, and not left alone after its failures. One backend that is down does not make the
    gateway unready: its turns go elsewhere. `unserved`: the models all of whose tiers are out.
    A stranger is told whether it is ready, and no names.
    """
    context = context_of(request)
    database = await _probe_database(request)
    names = list(context.backends)
    probed = await asyncio.gather(*(probe_backend(context.backends[name]) for name in names))
    for name, backend in zip(names, probed, strict=True):
        backend["circuit"] = context.circuits.state(name)
    found = zip(names, probed, strict=True)
    usable = {name for name, one in found if one["ok"] and one["circuit"] != "open"}
    models = context.policies.file.models.items()
    ready = database["ok"] and bool(usable)
    if is_stranger(request):
        return _json({"ready": ready}, status=200 if ready else 503)
    body = {
        "ready": ready,
        "database": database,
        "unserved": [
            name for name, one in models if not usable & {tier.backend for tier in one.tiers}
        ],
        "backends": dict(zip(names, probed, strict=True)),
        "policies": {"revision": context.policies.revision},
    }
    return _json(body, status=200 if ready else 503)


async def probe_backend(backend: Backend) -> dict[str, Any]:
    """{"ok", "reason"}: off, not answering in PROBE_SECONDS, or what it says of itself. And
    "cautions", where the server was started in a way that is unsafe or unwise."""
    if backend.off_reason is not None:
        return {"ok": False, "reason": f"off: {backend.off_reason}"}
    try:
        health = await asyncio.wait_for(backend.health(), PROBE_SECONDS)
    except TimeoutError:
        return {"ok": False, "reason": f"no answer within {PROBE_SECONDS:g} s"}
    found: dict[str, Any] = {"ok": health.ok, "reason": health.reason}
    care = backend.slot_care
    if health.ok and care is not None and care.cautions:
        found["cautions"] = list(care.cautions)
    return found


async def _probe_database(request: Request) -> dict[str, Any]:
    try:
        await asyncio.wait_for(context_of(request).store.read(_select_one), DATABASE_SECONDS)
    except SQLAlchemyError as error:
        return {"ok": False, "reason": type(error).__name__}
    except StorageFailed as error:
        return {"ok": False, "reason": error.message}
    except TimeoutError:
        return {"ok": False, "reason": f"no answer within {DATABASE_SECONDS:g} s"}
    return {"ok": True, "reason": ""}


def _select_one(connection: Connection) -> None:
    connection.execute(text("SELECT pk FROM conversations LIMIT 1")).first()


def _json(body: dict[str, Any], status: int = 200) -> Response:
    return Response(
        dump_bytes(body),
        status_code=status,
        media_type="application/json",
        headers={"cache-control": "no-store"},
    )
