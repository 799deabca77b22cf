"""What the judge says."""

from dataclasses import dataclass

from policies.judge.beside import NOTHING, Beside


@dataclass(frozen=True, slots=True)
class Verdict:
    """accepted: the text may enter memory. reasons: machine words, the main one first, empty when
    accepted. text: the prose to store, think blocks stripped, '' when rejected, but for a gist
    that is nothing but long. beside: of an
    accepted frame, what it holds beside the prose; not judged yet (policies.ledger)."""

    accepted: bool
    reasons: tuple[str, ...]
    text: str
    beside: Beside = NOTHING


def reject(*reasons: str) -> Verdict:
    """Return a rejection for the given reasons, each named once, in the given order."""
    return Verdict(False, tuple(dict.fromkeys(reasons)), "")


def accept(text: str, beside: Beside = NOTHING) -> Verdict:
    """Return an acceptance of the prose."""
    return Verdict(True, (), text, beside)
