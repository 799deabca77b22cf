"""/api/memories: what owners told about themselves, and their hand over it.

A change enters a conversation's view at its next fold; `now` asks for one at its next user message.
An edited fact has a new id and is found by those that it had too.
"""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from sqlalchemy import Connection
from starlette.responses import Response

from gateway.api.bodies import check_text, read_object, read_text
from gateway.api.conversations import json_response
from gateway.api.deps import (
    Scope,
    context_of,
    owner_pks_in_scope,
    read_limit,
    read_now,
    read_place,
    resolve_scope,
)
from gateway.errors import BadRequest, NotFound
from gateway.flows import memory_edits
from gateway.store import profile, profile_edits
from gateway.store.conversations import Place
from gateway.store.profile import MOST_ABOUT, MOST_CHARS, ProfileRow
from gateway.store.profile_report import describe_facts
from gateway.store.transcript import ensure_owner
from gateway.wire.json_text import dump_bytes, dumps

router = APIRouter(prefix="/api/memories")

MOST_ASKED = 200
"""Characters of `?q=` that are looked for."""


@router.get("")
async def list_all(request: Request) -> Response:
    """A page of facts, newest first; `?q=` only those that contain it."""
    scope = resolve_scope(request)
    limit, after = read_limit(request), read_place(request)
    words = request.query_params.get("q", "")
    if len(words) > MOST_ASKED:
        raise BadRequest(f"`q` has more than {MOST_ASKED} characters.", param="q")

    def read(connection: Connection) -> bytes:
        pks = owner_pks_in_scope(connection, scope)
        before = None if after is None else after.pk
        rows, more = profile.list_facts(connection, pks, words=words, limit=limit, before=before)
        place = None if more is None else str(Place(rows[-1].created_ms, more))
        told = describe_facts(connection, rows)
        return dump_bytes({"memories": told, "next": place})

    return json_response(await context_of(request).store.read(read))


@router.get("/export")
async def export(request: Request) -> Response:
    """Every fact as JSON lines, oldest first."""
    scope = resolve_scope(request)

    def read(connection: Connection) -> bytes:
        rows = profile.all_active(connection, owner_pks_in_scope(connection, scope))
        told = describe_facts(connection, rows)
        return "".join(dumps({"type": "memory", **one}) + "\n" for one in told).encode()

    body = await context_of(request).store.read(read)
    return Response(body, media_type="application/x-ndjson")


@router.get("/{id}")
async def show(request: Request, id: str) -> Response:
    scope = resolve_scope(request)

    def read(connection: Connection) -> bytes:
        return _told(connection, _find(connection, scope, id))

    return json_response(await context_of(request).store.read(read))


@router.post("")
async def add(request: Request) -> Response:
    """`{"text", "about"?, "now"?}`: a fact in the owner's own words."""
    scope = resolve_scope(request)
    context = context_of(request)
    owner = scope.owner
    if owner is None:
        raise BadRequest("Whose memory it is must be named with `?owner=`.", param="owner")
    told = read_object(await request.body(), ("text", "about", "now"))
    text = profile.one_line(read_text(told, "text", most=MOST_CHARS))
    about, now = _read_about(told), read_now(request, told)
    now_ms = context.clock.now_ms()

    def write(connection: Connection) -> bytes:
        owner_pk = ensure_owner(connection, owner.name, owner.user, now_ms)
        fact = profile_edits.add_fact(connection, owner_pk, text, about, now_ms)
        memory_edits.announce_fact(connection, fact, now=now)
        return _told(connection, fact)

    return json_response(await context.store.write(write))


@router.patch("/{id}")
async def edit(request: Request, id: str) -> Response:
    """`{"text"?, "about"?, "now"?}`: the fact in other words; what is left out stays."""
    scope = resolve_scope(request)
    context = context_of(request)
    await _check(request, scope, id)
    told = read_object(await request.body(), ("text", "about", "now"))
    if "text" not in told and "about" not in told:
        raise BadRequest("`text` or `about` must say what is to change.", param="text")
    text = read_text(told, "text", most=MOST_CHARS) if "text" in told else None
    about, now = _read_about(told), read_now(request, told)
    now_ms = context.clock.now_ms()

    def write(connection: Connection) -> bytes:
        old = _find(connection, scope, id, to_change=True)
        words = old.text if text is None else profile.one_line(text)
        subject = about if "about" in told else old.about
        new = memory_edits.edit_fact(connection, old, words, subject, now_ms, now=now)
        return _told(connection, new)

    return json_response(await context.store.write(write))


@router.post("/{id}/undo")
async def undo(request: Request, id: str) -> Response:
    """The fact as it was before its newest edit, or before a newer one took its place."""
    scope = resolve_scope(request)
    context = context_of(request)
    await _check(request, scope, id)
    now = read_now(request, read_object(await request.body(), ("now",)))

    def write(connection: Connection) -> bytes:
        fact = _find(connection, scope, id, to_change=True)
        now_ms = context.clock.now_ms()
        back = memory_edits.undo_fact(connection, fact, now_ms, now=now)
        return _told(connection, back)

    return json_response(await context.store.write(write))


@router.delete("/{id}")
async def erase(request: Request, id: str) -> Response:
    """`{"now"?}`: delete a fact for good; it is not learned again from where it was told.

    Views that show it do so until they fold; with `now` it is gone from them at once.
    """
    scope = resolve_scope(request)
    context = context_of(request)
    await _check(request, scope, id)
    now = read_now(request, read_object(await request.body(), ("now",)))

    def write(connection: Connection) -> str:
        fact = _find(connection, scope, id, to_change=True)
        memory_edits.delete_fact(connection, fact, context.clock.now_ms(), now=now)
        return fact.id

    deleted = await context.store.write(write)
    context.views.forget_memories()
    await context.store.checkpoint()
    return json_response(dump_bytes({"id": deleted, "deleted": True}))


def _read_about(told: dict[str, Any]) -> str | None:
    if told.get("about") is None:
        return None
    return profile.one_line(check_text(told["about"], "about", most=MOST_ABOUT))


async def _check(request: Request, scope: Scope, id: str) -> None:
    """Another's fact is a 404, whatever the body says."""
    await context_of(request).store.read(_find, scope, id)


def _find(connection: Connection, scope: Scope, id: str, *, to_change: bool = False) -> ProfileRow:
    pks = owner_pks_in_scope(connection, scope)
    found = profile_edits.find_fact(connection, pks, id, to_change=to_change)
    if found is None:
        raise NotFound("There is no memory of this id.")
    return found


def _told(connection: Connection, fact: ProfileRow) -> bytes:
    return dump_bytes(describe_facts(connection, [fact])[0])
