"""The small frozen values that the policies pass among themselves."""

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Line:
    """One utterance of a span: who spoke, and the text as it was said.

    kind: said (also a whole message, with whatever marks stand in it), told by a narrator, or
    thought; aside: the words that say so behind the speaker's name. role: of the message, '' where
    there is none; at: which message of the span it is, from 0.
    """

    speaker: str
    text: str
    kind: Literal["said", "told", "thought"] = field(default="said", compare=False)
    aside: str = field(default="", compare=False)
    role: str = field(default="", compare=False)
    at: int = field(default=0, compare=False)

    @property
    def label(self) -> str:
        """The speaker as written before the text."""
        return f"{self.speaker} ({self.aside})" if self.aside else self.speaker


@dataclass(frozen=True, slots=True)
class Limits:
    """The numbers of one policy, all in characters, as planning uses them.

    profile, ledger, documents, pins: the most of each that a memory shows; pins have their room out
    of that of documents and ledger. rolling: each fold's chapters
    join the gist at once. messages: start, ceiling, headroom and keep count the messages of the
    tail, and memory and notes count nothing beside them.
    """

    start: int
    ceiling: int
    headroom: int
    keep: int
    split: int
    length: int
    stack: int
    gist_length: int
    profile: int = 0
    ledger: int = 0
    documents: int = 0
    pins: int = 0
    rolling: bool = False
    messages: bool = False

    @property
    def goal(self) -> int:
        """What memory and verbatim together may be after a fold."""
        return self.start - self.headroom

    @property
    def enough(self) -> int:
        """What may remain for a step to be worth its re-read: half the headroom is restored."""
        return self.start - self.headroom // 2

    @property
    def worth(self) -> int:
        """The least saving that is worth a step above the ceiling: a chapter's length."""
        return 1 if self.messages else self.length


@dataclass(frozen=True, slots=True)
class Mark:
    """One message as planning sees it: where it stands and what it costs, in characters.

    ``opens``: a verbatim tail may begin here (a user message). ``bound``: it belongs with the
    message before it (a tool's result) and no border may part the two. ``messages``: how many it
    stands for.
    """

    depth: int
    chars: int
    opens: bool
    bound: bool = False
    messages: int = 1

    def size(self, limits: Limits) -> int:
        """What it counts in a view with these limits."""
        return self.messages if limits.messages else self.chars


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of messages, by the depths of its first and last, with its characters."""

    first: int
    last: int
    chars: int


@dataclass(frozen=True, slots=True)
class ChapterState:
    """One chapter row: its span, and the length of its best version (None while pending)."""

    first: int
    last: int
    source_chars: int
    length: int | None
    stand_in: bool = False


@dataclass(frozen=True, slots=True)
class GistState:
    """A version of the gist: the depth of the last message it covers, and its length."""

    covers_to: int
    length: int


@dataclass(frozen=True, slots=True)
class ViewState:
    """One policy's view of one path, as planning sees it; depths are 1-based, sizes characters.

    ``border`` is the depth of the last folded message (0: none), ``memory`` what the memory
    shown now costs (0: none is shown), ``fixed`` what of a memory is neither gist nor chapter
    (header, profile, pins, threads) and will stand in it after the next fold.
    ``gist`` is the newest version lying on the path, which the next fold shows, ``stack`` the
    chapter rows behind it up to the border, ``coming`` the rows beyond the border without a
    gap. ``ahead`` are gists that end where one of the coming rows does, by where they end: a step
    that takes in all that one covers shows it in place of that. Lengths are those of the best
    versions. ``tail`` holds every message behind the border down to the newest, ``notes`` what the
    notes among them cost, which a fold drops.
    """

    border: int
    memory: int
    tail: tuple[Mark, ...]
    coming: tuple[ChapterState, ...] = ()
    stack: tuple[ChapterState, ...] = ()
    gist: GistState | None = None
    ahead: tuple[GistState, ...] = ()
    fixed: int = 0
    notes: int = 0

    @property
    def verbatim(self) -> int:
        """The characters of the verbatim tail."""
        return sum(mark.chars for mark in self.tail)

    @property
    def total(self) -> int:
        """Memory, verbatim and notes, in characters."""
        return self.memory + self.verbatim + self.notes

    def measure(self, limits: Limits) -> int:
        """What start and ceiling are compared with: the total, or the messages of the tail."""
        return sum(mark.messages for mark in self.tail) if limits.messages else self.total


@dataclass(frozen=True, slots=True)
class Debt:
    """The chapters to make: their spans, oldest first, and the border a fold will then reach."""

    border: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Fold:
    """One step of the border, or where it stays, a renewal of the memory alone.

    ``chapters`` and ``stand_ins`` are indices into ``ViewState.coming``: the rows that it takes
    in, and those among them for which a stand-in must be written now. ``new_spans`` have no row
    yet and need a stand-in too. A fold that writes any stand-in on the spot is a ``cut``.
    ``memory`` and ``verbatim`` are the sizes foreseen after it, in characters.
    """

    kind: Literal["fold", "cut"]
    border: int
    chapters: tuple[int, ...]
    stand_ins: tuple[int, ...]
    new_spans: tuple[Span, ...]
    memory: int
    verbatim: int


@dataclass(frozen=True, slots=True)
class Major:
    """A major GC: the old gist and the ``chapters`` (indices of the stack) become one gist."""

    covers_to: int
    chapters: tuple[int, ...]
