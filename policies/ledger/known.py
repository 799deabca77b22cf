"""Names and numbers: an entry may hold none that was never heard."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from policies.judge.grounding import is_known_name, names_in
from policies.judge.heard import Heard
from policies.judge.numbers import spoken_values, values
from policies.judge.reading import fold, words
from policies.judge.terms import DENSE

USERS = "user the usuario usuaria пользователь пользователя ユーザー 用户 使用者 사용자".split()
"""How summarizers call the user where a span names nobody."""

_KATAKANA = re.compile("[\u30a1-\u30fa\u30fc]{3,}")
_COUNTED = re.compile("[二三四五六七八九十百千万萬两兩]+(?=[歳岁才月日年人个個匹只隻位本回度名点])")


@dataclass(frozen=True, slots=True)
class Known:
    """Names and numbers that were heard: words and values, and all that was said, folded."""

    words: frozenset[str]
    values: frozenset[str]
    folded: str

    @classmethod
    def of(cls, heard: Heard) -> "Known":
        figures = values(heard.folded) | spoken_values(heard.folded)
        return cls(heard.words, frozenset(figures), heard.folded)

    def invents(self, text: str) -> bool:
        """Whether a text names somebody or counts something that was never heard."""
        folded = fold(text)
        borrowed = (run for run in _KATAKANA.findall(folded) if run not in USERS)
        return (
            any(not is_known_name(name, self.words) for name in names_in(text))
            or any(run not in self.folded for run in borrowed)
            or not values(folded) <= self.values
            or any(not (read & self.values or "1" in read) for read in _spoken(folded))
        )


def _spoken(folded: str) -> Iterator[set[str]]:
    """The values that each number word may have; a syllable of Hangul alone is too many words."""
    for word in words(folded):
        if len(word) > 1 and not DENSE.search(word) and (read := spoken_values(word)):
            yield read
    for numeral in _COUNTED.findall(folded):
        yield spoken_values(numeral)
