"""What every flow works with. Built once by `app.create_app` (or a replay, or a test)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import Connection

from gateway.addresses import Resolve, resolve
from gateway.backends.base import Backend
from gateway.backends.lookups import LookupClient
from gateway.clock import Clock
from gateway.errors import NotFound
from gateway.flows.circuits import Circuits
from gateway.flows.indexing import Indexing
from gateway.flows.prefill import Prefills
from gateway.flows.prefixes import PrefixBook
from gateway.flows.sites import Offer
from gateway.flows.slots import SlotWatch
from gateway.flows.turn_queue import TurnQueue
from gateway.flows.views import ViewCache
from gateway.meters import Meters
from gateway.policy_file import LoadedPolicies
from gateway.settings import Settings
from gateway.store.engine import Store
from gateway.store.transcript import find_id
from gateway.traces import Traces
from policies.schema import Model, Policy, Tier

T = TypeVar("T")


@dataclass(slots=True)
class Context:
    """The program's parts by name.

    boot identifies this run (attempts of a boot that is over are dead). time is the one clock of
    leases, read on a connection: the database's in a program that may share it; None: `clock`.
    ring is called with a due time in milliseconds whenever a job was enqueued and committed;
    stop_work with the row number of a conversation that was deleted, to end the calls under way for
    it. busy counts the running turns of each backend: background work of the same backend waits for
    zero, which quiet tells of.
    unsettled holds attempts whose end the database refused to store. narrow holds the (backend,
    policy, window) of which the log was told that views shrink there. offers are what requests of
    this minute were offered. circuits says which backends
    are left alone for a while. meters counts what happens, traces follows it.
    lookups asks other sources for notes, indexing makes the past searchable behind the turns.
    prefixes knows the last prompts, prefills reads the next ones in ahead. slots cares for local
    servers between turns. resolve: addresses of the hosts that clients name.
    """

    settings: Settings
    clock: Clock
    store: Store
    policies: LoadedPolicies
    backends: Mapping[str, Backend]
    boot: str
    time: Callable[[Connection], int] | None = None
    ring: Callable[[int], None] = lambda due_ms: None
    quiet: Callable[[], None] = lambda: None
    stop_work: Callable[[int], None] = lambda conversation_pk: None
    resolve: Resolve = resolve
    views: ViewCache = field(default_factory=ViewCache)
    lookups: LookupClient = field(default_factory=LookupClient)
    prefixes: PrefixBook = field(default_factory=PrefixBook)
    turns: TurnQueue = field(default_factory=TurnQueue)
    busy: dict[str, int] = field(default_factory=dict)
    unsettled: set[int] = field(default_factory=set)
    narrow: set[tuple[str, str, int | None]] = field(default_factory=set)
    meters: Meters = field(default_factory=Meters)
    traces: Traces = field(default_factory=Traces)
    offers: dict[Hashable, Offer] = field(default_factory=dict)
    circuits: Circuits = field(init=False)
    prefills: Prefills = field(init=False)
    indexing: Indexing = field(init=False)
    slots: SlotWatch = field(init=False)

    def __post_init__(self) -> None:
        rules = {name: config.circuit for name, config in self.policies.file.backends.items()}
        self.circuits = Circuits(rules, self.clock.monotonic, self.meters.circuit_opened)
        for name in rules:
            self.meters.watch_circuit(name, partial(self.circuits.state, name))
            self.meters.watch_turns(name, partial(self.running, name))
        self.prefills = Prefills(
            self.store, self.backends, self.prefixes, self.clock, self.meters.prefill_ended
        )
        self.indexing = Indexing(self.store, self.clock, self._count_turns)
        self.turns.find = self._find_id
        self.store.siblings = self._count_turns
        self.slots = SlotWatch(
            self.store, self.backends, self.clock, self.forget, self.views.forget_memories
        )
        self.slots.report_to(self.meters)

    def time_of(self, connection: Connection) -> int:
        """Now, in milliseconds, by the one clock that leases go by."""
        return self.clock.now_ms() if self.time is None else self.time(connection)

    async def write_timed(self, function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """store.write(function, …, now_ms=…) with the time that leases go by."""

        def write(connection: Connection) -> T:
            return function(connection, *args, now_ms=self.time_of(connection), **kwargs)

        return await self.store.write(write)

    def forget(self, conversation_pk: int, id: str) -> None:
        """A conversation was deleted, here or by another program: nothing of it stays in memory,
        and no model reads on for it. Safe to repeat."""
        self.stop_work(conversation_pk)
        self.views.forget(conversation_pk)
        self.turns.forget(id)
        self.prefixes.forget(conversation_pk)
        self.prefills.forget(conversation_pk)
        self.indexing.forget(conversation_pk)

    def _count_turns(self) -> int:
        return sum(self.busy.values())

    async def _find_id(self, owner: str, user: str, name: str) -> str | None:
        return await self.store.read(find_id, owner, user, name)

    def policy(self, name: str) -> Policy:
        """The policy of that name in the revision now in force; KeyError if it is gone."""
        return self.policies.file.policies[name]

    def tiers(self, model: str) -> tuple[Tier, ...]:
        """The tiers of a model name or alias. Raises NotFound with the names that exist."""
        return self.model(model).tiers

    def model(self, name: str) -> Model:
        """The model of this name or alias. Raises NotFound with the names that exist."""
        found = self.policies.file.find_model(name)
        if found is None:
            known = ", ".join(sorted(self.policies.file.model_names()))
            raise NotFound(
                f"The model `{name}` does not exist here. Available: {known}.",
                code="model_not_found",
                param="model",
            )
        return found

    def running(self, backend: str) -> int:
        """How many turns a backend works for now."""
        return self.busy.get(backend, 0)

    def turn_began(self, backend: str) -> None:
        self.busy[backend] = self.busy.get(backend, 0) + 1

    def turn_ended(self, backend: str) -> None:
        self.busy[backend] -= 1
        if self.busy[backend] == 0:
            self.quiet()
