"""What a chapter tells beside its prose, grounded: values of the ledger."""

from dataclasses import dataclass, fields

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
    """All of one chapter. resolved: the numbers of threads that were open before it. dropped: how
    many further entries were told that nothing bears out."""

    facts: tuple[Fact, ...] = ()
    claims: tuple[Claim, ...] = ()
    opened: tuple[Thread, ...] = ()
    resolved: tuple[int, ...] = ()
    quotes: tuple[Quote, ...] = ()
    dropped: int = 0

    def __bool__(self) -> bool:
        """Whether anything is told or resolved."""
        return any(getattr(self, field.name) for field in fields(self) if field.name != "dropped")


NOTHING = Entries()
