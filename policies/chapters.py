"""Cutting: a stretch of messages into spans for chapters, one long text into pieces.

All sizes are characters, that is code points. Oldest first everywhere.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

import regex

from policies.values import Line, Mark, Span

_BREAKS = (
    regex.compile(r"\n\s*\n"),
    regex.compile(r"\n"),
    regex.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+\s+|(?<![。！？])[。！？]++[」』”’）]*+"),
    regex.compile(r"\s+|[、，,;；]"),
)
_GRAPHEME = regex.compile(r"\X")


def cut_spans(marks: Sequence[Mark], split: int) -> tuple[Span, ...]:
    """Cut consecutive messages into as few spans of at most ``split`` characters as can be.

    The spans are even rather than full with a tiny rest, and begin where a tail may begin
    as far as that needs no further span. A bound message stays with the one before it. Only a
    message (with what is bound to it) that is itself larger than ``split`` makes a larger span,
    alone.
    """
    starts = [i for i, mark in enumerate(marks) if i == 0 or not mark.bound]
    edges = [*starts, len(marks)]
    sums = [0]
    for low, high in pairwise(edges):
        sums.append(sums[-1] + sum(mark.chars for mark in marks[low:high]))
    spans = []
    at, need = 0, _needs(sums, split)
    while at < len(starts):
        end = _next_cut(marks, edges, sums, need, at, split)
        low, high = edges[at], edges[end]
        spans.append(Span(marks[low].depth, marks[high - 1].depth, sums[end] - sums[at]))
        at = end
    return tuple(spans)


def _needs(sums: Sequence[int], split: int) -> list[int]:
    """The least number of spans from each group to the end."""
    count = len(sums) - 1
    needs = [0] * (count + 1)
    end = count
    for at in range(count - 1, -1, -1):
        while end > at + 1 and sums[end] - sums[at] > split:
            end -= 1
        needs[at] = 1 + needs[end]
    return needs


def _next_cut(
    marks: Sequence[Mark],
    edges: Sequence[int],
    sums: Sequence[int],
    need: Sequence[int],
    at: int,
    split: int,
) -> int:
    """Where the span that begins at group ``at`` ends: nearest to an even share."""
    count = len(sums) - 1
    share = sums[at] + (sums[count] - sums[at]) / need[at]
    ends = [at + 1] if need[at + 1] < need[at] else []
    for end in range(at + 2, count + 1):
        if sums[end] - sums[at] > split:
            break
        if need[end] < need[at]:
            ends.append(end)
    opening = [end for end in ends if end == count or marks[edges[end]].opens]
    return min(opening or ends, key=lambda end: abs(sums[end] - share))


def split_text(text: str, limit: int) -> list[str]:
    """Cut one text into pieces of at most ``limit`` characters whose joining gives it back.

    The pieces are about even. A cut falls behind a paragraph, else a line, a sentence, a word,
    and at worst between two graphemes; only a grapheme longer than ``limit`` is itself cut.
    Raises ValueError for a limit below 1.
    """
    if limit < 1:
        raise ValueError(f"a piece needs at least one character, not {limit}")
    pieces = []
    at = 0
    while len(text) - at > limit:
        end = _cut_point(text, at, limit)
        pieces.append(text[at:end])
        at = end
    if at < len(text):
        pieces.append(text[at:])
    return pieces


def _cut_point(text: str, at: int, limit: int) -> int:
    """Where the piece that begins at ``at`` ends: about an even share, at the best border."""
    rest = len(text) - at
    share = at - (-rest // -(-rest // limit))
    slack = (share - at) // 4
    near = (share - slack, min(at + limit, share + slack))
    far = ((at + share + 1) // 2, at + limit)
    for low, high in (near, far):
        for pattern in _BREAKS:
            ends = [m.end() for m in pattern.finditer(text, max(low - 1, at), high)]
            ends = [end for end in ends if low <= end and _parts_graphemes(text, end)]
            if ends:
                return min(ends, key=lambda end: abs(end - share))
    for high in (share, at + limit):
        end = _grapheme_end(text, at, high)
        if end > at:
            return end
    return at + limit


def _parts_graphemes(text: str, end: int) -> bool:
    """Whether a cut at ``end``, which stands behind white space or a stop, is a clean one."""
    found = _GRAPHEME.match(text, end - 1)
    return found is None or found.end() == end


def _grapheme_end(text: str, at: int, high: int) -> int:
    """The last grapheme border not behind ``high``; ``at`` where there is none between."""
    pair = text[high - 1 : high + 1]
    if pair.isascii() and pair != "\r\n":
        return high
    ends = (found.end() for found in _GRAPHEME.finditer(text, at))
    return max(takewhile(lambda end: end <= high, ends), default=at)


def group_lines(lines: Sequence[Line], limit: int) -> list[list[Line]]:
    """Group a span's lines for the summarizer calls of one chapter, even, none left out.

    Each group holds at most ``limit`` characters as ``line_chars`` counts them; a line that is
    longer goes out in pieces under its speaker's name, each in one group only. Raises
    ValueError where ``limit`` leaves no room beside a speaker's name.
    """
    pieces = [piece for line in lines for piece in _pieces(line, limit)]
    total = sum(map(line_chars, pieces))
    share = total / max(1, -(-total // limit))
    groups: list[list[Line]] = []
    filled = 0
    for piece in pieces:
        size = line_chars(piece)
        if not groups or filled + size > limit or filled >= share:
            groups.append([])
            filled = 0
        groups[-1].append(piece)
        filled += size
    return groups


def line_chars(line: Line) -> int:
    """What a line costs when written as ``speaker: text`` with a line break."""
    return len(line.label) + len(line.text) + 3


def _pieces(line: Line, limit: int) -> list[Line]:
    if line_chars(line) <= limit:
        return [line]
    room = limit - line_chars(replace(line, text=""))
    return [replace(line, text=piece) for piece in split_text(line.text, room)]
