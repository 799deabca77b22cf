"""Under /api/conversations/{id}/memory: chapters and gists that stay when they are folded on."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import Response

from gateway.api.conversation_memory import change_memory, read_body, tell_part
from gateway.api.deps import context_of, read_now
from gateway.flows import pins
from gateway.flows.hand import Hand
from gateway.flows.memory_edits import find_chapter, find_gist
from policies.schema import PolicyFile

router = APIRouter(prefix="/api/conversations/{id}/memory")

Act = Callable[[Connection, Hand, PolicyFile, str], None]


@router.post("/chapters/{part}/pin")
async def pin_chapter(request: Request, id: str, part: str) -> Response:
    """Keep what a chapter tells in the memory, also when it is folded into a gist."""

    def act(connection: Connection, hand: Hand, file: PolicyFile, part: str) -> None:
        chapter = find_chapter(connection, hand.conversation, part)
        pins.pin_chapter(connection, hand, file, chapter)

    return await _act(request, id, "chapters", part, act)


@router.post("/chapters/{part}/unpin")
async def unpin_chapter(request: Request, id: str, part: str) -> Response:
    def act(connection: Connection, hand: Hand, _file: PolicyFile, part: str) -> None:
        pins.unpin_chapter(connection, hand, find_chapter(connection, hand.conversation, part))

    return await _act(request, id, "chapters", part, act)


@router.post("/gists/{part}/pin")
async def pin_gist(request: Request, id: str, part: str) -> Response:
    """The same of a gist, also when a later one takes its place."""

    def act(connection: Connection, hand: Hand, file: PolicyFile, part: str) -> None:
        pins.pin_gist(connection, hand, file, find_gist(connection, hand.conversation, part))

    return await _act(request, id, "gists", part, act)


@router.post("/gists/{part}/unpin")
async def unpin_gist(request: Request, id: str, part: str) -> Response:
    def act(connection: Connection, hand: Hand, _file: PolicyFile, part: str) -> None:
        pins.unpin_gist(connection, hand, find_gist(connection, hand.conversation, part))

    return await _act(request, id, "gists", part, act)


async def _act(request: Request, id: str, kind: str, part: str, act: Act) -> Response:
    told = await read_body(request, id, "now")
    file = context_of(request).policies.file

    def change(connection: Connection, hand: Hand) -> None:
        act(connection, hand, file, part)

    tell = tell_part(kind, part)
    return await change_memory(request, id, change, tell, now=read_now(request, told))
