"""Which sent messages are which stored ones."""

from collections.abc import Iterator, Sequence

from policies.alignment.values import HEADING, Lore, Pair, Spoken, Window
from policies.likeness import (
    Form,
    Peeled,
    count_squashed,
    find_wrapping,
    is_alike,
    peel,
    share_words,
)

_ANCHORS = 6
"""Newest replies of a history that are tried as the anchor."""
_HOP = 12
"""Messages that may stand between two matches on either side."""
_SQUASHED = 8
"""Turns that one message may join."""
_LIKE_NOTE = 0.5
"""Share of common words above which a text is much like a known note."""
_SURE = 40
"""Characters of a message that is found again on its own, without its neighbour."""


class Eye:
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


def find_anchor(eye: Eye, window: Window) -> Pair | None:
    """The newest reply of the history that is a stored one of the gateway's, with what stood
    before it before it. One that is stored word for word is taken before one that is alike."""
    replies = [i for i, message in enumerate(eye.sent) if message.role == "assistant"]
    given = [j for j in range(len(eye.kept) - 1, -1, -1) if eye.kept[j].produced]
    for i in reversed(replies[-_ANCHORS:]):
        exact = [j for j in given if eye.is_exact(i, j)]
        found = _find_place(eye, window, i, exact) or _find_place(eye, window, i, given)
        if found is not None:
            return found
    return None


def _find_place(eye: Eye, window: Window, i: int, places: Sequence[int]) -> Pair | None:
    """Of the places where a reply may stand the one with most in common, then the newest."""
    best: tuple[int, bool, int, int] | None = None
    for j in places:
        if not (taken := eye.take(i, j)):
            continue
        context = len(walk_back(eye, i - 1, j - taken, limit=3)[0])
        whole = window.below == window.cut == 0
        agrees = whole and (j - taken + 1 == i or (window.rooted and j < taken))
        rank = (context, agrees, j, taken)
        if (context or agrees or i == 0) and (best is None or rank > best):
            best = rank
    return None if best is None else Pair(i, best[2] - best[3] + 1, best[2])


def walk_back(eye: Eye, i: int, j: int, limit: int | None = None) -> tuple[list[Pair], int, int]:
    """Pairs from here to the head, newest first, and where the walk ended on either side."""
    pairs: list[Pair] = []
    while i >= 0 and j >= 0 and (limit is None or len(pairs) < limit):
        if taken := eye.take(i, j):
            pairs.append(Pair(i, j - taken + 1, j))
            i, j = i - 1, j - taken
            continue
        if eye.find_wrapping(i, j) is not None:
            pairs.append(Pair(i, j, j, unwrapped=True))
            i, j = i - 1, j - 1
            continue
        hop = _find_hop(eye, i, j)
        if hop is None:
            break
        i, j = i - hop[0], j - hop[1]
    return pairs, i, j


def _find_hop(eye: Eye, i: int, j: int) -> tuple[int, int] | None:
    """The shortest way over what differs: (sent, stored) messages to pass; insertions first."""
    for total in range(1, 2 * _HOP + 1):
        for over in range(max(0, total - _HOP), min(total, _HOP) + 1):
            di, dj = total - over, over
            if i >= di and j >= dj and _is_sure(eye, i - di, j - dj):
                return di, dj
    return None


def _is_sure(eye: Eye, i: int, j: int) -> bool:
    """Whether these two are the same beyond chance: long, or at the head, or with neighbours."""
    taken = eye.take(i, j)
    if not taken:
        return eye.find_wrapping(i, j) is not None
    if i == 0 or j < taken or len(eye.sent[i].text) >= _SURE:
        return True
    before = range(max(0, i - HEADING), i)
    return any(eye.take(at, j - taken) for at in before)


def walk_on(eye: Eye, i: int, j: int) -> Iterator[Pair]:
    """Pairs behind the anchor: what was said after it already (a reply is asked for again)."""
    while i < len(eye.sent) and j < len(eye.kept):
        last = eye.find_from(i, j)
        if last is not None:
            yield Pair(i, j, last)
            i, j = i + 1, last + 1
            continue
        if eye.find_wrapping(i, j) is not None:
            yield Pair(i, j, j, unwrapped=True)
            i, j = i + 1, j + 1
            continue
        for di, dj in ((1, 0), (0, 1), (2, 0), (1, 1)):
            if i + di < len(eye.sent) and j + dj < len(eye.kept):
                if eye.find_from(i + di, j + dj) is not None:
                    i, j = i + di, j + dj
                    break
        else:
            return
