"""Debt: chapters and gists that are asked for, as rows with one job each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from gateway.jobs.queue import enqueue
from gateway.store import chapter_rows
from gateway.store.chapter_rows import ChapterRow
from gateway.store.gist_rows import GistRow
from policies.values import Span


@dataclass(frozen=True, slots=True)
class Order:
    """For which conversation and policy work is asked, and when it is due.

    more: what its jobs say beside the work itself. `ahead` names the policy whose view is being
    made ready before it is shown, `to` the backend to which the conversation is moving.
    """

    conversation_pk: int
    policy: str
    run_at_ms: int
    now_ms: int
    more: Mapping[str, Any] = field(default_factory=dict)


def add_debt(
    connection: Connection, order: Order, span: Span, *, first_pk: int, last_pk: int
) -> int:
    """The chapter over a span, with its job where it is new. Returns its row number."""
    pk, is_new = chapter_rows.add_chapter(
        connection,
        order.conversation_pk,
        span,
        first_pk=first_pk,
        last_pk=last_pk,
        now_ms=order.now_ms,
    )
    if is_new:
        enqueue(
            connection,
            key=chapter_key(pk),
            kind="chapter",
            conversation_pk=order.conversation_pk,
            policy=order.policy,
            payload={"chapter": pk, **order.more},
            run_at_ms=order.run_at_ms,
            backend=None,
            now_ms=order.now_ms,
        )
    return pk


def add_gist_job(
    connection: Connection, order: Order, gist: GistRow | None, folded: Sequence[ChapterRow]
) -> bool:
    """Ask for one gist of the earlier one and these chapters; False where it was asked for."""
    payload: dict[str, Any] = {
        "gist": gist.pk if gist else None,
        "chapters": [row.version_pk for row in folded],
        "last_pk": folded[-1].last_pk,
        "last_depth": folded[-1].last_depth,
        **order.more,
    }
    return enqueue(
        connection,
        key=gist_key(order.conversation_pk, order.policy, folded[-1].last_pk),
        kind="gist",
        conversation_pk=order.conversation_pk,
        policy=order.policy,
        payload=payload,
        run_at_ms=order.run_at_ms,
        backend=None,
        now_ms=order.now_ms,
    )


def chapter_key(pk: int) -> str:
    return f"chapter:{pk}"


def gist_key(conversation_pk: int, policy: str, last_pk: int) -> str:
    return f"gist:{conversation_pk}:{policy}:{last_pk}"
