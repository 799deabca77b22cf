"""GET /metrics: what was counted, for Prometheus.

Once keys are set it wants one (an owner's or the administrator's), as everything under /api does;
without keys only this machine reaches it. Prometheus sends a key with `authorization:`.
"""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from gateway.api.deps import context_of, resolve_scope
from gateway.jobs.queue import count_jobs

router = APIRouter()


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Every metric as it stands; the queue of background work is read from the database."""
    resolve_scope(request)
    context = context_of(request)
    now_ms = context.clock.now_ms()
    counts, due_ms = await context.store.read(count_jobs, now_ms)
    overdue = 0.0 if due_ms is None else (now_ms - due_ms) / 1000
    context.meters.count_jobs(counts, overdue)
    body, content_type = context.meters.render(request.headers.get("accept", ""))
    return Response(body, headers={"content-type": content_type, "cache-control": "no-store"})
