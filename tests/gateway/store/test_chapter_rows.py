"""Chapters as rows: what is valid on which path, and which text counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.store import chapter_rows
from gateway.store.engine import Store
from tests.gateway.house import House
from tests.gateway.store.tree import Tree


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    house = House(tmp_path)
    yield house.store
    house.store.close()


def test_a_chapter_is_valid_exactly_where_its_last_message_is(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        tree.chapter(tree.trunk, 1, 3)
        tree.chapter(tree.trunk, 4, 6)
        tree.chapter(tree.branch, 4, 7)
        assert tree.spans(tree.trunk, 10) == [(1, 3), (4, 6)]
        assert tree.spans(tree.branch, 10) == [(1, 3), (4, 7)]
        assert tree.spans(tree.trunk, 6) == [(1, 3), (4, 6)]
        assert tree.spans(tree.trunk, 5) == [(1, 3)]
        assert tree.spans(tree.trunk, 2) == []

    store.writing(check)


def test_chapters_are_shown_by_their_spans_without_a_gap(store: Store) -> None:
    """E17: in order of the story, whatever was written first, and none behind a gap."""

    def check(connection: Connection) -> None:
        tree = Tree(connection)
        tree.chapter(tree.trunk, 7, 8)
        tree.chapter(tree.trunk, 4, 5, text=None)
        tree.chapter(tree.trunk, 1, 3)
        assert tree.spans(tree.trunk, 10) == [(1, 3), (4, 5)]
        tree.chapter(tree.trunk, 6, 6)
        assert tree.spans(tree.trunk, 10) == [(1, 3), (4, 5), (6, 6), (7, 8)]
        assert tree.spans(tree.trunk, 10, above=5) == [(6, 6), (7, 8)]

    store.writing(check)


def test_of_two_that_begin_alike_the_longer_is_taken(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        tree.chapter(tree.trunk, 1, 2)
        tree.chapter(tree.trunk, 1, 6)
        assert tree.spans(tree.trunk, 10) == [(1, 6)]
        assert tree.spans(tree.branch, 10) == [(1, 2)]

    store.writing(check)


def test_the_same_span_is_one_chapter_and_its_newest_version_counts(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        pk = tree.chapter(tree.trunk, 1, 3, text=None)
        assert tree.chapter(tree.trunk, 1, 3, text=None) == pk
        assert chapter_rows.all_chapters(connection, tree.conversation.pk)[0].text is None
        first = tree.version(pk, "heard", "stand-in")
        second = tree.version(pk, "told")
        row = chapter_rows.chapter_by_pk(connection, tree.conversation.pk, pk)
        assert row is not None
        assert (row.version_pk, row.version, row.text, row.origin) == (second, 2, "told", "model")
        older, newer = chapter_rows.versions_by_pk(connection, [second, first])
        assert [older.text, newer.text] == ["told", "heard"], "a fold names versions, in its order"

    store.writing(check)


def test_a_folds_chapters_are_its_own_with_their_newest_text(store: Store) -> None:
    """Not those of another head that overlap them."""

    def check(connection: Connection) -> None:
        tree = Tree(connection)
        one = tree.chapter(tree.trunk, 1, 2, text=None)
        two = tree.chapter(tree.trunk, 3, 4, text=None)
        versions = [tree.version(pk, "heard") for pk in (one, two)]
        tree.chapter(tree.trunk, 1, 6, text="overlapping")
        fold = tree.fold(tree.trunk, 8, 4, versions)
        tree.version(two, "told")
        rows = chapter_rows.chapters_of_fold(connection, tree.conversation.pk, fold)
        assert [(row.first_depth, row.text) for row in rows] == [(1, "heard"), (3, "told")]
        empty = tree.fold(tree.trunk, 9, 4, [])
        assert chapter_rows.chapters_of_fold(connection, tree.conversation.pk, empty) == []

    store.writing(check)


def test_ends_tell_of_a_path_what_its_rows_tell_without_their_texts(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        tree.version(tree.chapter(tree.trunk, 1, 2), "the second text, 🙂鍵")
        tree.chapter(tree.trunk, 3, 4)
        tree.chapter(tree.trunk, 5, 6)
        tree.chapter(tree.trunk, 7, 8, text=None)
        tree.chapter(tree.branch, 5, 8, text="a branch")
        pk = tree.conversation.pk
        for path in (tree.trunk, tree.branch):
            for above in (0, 2, 4):
                above_pk = path[above - 1].pk if above else 0
                rows = chapter_rows.chapter_row(connection, pk, path[-1], above=above)
                ends = chapter_rows.chapter_ends(
                    connection, pk, path[-1], above_pk=above_pk, above=above
                )
                assert [(end.last_pk, end.first_depth, end.last_depth) for end in ends] == [
                    (row.last_pk, row.first_depth, row.last_depth) for row in rows
                ]
                lengths = [None if row.text is None else len(row.text) for row in rows]
                assert [end.length for end in ends] == lengths
        assert lengths == [8]

    store.writing(check)


def test_chapters_with_a_text_are_told_apart(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        told = tree.chapter(tree.trunk, 1, 2)
        untold = tree.chapter(tree.trunk, 3, 4, text=None)
        assert chapter_rows.told_chapters(connection, [told, untold]) == {told}
        assert chapter_rows.told_chapters(connection, []) == set()

    store.writing(check)
