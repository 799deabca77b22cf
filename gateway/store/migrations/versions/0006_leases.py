"""Runs of the program hold a lease"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# Sorted by code point on every database, as SQLite does.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """A run from before has no lease: it is over, or it takes one with its next beat."""
    op.add_column("boots", sa.Column("machine", TEXT, nullable=False, server_default=""))
    op.add_column("boots", sa.Column("lease_until_ms", _BIG, nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("boots", "lease_until_ms")
    op.drop_column("boots", "machine")
