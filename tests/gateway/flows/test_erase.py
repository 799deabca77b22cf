"""Deletion while work is under way: nothing comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import IntegrityError

from gateway.app import build_context
from gateway.clock import SystemClock
from gateway.errors import NotFound
from gateway.flows.erase import erase_conversation
from gateway.jobs import leases
from gateway.settings import Settings
from gateway.store import chapter_rows
from gateway.store.transcript import ConversationRow, route_conversation
from tests.gateway.databases import database_url
from tests.gateway.house import House
from tests.gateway.seeds import NOW, POLICIES, add_conversation, add_memory, talk


async def test_a_job_under_way_brings_nothing_back(tmp_path: Path) -> None:
    """I08."""
    policies = tmp_path / "policies.yaml"
    policies.write_text(POLICIES)
    url = database_url(tmp_path / "foldgate.db")
    context = build_context(Settings(policies=policies, database_url=url), SystemClock())
    store = context.store
    store.open()
    try:
        conversation, nodes = store.writing(add_conversation, talk(3))
        store.writing(add_memory, conversation, nodes)
        (job,) = store.writing(
            leases.claim, now_ms=NOW + 60_000, lease="l", lease_ms=60_000, blocked=(), limit=1
        )
        debt = store.reading(chapter_rows.all_chapters, conversation.pk)[1].pk
        stopped: list[int] = []
        context.stop_work = stopped.append

        erased = await erase_conversation(context, lambda connection: conversation)

        assert (erased.id, erased.wiped_files) == (conversation.id, True)
        assert stopped == [conversation.pk]
        assert not store.reading(leases.held, job.pk, "l")
        assert not store.writing(leases.complete, job.pk, "l", NOW)

        def write_late(connection: Connection) -> None:
            chapter_rows.add_version(
                connection,
                conversation.pk,
                debt,
                text="They met again.",
                origin="model",
                backend="local-glm",
                prompt="1",
                now_ms=NOW,
            )

        with pytest.raises(IntegrityError):
            store.writing(write_late)
    finally:
        store.close()


async def test_what_cannot_be_found_deletes_nothing(tmp_path: Path) -> None:
    policies = tmp_path / "policies.yaml"
    policies.write_text(POLICIES)
    url = database_url(tmp_path / "foldgate.db")
    context = build_context(Settings(policies=policies, database_url=url), SystemClock())
    context.store.open()
    stopped: list[int] = []
    context.stop_work = stopped.append

    def find(connection: Connection) -> ConversationRow:
        raise NotFound("no")

    try:
        with pytest.raises(NotFound):
            await erase_conversation(context, find)
    finally:
        context.store.close()
    assert stopped == []


async def test_a_reader_in_the_way_of_the_wal_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gateway.store.sqlite.CHECKPOINT_WAIT_MS", 1)
    policies = tmp_path / "policies.yaml"
    policies.write_text(POLICIES)
    url = database_url(tmp_path / "foldgate.db")
    context = build_context(Settings(policies=policies, database_url=url), SystemClock())
    store = context.store
    store.open()
    try:
        conversation, _ = store.writing(add_conversation, talk(1))
        with store._reader.begin() as reader:
            reader.exec_driver_sql("SELECT count(*) FROM messages").all()
            erased = await erase_conversation(context, lambda connection: conversation)
        assert not erased.wiped_files
        assert "kept the WAL file" in caplog.text
        assert await store.checkpoint()
    finally:
        store.close()


async def test_where_it_was_sent_by_hand_is_wiped_too(house: House) -> None:
    """Its prompt may have been read in there before any turn was."""
    await house.say("hi", id="c", model="both")
    found = house.conversation("c")
    house.store.writing(route_conversation, found.pk, "cloud")
    await erase_conversation(house.ctx, lambda connection: house.conversation("c"))
    told = house.rows("SELECT backend, done_ms FROM kv_outbox ORDER BY pk")
    assert told == [("cloud", None), ("local", None)]
