"""/api/conversations: what is stored, for the people whose words it is."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import Response

from gateway.api.bodies import read_object
from gateway.api.deps import (
    check_in_scope,
    context_of,
    find_in_scope,
    owner_pks_in_scope,
    read_id,
    read_limit,
    read_place,
    resolve_scope,
)
from gateway.errors import BadRequest, NotFound
from gateway.flows import pins
from gateway.flows.erase import erase_conversation
from gateway.flows.reroute import reroute
from gateway.store.conversations import (
    describe_conversation,
    list_conversations,
    read_page,
    render_page,
)
from gateway.store.memory_report import read_memory
from gateway.store.prefixes import read_prefixes
from gateway.store.transcript import ConversationRow, Node, node_by_id, node_by_pk, on_path
from gateway.wire.json_text import dump_bytes
from policies.schema import PolicyFile

router = APIRouter(prefix="/api/conversations")


def json_response(body: bytes) -> Response:
    """An answer of our own surface, which the door says nobody keeps."""
    return Response(body, media_type="application/json")


@router.get("")
async def list_all(request: Request) -> Response:
    """A page of conversations, newest turn first. `after` is the `next` of the page before."""
    scope = resolve_scope(request)
    limit = read_limit(request)
    after = read_place(request)

    def read(connection: Connection) -> bytes:
        owner_pks = owner_pks_in_scope(connection, scope)
        found, more = list_conversations(connection, owner_pks, limit=limit, after=after)
        return dump_bytes({"conversations": found, "next": str(more) if more else None})

    return json_response(await context_of(request).store.read(read))


@router.get("/{id}")
async def show(request: Request, id: str) -> Response:
    scope = resolve_scope(request)

    def read(connection: Connection) -> bytes:
        return dump_bytes(describe_conversation(connection, find_in_scope(connection, scope, id)))

    return json_response(await context_of(request).store.read(read))


@router.get("/{id}/messages")
async def show_messages(request: Request, id: str) -> Response:
    """A page of one branch, oldest first: the newest branch, or the one to `?head=`."""
    scope = resolve_scope(request)
    limit = read_limit(request)
    after, head = read_id(request, "after"), read_id(request, "head")

    def read(connection: Connection) -> bytes:
        conversation = find_in_scope(connection, scope, id)
        # Rendered and encoded here, on the reader's thread: a page may be megabytes.
        return dump_bytes(_messages(connection, conversation, head, after, limit))

    return json_response(await context_of(request).store.read(read))


@router.get("/{id}/memory")
async def show_memory(request: Request, id: str) -> Response:
    """What the memory holds, on all branches; `on_path` is told of the newest branch, or of the one
    to `?head=`. `pin_room`: what views have for pins, and which they leave out."""
    context = context_of(request)
    scope = resolve_scope(request)
    file = context.policies.file
    head_id = read_id(request, "head")

    def read(connection: Connection) -> bytes:
        conversation = find_in_scope(connection, scope, id)
        policy = first_policy(file, conversation.model)
        head = None
        if head_id is not None:
            head = _find_message(connection, conversation, head_id, "head")
        memory = read_memory(connection, conversation, default_policy=policy, head=head)
        pin_room = pins.describe_room(connection, file, conversation, head)
        return dump_bytes({**memory, "pin_room": pin_room})

    return json_response(await context.store.read(read))


@router.get("/{id}/prefix")
async def show_prefix(request: Request, id: str) -> Response:
    """What each of the newest turns used again of the prompt before it, and what moved it."""
    scope = resolve_scope(request)
    limit = read_limit(request)

    def read(connection: Connection) -> bytes:
        conversation = find_in_scope(connection, scope, id)
        return dump_bytes({"turns": read_prefixes(connection, conversation.pk, limit=limit)})

    return json_response(await context_of(request).store.read(read))


@router.post("/{id}/route")
async def choose_route(request: Request, id: str) -> Response:
    """Choose the conversation's backend before all rules, `{"backend": NAME}`; null: none."""
    scope = resolve_scope(request)
    context = context_of(request)

    def find(connection: Connection) -> ConversationRow:
        return find_in_scope(connection, scope, id)

    await check_in_scope(request, scope, id)
    backend = _read_backend(await request.body())
    rerouted = await reroute(context, find, backend)
    return json_response(dump_bytes(rerouted.as_json()))


def _read_backend(body: bytes) -> str | None:
    told = read_object(body, ("backend",))
    if not told:
        raise BadRequest('The body must be `{"backend": NAME}` or `{"backend": null}`.')
    backend = told["backend"]
    if backend is not None and not isinstance(backend, str):
        raise BadRequest("`backend` must be a name or null.", param="backend")
    return backend


@router.delete("/{id}")
async def erase(request: Request, id: str) -> Response:
    """Delete a conversation for good; its client's id is free for a new one."""
    scope = resolve_scope(request)
    await check_in_scope(request, scope, id)
    read_object(await request.body(), ())
    erased = await erase_conversation(
        context_of(request), lambda connection: find_in_scope(connection, scope, id)
    )
    return json_response(dump_bytes({"id": erased.id, "deleted": True}))


def first_policy(file: PolicyFile, model: str) -> str | None:
    """The policy of a model's first tier; None for a model that the file no longer names."""
    found = file.find_model(model)
    return found.tiers[0].policy if found is not None else None


def _messages(
    connection: Connection,
    conversation: ConversationRow,
    head_id: str | None,
    after_id: str | None,
    limit: int,
) -> dict[str, Any]:
    if head_id is not None:
        head = _find_message(connection, conversation, head_id, "head")
    elif conversation.head_pk is not None:
        head = node_by_pk(connection, conversation.head_pk)
    else:
        return {"messages": [], "next": None}
    after: Node | None = None
    if after_id is not None:
        after = _find_message(connection, conversation, after_id, "after")
        if not on_path(connection, after.pk, after.depth, head):
            raise BadRequest(
                "`after` is not on this branch; name the branch's last message as `head`.",
                param="after",
            )
    return render_page(read_page(connection, head, after, limit))


def _find_message(
    connection: Connection, conversation: ConversationRow, id: str, param: str
) -> Node:
    found = node_by_id(connection, conversation.pk, id)
    if found is None:
        raise NotFound("There is no message of this id in the conversation.", param=param)
    return found
