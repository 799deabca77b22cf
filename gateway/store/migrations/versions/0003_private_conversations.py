"""Whether an owner has a private conversation is looked up before each new one"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_conversations_private",
        "conversations",
        ["owner_pk", "touched_ms"],
        sqlite_where=sa.text("private"),
        postgresql_where=sa.text("private"),
    )
