"""Where a history that its client does not tell word for word stands in the transcript.

Clients trim the head, put notes between messages, join turns of one role, prefix names and put
retrieved text around the newest message. The alignment is anchored on a reply that the gateway
gave and walks from there to both ends.

An insertion between two messages that are known to follow each other is the client's own. A change
is taken as an edit, until the client takes it back: what it takes back was its own (`Lore`), and
is known from then on. What cannot be told is not aligned (None), and the caller adds all of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from policies.likeness import (
    Form,
    Peeled,
    count_squashed,
    find_wrapping,
    is_alike,
    peel,
    share_words,
    unwrap,
)

_ANCHORS = 6
"""Newest replies of a history that are tried as the anchor."""
_HOP = 12
"""Messages that may stand between two matches on either side."""
_SQUASHED = 8
"""Turns that one message may join."""
_TRIMMED = 8
"""A gap of this many stored messages or more is a trimmed history, a smaller one a deletion."""
_HEADING = 4
"""Messages in place of a trimmed head that are fillers and summaries; more are a history."""
_EDITED, _LIKE_NOTE, _SAME_NOTE = 0.15, 0.5, 0.8
"""Shares of common words: below the first nothing was edited, above the others a text is much like
a known note, or the same note with another figure in it."""
_ROUNDS = 3
"""A note that is found out may show another to be one."""
_PRELUDE = 3
"""Messages at the root of which one may be a note that stands elsewhere now."""
_PLAIN = 12
"""Characters of a text below which a person says it twice without meaning anything by it."""
_COPIES = 64
"""A message that vanished further back than this stays: nothing is told anew for it."""
_SURE = 40
"""Characters of a message that is found again on its own, without its neighbour."""


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


class _Pair(NamedTuple):
    """A sent message and the stored ones that it stands for. unwrapped: something stood around
    the stored one that the client has taken back."""

    sent: int
    first: int
    last: int
    unwrapped: bool = False


class _Op(NamedTuple):
    """One step along the path. what: keep or drop a stored message; add, note or heading for a
    sent one."""

    what: Literal["keep", "drop", "add", "note", "heading"]
    which: int


def align(
    sent: Sequence[Spoken], kept: Sequence[Spoken], lore: Lore, window: Window
) -> Alignment | None:
    """Align a history (oldest first) with stored messages, consecutive ones of one path.

    None where no reply of the gateway's is found in both, or what differs cannot be told apart.
    Costs a small multiple of the number of messages.
    """
    found, learned = _attempt(sent, kept, lore, window)
    for _ in range(_ROUNDS):
        if found is None or learned == Lore():
            break
        lore |= learned
        found, learned = _attempt(sent, kept, lore, window)
    return found


def _attempt(
    sent: Sequence[Spoken], kept: Sequence[Spoken], lore: Lore, window: Window
) -> tuple[Alignment | None, Lore]:
    eye = _Eye(sent, kept, lore)
    anchor = _find_anchor(eye, window)
    if anchor is None:
        return _add_all(eye, window), Lore()
    above, i, j = _walk_back(eye, anchor.sent - 1, anchor.first - 1)
    pairs = [*reversed(above), anchor, *_walk_on(eye, anchor.sent + 1, anchor.last + 1)]
    sorter = _Sorter(eye, window, pairs)
    head = sorter.sort_head(i, j)
    if head is None:
        return None, Lore()
    ops = [*head, *sorter.sort_body(), *sorter.sort_end()]
    ops = _spare(sorter.uncross(ops), pairs)
    return _draw(eye, pairs, ops, sorter), sorter.learned()


def _add_all(eye: "_Eye", window: Window) -> Alignment | None:
    """Behind a known history that holds the newest reply, all is new but for the client's own."""
    replies = (i for i, message in enumerate(eye.sent) if message.role == "assistant")
    if not window.rooted or not all(map(eye.is_note, replies)):
        return None
    sorter = _Sorter(eye, window, ())
    return _draw(eye, (), list(sorter.sort_end()), sorter)


class _Eye:
    """Compares sent messages with stored ones; forms are made once."""

    def __init__(self, sent: Sequence[Spoken], kept: Sequence[Spoken], lore: Lore) -> None:
        self.sent, self.kept, self.lore = sent, kept, lore
        self.notes = frozenset(lore.notes)
        self.peeled = [self._peel(message) for message in sent]
        self._sent: list[Form | None] = [None] * len(sent)
        self._kept: list[Form | None] = [None] * len(kept)

    def _peel(self, message: Spoken) -> Peeled:
        text = message.text
        if message.bound or not self.notes:
            return Peeled("", text, "")
        return peel(text, self.lore.notes)

    def is_note(self, i: int) -> bool:
        return (self.sent[i].text).strip() in self.notes

    def resembles_note(self, i: int) -> bool:
        """Whether a message is much like a known note: one that changes from turn to turn."""
        return any(share_words(self.sent[i].text, note) > _LIKE_NOTE for note in self.notes)

    def _form(self, i: int) -> Form:
        form = self._sent[i]
        if form is None:
            form = self._sent[i] = Form(self.peeled[i].text)
        return form

    def _stored(self, j: int) -> Form:
        form = self._kept[j]
        if form is None:
            form = self._kept[j] = Form(self.kept[j].text)
        return form

    def is_exact(self, i: int, last: int) -> bool:
        return self.sent[i].content == self.kept[last].content

    def take(self, i: int, j: int) -> int:
        """How many stored messages, the last of them j, the sent one stands for; 0: another."""
        one, other = self.sent[i], self.kept[j]
        if one.content == other.content:
            return 1
        if not self._is_comparable(one, j):
            return 0
        if is_alike(self._form(i), self._stored(j)) or self._is_wrapped(i, j):
            return 1
        if j == 0 or not self._is_comparable(one, j - 1):
            return 0
        return count_squashed(self._form(i), self._run(one, j))

    def _is_wrapped(self, i: int, j: int) -> bool:
        """Whether a client that is known to put notes around messages did so with a stored one."""
        if not self.lore.wrappings or self.sent[i].role != "user":
            return False
        wrapping = find_wrapping(self.sent[i].text, self.kept[j].text)
        if wrapping is None or self.find_wrapping(i, j) is not None:
            return False
        self.peeled[i] = wrapping
        return True

    def _run(self, one: Spoken, j: int) -> Iterator[Form]:
        for at in range(j, max(-1, j - _SQUASHED), -1):
            if not self._is_comparable(one, at):
                return
            yield self._stored(at)

    def _is_comparable(self, one: Spoken, j: int) -> bool:
        other = self.kept[j]
        return one.role == other.role and not (one.bound or other.bound) and other.text is not None

    def find_from(self, i: int, j: int) -> int | None:
        """The last of the stored messages from j on that the sent one stands for."""
        for last in range(j, min(len(self.kept), j + _SQUASHED)):
            if self.take(i, last) == last - j + 1:
                return last
        return None

    def find_wrapping(self, i: int, j: int) -> Peeled | None:
        """What stood around a person's message when it was new, and does no longer."""
        one, other = self.sent[i], self.kept[j]
        if other.role != "user" or not self._is_comparable(one, j) or self.is_note(i):
            return None
        return find_wrapping(other.text, self.peeled[i].text)

    def is_forgettable(self, j: int) -> bool:
        """Calls, results and empty turns: clients leave them out without meaning anything."""
        message = self.kept[j]
        return message.bound or not message.text.strip()


def _find_anchor(eye: _Eye, window: Window) -> _Pair | None:
    """The newest reply of the history that is a stored one of the gateway's, with what stood
    before it before it; of several the one with most in common, then the newest."""
    replies = [i for i, message in enumerate(eye.sent) if message.role == "assistant"]
    for i in reversed(replies[-_ANCHORS:]):
        best: tuple[int, bool, int, int] | None = None
        for j in range(len(eye.kept) - 1, -1, -1):
            if not eye.kept[j].produced:
                continue
            if not (taken := eye.take(i, j)):
                continue
            context = len(_walk_back(eye, i - 1, j - taken, limit=3)[0])
            whole = window.below == window.cut == 0
            agrees = whole and (j - taken + 1 == i or (window.rooted and j < taken))
            rank = (context, agrees, j, taken)
            if (context or agrees or i == 0) and (best is None or rank > best):
                best = rank
        if best is not None:
            return _Pair(i, best[2] - best[3] + 1, best[2])
    return None


def _walk_back(eye: _Eye, i: int, j: int, limit: int | None = None) -> tuple[list[_Pair], int, int]:
    """Pairs from here to the head, newest first, and where the walk ended on either side."""
    pairs: list[_Pair] = []
    while i >= 0 and j >= 0 and (limit is None or len(pairs) < limit):
        if taken := eye.take(i, j):
            pairs.append(_Pair(i, j - taken + 1, j))
            i, j = i - 1, j - taken
            continue
        if eye.find_wrapping(i, j) is not None:
            pairs.append(_Pair(i, j, j, unwrapped=True))
            i, j = i - 1, j - 1
            continue
        hop = _find_hop(eye, i, j)
        if hop is None:
            break
        i, j = i - hop[0], j - hop[1]
    return pairs, i, j


def _find_hop(eye: _Eye, i: int, j: int) -> tuple[int, int] | None:
    """The shortest way over what differs: (sent, stored) messages to pass; insertions first."""
    for total in range(1, 2 * _HOP + 1):
        for over in range(max(0, total - _HOP), min(total, _HOP) + 1):
            di, dj = total - over, over
            if i >= di and j >= dj and _is_sure(eye, i - di, j - dj):
                return di, dj
    return None


def _is_sure(eye: _Eye, i: int, j: int) -> bool:
    """Whether these two are the same beyond chance: long, or at the head, or with neighbours."""
    taken = eye.take(i, j)
    if not taken:
        return eye.find_wrapping(i, j) is not None
    if i == 0 or j < taken or len(eye.sent[i].text) >= _SURE:
        return True
    before = range(max(0, i - _HEADING), i)
    return any(eye.take(at, j - taken) for at in before)


def _walk_on(eye: _Eye, i: int, j: int) -> Iterator[_Pair]:
    """Pairs behind the anchor: what was said after it already (a reply is asked for again)."""
    while i < len(eye.sent) and j < len(eye.kept):
        last = eye.find_from(i, j)
        if last is not None:
            yield _Pair(i, j, last)
            i, j = i + 1, last + 1
            continue
        if eye.find_wrapping(i, j) is not None:
            yield _Pair(i, j, j, unwrapped=True)
            i, j = i + 1, j + 1
            continue
        for di, dj in ((1, 0), (0, 1), (2, 0), (1, 1)):
            if i + di < len(eye.sent) and j + dj < len(eye.kept):
                if eye.find_from(i + di, j + dj) is not None:
                    i, j = i + di, j + dj
                    break
        else:
            return


@dataclass
class _Sorter:
    """Sorts what was not found again: said, the client's own, edited, deleted, or forgotten."""

    eye: _Eye
    window: Window
    pairs: Sequence[_Pair]
    texts: dict[int, Peeled] = field(default_factory=dict)
    _notes: list[str] = field(default_factory=list)
    _wrappings: list[Peeled] = field(default_factory=list)

    def learned(self) -> Lore:
        """What the client has taken back, and is new to its lore."""
        known = self.eye.lore
        return Lore(
            tuple(note for note in self._notes if note not in self.eye.notes),
            tuple(each for each in self._wrappings if each not in known.wrappings),
        )

    def sort_head(self, i: int, j: int) -> list[_Op] | None:
        """What stands before the first pair; i, j: the last of it on either side."""
        window = self.window
        kept = [_Op("keep", at) for at in range(j + 1)]
        sent, stored = window.cut + i + 1, window.below + j + 1
        if sent == 0:
            return self._sort_gap(j)
        if stored == 0:
            return self._sort_prelude(i)
        agrees = sent == stored and window.cut == window.below == 0
        if agrees and not self._is_filled(i, j):
            return self._sort_group(range(i + 1), range(j + 1))
        if sent <= _HEADING and (not window.rooted or window.pinned or stored >= _TRIMMED):
            return [*(_Op("heading", at) for at in range(i + 1)), *kept]
        if window.rooted:
            return kept if window.below and self._rewrites() else None
        return kept if len(self.pairs) > _HEADING else None

    def _sort_gap(self, j: int) -> list[_Op]:
        """Stored messages that the client does not tell of: trimmed, but for what has moved."""
        window, stored = self.window, range(j + 1)
        if window.rooted and not window.pinned and window.below + len(stored) < _TRIMMED:
            return self._drop(stored)
        moved = [at for at in stored if self._has_moved(at)]
        if moved and window.rooted:
            return self._drop(stored)
        ops: list[_Op] = []
        for at in stored:
            ops += self._drop([at]) if at in moved else [_Op("keep", at)]
        return ops

    def _has_moved(self, j: int) -> bool:
        """Whether a stored message of the head is a note of the client's: it stands elsewhere now,
        where none of its kind was, or another much like it."""
        kept, pairs = self.eye.kept, self.pairs
        if self.window.below or pairs[0].first > _PRELUDE:
            return False
        found = {pair.sent for pair in pairs}
        newest = len(self.eye.sent) - 1
        elsewhere = [
            self.eye.sent[at].text.strip()
            for at in range(pairs[0].sent + 1, newest + 1)
            if at not in found and self.eye.sent[at].role == kept[j].role
        ]
        if newest - pairs[-1].sent == 1:
            elsewhere = elsewhere[:-1]  # what is new is the person's
        text = kept[j].text.strip()
        if text in elsewhere:
            return len(text) >= _PLAIN
        return j == 0 and any(share_words(text, other) > _SAME_NOTE for other in elsewhere)

    def _is_filled(self, i: int, j: int) -> bool:
        """Whether another first message is a filler that stands for a trimmed one, not an edit
        of it: they have nothing in common, and much follows."""
        if self.window.rooted or i > 0 or j > 0 or len(self.pairs) <= _HEADING:
            return False
        return share_words(self.eye.sent[0].text, self.eye.kept[0].text) < _EDITED

    def _sort_prelude(self, i: int) -> list[_Op] | None:
        """Before all that is stored: the client's own, or a history from before our time."""
        sent = range(i + 1)
        if sum(self.eye.sent[at].role == "assistant" for at in sent) > 1:
            return None if self.window.cut else [_Op("add", at) for at in sent]
        return [_Op("note" if self.window.rooted else "heading", at) for at in sent]

    def _rewrites(self) -> bool:
        """Whether this client tells its history in a form of its own."""
        exact = sum(self.eye.is_exact(pair.sent, pair.last) for pair in self.pairs)
        return exact < len(self.pairs) or self.pairs[-1].sent - self.pairs[0].sent >= exact

    def sort_body(self) -> Iterator[_Op]:
        """From the first pair to the last one."""
        previous: _Pair | None = None
        for pair in self.pairs:
            if previous is not None:
                sent = range(previous.sent + 1, pair.sent)
                stored = range(previous.last + 1, pair.first)
                yield from self._sort_group(sent, stored, self._lacks_question(previous, pair))
            previous = pair
            if pair.unwrapped:
                yield from self._unwrapped(pair)
                continue
            yield from (_Op("keep", at) for at in range(pair.first, pair.last + 1))

    def _lacks_question(self, previous: _Pair, pair: _Pair) -> bool:
        """Whether two replies of the gateway's follow each other: nobody asked for the second."""
        kept = self.eye.kept
        return kept[previous.last].produced and kept[pair.first].produced

    def _sort_group(
        self, sent: Sequence[int], stored: Sequence[int], asks: bool = False
    ) -> list[_Op]:
        """What differs between two pairs. Of either side the newest of one role belong together:
        an edit. What is left over was inserted, or deleted. asks: the newest is a question."""
        left = [at for at in sent if not self.eye.is_note(at)]
        if asks and left and not stored and self.eye.sent[left[-1]].role == "user":
            return [*(_Op("note", at) for at in sent if at != left[-1]), self._add(left[-1])]
        ops: list[_Op] = []
        for at in reversed(stored):
            role = self.eye.kept[at].role
            same = next((i for i in reversed(left) if self.eye.sent[i].role == role), None)
            if same is None:
                ops += self._drop([at])
                continue
            ops += [_Op("note", i) for i in reversed(left) if i > same]
            ops += [self._add(same), _Op("drop", at)]
            left = [i for i in left if i < same]
        notes = [_Op("note", at) for at in sent if at in left or self.eye.is_note(at)]
        return [*notes, *reversed(ops)]

    def _unwrapped(self, pair: _Pair) -> list[_Op]:
        """A message without what stood around it, and that is known from now on."""
        wrapping = self.eye.find_wrapping(pair.sent, pair.last)
        if wrapping is not None:
            self._wrappings.append(wrapping)
            self._notes += filter(None, (wrapping.before.strip(), wrapping.after.strip()))
        return [_Op("drop", pair.last), self._add(pair.sent)]

    def _add(self, i: int) -> _Op:
        """A sent message, without the notes that stand around it."""
        if not self.eye.peeled[i].is_bare:
            self.texts[i] = self.eye.peeled[i]
        return _Op("add", i)

    def _drop(self, stored: Sequence[int]) -> list[_Op]:
        if all(self.eye.is_forgettable(at) for at in stored):
            return [_Op("keep", at) for at in stored]
        self._notes += filter(None, (self.eye.kept[at].text.strip() for at in stored))
        return [_Op("drop", at) for at in stored]

    def uncross(self, ops: list[_Op]) -> list[_Op]:
        """Put a person's message back to where it was stored: notes have moved across it."""
        loose = [op for op in ops if op.what in ("note", "heading")]
        for op in tuple(ops):
            if op.what != "drop" or not self._was_asked(op.which):
                continue
            found = next((each for each in loose if self._says(each.which, op.which)), None)
            if found is not None:
                loose.remove(found)
                text = self.eye.kept[op.which].text.strip()
                self._notes = [note for note in self._notes if note != text]
                ops = [each for each in ops if each != found]
                ops.insert(ops.index(op) + 1, self._add(found.which))
        return ops

    def _was_asked(self, j: int) -> bool:
        """Whether a stored message is what a reply of the gateway's answers."""
        kept = self.eye.kept
        return kept[j].role == "user" and j + 1 < len(kept) and kept[j + 1].produced

    def _says(self, i: int, j: int) -> bool:
        if self.eye.is_note(i):
            return False
        return self.eye.take(i, j) > 0 or self.eye.find_wrapping(i, j) is not None

    def sort_end(self) -> Iterator[_Op]:
        """Behind the last pair: what is new, with the client's own around it."""
        last = self.pairs[-1].sent if self.pairs else -1
        sent = range(last + 1, len(self.eye.sent))
        fresh = [at for at in sent if not self.eye.is_note(at)]
        if len(fresh) > 1:
            fresh = [at for at in fresh if not self.eye.resembles_note(at)] or fresh
        answered = self.eye.sent[last].role == "assistant" if last >= 0 else self.window.answered
        if sent and not fresh and answered and self.eye.sent[sent[-1]].role == "user":
            fresh = [sent[-1]]  # a person may say a note's very words
        for at in sent:
            if at not in fresh:
                yield _Op("note", at)
                continue
            yield self._unwrap(at)

    def _unwrap(self, at: int) -> _Op:
        """A new message, without what this client puts around the newest one."""
        message, peeled = self.eye.sent[at], self.eye.peeled[at]
        if message.role == "user" and not message.bound:
            for wrapping in self.eye.lore.wrappings:
                inner = unwrap(peeled.text, wrapping)
                if not inner.is_bare:
                    peeled = Peeled(
                        peeled.before + inner.before, inner.text, inner.after + peeled.after
                    )
                    break
        if not peeled.is_bare:
            self.texts[at] = peeled
        return _Op("add", at)


def _spare(ops: list[_Op], pairs: Sequence[_Pair]) -> list[_Op]:
    """Leave a message where it is that vanished far back, and with nothing put in its place."""
    newest = pairs[-1].last
    edited = [at for at, op in enumerate(ops) if op.what == "add"]
    until = edited[0] if edited else len(ops)
    return [
        op._replace(what="keep")
        if op.what == "drop" and at < until and newest - op.which > _COPIES
        else op
        for at, op in enumerate(ops)
    ]


def _draw(eye: _Eye, pairs: Sequence[_Pair], ops: Sequence[_Op], sorter: _Sorter) -> Alignment:
    """Put the new path together from its steps."""
    ends = {pair.last: pair for pair in pairs if not pair.unwrapped}
    depths = [-1] * len(eye.sent)
    pieces: list[Piece] = []
    insertions: list[Insertion] = []
    arounds: list[Around] = []
    base = depth = 0
    stands = True
    for what, which in ops:
        if what in ("keep", "add"):
            depth += 1
        if what == "keep":
            if stands:
                base += 1
            else:
                pieces.append(Piece(which, None))
            if (pair := ends.get(which)) is not None:
                depths[pair.sent] = depth
                arounds += _around(eye, pair, depth)
        elif what == "drop":
            stands = False
        elif what == "add":
            stands = False
            depths[which] = depth
            own = sorter.texts.get(which)
            pieces.append(Piece(None, which, None if own is None else own.text))
            if own is not None:
                arounds.append(Around(which, depth, own.before, own.after))
        else:
            head = what == "heading" and not sorter.window.rooted
            depths[which] = -1 if head else depth
            kind: Literal["note", "heading"] = "heading" if what == "heading" else "note"
            insertions.append(Insertion(which, depths[which], kind))
    replies = sum(eye.kept[p.last].produced for p in pairs)
    return Alignment(
        base,
        tuple(pieces),
        tuple(depths),
        tuple(insertions),
        tuple(arounds),
        len(pairs),
        replies,
    )


def _around(eye: _Eye, pair: _Pair, depth: int) -> list[Around]:
    """What stands around a message that was found again; a joined one has it at its two ends."""
    peeled = eye.peeled[pair.sent]
    if peeled.is_bare or (pair.first == pair.last and eye.is_exact(pair.sent, pair.last)):
        return []
    if pair.first == pair.last:
        return [Around(pair.sent, depth, peeled.before, peeled.after)]
    first = Around(pair.sent, depth - (pair.last - pair.first), peeled.before, "")
    return [
        each
        for each in (first, Around(pair.sent, depth, "", peeled.after))
        if each.before or each.after
    ]


__all__ = ["Alignment", "Around", "Insertion", "Lore", "Piece", "Spoken", "Window", "align"]
