"""Moves as a law: whatever is switched, edited, asked again, lost or restarted, in any order.

No view of any backend loses a message, and the same message is never shown in two ways.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from sqlalchemy import Connection

from gateway.flows.migrate import plan_next_gist
from gateway.flows.states import sizes
from gateway.store import transcript
from gateway.store.moves import find_progress
from tests.gateway.flows.test_migrate import POLICIES, check_whole, served, waits
from tests.gateway.flows.test_migrate_costs import check_outline
from tests.gateway.house import House, Said, Say, assistant, user

T = TypeVar("T")
CEILING = {"small": 4_000, "wide": 120_000, "warm": 120_000}


class Moves(RuleBasedStateMachine):
    """One conversation between a cloud and a small local view."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.house = House(Path(self.folder.name), POLICIES)
        self.loop = asyncio.new_event_loop()
        self.words = itertools.count(1)
        self.model = "talk"
        self.history: list[Say] = []
        self.shown: dict[tuple[str, str], tuple[bytes, ...]] = {}
        self.answered = ""

    def teardown(self) -> None:
        self.loop.close()
        self.house.store.close()
        self.folder.cleanup()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    # -- what happens -----------------------------------------------------------------------------

    @initialize(turns=st.sampled_from([0, 12, 30, 60]), size=st.sampled_from([60, 150]))
    def bring_a_history(self, turns: int, size: int) -> None:
        """A conversation that began elsewhere and comes in whole, in the cloud."""
        for _ in range(turns):
            text = f"{next(self.words)} " + "ключ 鍵 llave " * (size // 14)
            self.history += [user(text), assistant(f"Yes, {text}")]
        self.history.append(user("Where were we?"))
        self.ask()

    @rule(
        backend=st.sampled_from(["local", "local", "cloud"]),
        between=st.lists(
            st.sampled_from(["talk", "chapters", "stand-ins", "gists", "swipe", "edit", "restart"]),
            max_size=6,
        ),
    )
    def move(self, backend: str, between: list[str]) -> None:
        """Sent to a backend that is there, while the old one is there too."""
        self.model = "talk" if self.model == "here" else self.model
        for model in self.house.models.values():
            model.healthy = True
        self.send(backend)
        self.talk(1, 200, False)
        for what in between:
            if what == "talk":
                self.talk(2, 200, False)
            elif what in ("chapters", "stand-ins"):
                self.chapters_come(2, "model" if what == "chapters" else "stand-in")
            elif what == "gists":
                self.gists_come()
            elif what == "swipe":
                self.swipe()
            elif what == "edit":
                self.edit(0.8)
            else:
                self.restart()
        for _ in range(12):
            if self.answered == backend:
                return
            self.chapters_come(1, "model")
            self.gists_come()
            self.talk(1, 60, False)
        raise AssertionError("it never arrived")

    @rule(count=st.integers(1, 12), size=st.sampled_from([30, 200, 350]), upkeep=st.booleans())
    def talk(self, count: int, size: int, upkeep: bool) -> None:
        for _ in range(count):
            self.history.append(user(f"{next(self.words)} " + "ключ 鍵 llave " * (size // 14)))
            self.ask()
            if upkeep:
                self.chapters_come(1, "model")

    # The cloud's own view folds from 100,000 on, in chapters of another size: no matter of a move.
    @precondition(lambda self: sum(len(str(said["content"])) for said in self.history) < 60_000)
    @rule(size=st.sampled_from([1_600, 4_500, 20_000]))
    def say_much(self, size: int) -> None:
        self.history.append(user(f"{next(self.words)} " + "巨" * size))
        self.ask()

    @precondition(lambda self: self.history)
    @rule()
    def swipe(self) -> None:
        self.history.pop()
        self.ask()

    @precondition(lambda self: len(self.history) > 3)
    @rule(share=st.floats(0, 0.99))
    def edit(self, share: float) -> None:
        at = 2 * int(share * len(self.history) / 2)
        # The first reply must stay: a conversation is known by its id here, but so it begins anew.
        self.history = self.history[: max(2, at)]
        self.history.append(user(f"{next(self.words)} otherwise"))
        self.ask()

    @precondition(lambda self: self.history)
    @rule(backend=st.sampled_from(["local", "local", "cloud", None]))
    def send(self, backend: str | None) -> None:
        pk = self.house.conversation("c").pk
        self.house.store.writing(transcript.route_conversation, pk, backend)

    @rule(model=st.sampled_from(["talk", "talk", "warmed", "here"]))
    def name_a_model(self, model: str) -> None:
        self.model = model

    @rule(name=st.sampled_from(["local", "cloud"]))
    def a_backend_goes_or_comes_back(self, name: str) -> None:
        model = self.house.models[name]
        model.healthy = not model.healthy

    @rule(share=st.integers(1, 3), origin=st.sampled_from(["model", "model", "stand-in"]))
    def chapters_come(self, share: int, origin: str) -> None:
        for chapter, conversation, _ in self.house.pending()[::share]:
            self.house.write(chapter, conversation, origin=origin)
            self._look_ahead()

    @rule()
    def gists_come(self) -> None:
        self.house.write_gists()
        self._look_ahead()

    def _look_ahead(self) -> None:
        if not self.history:
            return
        pk, policy = self.house.conversation("c").pk, self.house.ctx.policy("small")
        told = {"ahead": "small"}
        self.house.store.writing(plan_next_gist, pk, policy, told, self.house.clock.ms)

    @rule()
    def work_is_given_up(self) -> None:
        def park(connection: Connection) -> None:
            connection.exec_driver_sql("UPDATE jobs SET state = 'parked' WHERE state = 'queued'")

        self.house.store.writing(park)

    @rule()
    def restart(self) -> None:
        self.house.restart()

    # -- what must hold ---------------------------------------------------------------------------

    def ask(self) -> None:
        said = self.run(self.house.say(*self.history, id="c", model=self.model))
        self.history.append(assistant(said.text))
        check_whole(self.house, said)
        self._check_size(said)
        self._check_same(said)
        self._check_wait(said)
        self.answered = served(said)[0]

    def _check_size(self, said: Said) -> None:
        """Below the ceiling, but for a newest message that alone is too large."""
        begun = said.turn.prepared.begun
        asked, policy = begun.asked, begun.setting.policy.name
        total = sum(sizes(begun.fold, asked))
        tail = self.house.store.reading(transcript.path_between, asked.pk, begun.border)
        assert total < CEILING[policy] or begun.border == 0 or len(tail) == 1 or begun.news is None
        if total >= CEILING[policy]:
            assert asked.chars > 500 or begun.news is None

    def _check_same(self, said: Said) -> None:
        """A message asked again under the same policy is shown as before."""
        begun = said.turn.prepared.begun
        key = begun.asked.id, begun.setting.policy.name
        assert self.shown.setdefault(key, said.bytes) == said.bytes

    def _check_wait(self, said: Said) -> None:
        """Who waits stays where it was, for something that is being made, whole and untouched."""
        backend, why, view = served(said)
        if why != "migrating":
            return
        assert backend == self.answered
        assert view != "cut"
        ready, total = map(int, (waits(said) or "").split("/"))
        assert 0 <= ready < total
        found = self.house.store.reading(find_progress, self.house.conversation("c"))
        assert found is not None and found.total >= total

    @invariant()
    def spans_are_small_and_follow_one_another(self) -> None:
        rows = self.house.rows(
            "SELECT c.first_depth, c.last_depth, c.source_chars, m.cum_chars, f.cum_chars - f.chars"
            " FROM chapters c JOIN messages m ON m.pk = c.last_pk"
            " JOIN messages f ON f.pk = c.first_pk"
        )
        for first, last, chars, end, begin in rows:
            assert chars == end - begin
            assert chars <= 1_500 or first == last

    @precondition(lambda self: self.history)
    @invariant()
    def an_outline_plans_what_the_whole_view_does(self) -> None:
        self.house.store.reading(check_outline, self.house)

    @invariant()
    def nothing_runs(self) -> None:
        assert set(self.house.ctx.busy.values()) <= {0}


Moves.TestCase.settings = settings(settings.default, max_examples=15, stateful_step_count=30)
TestMoves = Moves.TestCase
