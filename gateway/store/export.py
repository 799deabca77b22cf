"""A conversation written out whole: every branch, every version, nothing changed.

One JSON object a line. Rows name each other by ids, never by row numbers, so that the lines can be
read into another database. A message's `raw` is the JSON text that is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Table, func, select

from gateway.clock import iso
from gateway.store.attempts import attempts
from gateway.store.chapter_rows import chapters, versions
from gateway.store.conversations import describe_conversation
from gateway.store.export_beside import Beside, own_memories
from gateway.store.fold_rows import folds
from gateway.store.gist_rows import gists
from gateway.store.quarantine import quarantine
from gateway.store.rows import record
from gateway.store.token_ratios import ratios
from gateway.store.transcript import (
    CONVERSATION_COLUMNS,
    ConversationRow,
    conversations,
    messages,
    owners,
    system_texts,
)
from gateway.wire.export_lines import FORMAT
from gateway.wire.json_text import dumps

Line = dict[str, Any]


def export_lines(connection: Connection, conversation: ConversationRow) -> Iterator[str]:
    """The lines, without line ends. The conversation comes first, a message after its parent."""
    yield dumps(
        {
            "type": "conversation",
            "format": FORMAT,
            **describe_conversation(connection, conversation),
            "resends": conversation.resends,
            "noted": conversation.noted,
            "renew_after": _count_folds(connection, conversation),
        }
    )
    beside = Beside(connection, conversation.pk)
    ids: dict[int | None, str | None] = {None: None}
    yield from _messages(connection, conversation.pk, ids)
    systems: dict[int | None, int | None] = {None: None}
    for number, row in enumerate(_rows(connection, system_texts, conversation.pk), start=1):
        systems[row.pk] = number
        yield dumps(
            {"type": "system", "number": number, **_plain(row), "messages": json.loads(row.body)}
        )
    spans = {row.pk: row for row in _rows(connection, chapters, conversation.pk)}
    texts: dict[int, tuple[str, int]] = {}
    yield from _chapters(connection, conversation.pk, ids, spans, texts)
    gist_names: dict[int | None, list[Any] | None] = {None: None}
    for row in _rows(connection, gists, conversation.pk):
        gist_names[row.pk] = [row.policy, ids[row.last_pk], row.version]
        yield dumps(_gist(row, ids, texts))
    chapter_ids: dict[int | None, str | None] = {pk: row.id for pk, row in spans.items()}
    yield from map(dumps, beside.lines(ids, chapter_ids, texts, gist_names))
    fold_names: dict[int | None, int | None] = {None: None, 0: 0}
    for number, row in enumerate(_rows(connection, folds, conversation.pk), start=1):
        fold_names[row.pk] = number
        told = _fold(row, ids, texts, gist_names)
        yield dumps({"number": number, **told, "shown": beside.names.shown(row.shown)})
    yield from map(dumps, beside.notes(ids, fold_names))
    for row in _rows(connection, attempts, conversation.pk):
        yield dumps(_attempt(row, ids, systems, fold_names))
    for row in _rows(connection, quarantine, conversation.pk):
        chapter = spans.get(row.chapter_pk)
        yield dumps(
            {
                "type": "quarantine",
                "chapter": None if chapter is None else chapter.id,
                "reasons": json.loads(row.reasons),
                **_plain(row, "kind", "backend", "text", "finish_reason"),
            }
        )
    for row in connection.execute(
        select(ratios).where(ratios.c.conversation_pk == conversation.pk).order_by(ratios.c.backend)
    ):
        yield dumps({"type": "ratio", "backend": row.backend, "chars_per_token": row.ratio})


def owner_lines(connection: Connection, owner_pk: int) -> Iterator[str]:
    """Everything of one owner: the conversations, oldest first, then what the owner wrote of
    themselves, and the digests of what they deleted."""
    whose = conversations.c.owner_pk == owner_pk
    found = select(*CONVERSATION_COLUMNS).where(whose).order_by(conversations.c.pk)
    for row in connection.execute(found).all():
        yield from export_lines(connection, record(ConversationRow, row))
    row = connection.execute(select(owners).where(owners.c.pk == owner_pk)).one()
    yield dumps({"type": "owner", "format": FORMAT, **_plain(row, "name", "user")})
    yield from map(dumps, own_memories(connection, owner_pk))


def _count_folds(connection: Connection, conversation: ConversationRow) -> int | None:
    """How many folds there were when the memory was to be seen anew: their numbers tell it."""
    if conversation.renew_after is None:
        return None
    asked = select(func.count()).where(
        folds.c.conversation_pk == conversation.pk, folds.c.pk <= conversation.renew_after
    )
    return connection.execute(asked).scalar_one()


def _rows(connection: Connection, table: Table, conversation_pk: int) -> Iterator[Any]:
    statement = select(table).where(table.c.conversation_pk == conversation_pk)
    yield from connection.execute(statement.order_by(table.c.pk))


def _plain(row: Any, *names: str) -> Line:
    """Columns as they are, and when the row was made."""
    return {
        **{name: getattr(row, name) for name in names},
        "created_at": iso(row.created_ms),
    }


def _messages(
    connection: Connection, conversation_pk: int, ids: dict[int | None, str | None]
) -> Iterator[str]:
    """A child's row number is higher than its parent's: the order is the tree's."""
    for row in _rows(connection, messages, conversation_pk):
        ids[row.pk] = row.id
        yield dumps(
            {
                "type": "message",
                "id": row.id,
                "parent": ids[row.parent_pk],
                "depth": row.depth,
                "raw": row.raw,
                "produced": bool(row.produced),
                "partial": bool(row.partial),
                **_plain(row, "role", "chars", "backend", "finish_reason"),
            }
        )


def _chapters(
    connection: Connection,
    conversation_pk: int,
    ids: dict[int | None, str | None],
    spans: dict[int, Any],
    texts: dict[int, tuple[str, int]],
) -> Iterator[str]:
    written: dict[int, list[Line]] = {pk: [] for pk in spans}
    for row in _rows(connection, versions, conversation_pk):
        texts[row.pk] = (spans[row.chapter_pk].id, row.version)
        written[row.chapter_pk].append(
            _plain(row, "version", "text", "origin", "backend", "prompt", "took_ms")
        )
    for pk, row in spans.items():
        yield dumps(
            {
                "type": "chapter",
                "first": ids[row.first_pk],
                "last": ids[row.last_pk],
                "versions": written[pk],
                **_plain(row, "id", "source_chars"),
            }
        )


def _gist(row: Any, ids: dict[int | None, str | None], texts: dict[int, tuple[str, int]]) -> Line:
    return {
        "type": "gist",
        "last": ids[row.last_pk],
        "sources": [texts[pk] for pk in json.loads(row.sources)],
        "retired_at": None if row.retired_ms is None else iso(row.retired_ms),
        **_plain(row, "policy", "version", "text", "origin", "backend", "prompt", "took_ms"),
    }


def _fold(
    row: Any,
    ids: dict[int | None, str | None],
    texts: dict[int, tuple[str, int]],
    gist_names: dict[int | None, list[Any] | None],
) -> Line:
    return {
        "type": "fold",
        "at": ids[row.at_pk],
        "border": ids.get(row.border_pk),
        "gist": gist_names[row.gist_pk],
        "memory": [texts[pk] for pk in json.loads(row.memory)],
        **_plain(row, "policy", "kind", "memory_chars", "stand_ins", "revision"),
    }


_ATTEMPT = (
    "id",
    "backend",
    "policy",
    "model",
    "view_kind",
    "state",
    "finish_reason",
    "error",
    "idempotency_key",
    "memory_chars",
    "verbatim_chars",
    "prompt_tokens",
    "cached_tokens",
    "completion_tokens",
    "rule",
    "slot",
    "prompt_chars",
    "expected_chars",
    "moved_at",
    "moved_by",
    "first_token_ms",
    "queued_ms",
)


def _attempt(
    row: Any,
    ids: dict[int | None, str | None],
    systems: dict[int | None, int | None],
    fold_names: dict[int | None, int | None],
) -> Line:
    return {
        "type": "attempt",
        "asked": ids[row.asked_pk],
        "reply": ids[row.reply_pk],
        "system": systems[row.system_pk],
        "fold": fold_names[row.fold_pk],
        **{name: getattr(row, name) for name in _ATTEMPT},
        "started_at": iso(row.started_ms),
        "ended_at": None if row.ended_ms is None else iso(row.ended_ms),
    }
