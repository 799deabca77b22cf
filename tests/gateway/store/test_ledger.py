"""The ledger as rows: what is live on which path, and what a new text of a chapter changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from gateway.store import chapter_rows, ledger
from gateway.store.chapter_entries import add_entries
from gateway.store.engine import Store, find_database
from gateway.store.ledger_rows import EntryRow
from gateway.store.transcript import Node
from policies.ledger.values import Claim, Entries, Fact, Quote, Thread
from tests.gateway.house import House
from tests.gateway.seeds import NOW
from tests.gateway.store.tree import Tree


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    house = House(tmp_path)
    yield house.store
    house.store.close()


class Book:
    """A tree and the ledger of its chapters."""

    def __init__(self, connection: Connection) -> None:
        self.tree = Tree(connection)
        self.connection = connection
        self.pk = self.tree.conversation.pk

    def tell(self, path: list[Node], first: int, last: int, entries: Entries) -> list[EntryRow]:
        """A new model version of the chapter over these messages."""
        chapter = self.tree.chapter(path, first, last, None)
        version = self.tree.version(chapter, "told")
        row = chapter_rows.chapter_by_pk(self.connection, self.pk, chapter)
        assert row is not None
        sources = [node.pk for node in path[first - 1 : last]]
        return add_entries(
            self.connection, self.pk, row, version, entries, sources=sources, now_ms=NOW
        )

    def open(self, path: list[Node], depth: int | None = None) -> list[int | None]:
        rows = ledger.open_threads(
            self.connection, self.pk, path[-1], up_to_depth=depth or path[-1].depth
        )
        return [row.number for row in rows]

    def closed(self, path: list[Node]) -> list[int | None]:
        told = ledger.read_threads(self.connection, self.pk, path[-1], up_to_depth=path[-1].depth)
        return [row.number for row in told.closed]

    def facts(self, path: list[Node], depth: int | None = None) -> list[str]:
        rows = ledger.facts(self.connection, self.pk, path[-1], up_to_depth=depth or path[-1].depth)
        return [row.text for row in rows]

    def pinned(self, path: list[Node]) -> list[str]:
        rows = ledger.pinned(self.connection, self.pk, path[-1], up_to_depth=path[-1].depth)
        return [row.text for row in rows]


def threads(*texts: str) -> Entries:
    return Entries(opened=tuple(Thread(text, 0) for text in texts))


def facts(*told: tuple[str, str]) -> Entries:
    return Entries(facts=tuple(Fact(text, about, 0) for about, text in told))


Fresh = Callable[[], AbstractContextManager[Book]]


@pytest.fixture
def fresh(store: Store) -> Iterator[Fresh]:
    """Opens a new book, whose rows are gone when it is closed."""
    engine = find_database(store.url, synchronous="OFF").writer

    @contextmanager
    def make() -> Iterator[Book]:
        with engine.connect() as connection, connection.begin() as transaction:
            yield Book(connection)
            transaction.rollback()

    yield make
    engine.dispose()


@pytest.fixture
def book(fresh: Fresh) -> Iterator[Book]:
    with fresh() as made:
        yield made


def test_entries_stand_with_their_chapter_and_their_source(book: Book) -> None:
    trunk = book.tree.trunk
    rows = book.tell(
        trunk,
        3,
        5,
        Entries(
            facts=(Fact("Зовут Аней.", "имя", 2),),
            claims=(Claim("Mira", "Ann", "she is a queen", "she is a thief", 1),),
            opened=(Thread("誰が鍵を取ったか", 0),),
            quotes=(Quote("¡Nunca!", "Mira", 1),),
        ),
    )
    assert [(r.kind, r.text, r.about, r.who, r.target, r.truth, r.number) for r in rows] == [
        ("fact", "Зовут Аней.", "имя", None, None, None, None),
        ("claim", "she is a queen", None, "Mira", "Ann", "she is a thief", None),
        ("thread", "誰が鍵を取ったか", None, None, None, None, 1),
        ("quote", "¡Nunca!", None, "Mira", None, None, None),
    ]
    assert [row.source_pk for row in rows] == [trunk[4].pk, trunk[3].pk, trunk[2].pk, trunk[3].pk]
    assert {(row.last_pk, row.last_depth, row.origin) for row in rows} == {
        (trunk[4].pk, 5, "model")
    }
    assert ledger.entries_by_pk(book.connection, [rows[2].pk, rows[0].pk]) == [rows[2], rows[0]]
    assert ledger.entries_by_pk(book.connection, []) == []
    assert ledger.entry_by_id(book.connection, book.pk, rows[1].id) == rows[1]
    assert ledger.entry_by_id(book.connection, book.pk + 1, rows[1].id) is None


def test_a_thread_is_closed_on_the_paths_that_hold_the_chapter_that_resolved_it(book: Book) -> None:
    trunk, branch = book.tree.trunk, book.tree.branch
    book.tell(trunk, 1, 3, threads("Who took the key?", "Where is Ada?"))
    book.tell(trunk, 4, 7, Entries(resolved=(1,)))
    book.tell(branch, 4, 8, Entries(opened=(Thread("Will it rain?", 0),), resolved=(2, 9)))
    assert (book.open(trunk), book.closed(trunk)) == ([2], [1])
    assert (book.open(branch), book.closed(branch)) == ([1, 3], [2])
    assert book.open(trunk, 6) == [1, 2]  # before the chapter that closed it ends
    assert book.open(trunk, 2) == []


def test_the_threads_closed_last_come_first(book: Book) -> None:
    trunk = book.tree.trunk
    book.tell(trunk, 1, 2, threads("a?", "b?", "c?"))
    book.tell(trunk, 3, 4, Entries(resolved=(2,)))
    book.tell(trunk, 5, 6, Entries(resolved=(1, 3)))
    assert book.closed(trunk) == [3, 1, 2]


def test_what_the_owner_does_counts_on_every_path(book: Book) -> None:
    trunk, branch = book.tree.trunk, book.tree.branch
    first, second = book.tell(trunk, 1, 3, threads("Who took the key?", "Where is Ada?"))
    book.tell(trunk, 4, 7, Entries(resolved=(1,)))
    for pk, mark in ((first.pk, "reopened"), (second.pk, "deleted")):
        ledger.add_mark(book.connection, book.pk, pk, mark, origin="owner", now_ms=NOW)  # type: ignore[arg-type]
    assert (book.open(trunk), book.open(branch)) == ([1], [1])
    ledger.add_mark(book.connection, book.pk, second.pk, "undeleted", origin="owner", now_ms=NOW)
    assert book.open(branch) == [1, 2]


def test_pins_stand_until_they_are_taken_off_or_the_entry_is_deleted(book: Book) -> None:
    trunk = book.tree.trunk
    rows = book.tell(
        trunk, 1, 3, facts(("home", "Ann lives in Lisbon."), ("pet", "Ann has a cat."))
    )
    for row in rows:
        ledger.add_mark(book.connection, book.pk, row.pk, "pinned", origin="owner", now_ms=NOW)
    book.tell(trunk, 4, 5, facts(("home", "Ann lives in Porto.")))
    assert book.pinned(trunk) == ["Ann lives in Lisbon.", "Ann has a cat."]
    ledger.add_mark(book.connection, book.pk, rows[0].pk, "unpinned", origin="owner", now_ms=NOW)
    ledger.add_mark(book.connection, book.pk, rows[1].pk, "deleted", origin="owner", now_ms=NOW)
    assert book.pinned(trunk) == []


def test_a_newer_fact_supersedes_the_older_which_stays_readable(book: Book) -> None:
    trunk, branch = book.tree.trunk, book.tree.branch
    old = book.tell(trunk, 1, 3, facts(("home", "Ann lives in Lisbon.")))[0]
    new = book.tell(trunk, 4, 6, facts(("Home ", "Ann moved to Porto.")))[0]
    assert book.facts(trunk) == ["Ann moved to Porto."]
    assert book.facts(trunk, 5) == book.facts(branch) == ["Ann lives in Lisbon."]
    found = dict(ledger.all_entries(book.connection, book.pk))
    assert [(m.mark, m.by_pk, m.last_depth) for m in found[old]] == [("superseded", new.pk, 6)]
    assert found[new] == []


def test_what_is_known_is_not_written_twice(book: Book) -> None:
    trunk = book.tree.trunk
    book.tell(trunk, 1, 3, facts(("home", "Ann lives in Lisbon.")))
    assert book.tell(trunk, 4, 6, facts(("city", "ann lives in LISBON"))) == []
    assert book.tell(trunk, 7, 8, facts(("home", "Ann lives in Porto.")))
    back = book.tell(trunk, 9, 10, facts(("home", "Ann lives in Lisbon.")))
    assert back and book.facts(trunk) == ["Ann lives in Lisbon."]


def test_chapters_may_be_written_in_any_order(book: Book) -> None:
    trunk, branch = book.tree.trunk, book.tree.branch
    later = book.tell(trunk, 5, 7, facts(("home", "Ann lives in Porto."), ("pet", "Has a cat.")))
    book.tell(branch, 5, 8, facts(("home", "Ann lives in Rome.")))
    early = book.tell(trunk, 1, 4, facts(("home", "Ann lives in Lisbon."), ("pet", "has a cat")))
    assert len(early) == 2
    assert book.facts(trunk) == ["Ann lives in Porto.", "Has a cat."]
    assert book.facts(branch) == ["has a cat", "Ann lives in Rome."]
    found = dict(ledger.all_entries(book.connection, book.pk))
    assert [mark.by_pk for mark in found[early[1]]] == [later[1].pk]


def test_a_newer_text_takes_back_what_the_older_told_and_did(book: Book) -> None:
    trunk = book.tree.trunk
    book.tell(trunk, 1, 2, threads("a?", "b?"))
    book.tell(trunk, 1, 2, threads("a?", "b?"))
    assert book.open(trunk) == [1, 2]
    home = book.tell(trunk, 1, 2, Entries(facts=(Fact("Ann lives in Lisbon.", "home", 0),)))
    assert (book.open(trunk), len(home)) == ([], 1)
    first = Entries(
        facts=(Fact("Ann lives in Porto.", "home", 0), Fact("Ann is 30.", "age", 0)),
        opened=(Thread("c?", 0), Thread("d?", 0)),
    )
    told = book.tell(trunk, 3, 4, first)
    ledger.add_mark(book.connection, book.pk, told[3].pk, "pinned", origin="owner", now_ms=NOW)
    again = book.tell(trunk, 3, 4, Entries(facts=(Fact("Ann is 30.", "age", 0),)))
    assert again == []
    assert book.facts(trunk) == ["Ann lives in Lisbon.", "Ann is 30."]
    assert book.open(trunk) == [4]


def test_a_thread_stays_closed_where_a_later_chapter_closed_it_too(book: Book) -> None:
    trunk, branch = book.tree.trunk, book.tree.branch
    book.tell(trunk, 1, 2, threads("a?"))
    book.tell(trunk, 5, 7, Entries(resolved=(1,)))  # written ahead of the chapter before it
    book.tell(trunk, 3, 4, Entries(resolved=(1,)))
    assert book.open(branch) == []
    book.tell(trunk, 3, 4, Entries())
    assert (book.open(trunk), book.open(branch), book.closed(trunk)) == ([], [1], [1])
    book.tell(trunk, 3, 4, Entries(resolved=(1,)))
    assert (book.open(trunk), book.open(branch)) == ([], [])


def test_an_entry_of_the_owner_is_left_alone_by_a_newer_text(book: Book) -> None:
    trunk = book.tree.trunk
    row = book.tell(trunk, 1, 2, threads("a?"))[0]
    edited = ledger.add_entry(
        book.connection,
        book.pk,
        kind="thread",
        text="A, in the owner's words?",
        number=row.number,
        chapter_pk=row.chapter_pk,
        last_pk=row.last_pk,
        last_depth=row.last_depth,
        origin="owner",
        now_ms=NOW,
    )
    ledger.add_mark(
        book.connection, book.pk, row.pk, "superseded", by_pk=edited.pk, origin="owner", now_ms=NOW
    )
    assert book.tell(trunk, 1, 2, threads("b?"))[0].number == 2
    assert book.open(trunk) == [1, 2]
    book.tell(trunk, 3, 4, Entries(resolved=(1,)))
    assert (book.open(trunk), book.closed(trunk)) == ([2], [1])


# (on the branch?, first depth, last depth) of six chapters of a tree that parts behind depth 4
SPANS = [(False, 1, 2), (False, 3, 4), (False, 5, 7), (False, 8, 10), (True, 5, 8), (True, 9, 10)]


@given(
    st.permutations(range(len(SPANS))),
    st.lists(
        st.tuples(st.integers(0, 2), st.sets(st.integers(1, 9), max_size=4)), min_size=6, max_size=6
    ),
)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_every_opened_thread_stays_open_until_a_chapter_on_its_path_resolves_it(
    fresh: Fresh, order: list[int], told: list[tuple[int, set[int]]]
) -> None:
    """Whatever order the chapters are written in, on every branch and at every depth."""
    with fresh() as book:
        paths = {False: book.tree.trunk, True: book.tree.branch}
        opened: dict[int, int] = {}  # number -> chapter
        closed: dict[int, list[int]] = {}
        for at in order:
            on_branch, first, last = SPANS[at]
            count, wanted = told[at]
            path = paths[on_branch]
            before = book.open(path[:last], first - 1)
            resolved = tuple(sorted(number for number in wanted if number in before))
            texts = [f"{at} asks {number}?" for number in range(count)]
            rows = book.tell(
                path, first, last, Entries(opened=threads(*texts).opened, resolved=resolved)
            )
            opened |= {row.number: at for row in rows if row.number is not None}
            for number in resolved:
                closed.setdefault(number, []).append(at)
        for on_branch, path in paths.items():
            for depth in range(1, 11):
                told_here = {
                    at
                    for at, (branch, _, last) in enumerate(SPANS)
                    if last <= depth and (branch == on_branch or last <= 4)
                }
                expected = [
                    number
                    for number, at in sorted(opened.items())
                    if at in told_here and not told_here & set(closed.get(number, []))
                ]
                assert book.open(path, depth) == expected
