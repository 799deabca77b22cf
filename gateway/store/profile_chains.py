"""Facts that took each other's place, and which of them stands. No function commits.

`replaces_pk` makes a chain of them: what stands first, then what gave way to it. A fact is active,
replaced, or deleted: by its owner, or rejected by a scrub, which also takes it out of its chain.
What is deleted keeps its text while a view shows it, and is emptied then. Whatever leaves a chain
or comes back into it, `settle` alone says what stands again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from sqlalchemy import Connection, select, update

from gateway.store.profile import (
    Moment,
    ProfileRow,
    end_facts,
    profile_facts,
    rows_by_pk,
    told_at,
    words_of,
)

_AT_ONCE = 500


def chains_holding(
    connection: Connection, owner_pk: int, pks: Collection[int]
) -> list[list[ProfileRow]]:
    """The chains of an owner that hold one of these facts, each from what stands, or stood last,
    to what gave way first."""
    if not pks:
        return []
    links = select(profile_facts.c.pk, profile_facts.c.replaces_pk)
    rows = connection.execute(links.where(profile_facts.c.owner_pk == owner_pk))
    chains = _chains({row.pk: row.replaces_pk for row in rows}, pks)
    wanted = [pk for chain in chains for pk in chain]
    by_pk = {
        row.pk: row
        for at in range(0, len(wanted), _AT_ONCE)
        for row in rows_by_pk(connection, wanted[at : at + _AT_ONCE])
    }
    return [[by_pk[pk] for pk in chain] for chain in chains]


def settle(connection: Connection, chain: Sequence[ProfileRow]) -> ProfileRow | None:
    """Let the fact stand that should, and no other of these, and link them in that order, the rest
    by when they were told; the one that stands. What becomes of deleted facts is not its to say."""
    is_alone = len(chain) == 1  # as most are: when it was told matters not
    told = {row.pk: (0, 0) if is_alone else told_at(connection, row) for row in chain}
    ranks = _rank(chain, told)
    stands = _standing(chain, ranks)
    gave_way = [row for row in chain if row.state == "active" and row != stands]
    if gave_way:
        since = max(row.created_ms for row in chain)
        end_facts(connection, [row.pk for row in gave_way], "replaced", since)
    if stands is not None and stands.state != "active":
        end_facts(connection, [stands.pk], "active", None)
    in_order = sorted(chain, key=lambda row: (row == stands, told[row.pk]), reverse=True)
    link(connection, in_order)
    return stands


def settle_all(connection: Connection, owner_pk: int, pks: Collection[int]) -> set[int]:
    """`settle` the chains that hold one of these facts; the row numbers of what stands in them."""
    chains = chains_holding(connection, owner_pk, pks)
    return {row.pk for chain in chains if (row := settle(connection, chain)) is not None}


def last_told(connection: Connection, chain: Sequence[ProfileRow]) -> Moment:
    """When the first fact of a chain, which stands, was told last in the same words, by whomever.
    An old span may be summarized late, or anew: what it tells is as old as its messages."""
    ranks = _rank(chain, {row.pk: told_at(connection, row) for row in chain})
    words = words_of(chain[0].text)
    same = [row for row in chain if row.state != "deleted" and words_of(row.text) == words]
    return max(ranks[row.pk].when for row in same)


def telling(row: ProfileRow) -> tuple[int | None, str]:
    """Who told a fact and in which words; of what was learned also once its text is gone."""
    if row.source is not None and row.origin == "model":
        return row.conversation_pk, row.source.rpartition(":")[2]
    return row.conversation_pk, words_of(row.text) or str(row.pk)


def link(connection: Connection, chain: Sequence[ProfileRow]) -> None:
    """Let each take the place of the next, and the last of none."""
    behind: int | None = None
    for row in reversed(chain):
        if row.replaces_pk != behind:
            connection.execute(
                update(profile_facts).where(profile_facts.c.pk == row.pk).values(replaces_pk=behind)
            )
        behind = row.pk


def unlink(connection: Connection, owner_pk: int, pks: Collection[int]) -> None:
    """Take facts out of their chains: what took the place of one takes that of the next one that is
    left."""
    for chain in chains_holding(connection, owner_pk, pks):
        link(connection, [row for row in chain if row.pk not in pks])


def reread(connection: Connection, chain: Sequence[ProfileRow]) -> list[ProfileRow]:
    """The same facts, in the same order, as they are by now."""
    by_pk = {row.pk: row for row in rows_by_pk(connection, [row.pk for row in chain])}
    return [by_pk[row.pk] for row in chain if row.pk in by_pk]


@dataclass(frozen=True, slots=True, order=True)
class _Rank:
    """When a fact was told last by whoever told it; of equal ones what stands before the other in
    the chain comes later."""

    when: Moment
    place: int


def _rank(chain: Sequence[ProfileRow], told: Mapping[int, Moment]) -> dict[int, _Rank]:
    last: dict[tuple[int | None, str], Moment] = {}
    for row in chain:
        last[telling(row)] = max(told[row.pk], last.get(telling(row), (0, 0)))
    return {row.pk: _Rank(last[telling(row)], -at) for at, row in enumerate(chain)}


def _standing(chain: Sequence[ProfileRow], ranks: Mapping[int, _Rank]) -> ProfileRow | None:
    """Of what is not deleted the one that was told last. An older word of one conversation, or of
    the owner's hand, is no more in force than the newer one, be that deleted too, unless the newer
    one is but another wording of it. Where the same words stand already, that row does which views
    show."""
    left = [row for row in chain if row.state != "deleted"]
    in_force = [
        row
        for row in left
        if not any(_outdates(other, row) and ranks[other.pk] > ranks[row.pk] for other in chain)
    ]
    if not in_force:
        return None
    last = max(in_force, key=lambda row: ranks[row.pk])
    words = words_of(last.text)
    return next((r for r in left if r.state == "active" and words_of(r.text) == words), last)


def _outdates(newer: ProfileRow, older: ProfileRow) -> bool:
    if newer.conversation_pk != older.conversation_pk:
        return False
    return newer.state != "deleted" or newer.source != older.source


def _chains(links: Mapping[int, int | None], pks: Collection[int]) -> list[list[int]]:
    """Of facts by what each took the place of, those that are linked to one of these, chain by
    chain. Where two took the place of one, the newer comes first."""
    above: dict[int, list[int]] = {}
    for pk, behind in links.items():
        if behind in links:
            above.setdefault(behind or 0, []).append(pk)
    found, seen = [], set[int]()
    for pk in sorted(links.keys() & set(pks), reverse=True):
        if pk not in seen:
            linked = _linked(pk, links, above)
            seen |= linked
            found.append(_in_order(linked, links, above))
    return found


def _linked(
    pk: int, links: Mapping[int, int | None], above: Mapping[int, Sequence[int]]
) -> set[int]:
    found, fresh = {pk}, [pk]
    while fresh:
        at = fresh.pop()
        beside = [*above.get(at, ())]
        if (behind := links[at]) is not None and behind in links:
            beside.append(behind)
        fresh += [each for each in beside if each not in found]
        found.update(beside)
    return found


def _in_order(
    pks: Collection[int], links: Mapping[int, int | None], above: Mapping[int, Sequence[int]]
) -> list[int]:
    waits = {pk: len(above.get(pk, ())) for pk in pks}
    ready = [-pk for pk in pks if not waits[pk]]
    heapify(ready)
    order: list[int] = []
    while ready:
        order.append(-heappop(ready))
        below = links[order[-1]]
        if below in waits:
            waits[below] -= 1
            if not waits[below]:
                heappush(ready, -below)
    return order
