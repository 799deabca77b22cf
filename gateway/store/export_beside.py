"""What stands beside messages and chapters, written out: the ledger, the profile, documents, notes.

Rows name each other by ids. What views show of other conversations (facts of the same owner) and of
policies (documents) is written out too, so that the same views can be shown elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, or_, select

from gateway.clock import iso
from gateway.store.documents import documents
from gateway.store.fold_rows import Shown, folds
from gateway.store.ledger_rows import entries, marks
from gateway.store.notes import notes
from gateway.store.profile import profile_facts

Line = dict[str, Any]
Ids = Mapping[int | None, str | None]


@dataclass(frozen=True, slots=True)
class Names:
    """The ids of entries, facts and documents by their row numbers."""

    entries: Ids
    facts: Ids
    documents: Ids

    def shown(self, text: str | None) -> Line | None:
        """What a fold shows beside its chapters, by ids."""
        if text is None:
            return None
        shown = Shown.from_json(text)
        told = {
            "profile": [self.facts.get(pk) for pk in shown.profile],
            "documents": [self.documents.get(pk) for pk in shown.documents],
            "pins": [self.entries.get(pk) for pk in shown.pins],
            "open": [self.entries.get(pk) for pk in shown.open],
            "closed": [self.entries.get(pk) for pk in shown.closed],
        }
        return {kind: found for kind, found in told.items() if found}


class Beside:
    """The rows beside one conversation's messages and chapters, read once."""

    def __init__(self, connection: Connection, conversation_pk: int) -> None:
        self._connection = connection
        self._pk = conversation_pk
        shown = [Shown.from_json(text) for text in self._shown_texts()]
        self._facts = self._rows(profile_facts, [pk for one in shown for pk in one.profile])
        self._documents = self._rows(documents, [pk for one in shown for pk in one.documents])
        self._entries = self._rows(entries, [])
        self.names = Names(*map(_ids, (self._entries, self._facts, self._documents)))

    def _shown_texts(self) -> list[str]:
        found = select(folds.c.shown).where(
            folds.c.conversation_pk == self._pk, folds.c.shown.is_not(None)
        )
        return [text for text in self._connection.execute(found).scalars() if text]

    def _rows(self, table: Any, pks: list[int]) -> list[Any]:
        """The conversation's own rows, and those of these numbers."""
        wanted = or_(table.c.conversation_pk == self._pk, table.c.pk.in_(sorted(set(pks))))
        return list(self._connection.execute(select(table).where(wanted).order_by(table.c.pk)))

    def lines(
        self, messages: Ids, chapters: Ids, versions: Mapping[int, Any], gists: Mapping[Any, Any]
    ) -> Iterator[Line]:
        """The ledger with its marks, the facts and the documents."""
        for row in self._entries:
            yield {
                "type": "entry",
                "id": row.id,
                "chapter": chapters.get(row.chapter_pk),
                "told_by": versions.get(row.version_pk),
                "gist": gists.get(row.gist_pk),
                "source": messages.get(row.source_pk),
                "last": messages.get(row.last_pk),
                **_plain(
                    row, "kind", "number", "text", "about", "who", "target", "truth", "origin"
                ),
            }
        for row in self._rows(marks, []):
            yield {
                "type": "mark",
                "entry": self.names.entries.get(row.entry_pk),
                "by": self.names.entries.get(row.by_pk),
                "chapter": chapters.get(row.chapter_pk),
                "last": messages.get(row.last_pk),
                **_plain(row, "mark", "origin"),
            }
        behind = _names_of(self._connection, [row.replaces_pk for row in self._facts])
        for row in self._facts:
            yield _memory(row, row.conversation_pk == self._pk, behind)
        for row in self._documents:
            yield {
                "type": "document",
                "id": row.id,
                "removed_at": None if row.removed_ms is None else iso(row.removed_ms),
                **_plain(row, "policy", "name", "text", "digest"),
            }

    def notes(self, messages: Ids, fold_names: Mapping[Any, Any]) -> Iterator[Line]:
        """What was recalled, beside which message."""
        for row in self._rows(notes, []):
            yield {
                "type": "note",
                "fold": fold_names.get(row.fold_pk),
                "asked": messages.get(row.asked_pk),
                "body": _by_ids(json.loads(row.body), messages),
                **_plain(row, "policy", "kind", "chars"),
            }


def own_memories(connection: Connection, owner_pk: int) -> Iterator[Line]:
    """What an owner wrote, and the digests of what was deleted, of no conversation any more."""
    of_none = profile_facts.c.conversation_pk.is_(None)
    own = select(profile_facts).where(profile_facts.c.owner_pk == owner_pk, of_none)
    rows = connection.execute(own.order_by(profile_facts.c.pk)).all()
    behind = _names_of(connection, [row.replaces_pk for row in rows])
    for row in rows:
        yield _memory(row, None, behind)


def _memory(row: Any, learned_here: bool | None, behind: Ids) -> Line:
    return {
        "type": "memory",
        "id": row.id,
        "learned_here": learned_here,
        "replaces": behind.get(row.replaces_pk),
        "ended_at": None if row.ended_ms is None else iso(row.ended_ms),
        **_plain(row, "text", "about", "source", "origin", "state"),
    }


def _names_of(connection: Connection, pks: list[int | None]) -> Ids:
    """The ids of facts by their row numbers, of whatever conversation they are."""
    wanted = sorted({pk for pk in pks if pk is not None})
    rows = connection.execute(
        select(profile_facts.c.pk, profile_facts.c.id).where(profile_facts.c.pk.in_(wanted))
    )
    return {row.pk: row.id for row in rows}


def _by_ids(body: Any, messages: Ids) -> Any:
    """A note's body, in which the messages that it shows stand by their row numbers."""
    if not isinstance(body, dict) or "shown" not in body:
        return body
    return {**body, "shown": [messages.get(pk) for pk in body["shown"]]}


def _ids(rows: list[Any]) -> Ids:
    return {row.pk: row.id for row in rows}


def _plain(row: Any, *names: str) -> Line:
    """Columns as they are, and when the row was made."""
    return {**{name: getattr(row, name) for name in names}, "created_at": iso(row.created_ms)}
