"""/api/conversations/{id}/documents: texts that stand in the stable part of its views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import Response

from gateway.api.bodies import read_object, read_text
from gateway.api.conversations import json_response
from gateway.api.deps import (
    check_in_scope,
    context_of,
    find_in_scope,
    read_now,
    resolve_scope,
)
from gateway.errors import BadRequest
from gateway.flows import papers
from gateway.flows.papers import MOST_CHARS, MOST_NAME
from gateway.store import documents
from gateway.wire.json_text import dump_bytes

router = APIRouter(prefix="/api/conversations/{id}/documents")


@router.get("")
async def list_all(request: Request, id: str) -> Response:
    """Every document of the conversation, and which views have no room for it."""
    scope = resolve_scope(request)
    context = context_of(request)

    def read(connection: Connection) -> bytes:
        conversation = find_in_scope(connection, scope, id)
        rows = documents.list_documents(connection, conversation.pk)
        return dump_bytes(papers.describe(connection, context.policies.file, conversation, rows))

    return json_response(await context.store.read(read))


@router.put("")
async def put(request: Request, id: str) -> Response:
    """`{"name", "text", "now"?}`: in place of what stood under this name. Answers as the list does.

    The next user message sees it, whether `now` says so, as it may of any change, or not.
    """
    scope = resolve_scope(request)
    context = context_of(request)
    told = await _read_body(request, id, "name", "text", "now")
    name = _read_name(told)
    text = read_text(told, "text", most=MOST_CHARS)
    now_ms = context.clock.now_ms()

    def write(connection: Connection) -> bytes:
        conversation = find_in_scope(connection, scope, id)
        row = papers.put(connection, conversation, name, text, now_ms)
        return dump_bytes(papers.describe(connection, context.policies.file, conversation, [row]))

    answer = await context.store.write(write)
    context.views.forget_memories()
    return json_response(answer)


@router.get("/{named:path}")
async def show(request: Request, id: str, named: str) -> Response:
    scope = resolve_scope(request)
    context = context_of(request)

    def read(connection: Connection) -> bytes:
        conversation = find_in_scope(connection, scope, id)
        row = papers.find(connection, conversation, named)
        return dump_bytes(papers.describe(connection, context.policies.file, conversation, [row]))

    return json_response(await context.store.read(read))


@router.delete("")
async def remove_named(request: Request, id: str) -> Response:
    """As below, where the body says which: `{"name", "now"?}`."""
    told = await _read_body(request, id, "name", "now")
    return await _remove(request, id, read_text(told, "name", most=MOST_NAME))


@router.delete("/{named:path}")
async def remove(request: Request, id: str, named: str) -> Response:
    """`{"now"?}`: take a document away, by its id or its name; the next user message sees none,
    whether `now` says so, as it may of any change, or not."""
    await _read_body(request, id, "now")
    return await _remove(request, id, named)


def _read_name(told: Mapping[str, Any]) -> str:
    """A name in one line that an address can end in. Raises BadRequest.

    Clients take `/..` out of an address, and what stands before it: `DELETE …/documents/..` would
    arrive as one for the whole conversation.
    """
    name = " ".join(read_text(told, "name", most=MOST_NAME).split())
    if not name.isprintable():
        raise BadRequest("`name` holds a character that cannot be seen.", param="name")
    for read in (name, unquote(name)):
        if read.strip() in (".", ".."):
            raise BadRequest(
                f"`name` is `{name}`, which in an address is no name but a way. Take another one.",
                param="name",
            )
        if "/" in read or "\\" in read:
            raise BadRequest(
                "`name` holds a slash or a backslash, which part an address. Write `-` or `_`.",
                param="name",
            )
    return name


async def _read_body(request: Request, id: str, *fields: str) -> dict[str, Any]:
    """The body's fields; another's conversation is a 404 whatever it says."""
    await check_in_scope(request, resolve_scope(request), id)
    told = read_object(await request.body(), fields)
    read_now(request, told)
    return told


async def _remove(request: Request, id: str, named: str) -> Response:
    scope = resolve_scope(request)
    context = context_of(request)
    now_ms = context.clock.now_ms()

    def write(connection: Connection) -> bytes:
        conversation = find_in_scope(connection, scope, id)
        row = papers.find(connection, conversation, named)
        documents.remove_document(connection, row, now_ms)
        return dump_bytes({"id": row.id, "name": row.name, "deleted": True})

    answer = await context.store.write(write)
    context.views.forget_memories()
    await context.store.checkpoint()
    return json_response(answer)
