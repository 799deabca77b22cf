"""Of what an index holds of all branches, what stands on one path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from gateway.store import paths, search
from gateway.store.engine import Store
from gateway.store.transcript import Node, path_between
from policies.recall.places import PK_AT
from tests.gateway.databases import database_url
from tests.gateway.seeds import add_conversation, extend


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(database_url(tmp_path / "x.db"))
    store.open()
    yield store
    store.close()


def talk(*texts: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text} for text in texts]


def lists_on(
    connection: Connection, conversation_pk: int, head: Node, border: int, *terms: str
) -> dict[str, list[tuple[int, int]]]:
    """(depth, row number) of what holds each term on the path to head, oldest first."""
    index = search.find_index(connection, conversation_pk)
    assert index is not None
    found = search.postings(connection, index, terms, 100)
    kept = paths.keep_path(connection, index, head, border, found)
    return {
        term: sorted((depth, place >> PK_AT) for depth, place in held)
        for term, held in kept.items()
    }


def test_lists_hold_what_stands_on_the_path_and_no_other(store: Store) -> None:
    """Two branches from depth 2: ring stands at 1 of both, at 3 of either, at 4 of the older."""

    def check(connection: Connection) -> None:
        made, old = add_conversation(connection, talk("ring", "soup", "ring 指輪", "ring", "bus"))
        new = extend(connection, made, old[1], talk("ring кольцо", "bus", "soup"))
        for nodes in (old, new):
            search.index_path(connection, made.pk, nodes[-1].pk)
        both, older, newer = (1, old[0].pk), (3, old[2].pk), (3, new[0].pk)
        terms = ("ring", "指輪", "кольц")
        assert lists_on(connection, made.pk, old[-1], 5, *terms) == {
            "ring": [both, older, (4, old[3].pk)],
            "指輪": [older],
        }
        assert lists_on(connection, made.pk, new[-1], 5, *terms) == {
            "ring": [both, newer],
            "кольц": [newer],
        }
        assert lists_on(connection, made.pk, new[-1], 2, *terms) == {"ring": [both]}

    store.writing(check)


def test_of_one_line_the_lists_are_as_they_were_until_the_path_leaves_it(store: Store) -> None:
    """Indexed to depth 4; another branch leaves at 3 and is not indexed yet."""

    def check(connection: Connection) -> None:
        made, line = add_conversation(connection, talk("ring", "soup", "bus", "ring"))
        search.index_path(connection, made.pk, line[-1].pk)
        branch = extend(connection, made, line[2], talk("soup", "bus"))
        index = search.find_index(connection, made.pk)
        assert index is not None
        found = search.postings(connection, index, ["ring"], 100)
        for head, border, same in ((line[-1], 9, True), (branch[-1], 3, True), (branch[-1], 4, 0)):
            kept = paths.keep_path(connection, index, head, border, found)
            assert (kept is found) == bool(same)
        assert lists_on(connection, made.pk, branch[-1], 4, "ring") == {"ring": [(1, line[0].pk)]}

    store.writing(check)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    grown=st.lists(st.tuples(st.integers(0, 10_000), st.integers(1, 40)), min_size=1, max_size=12),
    at=st.integers(0, 10_000),
    asked=st.sets(st.integers(0, 200)),
)
def test_each_depth_gives_the_message_of_its_path(
    store: Store, grown: list[tuple[int, int]], at: int, asked: set[int]
) -> None:
    """Of any tree, as its branches grew one after another, some of them again."""

    def check(connection: Connection) -> None:
        made, nodes = add_conversation(connection, talk("root"))
        for turn, (parent, count) in enumerate(grown):
            said = talk(*(f"{turn} {step}" for step in range(count)))
            nodes += extend(connection, made, nodes[parent % len(nodes)], said)
        head = nodes[at % len(nodes)]
        told = {row.depth: row.pk for row in path_between(connection, head.pk, 0)}
        for depths in (asked, set(told)):
            found = paths.path_at(connection, made.pk, head, depths)
            assert found == {depth: told[depth] for depth in depths if depth in told}

    store.writing(check)
