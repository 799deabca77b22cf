"""What was said, by whom: owners, their conversations, the tree of messages, and its index."""

from __future__ import annotations

from sqlalchemy import Column, ForeignKey, Index, UniqueConstraint
from sqlalchemy import text as sql_text
from sqlmodel import Field, SQLModel

from gateway.store.tables import columns


class Owner(SQLModel, table=True):
    """The name of a key's owner plus the forwarded user ("" where none is forwarded)."""

    __tablename__ = "owners"
    __table_args__ = (UniqueConstraint("name", "user"), columns.STEADY)
    pk: int | None = columns.pk()
    name: str = columns.text()
    user: str = columns.text()
    created_ms: int = columns.big()


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
            "ix_conversations_private",
            "owner_pk",
            "touched_ms",
            sqlite_where=sql_text("private"),
            postgresql_where=sql_text("private"),
        ),
        columns.STEADY,
    )
    pk: int | None = columns.pk()
    id: str = columns.text(unique=True)
    owner_pk: int = columns.ref("owners.pk")
    head_pk: int | None = columns.big(nullable=True)
    model: str = columns.text()
    backend: str | None = columns.text(nullable=True)
    route: str | None = columns.text(nullable=True)
    private: bool = False
    archived: bool = False
    resends: bool = False
    renew_after: int | None = columns.big(nullable=True)
    noted: bool = False
    created_ms: int = columns.big()
    touched_ms: int = columns.big()


class ConversationAlias(SQLModel, table=True):
    """A client's own id for a conversation, within its owner."""

    __tablename__ = "conversation_aliases"
    owner_pk: int = Field(
        sa_column=Column(columns.KEY, ForeignKey("owners.pk", ondelete="CASCADE"), primary_key=True)
    )
    alias: str = Field(sa_column=Column(columns.TEXT, primary_key=True))
    conversation_pk: int = columns.ref("conversations.pk", index=True)


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
        columns.STEADY,
    )
    pk: int | None = columns.pk()
    id: str = columns.text(unique=True)
    conversation_pk: int = columns.ref("conversations.pk")
    owner_pk: int = columns.big()
    parent_pk: int | None = columns.big(nullable=True)
    depth: int
    jump_pk: int | None = columns.big(nullable=True)
    jump_depth: int
    chain: str = columns.text()
    content: str = columns.text()
    role: str = columns.text()
    raw: str = columns.text()
    text: str | None = columns.text(nullable=True)
    chars: int
    cum_chars: int = columns.big()
    cum_images: int = 0
    cum_tools: int = 0
    opens: bool
    produced: bool = False
    anchored: bool = False
    backend: str | None = columns.text(nullable=True)
    finish_reason: str | None = columns.text(nullable=True)
    partial: bool = False
    created_ms: int = columns.big()


class SystemText(SQLModel, table=True):
    """The system messages of one turn as they came: JSON list of [depth before it, message]."""

    __tablename__ = "system_texts"
    __table_args__ = (UniqueConstraint("conversation_pk", "digest"), columns.STEADY)
    pk: int | None = columns.pk()
    conversation_pk: int = columns.ref("conversations.pk")
    digest: str = columns.text()
    body: str = columns.text()
    created_ms: int = columns.big()


class SearchKey(SQLModel, table=True):
    """How far a conversation is indexed for recall; the posting lists are in the virtual table
    message_search, whose rowids hold the message's pk above 26 bits.

    salt: what its words are digested with. messages: how many the index holds. last_pk and
    last_depth: the message that was indexed last (0: none yet).
    """

    __tablename__ = "search_keys"
    conversation_pk: int = Field(
        sa_column=Column(
            columns.KEY, ForeignKey("conversations.pk", ondelete="CASCADE"), primary_key=True
        )
    )
    salt: str = columns.text()
    messages: int = 0
    last_pk: int = columns.big()
    last_depth: int = 0
