"""The alignment, put together from its pairs and steps."""

from collections.abc import Sequence
from typing import Literal

from policies.alignment.pairs import Eye, find_anchor, walk_back, walk_on
from policies.alignment.steps import Sorter, spare
from policies.alignment.values import (
    Alignment,
    Around,
    Insertion,
    Lore,
    Op,
    Pair,
    Piece,
    Spoken,
    Window,
)

_ROUNDS = 3
"""A note that is found out may show another to be one."""


def align(
    sent: Sequence[Spoken], kept: Sequence[Spoken], lore: Lore, window: Window
) -> Alignment | None:
    """Align a history (oldest first) with stored messages, consecutive ones of one path.

    None where no reply of the gateway's is found in both, or what differs cannot be told apart.
    Costs a small multiple of the number of messages.
    """
    found, learned = _attempt(sent, kept, lore, window)
    rounds = _ROUNDS
    while found is not None and learned != Lore() and rounds:
        lore |= learned
        rounds -= 1
        found, learned = _attempt(sent, kept, lore, window)
    return found


def _attempt(
    sent: Sequence[Spoken], kept: Sequence[Spoken], lore: Lore, window: Window
) -> tuple[Alignment | None, Lore]:
    eye = Eye(sent, kept, lore)
    anchor = find_anchor(eye, window)
    if anchor is None:
        return _add_all(eye, window), Lore()
    above, i, j = walk_back(eye, anchor.sent - 1, anchor.first - 1)
    pairs = [*reversed(above), anchor, *walk_on(eye, anchor.sent + 1, anchor.last + 1)]
    sorter = Sorter(eye, window, pairs)
    head = sorter.sort_head(i, j)
    if head is None:
        return None, Lore()
    ops = [*head, *sorter.sort_body(), *sorter.sort_end()]
    ops = spare(sorter.uncross(ops), pairs)
    return _draw(eye, pairs, ops, sorter), sorter.learned()


def _add_all(eye: Eye, window: Window) -> Alignment | None:
    """Behind a known history that holds the newest reply, all is new but for the client's own."""
    replies = (i for i, message in enumerate(eye.sent) if message.role == "assistant")
    if not window.rooted or not all(map(eye.is_note, replies)):
        return None
    sorter = Sorter(eye, window, ())
    return _draw(eye, (), list(sorter.sort_end()), sorter)


def _draw(eye: Eye, pairs: Sequence[Pair], ops: Sequence[Op], sorter: Sorter) -> Alignment:
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


def _around(eye: Eye, pair: Pair, depth: int) -> list[Around]:
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
