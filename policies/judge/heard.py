"""The source of a summary, read once for all rules."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from policies.judge.reading import fold, weight, words
from policies.judge.roots import root
from policies.judge.terms import terms

_HIRAGANA_PAIR = re.compile("[\u3041-\u309f]+")


@dataclass(frozen=True)
class Heard:
    """lines: speaker ('' where there is none) and text, oldest first, as they were said."""

    lines: Sequence[tuple[str, str]]

    @cached_property
    def texts(self) -> list[str]:
        """What was said, without the speakers."""
        return [text for _, text in self.lines]

    @cached_property
    def speakers(self) -> frozenset[str]:
        """The folded names of those who speak."""
        return frozenset(fold(speaker).strip() for speaker, _ in self.lines) - {""}

    @cached_property
    def folded(self) -> str:
        """All that was said, folded, one text after another."""
        return fold("\n".join(self.texts))

    @cached_property
    def words(self) -> frozenset[str]:
        """The words that were said, the parts of hyphenated ones, and the speakers' names."""
        found = words(self.folded) + [part for name in self.speakers for part in words(name)]
        parts = [part for word in found if "-" in word or "'" in word for part in _parts(word)]
        return frozenset(found).union(parts)

    @cached_property
    def terms(self) -> frozenset[str]:
        """The stems of the content words, the speakers' names among them."""
        return frozenset(terms(self.folded)).union(*map(terms, self.speakers))

    @cached_property
    def names(self) -> frozenset[str]:
        """The stems of the speakers' names."""
        return frozenset().union(*map(terms, self.speakers))

    @cached_property
    def things(self) -> frozenset[str]:
        """The stems of what was said, without the speakers' names and Japanese endings."""
        return frozenset(
            term for term in self.terms - self.names if not _HIRAGANA_PAIR.fullmatch(term)
        )

    @cached_property
    def roots(self) -> frozenset[str]:
        """The roots of the words, as English has them, the speakers' names among them."""
        return frozenset(map(root, self.words))

    @cached_property
    def root_heads(self) -> frozenset[str]:
        """The first four letters of the roots that have as many."""
        return frozenset(found[:4] for found in self.roots if len(found) >= 4)

    @cached_property
    def _searched(self) -> dict[re.Pattern[str], bool]:
        return {}

    def holds(self, pattern: re.Pattern[str]) -> bool:
        """Say whether a pattern is found in what was said; looked for once."""
        if pattern not in self._searched:
            self._searched[pattern] = bool(pattern.search(self.folded))
        return self._searched[pattern]

    @cached_property
    def weight(self) -> int:
        """The size of what was said, as reading.weight counts it."""
        return weight("\n".join(self.texts))


def _parts(word: str) -> list[str]:
    return word.replace("'", "-").split("-")
