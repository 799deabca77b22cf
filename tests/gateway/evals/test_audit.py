"""eval audit: faults of stored memory, read plainly and through the ledger."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from gateway.evals.audit import KINDS, Part, Report, audit, count, load
from gateway.policy_file import parse_policies
from gateway.store import chapter_rows, fold_rows, gist_rows, ledger, profile_learning
from gateway.store.engine import Store
from gateway.store.fold_rows import Shown
from gateway.store.ledger_rows import EntryRow
from gateway.store.profile_learning import Told
from gateway.store.transcript import ConversationRow, Node
from policies.values import Span
from tests.gateway.seeds import NOW, POLICIES, add_conversation

FILE = parse_policies(POLICIES, name="x.yaml", environ={}).file
CLAIM = "The castle of Aldmoor burned down in the war, and the queen fled to Venice."
REFUSAL = "I'm sorry, but I can't help with summarizing this conversation."

SAID = [
    ("user", "I live in Lisbon with my sister Beatriz. Where is the silver key of the lighthouse?"),
    ("assistant", CLAIM),
    ("user", "I bought a green boat in August."),
    ("assistant", "*They find the silver key of the lighthouse in the green boat.*"),
    ("user", "What now?"),
]


class Memory:
    """One conversation of two chapters, and what is told beside them."""

    def __init__(self, store: Store, first: str, second: str) -> None:
        self.store = store
        messages = [{"role": role, "content": text} for role, text in SAID]
        self.chat: ConversationRow
        self.nodes: list[Node]
        self.chat, self.nodes = store.writing(add_conversation, messages)
        self.chapters = [self._chapter(1, 2, first), self._chapter(3, 4, second)]

    def _chapter(self, first: int, last: int, text: str) -> int:
        span = Span(first, last, 100)
        pk, _ = self.store.writing(
            chapter_rows.add_chapter,
            self.chat.pk,
            span,
            first_pk=self.nodes[first - 1].pk,
            last_pk=self.nodes[last - 1].pk,
            now_ms=NOW,
        )
        self.tell(pk, text)
        return pk

    def tell(self, chapter: int, text: str, origin: str = "model") -> None:
        self.store.writing(
            chapter_rows.add_version,
            self.chat.pk,
            chapter,
            text=text,
            origin=origin,
            backend="local-glm",
            prompt="1",
            now_ms=NOW,
        )

    def add(self, kind: Any, text: str, *, source: int | None = 1, **more: Any) -> EntryRow:
        """An entry of the first chapter; source: the depth of the message that bears it out."""
        given: dict[str, Any] = {"origin": "model", "chapter_pk": self.chapters[0], **more}

        def write(connection: Connection) -> EntryRow:
            return ledger.add_entry(
                connection,
                self.chat.pk,
                kind=kind,
                text=text,
                last_pk=self.nodes[1].pk,
                last_depth=2,
                source_pk=None if source is None else self.nodes[source - 1].pk,
                now_ms=NOW,
                **given,
            )

        return self.store.writing(write)

    def mark(self, entry: EntryRow, name: Any) -> None:
        self.store.writing(
            ledger.add_mark, self.chat.pk, entry.pk, name, origin="model", now_ms=NOW
        )

    def show(self, *entries: EntryRow) -> None:
        self.store.writing(
            fold_rows.add_fold,
            self.chat.pk,
            policy="local-fold",
            at=self.nodes[4],
            border=(self.nodes[1].pk, 2, self.nodes[1].cum_chars),
            kind="fold",
            gist_pk=None,
            memory=[],
            memory_chars=1,
            stand_ins=0,
            revision="r",
            shown=Shown(open=tuple(entry.pk for entry in entries)),
            now_ms=NOW,
        )

    def audit(self) -> list[Part]:
        return audit(self.store.reading(load, self.chat, FILE))

    def counts(self) -> dict[str, tuple[int, int]]:
        """(before, after) of each kind that is not 0 in both."""
        findings = [finding for part in self.audit() for finding in part.findings]
        before, after = count(findings, "before"), count(findings, "after")
        return {kind: (before[kind], after[kind]) for kind in KINDS if before[kind] or after[kind]}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(f"sqlite:///{tmp_path / 'audit.db'}")
    store.open()
    yield store
    store.close()


@pytest.fixture
def memory(store: Store) -> Memory:
    return Memory(store, "The user told of Lisbon and Beatriz.", "The user told of a green boat.")


def test_a_sound_memory_has_no_faults(memory: Memory) -> None:
    memory.add("fact", "The user lives in Lisbon.", about="home")
    assert memory.counts() == {}


def test_claims_are_facts_where_everything_is_read_plainly(memory: Memory) -> None:
    memory.add("claim", "the castle of Aldmoor burned down", who="Assistant", source=2)
    assert memory.counts() == {"claims_as_facts": (1, 0)}


def test_a_characters_words_as_a_fact_or_as_plainly_so_are_told_by_both(memory: Memory) -> None:
    memory.add("fact", "The castle of Aldmoor burned down.", source=2)
    memory.tell(memory.chapters[0], "The castle of Aldmoor burned down in the war.")
    first, _, _ = memory.audit()
    told = [(finding.kind, finding.text) for finding in first.findings]
    assert told == [
        ("claims_as_facts", "The castle of Aldmoor burned down in the war."),
        ("claims_as_facts", "The castle of Aldmoor burned down."),
    ]
    assert memory.counts() == {"claims_as_facts": (2, 2)}
    # A stand-in tells each sentence under its speaker's name.
    memory.tell(memory.chapters[0], f"assistant: {CLAIM}", origin="stand-in")
    assert memory.counts() == {"claims_as_facts": (1, 1)}


def test_what_was_deleted_or_is_the_owners_is_no_fault(memory: Memory) -> None:
    gone = memory.add("fact", "The castle of Aldmoor burned down.", source=2)
    memory.mark(gone, "deleted")
    memory.add("fact", "The castle of Aldmoor burned down.", source=None, origin="owner")
    memory.add("note", REFUSAL, source=None, origin="owner", chapter_pk=None)
    thread = memory.add("thread", "Find the silver key of the lighthouse.", number=1)
    memory.mark(thread, "closed")
    memory.mark(thread, "deleted")
    assert memory.counts() == {}


def test_resolved_threads_are_open_for_who_has_no_ids(memory: Memory) -> None:
    thread = memory.add("thread", "Find the silver key of the lighthouse.", number=1)
    memory.mark(thread, "closed")
    assert memory.counts() == {"resolved_still_open": (1, 0)}
    memory.show(thread)
    assert memory.counts() == {"resolved_still_open": (1, 1)}


def test_a_thread_whose_end_a_later_chapter_tells_is_open_in_both(memory: Memory) -> None:
    memory.add("thread", "Find the silver key of the lighthouse.", number=1)
    memory.add("thread", "Meet Beatriz at the harbour on Friday.", number=2)
    assert memory.counts() == {}
    memory.tell(memory.chapters[1], "At last they found the silver key of the lighthouse.")
    assert memory.counts() == {"ended_still_open": (1, 1)}
    # Its own chapter cannot have told its end.
    memory.tell(memory.chapters[1], "The user told of a green boat.")
    memory.tell(memory.chapters[0], "At last they found the silver key of the lighthouse.")
    assert "ended_still_open" not in memory.counts()


def test_entries_need_a_message_of_their_span(memory: Memory) -> None:
    memory.add("fact", "The user lives in Lisbon.", source=None)
    memory.add("fact", "The user lives with Beatriz.", source=3)
    memory.add("thread", "Find the silver key.", source=None, chapter_pk=None, number=1)
    assert memory.counts() == {"without_source": (3, 3)}


def test_quotes_and_claims_have_the_right_speaker(memory: Memory) -> None:
    memory.add("claim", "the castle of Aldmoor burned down in the war", who="User", source=2)
    memory.add("quote", "the queen fled to Venice", who="User", source=2)
    memory.add("quote", "the queen fled to Venice", who="Assistant", source=2)
    assert memory.counts() == {"claims_as_facts": (1, 0), "misattributed": (2, 2)}


def test_a_chapter_that_exchanges_its_speakers_is_misattributed(store: Store) -> None:
    memory = Memory(store, "x", "y")
    talk = [
        {"role": "user", "name": "Melanie", "content": text}
        for text in (
            "I painted a lake sunrise last year, and the pottery class calms me.",
            "My kids went camping with me in the mountains.",
            "I signed up for a marathon in October to support a charity.",
        )
    ] + [
        {"role": "assistant", "name": "Caroline", "content": text}
        for text in (
            "I went to a support group yesterday and heard transgender stories.",
            "I want to become a counselor and work in mental health.",
            "My grandmother in Sweden gave me a necklace.",
        )
    ]
    memory.chat, memory.nodes = store.writing(add_conversation, talk)
    memory._chapter(
        1, 6, "Caroline painted a lake sunrise last year and the pottery class calms her."
    )
    assert memory.counts()["misattributed"] == (1, 1)


def test_refusals_are_found_wherever_they_are(memory: Memory) -> None:
    memory.tell(memory.chapters[0], REFUSAL)
    memory.add("thread", REFUSAL, number=1)
    memory.add("quote", REFUSAL, who="User")
    memory.add("note", REFUSAL, source=None, chapter_pk=None, gist_pk=_gist(memory, REFUSAL))
    counts = memory.counts()
    assert counts["refusals"] == (4, 4)


def _gist(memory: Memory, text: str) -> int:
    return memory.store.writing(
        gist_rows.add_gist,
        memory.chat.pk,
        policy="local-fold",
        last_pk=memory.nodes[1].pk,
        last_depth=2,
        sources=[1],
        text=text,
        origin="model",
        backend="local-glm",
        prompt="1",
        now_ms=NOW,
    )


def _learn(memory: Memory, text: str, depth: int = 1) -> None:
    memory.store.writing(
        profile_learning.learn,
        memory.chat.owner_pk,
        memory.chat.pk,
        [Told(text, text[:9], memory.nodes[depth - 1].pk)],
        span=[node.pk for node in memory.nodes[:2]],
        now_ms=NOW,
    )


def test_facts_of_the_profile_are_the_users_own(memory: Memory) -> None:
    _learn(memory, "The user lives in Lisbon.")
    assert memory.counts() == {}
    _learn(memory, "The castle of Aldmoor burned down.", 2)
    assert memory.counts() == {"claims_as_facts": (1, 1)}
    _learn(memory, REFUSAL)
    assert memory.counts()["refusals"] == (1, 1)


def test_a_fact_whose_message_is_gone_has_no_source(memory: Memory) -> None:
    _learn(memory, "The user lives in Lisbon.")
    stored = memory.store.reading(load, memory.chat, FILE)
    gone = replace(stored, facts=tuple(replace(told, spans=()) for told in stored.facts))
    (finding,) = audit(gone)[-1].findings
    assert (finding.kind, finding.text) == ("without_source", "The user lives in Lisbon.")


def test_it_is_told_per_chapter_and_in_sum(memory: Memory) -> None:
    memory.add("claim", "the castle of Aldmoor burned down", who="Assistant", source=2)
    memory.add("thread", "Find the silver key of the lighthouse.", number=1)
    memory.tell(memory.chapters[1], "At last they found the silver key of the lighthouse.")
    report = Report()
    stored = memory.store.reading(load, memory.chat, FILE)
    report.add(stored, audit(stored))
    told = report.as_json()
    assert (told["chapters"], told["entries"], told["threads"]) == (2, 2, 1)
    assert told["before"]["claims_as_facts"] == 1
    assert told["after"] == {**dict.fromkeys(KINDS, 0), "ended_still_open": 1}
    (conversation,) = told["conversations"]
    assert conversation["conversation"] == memory.chat.id
    assert conversation["after"] == told["after"]
    first, second = conversation["chapters"]
    assert (first["first"], first["last"], second["first"], second["last"]) == (1, 2, 3, 4)
    assert first["found"] == [
        {"kind": "ended_still_open", "text": "Find the silver key of the lighthouse."}
    ]
    assert second["found"] == []
    assert report.faults == 1
