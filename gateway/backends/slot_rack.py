"""The slots of one server: whose each is, what it may still hold, and which may be given to whom.

State only: no I/O and no waiting here. Where slots are shared, the server chooses among them and
the rack is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.backends.waiting_line import Wish

BACKGROUND_FROM = 3
"""From so many slots on one is kept for background work, unless the file says otherwise."""


@dataclass(eq=False, slots=True)
class Slot:
    """What is known of one slot.

    owner: the conversation whose chat it serves. holds: conversations of which the server may
    still have something there; is_known: nothing else can be in it. used: when it was last at work,
    as a count. holder: the lease of the request that is at work there.
    """

    number: int
    owner: str | None = None
    holds: set[str] = field(default_factory=set)
    is_known: bool = False
    used: int = 0
    holder: object | None = None
    is_settling: bool = False
    is_dirty: bool = False

    @property
    def is_idle(self) -> bool:
        return self.holder is None and not self.is_settling

    @property
    def is_free(self) -> bool:
        return self.is_idle and not self.is_dirty


class Rack:
    """Pinned slots. `total` is None until the server said how many it has; until then only the
    first is used, which every server has.

    wanted: slots kept for background work, None for the usual. is_awaited: whether a chat of this
    conversation stands in the line, so that its slot is dearer than others.
    """

    def __init__(
        self, *, pinned: bool, wanted: int | None, is_awaited: Callable[[str], bool]
    ) -> None:
        self.pinned = pinned
        self.total: int | None = None
        self.slots: list[Slot] = [Slot(0)] if pinned else []
        self._wanted = wanted
        self._is_awaited = is_awaited
        self._count = 0
        self._restored: dict[int, str] = {}

    # --- which slot ------------------------------------------------------------------------------

    @property
    def background(self) -> int:
        """Slots kept for background work; at least one is left to the chats."""
        if not self.pinned or self.total is None:
            return 0
        wanted = self._wanted
        if wanted is None:
            wanted = 1 if self.total >= BACKGROUND_FROM else 0
        return min(wanted, self.total - 1)

    @property
    def chat_slots(self) -> Sequence[Slot]:
        return self.slots[: len(self.slots) - self.background]

    @property
    def chat_capacity(self) -> int | None:
        """Chats that can be served side by side; None: nobody knows."""
        return len(self.chat_slots) if self.pinned else self.total

    def numbered(self, number: int) -> Slot | None:
        return self.slots[number] if number < len(self.slots) else None

    def owned_by(self, conversation: str | None) -> Slot | None:
        if conversation is None:
            return None
        return next((slot for slot in self.chat_slots if slot.owner == conversation), None)

    def place_chat(self, conversation: str | None) -> Slot | None:
        """Its own slot once that is free; a stranger's is the one that is missed least."""
        own = self.owned_by(conversation)
        if own is not None:
            return own if own.is_free else None
        return self._least_recent(self.chat_slots)

    def place_prefill(self, conversation: str | None) -> Slot | None:
        """Its own slot or one that nobody owns: reading ahead is not worth another's cache."""
        own = self.owned_by(conversation)
        if own is not None:
            return own if own.is_free else None
        return self._least_recent([slot for slot in self.chat_slots if slot.owner is None])

    def place_background(self, *, may_push_out: bool) -> Slot | None:
        """One of the slots kept for it; where none are, any, if it may take a chat's."""
        if self.background:
            return self._least_recent(self.slots[-self.background :])
        return self._least_recent(self.slots) if may_push_out else None

    def _least_recent(self, slots: Iterable[Slot]) -> Slot | None:
        return min((slot for slot in slots if slot.is_free), key=self._worth, default=None)

    def _worth(self, slot: Slot) -> tuple[bool, bool, int]:
        """How dear a slot is to others: nobody's first, then not of one who waits, then by use."""
        owner = slot.owner
        return owner is not None, owner is not None and self._is_awaited(owner), slot.used

    def is_nobodys(self, number: int) -> bool:
        """Whether no conversation would miss what is in this slot."""
        slot = self.numbered(number)
        return slot is not None and slot.owner is None and slot.is_free

    # --- a request in a slot ---------------------------------------------------------------------

    def give(self, slot: Slot, holder: object, wish: Wish) -> None:
        """Put a request at work in a slot that may be given to it."""
        slot.holder = holder
        self._touch(slot)
        if wish.conversation is not None:
            slot.holds.add(wish.conversation)
        slot.owner = wish.conversation if wish.purpose in ("chat", "prefill") else None

    def held_by(self, holder: object, number: int | None) -> Slot | None:
        """The slot that a lease still holds: not one that vanished meanwhile."""
        slot = None if number is None else self.numbered(number)
        return slot if slot is not None and slot.holder is holder else None

    def note_read(self, slot: Slot, conversation: str | None) -> None:
        """A prompt was read into a slot, over whatever was there."""
        # A request of nobody (a title, say) holds words of a conversation it does not name.
        slot.is_known = conversation is not None
        slot.holds = set() if conversation is None else {conversation}

    def take_back(self, slot: Slot, *, is_settled: bool) -> None:
        """Nothing is at work there any more, or nothing of ours, where it has to settle."""
        slot.holder = None
        slot.is_settling = not is_settled
        self._touch(slot)

    def settle(self, number: int) -> bool:
        """The server is done with what was broken off there; False where it was long."""
        slot = self.numbered(number)
        if slot is None or not slot.is_settling:
            return False
        slot.is_settling = False
        return True

    def _touch(self, slot: Slot) -> None:
        self._count += 1
        slot.used = self._count

    # --- what the server has ---------------------------------------------------------------------

    def resize(self, total: int | None, forgotten: Collection[str]) -> None:
        """Another number of slots: the server was started anew. Slots that are left keep their
        owners, and new ones take those that were restored for them."""
        self.total = total
        if self.pinned:
            kept = self.slots[: total or 1]
            self.slots = kept + [Slot(number) for number in range(len(kept), total or 1)]
            self._settle_owners(forgotten)

    def restore(self, owners: Mapping[int, str], forgotten: Collection[str]) -> None:
        """Who was served where before this program began; what else is there is not known. Slots
        that are not known yet get theirs when the server says that it has them."""
        self._restored = dict(owners)
        self._settle_owners(forgotten)

    def _settle_owners(self, forgotten: Collection[str]) -> None:
        for number, conversation in sorted(self._restored.items()):
            slot = self.numbered(number)
            if slot is None:
                continue
            del self._restored[number]
            is_gone = conversation in forgotten
            if slot.used == 0 and not is_gone and self.owned_by(conversation) is None:
                slot.owner = conversation
                slot.holds.add(conversation)

    # --- deleted conversations -------------------------------------------------------------------

    def forget(self, conversation: str) -> None:
        """Every slot that may hold any of it serves nobody until it is wiped."""
        for slot in self.slots:
            if slot.owner == conversation:
                slot.owner = None
            if conversation in slot.holds or not slot.is_known:
                slot.is_dirty = True

    @property
    def dirty(self) -> list[int]:
        """The slots that wait to be wiped."""
        return [slot.number for slot in self.slots if slot.is_dirty]

    def note_wiped(self, slot: Slot) -> None:
        """Nothing of anybody is in it any more."""
        slot.owner, slot.holds, slot.is_known, slot.is_dirty = None, set(), True, False
