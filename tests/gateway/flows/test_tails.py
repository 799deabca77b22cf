"""Tails with their notes: grown from what was kept, they are what the rows alone give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from gateway.flows.notes import Noted, Recalled
from gateway.flows.tails import Laid, lay_tail
from gateway.flows.views import CachedTail
from gateway.store import fold_rows, notes, transcript
from gateway.store.engine import Store
from gateway.store.fold_rows import FoldRow
from gateway.store.notes import CALLS, LINES, NoteRow
from gateway.store.transcript import Node
from gateway.wire.json_text import loads
from policies.schema import Policy
from tests.gateway.house import House, Say, assistant, call_of, tool, user
from tests.gateway.seeds import NOW, new_message

POLICY = Policy(name="small")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    house = House(tmp_path)
    yield house.store
    house.store.close()


class Walk:
    """A conversation that grows by question and reply, with a fold behind its second message."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        owner = transcript.ensure_owner(connection, "ann", "", NOW)
        self.conversation = transcript.create_conversation(
            connection, owner, alias=None, model="foldgate", now_ms=NOW
        )
        self.count = 0
        self.replies: dict[int, Node] = {}
        past = [self.say(None, user("long ago"))]
        past.append(self.say(past[-1], assistant("indeed")))
        self.asked = [self.say(past[-1], user("so"))]
        self.fold = self.new_fold(past[-1])

    def say(self, parent: Node | None, message: Say) -> Node:
        new = new_message(message)
        (node,) = transcript.append_messages(self.connection, self.conversation, parent, [new], NOW)
        return node

    def ask(self, behind: Node) -> Node:
        """A reply to a question, and the question behind it."""
        self.count += 1
        reply = self.say(behind, assistant(f"reply {self.count}"))
        self.asked.append(self.say(reply, user(f"question {self.count}")))
        self.replies[self.asked[-1].pk] = reply
        return self.asked[-1]

    def reply_before(self, asked: Node) -> Node:
        return self.replies[asked.pk]

    def new_fold(self, border: Node) -> FoldRow:
        return fold_rows.add_fold(
            self.connection,
            self.conversation.pk,
            policy=POLICY.name,
            at=self.asked[0],
            border=(border.pk, border.depth, border.cum_chars),
            kind="fold",
            gist_pk=None,
            memory=[],
            memory_chars=0,
            stand_ins=0,
            revision="r",
            now_ms=NOW,
        )

    def note(self, asked: Node, kind: str = LINES, fold: FoldRow | None = None) -> NoteRow:
        self.count += 1
        mark = f"note {self.count}"
        search = [
            assistant(None, tool_calls=[call_of(mark, "{}", "recall_search")]),
            tool(mark, "found"),
        ]
        body: dict[str, Any] = {"messages": search}
        if kind == LINES:
            body = {"text": mark, "shown": [self.count], "told": [mark]}
        return notes.add(
            self.connection,
            self.conversation.pk,
            POLICY.name,
            (fold or self.fold).pk,
            asked,
            kind=kind,
            body=body,
            chars=10,
            now_ms=NOW,
        )

    def lay(self, asked: Node, kept: CachedTail | None = None, **more: Any) -> Laid:
        more = {"recall": None, "fold": self.fold, "policy": POLICY.name, **more}
        return lay_tail(
            self.connection,
            self.conversation,
            asked=asked,
            kept=kept,
            reasoning_of=None,
            **more,
        )

    def keep(self, asked: Node, laid: Laid, fold: FoldRow | None = None) -> CachedTail:
        fold = fold or self.fold
        return CachedTail(fold.border_depth, asked.pk, asked.depth, laid.tail, fold.pk, laid.noted)


def told(laid: Laid) -> list[Any]:
    return [loads(fragment).get("content") for fragment in laid.tail.fragments]


def test_notes_stand_in_and_behind_their_messages(store: Store) -> None:
    def check(connection: Connection) -> None:
        walk = Walk(connection)
        first = walk.asked[0]
        walk.note(first)
        second = walk.ask(first)
        walk.note(walk.reply_before(second), CALLS)
        laid = walk.lay(second)
        assert told(laid) == ["note 1\n\nso", None, "found", "reply 2", "question 2"]
        assert (laid.noted.chars, laid.noted.messages) == (20, frozenset({1}))

    store.writing(check)


def test_a_view_of_which_nothing_is_folded_reads_notes_where_it_is_told_of_them(
    store: Store,
) -> None:
    def check(connection: Connection) -> None:
        walk = Walk(connection)
        first = walk.asked[0]
        notes.add(
            connection,
            walk.conversation.pk,
            POLICY.name,
            None,
            first,
            kind=LINES,
            body={"text": "from the crm"},
            chars=10,
            now_ms=NOW,
        )
        assert told(walk.lay(first, fold=None)) == ["long ago", "indeed", "so"]
        notes.mark_noted(connection, walk.conversation.pk)
        owner = walk.conversation.owner_pk
        found = transcript.conversation_by_pk(connection, owner, walk.conversation.pk)
        assert found is not None
        assert found.noted
        walk.conversation = found
        assert told(walk.lay(first, fold=None))[-1] == "from the crm\n\nso"

    store.writing(check)


def test_what_is_recalled_now_stands_in_the_message_that_is_asked(store: Store) -> None:
    def check(connection: Connection) -> None:
        walk = Walk(connection)
        walk.note(walk.asked[0])
        second = walk.ask(walk.asked[0])
        seen: list[tuple[list[int], Noted]] = []

        def recall(rows: Any, noted: Noted) -> Recalled:
            seen.append(([row.depth for row in rows], noted))
            return Recalled(walk.note(second))

        laid = walk.lay(second, recall=recall)
        assert seen == [([3, 4, 5], Noted(10, frozenset({1}), frozenset({"note 1"})))]
        assert told(laid) == ["note 1\n\nso", "reply 2", "note 3\n\nquestion 2"]
        assert laid.noted.messages == frozenset({1, 3})
        assert laid.recalled is not None
        assert told(walk.lay(second)) == told(laid)

    store.writing(check)


def test_after_a_fold_the_notes_of_the_one_before_are_gone(store: Store) -> None:
    """Also where the border stays, as with a renewal."""

    def check(connection: Connection) -> None:
        walk = Walk(connection)
        first = walk.asked[0]
        walk.note(first)
        kept = walk.keep(first, walk.lay(first))
        before = walk.fold
        walk.fold = walk.new_fold(transcript.node_by_pk(connection, before.border_pk))
        assert told(walk.lay(first, kept)) == ["so"]
        assert told(walk.lay(first, fold=before)) == ["note 1\n\nso"]

    store.writing(check)


def test_a_tail_that_nothing_came_to_is_the_one_that_was_kept(store: Store) -> None:
    def check(connection: Connection) -> None:
        walk = Walk(connection)
        first = walk.asked[0]
        kept = walk.keep(first, walk.lay(first))
        assert walk.lay(first, kept).tail is kept.tail
        second = walk.ask(first)
        walk.note(walk.reply_before(second), CALLS)
        assert told(walk.lay(second, kept)) == ["so", None, "found", "reply 1", "question 1"]
        assert told(Laid(kept.tail)) == ["so"]
        assert walk.lay(first, kept).tail is kept.tail

    store.writing(check)


STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "note", "look", "fold"]), st.integers(0, 30)),
    max_size=25,
)


@settings(max_examples=60)
@given(STEPS)
def test_a_kept_tail_grows_to_what_the_rows_give(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    house = House(tmp_path_factory.mktemp("tails"))

    def check(connection: Connection) -> None:
        walk = Walk(connection)
        kept: CachedTail | None = None
        for step, at in steps:
            asked = walk.asked[at % len(walk.asked)]
            if step == "ask":
                walk.ask(asked)
            elif step == "note":  # beside what nobody has seen yet, as turns do
                asked = walk.ask(asked)
                walk.note(walk.reply_before(asked), CALLS)
                walk.note(asked)
            elif step == "fold":
                walk.fold = walk.new_fold(transcript.node_by_pk(connection, walk.fold.border_pk))
            laid, fresh = walk.lay(asked, kept), walk.lay(asked)
            assert laid.tail.fragments == fresh.tail.fragments
            assert laid.tail.depths == fresh.tail.depths
            assert laid.noted == fresh.noted
            pk, name = walk.conversation.pk, POLICY.name
            assert laid.noted.chars == notes.cost(connection, pk, name, walk.fold.pk, asked)
            kept = walk.keep(asked, laid)

    house.store.writing(check)
    house.store.close()
