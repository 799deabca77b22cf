"""What the program still has to do, and how it was run."""

from __future__ import annotations

from sqlalchemy import Column, Index
from sqlmodel import Field, SQLModel

from gateway.store.tables import columns


class Job(SQLModel, table=True):
    """A piece of background work. The row is the truth; bells only ring.

    payload holds row numbers, never text. key makes the work unique.
    """

    __tablename__ = "jobs"
    __table_args__ = (Index("ix_jobs_due", "state", "run_at_ms"), columns.STEADY)
    pk: int | None = columns.pk()
    key: str = columns.text(unique=True)
    kind: str = columns.text()
    conversation_pk: int = columns.ref("conversations.pk", index=True)
    state: str = columns.text()
    run_at_ms: int = columns.big()
    attempts: int = 0
    lease: str | None = columns.text(nullable=True)
    lease_until_ms: int | None = columns.big(nullable=True)
    backend: str | None = columns.text(nullable=True)
    policy: str = columns.text()
    payload: str = columns.text()
    error_kind: str | None = columns.text(nullable=True)
    error: str | None = columns.text(nullable=True)
    created_ms: int = columns.big()
    updated_ms: int = columns.big()


class KvWipe(SQLModel, table=True):
    """A slot or file that held a deleted conversation, or, with backend "", word of a deletion of
    which no backend held anything; with no conversation either, word that of something which views
    showed the text is gone. Outlives the conversation on purpose."""

    __tablename__ = "kv_outbox"
    __table_args__ = (columns.STEADY,)
    pk: int | None = columns.pk()
    conversation_id: str = columns.text()
    backend: str = columns.text()
    slot: int | None = None
    conversation_pk: int | None = columns.big(nullable=True)
    created_ms: int = columns.big()
    done_ms: int | None = columns.big(nullable=True)


class PolicyRevision(SQLModel, table=True):
    """A revision of policies.yaml that was in force; secrets stay ${VAR} in its text."""

    __tablename__ = "policy_revisions"
    digest: str = Field(sa_column=Column(columns.TEXT, primary_key=True))
    text: str = columns.text()
    created_ms: int = columns.big()


class BootRow(SQLModel, table=True):
    """A run of the program, under a lease that it prolongs while it works: attempts and jobs of a
    run that is over are known to be dead. machine: names where its process number means something.
    Times of the database's clock."""

    __tablename__ = "boots"
    id: str = Field(sa_column=Column(columns.TEXT, primary_key=True))
    pid: int
    machine: str = Field(sa_column=Column(columns.TEXT, nullable=False, server_default=""))
    beat_ms: int = columns.big()
    lease_until_ms: int = Field(sa_column=Column(columns.KEY, nullable=False, server_default="0"))
