"""What an owner deletes stays deleted, whoever told it and whatever becomes of what took its place
(law 10): three chats of one person tell facts on the same subjects, in six languages, and are
edited, deleted, undone, scrubbed, made private and folded."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy import text

from gateway.errors import Conflict
from gateway.flows import ledger_edits, memory_edits
from gateway.flows.hand import Hand
from gateway.flows.purges import purge_unshown, withdraw_facts
from gateway.flows.rounds import Draft
from gateway.flows.tellings import store_chapter
from gateway.flows.views import ViewCache
from gateway.store import chapter_rows, fold_rows, ledger, profile, profile_edits, transcript
from gateway.store.conversations import delete_conversation
from gateway.store.fold_rows import Shown
from gateway.store.ledger_rows import EntryState, state_of
from gateway.store.profile import ProfileRow, words_of
from gateway.store.profile_chains import chains_holding, settle
from gateway.store.transcript import ConversationRow, Node
from gateway.wire.json_text import loads
from policies.ledger.values import Entries, Fact
from policies.values import Span
from tests.gateway.house import House, Say, assistant, user
from tests.gateway.seeds import NOW, extend

T = TypeVar("T")
SAYINGS = {
    "home": ["The user lives in Kyoto.", "Дом в Казани.", "Vive cerca del mar.", "住在杭州。"],
    "일": ["간호사로 일한다.", "The user sells saffron.", "引退した。"],
}
ONE = st.tuples(st.sampled_from(sorted(SAYINGS)), st.integers(0, 3))
PICK = st.integers(0, 99)
WHO = st.sampled_from("ABC")


@dataclass
class Chat:
    """A conversation, its newest messages and its chapters with the messages that each tells, and
    the facts that a summarizer found there."""

    row: ConversationRow
    heads: list[Node] = field(default_factory=list)
    spans: dict[int, list[int]] = field(default_factory=dict)
    facts: dict[int, list[Fact]] = field(default_factory=dict)


@dataclass(frozen=True)
class Gone:
    """What its owner deleted, or a scrub rejected, and when. everywhere: from the profile; else it
    is what one chat told, and a copy of that chat tells it still."""

    conversation_pk: int | None
    source: str | None
    words: str
    ended_ms: int
    everywhere: bool


def _is_withdrawn(state: EntryState) -> bool:
    """By its owner, or with an edit that was taken back; a newer text of the chapter, or a scrub of
    its ledger, leaves the profile as it is."""
    return state.deleted is not None and state.deleted.origin in ("owner", "profile", "edit")


class DeletedFacts(RuleBasedStateMachine):
    """One owner. gone: by row number; taught: the words of what was learned, by where it was;
    forgotten: what was deleted from the profile, in which words and when."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.house = House(Path(self.folder.name))
        self.connection = self.house.store._writer.connect()
        self.owner = transcript.ensure_owner(self.connection, "ann", "", NOW)
        self.chats: dict[str, Chat] = {}
        self.now = NOW
        self.views = ViewCache()
        self.gone: dict[int, Gone] = {}
        self.taught: dict[str, str] = {}
        self.forgotten: dict[str, int] = {}

    def teardown(self) -> None:
        self.connection.rollback()
        self.connection.close()
        self.house.store.close()
        self.folder.cleanup()

    # -- what happens -----------------------------------------------------------------------------

    @rule(who=WHO, told=ONE, twice=st.booleans(), reply=st.sampled_from(["I see.", "👍"]))
    def tell(self, who: str, told: tuple[str, int], twice: bool, reply: str) -> None:
        """A message with its chapter; twice: it tells two things about one other subject too."""
        chat = self._chat(who)
        about, at = told
        words = SAYINGS[about][at % len(SAYINGS[about])]
        facts = [Fact(words, about, 0)]
        if twice:
            facts += [Fact("Has a cat, Miso.", "pets", 0), Fact("Два попугая дома.", "pets", 0)]
        said = [user(f"{self.now}: {words}"), assistant(reply)]
        self._summarize(chat, self._say(chat, said, facts), facts)

    @rule(who=WHO, told=ONE)
    def say_what_is_summarized_later(self, who: str, told: tuple[str, int]) -> None:
        chat = self._chat(who)
        about, at = told
        words = SAYINGS[about][at % len(SAYINGS[about])]
        self._say(chat, [user(f"{self.now}: {words}"), assistant("…")], [Fact(words, about, 0)])

    @rule(who=WHO, pick=PICK)
    def summarize(self, who: str, pick: int) -> None:
        """A span is told in its own words, for the first time or anew."""
        chat = self._chat(who)
        for chapter in self._one_of(sorted(chat.facts), pick):
            self._summarize(chat, chapter, chat.facts[chapter])

    @rule(who=WHO, to=WHO)
    def send_a_copy(self, who: str, to: str) -> None:
        """A client sends an old chat under a new id; its spans are summarized as any."""
        if who not in self.chats or to in self.chats:
            return
        old, copy = self.chats[who], self._chat(to)
        for chapter, pks in old.spans.items():
            rows = [transcript.path_between(self.connection, pk, 0)[-1] for pk in pks]
            self._say(copy, [loads(row.raw) for row in rows], old.facts[chapter])
        for chapter, facts in copy.facts.items():
            self._summarize(copy, chapter, facts)

    def _say(self, chat: Chat, said: Sequence[Say], facts: Sequence[Fact]) -> int:
        """Two messages, and the chapter that is to tell these facts of them."""
        parent = chat.heads[-1] if chat.heads else None
        nodes = extend(self.connection, chat.row, parent, said, self.now)
        chat.heads.append(nodes[-1])
        chapter, _ = chapter_rows.add_chapter(
            self.connection,
            chat.row.pk,
            Span(nodes[0].depth, nodes[1].depth, 10),
            first_pk=nodes[0].pk,
            last_pk=nodes[1].pk,
            now_ms=self.now,
        )
        chat.spans[chapter] = [node.pk for node in nodes]
        chat.facts[chapter] = list(facts)
        return chapter

    @rule(who=WHO, pick=PICK, told=ONE)
    def summarize_again(self, who: str, pick: int, told: tuple[str, int]) -> None:
        """An old span is told anew, in the same words or in others."""
        chat = self._chat(who)
        for chapter in self._one_of(sorted(chat.spans), pick):
            about, at = told
            fact = Fact(SAYINGS[about][at % len(SAYINGS[about])], about, 0)
            self._summarize(chat, chapter, [fact])

    @rule(words=ONE)
    def write_one(self, words: tuple[str, int]) -> None:
        about = words[0]
        own = f"My own {about} {self.now}."
        profile_edits.add_fact(self.connection, self.owner, own, about, self._tick())

    @rule(pick=PICK)
    def edit_one(self, pick: int) -> None:
        for fact in self._one_of(self._active(), pick):
            told = (f"Mended {self.now} 🦌", fact.about)
            memory_edits.edit_fact(self.connection, fact, *told, self._tick(), now=False)

    @rule(pick=PICK, told=ONE)
    def mend_one_into_what_is_told_elsewhere(self, pick: int, told: tuple[str, int]) -> None:
        """By its words alone it is known then, not by its subject."""
        about, at = told
        words = SAYINGS[about][at % len(SAYINGS[about])]
        for fact in self._one_of(self._active(), pick):
            memory_edits.edit_fact(self.connection, fact, words, None, self._tick(), now=False)

    @rule(pick=PICK)
    def undo_one(self, pick: int) -> None:
        for fact in self._one_of(self._active(), pick):
            with suppress(Conflict):
                memory_edits.undo_fact(self.connection, fact, self._tick(), now=False)

    @rule(pick=PICK, now=st.booleans())
    def delete_one(self, pick: int, now: bool) -> None:
        for fact in self._one_of(self._active(), pick):
            with self._deleting(everywhere=True):
                memory_edits.delete_fact(self.connection, fact, self._tick(), now=now)
            self.forgotten[words_of(fact.text)] = self.now

    @rule(pick=PICK)
    def reject_one(self, pick: int) -> None:
        """As a scrub does, of what models told."""
        told = [row for row in self._active() if row.origin == "model"]
        for fact in self._one_of(told, pick):
            with self._deleting():
                profile_edits.reject_fact(self.connection, fact.pk, self._tick())

    @rule(who=WHO, pick=PICK, act=st.sampled_from(["delete", "delete", "undo", "undo", "edit"]))
    def mend_the_ledger(self, who: str, pick: int, act: str) -> None:
        chat = self._chat(who)
        rows = [row.id for row, _ in ledger.all_entries(self.connection, chat.row.pk)]
        hand = Hand(chat.row, self._tick())
        for id in self._one_of(rows, pick):
            with suppress(Conflict):
                if act == "delete":
                    with self._deleting():
                        ledger_edits.delete_entry(self.connection, hand, id)
                elif act == "undo":
                    with self._undoing(chat):
                        ledger_edits.undo_entry(self.connection, hand, id)
                else:
                    told: dict[str, str | None] = {"text": f"Said otherwise {self.now}."}
                    ledger_edits.edit_entry(self.connection, hand, id, told)

    @rule(who=WHO, pick=PICK, back=st.booleans())
    def mend_a_chapter(self, who: str, pick: int, back: bool) -> None:
        """Its deletion, and that undone."""
        chat = self._chat(who)
        hand = Hand(chat.row, self._tick())
        chapters = chapter_rows.all_chapters(self.connection, chat.row.pk)
        for chapter in self._one_of(chapters, pick):
            with suppress(Conflict):
                if back:
                    with self._undoing(chat):
                        memory_edits.undo_chapter(self.connection, hand, chapter.id, None)
                else:
                    with self._deleting():
                        memory_edits.edit_chapter(self.connection, hand, chapter.id, "")

    @rule(who=WHO)
    def fold(self, who: str) -> None:
        """The view shows what stands."""
        chat = self._chat(who)
        if not chat.heads:
            return
        shown = profile.active(self.connection, self.owner, conversation_pk=chat.row.pk)
        self._move_head(chat, chat.heads[-1])
        fold_rows.add_fold(
            self.connection,
            chat.row.pk,
            shown=Shown(profile=tuple(row.pk for row in shown)),
            policy="small",
            at=chat.heads[-1],
            border=(0, 0, 0),
            kind="renewal",
            gist_pk=None,
            memory=[],
            memory_chars=0,
            stand_ins=0,
            revision="1",
            now_ms=self._tick(),
        )
        purge_unshown(self.connection, chat.row, self.views, self.now)

    @rule(who=WHO, pick=PICK)
    def go_to_another_branch(self, who: str, pick: int) -> None:
        chat = self._chat(who)
        for head in self._one_of(chat.heads, pick):
            self._move_head(chat, head)
            purge_unshown(self.connection, chat.row, self.views, self._tick())

    @rule(who=WHO)
    def become_private(self, who: str) -> None:
        chat = self._chat(who)
        if not self._is_private(chat):
            where = (self.connection, chat.row.pk)
            transcript.settle_conversation(*where, backend=None, private=True)
            withdraw_facts(self.connection, chat.row)

    @rule(who=WHO)
    def delete_a_chat(self, who: str) -> None:
        if who in self.chats:
            chat = self.chats.pop(who)
            delete_conversation(self.connection, chat.row, elsewhere=(), now_ms=self._tick())

    # -- what holds -------------------------------------------------------------------------------

    @invariant()
    def what_is_deleted_neither_stands_nor_is_copied(self) -> None:
        rows = self._rows()
        for pk, gone in self.gone.items():
            for row in rows:
                told = (row.source, words_of(row.text))
                is_there = gone.everywhere or row.conversation_pk == gone.conversation_pk
                is_it = row.pk == pk or (is_there and told == (gone.source, gone.words))
                assert not is_it or row.state == "deleted", (gone, row)

    @invariant()
    def what_was_deleted_is_learned_from_nothing_that_was_said_before(self) -> None:
        """Wherever it was said, whenever that is folded, and whatever became of who taught it."""
        first = "SELECT min(created_ms) FROM messages WHERE content = :content"
        for row in self._active():
            deleted_ms = self.forgotten.get(words_of(row.text), 0)
            if row.origin == "model" and row.created_ms > deleted_ms > 0:
                asked = {"content": (row.source or "").partition(":")[0]}
                said_ms = self.connection.execute(text(first), asked).scalar_one()
                assert said_ms > deleted_ms, row

    @invariant()
    def one_of_a_chain_stands_and_the_same_wherever_it_is_asked(self) -> None:
        rows = self._rows()
        for chain in chains_holding(self.connection, self.owner, [row.pk for row in rows]):
            stands = [row for row in chain if row.state == "active"]
            assert len(stands) <= 1, stands
            again = settle(self.connection, chain)
            assert [row.pk for row in stands] == ([] if again is None else [again.pk]), chain
        states = {row.pk: (row.state, row.ended_ms) for row in rows}
        assert {row.pk: (row.state, row.ended_ms) for row in self._rows()} == states

    @invariant()
    def one_thing_stands_about_one_subject(self) -> None:
        """Nothing here tells two about a home or a job at once."""
        apart = {chat.row.pk for chat in self.chats.values() if self._is_private(chat)}
        for about in SAYINGS:
            found = [row for row in self._active() if row.about == about]
            assert len([row for row in found if row.conversation_pk not in apart]) <= 1, found

    @invariant()
    def what_stands_has_a_text_and_what_no_view_shows_has_none(self) -> None:
        shown = set(self._shown())
        for row in self._rows():
            if row.state != "deleted":
                assert row.text, row
            elif row.text:
                assert row.pk in shown, f"no view shows {row}"
            elif not row.text:
                assert row.about is None, row

    @invariant()
    def the_ledger_tells_what_stands(self) -> None:
        """What a chat taught and stands, its ledger has not deleted."""
        for chat in self.chats.values():
            learned = [row for row in self._active() if row.conversation_pk == chat.row.pk]
            for fact in learned:
                told = [state for state in self._told(chat, fact) if not _is_withdrawn(state)]
                assert told, fact

    # -- how --------------------------------------------------------------------------------------

    def _tick(self) -> int:
        self.now += 1_000
        return self.now

    def _chat(self, who: str) -> Chat:
        self._tick()
        if who not in self.chats:
            row = transcript.create_conversation(
                self.connection, self.owner, alias=None, model="foldgate", now_ms=self.now
            )
            self.chats[who] = Chat(row)
        return self.chats[who]

    def _one_of(self, found: Sequence[T], pick: int) -> Iterator[T]:
        if found:
            yield found[-1 - pick % len(found)]

    def _move_head(self, chat: Chat, head: Node) -> None:
        transcript.touch_conversation(
            self.connection, chat.row.pk, head_pk=head.pk, model="foldgate", now_ms=self.now
        )

    def _rows(self) -> list[ProfileRow]:
        return profile.all_of(self.connection, self.owner)

    def _active(self) -> list[ProfileRow]:
        return [row for row in self._rows() if row.state == "active"]

    def _is_private(self, chat: Chat) -> bool:
        row = transcript.conversation_by_pk(self.connection, self.owner, chat.row.pk)
        assert row is not None
        return row.private

    def _summarize(self, chat: Chat, chapter: int, facts: Sequence[Fact]) -> None:
        draft = Draft(f"They talked at {self.now}.", "local", 1, Entries(facts=tuple(facts)))
        pks = chat.spans[chapter]
        where = (self.connection, chat.row.pk, chapter, draft)
        store_chapter(*where, pks=pks, learns=True, now_ms=self._tick())
        for row in self._rows():
            if row.source is not None and row.text:
                self.taught.setdefault(row.source, words_of(row.text))

    @contextmanager
    def _deleting(self, *, everywhere: bool = False) -> Iterator[None]:
        """What an act deletes is gone."""
        before = [row for row in self._rows() if row.state != "deleted"]
        yield
        after = {row.pk: row for row in self._rows()}
        for row in before:
            is_left = row.pk in after and after[row.pk].state != "deleted"
            if not is_left:
                ended = after[row.pk].ended_ms if row.pk in after else None
                told = (row.conversation_pk, row.source, words_of(row.text))
                self.gone[row.pk] = Gone(*told, ended or self.now, everywhere)

    @contextmanager
    def _undoing(self, chat: Chat) -> Iterator[None]:
        """Only what went with the deletion that is undone may stand again."""
        before = self._deletions(chat)
        with self._deleting():
            yield
        for row in self._active():
            self.forgotten.pop(words_of(row.text), None)
        undone = {ms for pk, ms in before.items() if pk not in self._deletions(chat)}
        for pk, gone in [*self.gone.items()]:
            if gone.conversation_pk == chat.row.pk and gone.ended_ms in undone:
                del self.gone[pk]

    def _deletions(self, chat: Chat) -> dict[int, int]:
        """The moments of the entries that their owner deleted in the ledger."""
        told = ledger.all_entries(self.connection, chat.row.pk)
        found = {row.pk: state_of(row, marks).deleted for row, marks in told}
        return {
            pk: mark.created_ms
            for pk, mark in found.items()
            if mark is not None and mark.origin == "owner"
        }

    def _told(self, chat: Chat, fact: ProfileRow) -> list[EntryState]:
        """The entries of what taught a fact: those that tell it, and what they were edited into; or
        where a newer text of the chapter tells it otherwise, those about the same."""
        sql = "SELECT pk FROM messages WHERE conversation_pk = :chat AND content = :content"
        asked = {"chat": chat.row.pk, "content": (fact.source or "").partition(":")[0]}
        sources = set(self.connection.execute(text(sql), asked).scalars())
        told = ledger.all_entries(self.connection, chat.row.pk)
        by_pk = {row.pk: (state_of(row, marks), marks) for row, marks in told}
        words = self.taught[fact.source or ""]
        found = {pk for pk, (state, _) in by_pk.items() if words_of(state.row.text) == words}
        if not found:
            found = {pk for pk, (state, _) in by_pk.items() if state.row.source_pk in sources}
        for pk in sorted(by_pk):
            if pk in found:
                edits = [mark for mark in by_pk[pk][1] if mark.origin == "owner"]
                found |= {mark.by_pk for mark in edits if mark.by_pk is not None}
        return [by_pk[pk][0] for pk in found]

    def _shown(self) -> Iterator[int]:
        """The facts that the deepest fold on the path to each chat's newest message shows."""
        sql = (
            "WITH RECURSIVE path(pk) AS (SELECT head_pk FROM conversations WHERE pk = :chat"
            " UNION ALL SELECT m.parent_pk FROM path JOIN messages m ON m.pk = path.pk"
            " WHERE m.parent_pk IS NOT NULL) SELECT f.shown FROM folds f JOIN path"
            " ON path.pk = f.at_pk ORDER BY f.at_depth DESC, f.pk DESC LIMIT 1"
        )
        for chat in self.chats.values():
            told = self.connection.execute(text(sql), {"chat": chat.row.pk}).scalar()
            yield from Shown.from_json(told).profile


DeletedFacts.TestCase.settings = settings(settings.default, max_examples=20, stateful_step_count=30)
TestDeletedFacts = DeletedFacts.TestCase
