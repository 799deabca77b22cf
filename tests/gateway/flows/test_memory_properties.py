"""The laws of memory as properties: people of six languages talk, edit, branch, ask again, trim,
move and delete, owners mend what is remembered, and summarizers fail in every way they know."""

from __future__ import annotations

import itertools
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import Connection, text

from gateway.errors import GatewayError
from gateway.flows import ledger_edits, memory_edits, papers, scrub, scrub_material
from gateway.flows.erase import erase_conversation
from gateway.flows.hand import Hand
from gateway.flows.memories import show_memory
from gateway.flows.recollection import Ask, recall
from gateway.flows.renewed import is_asked_anew
from gateway.flows.states import measure
from gateway.flows.tails import lay_tail
from gateway.flows.turn_rows import Begun, site_of
from gateway.flows.views import ViewCache
from gateway.prompts.view import assemble
from gateway.store import (
    chapter_rows,
    documents,
    fold_rows,
    gist_rows,
    ledger,
    profile,
    profile_edits,
    transcript,
)
from gateway.store.fold_rows import FoldRow
from gateway.store.memory_report import gist_id
from gateway.store.message_ids import message_ids
from gateway.store.tables import METADATA
from gateway.store.transcript import ConversationRow, Node, node_by_pk
from gateway.wire.json_text import dump_bytes, loads
from policies.budget import limits_of
from policies.judge import is_refusal
from policies.recall.room import notes_room
from policies.schema.policy import Recall
from tests.gateway.flows.memory_stage import (
    FAILING,
    INVENTED,
    NUMBERS,
    TONGUES,
    Fact,
    MemoryHouse,
    Mood,
    Teller,
    family,
)
from tests.gateway.house import Say, assistant, system, user

T = TypeVar("T")
POLICY = {"foldgate": "small", "confided": "small", "cloudy": "wide"}
EVERY_TONGUE = tuple(TONGUES)
MOODS = st.lists(st.sampled_from(["good", "entries", "too long", *FAILING]), min_size=1, max_size=4)
PICK = st.integers(0, 10_000)
BUDGET = Recall().budget
"""Characters of a search: what a policy allows where it says nothing."""
WHO = st.sampled_from([0, 0, 0, 0, 1, 1, 2, 3, 3, 4])
RESENDER = st.sampled_from([0, 0, 0, 2, 3, 4])


@dataclass
class Client:
    """A person's chat window. resends: it sends its history, else only what is new. history: the
    branch that it shows; branches: others that it left. life: counts the people it spoke of, anew
    for each conversation."""

    owner: str
    id: str
    resends: bool
    system: list[Say]
    model: str
    life: int
    tongue: str = "en"
    history: list[Say] = field(default_factory=list)
    branches: list[list[Say]] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    pk: int | None = None

    @property
    def marks(self) -> list[bytes]:
        """The names that stand in this conversation and in no other."""
        return [family(tongue, self.life).encode() for tongue in TONGUES]


@dataclass(frozen=True)
class Shown:
    """What a message was shown as when a policy's view first showed it."""

    prompt: tuple[bytes, ...]
    owner_pk: int
    conversation_pk: int
    policy: str
    asked: Node
    fold: FoldRow | None
    leads: tuple[Say, ...]


ACTS = [
    *(("chapter", act) for act in ("edit", "delete", "undo", "resummarize")),
    *(("gist", act) for act in ("edit", "delete", "undo", "major")),
    *(("entry", act) for act in ("pin", "unpin", "close", "reopen", "edit", "delete", "undo")),
    *(("profile", act) for act in ("add", "edit", "delete", "undo")),
    *(("document", act) for act in ("put", "put", "remove")),
    ("scrub", "scrub"),
]
OWN_LIFE = {"ann": 1, "bob": 2}
"""The people of whom an owner tells in the profile by their own hand."""


class Nothing(Exception):
    """There is nothing to act on."""


@dataclass(frozen=True)
class Mending:
    """One act of an owner on what is remembered of a conversation."""

    client: Client
    hand: Hand
    act: str
    pick: int

    def one_of(self, found: Sequence[T]) -> T:
        if not found:
            raise Nothing
        return found[self.pick % len(found)]


class LastingMemory(RuleBasedStateMachine):
    """One database, five conversations of two owners, one of them private."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.house = MemoryHouse(Path(self.folder.name))
        self.numbers = 0
        self.teller = Teller()
        self.lives = itertools.count(10)
        self.shown: dict[tuple[int, str], Shown] = {}
        self.rows: dict[str, dict[int, tuple[Any, ...]]] = {}
        self.deleted: set[int] = set()
        self.asked_again: defaultdict[int, int] = defaultdict(int)
        self.touched: set[int] = set()

    def teardown(self) -> None:
        self.house.close()
        self.folder.cleanup()

    @initialize(
        tongues=st.lists(st.sampled_from(EVERY_TONGUE), min_size=5, max_size=5),
        turns=st.sampled_from([0, 10, 25]),
    )
    def move_in(self, tongues: list[str], turns: int) -> None:
        """The first conversation has a past with memory already, or none."""
        kind = [system("You are kind.")]
        self.clients = [
            Client("ann", "c1", True, kind, "foldgate", next(self.lives)),
            Client("ann", "c2", False, [], "foldgate", next(self.lives)),
            Client("ann", "c3", True, [], "confided", next(self.lives)),
            Client("bob", "c1", True, [], "foldgate", next(self.lives)),
            Client("bob", "c4-0", True, [], "foldgate", next(self.lives)),
        ]
        for client, tongue in zip(self.clients, tongues, strict=True):
            client.tongue = tongue
        if turns:
            self.talk_on(0, turns, ["good", "entries"], False)

    # -- what people do ---------------------------------------------------------------------------

    @rule(
        who=WHO,
        size=st.sampled_from([20, 150, 400, 2_500]),
        reply=st.sampled_from([20, 150, 400]),
        trims=st.sampled_from([0, 0, 0, 4, 7]),
    )
    def say(self, who: int, size: int, reply: int, trims: int) -> None:
        client = self.clients[who]
        self._turn(client, self._told(client, size), reply, trims)

    @rule(who=WHO, share=st.floats(0, 0.999))
    def ask_for_what_was_told(self, who: int, share: float) -> None:
        """Whoever asks in other words for what was told long ago is shown the number that was told,
        as far as notes have room."""
        client = self.clients[who]
        told = "".join(said["content"] for said in client.history)
        # Not of what is long or asks something itself: its neighbours may take the room of a note.
        lines = [said["content"] for said in client.history]
        lines = [line for line in lines if len(line) < 300 and not set(line) & set("?？")]
        facts = [
            fact
            for fact in client.facts
            if any(fact.token in line for line in lines) and fact.asks not in told
        ]
        if not facts:
            return
        fact = facts[int(share * len(facts))]
        begun, heard = self._turn(client, user(fact.asks), 20)
        if self._room(begun) >= 450:
            assert fact.token in b"".join(heard).decode(), f"not recalled: {fact.text}"

    @rule(who=WHO, count=st.integers(3, 10), moods=MOODS, tongue=st.booleans())
    def talk_on(self, who: int, count: int, moods: list[Mood], tongue: bool) -> None:
        """Many turns, with time between them; in another language from now on, or not."""
        client = self.clients[who]
        if tongue:
            at = EVERY_TONGUE.index(client.tongue)
            client.tongue = EVERY_TONGUE[(at + 1) % len(EVERY_TONGUE)]
        for _ in range(count):
            self._turn(client, self._told(client, 150), 150)
            self.time_passes(40, moods)

    @rule(who=RESENDER, moods=MOODS)
    def regenerate(self, who: int, moods: list[Mood]) -> None:
        client = self.clients[who]
        self.time_passes(40, moods)
        if len(client.history) > 2:  # a message sent alone is a new one
            client.branches = [*client.branches[-3:], list(client.history)]
            client.history.pop()
            self._turn(client, None, 60)

    @rule(who=WHO)
    def retry(self, who: int) -> None:
        """The same request once more, as an SDK sends it that heard nothing."""
        client = self.clients[who]
        if client.history:
            client.history.pop()
            self._turn(client, None, 60, retried=True)

    @rule(who=RESENDER, share=st.floats(0, 0.999), size=st.integers(1, 500))
    def edit(self, who: int, share: float, size: int) -> None:
        client = self.clients[who]
        at = 2 * int(share * len(client.history) / 2)
        if at:
            client.branches = [*client.branches[-3:], list(client.history)]
            del client.history[at:]
            self._turn(client, self._told(client, size), 60)

    @rule(who=RESENDER, pick=PICK)
    def go_back_to_a_branch(self, who: int, pick: int) -> None:
        client = self.clients[who]
        if client.branches:
            other = client.branches.pop(pick % len(client.branches))
            client.branches.append(list(client.history))
            client.history = other
            self._turn(client, self._told(client, 60), 60)

    @rule(who=st.sampled_from([0, 1, 3]))
    def move(self, who: int) -> None:
        """To the cloud, or back."""
        client = self.clients[who]
        client.model = "cloudy" if client.model == "foldgate" else "foldgate"

    @rule(turns=st.sampled_from([12, 40, 90]), tongue=st.sampled_from(EVERY_TONGUE))
    def bring_a_history(self, turns: int, tongue: str) -> None:
        """A conversation that began elsewhere comes in whole."""
        self._begin_anew(self.clients[4])
        client = self.clients[4]
        client.tongue = tongue
        for _ in range(turns):
            said, reply = (self.teller.fact(tongue, client.life, r) for r in ("user", "assistant"))
            client.facts += [said, reply]
            client.history.append(user(self.teller.around(tongue, said, 60)))
            client.history.append(assistant(self.teller.around(tongue, reply, 60)))
        self._turn(client, self._told(client, 60), 60)

    @rule()
    def delete_a_conversation(self) -> None:
        client = self.clients[4]
        if client.pk is not None:
            self._erase(client)
        self._begin_anew(client)

    @rule()
    def restart(self) -> None:
        self.house.restart()

    @rule(numbers=st.integers(0, len(NUMBERS) - 1))
    def reload(self, numbers: int) -> None:
        self.numbers = numbers
        self.house.use(numbers)

    # -- background work --------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([5, 40, 700, 5_000]), moods=MOODS)
    def time_passes(self, seconds: float, moods: Sequence[Mood]) -> None:
        fails = all(mood in FAILING for mood in moods)
        before = self._memory() if fails else None
        self.house.run(self.house.wait(seconds, moods))
        if fails:
            assert self._memory() == before, "law 8: a failed summary changed something"

    def _memory(self) -> dict[str, Any]:
        """All that a failing summarizer must leave as it is: the job's and the quarantine's rows
        apart, and stand-ins, which come without it."""
        rows = self.house.dump("jobs", "quarantine")
        for name in ("chapter_versions", "gists"):
            at = [column.name for column in METADATA.tables[name].columns].index("origin")
            rows[name] = [row for row in rows[name] if row[at] != "stand-in"]
        return rows

    # -- owners -----------------------------------------------------------------------------------

    @rule(
        who=WHO,
        acts=st.lists(st.sampled_from(ACTS), min_size=1, max_size=4),
        pick=PICK,
        now=st.booleans(),
    )
    def mend(self, who: int, acts: list[tuple[str, str]], pick: int, now: bool) -> None:
        """An owner's acts on what is remembered. pick: on which of all that there are."""
        for what, act in acts:
            mend: Callable[[Mending, Connection], None] = getattr(self, f"_mend_{what}")
            client = self.clients[who]
            if client.pk is None:
                return
            conversation = self.house.conversation(client.id, client.owner)
            hand = Hand(conversation, self.house.clock.now_ms(), now)
            mending = Mending(client, hand, act, pick)
            # What the API would refuse or not find is nothing done.
            with suppress(GatewayError, Nothing):
                self.house.store.writing(partial(mend, mending))

    def _mend_chapter(self, at: Mending, connection: Connection) -> None:
        row = at.one_of(chapter_rows.all_chapters(connection, at.hand.conversation.pk))
        if at.act == "edit":
            told = self.teller.fact(at.client.tongue, at.client.life, "user").text
            memory_edits.edit_chapter(connection, at.hand, row.id, told)
        elif at.act == "delete":
            memory_edits.edit_chapter(connection, at.hand, row.id, "")
        elif at.act == "undo":
            memory_edits.undo_chapter(connection, at.hand, row.id, None)
        else:
            memory_edits.resummarize(connection, at.hand, row.id, "small")
            self.asked_again[row.pk] += 1

    def _mend_gist(self, at: Mending, connection: Connection) -> None:
        row = at.one_of(gist_rows.all_gists(connection, at.hand.conversation.pk))
        last = message_ids(connection, [row.last_pk])[row.last_pk]
        id = gist_id(at.hand.conversation.id, row.policy, last)
        if at.act == "edit":
            told = self.teller.fact(at.client.tongue, at.client.life, "user").text
            memory_edits.edit_gist(connection, at.hand, id, told)
        elif at.act == "delete":
            memory_edits.edit_gist(connection, at.hand, id, "")
        else:
            memory_edits.undo_gist(connection, at.hand, id, None, major=at.act == "major")

    def _mend_entry(self, at: Mending, connection: Connection) -> None:
        row, _ = at.one_of(ledger.all_entries(connection, at.hand.conversation.pk))
        if at.act == "edit":
            told = self.teller.fact(at.client.tongue, at.client.life, "user").text
            ledger_edits.edit_entry(connection, at.hand, row.id, {"text": told})
        elif at.act == "delete":
            ledger_edits.delete_entry(connection, at.hand, row.id)
        elif at.act == "undo":
            ledger_edits.undo_entry(connection, at.hand, row.id)
        else:
            ledger_edits.act(connection, at.hand, row.id, at.act)

    def _mend_profile(self, at: Mending, connection: Connection) -> None:
        owner_pk, now_ms, now = at.hand.conversation.owner_pk, at.hand.now_ms, at.hand.now
        life = OWN_LIFE[at.client.owner]
        words = self.teller.fact(at.client.tongue, life, "user").text
        if at.act == "add":
            fact = profile_edits.add_fact(connection, owner_pk, words, None, now_ms)
            memory_edits.announce_fact(connection, fact, now=now)
            return
        row = at.one_of(profile.active(connection, owner_pk))
        if at.act == "delete":
            memory_edits.delete_fact(connection, row, now_ms, now=now)
        elif at.act == "edit":
            row = profile_edits.edit_fact(connection, row, words, row.about, now_ms)
            memory_edits.announce_fact(connection, row, now=now)
        else:
            row = profile_edits.undo_edit(connection, row, now_ms)
            memory_edits.announce_fact(connection, row, now=now)

    def _mend_document(self, at: Mending, connection: Connection) -> None:
        name = ("plan", "map")[at.pick % 2]
        if at.act == "remove":
            row = papers.find(connection, at.hand.conversation, name)
            documents.remove_document(connection, row, at.hand.now_ms)
            return
        words = self.teller.fact(at.client.tongue, at.client.life, "user")
        told = self.teller.around(at.client.tongue, words, (30, 200, 700)[at.pick % 3])
        papers.put(connection, at.hand.conversation, name, told, at.hand.now_ms)

    def _mend_scrub(self, at: Mending, connection: Connection) -> None:
        file = self.house.ctx.policies.file
        found = scrub.judge(scrub_material.load(connection, at.hand.conversation, file))
        for finding in scrub.apply(connection, at.hand, file, found):
            if finding.chapter_pk is not None:
                self.asked_again[finding.chapter_pk] += 1

    # -- a turn -----------------------------------------------------------------------------------

    def _told(self, client: Client, size: int) -> Say:
        fact = self.teller.fact(client.tongue, client.life, "user")
        client.facts.append(fact)
        return user(self.teller.around(client.tongue, fact, size))

    def _turn(
        self, client: Client, new: Say | None, reply: int, trims: int = 0, *, retried: bool = False
    ) -> tuple[Begun, tuple[bytes, ...]]:
        """What was decided and what the model was sent. new: what is said, None: what was said last
        is asked again."""
        if new is not None:
            client.history.append(new)
        last = client.history[-1]
        sent = client.history if client.resends else [last]
        if trims and len(sent) > 2 * trims:
            sent = sent[-2 * trims - 1 :]
        fact = self.teller.fact(client.tongue, client.life, "assistant")
        said = self.teller.around(client.tongue, fact, reply)
        model = self.house.models["cloud" if client.model == "cloudy" else "local"]
        model.answers = [said]
        sends = [*client.system, *sent]
        heard = self.house.run(
            self.house.say(
                *sends, id=client.id, owner=client.owner, model=client.model, retried=retried
            )
        )
        self.house.run(self.house.ctx.indexing.settle())
        assert heard.bytes == model.seen[-1]
        begun = heard.turn.prepared.begun
        client.facts.append(fact)
        client.history.append(assistant(said))
        client.used.add(POLICY[client.model])
        client.pk = begun.conversation.pk
        self.touched.add(self.clients.index(client))
        assert begun.asked.depth == len(client.history) - 1, "the branch is the client's"
        self._check_size(begun)
        self._check_own(client, heard.bytes)
        self._check_judged(heard.bytes)
        self._check_view(begun, heard.bytes, tuple(client.system))
        return begun, heard.bytes

    def _begin_anew(self, client: Client) -> None:
        number = int(client.id.partition("-")[2]) + 1
        at = self.clients.index(client)
        self.clients[at] = Client(
            client.owner, f"c4-{number}", True, [], "foldgate", next(self.lives), client.tongue
        )

    def _erase(self, client: Client) -> None:
        """Law 10: nothing of it is left, in any table, whatever hung on it."""
        conversation = self.house.conversation(client.id, client.owner)
        said = [pk for (pk,) in self._pks(conversation.pk)]
        find: Callable[[Connection], ConversationRow] = lambda connection: conversation  # noqa: E731
        self.house.run(erase_conversation(self.house.ctx, find))
        self.deleted.add(conversation.pk)
        self.house.store.reading(_check_gone, conversation.pk, said)
        for name, rows in self.house.dump().items():
            told = dump_bytes([[str(value) for value in row] for row in rows])
            for mark in client.marks:
                assert mark not in told, f"law 10: {name} still speaks of what was deleted"

    def _pks(self, conversation_pk: int) -> list[tuple[Any, ...]]:
        return self.house.rows(
            "SELECT pk FROM messages WHERE conversation_pk = :pk", pk=conversation_pk
        )

    # -- what must hold at each turn --------------------------------------------------------------

    def _check_own(self, client: Client, heard: tuple[bytes, ...]) -> None:
        """Law 11: nothing of another owner; of other conversations of the same owner only facts of
        the profile, and of a private one nothing at all."""
        everything = b"".join(heard)
        rest = _without_profile(heard)
        for other in self.clients:
            if other.life == client.life:
                continue
            may = other.owner == client.owner and other.model != "confided"
            for mark in other.marks:
                assert mark not in (rest if may else everything), "law 11"
        for owner in {"ann", "bob"} - {client.owner}:
            for tongue in TONGUES:
                assert family(tongue, OWN_LIFE[owner]).encode() not in everything

    def _check_judged(self, heard: tuple[bytes, ...]) -> None:
        """Law 7: nothing that was judged out stands in a prompt."""
        everything = b"".join(heard).decode()
        for word in INVENTED:
            assert word not in everything
        for said in self.house.bad:
            if said.strip() and not any(_holds(row, said) for row in self._versions()):
                assert dump_bytes(said)[1:-1].decode() not in everything

    def _versions(self) -> Iterator[str]:
        """What was accepted: half of an account may be another's whole."""
        for sql in ("SELECT text FROM chapter_versions", "SELECT text FROM gists"):
            yield from (row[0] for row in self.house.rows(sql))

    def _check_view(self, begun: Begun, heard: tuple[bytes, ...], leads: tuple[Say, ...]) -> None:
        asked, policy = begun.asked, begun.setting.policy.name
        key = asked.pk, policy
        before = self.shown.get(key)
        if before is None:
            self._check_first_view(begun, heard)
            told = Shown(
                heard,
                begun.conversation.owner_pk,
                begun.conversation.pk,
                policy,
                asked,
                begun.fold,
                leads,
            )
            self.shown[key] = told
        elif not self._is_purged(before):
            assert heard == before.prompt, "law 3: a retry or swipe sees the same bytes"
        self._check_whole_past(begun, heard)

    def _check_first_view(self, begun: Begun, heard: tuple[bytes, ...]) -> None:
        asked, fold = begun.asked, begun.fold
        older = self._view_before(begun)
        if older is None:
            return
        if _pk(older.fold) == _pk(fold):
            if not self._is_purged(older):
                assert heard[: len(older.prompt)] == older.prompt, "law 4"
            return
        assert fold is not None
        assert fold.at_pk == asked.pk, "law 5: a fold comes with the message that saw it first"
        limits = begun.setting.policy.view
        assert asked.opens or fold.kind == "cut", "law 5: folds come with a user message"
        if fold.kind in ("fold", "migration"):
            assert self._size(begun, older.fold, behind=1) > limits.start, "law 5: fold late"
        if fold.kind == "cut":
            assert self._size(begun, older.fold) >= limits.ceiling
        if fold.kind == "renewal":
            assert older.fold is None or fold.border_pk == older.fold.border_pk

    def _room(self, begun: Begun) -> int:
        """What the notes of the newest message had room for, if any were looked for."""
        if begun.recalled is None:
            return 0
        policy = begun.setting.policy
        own = 0 if begun.recalled.note is None else begun.recalled.note.chars
        total, spent = self._size(begun, begun.fold) - own, begun.noted.chars - own
        return notes_room(policy.recall, limits_of(policy, begun.ratio), total=total, spent=spent)

    def _check_size(self, begun: Begun) -> None:
        """Below the ceiling, but for a newest message that cannot be folded."""
        ceiling = begun.setting.policy.view.ceiling
        if begun.news is None or begun.border == 0 or self._size(begun, begun.fold) < ceiling:
            return
        tail = self.house.store.reading(transcript.path_between, begun.asked.pk, begun.border)
        assert sum(row.opens for row in tail) <= 1, "a fold leaves less than the ceiling"

    def _size(self, begun: Begun, fold: FoldRow | None, behind: int = 0) -> int:
        """Memory, verbatim and notes on a fold, `behind` messages before the newest."""

        def read(connection: Connection) -> int:
            head = begun.asked
            if behind:
                path = transcript.path_between(connection, head.pk, head.depth - behind - 1)
                head = node_by_pk(connection, path[0].pk)
            site = site_of(begun, begun.setting, head, begun.ratio, 0)
            return measure(connection, site, fold)

        return self.house.store.reading(read)

    def _view_before(self, begun: Begun) -> Shown | None:
        """The view of the nearest ancestor that this policy showed."""
        path = self.house.store.reading(transcript.path_between, begun.asked.pk, 0)
        for row in reversed(path[:-1]):
            if (row.pk, begun.setting.policy.name) in self.shown:
                return self.shown[row.pk, begun.setting.policy.name]
        return None

    def _is_purged(self, shown: Shown) -> bool:
        """Whether a view showed what was deleted since, and is in force no more, or was of a
        conversation that was deleted, or its owner wanted it to be seen anew at once (`now`): then
        it need not be shown again (law 4, exceptions)."""
        if shown.fold is None:
            return False
        fold, named = shown.fold, shown.fold.shown

        def read(connection: Connection) -> bool:
            row = transcript.conversation_by_pk(connection, shown.owner_pk, shown.conversation_pk)
            if row is not None and is_asked_anew(fold, row.renew_after):
                return True
            facts = profile.profile_by_pk(connection, named.profile)
            texts = documents.documents_by_pk(connection, named.documents)
            return len(facts) < len(named.profile) or len(texts) < len(named.documents)

        return self.house.store.reading(read)

    def _check_whole_past(self, begun: Begun, heard: tuple[bytes, ...]) -> None:
        """Gist, chapters and tail tell every message once; the tail begins at a user message."""
        fold, head = begun.fold, begun.asked

        def spans(connection: Connection) -> list[tuple[int, int]]:
            if fold is None:
                return []
            gist = gist_rows.gist_by_pk(connection, fold.gist_pk) if fold.gist_pk else None
            told = [(1, gist.last_depth)] if gist else []
            versions = chapter_rows.versions_by_pk(connection, fold.memory)
            assert len(versions) == len(fold.memory)
            for version in versions:
                assert transcript.on_path(connection, version.last_pk, version.last_depth, head)
                told.append((version.first_depth, version.last_depth))
            return told

        told = self.house.store.reading(spans)
        depths = [depth for first, last in told for depth in range(first, last + 1)]
        depths += range(begun.border + 1, head.depth + 1)
        assert depths == list(range(1, head.depth + 1)), "every message is told once"
        tail = self.house.store.reading(transcript.path_between, head.pk, begun.border)
        assert begun.border == 0 or tail[0].opens, "law 5: borders open at user messages"
        everything = b"".join(heard)
        for row in tail:
            said = dump_bytes(loads(row.raw)["content"])[1:-1]
            assert said in everything

    # -- what must hold at any time ---------------------------------------------------------------

    @invariant()
    def rows_of_memory_never_change(self) -> None:
        """Laws 2 and 6: added to, never rewritten; a gist may be retired."""
        for name in (
            "messages",
            "chapter_versions",
            "gists",
            "folds",
            "notes",
            "ledger_entries",
            "ledger_marks",
        ):
            table = METADATA.tables[name]
            names = [column.name for column in table.columns if column.name != "retired_ms"]
            of = names.index("conversation_pk")
            now = {
                row[0]: row
                for row in self.house.rows(f"SELECT {', '.join(_quoted(names))} FROM {name}")
            }
            for pk, row in self.rows.get(name, {}).items():
                assert now.get(pk) == row or row[of] in self.deleted, f"law 6: {name} {pk}"
            self.rows[name] = now

    @invariant()
    def no_summarizer_rewrites_a_chapter(self) -> None:
        """Law 6: a model's text comes once, and once more for each time that it was asked for."""
        sql = "SELECT chapter_pk, count(*) FROM chapter_versions WHERE origin = 'model' GROUP BY 1"
        for chapter_pk, count in self.house.rows(sql):
            assert count <= 1 + self.asked_again[chapter_pk]

    @invariant()
    def nothing_unjudged_is_stored(self) -> None:
        """Law 7, at the rows: no words of a liar, no refusal, and no fact that a character told."""
        for sql in (
            "SELECT text FROM chapter_versions",
            "SELECT text FROM gists",
            "SELECT text || coalesce(about, '') || coalesce(who, '') FROM ledger_entries",
            "SELECT text || coalesce(about, '') FROM profile_facts",
        ):
            for (told,) in self.house.rows(sql):
                assert not any(word in told for word in INVENTED), told
        for (told,) in self.house.rows("SELECT text FROM chapter_versions WHERE origin = 'model'"):
            assert not is_refusal(told)
        spoken = {
            fact.token for client in self.clients for fact in client.facts if fact.role != "user"
        }
        for sql in (
            "SELECT text FROM ledger_entries WHERE kind = 'fact'",
            "SELECT text FROM profile_facts",
        ):
            for (told,) in self.house.rows(sql):
                assert not any(token in told for token in spoken), told

    @invariant()
    def the_same_rows_give_the_same_bytes(self) -> None:
        """Law 3: in a fresh context, from the rows alone."""
        known = [
            shown for shown in self.shown.values() if shown.conversation_pk not in self.deleted
        ]
        step = max(1, len(known) // 6)
        for shown in {id(one): one for one in [*known[-4:], *known[::step]]}.values():
            if not self._is_purged(shown):
                assert self.house.store.reading(self._render, shown) == shown.prompt, "law 3"

    @invariant()
    def every_fact_is_reachable(self) -> None:
        """In the view, in what its chapter, gist or ledger tell, or by recall."""
        for at in sorted(self.touched):
            client = self.clients[at]
            if client.pk is not None and client.history:
                for policy in sorted(client.used):
                    self.house.store.reading(self._check_reachable, client, policy)
        self.touched.clear()

    @invariant()
    def nothing_runs(self) -> None:
        assert set(self.house.ctx.busy.values()) <= {0}
        assert self.house.one("SELECT count(*) FROM attempts WHERE state = 'running'") == 0

    def _check_reachable(self, connection: Connection, client: Client, policy: str) -> None:
        conversation = self.house.conversation(client.id, client.owner)
        assert conversation.head_pk is not None
        head = node_by_pk(connection, conversation.head_pk)
        fold = fold_rows.deepest_fold(connection, conversation.pk, policy, head)
        rows = transcript.path_between(connection, head.pk, 0)
        told = [loads(row.raw)["content"] for row in rows]
        assert told == [said["content"] for said in client.history]
        shown = Shown((), conversation.owner_pk, conversation.pk, policy, head, fold, ())
        view = b"".join(self._render(connection, shown)).decode()
        for fact in client.facts:
            if not any(fact.token in said for said in told) or fact.token in view:
                continue
            border = fold.border_depth if fold else 0
            ask = Ask(conversation.pk, head, border, fact.text, budget=BUDGET)
            found = recall(connection, ask)
            assert any(fact.token in passage.text for passage in found), (
                f"a fact is lost: {fact.text}"
            )

    def _render(self, connection: Connection, shown: Shown) -> tuple[bytes, ...]:
        """The prompt from the rows alone, with nothing remembered."""
        fold = fold_rows.deepest_fold(connection, shown.conversation_pk, shown.policy, shown.asked)
        known = (connection, shown.owner_pk, shown.conversation_pk)
        conversation = transcript.conversation_by_pk(*known)
        assert conversation is not None
        laid = lay_tail(
            connection,
            conversation,
            shown.policy,
            fold,
            shown.asked,
            reasoning_of=None,
            kept=None,
            recall=None,
        )
        told = show_memory(connection, fold, ViewCache())
        leads = [(0, said) for said in shown.leads]
        return tuple(assemble(leads, told, laid.tail, border=fold.border_depth if fold else 0))


def _quoted(names: Sequence[str]) -> list[str]:
    return [f'"{name}"' for name in names]


def _pk(fold: FoldRow | None) -> int | None:
    return None if fold is None else fold.pk


def _holds(text: str, said: str) -> bool:
    return said in text


def _without_profile(heard: Sequence[bytes]) -> bytes:
    """A prompt without the facts that its synthetic question tells of its owner."""
    kept = []
    for message in heard:
        content = loads(message)["content"]
        before, mark, rest = content.partition("<profile>\n")
        kept.append(before + (rest.partition("</profile>")[2] if mark else ""))
    return "".join(kept).encode()


def _check_gone(connection: Connection, conversation_pk: int, said: Sequence[int]) -> None:
    """Law 10: no row of any table hangs on it, and no posting of the search index."""
    for table in METADATA.sorted_tables:
        if "conversation_pk" in table.c and table.name != "kv_outbox":
            found = connection.execute(
                table.select().where(table.c.conversation_pk == conversation_pk)
            ).first()
            assert found is None, f"law 10: {table.name}"
    for pk in said:
        found = connection.execute(
            text("SELECT 1 FROM message_search WHERE rowid >> 26 = :pk LIMIT 1"), {"pk": pk}
        ).first()
        assert found is None, "law 10: message_search"


def test_a_long_history_is_reachable_as_soon_as_it_came_in() -> None:
    """More than one commit indexes: 601 messages, hardly a chapter of which is written yet."""
    laws = LastingMemory()
    try:
        laws.move_in(["ja", "en", "ru", "ko", "zh"], 0)
        laws.bring_a_history(300, "es")
        laws.every_fact_is_reachable()
    finally:
        laws.teardown()


LastingMemory.TestCase.settings = settings(settings.default, max_examples=6, stateful_step_count=25)
TestLastingMemory = LastingMemory.TestCase
