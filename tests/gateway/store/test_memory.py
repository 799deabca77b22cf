"""Folds, chapters and gists as rows: what is valid on which path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection

from gateway.store import memory, transcript
from gateway.store.engine import Store
from gateway.store.memory import FoldRow
from gateway.store.transcript import ConversationRow, Node
from policies.values import Span
from tests.gateway.house import House, user
from tests.gateway.seeds import NOW, new_message


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    house = House(tmp_path)
    yield house.store
    house.store.close()


class Tree:
    """A trunk of ten messages and a branch that leaves it behind the fourth."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        owner = transcript.ensure_owner(connection, "ann", "", NOW)
        self.conversation: ConversationRow = transcript.create_conversation(
            connection, owner, alias=None, model="foldgate", now_ms=NOW
        )
        self.trunk = self._grow(None, [f"m{at}" for at in range(1, 11)])
        self.branch = self.trunk[:4] + self._grow(self.trunk[3], [f"b{at}" for at in range(5, 11)])

    def _grow(self, parent: Node | None, texts: list[str]) -> list[Node]:
        new = [new_message(user(text)) for text in texts]
        return transcript.append_messages(self.connection, self.conversation, parent, new, NOW)

    def chapter(self, path: list[Node], first: int, last: int, text: str | None = "told") -> int:
        pk, _ = memory.add_chapter(
            self.connection,
            self.conversation.pk,
            Span(first, last, 100),
            first_pk=path[first - 1].pk,
            last_pk=path[last - 1].pk,
            now_ms=NOW,
        )
        if text is not None:
            self.version(pk, text)
        return pk

    def version(self, chapter: int, text: str, origin: str = "model") -> int:
        return memory.add_version(
            self.connection,
            self.conversation.pk,
            chapter,
            text=text,
            origin=origin,
            backend=None,
            prompt=None,
            now_ms=NOW,
        )

    def gist(self, path: list[Node], last: int, policy: str = "small", text: str = "gist") -> int:
        return memory.add_gist(
            self.connection,
            self.conversation.pk,
            policy=policy,
            last_pk=path[last - 1].pk,
            last_depth=last,
            sources=[],
            text=text,
            origin="model",
            backend=None,
            prompt=None,
            now_ms=NOW,
        )

    def fold(self, path: list[Node], at: int, border: int, versions: list[int]) -> FoldRow:
        end = path[border - 1]
        return memory.add_fold(
            self.connection,
            self.conversation.pk,
            policy="small",
            at=path[at - 1],
            border=(end.pk, end.depth, end.cum_chars),
            kind="fold",
            gist_pk=None,
            memory=versions,
            memory_chars=10,
            stand_ins=0,
            revision="r",
            now_ms=NOW,
        )

    def spans(self, path: list[Node], depth: int, above: int = 0) -> list[tuple[int, int]]:
        rows = memory.chapter_row(
            self.connection, self.conversation.pk, path[depth - 1], above=above
        )
        return [(row.first_depth, row.last_depth) for row in rows]

    def deepest(self, path: list[Node], depth: int, policy: str = "small") -> FoldRow | None:
        return memory.deepest_fold(self.connection, self.conversation.pk, policy, path[depth - 1])

    def newest_gist(self, path: list[Node], border: int, **more: object) -> str | None:
        found = memory.newest_gist(
            self.connection,
            self.conversation.pk,
            "small",
            path[-1],
            border=border,
            **more,  # type: ignore[arg-type]
        )
        return None if found is None else found.text


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
        assert memory.all_chapters(connection, tree.conversation.pk)[0].text is None
        first = tree.version(pk, "heard", "stand-in")
        second = tree.version(pk, "told")
        row = memory.chapter_by_pk(connection, tree.conversation.pk, pk)
        assert row is not None
        assert (row.version_pk, row.version, row.text, row.origin) == (second, 2, "told", "model")
        older, newer = memory.versions_by_pk(connection, [second, first])
        assert [older.text, newer.text] == ["told", "heard"], "a fold names versions, in its order"

    store.writing(check)


def test_a_fold_is_seen_from_its_message_on(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        early = tree.fold(tree.trunk, 4, 2, [])
        late = tree.fold(tree.trunk, 8, 6, [])
        assert tree.deepest(tree.trunk, 3) is None
        assert tree.deepest(tree.trunk, 4) == early
        assert tree.deepest(tree.trunk, 7) == early
        assert tree.deepest(tree.trunk, 10) == late
        assert tree.deepest(tree.branch, 10) == early
        assert tree.deepest(tree.trunk, 10, policy="wide") is None

    store.writing(check)


def test_the_newer_fold_of_one_message_is_seen(store: Store) -> None:
    """A cut to the window behind an ordinary fold."""

    def check(connection: Connection) -> None:
        tree = Tree(connection)
        tree.fold(tree.trunk, 8, 4, [])
        again = tree.fold(tree.trunk, 8, 6, [])
        assert tree.deepest(tree.trunk, 9) == again

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
        rows = memory.chapters_of_fold(connection, tree.conversation.pk, fold)
        assert [(row.first_depth, row.text) for row in rows] == [(1, "heard"), (3, "told")]
        empty = tree.fold(tree.trunk, 9, 4, [])
        assert memory.chapters_of_fold(connection, tree.conversation.pk, empty) == []

    store.writing(check)


def test_the_gist_that_covers_most_and_lies_on_the_path(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        tree.gist(tree.trunk, 3, text="to 3")
        tree.gist(tree.trunk, 6, text="to 6")
        tree.gist(tree.trunk, 6, text="to 6, again")
        tree.gist(tree.trunk, 9, policy="wide", text="another's")
        assert tree.newest_gist(tree.trunk, 10) == "to 6, again"
        assert tree.newest_gist(tree.trunk, 5) == "to 3"
        assert tree.newest_gist(tree.trunk, 2) is None
        assert tree.newest_gist(tree.branch, 10) == "to 3", "a branch under the gist"
        assert tree.newest_gist(tree.trunk, 10, ends={3, 8}) == "to 3"
        assert tree.newest_gist(tree.trunk, 10, ends=set()) is None

    store.writing(check)


def test_a_learned_ratio_is_one_row_a_backend(store: Store) -> None:
    def check(connection: Connection) -> None:
        pk = Tree(connection).conversation.pk
        assert memory.token_ratio(connection, pk, "local") is None
        for ratio in (3.0, 2.5):
            memory.save_token_ratio(connection, pk, "local", ratio)
        memory.save_token_ratio(connection, pk, "cloud", 4.0)
        assert memory.token_ratio(connection, pk, "local") == 2.5
        assert memory.token_ratio(connection, pk, "cloud") == 4.0

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
                rows = memory.chapter_row(connection, pk, path[-1], above=above)
                ends = memory.chapter_ends(connection, pk, path[-1], above_pk=above_pk, above=above)
                assert [(end.last_pk, end.first_depth, end.last_depth) for end in ends] == [
                    (row.last_pk, row.first_depth, row.last_depth) for row in rows
                ]
                lengths = [None if row.text is None else len(row.text) for row in rows]
                assert [end.length for end in ends] == lengths
        assert lengths == [8]

    store.writing(check)


def test_the_last_gist_of_a_path_is_found_beside_a_branchs(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        tree.gist(tree.trunk, 4, text="short")
        tree.gist(tree.trunk, 6, text="longer")
        tree.gist(tree.trunk, 6, text="newest 鍵")
        tree.gist(tree.branch, 8)
        tree.gist(tree.trunk, 8, policy="wide")
        pk = tree.conversation.pk

        def found(path: list[Node], depth: int) -> tuple[int, int] | None:
            end = memory.last_gist_end(connection, pk, "small", path[depth - 1])
            return None if end is None else (end.last_depth, end.length)

        assert found(tree.trunk, 10) == (6, 8)
        assert found(tree.branch, 10) == (8, 4)
        assert found(tree.branch, 7) == (4, 5)
        assert found(tree.trunk, 3) is None
        assert memory.gist_ends(connection, pk, "wide") == {tree.trunk[7].pk}

    store.writing(check)


def test_chapters_with_a_text_are_told_apart(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Tree(connection)
        told = tree.chapter(tree.trunk, 1, 2)
        untold = tree.chapter(tree.trunk, 3, 4, text=None)
        assert memory.told_chapters(connection, [told, untold]) == {told}
        assert memory.told_chapters(connection, []) == set()

    store.writing(check)
