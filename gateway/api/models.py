"""/v1/models: the names that clients may ask for."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from gateway.api.deps import context_of, resolve_owner
from gateway.flows.context import Context
from gateway.wire.json_text import dump_bytes

router = APIRouter(prefix="/v1/models")

# A client that is told less trims its history before the gateway sees it; the conversation is
# kept whole here whatever window the model behind it has.
LEAST_ADVERTISED = 1_000_000


@router.get("")
async def list_models(request: Request) -> Response:
    resolve_owner(request)
    context = context_of(request)
    began = request.app.state.began_s
    found = [_model(context, name, began) for name in context.policies.file.model_names()]
    return Response(dump_bytes({"object": "list", "data": found}), media_type="application/json")


@router.get("/{name:path}")
async def show_model(request: Request, name: str) -> Response:
    resolve_owner(request)
    context = context_of(request)
    context.tiers(name)
    return Response(
        dump_bytes(_model(context, name, request.app.state.began_s)),
        media_type="application/json",
    )


def _model(context: Context, name: str, began_s: int) -> dict[str, Any]:
    """From what is known already: no backend is asked."""
    windows = [context.backends[tier.backend].window_tokens or 0 for tier in context.tiers(name)]
    return {
        "id": name,
        "object": "model",
        "created": began_s,
        "owned_by": "foldgate",
        "context_length": max(LEAST_ADVERTISED, *windows),
    }
