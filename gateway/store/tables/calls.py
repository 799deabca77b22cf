"""What was asked of backends, and what they told of it."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index
from sqlmodel import Field, SQLModel

from gateway.store.tables import columns


class Attempt(SQLModel, table=True):
    """One upstream call for a turn, what it cost and how it ended.

    rule: what chose the backend. slot: of llama-server, where it told. The prefix report:
    prompt_chars of the prompt, expected_chars of it that the previous prompt there covers,
    moved_at and moved_by the first message that differs from it and why. first_token_ms and
    queued_ms since the call was made ready.
    """

    __tablename__ = "attempts"
    __table_args__ = (
        Index("ix_attempts_asked", "asked_pk"),
        Index("ix_attempts_conversation", "conversation_pk"),
        Index("ix_attempts_state", "state"),
        Index("ix_attempts_key", "idempotency_key"),
        columns.STEADY,
    )
    pk: int | None = columns.pk()
    id: str = columns.text(unique=True)
    conversation_pk: int = columns.ref("conversations.pk")
    asked_pk: int = columns.big()
    reply_pk: int | None = columns.big(nullable=True)
    system_pk: int | None = columns.big(nullable=True)
    fold_pk: int | None = columns.big(nullable=True)
    backend: str = columns.text()
    policy: str = columns.text()
    model: str = columns.text()
    boot: str = columns.text()
    view_kind: str = columns.text()
    state: str = columns.text()
    finish_reason: str | None = columns.text(nullable=True)
    error: str | None = columns.text(nullable=True)
    idempotency_key: str | None = columns.text(nullable=True)
    memory_chars: int = 0
    verbatim_chars: int = 0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    rule: str | None = columns.text(nullable=True)
    slot: int | None = None
    prompt_chars: int | None = None
    expected_chars: int | None = None
    moved_at: int | None = None
    moved_by: str | None = columns.text(nullable=True)
    first_token_ms: int | None = None
    queued_ms: int | None = None
    started_ms: int = columns.big()
    ended_ms: int | None = columns.big(nullable=True)


class AuxiliaryRequest(SQLModel, table=True):
    """A request that is no turn (a title, tags, a client's own summary): figures, never text.

    how: by what it was recognised. conversation_pk only where the client named one.
    """

    __tablename__ = "auxiliary_requests"
    __table_args__ = (columns.STEADY,)
    pk: int | None = columns.pk()
    owner_pk: int = columns.ref("owners.pk", index=True)
    conversation_pk: int | None = columns.ref("conversations.pk", nullable=True, index=True)
    kind: str = columns.text()
    how: str = columns.text()
    model: str = columns.text()
    backend: str = columns.text()
    state: str = columns.text()
    finish_reason: str | None = columns.text(nullable=True)
    error: str | None = columns.text(nullable=True)
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    started_ms: int = columns.big()
    ended_ms: int | None = columns.big(nullable=True)


class TokenRatio(SQLModel, table=True):
    """Characters per token of one conversation on one backend, learned from usage."""

    __tablename__ = "token_ratios"
    conversation_pk: int = Field(
        sa_column=Column(
            columns.KEY, ForeignKey("conversations.pk", ondelete="CASCADE"), primary_key=True
        )
    )
    backend: str = Field(sa_column=Column(columns.TEXT, primary_key=True))
    ratio: float
