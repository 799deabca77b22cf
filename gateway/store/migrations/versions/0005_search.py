"""The index of recall: posting lists of what has left a view"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# Sorted by code point on every database, as SQLite does.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "search_keys",
        sa.Column("conversation_pk", _BIG, nullable=False),
        sa.Column("salt", TEXT, nullable=False),
        sa.Column("messages", sa.Integer(), nullable=False),
        sa.Column("last_pk", _BIG, nullable=False),
        sa.Column("last_depth", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["conversation_pk"], ["conversations.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("conversation_pk"),
    )
    if op.get_bind().dialect.name == "postgresql":
        _create_posting_lists()
    else:
        _create_fts()


def _create_fts() -> None:
    # Words are digests under their conversation's salt: letters and digits, nothing to fold.
    op.execute(
        "CREATE VIRTUAL TABLE message_search USING fts5"
        "(terms, tokenize='ascii', detail=none, columnsize=0)"
    )
    # A rowid holds the message's pk above 26 bits (policies.recall.places): whatever deletes a
    # message deletes its search row, in the same transaction.
    op.execute(
        "CREATE TRIGGER message_search_goes AFTER DELETE ON messages BEGIN "
        "DELETE FROM message_search WHERE rowid BETWEEN old.pk << 26 AND (old.pk + 1 << 26) - 1; "
        "END"
    )


def _create_posting_lists() -> None:
    # By conversation first: a deletion is one stretch of each, and what one conversation reads and
    # writes lies apart from the others.
    op.create_table(
        "message_search",
        sa.Column("conversation_pk", _BIG, nullable=False),
        sa.Column("place", _BIG, nullable=False),
        sa.ForeignKeyConstraint(["conversation_pk"], ["conversations.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("conversation_pk", "place"),
    )
    op.create_table(
        "message_terms",
        sa.Column("conversation_pk", _BIG, nullable=False),
        sa.Column("term", _BIG, nullable=False),
        sa.Column("place", _BIG, nullable=False),
        sa.ForeignKeyConstraint(["conversation_pk"], ["conversations.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("conversation_pk", "term", "place"),
    )
