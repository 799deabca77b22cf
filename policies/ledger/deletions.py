"""What an owner deleted of a chapter is not told again by a newer text of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from policies.ledger.additions import fold_text
from policies.ledger.values import Entries
from policies.likeness import letter_pairs

ALIKE = 0.45
"""The share of letter pairs, of the shorter text, from which on two entries of one kind are taken
for one: as `gateway.store.profile.ALIKE`, measured there. It errs on the side of what was
deleted."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """An entry that its owner deleted. line: the message of the span that bore it out, counted from
    0, None where it is not known."""

    kind: str
    text: str
    about: str = ""
    line: int | None = None


def without_deleted(entries: Entries, deleted: Sequence[Deleted]) -> Entries:
    """The entries that tell nothing that was deleted: no fact of the same message or about the same
    thing, and nothing alike of the same kind."""
    if not deleted:
        return entries
    facts = [gone for gone in deleted if gone.kind == "fact"]
    return replace(
        entries,
        facts=tuple(
            fact
            for fact in entries.facts
            if not any(
                fact.line == gone.line or _is_about(fact.about, gone) or _is_alike(fact.text, gone)
                for gone in facts
            )
        ),
        claims=tuple(e for e in entries.claims if not _is_deleted("claim", e.text, deleted)),
        opened=tuple(e for e in entries.opened if not _is_deleted("thread", e.text, deleted)),
        quotes=tuple(e for e in entries.quotes if not _is_deleted("quote", e.text, deleted)),
    )


def _is_deleted(kind: str, text: str, deleted: Sequence[Deleted]) -> bool:
    return any(gone.kind == kind and _is_alike(text, gone) for gone in deleted)


def _is_about(about: str, gone: Deleted) -> bool:
    return bool(fold_text(about)) and fold_text(about) == fold_text(gone.about)


def _is_alike(text: str, gone: Deleted) -> bool:
    ours, theirs = letter_pairs(fold_text(text)), letter_pairs(fold_text(gone.text))
    if not ours or not theirs:
        return fold_text(text) == fold_text(gone.text)
    return len(ours & theirs) >= ALIKE * min(len(ours), len(theirs))
