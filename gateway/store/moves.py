"""How far a conversation is on its way to another backend, read from the rows alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from gateway.store import chapter_rows, fold_rows, gist_rows
from gateway.store.attempts import attempts, last_server
from gateway.store.chapter_rows import ChapterRow
from gateway.store.tables.work import Job
from gateway.store.transcript import ConversationRow, Node, node_by_pk
from policies.routing import MIGRATING

jobs = Job.__table__  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class Progress:
    """A conversation that waits for its view on another backend.

    total: the chapters behind that view's border, and the gist where one is being made; ready:
    those of them that have a text. backlog_chars: what these chapters tell.
    """

    backend: str
    policy: str
    ready: int
    total: int
    backlog_chars: int

    def __str__(self) -> str:
        return f"{self.ready}/{self.total}"

    def as_json(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "policy": self.policy,
            "ready": self.ready,
            "total": self.total,
            "backlog_chars": self.backlog_chars,
        }


def read_progress(
    connection: Connection, conversation_pk: int, *, backend: str, policy: str, head: Node
) -> Progress:
    """How much of what a move waits for is ready at a head."""
    fold = fold_rows.deepest_fold(connection, conversation_pk, policy, head)
    border = fold.border_depth if fold else 0
    rows = chapter_rows.chapter_row(connection, conversation_pk, head, above=border)
    return count_progress(connection, conversation_pk, rows, backend=backend, policy=policy)


def count_progress(
    connection: Connection,
    conversation_pk: int,
    rows: Sequence[ChapterRow],
    *,
    backend: str,
    policy: str,
) -> Progress:
    """The same from the chapters behind the view's border, where they were read."""
    made = gist_rows.gist_ends(connection, conversation_pk, policy)
    live = connection.execute(
        select(jobs.c.payload).where(
            jobs.c.conversation_pk == conversation_pk,
            jobs.c.kind == "gist",
            jobs.c.policy == policy,
            jobs.c.state.in_(("queued", "leased")),
        )
    ).scalars()
    told = map(json.loads, live)
    gists = sum(one.get("to") == backend and one["last_pk"] not in made for one in told)
    return Progress(
        backend=backend,
        policy=policy,
        ready=sum(row.version_pk is not None for row in rows),
        total=len(rows) + gists,
        backlog_chars=sum(row.source_chars for row in rows),
    )


def _is_sent_on(connection: Connection, conversation: ConversationRow) -> bool:
    """Whether somebody chose another backend for it since its last answer."""
    if conversation.route is None:
        return False
    return conversation.route != last_server(connection, conversation.pk)


def find_progress(connection: Connection, conversation: ConversationRow) -> Progress | None:
    """The move that a conversation's newest turn waited for, or that its next one will wait for;
    None where it waits for none."""
    rule = connection.execute(
        select(attempts.c.rule)
        .where(attempts.c.conversation_pk == conversation.pk)
        .order_by(attempts.c.pk.desc())
        .limit(1)
    ).scalar()
    if conversation.head_pk is None:
        return None
    if rule != MIGRATING and not _is_sent_on(connection, conversation):
        return None
    found = connection.execute(
        select(jobs.c.payload)
        .where(jobs.c.conversation_pk == conversation.pk, jobs.c.payload.contains('"to": '))
        .order_by(jobs.c.updated_ms.desc(), jobs.c.pk.desc())
        .limit(1)
    ).scalar()
    if found is None:
        return None
    told = json.loads(found)
    if conversation.route not in (None, told["to"]):
        return None
    head = node_by_pk(connection, conversation.head_pk)
    return read_progress(
        connection, conversation.pk, backend=told["to"], policy=told["ahead"], head=head
    )
