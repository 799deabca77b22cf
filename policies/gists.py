"""What a gist must keep, and how one that is too long is made shorter without a cut."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from policies.judge.reading import fold
from policies.judge.terms import terms
from policies.standin import rate_sentences, split_sentences

GIST_SLACK = 1.25
"""How much longer than asked a gist may be: it stands in every prompt from then on."""

_TOLD = 0.5
"""The share of a thread's terms that tells it: a paraphrase keeps its names and things."""


def find_lost(gist: str, notes: Sequence[str], threads: Sequence[str]) -> list[str]:
    """The open threads that the notes tell and the gist made of them does not."""
    told, left = _terms("\n".join(notes)), _terms(gist)
    return [thread for thread in threads if _tells(told, thread) and not _tells(left, thread)]


def _terms(text: str) -> set[str]:
    return terms(fold(text))


def _tells(text: set[str], thread: str) -> bool:
    asked = _terms(thread)
    return len(asked & text) >= _TOLD * len(asked)


@dataclass(frozen=True, slots=True)
class Shortened:
    """A gist that fits, and the sentences that it gave up, in their order."""

    text: str
    moved: tuple[str, ...]


def shorten(text: str, most: int, threads: Sequence[str] = ()) -> Shortened | None:
    """Keep of a text the sentences that fit into ``most`` characters: those that tell a thread
    before the others, and of each the most telling. None where every sentence is longer."""
    sentences = split_sentences(text)
    at, pieces = 0, []
    for sentence in sentences:
        end = text.index(sentence, at) + len(sentence)
        pieces.append(text[at:end])
        at = end
    values = _rate(sentences, threads)
    kept: set[int] = set()
    for index in sorted(range(len(sentences)), key=lambda index: (values[index], -index))[::-1]:
        if len(_join(pieces, kept | {index})) <= most:
            kept.add(index)
    if not kept:
        return None
    moved = tuple(said for index, said in enumerate(sentences) if index not in kept)
    return Shortened(_join(pieces, kept), moved)


def _join(pieces: Sequence[str], kept: Collection[int]) -> str:
    return "".join(piece for index, piece in enumerate(pieces) if index in kept).strip()


def _rate(sentences: Sequence[str], threads: Sequence[str]) -> list[tuple[bool, float]]:
    asked = [_terms(thread) for thread in threads]
    rated = []
    for sentence, value in zip(sentences, rate_sentences(sentences), strict=True):
        said = _terms(sentence)
        rated.append((any(len(one & said) >= _TOLD * len(one) for one in asked), value))
    return rated
