"""Rows of the ledger, and what an entry's marks make of it on one path.

An entry stands on every path that holds its `last_pk`; of each pair of marks (closed and reopened,
superseded and restored, pinned and unpinned, deleted and undeleted) the newest one that lies on the
path counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection

from gateway.store.tables.memory import LedgerEntry, LedgerMark
from gateway.store.transcript import Node, ancestor_at

entries = LedgerEntry.__table__  # type: ignore[attr-defined]
marks = LedgerMark.__table__  # type: ignore[attr-defined]

Kind = Literal["fact", "claim", "thread", "quote", "note"]
MarkName = Literal[
    "closed",
    "reopened",
    "superseded",
    "restored",
    "pinned",
    "unpinned",
    "deleted",
    "undeleted",
]

BY_OWNER = ("owner", "profile")
"""Origins of marks that are the owner's own acts: over the entry, or over the fact of the profile
that the same message taught."""

_PAIR = {
    "closed": "closed",
    "superseded": "superseded",
    "pinned": "pinned",
    "deleted": "deleted",
    "reopened": "closed",
    "restored": "superseded",
    "unpinned": "pinned",
    "undeleted": "deleted",
}


@dataclass(frozen=True, slots=True)
class EntryRow:
    """An entry as stored; tables.LedgerEntry says what each column means."""

    pk: int
    id: str
    kind: str
    number: int | None
    text: str
    about: str | None
    who: str | None
    target: str | None
    truth: str | None
    chapter_pk: int | None
    version_pk: int | None
    gist_pk: int | None
    source_pk: int | None
    last_pk: int
    last_depth: int
    origin: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class MarkRow:
    """A mark as stored; last_pk None: it counts on every path."""

    pk: int
    entry_pk: int
    mark: str
    by_pk: int | None
    chapter_pk: int | None
    last_pk: int | None
    last_depth: int | None
    origin: str
    created_ms: int


@dataclass(frozen=True, slots=True)
class EntryState:
    """An entry as it stands on one path. closed, superseded, pinned, deleted: the mark that says
    so, None where the entry is not."""

    row: EntryRow
    closed: MarkRow | None = None
    superseded: MarkRow | None = None
    pinned: MarkRow | None = None
    deleted: MarkRow | None = None

    @property
    def is_live(self) -> bool:
        """Neither deleted nor superseded nor closed."""
        return self.deleted is None and self.superseded is None and self.closed is None


ENTRY_COLUMNS = tuple(getattr(entries.c, name) for name in EntryRow.__dataclass_fields__)
MARK_COLUMNS = tuple(getattr(marks.c, name) for name in MarkRow.__dataclass_fields__)


class Path:
    """Which messages lie on the path to a head, each looked up once. up_to: of depth at most."""

    def __init__(self, connection: Connection, head: Node, up_to: int | None = None) -> None:
        self._connection = connection
        self._head = head
        self._up_to = head.depth if up_to is None else up_to
        self._at: dict[int, int | None] = {}

    def learn(self, depths: Iterable[int]) -> None:
        """Look up what stands at these depths, each from the one below it: a few rows a step,
        where from the head it is the logarithm of the whole path."""
        pk: int | None = self._head.pk
        for depth in sorted({depth for depth in depths if depth <= self._up_to}, reverse=True):
            if depth not in self._at:
                self._at[depth] = None if pk is None else ancestor_at(self._connection, pk, depth)
            pk = self._at[depth]

    def holds(self, pk: int, depth: int) -> bool:
        if depth > min(self._up_to, self._head.depth):
            return False
        if depth not in self._at:
            self._at[depth] = ancestor_at(self._connection, self._head.pk, depth)
        return self._at[depth] == pk

    def counts(self, mark: MarkRow) -> bool:
        """Whether a mark counts here; the owner's own acts do everywhere."""
        if mark.last_pk is None or mark.last_depth is None:
            return True
        return self.holds(mark.last_pk, mark.last_depth)


def state_of(row: EntryRow, counted: Sequence[MarkRow]) -> EntryState:
    """An entry as these of its marks leave it, oldest first."""
    newest: dict[str, MarkRow] = {_PAIR[mark.mark]: mark for mark in counted}
    standing = {pair: mark for pair, mark in newest.items() if mark.mark == pair}
    return EntryState(row, **standing)
