"""What a person may do with work: every state, and what a turn or a late result does after it."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from gateway.errors import Conflict
from gateway.jobs import hand, leases, queue
from gateway.jobs.rows import JobRow, jobs
from gateway.store.engine import Store
from tests.gateway.databases import database_url
from tests.gateway.seeds import NOW, add_conversation, talk

LATER = NOW + 60_000
KEY = "chapter:1"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    made = Store(database_url(tmp_path / "foldgate.db"))
    made.open()
    conversation, _ = made.writing(add_conversation, talk(1))
    assert made.writing(ask, conversation.pk)
    return made


def ask(connection: Connection, conversation_pk: int) -> bool:
    """As a turn does."""
    return queue.enqueue(
        connection,
        key=KEY,
        kind="chapter",
        conversation_pk=conversation_pk,
        policy="fold",
        payload={"chapter": 1},
        run_at_ms=NOW + 30_000,
        backend="local",
        now_ms=NOW,
    )


def row(store: Store) -> tuple[object, ...]:
    """(state, attempts, run_at, lease, backend, cause, error)"""
    c = jobs.c
    wanted = select(
        c.state, c.attempts, c.run_at_ms, c.lease, c.backend, c.error_kind, c.error
    ).where(c.key == KEY)
    return tuple(store.reading(lambda connection: connection.execute(wanted).one()))


def claim(store: Store, now_ms: int = LATER) -> list[JobRow]:
    return store.writing(leases.claim, now_ms=now_ms, lease="boot_1.a", lease_ms=60_000)


CANCELLED = ("parked", 0, NOW + 30_000, None, "local", "cancelled", "cancelled by its owner")


def test_no_turn_asks_again_for_what_was_cancelled(store: Store) -> None:
    store.writing(hand.cancel, KEY, NOW)
    assert row(store) == CANCELLED
    store.writing(hand.cancel, KEY, LATER)  # twice is once
    assert not store.writing(ask, 1)
    store.writing(queue.hurry, KEY, {"to": "cloud"}, now_ms=LATER)
    assert claim(store) == []
    assert row(store) == CANCELLED
    store.close()


def test_who_holds_cancelled_work_has_lost_it(store: Store) -> None:
    (held,) = claim(store)
    store.writing(hand.cancel, KEY, LATER)
    assert not store.writing(leases.held, held.pk, "boot_1.a")
    beat = store.writing(leases.beat, held.pk, "boot_1.a", now_ms=LATER, lease_ms=60_000)
    assert not beat
    assert not store.writing(leases.complete, held.pk, "boot_1.a", LATER)
    assert row(store)[0] == "parked"
    store.close()


def test_a_retry_begins_a_new_series(store: Store) -> None:
    (held,) = claim(store)
    store.writing(leases.park, held.pk, "boot_1.a", "refusal", "every summarizer refused", LATER)
    with pytest.raises(Conflict, match="given up already"):
        store.writing(hand.cancel, KEY, LATER)
    store.writing(hand.retry, KEY, LATER)
    assert row(store) == ("queued", 0, LATER, None, None, None, None)
    (again,) = claim(store)
    assert again.attempts == 1
    store.close()


def test_waiting_work_is_not_waited_for(store: Store) -> None:
    store.writing(hand.retry, KEY, NOW + 1)
    assert row(store)[:3] == ("queued", 0, NOW + 1)
    store.close()


def test_work_that_runs_or_is_done(store: Store) -> None:
    (held,) = claim(store)
    with pytest.raises(Conflict, match="runs now"):
        store.writing(hand.retry, KEY, LATER)
    store.writing(leases.complete, held.pk, "boot_1.a", LATER)
    for change in (hand.cancel, hand.retry):
        with pytest.raises(Conflict, match="is done"):
            store.writing(change, KEY, LATER)
        with pytest.raises(Conflict, match="is gone"):
            store.writing(change, "chapter:9", LATER)
    store.close()
