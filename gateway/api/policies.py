"""/api/policies: the numbers that are in force."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from gateway.api.conversations import json_response
from gateway.api.deps import context_of, resolve_scope
from gateway.flows.context import Context
from gateway.wire.json_text import dump_bytes

router = APIRouter(prefix="/api/policies")


@router.get("")
async def show(request: Request) -> Response:
    """The revision in force with all defaults written out. Addresses and keys are left out."""
    resolve_scope(request)
    return json_response(dump_bytes(describe_policies(context_of(request))))


def describe_policies(context: Context) -> dict[str, Any]:
    file = context.policies.file
    return {
        "revision": context.policies.revision,
        "policies": {
            name: policy.model_dump(mode="json") for name, policy in file.policies.items()
        },
        "backends": {
            name: {
                "kind": backend.kind,
                "local": backend.local,
                "window": backend.window_tokens,
                "off": backend.off_reason,
            }
            for name, backend in context.backends.items()
        },
        "models": {name: model.model_dump(mode="json") for name, model in file.models.items()},
    }
