"""Echoes: the source said over again instead of told."""

from collections.abc import Iterable
from dataclasses import dataclass

from policies.judge.heard import Heard
from policies.judge.reading import fold, is_unspaced, units, unquote

_GRAM = {True: 8, False: 5}
"""Units of a run that counts as copied: words, or characters where words have no spaces (True)."""
_LONG_RUN = {True: 44, False: 18}
_COPIED_SHARE = 0.62
"""Share of the units outside quotation marks that stand in copied runs. The hand-written chapters
of the tests stay under 0.5 even for spans of three lines."""
_LEAST = {True: 24, False: 12}

_PERSONS = frozenset(
    "i i'm i've i'd i'll me my we we're we've we'll us our you you're you've your"
    " yo mi mis tu tus nosotros nuestro nuestra я мне меня мой моя мои мы нас нам"
    " ты тебя вы вас вам"
    " 我 你 您 咱 僕 俺 저는 제가 나는 내가 우리는 우리가 너는 네가".split()
)


@dataclass(frozen=True, slots=True)
class Copied:
    """share: of the units outside quotations, those in copied runs; longest: run, in units;
    places: where copied runs stand in the row."""

    share: float
    longest: int
    places: frozenset[int]


def is_echo(prose: str, heard: Heard) -> bool:
    """Say whether a prose mostly copies the lines of its source, quotations left out."""
    unspaced = is_unspaced(prose)
    row = units(fold(unquote(prose)))
    if len(row) < _LEAST[unspaced]:
        return False
    copied = measure_copied(row, heard.texts, _GRAM[unspaced])
    return (
        copied.share > _COPIED_SHARE
        or copied.longest >= _LONG_RUN[unspaced]
        or _keeps_person(row, copied.places)
    )


def measure_copied(row: list[str], lines: Iterable[str], size: int) -> Copied:
    """Return how much of a row of units stands in the lines in runs of at least `size` units."""
    known = {
        tuple(said[at : at + size])
        for said in (units(fold(line)) for line in lines)
        for at in range(len(said) - size + 1)
    }
    places: set[int] = set()
    longest = run = 0
    for at in range(len(row) - size + 1):
        if tuple(row[at : at + size]) in known:
            run = run + 1 if run else size
            places.update(range(at, at + size))
            longest = max(longest, run)
        else:
            run = 0
    return Copied(len(places) / len(row) if row else 0.0, longest, frozenset(places))


def _keeps_person(row: list[str], places: frozenset[int]) -> bool:
    """A speaker's `I` or `you` inside a copied run: pasted, not told."""
    return any(row[at] in _PERSONS for at in places)
