"""Long conversations of this test suite's own making, in six languages.

Each user's line tells one thing that nobody tells again: a made-up name, a made-up place and a
number; the replies and the small talk between are put together from few lines.
"""

from __future__ import annotations

import random
from typing import NamedTuple


class Tongue(NamedTuple):
    """told takes {who}, {where} and {many}; small: small talk; replies: of the other side."""

    told: tuple[str, ...]
    small: tuple[str, ...]
    replies: tuple[str, ...]
    syllables: tuple[str, ...]


TONGUES: dict[str, Tongue] = {
    "en": Tongue(
        told=(
            "Yesterday my neighbour {who} opened a bakery in {where} with {many} ovens.",
            "My cousin {who} found {many} silver coins under the floor of her house in {where}.",
            "At work {who} broke the printer, and {where} has to send {many} new ones.",
            "We met {who} at the harbour of {where}, where {many} boats were waiting for the wind.",
        ),
        small=(
            "It rained the whole morning and I stayed inside with a cup of tea.",
            "I slept badly again, so forgive me if I am slow today.",
            "The bus was late, as it always is when I am in a hurry.",
        ),
        replies=(
            "That sounds like quite a day. How did you feel about it afterwards?",
            "I see, and what happened after that? Tell me a little more.",
            "Oh really? I would have liked to be there with you.",
        ),
        syllables=tuple(
            "ba bre dol fen gar hul jor kem lin mor nas pel quo rin sul tav vex wil".split()
        ),
    ),
}


def make_name(chance: random.Random, tongue: Tongue) -> str:
    return "".join(chance.choice(tongue.syllables) for _ in range(4)).capitalize()


def make_talk(chars: int, *, seed: int = 1, language: str = "en") -> list[tuple[str, str]]:
    """(role, text) pairs of at least so many characters."""
    chance, tongue = random.Random(f"{language}{seed}"), TONGUES[language]
    messages: list[tuple[str, str]] = []
    size = 0
    while size < chars:
        told = chance.choice(tongue.told).format(
            who=make_name(chance, tongue),
            where=make_name(chance, tongue),
            many=chance.randrange(100, 10_000),
        )
        user = " ".join((chance.choice(tongue.small), told))
        reply = " ".join(chance.sample(tongue.replies, 2))
        messages += [("user", user), ("assistant", reply)]
        size += len(user) + len(reply)
    return messages
