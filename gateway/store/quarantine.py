"""What the judge refused: kept for people to read, never shown to a model."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sqlalchemy import Connection, insert, select

from gateway.store.tables.memory import Quarantined

quarantine = Quarantined.__table__  # type: ignore[attr-defined]


def add_quarantined(
    connection: Connection,
    conversation_pk: int,
    *,
    chapter_pk: int | None,
    kind: str,
    backend: str,
    reasons: Sequence[str],
    text: str,
    finish_reason: str | None,
    now_ms: int,
) -> None:
    """Keep a refused output for people to read; no model ever sees it."""
    connection.execute(
        insert(quarantine).values(
            conversation_pk=conversation_pk,
            chapter_pk=chapter_pk,
            kind=kind,
            backend=backend,
            reasons=json.dumps(list(reasons)),
            text=text,
            finish_reason=finish_reason,
            created_ms=now_ms,
        )
    )


def is_quarantined(
    connection: Connection,
    conversation_pk: int,
    text: str,
    *,
    chapter_pk: int | None,
    since_ms: int,
    until_ms: int,
) -> bool:
    """Whether this text of a chapter (chapter_pk None: of a gist) was put there between the two
    moments, both included."""
    where = (
        quarantine.c.kind == "gist" if chapter_pk is None else quarantine.c.chapter_pk == chapter_pk
    )
    found = connection.execute(
        select(quarantine.c.pk)
        .where(
            quarantine.c.conversation_pk == conversation_pk,
            where,
            quarantine.c.text == text,
            quarantine.c.created_ms.between(since_ms, until_ms),
        )
        .limit(1)
    )
    return found.first() is not None
