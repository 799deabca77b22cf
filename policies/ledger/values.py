"""What a chapter tells beside its prose, grounded: values of the ledger."""

from collections.abc import Sequence
from dataclasses import dataclass

MOST_CHARS = 300
"""The longest fact, claim, truth or thread, in characters: each is one sentence."""

MOST_QUOTE = 400
"""The longest quote, in characters."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What the user told about themselves. about: its subject in few words, '' without one;
    line: the message of the span that bears it out, counted from 0 (so everywhere below)."""

    text: str
    about: str
    line: int


@dataclass(frozen=True, slots=True)
class Claim:
    """What somebody said to somebody ('' where it is not told to whom). truth: what narration or
    inner thought bears out in its place, None where nothing contradicts it."""

    who: str
    target: str
    text: str
    truth: str | None
    line: int


@dataclass(frozen=True, slots=True)
class Thread:
    """What is still open at the end of a span: a question, a promise, a danger."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Quote:
    """Words that stand in the span as they are here."""

    text: str
    who: str
    line: int


@dataclass(frozen=True, slots=True)
class Entries:
    """All of one chapter. resolved: the numbers of threads that were open before it."""

    facts: tuple[Fact, ...] = ()
    claims: tuple[Claim, ...] = ()
    opened: tuple[Thread, ...] = ()
    resolved: tuple[int, ...] = ()
    quotes: tuple[Quote, ...] = ()


NOTHING = Entries()


def join_entries(parts: Sequence[Entries]) -> Entries:
    """What the pieces of one span tell, as one, in their order; nothing twice."""
    return Entries(
        facts=tuple(dict.fromkeys(fact for part in parts for fact in part.facts)),
        claims=tuple(dict.fromkeys(claim for part in parts for claim in part.claims)),
        opened=tuple(dict.fromkeys(thread for part in parts for thread in part.opened)),
        resolved=tuple(dict.fromkeys(number for part in parts for number in part.resolved)),
        quotes=tuple(dict.fromkeys(quote for part in parts for quote in part.quotes)),
    )
