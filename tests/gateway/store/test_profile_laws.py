"""Deletion is total (law 10): without a conversation a profile is as if it had never been."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, text

from gateway.store import profile, profile_edits, profile_learning, transcript
from gateway.store.profile_learning import Told
from tests.gateway.house import House, user
from tests.gateway.seeds import NOW, extend

ABOUTS = {
    "home": ["The user lives in Kyoto.", "Дом в Казани.", "Vive cerca del mar."],
    "猫": ["猫を飼っている。", "猫はもういない。"],
    "일": ["간호사로 일한다.", "은퇴했다."],
}
SAYINGS = st.sampled_from([(about, fact) for about, facts in ABOUTS.items() for fact in facts])
TALKS = st.lists(st.tuples(st.integers(0, 3), SAYINGS), max_size=12)


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with tempfile.TemporaryDirectory() as folder:
        built = House(Path(folder))
        yield built
        built.store.close()


def live(
    connection: Connection,
    talks: list[tuple[int, tuple[str, str]]],
    order: list[int] | None = None,
) -> tuple[int, dict[int, int]]:
    """An owner who tells these things, each in its chat, and chapters that are written in this
    order; the owner, and the chats by number."""
    owner = transcript.ensure_owner(connection, "ann", "", NOW)
    chats: dict[int, int] = {}
    heads: dict[int, transcript.Node] = {}
    told: list[tuple[int, Told]] = []
    for time, (number, (about, fact)) in enumerate(talks):
        now_ms = NOW + 1_000 * time
        if number not in chats:
            made = transcript.create_conversation(
                connection, owner, alias=None, model="foldgate", now_ms=now_ms
            )
            chats[number] = made.pk
        row = transcript.conversation_by_pk(connection, owner, chats[number])
        assert row is not None
        said = [user(f"{number} {time}: {fact}")]
        (node,) = extend(connection, row, heads.get(number), said, now_ms)
        heads[number] = node
        told.append((row.pk, Told(fact, about, node.pk)))
    for at in order or range(len(told)):
        chat, one = told[at]
        span = [one.source_pk or 0]
        profile_learning.learn(connection, owner, chat, [one], span=span, now_ms=NOW + 10**6 + at)
    return owner, chats


def active(connection: Connection, owner: int) -> set[str]:
    return {row.text for row in profile.active(connection, owner)}


@given(talks=TALKS, gone=st.permutations(range(4)), order=st.data())
@settings(max_examples=120, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_profile_without_a_chat_is_as_if_it_had_never_been(
    house: House, talks: list[tuple[int, tuple[str, str]]], gone: list[int], order: st.DataObject
) -> None:
    """In whichever order its chapters were written."""
    with house.store._writer.connect() as connection:
        owner, chats = live(connection, talks, order.draw(st.permutations(range(len(talks)))))
        for at, number in enumerate(gone):
            if number not in chats:
                continue
            row = transcript.conversation_by_pk(connection, owner, chats[number])
            assert row is not None
            profile_edits.release_facts(connection, row)
            drop = {"pk": chats[number]}
            connection.execute(text("DELETE FROM conversations WHERE pk = :pk"), drop)
            left = [talk for talk in talks if talk[0] not in gone[: at + 1]]
            newest: dict[str, str] = {}
            for _, (about, fact) in left:
                newest[about] = fact
            assert active(connection, owner) == set(newest.values())
        assert connection.execute(text("SELECT count(*) FROM profile_facts")).scalar() == 0
        connection.rollback()


@given(talks=TALKS, again=st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_is_deleted_stays_deleted_however_often_it_is_summarized(
    house: House, talks: list[tuple[int, tuple[str, str]]], again: st.DataObject
) -> None:
    with house.store._writer.connect() as connection:
        owner, _ = live(connection, talks)
        rows = profile.active(connection, owner)
        if rows:
            gone = again.draw(st.sampled_from(rows))
            profile_edits.delete_fact(connection, gone, NOW)
            kept = active(connection, owner)
            assert kept == {row.text for row in rows if row.pk != gone.pk}
            sources = "SELECT pk, conversation_pk, raw FROM messages ORDER BY pk"
            for pk, chat, raw in connection.execute(text(sources)).all():
                for about, fact in [(a, f) for a, fs in ABOUTS.items() for f in fs if f in raw]:
                    told = [Told(fact, about, pk)]
                    where = (connection, owner, chat, told)
                    profile_learning.learn(*where, span=[pk], now_ms=NOW + 10**6)
            assert active(connection, owner) == kept
        connection.rollback()
