"""A client of the field, simulated: it keeps what was said and sends it in a manner of its own.

The gateway's side keeps one path, by the same two steps as the flow: what is known word for word,
then the alignment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from policies.alignment import Alignment, Lore, Spoken, Window, align
from policies.likeness import Peeled

Said = tuple[str, str]
"""(role, text)."""

FILLER: Said = ("user", "[Start a new chat]")
WINDOW = 48


def user(text: str) -> Said:
    return "user", text


def reply(text: str) -> Said:
    return "assistant", text


def spoken(said: Said, *, produced: bool = False) -> Spoken:
    role, text = said
    return Spoken(role, text, f"{role}:{' '.join(text.split())}", produced=produced)


@dataclass
class Note:
    """A note of the client's at a depth from the end, of any role; its text may change."""

    depth: int
    role: str
    text: str

    def at(self, turn: int) -> Said:
        return self.role, self.text.replace("{turn}", str(turn))


@dataclass
class Client:
    """How a client tells its history. budget: messages it sends; filler: before a trimmed head."""

    notes: list[Note] = field(default_factory=list)
    budget: int | None = None
    filler: Said | None = None
    names: bool = False
    squashes: bool = False
    rewrites: bool = False
    retrieval: bool = False
    history: list[Said] = field(default_factory=list)

    def tell(self, turn: int) -> list[Said]:
        told = [self._named(said) for said in self.history]
        if self.rewrites:
            told = [(role, self._rewrite(role, text)) for role, text in told]
        if self.retrieval and told[-1][0] == "user":
            role, text = told[-1]
            lead = f"Use these papers:\nPaper {turn} says {turn * 37}.\n\nQuestion:\n"
            told[-1] = role, lead + text
        if self.budget is not None and len(told) > self.budget:
            told = told[-self.budget :]
            if self.filler is not None:
                told.insert(0, self.filler)
        for note in sorted(self.notes, key=lambda note: note.depth):
            told.insert(max(0, len(told) - note.depth), note.at(turn))
        return _squash(told) if self.squashes else told

    def _named(self, said: Said) -> Said:
        role, text = said
        if not self.names:
            return said
        return role, f"{'Ann' if role == 'user' else 'Bob'}: {text}"

    def _rewrite(self, role: str, text: str) -> str:
        if role != "assistant":
            return text
        text = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL)
        return text.replace("\r", "").replace("  ", " ").replace('"', "“").strip()


def _squash(told: list[Said]) -> list[Said]:
    joined: list[Said] = []
    for role, text in told:
        if joined and joined[-1][0] == role:
            joined[-1] = role, f"{joined[-1][1]}\n\n{text}"
        else:
            joined.append((role, text))
    return joined


@dataclass
class Transcript:
    """The gateway's side: the newest path, and what the client was last seen to add."""

    path: list[Said] = field(default_factory=list)
    lore: Lore = field(default_factory=Lore)
    last: Alignment | None = None
    replies: set[Said] = field(default_factory=set)

    def answer(self, said: Said) -> None:
        """The model's reply."""
        self.replies.add(said)
        self.path.append(said)

    def take(self, told: list[Said]) -> None:
        """Place a history; the newest path is then what its client tells of."""
        self.last = None
        if told[0] == FILLER:
            told = told[1:]  # the flow sets it apart before anything is compared
        known = 0
        while known < min(len(told), len(self.path)) and told[known] == self.path[known]:
            known += 1
        rest = told[known:]
        answered = known > 0 and self.path[known - 1][0] == "assistant"
        plain = not rest or (len(rest) < 2 and answered)
        found = None if plain else self._align(rest, known)
        if found is None:
            self.path = [*(self.path[:known] if known else self.path), *rest]
            self.lore = Lore()
            return
        self.last = found
        below = len(self.path) - len(self._kept(known))
        kept = self.path[below:]
        told_anew: list[Said] = []
        for piece in found.pieces:
            if piece.kept is not None:
                told_anew.append(kept[piece.kept])
            else:
                assert piece.sent is not None
                role, text = rest[piece.sent]
                told_anew.append((role, text if piece.text is None else piece.text))
        self.path = [*self.path[:below], *kept[: found.base], *told_anew]
        self._remember(found, rest)

    def _kept(self, known: int) -> list[Said]:
        return self.path[max(known, len(self.path) - WINDOW) :]

    def _align(self, rest: list[Said], known: int) -> Alignment | None:
        kept = self._kept(known)
        window = Window(
            cut=0,
            below=len(self.path) - known - len(kept),
            rooted=known > 0,
            pinned=0 < known <= 2,
            answered=known > 0 and self.path[known - 1][0] == "assistant",
        )
        stored = [spoken(said, produced=said in self.replies) for said in kept]
        return align([spoken(said) for said in rest], stored, self.lore, window)

    def _remember(self, found: Alignment, rest: list[Said]) -> None:
        notes = [rest[each.sent] for each in found.insertions if each.kind == "note"]
        around = [Peeled(each.before, "", each.after) for each in found.arounds]
        segments = [text.strip() for each in around for text in (each.before, each.after)]
        texts = [text for _, text in notes] + [text for text in segments if text]
        self.lore = Lore(tuple(dict.fromkeys(texts)), tuple(around))
