"""What routing, slot care and the prefix report keep"""

from __future__ import annotations

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Sorted by code point on every database, as SQLite does.
TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")

_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_BATCH = 1_000


def upgrade() -> None:
    op.add_column("conversations", sa.Column("route", TEXT, nullable=True))
    op.add_column(
        "conversations",
        sa.Column("private", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    for name in ("cum_images", "cum_tools"):
        op.add_column("messages", sa.Column(name, sa.Integer(), nullable=False, server_default="0"))
    for name in ("rule", "moved_by"):
        op.add_column("attempts", sa.Column(name, TEXT, nullable=True))
    for name in (
        "slot",
        "prompt_chars",
        "expected_chars",
        "moved_at",
        "first_token_ms",
        "queued_ms",
    ):
        op.add_column("attempts", sa.Column(name, sa.Integer(), nullable=True))
    for table in ("chapter_versions", "gists"):
        op.add_column(table, sa.Column("took_ms", _BIG, nullable=True))
    op.add_column("kv_outbox", sa.Column("conversation_pk", _BIG, nullable=True))
    _create_auxiliary_requests()
    _count_along_paths(op.get_bind())


def _create_auxiliary_requests() -> None:
    op.create_table(
        "auxiliary_requests",
        sa.Column("pk", _BIG, autoincrement=True, nullable=False),
        sa.Column("owner_pk", _BIG, nullable=False),
        sa.Column("conversation_pk", _BIG, nullable=True),
        sa.Column("kind", TEXT, nullable=False),
        sa.Column("how", TEXT, nullable=False),
        sa.Column("model", TEXT, nullable=False),
        sa.Column("backend", TEXT, nullable=False),
        sa.Column("state", TEXT, nullable=False),
        sa.Column("finish_reason", TEXT, nullable=True),
        sa.Column("error", TEXT, nullable=True),
        sa.Column("prompt_tokens", sa.Integer(), nullable=True),
        sa.Column("completion_tokens", sa.Integer(), nullable=True),
        sa.Column("started_ms", _BIG, nullable=False),
        sa.Column("ended_ms", _BIG, nullable=True),
        sa.ForeignKeyConstraint(["owner_pk"], ["owners.pk"], ondelete="CASCADE"),
        sa.ForeignKeyConstraint(["conversation_pk"], ["conversations.pk"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("pk"),
        sqlite_autoincrement=True,
    )
    for column in ("owner_pk", "conversation_pk"):
        op.create_index(f"ix_auxiliary_requests_{column}", "auxiliary_requests", [column])


def _count_along_paths(connection: sa.Connection) -> None:
    """Images and tool messages along the paths of what is stored already, parents first."""
    read = sa.text(
        "SELECT m.pk, m.parent_pk, m.raw, p.cum_images, p.cum_tools FROM messages m"
        " LEFT JOIN messages p ON p.pk = m.parent_pk WHERE m.pk > :after ORDER BY m.pk LIMIT :some"
    )
    write = sa.text("UPDATE messages SET cum_images = :images, cum_tools = :tools WHERE pk = :pk")
    after = 0
    while rows := connection.execute(read, {"after": after, "some": _BATCH}).all():
        sums: dict[int, tuple[int, int]] = {}
        for row in rows:
            above = sums.get(row.parent_pk) or (row.cum_images or 0, row.cum_tools or 0)
            images, tools = _count(json.loads(row.raw))
            sums[row.pk] = above[0] + images, above[1] + tools
        after = rows[-1].pk
        counted = [
            {"pk": pk, "images": images, "tools": tools}
            for pk, (images, tools) in sums.items()
            if images or tools
        ]
        if counted:
            connection.execute(write, counted)


def _count(message: Any) -> tuple[int, int]:
    """As the program counted when this migration was written."""
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    kinds = [part.get("type") for part in parts if isinstance(part, dict)]
    images = sum(kind in ("image_url", "input_image", "image") for kind in kinds)
    is_tool = message.get("role") in ("tool", "function") or bool(message.get("tool_calls"))
    return images, int(is_tool)
