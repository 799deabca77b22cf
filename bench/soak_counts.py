"""What the database says after a soak, against what people were told."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from sqlalchemy import Connection, text

from bench.soak_people import Ledger, Told

BOUNDS: Mapping[str, tuple[str, float]] = {
    "lost": ("most", 0),
    "duplicate_chapters": ("most", 0),
    "resurrected": ("most", 0),
    "jobs_stuck": ("most", 0),
    "throughput_ratio": ("least", 0.9),
}
"""What a soak must keep to."""

# Where a text of a conversation, or of a memory, may stand.
_TEXTS = (
    ("messages", "raw"),
    ("chapter_versions", "text"),
    ("gists", "text"),
    ("ledger_entries", "text"),
    ("profile_facts", "text"),
    ("quarantine", "text"),
    ("notes", "body"),
)


def count(connection: Connection, ledger: Ledger, kills: int) -> dict[str, Any]:
    """The figures of the last line."""
    states = dict(_rows(connection, "SELECT state, count(*) FROM jobs GROUP BY state"))
    silent = _one(connection, "SELECT count(*) FROM jobs WHERE state = 'parked' AND error IS NULL")
    ended = states.get("done", 0) + states.get("parked", 0)
    return {
        "kills": kills,
        "acknowledged": len(ledger.told),
        "lost": len(list(find_lost(connection, ledger))),
        "duplicate_chapters": len(list(find_duplicates(connection))),
        "resurrected": len(list(find_resurrected(connection, ledger))),
        "jobs_done": states.get("done", 0),
        "jobs_parked": states.get("parked", 0) - silent,
        # Without a reason a parked one is stuck as well.
        "jobs_stuck": sum(states.values()) - ended + silent,
        "throughput_ratio": round(ledger.answered / max(1, ledger.offered), 4),
    }


def find_missed(figures: Mapping[str, Any]) -> list[str]:
    """The bounds that were not kept, in words."""
    missed = []
    for name, (kind, bound) in BOUNDS.items():
        value = figures[name]
        if value > bound if kind == "most" else value < bound:
            missed.append(f"{name} is {value}, at {kind} {bound:g} is allowed")
    return missed


def find_lost(connection: Connection, ledger: Ledger) -> Iterator[Told]:
    """What was acknowledged and does not stand where it was said, deleted conversations apart."""
    stored: set[tuple[str, str, str | None]] = set()
    rows = _rows(
        connection,
        "SELECT c.id, m.role, p.raw, m.raw FROM messages m"
        " JOIN conversations c ON c.pk = m.conversation_pk"
        " LEFT JOIN messages p ON p.pk = m.parent_pk",
    )
    for conversation, role, parent, raw in rows:
        said = str(json.loads(raw)["content"])
        if role == "user":
            stored.add((conversation, said, None))
        elif parent is not None:
            stored.add((conversation, str(json.loads(parent)["content"]), said))
    for told in ledger.told:
        if told.conversation in ledger.deleted:
            continue
        if (told.conversation, told.question, told.reply) not in stored:
            yield told


def find_duplicates(connection: Connection) -> Iterator[str]:
    """Chapters of one branch that tell the same messages, and second texts by a model."""
    parents = dict(_rows(connection, "SELECT pk, parent_pk FROM messages"))
    chapters = _rows(
        connection, "SELECT conversation_pk, last_pk, first_depth, last_depth FROM chapters"
    )
    of: dict[int, list[Sequence[Any]]] = {}
    for row in chapters:
        of.setdefault(row[0], []).append(row)
    for pk, head in _rows(connection, "SELECT pk, head_pk FROM conversations"):
        path = set(_path(parents, head))
        spans = sorted((row[2], row[3]) for row in of.get(pk, ()) if row[1] in path)
        for (_, end), (first, last) in pairwise(spans):
            if first <= end:
                yield f"conversation {pk}: {first} to {last} begins before {end} ends"
    texts = Counter(
        chapter
        for (chapter,) in _rows(
            connection, "SELECT chapter_pk FROM chapter_versions WHERE origin = 'model'"
        )
    )
    yield from (f"chapter {pk} was written {n} times" for pk, n in texts.items() if n > 1)


def _path(parents: Mapping[int, int | None], head: int | None) -> Iterator[int]:
    while head is not None:
        yield head
        head = parents[head]


def find_resurrected(connection: Connection, ledger: Ledger) -> Iterator[str]:
    """Whatever is left or came back of what was deleted."""
    ids = {row[0] for row in _rows(connection, "SELECT id FROM conversations")}
    yield from (f"conversation {id}" for id in ledger.deleted if id in ids)
    words = [*ledger.deleted.values(), *ledger.forgotten]
    if not words:
        return
    for table, column in _TEXTS:
        for (said,) in _rows(connection, f"SELECT {column} FROM {table}"):
            yield from (f"{word} in {table}" for word in words if word in (said or ""))


def _rows(connection: Connection, sql: str) -> Sequence[Any]:
    return connection.execute(text(sql)).all()


def _one(connection: Connection, sql: str) -> int:
    return int(connection.execute(text(sql)).scalar_one())
