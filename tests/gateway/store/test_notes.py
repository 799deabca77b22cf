"""Notes as rows: whose view shows them, on which path, and what they add to it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from gateway.store import notes
from gateway.store.attempts import begin_attempt
from gateway.store.engine import Store
from gateway.store.notes import CALLS, LINES, NoteRow
from gateway.store.transcript import Node
from tests.gateway.house import House
from tests.gateway.seeds import NOW
from tests.gateway.store.tree import Tree


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    house = House(tmp_path)
    yield house.store
    house.store.close()


class Noted(Tree):
    """The tree with notes laid on it, all on fold 7 of the policy `small` unless said otherwise."""

    def note(
        self,
        path: list[Node],
        depth: int,
        chars: int,
        *,
        kind: str = LINES,
        fold: int | None = 7,
        policy: str = "small",
    ) -> NoteRow:
        return notes.add(
            self.connection,
            self.conversation.pk,
            policy,
            fold,
            path[depth - 1],
            kind=kind,
            body={"text": f"{kind} at {depth}"},
            chars=chars,
            now_ms=NOW,
        )

    def cost(
        self, path: list[Node], depth: int, *, fold: int | None = 7, policy: str = "small"
    ) -> int:
        pk = self.conversation.pk
        return notes.cost(self.connection, pk, policy, fold, path[depth - 1])


def test_notes_are_summed_up_along_the_path_to_a_head(store: Store) -> None:
    """Trunk: 100 at 3, 30 at 6, 7 at 9. The branch leaves behind 4 and has 500 at 6."""

    def check(connection: Connection) -> None:
        tree = Noted(connection)
        tree.note(tree.trunk, 3, 100)
        tree.note(tree.trunk, 6, 30)
        tree.note(tree.branch, 6, 500)
        tree.note(tree.trunk, 9, 7)
        at_trunk = [tree.cost(tree.trunk, depth) for depth in (2, 3, 5, 6, 8, 9, 10)]
        assert at_trunk == [0, 100, 100, 130, 130, 137, 137]
        assert [tree.cost(tree.branch, depth) for depth in (4, 5, 6, 10)] == [100, 100, 600, 600]

    store.writing(check)


def test_each_policy_and_each_fold_has_notes_of_its_own(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Noted(connection)
        tree.note(tree.trunk, 3, 100)
        tree.note(tree.trunk, 3, 20, policy="wide")
        tree.note(tree.trunk, 5, 3, fold=8)
        tree.note(tree.trunk, 5, 4, fold=None)
        assert tree.cost(tree.trunk, 10) == 100
        assert tree.cost(tree.trunk, 10, policy="wide") == 20
        assert tree.cost(tree.trunk, 10, fold=8) == 3
        assert tree.cost(tree.trunk, 10, fold=None) == 4
        assert tree.cost(tree.trunk, 10, fold=9) == 0

    store.writing(check)


def test_notes_are_read_oldest_first_from_a_depth_on(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Noted(connection)
        late = tree.note(tree.trunk, 6, 30)
        early = tree.note(tree.trunk, 3, 100)
        other = tree.note(tree.branch, 6, 500)
        pk = tree.conversation.pk
        assert notes.of_fold(connection, pk, "small", 7) == [early, late, other]
        assert notes.of_fold(connection, pk, "small", 7, since=4) == [late, other]
        assert notes.of_fold(connection, pk, "small", 7, since=7) == []
        assert notes.of_fold(connection, pk + 1, "small", 7) == []
        assert late.body == {"before": 0, "text": "lines at 6"}

    store.writing(check)


def test_a_message_has_one_note_of_lines_on_a_fold(store: Store) -> None:
    tree = store.writing(Noted)

    def check(connection: Connection) -> None:
        tree.connection = connection
        tree.note(tree.trunk, 3, 100)
        tree.note(tree.trunk, 3, 100)

    with pytest.raises(IntegrityError):
        store.writing(check)


def test_searches_count_where_their_reply_is_on_the_path(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Noted(connection)
        lines = tree.note(tree.trunk, 4, 100)
        first = tree.note(tree.trunk, 5, 40, kind=CALLS)
        second = tree.note(tree.branch, 5, 5, kind=CALLS)
        assert [row.before for row in (lines, first, second)] == [0, 100, 100]
        assert [tree.cost(tree.trunk, depth) for depth in (4, 5, 9)] == [100, 140, 140]
        assert [tree.cost(tree.branch, depth) for depth in (4, 5, 9)] == [100, 105, 105]

    store.writing(check)


def test_notes_go_with_their_conversation(store: Store) -> None:
    def check(connection: Connection) -> None:
        tree = Noted(connection)
        tree.note(tree.trunk, 3, 100)
        connection.execute(text("DELETE FROM conversations"))
        assert connection.execute(text("SELECT count(*) FROM notes")).scalar() == 0

    store.writing(check)


def test_a_message_that_was_shown_or_has_something_shown_behind_it_takes_no_note(
    store: Store,
) -> None:
    def check(connection: Connection) -> None:
        tree = Noted(connection)
        pk = tree.conversation.pk

        def ask(node: Node, policy: str) -> None:
            begin_attempt(
                connection,
                conversation_pk=pk,
                asked_pk=node.pk,
                backend="local",
                policy=policy,
                model="foldgate",
                boot="b",
                view_kind="verbatim",
                state="done",
                started_ms=NOW,
            )

        def shown(node: Node, policy: str = "small") -> bool:
            return notes.was_shown(connection, pk, policy, node)

        assert not any(map(shown, tree.trunk))
        ask(tree.trunk[6], "small")
        assert [shown(node) for node in tree.trunk] == [True] * 7 + [False] * 3
        assert not any(shown(node, "wide") for node in tree.trunk)
        assert not shown(tree.branch[9])

    store.writing(check)
