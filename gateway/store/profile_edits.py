"""The owner's hand over the profile. No function commits.

A fact's text is never rewritten: an edit is a row of its own in the place of the old one. What is
deleted keeps its text while a view shows it, and its digests as long as its owner has any
conversation, so that none teaches it again (profile_learning says what they tell).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlalchemy import Connection, bindparam, delete, select, update

from gateway.errors import Conflict
from gateway.store.prepared import Prepared
from gateway.store.profile import (
    COLUMNS,
    ProfileRow,
    all_of,
    end_facts,
    insert_fact,
    profile_facts,
    rows_by_pk,
    words_of,
)
from gateway.store.profile_chains import chains_holding, link, reread, settle, unlink
from gateway.store.profile_learning import source_of
from gateway.store.rows import record
from gateway.store.shown import pks_shown, private_among
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
    """A fact and what took its place, oldest first, without what is deleted since; of one that does
    not stand behind another only itself."""
    if fact.state != "replaced":
        return [fact]
    (chain,) = chains_holding(connection, fact.owner_pk, [fact.pk])
    at = next(at for at, row in enumerate(chain) if row.pk == fact.pk)
    return [fact, *(row for row in reversed(chain[:at]) if row.state != "deleted")]


def add_fact(
    connection: Connection, owner_pk: int, text: str, about: str | None, now_ms: int
) -> ProfileRow:
    """A fact in the owner's own words. What was known about the same gives way to it, other than in
    a private conversation, which stands apart; what the owner wrote already stays as it is."""
    known = [row for row in all_of(connection, owner_pk) if row.state == "active"]
    apart = private_among(connection, {row.conversation_pk or 0 for row in known})
    known = [row for row in known if row.conversation_pk not in apart]
    same = [row for row in known if words_of(row.text) == words_of(text)]
    if about:
        same += [row for row in known if words_of(row.about or "") == words_of(about)]
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
    for before in _behind(connection, fact):
        is_other = (before.text, before.about) != (fact.text, fact.about)
        if is_other and before.text and before.state != "deleted":
            return edit_fact(connection, fact, before.text, before.about, now_ms, of=before)
    raise Conflict("Nothing stood in the place of this memory before.")


def delete_fact(
    connection: Connection, fact: ProfileRow, now_ms: int, *, at_once: bool = False
) -> None:
    """Delete a fact with all that it took the place of; what was deleted before stays so.

    Their digests stay, so that it is not learned again. A text that views still show stays until
    they fold, unless all is to go at once.
    """
    end_facts(connection, chain_of(connection, fact), "deleted", now_ms)
    purge_deleted(connection, fact.owner_pk, at_once=at_once)


def chain_of(connection: Connection, fact: ProfileRow) -> list[int]:
    """The row numbers of a fact and of what it took the place of, newest first, without what is
    deleted already."""
    rows = [fact, *_behind(connection, fact)]
    return [row.pk for row in reread(connection, rows) if row.state != "deleted"]


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
    stands again as if it had never been. False where it was not active any more."""
    found = [row for row in rows_by_pk(connection, [pk]) if row.state == "active"]
    for row in found:
        (chain,) = chains_holding(connection, row.owner_pk, [row.pk])
        end_facts(connection, [row.pk], "deleted", now_ms)
        link(connection, [row])
        settle(connection, [one for one in chain if one.pk != row.pk])
        purge_deleted(connection, row.owner_pk)
    return bool(found)


def release_facts(connection: Connection, conversation: ConversationRow) -> None:
    """Before a conversation is deleted, and with it what was learned there, or after it became
    private: where such a fact took the place of others, the one of them that was told last stands
    in its place, and what was learned there stands apart from it."""
    taught = select(profile_facts.c.pk).where(profile_facts.c.conversation_pk == conversation.pk)
    pks = set(connection.execute(taught).scalars())
    for chain in chains_holding(connection, conversation.owner_pk, pks):
        settle(connection, [row for row in chain if row.pk in pks])
        settle(connection, [row for row in chain if row.pk not in pks])


def keep_digests(connection: Connection, conversation: ConversationRow) -> None:
    """Before a conversation is deleted: of the facts that it taught and their owner deleted the
    digests stay, without a text or a place, for other conversations may have told them too. With
    the owner's last conversation all such digests go: there is nothing left to learn from."""
    owner_pk = conversation.owner_pk
    others = select(conversations.c.pk).where(
        conversations.c.owner_pk == owner_pk, conversations.c.pk != conversation.pk
    )
    is_deleted = (profile_facts.c.owner_pk == owner_pk, profile_facts.c.state == "deleted")
    if connection.execute(others.limit(1)).first() is None:
        _forget_digests(connection, owner_pk)
        return
    taught = select(profile_facts.c.pk).where(
        *is_deleted, profile_facts.c.conversation_pk == conversation.pk
    )
    pks = list(connection.execute(taught).scalars())
    unlink(connection, owner_pk, pks)
    connection.execute(
        update(profile_facts)
        .where(profile_facts.c.pk.in_(pks))
        .values(text="", about=None, conversation_pk=None, replaces_pk=None)
    )


def _behind(connection: Connection, fact: ProfileRow) -> Iterator[ProfileRow]:
    """What a fact took the place of, newest first."""
    for chain in chains_holding(connection, fact.owner_pk, [fact.pk]):
        at = next(at for at, row in enumerate(chain) if row.pk == fact.pk)
        yield from chain[at + 1 :]


# --- what is emptied -----------------------------------------------------------------------------

_WAITING = Prepared(
    select(*COLUMNS).where(
        profile_facts.c.owner_pk == bindparam("owner"),
        profile_facts.c.state == "deleted",
        profile_facts.c.text != "",
    )
)


def purge_deleted(connection: Connection, owner_pk: int, *, at_once: bool = False) -> int:
    """Empty the deleted facts of an owner that no view shows any more, or all; how many there were.
    Those that the owner wrote leave their chains, and digests in place of their words; of mended
    ones both stay, of what was learned and of what the owner made of it. Where the owner has no
    conversation there is nothing to learn from, and no digests stay. It is asked wherever a view
    may have ceased to show one; where none waits it costs one look by an index."""
    rows = [record(ProfileRow, row) for row in _WAITING.all(connection, owner=owner_pk)]
    if not rows:
        return 0
    waiting = {row.pk: row for row in rows}
    owned = select(conversations.c.pk).where(conversations.c.owner_pk == owner_pk)
    shown = set[int]() if at_once else pks_shown(connection, owned, "profile", waiting)
    gone = [row for pk, row in waiting.items() if pk not in shown]
    emptied = update(profile_facts).values(text="", about=None)
    taught = [row.pk for row in gone if row.source is not None]
    connection.execute(emptied.where(profile_facts.c.pk.in_(taught)))
    written = [row for row in gone if row.source is None]
    unlink(connection, owner_pk, {row.pk for row in written})
    for row in written:
        digests = {"source": source_of(row.text, row.about), "replaces_pk": None}
        connection.execute(emptied.where(profile_facts.c.pk == row.pk).values(**digests))
    for row in gone:
        if row.source is not None and row.origin == "owner":
            _keep_wording(connection, row)
    if connection.execute(owned.limit(1)).first() is None:
        _forget_digests(connection, owner_pk)
    return len(gone)


def _keep_wording(connection: Connection, fact: ProfileRow) -> None:
    """Digests of what its owner made of a learned fact, beside those of what was learned."""
    insert_fact(
        connection,
        owner_pk=fact.owner_pk,
        conversation_pk=None,
        text="",
        about=None,
        source=source_of(fact.text, fact.about),
        origin="owner",
        state="deleted",
        replaces_pk=None,
        created_ms=fact.created_ms,
        ended_ms=fact.ended_ms,
    )


def _forget_digests(connection: Connection, owner_pk: int) -> None:
    """Remove what stayed of deleted facts that no conversation holds."""
    connection.execute(
        delete(profile_facts).where(
            profile_facts.c.owner_pk == owner_pk,
            profile_facts.c.state == "deleted",
            profile_facts.c.conversation_pk.is_(None),
            profile_facts.c.text == "",
        )
    )
