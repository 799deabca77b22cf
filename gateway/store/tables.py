"""The tables. DESIGN.md, "State on one page", says why each is as it is.

Every row hangs on a conversation and every conversation on an owner; foreign keys cascade, so a
deletion is one statement. Times are milliseconds since 1970 (UTC), sizes characters.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Integer, Text, UniqueConstraint
from sqlalchemy import text as sql_text
from sqlmodel import Field, SQLModel

# SQLite gives rowids (and never a used one again) only to INTEGER PRIMARY KEY AUTOINCREMENT.
_Key = BigInteger().with_variant(Integer, "sqlite")
_STEADY = {"sqlite_autoincrement": True}


def _pk() -> Any:
    return Field(default=None, sa_column=Column(_Key, primary_key=True, autoincrement=True))


def _ref(target: str, *, nullable: bool = False, index: bool = False) -> Any:
    return Field(
        default=None,
        sa_column=Column(
            _Key, ForeignKey(target, ondelete="CASCADE"), nullable=nullable, index=index
        ),
    )


def _text(*, nullable: bool = False, unique: bool = False) -> Any:
    return Field(default=None, sa_column=Column(Text, nullable=nullable, unique=unique))


def _big(*, nullable: bool = False) -> Any:
    return Field(default=None, sa_column=Column(_Key, nullable=nullable))


class Owner(SQLModel, table=True):
    """The name of a key's owner plus the forwarded user ("" where none is forwarded)."""

    __tablename__ = "owners"
    __table_args__ = (UniqueConstraint("name", "user"), _STEADY)
    pk: int | None = _pk()
    name: str = _text()
    user: str = _text()
    created_ms: int = _big()


class Conversation(SQLModel, table=True):
    """One transcript. head_pk is the newest message; it moves with every turn.

    resends: the client was seen to send its history again (so a lone first message is a swipe).
    backend: where it lives, and stays while no rule says otherwise. route: the backend that
    somebody chose for it, before all rules. private: it was once asked of a private model, or began
    with what was said in such a conversation, and from then on nothing of it leaves this machine.
    renew_after: the newest fold of all when its owner wanted the memory to be seen anew: the next
    user message of each view that stands on an older one, or on none, is shown a new one. noted: a
    view of which nothing is folded holds notes.
    """

    __tablename__ = "conversations"
    __table_args__ = (
        Index("ix_conversations_owner", "owner_pk", "touched_ms"),
        Index(
            "ix_conversations_private", "owner_pk", "touched_ms", sqlite_where=sql_text("private")
        ),
        _STEADY,
    )
    pk: int | None = _pk()
    id: str = _text(unique=True)
    owner_pk: int = _ref("owners.pk")
    head_pk: int | None = _big(nullable=True)
    model: str = _text()
    backend: str | None = _text(nullable=True)
    route: str | None = _text(nullable=True)
    private: bool = False
    archived: bool = False
    resends: bool = False
    renew_after: int | None = _big(nullable=True)
    noted: bool = False
    created_ms: int = _big()
    touched_ms: int = _big()


class ConversationAlias(SQLModel, table=True):
    """A client's own id for a conversation, within its owner."""

    __tablename__ = "conversation_aliases"
    owner_pk: int = Field(
        sa_column=Column(_Key, ForeignKey("owners.pk", ondelete="CASCADE"), primary_key=True)
    )
    alias: str = Field(sa_column=Column(Text, primary_key=True))
    conversation_pk: int = _ref("conversations.pk", index=True)


class Message(SQLModel, table=True):
    """A node of the tree; never updated.

    content is the digest of the message alone (alignment of trimmed histories); anchored says that
    the gateway itself produced this message or one before it on its path. cum_images and cum_tools
    count images and tool messages along the path, as cum_chars sums characters.
    parent_pk and jump_pk stay within the conversation and carry no foreign key of their own:
    the rows of a conversation come and go together.
    """

    __tablename__ = "messages"
    __table_args__ = (
        Index("ix_messages_chain", "owner_pk", "chain"),
        Index("ix_messages_depth", "conversation_pk", "depth"),
        Index("ix_messages_content", "conversation_pk", "content"),
        _STEADY,
    )
    pk: int | None = _pk()
    id: str = _text(unique=True)
    conversation_pk: int = _ref("conversations.pk")
    owner_pk: int = _big()
    parent_pk: int | None = _big(nullable=True)
    depth: int
    jump_pk: int | None = _big(nullable=True)
    jump_depth: int
    chain: str = _text()
    content: str = _text()
    role: str = _text()
    raw: str = _text()
    text: str | None = _text(nullable=True)
    chars: int
    cum_chars: int = _big()
    cum_images: int = 0
    cum_tools: int = 0
    opens: bool
    produced: bool = False
    anchored: bool = False
    backend: str | None = _text(nullable=True)
    finish_reason: str | None = _text(nullable=True)
    partial: bool = False
    created_ms: int = _big()


class SystemText(SQLModel, table=True):
    """The system messages of one turn as they came: JSON list of [depth before it, message]."""

    __tablename__ = "system_texts"
    __table_args__ = (UniqueConstraint("conversation_pk", "digest"), _STEADY)
    pk: int | None = _pk()
    conversation_pk: int = _ref("conversations.pk")
    digest: str = _text()
    body: str = _text()
    created_ms: int = _big()


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
        _STEADY,
    )
    pk: int | None = _pk()
    id: str = _text(unique=True)
    conversation_pk: int = _ref("conversations.pk")
    asked_pk: int = _big()
    reply_pk: int | None = _big(nullable=True)
    system_pk: int | None = _big(nullable=True)
    fold_pk: int | None = _big(nullable=True)
    backend: str = _text()
    policy: str = _text()
    model: str = _text()
    boot: str = _text()
    view_kind: str = _text()
    state: str = _text()
    finish_reason: str | None = _text(nullable=True)
    error: str | None = _text(nullable=True)
    idempotency_key: str | None = _text(nullable=True)
    memory_chars: int = 0
    verbatim_chars: int = 0
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    rule: str | None = _text(nullable=True)
    slot: int | None = None
    prompt_chars: int | None = None
    expected_chars: int | None = None
    moved_at: int | None = None
    moved_by: str | None = _text(nullable=True)
    first_token_ms: int | None = None
    queued_ms: int | None = None
    started_ms: int = _big()
    ended_ms: int | None = _big(nullable=True)


class AuxiliaryRequest(SQLModel, table=True):
    """A request that is no turn (a title, tags, a client's own summary): figures, never text.

    how: by what it was recognised. conversation_pk only where the client named one.
    """

    __tablename__ = "auxiliary_requests"
    __table_args__ = (_STEADY,)
    pk: int | None = _pk()
    owner_pk: int = _ref("owners.pk", index=True)
    conversation_pk: int | None = _ref("conversations.pk", nullable=True, index=True)
    kind: str = _text()
    how: str = _text()
    model: str = _text()
    backend: str = _text()
    state: str = _text()
    finish_reason: str | None = _text(nullable=True)
    error: str | None = _text(nullable=True)
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    started_ms: int = _big()
    ended_ms: int | None = _big(nullable=True)


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
        _STEADY,
    )
    pk: int | None = _pk()
    conversation_pk: int = _ref("conversations.pk")
    policy: str = _text()
    at_pk: int = _big()
    at_depth: int
    border_pk: int = _big()
    border_depth: int
    border_cum: int = _big()
    kind: str = _text()
    gist_pk: int | None = _big(nullable=True)
    memory: str = _text()
    memory_chars: int
    stand_ins: int = 0
    shown: str | None = _text(nullable=True)
    revision: str = _text()
    created_ms: int = _big()


class Chapter(SQLModel, table=True):
    """A span of the transcript that is, or is to be, a chapter. Without a version it is debt."""

    __tablename__ = "chapters"
    __table_args__ = (UniqueConstraint("conversation_pk", "last_pk", "first_pk"), _STEADY)
    pk: int | None = _pk()
    id: str = _text(unique=True)
    conversation_pk: int = _ref("conversations.pk")
    first_pk: int = _big()
    last_pk: int = _big()
    first_depth: int
    last_depth: int
    source_chars: int
    created_ms: int = _big()


class ChapterVersion(SQLModel, table=True):
    """One text of a chapter; never updated. origin: model, stand-in or owner."""

    __tablename__ = "chapter_versions"
    __table_args__ = (UniqueConstraint("chapter_pk", "version"), _STEADY)
    pk: int | None = _pk()
    chapter_pk: int = _ref("chapters.pk")
    conversation_pk: int = _ref("conversations.pk", index=True)
    version: int
    text: str = _text()
    origin: str = _text()
    backend: str | None = _text(nullable=True)
    prompt: str | None = _text(nullable=True)
    took_ms: int | None = _big(nullable=True)
    created_ms: int = _big()


class Gist(SQLModel, table=True):
    """The old generation of one policy: everything up to last_pk in one text; versions stay.

    retired_ms: its major GC was undone; no later fold shows it or makes the same again.
    """

    __tablename__ = "gists"
    __table_args__ = (
        UniqueConstraint("conversation_pk", "policy", "last_pk", "version"),
        _STEADY,
    )
    pk: int | None = _pk()
    conversation_pk: int = _ref("conversations.pk")
    policy: str = _text()
    last_pk: int = _big()
    last_depth: int
    version: int
    sources: str = _text()
    text: str = _text()
    origin: str = _text()
    backend: str | None = _text(nullable=True)
    prompt: str | None = _text(nullable=True)
    took_ms: int | None = _big(nullable=True)
    retired_ms: int | None = _big(nullable=True)
    created_ms: int = _big()


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
        _STEADY,
    )
    pk: int | None = _pk()
    id: str = _text(unique=True)
    conversation_pk: int = _ref("conversations.pk")
    kind: str = _text()
    number: int | None = None
    text: str = _text()
    about: str | None = _text(nullable=True)
    who: str | None = _text(nullable=True)
    target: str | None = _text(nullable=True)
    truth: str | None = _text(nullable=True)
    chapter_pk: int | None = _big(nullable=True)
    version_pk: int | None = _big(nullable=True)
    gist_pk: int | None = _big(nullable=True)
    source_pk: int | None = _big(nullable=True)
    last_pk: int = _big()
    last_depth: int
    origin: str = _text()
    created_ms: int = _big()


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
        _STEADY,
    )
    pk: int | None = _pk()
    conversation_pk: int = _ref("conversations.pk")
    entry_pk: int = _ref("ledger_entries.pk")
    mark: str = _text()
    by_pk: int | None = _big(nullable=True)
    chapter_pk: int | None = _big(nullable=True)
    last_pk: int | None = _big(nullable=True)
    last_depth: int | None = None
    origin: str = _text()
    created_ms: int = _big()


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
        _STEADY,
    )
    pk: int | None = _pk()
    id: str = _text(unique=True)
    owner_pk: int = _ref("owners.pk")
    conversation_pk: int | None = _ref("conversations.pk", nullable=True, index=True)
    text: str = _text()
    about: str | None = _text(nullable=True)
    source: str | None = _text(nullable=True)
    origin: str = _text()
    state: str = _text()
    replaces_pk: int | None = _big(nullable=True)
    created_ms: int = _big()
    ended_ms: int | None = _big(nullable=True)


class Note(SQLModel, table=True):
    """What was recalled beside one message in the views that stand on one fold; never updated.

    kind: lines (of a question, shown in it) or calls (of a reply: the searches that its model made,
    and what it was answered, shown before it; asked_pk is then the reply). body: JSON as prompts
    render it. chars: what it costs in a view.
    """

    __tablename__ = "notes"
    __table_args__ = (
        UniqueConstraint("conversation_pk", "policy", "fold_pk", "asked_pk", "kind"),
        _STEADY,
    )
    pk: int | None = _pk()
    conversation_pk: int = _ref("conversations.pk")
    policy: str = _text()
    fold_pk: int = _big()
    asked_pk: int = _big()
    asked_depth: int
    kind: str = _text()
    body: str = _text()
    chars: int
    created_ms: int = _big()


class Document(SQLModel, table=True):
    """A text that is pinned in the stable part of views: of one conversation, or (policy) named in
    policies.yaml. A changed text is a new row; removed_ms: no later fold shows it."""

    __tablename__ = "documents"
    __table_args__ = (Index("ix_documents_policy", "policy", "digest"), _STEADY)
    pk: int | None = _pk()
    id: str = _text(unique=True)
    conversation_pk: int | None = _ref("conversations.pk", nullable=True, index=True)
    policy: str | None = _text(nullable=True)
    name: str = _text()
    text: str = _text()
    digest: str = _text()
    chars: int
    created_ms: int = _big()
    removed_ms: int | None = _big(nullable=True)


class Job(SQLModel, table=True):
    """A piece of background work. The row is the truth; bells only ring.

    payload holds row numbers, never text. key makes the work unique.
    """

    __tablename__ = "jobs"
    __table_args__ = (Index("ix_jobs_due", "state", "run_at_ms"), _STEADY)
    pk: int | None = _pk()
    key: str = _text(unique=True)
    kind: str = _text()
    conversation_pk: int = _ref("conversations.pk", index=True)
    state: str = _text()
    run_at_ms: int = _big()
    attempts: int = 0
    lease: str | None = _text(nullable=True)
    lease_until_ms: int | None = _big(nullable=True)
    backend: str | None = _text(nullable=True)
    policy: str = _text()
    payload: str = _text()
    error_kind: str | None = _text(nullable=True)
    error: str | None = _text(nullable=True)
    created_ms: int = _big()
    updated_ms: int = _big()


class Quarantined(SQLModel, table=True):
    """An output that the judge refused: for people to read, never for a model."""

    __tablename__ = "quarantine"
    __table_args__ = (_STEADY,)
    pk: int | None = _pk()
    conversation_pk: int = _ref("conversations.pk", index=True)
    chapter_pk: int | None = _big(nullable=True)
    kind: str = _text()
    backend: str = _text()
    reasons: str = _text()
    text: str = _text()
    finish_reason: str | None = _text(nullable=True)
    created_ms: int = _big()


class TokenRatio(SQLModel, table=True):
    """Characters per token of one conversation on one backend, learned from usage."""

    __tablename__ = "token_ratios"
    conversation_pk: int = Field(
        sa_column=Column(_Key, ForeignKey("conversations.pk", ondelete="CASCADE"), primary_key=True)
    )
    backend: str = Field(sa_column=Column(Text, primary_key=True))
    ratio: float


class KvWipe(SQLModel, table=True):
    """A slot or file that held a deleted conversation, or, with backend "", word of a deletion of
    which no backend held anything; with no conversation either, word that of something which views
    showed the text is gone. Outlives the conversation on purpose."""

    __tablename__ = "kv_outbox"
    __table_args__ = (_STEADY,)
    pk: int | None = _pk()
    conversation_id: str = _text()
    backend: str = _text()
    slot: int | None = None
    conversation_pk: int | None = _big(nullable=True)
    created_ms: int = _big()
    done_ms: int | None = _big(nullable=True)


class PolicyRevision(SQLModel, table=True):
    """A revision of policies.yaml that was in force; secrets stay ${VAR} in its text."""

    __tablename__ = "policy_revisions"
    digest: str = Field(sa_column=Column(Text, primary_key=True))
    text: str = _text()
    created_ms: int = _big()


class BootRow(SQLModel, table=True):
    """A run of the program: attempts of a boot that is over are known to be dead."""

    __tablename__ = "boots"
    id: str = Field(sa_column=Column(Text, primary_key=True))
    pid: int
    beat_ms: int = _big()


class SearchKey(SQLModel, table=True):
    """How far a conversation is indexed for recall; the posting lists are in the virtual table
    message_search, whose rowids hold the message's pk above 26 bits.

    salt: what its words are digested with. messages: how many the index holds. last_pk and
    last_depth: the message that was indexed last (0: none yet).
    """

    __tablename__ = "search_keys"
    conversation_pk: int = Field(
        sa_column=Column(_Key, ForeignKey("conversations.pk", ondelete="CASCADE"), primary_key=True)
    )
    salt: str = _text()
    messages: int = 0
    last_pk: int = _big()
    last_depth: int = 0


METADATA = SQLModel.metadata
