"""An upkeep without threads over a story with work that is due."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, select

from gateway.backends.base import Call
from gateway.flows.context import Context
from gateway.flows.upkeep import Upkeep
from gateway.jobs import queue
from gateway.store import chapter_rows, fold_rows
from policies.values import Span
from tests.gateway.flows.stage import (
    CHAPTER,
    HandClock,
    Listed,
    add_story,
    setup_chapter,
)
from tests.gateway.seeds import NOW

REFUSAL = "I can't summarise this conversation."

Build = Callable[..., Context]


async def inline(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def keep(ctx: Context) -> Upkeep:
    """An upkeep without threads: it does the same in every run."""
    return Upkeep(ctx, offload=inline)


def clock_of(ctx: Context) -> HandClock:
    assert isinstance(ctx.clock, HandClock)
    return ctx.clock


def due(ctx: Context, **values: Any) -> int:
    """The story with a chapter job, at the moment it becomes due."""
    _, chapter = ctx.store.writing(setup_chapter, **values)
    clock_of(ctx).advance(30)
    return chapter


def add_version(connection: Connection, chapter: int, text: str, origin: str) -> int:
    row = connection.execute(
        select(chapter_rows.chapters.c.conversation_pk).where(chapter_rows.chapters.c.pk == chapter)
    ).scalar_one()
    return chapter_rows.add_version(
        connection, row, chapter, text=text, origin=origin, backend=None, prompt=None, now_ms=NOW
    )


class Gate:
    """Holds a backend's answers back until it is opened."""

    def __init__(self, backend: Listed) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        backend.hold = self.wait

    async def wait(self, call: Call) -> None:
        self.entered.set()
        await self.opened.wait()


def setup_gist(connection: Connection, *, policy: str = "alone", stack: int = 1) -> int:
    """The story in two chapters that a fold shows, the first of them due for the gist.

    stack: how often the second chapter's text is repeated. Returns the conversation.
    """
    conversation, nodes = add_story(connection)
    pks = []
    for first, last, text in ((0, 7, CHAPTER), (8, 10, "They rowed out at four. " * stack)):
        chapter, _ = chapter_rows.add_chapter(
            connection,
            conversation.pk,
            Span(first + 1, last + 1, nodes[last].cum_chars),
            first_pk=nodes[first].pk,
            last_pk=nodes[last].pk,
            now_ms=NOW,
        )
        pks.append(add_version(connection, chapter, text, "model"))
    fold_rows.add_fold(
        connection,
        conversation.pk,
        policy=policy,
        at=nodes[11],
        border=(nodes[10].pk, 11, nodes[10].cum_chars),
        kind="fold",
        gist_pk=None,
        memory=pks,
        memory_chars=900,
        stand_ins=0,
        revision="r1",
        now_ms=NOW,
    )
    queue.enqueue(
        connection,
        key=f"gist:{conversation.pk}:{policy}:{nodes[7].pk}",
        kind="gist",
        conversation_pk=conversation.pk,
        policy=policy,
        payload={
            "gist": None,
            "chapters": [pks[0]],
            "last_pk": nodes[7].pk,
            "last_depth": 8,
        },
        run_at_ms=NOW,
        backend=None,
        now_ms=NOW,
    )
    return conversation.pk
