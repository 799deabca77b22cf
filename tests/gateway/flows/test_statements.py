"""What a turn costs the database: few statements, all by an index, none growing with history."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from gateway.flows.tails import LEAST_ROOM
from gateway.store import transcript
from tests.gateway.house import POLICIES, House, Say, assistant, user
from tests.gateway.seeds import NOW, new_message

# Rows that a statement made itself: of one path, or the newest versions of one conversation.
_MAY_SCAN = re.compile(
    r"SCAN (?:walk|w|sqlite_sequence|anon_1|message_search VIRTUAL TABLE INDEX [^:]*:\S|CONSTANT)"
)
# What FTS5 asks of its own tables.
_INSIDE = "message_search_"


@contextmanager
def listening(house: House) -> Iterator[list[str]]:
    """Every statement that SQLite is given on the writer, transactions' own marks apart."""
    heard: list[str] = []
    drivers: list[sqlite3.Connection] = []

    def hear(driver: Any, *_: Any) -> None:
        assert isinstance(driver, sqlite3.Connection)
        driver.set_trace_callback(heard.append)
        drivers.append(driver)

    writer, held = house.store._writer, house.store._held
    if held is not None:  # from the first write on it keeps its connection
        hear(held.connection.driver_connection)
    event.listen(writer, "checkout", hear)
    try:
        yield heard
    finally:
        event.remove(writer, "checkout", hear)
        for driver in drivers:
            driver.set_trace_callback(None)


def commits(heard: list[str]) -> list[list[str]]:
    """The statements of each transaction."""
    found: list[list[str]] = []
    for statement in heard:
        if statement.startswith("BEGIN"):
            found.append([])
        elif statement not in ("COMMIT", "ROLLBACK") and _INSIDE not in statement:
            found[-1].append(statement)
    return found


def fill(house: House, count: int, id: str) -> list[Say]:
    """A conversation of that many messages, put there at once."""
    history = [
        user(f"{id} m{at}") if at % 2 == 0 else assistant(f"{id} r{at}") for at in range(count)
    ]

    def write(connection: object) -> None:
        owner = transcript.ensure_owner(connection, "ann", "", NOW)  # type: ignore[arg-type]
        made = transcript.create_conversation(
            connection,  # type: ignore[arg-type]
            owner,
            alias=id,
            model="cloudy",
            now_ms=NOW,
        )
        new = [new_message(m, produced=m["role"] == "assistant") for m in history]
        nodes = transcript.append_messages(connection, made, None, new, NOW)  # type: ignore[arg-type]
        transcript.touch_conversation(
            connection,  # type: ignore[arg-type]
            made.pk,
            head_pk=nodes[-1].pk,
            model="cloudy",
            now_ms=NOW,
        )

    house.store.writing(write)
    return history


async def test_a_turn_is_two_commits_of_few_statements(house: House) -> None:
    await house.say("one", id="c")
    await house.say("two", id="c")
    with listening(house) as heard:
        await house.say("three", id="c")
    first, second = commits(heard)
    assert len(first) <= 11, first
    assert len(second) <= 6, second


@pytest.mark.parametrize("resends", [False, True])
async def test_a_turn_costs_the_same_however_long_the_conversation_is(
    house: House, resends: bool
) -> None:
    counts = []
    for count in (20, 3_000):
        history = fill(house, count, f"c{count}")
        sent = [*history, user("new")] if resends else [user("new")]
        # Once before, so that what stays in memory is there; then the turn that is counted.
        said = await house.say(*sent, id=f"c{count}", model="cloudy")
        sent = [*sent, assistant(said.text), user("newer")] if resends else [user("newer")]
        with listening(house) as heard:
            await house.say(*sent, id=f"c{count}", model="cloudy")
        counts.append([len(commit) for commit in commits(heard)])
    # the skip pointer of a deeper message may take one look more
    assert all(abs(a - b) <= 1 for a, b in zip(*counts, strict=True)), counts


async def test_a_resent_history_is_looked_up_from_its_tail(house: House) -> None:
    """3,000 messages sent again without an id: one look finds where they stand."""
    history = fill(house, 3_000, "c")
    with listening(house) as heard:
        await house.say(*history, user("new"), model="cloudy")
    looks = [s for s in commits(heard)[0] if " chain IN " in s or ".chain IN " in s]
    assert len(looks) == 2  # which conversation, then where in it
    assert all(s.count("'") <= 2 * 40 for s in looks)


@pytest.mark.parametrize("named", [True, False])
async def test_an_aligned_history_costs_the_same_however_long_the_conversation_is(
    house: House, named: bool
) -> None:
    """Trimmed, with a note that moves: a bounded part of the path is read, and no more."""
    counts, read = [], []
    for count in (400, 3_000):
        id = f"c{count}" if named else None
        history = [*fill(house, count, f"c{count}"), user("new")]
        note = user("[Author's note: keep it short.]")
        for _ in range(2):
            sent = [*history[-60:-4], note, *history[-4:]]
            with listening(house) as heard:
                said = await house.say(*sent, id=id, model="cloudy")
            history += [assistant(said.text), user("newer")]
        counts.append([len(commit) for commit in commits(heard)])
        walks = [re.findall(r"WHERE m.depth > (\d+) ORDER", s) for s in commits(heard)[0]]
        read.append(len(history) - 2 - min(int(above) for found in walks for above in found))
        assert house.conversation(f"c{count}").id == said.conversation
    assert all(abs(a - b) <= 1 for a, b in zip(*counts, strict=True)), counts
    assert read[0] == read[1] <= 300


@pytest.fixture
def recalling(tmp_path: Path) -> Iterator[House]:
    folder = tmp_path / "recalling"
    folder.mkdir()
    built = House(folder, POLICIES.replace("recall: {budget: 0}", "recall: {budget: 400}", 1))
    yield built
    built.store.close()


async def test_recall_costs_a_turn_without_a_fold_nothing(house: House, recalling: House) -> None:
    counts = []
    for each in (house, recalling):
        await each.say("one", id="c")
        await each.say("two", id="c")
        with listening(each) as heard:
            await each.say("three", id="c")
        counts.append([len(commit) for commit in commits(heard)])
    assert counts[0] == counts[1]


async def test_a_folded_turn_without_room_for_notes_reads_them_and_no_more(
    house: House, recalling: House
) -> None:
    """At most 400 characters stand between two folds, and a line has some 200. The one more, in
    the first commit, says whether the newest note is on the path; what notes cost is known then."""
    counts = []
    for each in (house, recalling):
        history: list[Say] = []
        while not each.folds():
            await grow(each, history, f"the key number {len(history)} " + "word " * 30)
            each.write_chapters()
        assert said_chars(each) < 2_200  # far below the start, notes included
        for at in range(0, 6, 2):
            await grow(each, history, f"what of the key number {at}?")
        await each.ctx.indexing.settle()
        with listening(each) as heard:
            await grow(each, history, "what of the key number 3?")
        counts.append([len(commit) for commit in commits(heard)])
    assert recalling.one("SELECT sum(chars) FROM notes") > 400 - LEAST_ROOM
    assert [b - a for a, b in zip(*counts, strict=True)] == [1, 0]


def said_chars(house: House) -> int:
    return sum(house.rows("SELECT memory_chars, verbatim_chars FROM attempts ORDER BY pk DESC")[0])


async def grow(house: House, history: list[Say], text: str) -> None:
    history.append(user(text))
    history.append(assistant((await house.say(*history, id="c")).text))


async def test_what_is_found_by_words_goes_by_an_index_too(recalling: House) -> None:
    await _check_plans(recalling)


async def test_every_statement_of_a_turn_goes_by_an_index(house: House) -> None:
    """With swipes, folds, chapters and gists on the way."""
    await _check_plans(house)


async def _check_plans(house: House) -> None:
    history: list[Say] = []
    with listening(house) as heard:
        for at in range(60):
            history.append(user(f"m{at} " + "word " * 40))
            said = await house.say(*history, retried=at % 7 == 0, key=f"k{at}")
            if at % 5 == 0:
                said = await house.say(*history)
            history.append(assistant(said.text))
            house.write_chapters()
            house.write_gists()
        await house.say(*history[2:], user("trimmed"), id=said.conversation)
        await house.say("alone", id=said.conversation)
        named = [
            assistant(f"Bob: {m['content']}") if m["role"] == "assistant" else m for m in history
        ]
        await house.say(*named, user("[a note]"), user("named"))
    kinds = {re.sub(r"'[^']*'|\b\d+(\.\d+)?\b", "?", statement): statement for statement in heard}
    known = ("SELECT", "UPDATE", "DELETE", "WITH")
    plain = [s for s in kinds.values() if s.split()[0] in known and _INSIDE not in s]
    assert len(plain) > 15
    steps = [
        (row[3], statement)
        for statement in plain
        for row in house.rows("EXPLAIN QUERY PLAN " + statement.replace(":", r"\:"))
    ]
    assert [s for s in steps if s[0].startswith("SCAN") and not _MAY_SCAN.match(s[0])] == []
