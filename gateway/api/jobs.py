"""/api/jobs: the background work of whoever asks."""

from __future__ import annotations

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import Response

from gateway.api.conversations import json_response
from gateway.api.deps import context_of, owner_pks_in_scope, read_limit, resolve_scope
from gateway.store.conversations import list_jobs
from gateway.wire.json_text import dump_bytes

router = APIRouter(prefix="/api/jobs")


@router.get("")
async def list_all(request: Request) -> Response:
    """Work that is queued, under way or parked, what is due first at the top; `?done=true` adds
    what is done."""
    scope = resolve_scope(request)
    limit = read_limit(request)
    with_done = request.query_params.get("done") == "true"

    def read(connection: Connection) -> bytes:
        owner_pks = owner_pks_in_scope(connection, scope)
        found = list_jobs(connection, owner_pks, limit=limit, with_done=with_done)
        return dump_bytes({"jobs": found})

    return json_response(await context_of(request).store.read(read))
