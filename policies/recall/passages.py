"""From an order of messages to the lines that a budget has room for."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import regex

from policies.recall.places import PK_AT, size_of
from policies.recall.query import Query
from policies.recall.ranking import Ranking, Scored
from policies.recall.terms import index_terms

_READ_AT_ONCE = 16
_USUAL_CHARS = 120
_SHARE_OF_BUDGET = 3
_LEAST_PASSAGE = 160
_LEAST_CHARS = 24
_MOST_MISSED = 12
_LEAST_OF_BEST = 0.1
_SENTENCE = regex.compile(r"[^.!?。！？…\n]*(?:[.!?。！？…]+[\"'”’»」』）)]*|\n|$)\s*")
_LONGEST_SENTENCE = 400
# Reading every word of a pasted book would take longer than the rest of a search.
_LONG, _MOST_PLACES = 4_000, 50


@dataclass(frozen=True, slots=True)
class Line:
    """A message on the path that is searched: its row number and plain text."""

    pk: int
    text: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is shown of one message: text is all of it, or one unbroken part. hit: it holds a word
    of the query itself; else it stands beside one that does."""

    depth: int
    pk: int
    text: str
    whole: bool
    hit: bool
    score: float


Reader = Callable[[Sequence[int]], Mapping[int, Line]]
"""Gives the messages of a path at these depths; what it leaves out is passed over."""


def select(
    query: Query,
    ranking: Ranking,
    read: Reader,
    *,
    budget: int,
    line_chars: int,
    taken: Collection[int] = (),
) -> list[Chosen]:
    """The best messages that fit, oldest first; each costs its text and line_chars, in characters.

    A message of more than a third of the budget, or of more than is left, gives its best passage.
    Messages whose row numbers are in taken, those that stand on another path, and those that read
    leaves out are passed over; what scores a tenth of the best or less is left out.
    """
    room = budget
    chosen: list[Chosen] = []
    least = _LEAST_OF_BEST * ranking.scored[0].score if ranking.scored else 0.0
    waiting = [one for one in ranking.scored if one.score > least]
    cap = max(_LEAST_PASSAGE, budget // _SHARE_OF_BUDGET)
    at = missed = 0
    while at < len(waiting) and room - line_chars >= _LEAST_CHARS and missed < _MOST_MISSED:
        step = min(_READ_AT_ONCE, 1 + room // (_USUAL_CHARS + line_chars))
        batch = [one for one in waiting[at : at + step] if _may_fit(one, room - line_chars)]
        lines = read([one.depth for one in batch]) if batch else {}
        for one in batch:
            line = lines.get(one.depth)
            if line is None:
                continue  # however many are left out, the next one takes the place
            made = _show(query, one, line, min(cap, room - line_chars), taken)
            if made is None:
                missed += 1
                continue
            missed = 0
            chosen.append(made)
            room -= len(made.text) + line_chars
        at += step
    return sorted(chosen, key=lambda made: made.depth)


def _may_fit(one: Scored, room: int) -> bool:
    """Whether it is worth reading: an index tells of how many bits a message's length is."""
    if one.place is None or room >= _LEAST_PASSAGE:
        return True
    return 1 << max(0, size_of(one.place) - 1) <= room


def _show(
    query: Query, one: Scored, line: Line, limit: int, taken: Collection[int]
) -> Chosen | None:
    if not line.text or line.pk in taken:
        return None
    if one.place is not None and one.place >> PK_AT != line.pk:
        return None
    if len(line.text) <= limit:
        return Chosen(one.depth, line.pk, line.text, True, one.is_hit, one.score)
    if not one.is_hit or limit < _LEAST_PASSAGE:
        return None
    passage = cut_passage(line.text, query, limit)
    return Chosen(one.depth, line.pk, passage, False, True, one.score) if passage else None


def cut_passage(text: str, query: Query, limit: int) -> str:
    """The run of whole sentences of at most limit characters that holds most of the query.

    A sentence that is longer than that is cut at a blank; the first of equal runs wins. Empty where
    no run holds any of it. Of a text of more than 4,000 characters the stretch is read in which the
    words of the query stand closest.
    """
    weights = {form: term.weight for term in query.terms for form in term.forms}
    if len(text) > _LONG:
        text = _densest(text, weights)
    pieces = _sentences(text, min(limit, _LONGEST_SENTENCE))
    gains = [{t: weights[t] for t in index_terms(piece) if t in weights} for piece in pieces]
    best, span = 0.0, (0, 0)
    for start, first in enumerate(gains):
        if not first:
            continue
        seen: dict[str, float] = {}
        size = 0
        for end in range(start, len(pieces)):
            size += len(pieces[end])
            if size > limit:
                break
            seen |= gains[end]
            if (worth := sum(seen.values())) > best:
                best, span = worth, (start, end + 1)
    start, end = _widen(pieces, span, limit) if best else span
    return "".join(pieces[start:end]).strip()


def _densest(text: str, weights: Mapping[str, float]) -> str:
    """The stretch of a very long text in which the terms stand closest; its beginning where none of
    them stands as it is written. Terms are looked for as they are: most are beginnings of words."""
    lower = text.lower()
    found = sorted(
        (at, term) for term in weights for at in islice(_places(lower, term), _MOST_PLACES)
    )
    best, start = 0.0, 0
    for index, (at, _) in enumerate(found):
        near = {
            term: None
            for place, term in found[index : index + _MOST_PLACES]
            if place < at + _LONG // 2
        }
        if (worth := sum(weights[term] for term in near)) > best:
            best, start = worth, at
    return text[max(0, start - _LONG // 4) :][:_LONG]


def _places(text: str, term: str) -> Iterator[int]:
    at = text.find(term)
    while at >= 0:
        yield at
        at = text.find(term, at + 1)


def _widen(pieces: Sequence[str], span: tuple[int, int], limit: int) -> tuple[int, int]:
    """Fill what is left with what follows, then with what goes before."""
    start, end = span
    size = sum(map(len, pieces[start:end]))
    while end < len(pieces) and size + len(pieces[end]) <= limit:
        size += len(pieces[end])
        end += 1
    while start > 0 and size + len(pieces[start - 1]) <= limit:
        start -= 1
        size += len(pieces[start])
    return start, end


def _sentences(text: str, longest: int) -> list[str]:
    """The text in pieces that join to it again, none longer than `longest`."""
    pieces: list[str] = []
    for sentence in filter(None, _SENTENCE.findall(text)):
        rest = sentence
        while len(rest) > longest:
            blank = rest.rfind(" ", longest // 2, longest)
            cut = blank + 1 if blank > 0 else longest
            pieces.append(rest[:cut])
            rest = rest[cut:]
        pieces.append(rest)
    return pieces
