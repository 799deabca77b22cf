"""A message in an index, packed into one number: enough to rank it without reading its row.

From the highest bits: the message's row number, its depth (1 = first of the conversation), how
long it is (the number of bits of its length in characters, at most 15), whether the user said it,
whether it ends in a question.
"""

import re
from dataclasses import dataclass

BY_USER = 0b01
ASKS = 0b10
_SIZE_AT, _SIZE_BITS = 2, 4
_DEPTH_AT, _DEPTH_BITS = 6, 20
PK_AT = 26
"""The row number is what is left of a place without its PK_AT lowest bits."""
DEEPEST = (1 << _DEPTH_BITS) - 1
"""The depth of the last message that an index can hold: a million."""
_MARKS = ("?", "？", "؟")
_NOTE = re.compile(r"\[[^\[\]]{0,500}\]\s*$")
_CLOSERS = "\"'”’»」』）)*_~ \n\t。"


@dataclass(frozen=True, slots=True)
class Place:
    """What a packed place says; size is the number of bits of the length in characters."""

    pk: int
    depth: int
    size: int
    by_user: bool
    asks: bool


def pack_place(pk: int, depth: int, text: str, by_user: bool) -> int:
    """The number for a message. ValueError beyond depth DEEPEST."""
    if not 0 < depth <= DEEPEST:
        raise ValueError(f"an index holds depths from 1 to {DEEPEST:,}, not {depth}")
    size = min(len(text).bit_length(), (1 << _SIZE_BITS) - 1)
    flags = BY_USER * by_user | ASKS * ends_asking(text)
    return pk << PK_AT | depth << _DEPTH_AT | size << _SIZE_AT | flags


def read_place(place: int) -> Place:
    """The parts of a packed place."""
    return Place(
        pk=place >> PK_AT,
        depth=depth_of(place),
        size=size_of(place),
        by_user=bool(place & BY_USER),
        asks=bool(place & ASKS),
    )


def depth_of(place: int) -> int:
    return place >> _DEPTH_AT & DEEPEST


def size_of(place: int) -> int:
    return place >> _SIZE_AT & (1 << _SIZE_BITS) - 1


def ends_asking(text: str) -> bool:
    """Whether a text ends in a question; a note in brackets after it ("[image]") aside."""
    end = _NOTE.sub("", text[-600:])
    return end.rstrip(_CLOSERS)[-1:] in _MARKS
