"""/api/jobs: the background work of whoever asks."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import Response

from gateway.api.bodies import read_object
from gateway.api.conversations import json_response
from gateway.api.deps import context_of, owner_pks_in_scope, read_limit, resolve_scope
from gateway.jobs import hand
from gateway.store.conversations import list_jobs
from gateway.store.job_rows import describe_job, find_job
from gateway.wire.json_text import dump_bytes

router = APIRouter(prefix="/api/jobs")


@router.get("")
async def list_all(request: Request) -> Response:
    """Work that is queued, under way or parked, what is due first at the top; `?done=true` adds
    what is done."""
    scope, context = resolve_scope(request), context_of(request)
    limit, now_ms = read_limit(request), context.clock.now_ms()
    with_done = request.query_params.get("done") == "true"

    def read(connection: Connection) -> bytes:
        owner_pks = owner_pks_in_scope(connection, scope)
        found = list_jobs(connection, owner_pks, limit=limit, now_ms=now_ms, with_done=with_done)
        return dump_bytes({"jobs": found})

    return json_response(await context.store.read(read))


@router.get("/{id}")
async def show(request: Request, id: str) -> Response:
    """One piece of work: what it tells of, and what was refused and written for it."""
    scope, context = resolve_scope(request), context_of(request)
    now_ms = context.clock.now_ms()

    def read(connection: Connection) -> bytes:
        row = find_job(connection, owner_pks_in_scope(connection, scope), id)
        return dump_bytes(describe_job(connection, row, now_ms))

    return json_response(await context.store.read(read))


@router.post("/{id}/cancel")
async def cancel(request: Request, id: str) -> Response:
    """Park it with the reason `cancelled`; no later turn asks for the same work again. Answers with
    the work as it is; 409 where it is done or was given up."""
    return await _change(request, id, hand.cancel)


@router.post("/{id}/retry")
async def retry(request: Request, id: str) -> Response:
    """Make it due now, parked work with a new series of attempts. Answers with the work as it is;
    409 where it runs or is done."""
    return await _begin(request, id, hand.retry)


@router.post("/{id}/run")
async def run(request: Request, id: str) -> Response:
    """Begin waiting work now, as soon as its backend is free. Answers with the work as it is; 409
    where it runs, is done or was given up."""
    return await _begin(request, id, hand.run)


async def _begin(
    request: Request, id: str, change: Callable[[Connection, str, int], None]
) -> Response:
    answer = await _change(request, id, change)
    context = context_of(request)
    context.ring(context.clock.now_ms())
    return answer


async def _change(
    request: Request, id: str, change: Callable[[Connection, str, int], None]
) -> Response:
    scope = resolve_scope(request)
    context = context_of(request)
    now_ms = context.clock.now_ms()

    def find(connection: Connection) -> None:
        find_job(connection, owner_pks_in_scope(connection, scope), id)

    await context.store.read(find)  # another's work is a 404, whatever the body says
    read_object(await request.body(), ())

    def write(connection: Connection) -> bytes:
        owner_pks = owner_pks_in_scope(connection, scope)
        find_job(connection, owner_pks, id)
        change(connection, id, now_ms)
        return dump_bytes(describe_job(connection, find_job(connection, owner_pks, id), now_ms))

    return json_response(await context.store.write(write))
