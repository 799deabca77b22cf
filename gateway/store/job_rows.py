"""One piece of background work with what became of it, as people are told. No function commits."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, Row, select

from gateway.clock import iso
from gateway.errors import NotFound
from gateway.store.chapter_rows import chapters, versions
from gateway.store.conversations import jobs, render_job, tell_wait, under_way
from gateway.store.gist_rows import gists
from gateway.store.quarantine import quarantine
from gateway.store.transcript import conversations
from gateway.wire.json_text import load_object

Line = dict[str, Any]


def find_job(connection: Connection, owner_pks: Collection[int] | None, id: str) -> Row[Any]:
    """The row of a job of these owners (None: of anybody). Raises NotFound."""
    statement = (
        select(jobs, conversations.c.id.label("conversation"))
        .join(conversations, conversations.c.pk == jobs.c.conversation_pk)
        .where(jobs.c.key == id)
    )
    if owner_pks is not None:
        statement = statement.where(conversations.c.owner_pk.in_(list(owner_pks)))
    row = connection.execute(statement).first()
    if row is None:
        raise NotFound("There is no job of this id.")
    return row


def describe_job(connection: Connection, row: Row[Any], now_ms: int) -> Line:
    """A job, what it waits for, what it tells of, and its history, oldest first: what was refused
    and what was written since it was asked for. Never a text."""
    payload = load_object(row.payload) or {}
    until = row.lease_until_ms
    return {
        **render_job(row),
        "waits_for": tell_wait(row, under_way(connection), now_ms),
        "conversation": row.conversation,
        "policy": row.policy,
        "backend": row.backend,
        "cause": row.error_kind,
        "lease_until": None if until is None else iso(until),
        "created_at": iso(row.created_ms),
        "updated_at": iso(row.updated_ms),
        "chapter": _chapter(connection, row, payload),
        "history": _history(connection, row, payload),
    }


def _chapter(connection: Connection, row: Row[Any], payload: Line) -> Line | None:
    """The span of a chapter's job; messages counted from 1."""
    found = connection.execute(
        select(chapters).where(
            chapters.c.pk == payload.get("chapter", 0),
            chapters.c.conversation_pk == row.conversation_pk,
        )
    ).first()
    if found is None:
        return None
    return {
        "id": found.id,
        "first": found.first_depth,
        "last": found.last_depth,
        "source_chars": found.source_chars,
    }


def _history(connection: Connection, row: Row[Any], payload: Line) -> list[Line]:
    refused = select(quarantine).where(
        quarantine.c.conversation_pk == row.conversation_pk,
        quarantine.c.kind == row.kind,
        quarantine.c.created_ms >= row.created_ms,
    )
    if row.kind == "chapter":
        chapter = payload.get("chapter", 0)
        refused = refused.where(quarantine.c.chapter_pk == chapter)
        written = select(versions).where(versions.c.chapter_pk == chapter)
        table = versions
    else:
        written = select(gists).where(
            gists.c.policy == row.policy, gists.c.last_pk == payload.get("last_pk", 0)
        )
        table = gists
    written = written.where(
        table.c.conversation_pk == row.conversation_pk, table.c.created_ms >= row.created_ms
    )
    told = [
        (one.created_ms, {"what": "refused", "backend": one.backend, "reasons": _listed(one)})
        for one in connection.execute(refused.order_by(quarantine.c.pk))
    ] + [
        (one.created_ms, {"what": "written", "backend": one.backend, "origin": one.origin})
        for one in connection.execute(written.order_by(table.c.pk))
    ]
    return [{"at": iso(at), **what} for at, what in sorted(told, key=lambda one: one[0])]


def _listed(row: Row[Any]) -> list[str]:
    return [str(reason) for reason in json.loads(row.reasons)]
