"""What the judge says."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """accepted: the text may enter memory. reasons: machine words, the main one first, empty when
    accepted. text: the prose to store, think blocks stripped, '' when rejected."""

    accepted: bool
    reasons: tuple[str, ...]
    text: str


def reject(*reasons: str) -> Verdict:
    """Return a rejection for the given reasons, each named once, in the given order."""
    return Verdict(False, tuple(dict.fromkeys(reasons)), "")


def accept(text: str) -> Verdict:
    """Return an acceptance of the prose."""
    return Verdict(True, (), text)
