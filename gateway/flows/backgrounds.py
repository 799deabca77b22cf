"""What stands in a memory beside gist and chapters: chosen when a fold is written, read by its row.

Documents, then the owner's profile, then of the ledger what is pinned, the open threads and those
closed last; each within its budget, whole or not at all. Pins share the room that documents leave,
and what they need beyond it threads give them. What is chosen stays as it is until the
next fold, whatever becomes of it meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from sqlalchemy import Connection

from gateway.flows.unfit import fit_entries, is_unfit_fact
from gateway.prompts.memory import (
    LEDGER_COST,
    NOTHING,
    Background,
    DocumentText,
    PinnedText,
    ThreadText,
    profile_cost,
)
from gateway.store import documents, ledger, profile
from gateway.store.documents import DocumentRow
from gateway.store.fold_rows import NONE, Shown
from gateway.store.ledger import Threads
from gateway.store.ledger_rows import EntryRow
from gateway.store.profile import ProfileRow
from gateway.store.profile_paths import on_branches
from gateway.store.shown import private_among
from gateway.store.transcript import Node
from policies.schema import Policy
from policies.values import Limits

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Place:
    """Whose memory it is: an owner's conversation at a head, under a policy with its limits."""

    owner_pk: int
    conversation_pk: int
    policy: Policy
    limits: Limits
    head: Node


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen rows, and their texts."""

    shown: Shown = NONE
    background: Background = NOTHING


def choose_background(
    connection: Connection, place: Place, *, border: int, covered: int = 0
) -> Choice:
    """What a fold to the depth `border` shows beside its gist, which covers all up to `covered`.

    Of the open threads those that the gist covers come first, because no chapter tells them any
    more; of each half the newest.
    """
    texts = _choose_documents(connection, place)
    facts = _choose_profile(connection, place)
    room = _LedgerRoom.beside(place.limits, texts)
    pins, opened, closed = _choose_entries(connection, place, room, border, covered)
    shown = Shown(
        profile=_pks(facts),
        documents=_pks(texts),
        pins=_pks(pins),
        open=_pks(opened),
        closed=_pks(closed),
    )
    return Choice(shown, _background(texts, facts, pins, opened, closed)) if shown else Choice()


def background_cost(connection: Connection, place: Place) -> int:
    """Characters that the background of a coming fold costs at most, wherever its border is."""
    texts = _choose_documents(connection, place)
    facts = _choose_profile(connection, place)
    stable = _background(texts, facts, (), (), ()).cost
    return stable + _most_of_ledger(connection, place, _LedgerRoom.beside(place.limits, texts))


@dataclass(frozen=True, slots=True)
class PinRoom:
    """What a view has for pins: so many characters, the pins in the order in which they get them,
    and those of them that get none. documents: what these take of the room that is theirs too."""

    chars: int
    pins: Sequence[EntryRow]
    left_out: Sequence[EntryRow]
    documents: int

    @property
    def taken(self) -> int:
        """Characters of all pins, those among them that are left out."""
        return sum(map(pin_cost, self.pins))


def read_pin_room(connection: Connection, place: Place) -> PinRoom:
    """The room for pins of a view at its head, once nothing that is pinned stands there itself."""
    texts = _choose_documents(connection, place)
    room = _LedgerRoom.beside(place.limits, texts)
    told = ledger.pinned(
        connection, place.conversation_pk, place.head, up_to_depth=place.head.depth
    )
    fitting = {row.pk for row in _fit(told, pin_cost, room.pins)[0]}
    left_out = [row for row in told if row.pk not in fitting]
    return PinRoom(room.pins, told, left_out, place.limits.documents - room.left)


def pin_cost(row: EntryRow) -> int:
    """Characters that an entry takes where it is pinned."""
    return _pinned(row).cost


@dataclass(frozen=True, slots=True)
class _LedgerRoom:
    """Characters for pins and threads. left: what documents leave, for pins; own: the ledger's,
    for threads and pins; most: for pins alone."""

    left: int
    own: int
    most: int

    @classmethod
    def beside(cls, limits: Limits, texts: Sequence[DocumentRow]) -> _LedgerRoom:
        left = limits.documents - sum(map(_document_cost, texts))
        return cls(left, limits.ledger, limits.pins)

    @property
    def pins(self) -> int:
        return min(self.most, self.left + self.own)

    def threads(self, pinned: int) -> int:
        """What pins of so many characters leave."""
        return min(self.own, self.left + self.own - pinned)


def read_background(connection: Connection, shown: Shown, conversation_pk: int) -> Background:
    """The texts of what a fold of this conversation shows. Left out is what of its text is gone,
    what is a refusal after all, and what was learned in another conversation that is private by
    now. What its owner deleted or changed with `now` is left out of `shown` before
    (`renewed.as_changed`); without, it waits for the next fold."""
    if not shown:
        return NOTHING
    return _background(
        documents.documents_by_pk(connection, shown.documents),
        _read_facts(connection, shown.profile, conversation_pk),
        *_read_entries(connection, (shown.pins, shown.open, shown.closed)),
    )


def _read_facts(
    connection: Connection, pks: Sequence[int], conversation_pk: int
) -> list[ProfileRow]:
    rows = profile.profile_by_pk(connection, pks)
    learned = {row.conversation_pk for row in rows if row.conversation_pk is not None}
    private = private_among(connection, learned - {conversation_pk})
    return [
        row
        for row in rows
        if row.conversation_pk not in private and not is_unfit_fact(connection, row)
    ]


def _read_entries(
    connection: Connection, groups: Sequence[Sequence[int]]
) -> Iterator[list[EntryRow]]:
    for pks in groups:
        yield fit_entries(connection, ledger.entries_by_pk(connection, pks))


def _background(
    texts: Sequence[DocumentRow],
    facts: Sequence[ProfileRow],
    pins: Sequence[EntryRow],
    opened: Sequence[EntryRow],
    closed: Sequence[EntryRow],
) -> Background:
    return Background(
        documents=[DocumentText(row.name, row.text) for row in texts],
        profile=[row.text for row in facts],
        pinned=list(map(_pinned, pins)),
        open=list(map(_thread, opened)),
        closed=list(map(_thread, closed)),
    )


def _pinned(row: EntryRow) -> PinnedText:
    return PinnedText(row.kind, row.text, row.who)


def _stands_itself(row: EntryRow, covered: int) -> bool:
    """Whether a chapter or gist that its owner pinned is shown as what it is: the one behind the
    gist, the other as the gist."""
    if row.kind != "note" or row.origin != "owner":
        return False
    if row.gist_pk is not None:
        return row.last_depth == covered
    return row.chapter_pk is not None and row.last_depth > covered


def _thread(row: EntryRow) -> ThreadText:
    return ThreadText(row.number or 0, row.text)


def _choose_documents(connection: Connection, place: Place) -> list[DocumentRow]:
    rows = documents.for_view(connection, place.conversation_pk, place.policy.name)
    chosen, _ = _fit(rows, _document_cost, place.limits.documents)
    return chosen


def _document_cost(row: DocumentRow) -> int:
    return DocumentText(row.name, row.text).cost


def _choose_profile(connection: Connection, place: Place) -> list[ProfileRow]:
    """In the order in which they were told, so that a new one moves nothing before it; without what
    was told on a branch that is left."""
    if not place.limits.profile:
        return []
    rows = profile.active(connection, place.owner_pk, conversation_pk=place.conversation_pk)
    rows = on_branches(connection, rows, place.conversation_pk, place.head)
    chosen, _ = _fit(rows, lambda row: profile_cost(row.text), place.limits.profile)
    return sorted(chosen, key=lambda row: row.pk)


def _choose_entries(
    connection: Connection,
    place: Place,
    room: _LedgerRoom,
    border: int,
    covered: int,
    known: Threads | None = None,
) -> tuple[list[EntryRow], list[EntryRow], list[EntryRow]]:
    """(pinned, open, closed last), each in its order of time. known: the threads at the border,
    where they were read."""
    if not _has_ledger(connection, place, room):
        return [], [], []
    where = (connection, place.conversation_pk, place.head)
    told = ledger.pinned(*where, up_to_depth=border)
    told = [row for row in told if not _stands_itself(row, covered)]
    pins, left = _fit(told, pin_cost, room.pins)
    left = room.threads(room.pins - left)
    held = {row.pk for row in pins}
    threads = known or ledger.read_threads(*where, up_to_depth=border)
    waiting = [row for row in threads.open if row.pk not in held]
    waiting.sort(key=lambda row: (row.last_depth > covered, -row.last_depth, -row.pk))
    opened, left = _fit(waiting, lambda row: _thread(row).cost, left)
    ended = threads.closed[: place.policy.ledger.closed]
    closed, _ = _fit(ended, lambda row: _thread(row).cost, left)
    return pins, sorted(opened, key=_number), sorted(closed, key=_number)


def _has_ledger(connection: Connection, place: Place, room: _LedgerRoom) -> bool:
    """Whether there is room for entries, and any that might be shown."""
    return bool(room.own or room.pins) and ledger.has_entries(connection, place.conversation_pk)


def _most_of_ledger(connection: Connection, place: Place, room: _LedgerRoom) -> int:
    """What pins and threads cost at most: all that there are, within the budget, and the words
    that stand above them."""
    if not _has_ledger(connection, place, room):
        return 0
    where = (connection, place.conversation_pk, place.head)
    pins = ledger.pinned(*where, up_to_depth=place.head.depth)
    states = ledger.states_on_path(*where, kinds=["thread"])
    pinned = min(sum(map(pin_cost, pins)), room.pins)
    listed = sum(_thread(state.row).cost for state in states if state.deleted is None)
    told = min(pinned + min(listed, room.own), room.left + room.own)
    return told + LEDGER_COST if told else 0


def find_unlisted(
    connection: Connection, place: Place, *, border: int, covered: int
) -> list[EntryRow]:
    """The threads that are open at the depth `covered`, where a coming gist ends, for which the
    list of a fold to `border` will have no room: that gist must tell them."""
    where = (connection, place.conversation_pk, place.head)
    threads = ledger.read_threads(*where, up_to_depth=border)
    room = _LedgerRoom.beside(place.limits, _choose_documents(connection, place))
    listed = set(_choose_entries(connection, place, room, border, covered, threads)[1])
    return [row for row in threads.open if row.last_depth <= covered and row not in listed]


def _fit(rows: Iterable[T], cost: Callable[[T], int], room: int) -> tuple[list[T], int]:
    """The rows that fit, each whole, the first ones first; and the room that is left."""
    chosen = []
    for row in rows:
        size = cost(row)
        if size <= room:
            chosen.append(row)
            room -= size
    return chosen, room


def _number(row: EntryRow) -> tuple[int, int]:
    return row.number or 0, row.pk


def _pks(
    rows: Sequence[DocumentRow] | Sequence[ProfileRow] | Sequence[EntryRow],
) -> tuple[int, ...]:
    return tuple(row.pk for row in rows)
