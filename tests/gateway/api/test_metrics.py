"""/metrics: who may read it, and what stands in it after requests of every kind."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

from gateway.jobs.queue import enqueue
from tests.gateway.api.conftest import Door, Opener
from tests.gateway.seeds import add_conversation

HI = {"messages": [{"role": "user", "content": "ORCHID-7 안녕 🌸"}]}


async def test_it_says_how_requests_were_answered_and_nothing_of_what_was_said(door: Door) -> None:
    await door.get("/healthz")
    await door.client.post("/v1/chat/completions", json={"model": "no-such", **HI})
    await door.client.post("/v1/chat/completions", content=b"{")
    await door.get("/api/conversations/ORCHID-7")
    answer = await door.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    for surface, status, code in (
        ("health", 200, "none"),
        ("chat", 404, "model_not_found"),
        ("chat", 400, "invalid_json"),
        ("api", 404, "not_found"),
    ):
        labels = f'code="{code}",status="{status}",surface="{surface}"'
        assert f"foldgate_requests_total{{{labels}}} 1.0" in lines
    assert "ORCHID-7" not in answer.text


async def test_it_shows_the_queue_as_the_database_holds_it(door: Door) -> None:
    def add(connection: Connection) -> None:
        conversation, _ = add_conversation(connection, HI["messages"])
        now_ms = door.context.clock.now_ms()
        for key, due in (("a", now_ms - 60_000), ("b", now_ms + 60_000)):
            enqueue(
                connection,
                key=key,
                kind="chapter",
                conversation_pk=conversation.pk,
                policy="small",
                payload={},
                run_at_ms=due,
                backend=None,
                now_ms=now_ms,
            )

    await door.app.state.bells.stop()
    await door.store.write(add)
    text = (await door.get("/metrics")).text
    assert 'foldgate_jobs{kind="chapter",state="queued"} 2.0' in text
    (overdue,) = [line for line in text.splitlines() if line.startswith("foldgate_jobs_overdue")]
    assert 60 <= float(overdue.split()[1]) < 120


@pytest.mark.parametrize(
    ("key", "status"), [(None, 401), ("wrong", 401), ("k", 200), ("admin", 200)]
)
async def test_with_keys_it_wants_one(opened: Opener, key: str | None, status: int) -> None:
    async with opened(keys={"k": "ann"}, admin_key="admin", host="0.0.0.0") as door:
        answer = await door.get("/metrics", key)
        assert answer.status_code == status
        assert ("foldgate_requests_total" in answer.text) == (status == 200)


async def test_without_keys_a_strangers_page_reads_nothing(door: Door) -> None:
    answer = await door.get("/metrics", origin="https://elsewhere.example")
    assert "access-control-allow-origin" not in answer.headers
    answer = await door.get("/metrics", host="elsewhere.example")
    assert answer.status_code == 403


async def test_openmetrics_is_spoken_where_it_is_asked_for(door: Door) -> None:
    answer = await door.get("/metrics", accept="application/openmetrics-text; version=1.0.0")
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    assert answer.text.endswith("# EOF\n")
