"""What chapters tell of their owners, taken into the profile. No function commits.

`source` says where a fact was learned and, in digests, of what it tells: the digest of the message
alone, of what it is about, and of its pairs of letters. By it a fact that was deleted, and whose
text is gone, is known when a summarizer tells it again in other words. Of what its owner wrote it
is made when the text goes, without a message; what they mended leaves both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from itertools import chain
from typing import Protocol

from sqlalchemy import Connection, func, select, update

from gateway.store.profile import (
    Moment,
    ProfileRow,
    comparable,
    end_facts,
    fold_text,
    insert_fact,
    one_line,
    profile_facts,
    rows_by_pk,
    source_content,
    told_at,
)
from gateway.store.profile_chains import last_told
from gateway.store.shown import private_among
from gateway.store.transcript import conversations, messages
from policies.ledger.additions import frame_of
from policies.likeness import letter_pairs
from policies.masking.finding import kinds_in

ALIKE = 0.45
"""The share of letter pairs from which on a fact of one span is taken for the one that its owner
deleted there. Paraphrases of one fact measured 0.45 to 0.86 in six languages, different facts about
one person 0.20 to 0.71: it errs on the side of what was deleted."""

SAME = 0.8
"""The share from which on two tellings of one message are one fact, whatever they are about."""


class Says(Protocol):
    """What a fact says, and what about."""

    @property
    def text(self) -> str: ...

    @property
    def about(self) -> str | None: ...


class Telling(Says, Protocol):
    """A fact as a judged chapter tells it (an entry of the ledger). source_pk: the message that
    bears it out."""

    @property
    def source_pk(self) -> int | None: ...


def personal_kinds(fact: Says) -> frozenset[str]:
    """The kinds of values for which a fact is not learned; none for one that may be."""
    return kinds_in(f"{fact.text}\n{fact.about or ''}")


@dataclass(frozen=True, slots=True)
class Told:
    """The same of other origin."""

    text: str
    about: str | None
    source_pk: int | None


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
    one's place; newer is what was said later, whenever it was summarized. What this conversation
    taught before is not learned twice; what another one taught as well stands behind it. What the
    owner deleted is not learned again: from the same words nothing, from the same span nothing like
    it, and from nothing that was said before the deletion, in whatever conversation; a copy of a
    chat says what it says when the first one did. Nothing is learned of a private conversation, and
    no fact that holds a mail address, a number of a person or of their money: those are for their
    owner alone to add.
    """
    told = [fact for fact in told if not personal_kinds(fact)]
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
        self._first: dict[str, int] = {}
        known = comparable(connection, owner_pk)
        # What a private conversation tells stands apart: it neither gives way nor hides anything.
        apart = private_among(connection, {row.conversation_pk or 0 for row in known})
        self._known = [
            _Known(row)
            for row in known
            if row.state == "deleted" or row.conversation_pk not in apart
        ]
        self._fresh: set[int] = set()

    def take(self, fact: Telling) -> bool:
        if fact.source_pk is None or fact.source_pk not in self._said:
            return False
        content, said_ms = self._said[fact.source_pk]
        source = _Source.describe(content, fact.about, fact.text)
        if any(self._is_known(known, source, said_ms) for known in self._known):
            return False
        told = _Form.of(fact.text, fact.about)
        same = self._find_same(told, source)
        when = (said_ms, fact.source_pk)
        if same is not None and (
            fold_text(same.text) == told.text
            or last_told(self._connection, self._chain(same)) >= when
        ):
            self._put_behind(same, fact, source, when)
            return False
        pk = self._add(fact, source, "active", None if same is None else same.pk)
        if same is not None:
            end_facts(self._connection, [same.pk], "replaced", self._now_ms)
        self._keep(pk, same)
        return True

    def _is_known(self, known: _Known, source: _Source, said_ms: int) -> bool:
        """Whether this conversation taught it before, or it is deleted."""
        row = known.row
        if row.state == "deleted":
            return self._is_deleted(known, source, said_ms)
        if row.source is None:
            return False
        if row.conversation_pk != self._conversation_pk or known.place != source.place:
            return False
        is_about = row.pk not in self._fresh and known.source.is_about(source)
        return is_about or known.source.share(source) >= SAME

    def _is_deleted(self, known: _Known, source: _Source, said_ms: int) -> bool:
        """Whether this is what its owner deleted: told by the same message, by one of the same
        span, or by any that was said before it was deleted."""
        if known.place == source.place:
            return True
        is_near = known.place in self._contents
        least = ALIKE if is_near else SAME
        if not any(one.is_about(source) or one.share(source) >= least for one in known.wordings):
            return False
        ended_ms = known.row.ended_ms or 0
        return is_near or said_ms <= ended_ms or self._first_said(source.place) <= ended_ms

    def _first_said(self, content: str) -> int:
        """When a message was first stored, in any conversation of its owner that is left: a client
        may have sent a copy of an old chat under a new id."""
        if content not in self._first:
            asked = (
                select(func.min(messages.c.created_ms))
                .join(conversations, conversations.c.pk == messages.c.conversation_pk)
                .where(conversations.c.owner_pk == self._owner_pk, messages.c.content == content)
            )
            self._first[content] = self._connection.execute(asked).scalar_one()
        return self._first[content]

    def _find_same(self, told: _Form, source: _Source) -> ProfileRow | None:
        """What stands and tells the same: in the same words, or else what this takes the place of.
        Of two that one chapter told about one subject each is itself, told again."""
        rows = [known for known in self._known if known.row.state == "active"]
        in_words = (known.row for known in rows if known.form.text == told.text)
        alike = (known.row for known in rows if self._is_same(known, told, source))
        return next(chain(in_words, alike), None)

    def _is_same(self, known: _Known, told: _Form, source: _Source) -> bool:
        """Whether one takes the other's place, as in the ledger; what one chapter tells about one
        subject stands side by side."""
        if known.row.pk in self._fresh:
            return False
        is_retold = known.place == source.place and known.source.share(source) >= SAME
        return is_retold or known.form.is_replaced_by(told)

    def _chain(self, row: ProfileRow) -> list[ProfileRow]:
        """A fact that stands, and what it took the place of."""
        found = [row]
        while (behind := self._behind(found[-1])) is not None:
            found.append(behind)
        return found

    def _put_behind(self, same: ProfileRow, fact: Telling, source: _Source, when: Moment) -> None:
        """Keep what does not take a place, by its time among those that lost theirs: should the
        conversations of the newer ones be deleted, it takes it then."""
        before, after = same, self._behind(same)
        while after is not None and told_at(self._connection, after) >= when:
            before, after = after, self._behind(after)
        pk = self._add(fact, source, "replaced", before.replaces_pk)
        self._connection.execute(
            update(profile_facts).where(profile_facts.c.pk == before.pk).values(replaces_pk=pk)
        )
        self._keep(pk, before)

    def _behind(self, row: ProfileRow) -> ProfileRow | None:
        """What this fact took the place of."""
        if row.replaces_pk is None:
            return None
        return next(iter(rows_by_pk(self._connection, [row.replaces_pk])), None)

    def _add(self, fact: Telling, source: _Source, state: str, replaces_pk: int | None) -> int:
        return insert_fact(
            self._connection,
            owner_pk=self._owner_pk,
            conversation_pk=self._conversation_pk,
            text=one_line(fact.text),
            about=one_line(fact.about) or None if fact.about else None,
            source=str(source),
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
        fresh = [_Known(row) for row in rows_by_pk(self._connection, pks)]
        self._known = [known for known in self._known if known.row.pk not in pks] + fresh


@dataclass(frozen=True, slots=True)
class _Form:
    """A fact as it is compared: its text, what it is about, and its frame without numbers and
    names, by which "is 32" gives way to "is 33"."""

    text: str
    about: str
    frame: str

    @classmethod
    def of(cls, text: str, about: str | None) -> _Form:
        return cls(fold_text(text), fold_text(about or ""), frame_of(text))

    def is_replaced_by(self, newer: _Form) -> bool:
        """As policies.ledger.additions.supersedes, for texts that are not the same."""
        if self.about and self.about == newer.about:
            return True
        return self.frame == newer.frame and any(map(str.isalpha, newer.frame))


@dataclass(frozen=True, slots=True)
class _Source:
    """Where a fact was learned and what it tells, as digests."""

    place: str
    about: str
    pairs: frozenset[str]

    @classmethod
    def describe(cls, content: str, about: str | None, text: str) -> _Source:
        """content: the digest of the message alone."""
        named = fold_text(about or "")
        pairs = frozenset(_digest(pair, 2) for pair in letter_pairs(fold_text(text)))
        return cls(content, _digest(named, 6) if named else "", pairs)

    @classmethod
    def read(cls, stored: str) -> _Source:
        place, about, pairs = stored.split(":")
        return cls(place, about, frozenset(pairs[at : at + 4] for at in range(0, len(pairs), 4)))

    def __str__(self) -> str:
        return f"{self.place}:{self.about}:{''.join(sorted(self.pairs))}"

    def is_about(self, other: _Source) -> bool:
        return bool(self.about) and self.about == other.about

    def share(self, other: _Source) -> float:
        """Of the pairs of the shorter text the share that stands in the other one too."""
        return len(self.pairs & other.pairs) / max(1, min(len(self.pairs), len(other.pairs)))


@dataclass(frozen=True)
class _Known:
    """A fact that is stored, with what it is compared by, read when it is needed."""

    row: ProfileRow

    @property
    def place(self) -> str | None:
        return source_content(self.row)

    @cached_property
    def source(self) -> _Source:
        """What it tells, or told."""
        if self.row.source is None:
            return _Source.describe("", self.row.about, self.row.text)
        return _Source.read(self.row.source)

    @cached_property
    def wordings(self) -> tuple[_Source, ...]:
        """The same, and what it says as long as its text is there: its owner may have mended it."""
        if self.row.source is None or not self.row.text:
            return (self.source,)
        return self.source, _Source.describe("", self.row.about, self.row.text)

    @cached_property
    def form(self) -> _Form:
        return _Form.of(self.row.text, self.row.about)


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


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).hexdigest()


def source_of(text: str, about: str | None) -> str:
    """What stands in `source` of what its owner wrote and deleted: digests, and no message."""
    return str(_Source.describe("", about, text))


def tells_same_words(row: ProfileRow, text: str, about: str | None) -> bool:
    """Whether a fact was learned in such words; never where its owner wrote it. Its text may be
    gone, or its owner may have mended it: what counts is what was learned."""
    if row.source is None:
        return False
    return _Source.read(row.source).share(_Source.describe("", about, text)) >= SAME


def tells_about(row: ProfileRow, text: str, about: str | None) -> bool:
    """The same of what it is about."""
    if row.source is None:
        return False
    return _Source.read(row.source).is_about(_Source.describe("", about, text))


def takes_place_of(row: ProfileRow, other: ProfileRow) -> bool:
    """Whether one of two facts would take the other's place if it were told after it."""
    one, two = _Form.of(row.text, row.about), _Form.of(other.text, other.about)
    return one.text == two.text or two.is_replaced_by(one)
