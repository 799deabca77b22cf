"""What was not found again: said, the client's own, edited, deleted, or forgotten."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from policies.alignment.pairs import Eye
from policies.alignment.values import HEADING, Lore, Op, Pair, Window
from policies.likeness import Peeled, share_words, unwrap

_TRIMMED = 8
"""A gap of this many stored messages or more is a trimmed history, a smaller one a deletion."""
_EDITED, _LIKE_NOTE, _SAME_NOTE = 0.15, 0.5, 0.8
"""Shares of common words: below the first nothing was edited, above the second a text is like the
note that stands elsewhere now, above the third it is the same note with another figure in it."""
_PRELUDE = 3
"""Messages at the root of which one may be a note that stands elsewhere now."""
_PLAIN = 12
"""Characters of a text below which a person says it twice without meaning anything by it."""
_COPIES = 64
"""A message that vanished further back than this stays: nothing is told anew for it."""


@dataclass
class Sorter:
    """Sorts what was not found again: said, the client's own, edited, deleted, or forgotten."""

    eye: Eye
    window: Window
    pairs: Sequence[Pair]
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

    def sort_head(self, i: int, j: int) -> list[Op] | None:
        """What stands before the first pair; i, j: the last of it on either side."""
        window = self.window
        kept = [Op("keep", at) for at in range(j + 1)]
        sent, stored = window.cut + i + 1, window.below + j + 1
        if sent == 0:
            return self._sort_gap(j)
        if stored == 0:
            return self._sort_prelude(i)
        agrees = sent == stored and window.cut == window.below == 0
        if agrees and not self._is_filled(i, j):
            return self._sort_group(range(i + 1), range(j + 1))
        if sent <= HEADING and (not window.rooted or window.pinned or stored >= _TRIMMED):
            return [*(Op("heading", at) for at in range(i + 1)), *kept]
        if window.rooted:
            return kept if window.below and self._rewrites() else None
        return kept if len(self.pairs) > HEADING else None

    def _sort_gap(self, j: int) -> list[Op]:
        """Stored messages that the client does not tell of: trimmed, but for what has moved."""
        window, stored = self.window, range(j + 1)
        if window.rooted and not window.pinned and window.below + len(stored) < _TRIMMED:
            return self._drop(stored)
        moved = [at for at in stored if self._has_moved(at)]
        if moved and window.rooted:
            return self._drop(stored)
        ops: list[Op] = []
        for at in stored:
            ops += self._drop([at]) if at in moved else [Op("keep", at)]
        return ops

    def _has_moved(self, j: int) -> bool:
        """Whether a stored message of the head is a note of the client's: it stands elsewhere now,
        where none of its kind was, or another much like it."""
        kept, pairs = self.eye.kept, self.pairs
        if self.window.below or pairs[0].first > _PRELUDE:
            return False
        text = kept[j].text.strip()
        inserted, behind = self._unmatched(kept[j].role)
        if text in inserted or text in behind:
            return len(text) >= _PLAIN
        if j > 0:
            return False
        return any(share_words(text, other) > _LIKE_NOTE for other in inserted) or any(
            share_words(text, other) > _SAME_NOTE for other in behind
        )

    def _unmatched(self, role: str) -> tuple[list[str], list[str]]:
        """Texts of one role that stand between the pairs, and behind them; of the latter not the
        only one that is no known note: it is what a person says now."""
        sent, last = self.eye.sent, self.pairs[-1].sent
        found = {pair.sent for pair in self.pairs}
        between = [at for at in range(self.pairs[0].sent + 1, last) if at not in found]
        behind = range(last + 1, len(sent))
        notes = [at for at in behind if self.eye.is_note(at)]
        if len(behind) - len(notes) > 1:
            notes = list(behind)
        return (
            [sent[at].text.strip() for at in between if sent[at].role == role],
            [sent[at].text.strip() for at in notes if sent[at].role == role],
        )

    def _is_filled(self, i: int, j: int) -> bool:
        """Whether another first message is a filler that stands for a trimmed one, not an edit
        of it: they have nothing in common, and much follows."""
        if self.window.rooted or i > 0 or j > 0 or len(self.pairs) <= HEADING:
            return False
        return share_words(self.eye.sent[0].text, self.eye.kept[0].text) < _EDITED

    def _sort_prelude(self, i: int) -> list[Op] | None:
        """Before all that is stored: the client's own, or a history from before our time."""
        sent = range(i + 1)
        if sum(self.eye.sent[at].role == "assistant" for at in sent) > 1:
            return None if self.window.cut else [Op("add", at) for at in sent]
        return [Op("note" if self.window.rooted else "heading", at) for at in sent]

    def _rewrites(self) -> bool:
        """Whether this client tells its history in a form of its own."""
        exact = sum(self.eye.is_exact(pair.sent, pair.last) for pair in self.pairs)
        return exact < len(self.pairs) or self.pairs[-1].sent - self.pairs[0].sent >= exact

    def sort_body(self) -> Iterator[Op]:
        """From the first pair to the last one."""
        previous: Pair | None = None
        for pair in self.pairs:
            if previous is not None:
                sent = range(previous.sent + 1, pair.sent)
                stored = range(previous.last + 1, pair.first)
                yield from self._sort_group(sent, stored, self._lacks_question(previous, pair))
            previous = pair
            if pair.unwrapped:
                yield from self._unwrapped(pair)
                continue
            yield from (Op("keep", at) for at in range(pair.first, pair.last + 1))

    def _lacks_question(self, previous: Pair, pair: Pair) -> bool:
        """Whether two replies of the gateway's follow each other: nobody asked for the second."""
        kept = self.eye.kept
        return kept[previous.last].produced and kept[pair.first].produced

    def _sort_group(
        self, sent: Sequence[int], stored: Sequence[int], asks: bool = False
    ) -> list[Op]:
        """What differs between two pairs. Of either side the newest of one role belong together:
        an edit. What is left over was inserted, or deleted. asks: the newest is a question."""
        left = [at for at in sent if not self.eye.is_note(at)]
        if asks and left and not stored and self.eye.sent[left[-1]].role == "user":
            return [*(Op("note", at) for at in sent if at != left[-1]), self._add(left[-1])]
        ops: list[Op] = []
        for at in reversed(stored):
            role = self.eye.kept[at].role
            same = next((i for i in reversed(left) if self.eye.sent[i].role == role), None)
            if same is None:
                ops += self._drop([at])
                continue
            ops += [Op("note", i) for i in reversed(left) if i > same]
            ops += [self._add(same), Op("drop", at)]
            left = [i for i in left if i < same]
        notes = [Op("note", at) for at in sent if at in left or self.eye.is_note(at)]
        return [*notes, *reversed(ops)]

    def _unwrapped(self, pair: Pair) -> list[Op]:
        """A message without what stood around it, and that is known from now on."""
        found = self.eye.find_wrapping(pair.sent, pair.last)
        for wrapping in () if found is None else (found,):
            self._wrappings.append(wrapping)
            self._notes += filter(None, (wrapping.before.strip(), wrapping.after.strip()))
        return [Op("drop", pair.last), self._add(pair.sent)]

    def _add(self, i: int) -> Op:
        """A sent message, without the notes that stand around it."""
        if not self.eye.peeled[i].is_bare:
            self.texts[i] = self.eye.peeled[i]
        return Op("add", i)

    def _drop(self, stored: Sequence[int]) -> list[Op]:
        if all(self.eye.is_forgettable(at) for at in stored):
            return [Op("keep", at) for at in stored]
        self._notes += filter(None, (self.eye.kept[at].text.strip() for at in stored))
        return [Op("drop", at) for at in stored]

    def uncross(self, ops: list[Op]) -> list[Op]:
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

    def sort_end(self) -> Iterator[Op]:
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
                yield Op("note", at)
                continue
            yield self._unwrap(at)

    def _unwrap(self, at: int) -> Op:
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
        return Op("add", at)


def spare(ops: list[Op], pairs: Sequence[Pair]) -> list[Op]:
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
