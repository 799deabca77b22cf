"""The ledger, the profile, notes, documents, and what the owner changes in a memory"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# Sorted by code point on every database, as SQLite does.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("conversations", sa.Column("renew_after", _BIG, nullable=True))
    op.add_column(
        "conversations", sa.Column("noted", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("folds", sa.Column("shown", TEXT, nullable=True))
    op.add_column("gists", sa.Column("retired_ms", _BIG, nullable=True))
    _create_ledger()
    _create_profile()
    _create_notes()
    _create_documents()


def _key() -> sa.Column[int]:
    return sa.Column("pk", _BIG, autoincrement=True, nullable=False)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, TEXT, nullable=nullable)


def _big(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, _BIG, nullable=nullable)


def _owned_by(column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint([column], [target], ondelete="CASCADE")


def _create_ledger() -> None:
    op.create_table(
        "ledger_entries",
        _key(),
        _text("id"),
        _big("conversation_pk"),
        _text("kind"),
        sa.Column("number", sa.Integer(), nullable=True),
        _text("text"),
        *(_text(name, nullable=True) for name in ("about", "who", "target", "truth")),
        *(
            _big(name, nullable=True)
            for name in ("chapter_pk", "version_pk", "gist_pk", "source_pk")
        ),
        _big("last_pk"),
        sa.Column("last_depth", sa.Integer(), nullable=False),
        _text("origin"),
        _big("created_ms"),
        _owned_by("conversation_pk", "conversations.pk"),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_ledger_entries_kind", "ledger_entries", ["conversation_pk", "kind", "last_depth"]
    )
    op.create_table(
        "ledger_marks",
        _key(),
        _big("conversation_pk"),
        _big("entry_pk"),
        _text("mark"),
        *(_big(name, nullable=True) for name in ("by_pk", "chapter_pk", "last_pk")),
        sa.Column("last_depth", sa.Integer(), nullable=True),
        _text("origin"),
        _big("created_ms"),
        _owned_by("conversation_pk", "conversations.pk"),
        _owned_by("entry_pk", "ledger_entries.pk"),
        sa.PrimaryKeyConstraint("pk"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_ledger_marks_entry", "ledger_marks", ["entry_pk"])
    op.create_index("ix_ledger_marks_conversation", "ledger_marks", ["conversation_pk", "pk"])


def _create_profile() -> None:
    op.create_table(
        "profile_facts",
        _key(),
        _text("id"),
        _big("owner_pk"),
        _big("conversation_pk", nullable=True),
        _text("text"),
        _text("about", nullable=True),
        _text("source", nullable=True),
        _text("origin"),
        _text("state"),
        _big("replaces_pk", nullable=True),
        _big("created_ms"),
        _big("ended_ms", nullable=True),
        _owned_by("owner_pk", "owners.pk"),
        _owned_by("conversation_pk", "conversations.pk"),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_profile_facts_owner", "profile_facts", ["owner_pk", "state"])
    op.create_index("ix_profile_facts_source", "profile_facts", ["owner_pk", "source"])
    op.create_index("ix_profile_facts_conversation_pk", "profile_facts", ["conversation_pk"])


def _create_notes() -> None:
    op.create_table(
        "notes",
        _key(),
        _big("conversation_pk"),
        _text("policy"),
        _big("fold_pk"),
        _big("asked_pk"),
        sa.Column("asked_depth", sa.Integer(), nullable=False),
        _text("kind"),
        _text("body"),
        sa.Column("chars", sa.Integer(), nullable=False),
        _big("created_ms"),
        _owned_by("conversation_pk", "conversations.pk"),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("conversation_pk", "policy", "fold_pk", "asked_pk", "kind"),
        sqlite_autoincrement=True,
    )


def _create_documents() -> None:
    op.create_table(
        "documents",
        _key(),
        _text("id"),
        _big("conversation_pk", nullable=True),
        _text("policy", nullable=True),
        _text("name"),
        _text("text"),
        _text("digest"),
        sa.Column("chars", sa.Integer(), nullable=False),
        _big("created_ms"),
        _big("removed_ms", nullable=True),
        _owned_by("conversation_pk", "conversations.pk"),
        sa.PrimaryKeyConstraint("pk"),
        sa.UniqueConstraint("id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_documents_policy", "documents", ["policy", "digest"])
    op.create_index("ix_documents_conversation_pk", "documents", ["conversation_pk"])
