"""What is unsafe or unwise in how a llama-server was started, in words for people."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.backends.slot_server import ServerSlot

DEFAULT_SLOTS = 4
"""llama-server started without -np has so many, and they share one cache."""

UNLISTED = (
    "it does not list its slots, so nobody sees when a reply that was broken off is over: start it "
    "without --no-slots"
)

UNIFIED = (
    "its slots seem to share one cache (it was started without -np): when it is full all replies "
    "fail together. Start it with -np N -c N*WINDOW --no-kv-unified"
)


def caution_total(
    total: int | None, *, pinned: bool, wanted: int | None, background: int
) -> list[str]:
    """About the number of slots that /props tells. wanted: background_slots as the file has it;
    background: how many are kept."""
    if total is None:
        effect = "only slot 0 is used" if pinned else "requests are not held back"
        return [f"/props does not say how many slots it has: {effect}"]
    if not pinned:
        return []
    found = []
    if wanted is not None and wanted >= total:
        found.append(
            f"background_slots is {wanted}, and it has {total} slots: "
            f"{background} are kept, so that one is left to the chats"
        )
    if total == 1:
        found.append(
            "it has one slot, which every summary takes from its chat: start it with -np 2 or "
            "more, or let another backend summarize"
        )
    return found


def caution_ram(has_ram: bool, *, pinned: bool) -> list[str]:
    """About --cache-ram."""
    if has_ram and pinned:
        return [
            "its slots are pinned and it keeps prompts in memory as well, which has put one "
            "conversation's text into another's reply: start it with --cache-ram 0"
        ]
    if has_ram:
        return [
            "--cache-ram keeps prompts in its memory, those of deleted conversations too, "
            "until others push them out or it is started anew"
        ]
    if not pinned:
        return [
            "its slots are shared and it keeps no prompts in memory, so that conversations "
            "push each other out: start it with --cache-ram MIB, or pin the slots"
        ]
    return []


def may_share(slots: Sequence[ServerSlot]) -> bool:
    """Whether these may be slots of one cache, by their number."""
    return len(slots) == DEFAULT_SLOTS
