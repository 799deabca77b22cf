"""The prefix report as it is answered: what each upstream call of a conversation used again."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select

from gateway.clock import iso
from gateway.store.attempts import attempts
from gateway.store.transcript import messages

_SHOWN = (
    attempts.c.id,
    messages.c.id.label("asked"),
    attempts.c.backend,
    attempts.c.policy,
    attempts.c.view_kind,
    attempts.c.state,
    attempts.c.slot,
    attempts.c.prompt_chars,
    attempts.c.expected_chars,
    attempts.c.prompt_tokens,
    attempts.c.cached_tokens,
    attempts.c.moved_at,
    attempts.c.moved_by,
    attempts.c.first_token_ms,
    attempts.c.queued_ms,
    attempts.c.started_ms,
)


def read_prefixes(
    connection: Connection, conversation_pk: int, *, limit: int
) -> list[dict[str, Any]]:
    """The newest attempts that have ended, newest first.

    expected and reused are shares of the prompt: what the prompt before it covers, in characters,
    and what the backend says that it did not read anew, in tokens; None where either is unknown.
    """
    rows = connection.execute(
        select(*_SHOWN)
        .join(messages, messages.c.pk == attempts.c.asked_pk)
        .where(attempts.c.conversation_pk == conversation_pk, attempts.c.state != "running")
        .order_by(attempts.c.pk.desc())
        .limit(limit)
    )
    return [_render(row) for row in rows]


def _render(row: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "asked": row.asked,
        "at": iso(row.started_ms),
        "backend": row.backend,
        "policy": row.policy,
        "view": row.view_kind,
        "state": row.state,
        "slot": row.slot,
        "prompt_chars": row.prompt_chars,
        "expected_chars": row.expected_chars,
        "prompt_tokens": row.prompt_tokens,
        "cached_tokens": row.cached_tokens,
        "expected": _share(row.expected_chars, row.prompt_chars),
        "reused": _share(row.cached_tokens, row.prompt_tokens),
        "moved_at": row.moved_at,
        "moved_by": row.moved_by,
        "first_token_ms": row.first_token_ms,
        "queued_ms": row.queued_ms,
    }


def _share(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else round(part / whole, 4)
