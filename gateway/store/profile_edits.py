"""The owner's hand over the profile. No function commits.

A fact's text is never rewritten: an edit is a row of its own in the place of the old one. What is
deleted keeps its text while a view shows it, and its digests as long as the conversation that told
it, so that it is not learned again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sqlalchemy import Connection, delete, select, update

from gateway.errors import Conflict
from gateway.store.profile import (
    COLUMNS,
    ProfileRow,
    all_of,
    end_facts,
    fold_text,
    insert_fact,
    profile_facts,
    rows_by_pk,
    told_at,
)
from gateway.store.rows import record
from gateway.store.shown import pks_shown
from gateway.store.transcript import ConversationRow, conversations


def find_fact(
    connection: Connection,
    owner_pks: Collection[int] | None,
    id: str,
    *,
    to_change: bool = False,
) -> ProfileRow | None:
    """An active fact by its id or one that it had before it was edited, among these owners' (None:
    everybody's).

    to_change: raises Conflict where the id is of a fact whose place a learned one took, which its
    owner may never have seen.
    """
    statement = select(*COLUMNS).where(profile_facts.c.id == id)
    if owner_pks is not None:
        statement = statement.where(profile_facts.c.owner_pk.in_(list(owner_pks)))
    row = connection.execute(statement).first()
    if row is None:
        return None
    steps = _followed(connection, record(ProfileRow, row))
    if steps[-1].state != "active":
        return None
    if to_change and any(step.origin != "owner" for step in steps[1:]):
        raise Conflict(
            f"Something newer was learned in the place of this memory: {steps[-1].id}. Change that "
            "one."
        )
    return steps[-1]


def _followed(connection: Connection, fact: ProfileRow) -> list[ProfileRow]:
    """A fact and what took its place, oldest first."""
    steps = [fact]
    while steps[-1].state == "replaced":
        row = connection.execute(
            select(*COLUMNS)
            .where(
                profile_facts.c.owner_pk == fact.owner_pk,
                profile_facts.c.replaces_pk == steps[-1].pk,
            )
            .order_by(profile_facts.c.pk.desc())
        ).first()
        if row is None or row.pk in {step.pk for step in steps}:
            break
        steps.append(record(ProfileRow, row))
    return steps


def add_fact(
    connection: Connection, owner_pk: int, text: str, about: str | None, now_ms: int
) -> ProfileRow:
    """A fact in the owner's own words. What was known about the same gives way to it; what the
    owner wrote already stays as it is."""
    known = [row for row in all_of(connection, owner_pk) if row.state == "active"]
    same = [row for row in known if fold_text(row.text) == fold_text(text)]
    if about:
        same += [row for row in known if fold_text(row.about or "") == fold_text(about)]
    for row in same:
        if (row.text, row.about, row.origin, row.source) == (text, about, "owner", None):
            return row
    pk = insert_fact(
        connection,
        owner_pk=owner_pk,
        conversation_pk=None,
        text=text,
        about=about,
        source=None,
        origin="owner",
        state="active",
        replaces_pk=same[0].pk if same else None,
        created_ms=now_ms,
        ended_ms=None,
    )
    end_facts(connection, [row.pk for row in same[:1]], "replaced", now_ms)
    return rows_by_pk(connection, [pk])[0]


def edit_fact(
    connection: Connection,
    fact: ProfileRow,
    text: str,
    about: str | None,
    now_ms: int,
    *,
    of: ProfileRow | None = None,
) -> ProfileRow:
    """The fact in other words, as a row of its own. What was learned in a conversation still goes
    with it, also when its owner mended the wording. of: the row whose words these are, where it is
    another: with its conversation they go."""
    told = fact if of is None else of
    pk = insert_fact(
        connection,
        owner_pk=fact.owner_pk,
        conversation_pk=told.conversation_pk,
        text=text,
        about=about,
        source=told.source,
        origin="owner",
        state="active",
        replaces_pk=fact.pk,
        created_ms=now_ms,
        ended_ms=None,
    )
    end_facts(connection, [fact.pk], "replaced", now_ms)
    return rows_by_pk(connection, [pk])[0]


def undo_edit(connection: Connection, fact: ProfileRow, now_ms: int) -> ProfileRow:
    """The words that this fact took the place of, in its place again. Raises Conflict where there
    are none, or their text is gone."""
    for before in _chain(connection, fact):
        if before.text and (before.text, before.about) != (fact.text, fact.about):
            return edit_fact(connection, fact, before.text, before.about, now_ms, of=before)
    raise Conflict("Nothing stood in the place of this memory before.")


def delete_fact(
    connection: Connection, fact: ProfileRow, now_ms: int, *, at_once: bool = False
) -> None:
    """Delete a fact with all that it took the place of.

    Their digests stay with the conversations that told them, so that it is not learned again. A
    text that views still show stays until they fold, unless all is to go at once.
    """
    end_facts(connection, chain_of(connection, fact), "deleted", now_ms)
    purge_deleted(connection, fact.owner_pk, at_once=at_once)


def chain_of(connection: Connection, fact: ProfileRow) -> list[int]:
    """The row numbers of a fact and of what it took the place of, newest first."""
    return [row.pk for row in _chain(connection, fact)]


def learned_in(connection: Connection, conversation_pk: int) -> list[ProfileRow]:
    """The active facts that were learned in this conversation, oldest first; those whose wording
    its owner mended have the origin owner."""
    rows = connection.execute(
        select(*COLUMNS)
        .where(
            profile_facts.c.conversation_pk == conversation_pk,
            profile_facts.c.state == "active",
        )
        .order_by(profile_facts.c.pk)
    )
    return [record(ProfileRow, row) for row in rows]


def reject_fact(connection: Connection, pk: int, now_ms: int) -> bool:
    """Take a bad fact out of the profile: it is not learned again, and what it took the place of
    stands again. False where it was not active any more."""
    found = [row for row in rows_by_pk(connection, [pk]) if row.state == "active"]
    for row in found:
        end_facts(connection, [row.pk], "deleted", now_ms)
        behind = [row for row in rows_by_pk(connection, [row.replaces_pk or 0]) if row.text]
        end_facts(connection, [row.pk for row in behind], "active", None)
        _link(connection, [row])
        purge_deleted(connection, row.owner_pk)
    return bool(found)


def _chain(connection: Connection, fact: ProfileRow) -> list[ProfileRow]:
    """A fact and what it took the place of, newest first."""
    by_pk = {row.pk: row for row in all_of(connection, fact.owner_pk)}
    chain, at = [], by_pk.get(fact.pk)
    while at is not None and at not in chain:
        chain.append(at)
        at = by_pk.get(at.replaces_pk or 0)
    return chain


def purge_deleted(connection: Connection, owner_pk: int, *, at_once: bool = False) -> int:
    """Empty the deleted facts of an owner that no view shows any more, or all; how many there were.
    Those that nothing could teach again go as a whole."""
    waiting = [row for row in all_of(connection, owner_pk) if row.state == "deleted" and row.text]
    if not waiting:
        return 0
    owned = select(conversations.c.pk).where(conversations.c.owner_pk == owner_pk)
    pks = [row.pk for row in waiting]
    shown = set[int]() if at_once else pks_shown(connection, owned, "profile", pks)
    gone = [row for row in waiting if row.pk not in shown]
    taught = [row.pk for row in gone if row.source is not None]
    connection.execute(
        update(profile_facts).where(profile_facts.c.pk.in_(taught)).values(text="", about=None)
    )
    unsourced = [row.pk for row in gone if row.source is None]
    connection.execute(delete(profile_facts).where(profile_facts.c.pk.in_(unsourced)))
    return len(gone)


def release_facts(connection: Connection, conversation: ConversationRow) -> None:
    """Before a conversation is deleted, and with it what was learned there, or after it became
    private: where such a fact took the place of others, the one of them that was told last stands
    in its place, and what was learned there stands apart from it."""
    taught = select(profile_facts.c.pk).where(profile_facts.c.conversation_pk == conversation.pk)
    if connection.execute(taught.limit(1)).first() is None:
        return
    for chain in _chains(all_of(connection, conversation.owner_pk)):
        left = [row for row in chain if row.conversation_pk != conversation.pk]
        if len(left) == len(chain):
            continue
        own = [row for row in chain if row.conversation_pk == conversation.pk]
        if chain[0].state == "active":
            end_facts(connection, [own[0].pk], "active", None)
        _link(connection, own)
        if left and chain[0].state == "active":
            left.sort(key=lambda row: told_at(connection, row), reverse=True)
            # Where the same words were told last, the row stays that views show.
            shown = [row for row in left if row.pk == chain[0].pk]
            if shown and fold_text(shown[0].text) == fold_text(left[0].text):
                left = shown + [row for row in left if row.pk != chain[0].pk]
            end_facts(connection, [left[0].pk], "active", None)
            rest = [row.pk for row in left[1:] if row.state == "active"]
            end_facts(connection, rest, "replaced", left[0].created_ms)
        _link(connection, left)


def _chains(rows: Sequence[ProfileRow]) -> Iterator[list[ProfileRow]]:
    """Each fact that stands, or stood last, with what it took the place of."""
    by_pk = {row.pk: row for row in rows}
    behind = {row.replaces_pk for row in rows}
    for row in rows:
        if row.pk not in behind:
            chain, at = [], by_pk.get(row.pk)
            while at is not None:
                chain.append(at)
                at = by_pk.get(at.replaces_pk or 0)
            yield chain


def _link(connection: Connection, chain: Sequence[ProfileRow]) -> None:
    """Let each take the place of the next."""
    behind: int | None = None
    for row in reversed(chain):
        if row.replaces_pk != behind:
            connection.execute(
                update(profile_facts).where(profile_facts.c.pk == row.pk).values(replaces_pk=behind)
            )
        behind = row.pk
