"""POST /v1/chat/completions: read, check who asks, hand over to the turn."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from fastapi import APIRouter, Request
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.addresses import UnfitAddress, check_urls
from gateway.api.deps import Owner, context_of, request_id_of, resolve_owner, speaking_for
from gateway.api.sse import ChatResponse
from gateway.errors import BadRequest
from gateway.flows.context import Context
from gateway.flows.incoming import Incoming, prepare
from gateway.wire.requests import ChatRequest, check_id, is_no_id, parse_chat, read_tags
from policies.auxiliary import Auxiliary, Sent, detect_auxiliary
from policies.messages import message_text
from policies.schema import named_headers

router = APIRouter()

CHAT = "/v1/chat/completions"
TAG_HEADER = "x-foldgate-tag"
# A body above this is parsed and digested in a thread: it would hold up everybody else's stream.
_BIG_BODY = 128 * 1024
_FEW = 8
"""Messages of a request that may be a single question with system texts around it."""
# A whole number above 0, of any length.
_RETRIES = re.compile(r"0*[1-9][0-9]*")


@router.post(CHAT)
async def create_chat_completion(request: Request) -> Response:
    """OpenAI's chat completion over the conversation that the request belongs to."""
    owner = resolve_owner(request)  # before anything of a stranger's is read
    ctx = context_of(request)
    body = await request.body()
    if len(body) <= _BIG_BODY:
        incoming = _read(ctx, request.headers, owner, body)
    else:
        incoming = await asyncio.to_thread(_read, ctx, request.headers, owner, body)
        request.state.is_big = True
    ctx.tiers(incoming.request.model)
    if incoming.request.media:
        await _check_media(ctx, incoming.request.media)
    return ChatResponse(
        ctx,
        incoming,
        request_id_of(request),
        pings=request.headers.get("x-foldgate-pings") != "off",
    )


class _Fields(Headers):
    """A request's header fields, looked up by name and not by reading through them: a turn asks
    for some fifteen."""

    def __init__(self, scope: Scope) -> None:
        super().__init__(scope=scope)
        # Of fields that came twice the first counts, as in Headers.
        self._first = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(self.raw)
        }

    def __getitem__(self, key: str) -> str:
        return self._first[key.lower()]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower() in self._first

    def get(self, key: str, default: Any = None) -> Any:
        return self._first.get(key.lower(), default)


class _Asked(Request):
    """A request whose header fields are asked for many times, and whose body mostly is one
    message."""

    @cached_property
    def headers(self) -> Headers:
        return _Fields(self.scope)

    async def body(self) -> bytes:
        parts: list[bytes] = []
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                return b"".join(parts)


async def serve_chat(scope: Scope, receive: Receive, send: Send) -> None:
    """create_chat_completion as a plain ASGI application."""
    response = await create_chat_completion(_Asked(scope, receive))
    await response(scope, receive, send)
    if scope.get("state", {}).get("is_big"):
        # What the event loop has to send leaves when it turns: a history of thousands of messages
        # is let go of behind its answer.
        await asyncio.sleep(0)


def _read(ctx: Context, headers: Headers, owner: Owner, body: bytes) -> Incoming:
    chat = parse_chat(body)
    owner = speaking_for(owner, chat.user)
    incoming = prepare(
        chat,
        owner=owner.name,
        user=owner.user,
        conversation=_named_conversation(ctx, headers),
        idempotency_key=_idempotency_key(headers),
        retried=_is_retried(headers),
        headers=_heard_by_rules(ctx, headers, chat.model),
        tags=read_tags(headers.get(TAG_HEADER, "")),
        auxiliary=_tell_auxiliary(ctx, headers, chat),
    )
    if not incoming.chain and incoming.auxiliary is None:
        raise BadRequest(
            "`messages` needs at least one message that is not a system message.",
            param="messages",
        )
    return incoming


async def _check_media(ctx: Context, urls: Sequence[str]) -> None:
    """Whoever fetches an image by its address, a provider's library or a server beside us, may
    stand inside this network: no address leads there."""
    try:
        await check_urls(urls, ctx.resolve)
    except UnfitAddress as error:
        raise BadRequest(
            f"The address of an image or a file cannot be used: {error}. Send it as a data: "
            "address, with its bytes in it.",
            param="messages",
            code="unfit_address",
        ) from None


def _tell_auxiliary(ctx: Context, headers: Headers, chat: ChatRequest) -> Auxiliary | None:
    """What the request is, where it is no turn. Of a history only the end is looked at."""
    heard = [headers.get(name, "") for name in ctx.settings.task_headers]
    model = ctx.policies.file.find_model(chat.model)
    newest = chat.messages if len(chat.messages) <= _FEW else chat.messages[-_FEW:]
    messages = [Sent(str(m["role"]), message_text(m)) for m in newest]
    return detect_auxiliary(
        messages,
        task=next((task for task in (*heard, chat.task) if task.strip()), ""),
        marked=model is not None and model.auxiliary,
        streamed=chat.stream,
    )


def _heard_by_rules(ctx: Context, headers: Headers, model: str) -> dict[str, str]:
    """The headers that rules of this model look at, and no others: they may hold anything."""
    found = ctx.policies.file.find_model(model)
    names = named_headers(found.rules) if found is not None and found.rules else ()
    return {name: headers[name] for name in names if name in headers}


def _named_conversation(ctx: Context, headers: Headers) -> str | None:
    for name in ctx.settings.conversation_headers:
        value = headers.get(name, "")
        if not is_no_id(value):
            return check_id(value, name)
    return None


def _idempotency_key(headers: Headers) -> str | None:
    value = headers.get("idempotency-key")
    return check_id(value, "Idempotency-Key") if value else None


def _is_retried(headers: Headers) -> bool:
    count = headers.get("x-stainless-retry-count", "")
    return _RETRIES.fullmatch(count) is not None
