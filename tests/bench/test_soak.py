"""What a soak counts, on rows that are known, and how its people and its upstream behave."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from sqlalchemy import Connection

from bench import soak_people
from bench.soak_counts import (
    BOUNDS,
    count,
    find_duplicates,
    find_lost,
    find_missed,
    find_resurrected,
)
from bench.soak_people import Ledger, Person, Told
from bench.soak_upstream import FAULTS, WAYS, FaultyServer
from gateway.store import chapter_rows
from gateway.store.engine import Store
from gateway.store.transcript import Node
from policies.values import Span
from tests.gateway.seeds import NOW, add_conversation, extend

SAID = [
    {"role": "user", "content": "澪は3番のランプを [p0c0] 1"},
    {"role": "assistant", "content": "The lamp burns low 🎉(1)"},
    {"role": "user", "content": "y otra vez [p0c0] 2"},
    {"role": "assistant", "content": "The lamp burns low 🎉(2)"},
]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    store = Store(f"sqlite:///{tmp_path}/foldgate.db")
    store.open()
    with store._writer.begin() as connection:
        yield connection
    store.close()


def seed(connection: Connection) -> tuple[str, int, list[Node]]:
    made, nodes = add_conversation(connection, SAID)
    return made.id, made.pk, nodes


def test_what_was_acknowledged_and_is_not_there_is_lost(connection: Connection) -> None:
    id, _, _ = seed(connection)
    first, second = SAID[0]["content"], SAID[2]["content"]
    kept = [
        Told(id, first),
        Told(id, first, SAID[1]["content"]),
        Told(id, second),
        Told(id, second, SAID[3]["content"]),
    ]
    gone = [
        Told(id, "never stored"),
        Told(id, second, SAID[1]["content"]),  # the reply to another question
        Told("conv_other", first),
    ]
    ledger = Ledger(told=[*kept, *gone, Told("conv_deleted", first)])
    ledger.deleted["conv_deleted"] = "[p7c7]"
    assert list(find_lost(connection, ledger)) == gone


def add_chapter(connection: Connection, pk: int, first: Node, last: Node) -> int:
    chapter, _ = chapter_rows.add_chapter(
        connection,
        pk,
        Span(first.depth, last.depth, 10),
        first_pk=first.pk,
        last_pk=last.pk,
        now_ms=NOW,
    )
    return chapter


def write(connection: Connection, pk: int, chapter: int, origin: str = "model") -> None:
    chapter_rows.add_version(
        connection, pk, chapter, text="…", origin=origin, backend=None, prompt=None, now_ms=NOW
    )


def test_chapters_that_tell_the_same_are_duplicates(connection: Connection) -> None:
    _, pk, nodes = seed(connection)
    chapter = add_chapter(connection, pk, nodes[0], nodes[1])
    write(connection, pk, chapter, "stand-in")
    write(connection, pk, chapter)
    later = add_chapter(connection, pk, nodes[2], nodes[2])
    assert list(find_duplicates(connection)) == []
    write(connection, pk, chapter)
    assert list(find_duplicates(connection)) == [f"chapter {chapter} was written 2 times"]
    write(connection, pk, later)
    add_chapter(connection, pk, nodes[1], nodes[3])
    assert len(list(find_duplicates(connection))) == 3  # it lies over both


def test_chapters_of_two_branches_are_none(connection: Connection) -> None:
    made, nodes = add_conversation(connection, SAID)
    add_chapter(connection, made.pk, nodes[0], nodes[3])
    (other,) = extend(connection, made, nodes[2], [{"role": "assistant", "content": "or so"}])
    add_chapter(connection, made.pk, nodes[0], other)
    assert list(find_duplicates(connection)) == []


def test_what_was_deleted_and_is_there_came_back(connection: Connection) -> None:
    id, _, _ = seed(connection)
    ledger = Ledger()
    ledger.deleted["conv_gone"] = "[p3c3]"
    ledger.forgotten.append("The user keeps bees. [p3c3]")
    assert list(find_resurrected(connection, ledger)) == []
    ledger.deleted[id] = "[p0c0]"
    found = [f"conversation {id}", "[p0c0] in messages", "[p0c0] in messages"]
    assert list(find_resurrected(connection, ledger)) == found


def test_the_last_line(connection: Connection) -> None:
    id, pk, _ = seed(connection)
    for key, state, error in (
        ("a", "done", None),
        ("b", "parked", "judged out"),
        ("c", "parked", None),
        ("d", "queued", None),
        ("e", "leased", None),
    ):
        connection.exec_driver_sql(
            "INSERT INTO jobs (key, kind, conversation_pk, state, run_at_ms, attempts, policy,"
            " payload, error, created_ms, updated_ms) VALUES (?, 'chapter', ?, ?, 0, 1, 'p', '{}',"
            " ?, 0, 0)",
            (key, pk, state, error),
        )
    ledger = Ledger(told=[Told(id, SAID[0]["content"])], offered=40, answered=36)
    assert count(connection, ledger, 7) == {
        "kills": 7,
        "acknowledged": 1,
        "lost": 0,
        "duplicate_chapters": 0,
        "resurrected": 0,
        "jobs_done": 1,
        "jobs_parked": 1,
        "jobs_stuck": 3,  # one waits, one runs, one was given up without a reason
        "throughput_ratio": 0.9,
    }


def test_each_bound_is_held() -> None:
    good = {"lost": 0, "duplicate_chapters": 0, "resurrected": 0, "jobs_stuck": 0}
    assert find_missed({**good, "throughput_ratio": 0.9}) == []
    bad = {name: 1 if kind == "most" else 0.89 for name, (kind, _) in BOUNDS.items()}
    assert len(find_missed(bad)) == len(BOUNDS) == 5


def test_one_request_in_ten_fails_and_in_every_way() -> None:
    server = FaultyServer(random.Random(1))
    drawn = [server.choose_fault() for _ in range(10_000)]
    faults = [fault for fault in drawn if fault is not None]
    assert abs(len(faults) / len(drawn) - FAULTS) < 0.01
    assert set(faults) == set(WAYS)


class Slow(Person):
    """Turns that take so many seconds of a clock that stands still meanwhile; it is over at 10."""

    seconds = 0.0
    now = 0.0
    over: asyncio.Event

    async def take_turn(self) -> None:
        self.ledger.offered += 1
        self.ledger.answered += 1
        self.pass_time(self.seconds)

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        if self.now >= 10:
            self.over.set()


@pytest.mark.parametrize(
    ("seconds", "offered", "answered"),
    [
        (0.5, 11, 11),  # at 0, 1, … 10
        # Turns end at 3, 6, 9, 12: by then 13 were offered, and the rest is caught up with.
        (3.0, 13, 13),
        # By 30 there were 31; two more are held in the minute that is left.
        (30.0, 31, 3),
    ],
)
async def test_the_offer_does_not_wait_for_the_answers(
    monkeypatch: pytest.MonkeyPatch, seconds: float, offered: int, answered: int
) -> None:
    ledger = Ledger()
    person = Slow(0, cast(Any, None), cast(Any, None), ledger)
    person.seconds, person.over = seconds, asyncio.Event()

    async def pause(_over: asyncio.Event, wait: float) -> None:
        person.pass_time(wait)

    monkeypatch.setattr(soak_people, "monotonic", lambda: person.now)
    monkeypatch.setattr(soak_people, "wait_for", pause)
    await person.talk(1.0, person.over)
    assert (ledger.offered, ledger.answered) == (offered, answered)
