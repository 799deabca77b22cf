"""`foldgate eval audit` over a database with two owners' conversations."""

from __future__ import annotations

import json

import pytest
from sqlalchemy import Connection

from gateway.store import ledger
from gateway.store.engine import Store
from tests.gateway.cli.conftest import Run, Seeded
from tests.gateway.seeds import NOW


def _add_thread(connection: Connection, seeded: Seeded) -> None:
    ledger.add_entry(
        connection,
        seeded.mine.pk,
        kind="thread",
        text="Find the silver key.",
        number=1,
        last_pk=seeded.nodes[1].pk,
        last_depth=2,
        origin="model",
        now_ms=NOW,
    )


@pytest.fixture
def doubtful(seeded: Seeded) -> Seeded:
    """The chapter of `mine` has an entry of which nobody knows where it comes from."""
    store = Store(f"sqlite:///{seeded.path}")
    store.open()
    store.writing(_add_thread, seeded)
    store.close()
    return seeded


def test_one_object_and_an_end_with_one(run: Run, doubtful: Seeded) -> None:
    done = run("eval", "audit", "--conversation", "chat-1", "--json")
    told = json.loads(done.stdout)
    assert done.exit_code == 1
    assert (told["chapters"], told["entries"], told["threads"]) == (1, 1, 1)
    assert told["after"]["without_source"] == told["before"]["without_source"] == 1
    assert sum(told["after"].values()) == 1
    (one,) = told["conversations"]
    assert one["conversation"] == doubtful.mine.id
    assert one["chapters"][-1]["found"] == [
        {"kind": "without_source", "text": "Find the silver key."}
    ]
    every = run("eval", "audit", "--all", "--json")
    assert every.stderr == ""
    whole = json.loads(every.stdout)
    assert [each["conversation"] for each in whole["conversations"]] == [
        each.id for each in sorted((doubtful.mine, doubtful.hers), key=lambda c: c != doubtful.mine)
    ]


def test_it_is_told_to_people(run: Run, doubtful: Seeded) -> None:
    done = run("eval", "audit", "--all")
    assert "2 conversations, 1 chapter, 1 entry, 1 of them threads" in done.stdout
    assert "without_source               1       1" in done.stdout
    assert f"{doubtful.mine.id}  no chapter  without_source: Find the silver key." in done.stdout
    assert done.stderr == ""


def test_a_sound_memory_ends_with_nought(run: Run, seeded: Seeded) -> None:
    done = run("eval", "audit", "--conversation", seeded.hers.id, "--owner", "anna", "--user", "u1")
    assert done.exit_code == 0


def test_wrong_use(run: Run, seeded: Seeded) -> None:
    assert run("eval", "audit").exit_code == 2
    assert run("eval", "audit", "--all", "--conversation", "chat-1").exit_code == 2
    assert run("eval", "audit", "--conversation", "chat-9").exit_code == 1
    assert run("eval", "audit", "--all", "--database-url", "sqlite:///none.db").exit_code == 2
