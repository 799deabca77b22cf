"""The design's laws as properties: clients of several habits talk, swipe, edit, fail and leave,
while chapters, stand-ins and gists become ready at any moment and the program restarts."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sqlalchemy import Connection, text

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.folds import foresee_fold
from gateway.flows.memories import show_memory
from gateway.flows.notes import read_notes, spent_chars, tail_messages
from gateway.flows.showings import Foreseen
from gateway.flows.states import sizes
from gateway.flows.turn import Turn
from gateway.flows.turn_rows import Begun, site_of
from gateway.flows.views import ViewCache
from gateway.prompts.notes import own_words
from gateway.prompts.view import Tail, assemble
from gateway.store import chapter_rows, fold_rows, gist_rows, transcript
from gateway.store.fold_rows import FoldRow
from gateway.store.transcript import ConversationRow, Node, node_by_pk
from gateway.wire.json_text import dump_bytes, loads
from tests.gateway.house import (
    House,
    Say,
    assistant,
    call_of,
    delta,
    deltas,
    system,
    tool,
    user,
)

T = TypeVar("T")
START, CEILING = 2_400, 3_200
SHOWN_ANEW = 1_700
"""Characters that a memory costs here at most: fixed words, documents, all shares."""
POLICIES = """
version: 1
backends:
  local: {kind: scripted}
policies:
  small:
    view: {start: 2400, ceiling: 3200, headroom: 900, keep: 300}
    chapters: {split: 900, length: 60, stack: 150}
    gist: {length: 100}
    recall: {budget: 0}
models:
  foldgate: {tiers: [{backend: local, policy: small}]}
"""
RECALLING = POLICIES.replace("budget: 0", "budget: 330").replace("headroom: 900", "headroom: 1200")


@dataclass
class Client:
    """A person's chat window. resends: it sends its history, else only what is new, under its id.
    history: what it believes was said on the branch it shows."""

    mark: str
    owner: str
    id: str | None
    resends: bool
    system: list[Say]
    history: list[Say] = field(default_factory=list)
    conversation: str | None = None


@dataclass(frozen=True)
class Shown:
    """What a message was shown as when it was first asked."""

    prompt: tuple[bytes, ...]
    conversation_pk: int
    asked: Node
    fold: int | None
    cut: bool


class Laws(RuleBasedStateMachine):
    """One database, three clients of two owners."""

    policies = POLICIES

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.house = House(Path(self.folder.name), self.policies)
        self.loop = asyncio.new_event_loop()
        self.words = itertools.count(1)
        self.shown: dict[str, Shown] = {}
        self.known: dict[str, str] = {}
        self.folds: dict[int, tuple[Any, ...]] = {}
        self.versions: dict[int, str] = {}

    def teardown(self) -> None:
        if left := asyncio.all_tasks(self.loop):  # indexing behind the turns
            self.run(_wait_for(left))
        self.loop.close()
        self.house.store.close()
        self.folder.cleanup()

    @initialize()
    def move_in(self) -> None:
        self.clients = [
            Client("ANN-ONE", "ann", "c1", False, []),
            Client("ANN-TWO", "ann", None, True, [system("You are kind. ANN-TWO")]),
            Client("BOB-ONE", "bob", "c1", True, []),
        ]

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    # -- what people do -------------------------------------------------------------------------

    @rule(
        who=st.integers(0, 2),
        size=st.integers(1, 700),
        ending=st.sampled_from(["whole"] * 6 + ["partial", "nothing", "leaves", "calls"]),
        reply=st.integers(1, 400),
    )
    def say(self, who: int, size: int, ending: str, reply: int) -> None:
        client = self.clients[who]
        number = next(self.words)
        new = user(f"{client.mark} {number} thing{number} " + "ab " * (size // 3))
        self._turn(client, [new], ending, reply)

    @rule(
        who=st.integers(0, 2),
        count=st.integers(3, 12),
        size=st.integers(1, 400),
        upkeep=st.sampled_from(["none", "chapters", "all"]),
    )
    def talk_on(self, who: int, count: int, size: int, upkeep: str) -> None:
        for _ in range(count):
            self.say(who, size, "whole", 150)
            if upkeep != "none":
                self.house.write_chapters()
            if upkeep == "all":
                self.house.write_gists()

    @rule(
        who=st.integers(0, 2),
        between=st.sampled_from(["swipe", "tools", "nothing", "successors"]),
    )
    def talk_until_it_folds(self, who: int, between: str) -> None:
        """Up to the debt of chapters, something while they become ready, and on."""
        folds = len(self.house.folds())
        for _ in range(20):
            if self.house.pending():
                break
            self.say(who, 200, "whole", 150)
        self.say(who, 60, "whole", 60)
        self.house.write_chapters()
        if between == "swipe" and who > 0:
            self.swipe(who, 1, True)
        if between == "tools":
            self.say(who, 90, "calls", 60)
        if between == "successors":
            self.stand_ins_get_successors()
        for _ in range(8):
            if len(self.house.folds()) > folds:
                break
            self.say(who, 200, "whole", 150)
        self.house.write_gists()

    @rule(who=st.integers(1, 2), times=st.integers(1, 2), upkeep=st.booleans())
    def swipe(self, who: int, times: int, upkeep: bool) -> None:
        client = self.clients[who]
        if upkeep:
            self.house.write_chapters()
        for _ in range(times):
            while client.history and client.history[-1]["role"] == "assistant":
                client.history.pop()
            if client.history:
                self._turn(client, [], "whole", 60)

    @rule(who=st.integers(1, 2), data=st.data(), size=st.integers(1, 500))
    def edit(self, who: int, data: st.DataObject, size: int) -> None:
        client = self.clients[who]
        places = [at for at, said in enumerate(client.history) if said["role"] == "user"]
        places = [at for at in places if at > 0]
        if places:
            at = data.draw(st.sampled_from(places))
            del client.history[at:]
            self.say(who, size, "whole", 60)

    @rule(who=st.integers(0, 2))
    def repeat_after_a_fault(self, who: int) -> None:
        """The same request again, as an SDK does."""
        client = self.clients[who]
        if client.history and client.history[-1]["role"] == "user":
            last = client.history.pop()
            self._turn(client, [last], "whole", 50, retried=True)

    def _turn(
        self, client: Client, new: list[Say], ending: str, reply: int, *, retried: bool = False
    ) -> None:
        client.history += new
        sent = client.history if client.resends else new
        text = f"{client.mark} reply {next(self.words)} " + "cd " * (reply // 3)
        model = self.house.local
        model.answers = [_answer(text, ending)]
        model.opens = lambda: self._look_during_call(client)
        sends = [*client.system, *sent]
        turn, said = self.run(self._ask(client, sends, ending, retried))
        model.opens = lambda: None
        heard = turn.prepared.call.messages
        assert heard == model.seen[-1]
        self._check_own(client, heard)
        self._check_view(turn.prepared.begun, heard)
        client.conversation = turn.prepared.begun.conversation.id
        if said is None:
            return  # some clients keep the half they saw; these forget it
        assert said == text
        client.history.append(assistant(text) if ending == "whole" else _calls(text))
        if ending == "calls":
            self._turn(client, [tool("t1", f"{client.mark} result")], "whole", 40)

    async def _ask(
        self, client: Client, sends: list[Say], ending: str, retried: bool
    ) -> tuple[Turn, str | None]:
        """The turn, and what was heard where it came to its end."""
        turn = await self.house.open(*sends, id=client.id, owner=client.owner, retried=retried)
        self._check_foreseen(turn)
        if ending == "leaves":
            stream = turn.stream()
            await anext(stream)
            await anext(stream)
            await stream.aclose()
            return turn, None
        try:
            return turn, (await self.house.relay(turn)).text
        except UpstreamFault:
            return turn, None

    @rule(share=st.integers(1, 3), origin=st.sampled_from(["model", "model", "stand-in"]))
    def chapters_become_ready(self, share: int, origin: str) -> None:
        for chapter, conversation, _ in self.house.pending()[::share]:
            self.house.write(chapter, conversation, origin=origin)

    @rule()
    def stand_ins_get_successors(self) -> None:
        rows = self.house.rows(
            "SELECT chapter_pk, conversation_pk FROM chapter_versions WHERE origin = 'stand-in'"
        )
        for chapter, conversation in rows[-2:]:
            self.house.write(chapter, conversation, f"What really happened in {chapter}.")

    @rule()
    def gists_become_ready(self) -> None:
        self.house.write_gists()

    @rule()
    def restart(self) -> None:
        self.house.restart()

    @rule(who=st.integers(0, 2), number=st.integers(1, 60), upkeep=st.booleans())
    def ask_about_the_past(self, who: int, number: int, upkeep: bool) -> None:
        client = self.clients[who]
        question = f"{client.mark} {next(self.words)} what of thing{number}?"
        self._turn(client, [user(question)], "whole", 60)
        if upkeep:
            self.house.write_chapters()

    # -- what must hold -------------------------------------------------------------------------

    def _look_during_call(self, client: Client) -> None:
        """Law 1: what is asked is committed before the upstream has said anything."""
        asked, state = self.house.rows(
            "SELECT m.raw, a.state FROM attempts a JOIN messages m ON m.pk = a.asked_pk"
            " ORDER BY a.pk DESC LIMIT 1"
        )[0]
        assert loads(asked) == client.history[-1]
        assert state == "running"

    def _check_own(self, client: Client, heard: tuple[bytes, ...]) -> None:
        """Law 11: nothing of another owner's, nor of another chat of the same owner."""
        everything = b"".join(heard)
        for other in self.clients:
            if other is not client:
                assert other.mark.encode() not in everything

    def _check_view(self, begun: Begun, heard: tuple[bytes, ...]) -> None:
        asked, fold = begun.asked, begun.fold
        before = self.shown.get(asked.id)
        if before is None:
            self._check_first_view(begun, heard)
        elif self._is_whole(before.fold):
            assert heard == before.prompt, "law 3: a retry or swipe sees the same bytes"
        self.shown.setdefault(
            asked.id,
            Shown(
                heard,
                begun.conversation.pk,
                asked,
                fold.pk if fold else None,
                begun.is_cut,
            ),
        )
        self._check_whole_past(begun, heard)

    def _check_first_view(self, begun: Begun, heard: tuple[bytes, ...]) -> None:
        asked, fold = begun.asked, begun.fold
        older = self._view_before(asked)
        total = self._total(fold, asked)
        assert total == sum(sizes(fold, asked)) + begun.noted.chars
        assert total < CEILING or begun.border == 0 or self._only_newest_is_left(asked, fold)
        if older is None:
            return
        if older.fold == (fold.pk if fold else None):
            # Law 4: byte for byte the prompt before, then what is new.
            if self._is_whole(older.fold):
                assert heard[: len(older.prompt)] == older.prompt
            return
        assert fold is not None
        # Law 5: one fold, at this message, at a user message; not on the turn that crossed.
        assert fold.at_pk == asked.pk
        assert asked.opens or fold.kind == "cut"
        if fold.kind in ("opening", "renewal"):
            before = self._fold(older.fold)
            assert fold.border_pk == (before.border_pk if before else 0)
        elif fold.kind == "fold":
            old = self._fold(older.fold)
            assert self._total(old, asked) - self._newest_chars(asked) > START
        else:
            assert self._total(self._fold(older.fold), asked) >= CEILING

    def _check_foreseen(self, turn: Turn) -> None:
        """A fold was known before its message came, and one that was known comes; but for a message
        that brings the view to the ceiling: that takes what is ready at once."""
        begun, setting = turn.prepared.begun, turn.prepared.setting
        asked, fold = begun.asked, begun.fold
        if asked.id in self.shown or not asked.opens or asked.depth == 1 or begun.is_cut:
            return

        def foresee(connection: Connection) -> tuple[Foreseen | None, int]:
            head = transcript.path_between(connection, asked.pk, asked.depth - 2)[0]
            site = site_of(begun, setting, node_by_pk(connection, head.pk), begun.ratio, 0)
            before = fold_rows.deepest_fold(connection, begun.conversation.pk, "small", site.head)
            return foresee_fold(connection, site, before), _total(connection, before, asked)

        foreseen, total = self.house.store.reading(foresee)
        if fold is not None and fold.at_pk == asked.pk:
            if fold.kind == "opening" or (total >= CEILING and self._is_renewal(foreseen, asked)):
                return
            assert foreseen == Foreseen.of(fold)
        elif foreseen is not None:
            # what is shown anew waits where the newest message leaves no room for it
            assert self._is_renewal(foreseen, asked) and total + SHOWN_ANEW >= CEILING

    def _is_renewal(self, foreseen: Foreseen | None, asked: Node) -> bool:
        """Whether no step of the border was foreseen."""
        older = self._view_before(asked)
        fold = self._fold(older.fold) if older else None
        border = fold.border_depth if fold else 0
        return foreseen is None or foreseen.border_depth == border

    def _is_whole(self, fold: int | None) -> bool:
        """Whether nothing that a fold shows was deleted since, which acts at once (law 4)."""
        return True

    def _view_before(self, asked: Node) -> Shown | None:
        """The view of the nearest ancestor that was asked."""
        path = self.house.store.reading(transcript.path_between, asked.pk, 0)
        for row in reversed(path[:-1]):
            if row.id in self.shown:
                return self.shown[row.id]
        return None

    def _total(self, fold: FoldRow | None, asked: Node) -> int:
        return self.house.store.reading(_total, fold, asked)

    def _fold(self, pk: int | None) -> FoldRow | None:
        return None if pk is None else self.house.store.reading(fold_rows.fold_by_pk, pk)

    def _newest_chars(self, asked: Node) -> int:
        """The newest user message and what follows it."""
        path = self.house.store.reading(transcript.path_between, asked.pk, 0)
        opens = [row for row in path if row.opens]
        return path[-1].cum_chars - (opens[-1].cum_chars - opens[-1].chars)

    def _only_newest_is_left(self, asked: Node, fold: FoldRow | None) -> bool:
        border = fold.border_depth if fold else 0
        path = self.house.store.reading(transcript.path_between, asked.pk, border)
        return sum(row.opens for row in path) <= 1

    def _check_whole_past(self, begun: Begun, heard: tuple[bytes, ...]) -> None:
        """Law 6: gist, chapters and tail tell every message once; the tail begins with a user's."""
        fold = begun.fold

        def spans(connection: Connection) -> list[tuple[int, int]]:
            if fold is None:
                return []
            gist = gist_rows.gist_by_pk(connection, fold.gist_pk) if fold.gist_pk else None
            told = [(1, gist.last_depth)] if gist else []
            versions = chapter_rows.versions_by_pk(connection, fold.memory)
            assert len(versions) == len(fold.memory)
            for version in versions:
                head = begun.asked
                assert transcript.on_path(connection, version.last_pk, version.last_depth, head)
                told.append((version.first_depth, version.last_depth))
            return told

        told = self.house.store.reading(spans)
        depths = [depth for first, last in told for depth in range(first, last + 1)]
        depths += range(begun.border + 1, begun.asked.depth + 1)
        assert depths == list(range(1, begun.asked.depth + 1))
        tail = self.house.store.reading(transcript.path_between, begun.asked.pk, begun.border)
        assert begun.border == 0 or tail[0].opens
        shown = [dump_bytes(_without_notes(loads(message))) for message in heard]
        for row in tail:
            assert dump_bytes(loads(row.raw)) in shown or loads(row.raw)["content"] == ""

    @invariant()
    def the_transcript_only_grows(self) -> None:
        """Law 2."""
        now = dict(self.house.rows("SELECT id, raw FROM messages"))
        for id, raw in self.known.items():
            assert now.get(id) == raw
        self.known = now  # type: ignore[assignment]

    @invariant()
    def memory_is_never_rewritten(self) -> None:
        """Law 6: rows of folds and versions stay; along a path a memory extends, a gist apart."""
        versions = dict(self.house.rows("SELECT pk, text FROM chapter_versions"))
        for pk, told in self.versions.items():
            assert versions[pk] == told
        self.versions = versions  # type: ignore[assignment]
        folds = {row[0]: row for row in self.house.rows("SELECT * FROM folds")}
        for pk, row in self.folds.items():
            assert folds[pk] == row
        self.folds = folds

    @invariant()
    def the_same_rows_give_the_same_bytes(self) -> None:
        """Law 3: in a fresh context, from the rows alone."""
        for shown in filter(lambda one: self._is_whole(one.fold), list(self.shown.values())[-3:]):
            assert self.house.store.reading(_render, shown, self._system_of(shown)) == shown.prompt

    def _system_of(self, shown: Shown) -> list[tuple[int, Say]]:
        owner = self.house.one(
            "SELECT o.name FROM conversations c JOIN owners o ON o.pk = c.owner_pk"
            " WHERE c.pk = :pk",
            pk=shown.conversation_pk,
        )
        texts = [client.system for client in self.clients if client.owner == owner]
        leads = b"You are kind" in shown.prompt[0]
        return [(0, said) for said in itertools.chain(*texts)] if leads else []

    @invariant()
    def attempts_are_accounted_for(self) -> None:
        """Law 9 and 1: no attempt is left running, every cut is counted where it happened."""
        assert self.house.one("SELECT count(*) FROM attempts WHERE state = 'running'") == 0
        wrong = self.house.one(
            "SELECT count(*) FROM attempts a JOIN folds f ON f.pk = a.fold_pk"
            " WHERE f.kind = 'cut' AND f.at_pk = a.asked_pk AND a.view_kind != 'cut'"
        )
        assert wrong == 0

    @invariant()
    def nothing_runs(self) -> None:
        assert set(self.house.ctx.busy.values()) <= {0}


def _answer(text: str, ending: str) -> Any:
    if ending == "nothing":
        return UpstreamFault(FaultKind.REFUSED, "it will not")
    if ending == "calls":
        said = {"content": text, "tool_calls": [{**call_of("t1"), "index": 0}]}
        return [delta(said), delta({}, "tool_calls")]
    pieces = deltas(text)
    if ending == "partial":
        broken = UpstreamFault(FaultKind.INTERRUPTED, "it broke off", partial=True)
        return [*pieces[:3], broken]
    return pieces


def _calls(text: str) -> Say:
    return assistant(text, tool_calls=[call_of("t1")])


async def _wait_for(tasks: set[asyncio.Task[Any]]) -> None:
    await asyncio.gather(*tasks)


def _without_notes(message: Say) -> Say:
    content = message.get("content")
    return {**message, "content": own_words(content)} if isinstance(content, str) else message


def _conversation(connection: Connection, pk: int) -> ConversationRow:
    owner = text("SELECT owner_pk FROM conversations WHERE pk = :pk")
    owner_pk = connection.execute(owner, {"pk": pk}).scalar_one()
    found = transcript.conversation_by_pk(connection, owner_pk, pk)
    assert found is not None
    return found


def _total(connection: Connection, fold: FoldRow | None, asked: Node) -> int:
    """Memory, verbatim and notes."""
    (conversation_pk,) = connection.execute(
        text("SELECT conversation_pk FROM messages WHERE pk = :pk"), {"pk": asked.pk}
    ).one()
    conversation = _conversation(connection, conversation_pk)
    spent = spent_chars(connection, conversation, "small", fold, asked)
    return sum(sizes(fold, asked)) + spent


def _render(connection: Connection, shown: Shown, leads: list[tuple[int, Say]]) -> Any:
    """The prompt from the rows alone, with nothing remembered."""
    fold = fold_rows.deepest_fold(connection, shown.conversation_pk, "small", shown.asked)
    border = fold.border_depth if fold else 0
    tail = Tail()
    rows = transcript.path_between(connection, shown.asked.pk, border)
    path = {row.pk for row in rows}
    conversation = _conversation(connection, shown.conversation_pk)
    found = read_notes(connection, conversation, "small", fold, path)
    for message in tail_messages(rows, found):
        tail.add(message)
    told = show_memory(connection, fold, ViewCache())
    return assemble(leads, told, tail, border=border)


Laws.TestCase.settings = settings(settings.default, max_examples=8, stateful_step_count=30)
TestLaws = Laws.TestCase


class LawsOfRecall(Laws):
    """The same with notes; of what stands between two folds they may be 400 characters."""

    policies = RECALLING

    def teardown(self) -> None:
        noted = self.house.rows("SELECT fold_pk, asked_pk, chars FROM notes")
        assert all(chars <= 330 for _, _, chars in noted)
        super().teardown()


LawsOfRecall.TestCase.settings = settings(settings.default, max_examples=8, stateful_step_count=30)
TestLawsOfRecall = LawsOfRecall.TestCase


def test_the_laws_of_recall_see_notes() -> None:
    """The words of the machine are recalled: its laws are not held by silence."""
    machine = LawsOfRecall()
    machine.move_in()
    machine.talk_until_it_folds(2, "nothing")
    machine.ask_about_the_past(2, 1, False)
    assert machine.house.one("SELECT count(*) FROM notes") == 1
    machine.ask_about_the_past(2, 2, False)
    machine.teardown()
