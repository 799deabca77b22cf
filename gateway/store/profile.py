"""What owners told about themselves (L2): learned from chapters, or written by their own hand.

A fact's text is never rewritten: a newer one is a row of its own that takes the older one's place,
so that a view which shows the older one keeps its bytes until its next fold. Every function takes a
connection; none commits.

`source` says where a fact was learned and, in digests, of what it tells: the digest of the message
alone, of what it is about, and of its pairs of letters. By it a fact that was deleted, and whose
text is gone, is known when a summarizer tells it again in other words.
"""

from __future__ import annotations

import secrets
import sys
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Protocol

from sqlalchemy import Connection, Row, bindparam, delete, insert, or_, select, update

from gateway.clock import iso
from gateway.errors import Conflict
from gateway.store.prepared import Prepared
from gateway.store.rows import new_pk, record
from gateway.store.shown import pks_shown
from gateway.store.tables import ProfileFact
from gateway.store.transcript import conversations, messages, owners
from policies.ledger.additions import Known, supersedes
from policies.likeness import letter_pairs

profile_facts = ProfileFact.__table__  # type: ignore[attr-defined]

MOST_ACTIVE = 500
"""Facts that a view is offered at most; what fits it is chosen among these."""

MOST_CHARS = 1_000
"""Characters of a fact that its owner writes: what a view shows of all of them by default."""

MOST_ABOUT = 100
"""Characters of what a fact is about."""

ALIKE = 0.45
"""The share of letter pairs from which on a fact of one span is taken for the one that its owner
deleted there. Paraphrases of one fact measured 0.45 to 0.86 in six languages, different facts about
one person 0.20 to 0.71: it errs on the side of what was deleted."""

SAME = 0.8
"""The share from which on two tellings of one message are one fact, whatever they are about."""

_COLUMNS = tuple(profile_facts.c)


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


class Telling(Protocol):
    """A fact as a judged chapter tells it (an entry of the ledger). source_pk: the message that
    bears it out."""

    @property
    def text(self) -> str: ...

    @property
    def about(self) -> str | None: ...

    @property
    def source_pk(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Told:
    """The same of other origin."""

    text: str
    about: str | None
    source_pk: int | None


_ACTIVE = Prepared(
    select(*_COLUMNS)
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
    .order_by((profile_facts.c.origin == "owner").desc(), profile_facts.c.pk.desc())
    .limit(bindparam("most"))
)


def active(
    connection: Connection, owner_pk: int, *, conversation_pk: int = 0, most: int = MOST_ACTIVE
) -> list[ProfileRow]:
    """What views of an owner's conversations may show: the owner's own words first, then what was
    learned last. Nothing of a private conversation, other than in that conversation itself."""
    rows = _ACTIVE.all(connection, owner=owner_pk, conversation=conversation_pk, most=most)
    return [record(ProfileRow, row) for row in rows]


def profile_by_pk(connection: Connection, pks: Sequence[int]) -> list[ProfileRow]:
    """The facts that a fold names, in its order, whatever became of them since; none whose text is
    gone."""
    if not pks:
        return []
    rows = connection.execute(select(*_COLUMNS).where(profile_facts.c.pk.in_(list(pks))))
    by_pk = {row.pk: record(ProfileRow, row) for row in rows}
    return [by_pk[pk] for pk in pks if pk in by_pk and by_pk[pk].text]


def learn(
    connection: Connection,
    owner_pk: int,
    conversation_pk: int,
    told: Sequence[Telling],
    *,
    span: Collection[int],
    now_ms: int,
) -> int:
    """Take what a chapter tells of its owner into the profile; how many facts are new.

    span: the row numbers of the chapter's messages. A newer fact about the same takes the older
    one's place; newer is what was said later, whenever it was summarized. What was learned from
    there before is not learned twice, and what the owner deleted not again: from the same words
    nothing, from the same span nothing like it. Nothing is learned of a private conversation.
    """
    is_private = connection.execute(
        select(conversations.c.private).where(conversations.c.pk == conversation_pk)
    ).scalar()
    if is_private is None or is_private or not told:
        return 0
    learner = _Learner(connection, owner_pk, conversation_pk, span, now_ms)
    return sum(learner.take(fact) for fact in told)


class _Learner:
    """An owner's profile while one chapter is taken in."""

    def __init__(
        self,
        connection: Connection,
        owner_pk: int,
        conversation_pk: int,
        span: Collection[int],
        now_ms: int,
    ) -> None:
        self._connection = connection
        self._owner_pk = owner_pk
        self._conversation_pk = conversation_pk
        self._now_ms = now_ms
        self._said = _said(connection, span)
        self._contents = {content for content, _ in self._said.values()}
        self._known = _all_of(connection, owner_pk)
        self._fresh: set[int] = set()

    def take(self, fact: Telling) -> bool:
        if fact.source_pk is None or fact.source_pk not in self._said:
            return False
        content, said_ms = self._said[fact.source_pk]
        source = describe_source(content, fact.about, fact.text)
        if any(self._is_known(row, source) for row in self._known):
            return False
        same = next((row for row in self._known if self._is_same(row, fact)), None)
        if same is not None and fold_text(same.text) == fold_text(fact.text):
            return self._echo(same, fact, source)
        if same is not None and self._is_newer(same, fact, said_ms):
            return False
        pk = self._add(fact, source, "active", None if same is None else same.pk)
        if same is not None:
            _end(self._connection, [same.pk], "replaced", self._now_ms)
        self._keep(pk, same)
        return True

    def _is_known(self, row: ProfileRow, source: str) -> bool:
        """Whether this was learned from here before, or was and is deleted."""
        if row.source is None:
            return False
        place, about, pairs = _read_source(row.source)
        here, our_about, our_pairs = _read_source(source)
        is_about = bool(about) and about == our_about and row.pk not in self._fresh
        share = _share(pairs, our_pairs)
        if row.state != "deleted":
            return place == here and (is_about or share >= SAME)
        if place == here:
            return True
        is_near = row.conversation_pk == self._conversation_pk and place in self._contents
        return is_near and (is_about or share >= ALIKE)

    def _is_same(self, row: ProfileRow, fact: Telling) -> bool:
        """Whether one takes the other's place, as in the ledger; what one chapter tells about one
        subject stands side by side."""
        if row.state != "active":
            return False
        if fold_text(row.text) == fold_text(fact.text):
            return True
        if row.pk in self._fresh:
            return False
        told = Known(0, "fact", fact.text, fact.about or "")
        return supersedes(told, Known(0, "fact", row.text, row.about or ""))

    def _is_newer(self, row: ProfileRow, fact: Telling, said_ms: int) -> bool:
        """Whether the row was told after the fact: an old span may be summarized anew."""
        if row.origin == "owner":
            return row.created_ms >= said_ms
        bearing = _message_of(self._connection, row)
        if bearing is None:
            return False
        if row.conversation_pk == self._conversation_pk:
            return bearing[0] >= (fact.source_pk or 0)
        return bearing[1] > said_ms

    def _echo(self, same: ProfileRow, fact: Telling, source: str) -> bool:
        """A fact that is told here too stands behind the one that is shown: should the conversation
        of that one be deleted, this one takes its place."""
        if same.conversation_pk == self._conversation_pk:
            return False
        pk = self._add(fact, source, "replaced", same.replaces_pk)
        self._connection.execute(
            update(profile_facts).where(profile_facts.c.pk == same.pk).values(replaces_pk=pk)
        )
        self._keep(pk, same)
        return False

    def _add(self, fact: Telling, source: str, state: str, replaces_pk: int | None) -> int:
        return _insert(
            self._connection,
            owner_pk=self._owner_pk,
            conversation_pk=self._conversation_pk,
            text=one_line(fact.text),
            about=one_line(fact.about) or None if fact.about else None,
            source=source,
            origin="model",
            state=state,
            replaces_pk=replaces_pk,
            created_ms=self._now_ms,
            ended_ms=None if state == "active" else self._now_ms,
        )

    def _keep(self, pk: int, changed: ProfileRow | None) -> None:
        """What is known now: the new row, and the changed one as it is since."""
        self._fresh.add(pk)
        pks = [pk] if changed is None else [pk, changed.pk]
        fresh = _rows_by_pk(self._connection, pks)
        self._known = [row for row in self._known if row.pk not in pks] + fresh


def _said(connection: Connection, pks: Collection[int]) -> dict[int, tuple[str, int]]:
    """(digest of the message alone, when it was stored) by row number."""
    found: dict[int, tuple[str, int]] = {}
    wanted = sorted(pks)
    for start in range(0, len(wanted), 500):
        part = wanted[start : start + 500]
        rows = connection.execute(
            select(messages.c.pk, messages.c.content, messages.c.created_ms).where(
                messages.c.pk.in_(part)
            )
        )
        found.update((row.pk, (row.content, row.created_ms)) for row in rows)
    return found


def _message_of(connection: Connection, row: ProfileRow) -> tuple[int, int] | None:
    """(row number, when it was stored) of the newest message that bears a learned fact out."""
    if row.source is None or row.conversation_pk is None:
        return None
    found = connection.execute(
        select(messages.c.pk, messages.c.created_ms)
        .where(
            messages.c.conversation_pk == row.conversation_pk,
            messages.c.content == source_content(row),
        )
        .order_by(messages.c.pk.desc())
        .limit(1)
    ).first()
    return None if found is None else (found.pk, found.created_ms)


def _all_of(connection: Connection, owner_pk: int) -> list[ProfileRow]:
    rows = connection.execute(
        select(*_COLUMNS)
        .where(profile_facts.c.owner_pk == owner_pk)
        .order_by(profile_facts.c.pk.desc())
    )
    return [record(ProfileRow, row) for row in rows]


def _rows_by_pk(connection: Connection, pks: Sequence[int]) -> list[ProfileRow]:
    rows = connection.execute(select(*_COLUMNS).where(profile_facts.c.pk.in_(pks)))
    return [record(ProfileRow, row) for row in rows]


def _insert(connection: Connection, **values: Any) -> int:
    made = connection.execute(
        insert(profile_facts).values(id=f"mem_{secrets.token_hex(8)}", **values)
    )
    return new_pk(made)


def _end(connection: Connection, pks: Collection[int], state: str, now_ms: int) -> None:
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


def describe_source(content: str, about: str | None, text: str) -> str:
    """Where a fact was learned and what it tells, as digests. content: of the message alone."""
    pairs = "".join(sorted(_digest(pair, 2) for pair in letter_pairs(fold_text(text))))
    named = fold_text(about or "")
    return f"{content}:{_digest(named, 6) if named else ''}:{pairs}"


def source_content(row: ProfileRow) -> str | None:
    """The digest of the message that a fact was learned from; None where the owner wrote it."""
    return None if row.source is None else row.source.partition(":")[0]


def _read_source(source: str) -> tuple[str, str, frozenset[str]]:
    place, about, pairs = source.split(":")
    return place, about, frozenset(pairs[at : at + 4] for at in range(0, len(pairs), 4))


def _share(one: Collection[str], other: Collection[str]) -> float:
    """Of the pairs of the shorter text the share that stands in the other one too."""
    ours, theirs = frozenset(one), frozenset(other)
    return len(ours & theirs) / max(1, min(len(ours), len(theirs)))


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


# --- the owner's hand ----------------------------------------------------------------------------


def find_fact(
    connection: Connection, owner_pks: Collection[int] | None, id: str
) -> ProfileRow | None:
    """An active fact by its id, among these owners' (None: everybody's)."""
    statement = select(*_COLUMNS).where(profile_facts.c.id == id, profile_facts.c.state == "active")
    if owner_pks is not None:
        statement = statement.where(profile_facts.c.owner_pk.in_(list(owner_pks)))
    row = connection.execute(statement).first()
    return None if row is None else record(ProfileRow, row)


def add_fact(
    connection: Connection, owner_pk: int, text: str, about: str | None, now_ms: int
) -> ProfileRow:
    """A fact in the owner's own words. What was known about the same gives way to it."""
    old = None
    if about:
        old = next(
            (
                row
                for row in _all_of(connection, owner_pk)
                if row.state == "active" and row.about and fold_text(row.about) == fold_text(about)
            ),
            None,
        )
    pk = _insert(
        connection,
        owner_pk=owner_pk,
        conversation_pk=None,
        text=text,
        about=about,
        source=None,
        origin="owner",
        state="active",
        replaces_pk=None if old is None else old.pk,
        created_ms=now_ms,
        ended_ms=None,
    )
    if old is not None:
        _end(connection, [old.pk], "replaced", now_ms)
    return _rows_by_pk(connection, [pk])[0]


def edit_fact(
    connection: Connection, fact: ProfileRow, text: str, about: str | None, now_ms: int
) -> ProfileRow:
    """The fact in other words, as a row of its own. What was learned in a conversation still goes
    with it, also when its owner mended the wording."""
    pk = _insert(
        connection,
        owner_pk=fact.owner_pk,
        conversation_pk=fact.conversation_pk,
        text=text,
        about=about,
        source=fact.source,
        origin="owner",
        state="active",
        replaces_pk=fact.pk,
        created_ms=now_ms,
        ended_ms=None,
    )
    _end(connection, [fact.pk], "replaced", now_ms)
    return _rows_by_pk(connection, [pk])[0]


def undo_edit(connection: Connection, fact: ProfileRow, now_ms: int) -> ProfileRow:
    """The fact that this one took the place of, in its place again. Raises Conflict where there is
    none, or its text is gone."""
    before = [row for row in _rows_by_pk(connection, [fact.replaces_pk or 0]) if row.text]
    if not before:
        raise Conflict("Nothing stood in the place of this memory before.")
    return edit_fact(connection, fact, before[0].text, before[0].about, now_ms)


def delete_fact(connection: Connection, fact: ProfileRow, now_ms: int) -> None:
    """Delete a fact with all that it took the place of.

    Their digests stay with the conversations that told them, so that it is not learned again. A
    text that views still show stays until they fold, any other is gone at once.
    """
    chain = _chain(connection, fact)
    _end(connection, [row.pk for row in chain], "deleted", now_ms)
    purge_deleted(connection, fact.owner_pk)


def learned_in(connection: Connection, conversation_pk: int) -> list[ProfileRow]:
    """The active facts that a model told of this conversation, oldest first."""
    rows = connection.execute(
        select(*_COLUMNS)
        .where(
            profile_facts.c.conversation_pk == conversation_pk,
            profile_facts.c.state == "active",
            profile_facts.c.origin == "model",
        )
        .order_by(profile_facts.c.pk)
    )
    return [record(ProfileRow, row) for row in rows]


def reject_fact(connection: Connection, pk: int, now_ms: int) -> bool:
    """Take a bad fact out of the profile: it is not learned again, and what it took the place of
    stands again. False where it was not active any more."""
    found = [row for row in _rows_by_pk(connection, [pk]) if row.state == "active"]
    for row in found:
        _end(connection, [row.pk], "deleted", now_ms)
        connection.execute(
            update(profile_facts)
            .where(profile_facts.c.pk == row.replaces_pk, profile_facts.c.state == "replaced")
            .values(state="active", ended_ms=None)
        )
        purge_deleted(connection, row.owner_pk)
    return bool(found)


def _chain(connection: Connection, fact: ProfileRow) -> list[ProfileRow]:
    """A fact and what it took the place of, newest first."""
    by_pk = {row.pk: row for row in _all_of(connection, fact.owner_pk)}
    chain, at = [], by_pk.get(fact.pk)
    while at is not None and at not in chain:
        chain.append(at)
        at = by_pk.get(at.replaces_pk or 0)
    return chain


def purge_deleted(connection: Connection, owner_pk: int) -> int:
    """Empty the deleted facts of an owner that no view shows any more; how many there were. Those
    that nothing could teach again go as a whole."""
    waiting = [row for row in _all_of(connection, owner_pk) if row.state == "deleted" and row.text]
    if not waiting:
        return 0
    owned = select(conversations.c.pk).where(conversations.c.owner_pk == owner_pk)
    shown = pks_shown(connection, owned, "profile", [row.pk for row in waiting])
    gone = [row for row in waiting if row.pk not in shown]
    taught = [row.pk for row in gone if row.source is not None]
    connection.execute(
        update(profile_facts).where(profile_facts.c.pk.in_(taught)).values(text="", about=None)
    )
    unsourced = [row.pk for row in gone if row.source is None]
    connection.execute(delete(profile_facts).where(profile_facts.c.pk.in_(unsourced)))
    return len(gone)


def release_facts(connection: Connection, conversation_pk: int) -> None:
    """Before a conversation is deleted, and with it what was learned there: what stands behind such
    a fact and was told elsewhere takes its place."""
    rows = connection.execute(
        select(*_COLUMNS)
        .where(profile_facts.c.conversation_pk == conversation_pk)
        .order_by(profile_facts.c.pk)
    ).all()
    going = {row.pk: row for row in rows}
    for row in rows:
        behind = _behind(row, going)
        moved = connection.execute(
            update(profile_facts)
            .where(profile_facts.c.replaces_pk == row.pk)
            .where(profile_facts.c.pk.not_in(list(going)))
            .values(replaces_pk=behind)
        ).rowcount
        if row.state == "active" and behind is not None and not moved:
            connection.execute(
                update(profile_facts)
                .where(profile_facts.c.pk == behind, profile_facts.c.state == "replaced")
                .values(state="active", ended_ms=None)
            )


def _behind(row: Row[Any], going: dict[int, Row[Any]]) -> int | None:
    """What a fact took the place of, and does not go with it."""
    at, seen = row.replaces_pk, set[int]()
    while at in going and at not in seen:
        seen.add(at)
        at = going[at].replaces_pk
    return None if at in going else at


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

    words: only those that contain this, whatever its case and width. before: the row number that
    the page before ended with.
    """
    statement = (
        select(*_COLUMNS)
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


def describe_facts(connection: Connection, rows: Sequence[ProfileRow]) -> list[dict[str, Any]]:
    """Facts as they are told to people. conversation: where it was learned, null where its owner
    wrote it; private: what was learned there is shown there alone."""
    owner = {
        row.pk: row
        for row in connection.execute(
            select(owners.c.pk, owners.c.name, owners.c.user).where(
                owners.c.pk.in_(list({row.owner_pk for row in rows}))
            )
        )
    }
    chats = {
        row.pk: row
        for row in connection.execute(
            select(conversations.c.pk, conversations.c.id, conversations.c.private).where(
                conversations.c.pk.in_(list({row.conversation_pk or 0 for row in rows}))
            )
        )
    }
    return [
        _describe(row, owner[row.owner_pk], chats.get(row.conversation_pk or 0)) for row in rows
    ]


def _describe(row: ProfileRow, owner: Any, chat: Any) -> dict[str, Any]:
    return {
        "id": row.id,
        "text": row.text,
        "about": row.about,
        "origin": row.origin,
        "conversation": None if chat is None else chat.id,
        "private": chat is not None and bool(chat.private),
        "owner": owner.name,
        "user": owner.user,
        "created_at": iso(row.created_ms),
    }


def _read(row: Row[Any]) -> ProfileRow:
    return record(ProfileRow, row)


def _matching(rows: Iterable[ProfileRow], words: str) -> Iterable[ProfileRow]:
    wanted = fold_text(words)
    return (row for row in rows if wanted in fold_text(f"{row.about or ''} {row.text}"))
