"""What owners told about themselves (L2): learned from chapters, or written by their own hand.

A fact's text is never rewritten: a newer one is a row of its own that takes the older one's place,
so that a view which shows the older one keeps its bytes until its next fold. Every function takes a
connection; none commits.
"""

from __future__ import annotations

import secrets
import sys
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, bindparam, insert, or_, select, update

from gateway.store.prepared import Prepared
from gateway.store.rows import new_pk, record
from gateway.store.tables.memory import ProfileFact
from gateway.store.transcript import conversations, messages

profile_facts = ProfileFact.__table__  # type: ignore[attr-defined]

MOST_ACTIVE = 200
"""Facts that a view is offered at most, of the owner's own and of what was learned each; what fits
it is chosen among these."""

MOST_COMPARED = 500
"""Facts that what a chapter tells is held against: so many that stand, the newest, and four times
as many that were deleted. It is done in the transaction that stores the chapter."""

MOST_CHARS = 1_000
"""Characters of a fact that its owner writes: what a view shows of all of them by default."""

MOST_ABOUT = 100
"""Characters of what a fact is about."""

COLUMNS = tuple(profile_facts.c)


Moment = tuple[int, int]
"""Milliseconds, and the row number of the message that was stored then."""


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """A fact as stored. See `tables.ProfileFact` for what its columns mean."""

    pk: int
    id: str
    owner_pk: int
    conversation_pk: int | None
    text: str
    about: str | None
    source: str | None
    origin: str
    state: str
    replaces_pk: int | None
    created_ms: int
    ended_ms: int | None


_ACTIVE = (
    select(*COLUMNS)
    .outerjoin(conversations, conversations.c.pk == profile_facts.c.conversation_pk)
    .where(
        profile_facts.c.owner_pk == bindparam("owner"),
        profile_facts.c.state == "active",
        or_(
            profile_facts.c.conversation_pk.is_(None),
            conversations.c.private.is_(False),
            profile_facts.c.conversation_pk == bindparam("conversation"),
        ),
    )
    .order_by(profile_facts.c.pk.desc())
    .limit(bindparam("most"))
)
# Two statements along the index cost what they return; one sorted by origin read all there is.
_OWN = Prepared(_ACTIVE.where(profile_facts.c.origin == "owner"))
_LEARNED = Prepared(_ACTIVE.where(profile_facts.c.origin != "owner"))


def active(
    connection: Connection, owner_pk: int, *, conversation_pk: int = 0, most: int = MOST_ACTIVE
) -> list[ProfileRow]:
    """What views of an owner's conversations may show: the owner's own words first, then what was
    learned last, at most `most` of each. Nothing of a private conversation, other than in that
    conversation itself."""
    asked = {"owner": owner_pk, "conversation": conversation_pk, "most": most}
    own, learned = _OWN.all(connection, **asked), _LEARNED.all(connection, **asked)
    return [record(ProfileRow, row) for row in (*own, *learned)]


def comparable(connection: Connection, owner_pk: int) -> list[ProfileRow]:
    """What a newly told fact is held against: the facts that stand, in whatever conversation, and
    those that were deleted; the newest first, bounded."""
    statement = (
        select(*COLUMNS)
        .where(profile_facts.c.owner_pk == owner_pk, profile_facts.c.state == bindparam("is"))
        .order_by(profile_facts.c.pk.desc())
        .limit(bindparam("most"))
    )
    asked = [("active", MOST_COMPARED), ("deleted", 4 * MOST_COMPARED)]
    return [
        record(ProfileRow, row)
        for state, most in asked
        for row in connection.execute(statement, {"is": state, "most": most})
    ]


def profile_by_pk(connection: Connection, pks: Sequence[int]) -> list[ProfileRow]:
    """The facts that a fold names, in its order, whatever became of them since; none whose text is
    gone."""
    if not pks:
        return []
    rows = connection.execute(select(*COLUMNS).where(profile_facts.c.pk.in_(list(pks))))
    by_pk = {row.pk: record(ProfileRow, row) for row in rows}
    return [by_pk[pk] for pk in pks if pk in by_pk and by_pk[pk].text]


def as_its_owner_left(connection: Connection, pks: Sequence[int]) -> tuple[int, ...]:
    """Of the facts that a fold names those that are not deleted, each as its owner mended it
    since; what was learned in the place of one is another's."""
    if not pks:
        return ()
    rows = {row.pk: row for row in rows_by_pk(connection, pks)}
    mended = dict(zip(pks, pks, strict=True))
    waiting = {pk for pk in pks if pk in rows and rows[pk].state == "replaced"}
    while waiting:
        newer = {
            row.replaces_pk: record(ProfileRow, row)
            for row in connection.execute(
                select(*COLUMNS).where(
                    profile_facts.c.replaces_pk.in_(list(waiting)),
                    profile_facts.c.origin == "owner",
                )
            )
        }
        for pk, at in mended.items():
            if at in newer and at in waiting:
                mended[pk] = newer[at].pk
        rows.update((row.pk, row) for row in newer.values())
        waiting = {row.pk for row in newer.values() if row.state == "replaced"}
    left = (pk for pk in mended.values() if pk in rows and rows[pk].state != "deleted")
    return tuple(dict.fromkeys(left))


def all_of(connection: Connection, owner_pk: int) -> list[ProfileRow]:
    """Every row of an owner, whatever became of it, the newest first."""
    rows = connection.execute(
        select(*COLUMNS)
        .where(profile_facts.c.owner_pk == owner_pk)
        .order_by(profile_facts.c.pk.desc())
    )
    return [record(ProfileRow, row) for row in rows]


def rows_by_pk(connection: Connection, pks: Sequence[int]) -> list[ProfileRow]:
    """These rows, in no order."""
    rows = connection.execute(select(*COLUMNS).where(profile_facts.c.pk.in_(pks)))
    return [record(ProfileRow, row) for row in rows]


def told_at(connection: Connection, row: ProfileRow) -> Moment:
    """When a fact was said, by the newest message that bears it out, or written by its owner."""
    if row.origin == "owner":
        return row.created_ms, sys.maxsize
    found = connection.execute(
        select(messages.c.created_ms, messages.c.pk)
        .where(
            messages.c.conversation_pk == row.conversation_pk,
            messages.c.content == source_content(row),
        )
        .order_by(messages.c.pk.desc())
        .limit(1)
    ).first()
    return (0, 0) if found is None else (found.created_ms, found.pk)


def insert_fact(connection: Connection, **values: Any) -> int:
    """Write a row; values are all columns but pk and id. Returns its number."""
    made = connection.execute(
        insert(profile_facts).values(id=f"mem_{secrets.token_hex(8)}", **values)
    )
    return new_pk(made)


def end_facts(connection: Connection, pks: Collection[int], state: str, now_ms: int | None) -> None:
    connection.execute(
        update(profile_facts)
        .where(profile_facts.c.pk.in_(list(pks)))
        .values(state=state, ended_ms=now_ms)
    )


# --- what a fact is known by ---------------------------------------------------------------------


def one_line(text: str) -> str:
    """A text without line breaks and without blanks around it."""
    return " ".join(text.split())


def fold_text(text: str) -> str:
    """What a text is compared by: its letters and digits, without case and width."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(filter(str.isalnum, folded))


def words_of(text: str) -> str:
    """The same, or of what has neither letters nor digits (emoji) the text itself."""
    return fold_text(text) or one_line(text)


def source_content(row: ProfileRow) -> str | None:
    """The digest of the message that a fact was learned from; None where the owner wrote it."""
    return None if row.source is None else row.source.partition(":")[0]


# --- lists ---------------------------------------------------------------------------------------


def list_facts(
    connection: Connection,
    owner_pks: Collection[int] | None,
    *,
    words: str = "",
    limit: int,
    before: int | None = None,
) -> tuple[list[ProfileRow], int | None]:
    """A page of active facts, newest first, and where the next begins (None at the end).

    words: only those that contain this, whatever its case and width; of a text without letters and
    digits its pictures (emoji) count, and one without these is contained in nothing. before: the
    row number that the page before ended with.
    """
    statement = (
        select(*COLUMNS)
        .where(profile_facts.c.state == "active")
        .order_by(profile_facts.c.pk.desc())
    )
    if owner_pks is not None:
        statement = statement.where(profile_facts.c.owner_pk.in_(list(owner_pks)))
    if before is not None:
        statement = statement.where(profile_facts.c.pk < before)
    found: list[ProfileRow] = []
    for row in _matching(map(_read, connection.execute(statement)), words):
        if len(found) == limit:
            return found, found[-1].pk
        found.append(row)
    return found, None


def all_active(connection: Connection, owner_pks: Collection[int] | None) -> list[ProfileRow]:
    """Every active fact of these owners (None: of everybody), oldest first."""
    rows, _ = list_facts(connection, owner_pks, limit=sys.maxsize)
    return rows[::-1]


def _read(row: Row[Any]) -> ProfileRow:
    return record(ProfileRow, row)


def _matching(rows: Iterable[ProfileRow], words: str) -> Iterable[ProfileRow]:
    if not words:
        return rows
    wanted = fold_text(words)
    fold = fold_text if wanted else _pictures
    wanted = wanted or _pictures(words)
    if not wanted:
        return ()
    return (row for row in rows if wanted in fold(f"{row.about or ''} {row.text}"))


def _pictures(text: str) -> str:
    return "".join(letter for letter in text if unicodedata.category(letter) == "So")
