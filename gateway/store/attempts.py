"""Attempt rows: one upstream call each, what it cost and how it ended."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update

from gateway.clock import iso
from gateway.randomness import random_hex
from gateway.store.prepared import Prepared
from gateway.store.tables.calls import Attempt
from gateway.store.tables.transcript import Conversation

attempts = Attempt.__table__  # type: ignore[attr-defined]
conversations = Conversation.__table__  # type: ignore[attr-defined]

_FRESH: dict[str, Any] = {
    column.name: 0 if column.name in ("memory_chars", "verbatim_chars") else None
    for column in attempts.c
    if column.name != "pk"
}
_INSERT = Prepared(insert(attempts).returning(attempts.c.pk), list(_FRESH))
_FINISH = Prepared(
    update(attempts)
    .where(attempts.c.pk == bindparam("which"))
    .values(
        reply_pk=bindparam("reply"),
        state=bindparam("ended_as"),
        finish_reason=bindparam("finish"),
        error=bindparam("fault"),
        prompt_tokens=bindparam("prompt"),
        cached_tokens=bindparam("cached"),
        completion_tokens=bindparam("completion"),
        prompt_chars=bindparam("chars"),
        slot=bindparam("in_slot"),
        queued_ms=bindparam("queued"),
        first_token_ms=bindparam("first"),
        expected_chars=bindparam("expected"),
        moved_at=bindparam("differs_at"),
        moved_by=bindparam("differs_by"),
        ended_ms=bindparam("now"),
    )
)
_PRESENT = Prepared(select(attempts.c.pk).where(attempts.c.pk == bindparam("which")))
_LAST_SYSTEM = Prepared(
    select(attempts.c.system_pk)
    .where(attempts.c.conversation_pk == bindparam("conversation"))
    .order_by(attempts.c.pk.desc())
    .limit(1)
)
_BY_KEY = Prepared(
    select(attempts.c.conversation_pk, attempts.c.asked_pk)
    .join(conversations, conversations.c.pk == attempts.c.conversation_pk)
    .where(
        attempts.c.idempotency_key == bindparam("key"),
        conversations.c.owner_pk == bindparam("owner"),
    )
    .order_by(attempts.c.pk)
)


def begin_attempt(connection: Connection, **values: Any) -> int:
    """A running attempt; values are the columns of `Attempt`. Returns its row number."""
    given = {**_FRESH, "id": f"att_{random_hex(10)}", **values}
    return int(_INSERT.scalar(connection, **given))


def finish_attempt(
    connection: Connection,
    pk: int,
    *,
    state: str,
    reply_pk: int | None,
    finish_reason: str | None,
    error: str | None,
    prompt_tokens: int | None,
    cached_tokens: int | None,
    completion_tokens: int | None,
    now_ms: int,
    prompt_chars: int | None = None,
    slot: int | None = None,
    queued_ms: int | None = None,
    first_token_ms: int | None = None,
    expected_chars: int | None = None,
    moved_at: int | None = None,
    moved_by: str | None = None,
) -> bool:
    """Write how an attempt ended. False where it is gone: its conversation was deleted."""
    done = _FINISH.run(
        connection,
        which=pk,
        reply=reply_pk,
        ended_as=state,
        finish=finish_reason,
        fault=error,
        prompt=prompt_tokens,
        cached=cached_tokens,
        completion=completion_tokens,
        chars=prompt_chars,
        in_slot=slot,
        queued=queued_ms,
        first=first_token_ms,
        expected=expected_chars,
        differs_at=moved_at,
        differs_by=moved_by,
        now=now_ms,
    )
    return done == 1


def asked_by_key(connection: Connection, owner_pk: int, key: str) -> tuple[int, int] | None:
    """(conversation, asked message) of the owner's first attempt under an Idempotency-Key."""
    row = _BY_KEY.first(connection, key=key, owner=owner_pk)
    return None if row is None else (row[0], row[1])


_WAS_ASKED = Prepared(
    select(attempts.c.pk)
    .where(attempts.c.asked_pk == bindparam("asked"), attempts.c.policy == bindparam("under"))
    .limit(1)
)


def was_asked(connection: Connection, asked_pk: int, policy: str) -> bool:
    """Whether this message was shown to a model under this policy before: then its view stands."""
    return _WAS_ASKED.first(connection, asked=asked_pk, under=policy) is not None


_WAS_USED = Prepared(
    select(attempts.c.pk)
    .where(
        attempts.c.conversation_pk == bindparam("conversation"),
        attempts.c.policy == bindparam("named"),
    )
    .order_by(attempts.c.pk.desc())
    .limit(1)
)


def was_used(connection: Connection, conversation_pk: int, policy: str) -> bool:
    """Whether a view of this policy was ever shown in this conversation."""
    return _WAS_USED.first(connection, conversation=conversation_pk, named=policy) is not None


_BOOT_BEFORE = Prepared(
    select(attempts.c.boot)
    .where(
        attempts.c.conversation_pk == bindparam("conversation"),
        attempts.c.backend == bindparam("served_by"),
        attempts.c.pk < bindparam("before"),
    )
    .order_by(attempts.c.pk.desc())
    .limit(1)
)


def boot_before(connection: Connection, conversation_pk: int, backend: str, pk: int) -> str | None:
    """The run that made the conversation's attempt before this one on a backend; None: there was
    none."""
    found: str | None = _BOOT_BEFORE.scalar(
        connection, conversation=conversation_pk, served_by=backend, before=pk
    )
    return found


def reshape_attempt(
    connection: Connection,
    pk: int,
    *,
    fold_pk: int,
    view_kind: str,
    memory_chars: int,
    verbatim_chars: int,
) -> None:
    """Another view for an attempt that was not sent yet."""
    connection.execute(
        update(attempts)
        .where(attempts.c.pk == pk)
        .values(
            fold_pk=fold_pk,
            view_kind=view_kind,
            memory_chars=memory_chars,
            verbatim_chars=verbatim_chars,
        )
    )


_LAST_SERVER = Prepared(
    select(attempts.c.backend)
    .where(
        attempts.c.conversation_pk == bindparam("conversation"),
        attempts.c.reply_pk.is_not(None),
    )
    .order_by(attempts.c.pk.desc())
    .limit(1)
)


def last_server(connection: Connection, conversation_pk: int) -> str | None:
    """The backend that gave a conversation's newest reply; None: nothing was replied yet."""
    found: str | None = _LAST_SERVER.scalar(connection, conversation=conversation_pk)
    return found


def last_policy(connection: Connection, conversation_pk: int) -> str | None:
    """The policy under which a conversation's newest reply was given; None: nothing was replied."""
    found: str | None = connection.execute(
        select(attempts.c.policy)
        .where(attempts.c.conversation_pk == conversation_pk, attempts.c.reply_pk.is_not(None))
        .order_by(attempts.c.pk.desc())
        .limit(1)
    ).scalar()
    return found


def list_rules(connection: Connection, conversation_pk: int, *, limit: int) -> list[dict[str, Any]]:
    """Which rule sent a conversation's newest attempts where, newest first. rule is None for
    attempts of before there were rules."""
    rows = connection.execute(
        select(
            attempts.c.started_ms,
            attempts.c.model,
            attempts.c.backend,
            attempts.c.policy,
            attempts.c.rule,
            attempts.c.view_kind,
            attempts.c.state,
        )
        .where(attempts.c.conversation_pk == conversation_pk)
        .order_by(attempts.c.pk.desc())
        .limit(limit)
    )
    return [
        {
            "at": iso(row.started_ms),
            "model": row.model,
            "backend": row.backend,
            "policy": row.policy,
            "rule": row.rule,
            "view": row.view_kind,
            "state": row.state,
        }
        for row in rows
    ]


NOT_STORED = "the database refused it"


def abandon_attempt(connection: Connection, pk: int, error: str, now_ms: int) -> None:
    """End an attempt that never got to its call; one that ended otherwise stays as it is."""
    connection.execute(
        update(attempts)
        .where(attempts.c.pk == pk, attempts.c.state == "running")
        .values(state="cancelled", error=error, ended_ms=now_ms)
    )


def abandon_unsettled(connection: Connection, pks: Collection[int], now_ms: int) -> None:
    """End attempts that ran to an end which could not be stored."""
    connection.execute(
        update(attempts)
        .where(attempts.c.pk.in_(pks), attempts.c.state == "running")
        .values(state="failed", error=NOT_STORED, ended_ms=now_ms)
    )


def abandon_dead(connection: Connection, alive: Collection[str], now_ms: int) -> int:
    """Mark attempts that a run which is not among the living left running. Returns how many."""
    done = connection.execute(
        update(attempts)
        .where(attempts.c.state == "running", attempts.c.boot.not_in(alive))
        .values(state="cancelled", error="the gateway stopped", ended_ms=now_ms)
    )
    return done.rowcount


def busy_elsewhere(connection: Connection, boot: str) -> set[str]:
    """The backends that turns of other runs are being served by."""
    statement = (
        select(attempts.c.backend)
        .where(attempts.c.state == "running", attempts.c.boot != boot)
        .distinct()
    )
    return set(connection.execute(statement).scalars())


def is_there(connection: Connection, pk: int) -> bool:
    """Whether an attempt still has its row: it goes with its conversation."""
    return _PRESENT.first(connection, which=pk) is not None


def last_system(connection: Connection, conversation_pk: int) -> int | None:
    """The system text of the newest attempt in a conversation."""
    found: int | None = _LAST_SYSTEM.scalar(connection, conversation=conversation_pk)
    return found
