"""What an alignment compares, and what it finds."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from policies.likeness import Peeled

HEADING = 4
"""Messages in place of a trimmed head that are fillers and summaries; more are a history."""


@dataclass(frozen=True, slots=True)
class Spoken:
    """One message, sent or stored: its role, its plain text, the digest of what identifies it,
    whether calls or results tie it to others, and, of stored ones, whether it is a reply that the
    gateway gave."""

    role: str
    text: str
    content: str
    bound: bool = False
    produced: bool = False


@dataclass(frozen=True, slots=True)
class Lore:
    """What a client was seen to add: notes by their text, and what it puts around a message."""

    notes: tuple[str, ...] = ()
    wrappings: tuple[Peeled, ...] = ()

    def __or__(self, other: "Lore") -> "Lore":
        notes = dict.fromkeys((*self.notes, *other.notes))
        wrappings = dict.fromkeys((*self.wrappings, *other.wrappings))
        return Lore(tuple(notes), tuple(wrappings))


@dataclass(frozen=True, slots=True)
class Window:
    """What stands before the messages that are compared.

    cut, below: how many sent and stored ones were not looked at. rooted: before them the history
    is known word for word (else they reach to the root); pinned: it is the opening alone;
    answered: it ends with a reply.
    """

    cut: int = 0
    below: int = 0
    rooted: bool = False
    pinned: bool = False
    answered: bool = True


class Piece(NamedTuple):
    """A message of the new path: a stored one told again, or a sent one; text: what of the sent
    one was said, where something stands around it."""

    kept: int | None
    sent: int | None
    text: str | None = None


class Insertion(NamedTuple):
    """A sent message that is the client's own; depth as in `Alignment`, -1 for the very head."""

    sent: int
    depth: int
    kind: Literal["note", "heading"]


class Around(NamedTuple):
    """Text that a client put before and after the message at this depth, in the sent one."""

    sent: int
    depth: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Alignment:
    """The path that the client tells of. Depths count from 0: the message before the first stored
    one that was compared.

    base: how many of the stored ones stay as they stand; pieces follow below them. depths: of each
    sent message, the depth of the message that it stands for, or after which it stands.
    pairs: messages that were found again, replies: those of them that the gateway gave.
    """

    base: int
    pieces: tuple[Piece, ...]
    depths: tuple[int, ...]
    insertions: tuple[Insertion, ...]
    arounds: tuple[Around, ...]
    pairs: int
    replies: int


class Pair(NamedTuple):
    """A sent message and the stored ones that it stands for. unwrapped: something stood around
    the stored one that the client has taken back."""

    sent: int
    first: int
    last: int
    unwrapped: bool = False


class Op(NamedTuple):
    """One step along the path. what: keep or drop a stored message; add, note or heading for a
    sent one."""

    what: Literal["keep", "drop", "add", "note", "heading"]
    which: int
