"""The order of the messages that a query finds, from posting lists alone.

A message counts for what it says and for what is said around it: the answer to a question that
holds the word counts nearly as much as a message that holds it, one beside it less, and a stretch
in which the word comes up again and again gains a little throughout. A name is what one side calls
the other, so it also tells whose words are asked for, and where in a long history.

The scores are sums over the query's terms of weight x rarity x closeness. The numbers were measured
on three annotated conversations (LoCoMo), joined: each was varied alone, and what any two of them
choose is no worse on the third. All lie on a plateau: half or double moves recall by a hundredth.
"""

import heapq
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from policies.recall.places import ASKS, BY_USER, size_of
from policies.recall.query import Query, QueryTerm

Posting = tuple[int, int]
"""(depth, packed place) of one message that holds a term; see places."""

MOST = 240
"""Messages of one ranking."""
_SEEDS, _WIDE, _MOST_LISTS = 100, 40, 14
_OWN_QUESTION = 0.8
_ANSWER, _AFTER, _BEFORE, _AFTER_2, _BEFORE_2 = 0.8, 0.4, 0.45, 0.2, 0.2
_STRETCH, _STRETCH_ONCE, _STRETCH_REACH = 0.35, 0.175, 8
_NAME_REACH, _NAME_LEAST = 30, 3
_WHOSE, _WHERE = 0.5, 0.7
_LENGTH = 0.1
_USUAL_SIZE = 8
# A conversation of a few lines makes no word rare.
_LEAST_MESSAGES = 200
# What must be said, and which share of all that could be: (of a statement, of a question).
_LEAST_SAID, _LEAST_SHARE = (1.2, 0.55), (0.3, 0.2)
_COUNTS, _OF_A_NAME, _LOOKED_AT = 0.4, 1.4, 5
# So many words at least, and which share of their weight says a thing again whole.
_WHOLE_WORDS, _WHOLE_SHARE = 4, 0.7


@dataclass(frozen=True, slots=True)
class Scored:
    """A message at a depth. place: its packed place where it holds a term itself, else None (it is
    there for what is said beside it). holds: it says some of what the message asks for."""

    depth: int
    score: float
    place: int | None

    @property
    def is_hit(self) -> bool:
        return self.place is not None


@dataclass(frozen=True, slots=True)
class Ranking:
    """Messages, best first (ties: the newest first). relevant: the best of them says enough of what
    the newest message is about to be worth a place beside it."""

    scored: tuple[Scored, ...]
    relevant: bool


NOTHING = Ranking((), False)


@dataclass(frozen=True, slots=True)
class _List:
    """The posting list of one query term, all its forms together."""

    hits: Mapping[int, int]
    depths: Sequence[int]
    weight: float
    rarity: float
    term: QueryTerm


def rank(
    query: Query,
    postings: Mapping[str, Sequence[Posting]],
    *,
    messages: int,
    border: int,
    neighbours: bool = True,
) -> Ranking:
    """Order what the posting lists of query.lookups hold.

    messages: how many the index holds. border: the deepest message that may be recalled; nothing
    beyond it is looked at. neighbours: whether messages beside a hit are ranked as well. The work
    is bounded by the length of the lists, not by that of the conversation.
    """
    lists = [made for term in query.terms if (made := _list(term, postings, messages, border))]
    if not lists:
        return NOTHING
    strongest = heapq.nlargest(_MOST_LISTS, lists, key=lambda made: made.weight)
    seeds = _seeds(strongest)
    depths = sorted(_around(seeds, border) if neighbours else seeds)
    held: dict[int, int] = {}
    for made in strongest:
        held.update(made.hits)
    places = [held.get(depth) for depth in depths]
    scores = _score(strongest, depths, _speakers(held, depths))
    worths = [s * _length_share(place) for s, place in zip(scores, places, strict=True)]
    # No two have one depth, so that places are never compared.
    order = sorted(zip(worths, depths, places, strict=True), reverse=True)
    scored = tuple(Scored(depth, score, place) for score, depth, place in order[:MOST] if score > 0)
    return Ranking(scored, _is_relevant(query, lists, scored, messages))


def _list(
    term: QueryTerm, postings: Mapping[str, Sequence[Posting]], messages: int, border: int
) -> _List | None:
    hits: dict[int, int] = {}
    for form in term.forms:
        hits.update(postings.get(form, ()))
    if hits and max(hits) > border:
        hits = {depth: place for depth, place in hits.items() if depth <= border}
    if not hits:
        return None
    rarity = _rarity(len(hits), messages)
    return _List(hits, sorted(hits), term.weight * rarity, rarity, term)


def _rarity(held: int, messages: int) -> float:
    """BM25's inverse document frequency."""
    total = max(messages, held)
    return log(1 + (total - held + 0.5) / (held + 0.5))


def _seeds(lists: Sequence[_List]) -> list[int]:
    """The depths of the messages that hold the most themselves, best first."""
    sums: dict[int, float] = {}
    for made in lists:
        weight = made.weight
        for depth in made.hits:
            sums[depth] = sums.get(depth, 0.0) + weight
    return [depth for _, depth in heapq.nlargest(_SEEDS, zip(sums.values(), sums, strict=True))]


def _around(seeds: Sequence[int], border: int) -> set[int]:
    """The seeds and what stands beside them, two steps from the best of them."""
    near = {depth + step for depth in seeds for step in (-1, 0, 1)}
    near.update(depth + step for depth in seeds[:_WIDE] for step in (-2, 2))
    return {depth for depth in near if 0 < depth <= border}


def _score(lists: Sequence[_List], depths: Sequence[int], speakers: Sequence[int]) -> list[float]:
    scores = [0.0] * len(depths)
    for made in lists:
        if made.term.name:
            _add_address(scores, made, depths, speakers)
        _add_near(scores, made, depths)
    return scores


def _add_near(scores: list[float], made: _List, depths: Sequence[int]) -> None:
    """Add what one word gives to the messages in whose stretch it comes up: one walk along both
    lists, so that a rare word costs what it has hits. Some five thousand steps a search: what
    `_closeness` says stands here once more, for a call would double the cost of a step."""
    weight, hits, ordered = made.weight, made.hits, made.depths
    get = hits.get
    index, at, last, count = 0, 0, len(ordered) - 1, len(depths)
    while index < count and at <= last:
        depth = depths[index]
        first = ordered[at]
        if first < depth - _STRETCH_REACH:
            at = bisect_left(ordered, depth - _STRETCH_REACH, at)
            continue
        if first > depth + _STRETCH_REACH:
            index = bisect_left(depths, first - _STRETCH_REACH, index)
            continue
        gain = _STRETCH_ONCE
        if at < last and ordered[at + 1] <= depth + _STRETCH_REACH:
            gain = _STRETCH
        if (own := get(depth)) is not None:
            gain += _OWN_QUESTION if own & ASKS else 1.0
        elif (before := get(depth - 1)) is not None:
            gain += _ANSWER if before & ASKS else _AFTER
        elif depth + 1 in hits:
            gain += _BEFORE
        elif depth - 2 in hits:
            gain += _AFTER_2
        elif depth + 2 in hits:
            gain += _BEFORE_2
        scores[index] += weight * gain
        index += 1


def _closeness(hits: Mapping[int, int], depth: int) -> float:
    """How near a message is to one that holds the term: 1 where it holds it itself."""
    own = hits.get(depth)
    if own is not None:
        return _OWN_QUESTION if own & ASKS else 1.0
    before = hits.get(depth - 1)
    if before is not None:
        return _ANSWER if before & ASKS else _AFTER
    if depth + 1 in hits:
        return _BEFORE
    if depth - 2 in hits:
        return _AFTER_2
    return _BEFORE_2 if depth + 2 in hits else 0.0


def _speakers(held: Mapping[int, int], depths: Sequence[int]) -> list[int]:
    """Who said the message at each depth: 1 the user, -1 another, 0 unknown. Where a message holds
    no term, its neighbour's speaker tells: they take turns."""
    found = []
    for depth in depths:
        place = held.get(depth)
        turn = 1
        if place is None:
            place, turn = held.get(depth - 1), -1
        if place is None:
            place = held.get(depth + 1)
        found.append(0 if place is None else turn if place & BY_USER else -turn)
    return found


def _add_address(
    scores: list[float], made: _List, depths: Sequence[int], speakers: Sequence[int]
) -> None:
    """Add what a name gives to the messages near which it comes up: who says it calls the other by
    it, so those of one side count more. Nothing where it is too rare to tell."""
    total = len(made.hits)
    if total < _NAME_LEAST:
        return
    by_user = sum(place & BY_USER for place in made.hits.values())
    # From -1 (always the other side is called so) to 1 (always the user).
    whose = _WHOSE * (1 - 2 * (by_user + 1) / (total + 2))
    ordered, at, last = made.depths, 0, total - 1
    for index, depth in enumerate(depths):
        while at <= last and ordered[at] < depth - _NAME_REACH:
            at += 1
        if at > last:
            break
        if ordered[at] <= depth + _NAME_REACH:
            often = at < last and ordered[at + 1] <= depth + _NAME_REACH
            gain = made.weight * (whose * speakers[index] + _WHERE)
            scores[index] += gain if often else gain / 2


# Of two messages that say as much the shorter one leaves more room; a little.
_LENGTH_SHARES = tuple(2 ** (-_LENGTH * max(0, size - _USUAL_SIZE)) for size in range(16))


def _length_share(place: int | None) -> float:
    return 1.0 if place is None else _LENGTH_SHARES[size_of(place)]


def _is_relevant(
    query: Query, lists: Sequence[_List], scored: Sequence[Scored], messages: int
) -> bool:
    """Whether one of the best says enough of what the newest message itself is about.

    Rarity is measured against the rarest word there can be. Enough is 0.55 for a question (one
    rare word, or two that are not common) and a fifth of all that it asks; 1.2 for a statement (two
    rare words, or one that is a name) and three tenths of it. Where the index is too small for any
    word to be rare, a message that says nearly all of it counts too.
    """
    most = _rarity(1, max(messages, _LEAST_MESSAGES))
    own = [made for made in lists if made.term.own]
    known = {made.term.forms[0] for made in lists}
    lost = sum(t.weight * t.need for t in query.terms if t.own and t.forms[0] not in known)
    whole = lost + sum(made.weight * made.term.need / most for made in own)
    least = max(_LEAST_SAID[query.asks], _LEAST_SHARE[query.asks] * whole)
    telling = [made for made in own if made.term.need]
    for one in scored[:_LOOKED_AT]:
        said = sum(
            made.weight / most * min(1.0, closeness) * (_OF_A_NAME if made.term.name else 1.0)
            for made in telling
            if (closeness := _closeness(made.hits, one.depth)) >= _COUNTS
        )
        if said >= least:
            return True
    return messages < _LEAST_MESSAGES and _is_said_whole(query, telling, scored)


def _is_said_whole(query: Query, telling: Sequence[_List], scored: Sequence[Scored]) -> bool:
    """Whether one of the best holds nearly every word of what the newest message is about."""
    asked = [term.weight * term.need for term in query.terms if term.own and term.need]
    if len(asked) < _WHOLE_WORDS:
        return False
    least = _WHOLE_SHARE * sum(asked)
    for one in scored[:_LOOKED_AT]:
        held = [made.term for made in telling if one.depth in made.hits]
        if sum(term.weight * term.need for term in held) >= least:
            return True
    return False
