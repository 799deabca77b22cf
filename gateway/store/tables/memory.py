"""What views show in place of messages and beside them, and what was refused a place there."""

from __future__ import annotations

from sqlalchemy import Index, UniqueConstraint
from sqlmodel import SQLModel

from gateway.store.tables import columns


class Fold(SQLModel, table=True):
    """The moment at which a policy's view swaps verbatim messages for chapters.

    border_pk is the last folded message (0: none is folded yet); memory is the JSON list of
    chapter version pks in order (behind the gist). kind: fold, cut, migration, opening (a view
    that begins with a profile or documents) or renewal (the owner changed what it shows).
    shown: what else its memory holds, row numbers by kind as JSON: profile, documents, pins, open,
    closed; null: nothing.
    """

    __tablename__ = "folds"
    __table_args__ = (
        Index("ix_folds_deepest", "conversation_pk", "policy", "at_depth"),
        columns.STEADY,
    )
    pk: int | None = columns.pk()
    conversation_pk: int = columns.ref("conversations.pk")
    policy: str = columns.text()
    at_pk: int = columns.big()
    at_depth: int
    border_pk: int = columns.big()
    border_depth: int
    border_cum: int = columns.big()
    kind: str = columns.text()
    gist_pk: int | None = columns.big(nullable=True)
    memory: str = columns.text()
    memory_chars: int
    stand_ins: int = 0
    shown: str | None = columns.text(nullable=True)
    revision: str = columns.text()
    created_ms: int = columns.big()


class Chapter(SQLModel, table=True):
    """A span of the transcript that is, or is to be, a chapter. Without a version it is debt."""

    __tablename__ = "chapters"
    __table_args__ = (UniqueConstraint("conversation_pk", "last_pk", "first_pk"), columns.STEADY)
    pk: int | None = columns.pk()
    id: str = columns.text(unique=True)
    conversation_pk: int = columns.ref("conversations.pk")
    first_pk: int = columns.big()
    last_pk: int = columns.big()
    first_depth: int
    last_depth: int
    source_chars: int
    created_ms: int = columns.big()


class ChapterVersion(SQLModel, table=True):
    """One text of a chapter; never updated. origin: model, stand-in or owner."""

    __tablename__ = "chapter_versions"
    __table_args__ = (UniqueConstraint("chapter_pk", "version"), columns.STEADY)
    pk: int | None = columns.pk()
    chapter_pk: int = columns.ref("chapters.pk")
    conversation_pk: int = columns.ref("conversations.pk", index=True)
    version: int
    text: str = columns.text()
    origin: str = columns.text()
    backend: str | None = columns.text(nullable=True)
    prompt: str | None = columns.text(nullable=True)
    took_ms: int | None = columns.big(nullable=True)
    created_ms: int = columns.big()


class Gist(SQLModel, table=True):
    """The old generation of one policy: everything up to last_pk in one text; versions stay.

    retired_ms: its major GC was undone; no later fold shows it or makes the same again.
    """

    __tablename__ = "gists"
    __table_args__ = (
        UniqueConstraint("conversation_pk", "policy", "last_pk", "version"),
        columns.STEADY,
    )
    pk: int | None = columns.pk()
    conversation_pk: int = columns.ref("conversations.pk")
    policy: str = columns.text()
    last_pk: int = columns.big()
    last_depth: int
    version: int
    sources: str = columns.text()
    text: str = columns.text()
    origin: str = columns.text()
    backend: str | None = columns.text(nullable=True)
    prompt: str | None = columns.text(nullable=True)
    took_ms: int | None = columns.big(nullable=True)
    retired_ms: int | None = columns.big(nullable=True)
    created_ms: int = columns.big()


class LedgerEntry(SQLModel, table=True):
    """A fact the owner told, a claim of a character, a thread, a quote, or a sentence that a gist
    had no room for (note); added, never updated. What became of it are its marks.

    number: of a thread within its conversation, by which summarizers name it. about: a fact's
    subject in few words, by which a newer one supersedes it. who, target: who said it, to whom.
    truth: of a claim, what narration or inner thought bears out. version_pk: the chapter version
    that told it (gist_pk: the gist). last_pk: the entry stands on every path that holds this
    message. source_pk: the message that bears it out. origin: model or owner.
    """

    __tablename__ = "ledger_entries"
    __table_args__ = (
        Index("ix_ledger_entries_kind", "conversation_pk", "kind", "last_depth"),
        columns.STEADY,
    )
    pk: int | None = columns.pk()
    id: str = columns.text(unique=True)
    conversation_pk: int = columns.ref("conversations.pk")
    kind: str = columns.text()
    number: int | None = None
    text: str = columns.text()
    about: str | None = columns.text(nullable=True)
    who: str | None = columns.text(nullable=True)
    target: str | None = columns.text(nullable=True)
    truth: str | None = columns.text(nullable=True)
    chapter_pk: int | None = columns.big(nullable=True)
    version_pk: int | None = columns.big(nullable=True)
    gist_pk: int | None = columns.big(nullable=True)
    source_pk: int | None = columns.big(nullable=True)
    last_pk: int = columns.big()
    last_depth: int
    origin: str = columns.text()
    created_ms: int = columns.big()


class LedgerMark(SQLModel, table=True):
    """What became of an entry; the newest mark of a pair counts on the paths that hold last_pk
    (null: on all of them, the owner's own act).

    mark: closed or reopened (threads), superseded or restored (facts), pinned or unpinned, deleted
    or undeleted. by_pk: the entry that did it, a newer fact or an edited text; chapter_pk: the
    chapter whose summary did.
    """

    __tablename__ = "ledger_marks"
    __table_args__ = (
        Index("ix_ledger_marks_entry", "entry_pk"),
        Index("ix_ledger_marks_conversation", "conversation_pk", "pk"),
        columns.STEADY,
    )
    pk: int | None = columns.pk()
    conversation_pk: int = columns.ref("conversations.pk")
    entry_pk: int = columns.ref("ledger_entries.pk")
    mark: str = columns.text()
    by_pk: int | None = columns.big(nullable=True)
    chapter_pk: int | None = columns.big(nullable=True)
    last_pk: int | None = columns.big(nullable=True)
    last_depth: int | None = None
    origin: str = columns.text()
    created_ms: int = columns.big()


class ProfileFact(SQLModel, table=True):
    """A fact that an owner told about themselves, for all their conversations (L2).

    conversation_pk: where it was learned, with which it goes; null: the owner wrote it. source:
    a digest of where it was learned and of what it says, by which a deleted one is not learned
    again. A newer text is a row of its own, replaces_pk the one that it takes the place of. state:
    active, replaced or deleted (then text is empty).
    """

    __tablename__ = "profile_facts"
    __table_args__ = (
        Index("ix_profile_facts_owner", "owner_pk", "state"),
        Index("ix_profile_facts_source", "owner_pk", "source"),
        columns.STEADY,
    )
    pk: int | None = columns.pk()
    id: str = columns.text(unique=True)
    owner_pk: int = columns.ref("owners.pk")
    conversation_pk: int | None = columns.ref("conversations.pk", nullable=True, index=True)
    text: str = columns.text()
    about: str | None = columns.text(nullable=True)
    source: str | None = columns.text(nullable=True)
    origin: str = columns.text()
    state: str = columns.text()
    replaces_pk: int | None = columns.big(nullable=True)
    created_ms: int = columns.big()
    ended_ms: int | None = columns.big(nullable=True)


class Note(SQLModel, table=True):
    """What was recalled beside one message in the views that stand on one fold; never updated.

    kind: lines (of a question, shown in it) or calls (of a reply: the searches that its model made,
    and what it was answered, shown before it; asked_pk is then the reply). body: JSON as prompts
    render it. chars: what it costs in a view.
    """

    __tablename__ = "notes"
    __table_args__ = (
        UniqueConstraint("conversation_pk", "policy", "fold_pk", "asked_pk", "kind"),
        columns.STEADY,
    )
    pk: int | None = columns.pk()
    conversation_pk: int = columns.ref("conversations.pk")
    policy: str = columns.text()
    fold_pk: int = columns.big()
    asked_pk: int = columns.big()
    asked_depth: int
    kind: str = columns.text()
    body: str = columns.text()
    chars: int
    created_ms: int = columns.big()


class Document(SQLModel, table=True):
    """A text that is pinned in the stable part of views: of one conversation, or (policy) named in
    policies.yaml. A changed text is a new row; removed_ms: no later fold shows it."""

    __tablename__ = "documents"
    __table_args__ = (Index("ix_documents_policy", "policy", "digest"), columns.STEADY)
    pk: int | None = columns.pk()
    id: str = columns.text(unique=True)
    conversation_pk: int | None = columns.ref("conversations.pk", nullable=True, index=True)
    policy: str | None = columns.text(nullable=True)
    name: str = columns.text()
    text: str = columns.text()
    digest: str = columns.text()
    chars: int
    created_ms: int = columns.big()
    removed_ms: int | None = columns.big(nullable=True)


class Quarantined(SQLModel, table=True):
    """An output that the judge refused: for people to read, never for a model."""

    __tablename__ = "quarantine"
    __table_args__ = (columns.STEADY,)
    pk: int | None = columns.pk()
    conversation_pk: int = columns.ref("conversations.pk", index=True)
    chapter_pk: int | None = columns.big(nullable=True)
    kind: str = columns.text()
    backend: str = columns.text()
    reasons: str = columns.text()
    text: str = columns.text()
    finish_reason: str | None = columns.text(nullable=True)
    created_ms: int = columns.big()
