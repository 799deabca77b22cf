"""Sizes: too short or too long for the source, or a placeholder."""

import re

from policies.judge.reading import fold, weight, words
from policies.judge.terms import DENSE

_PLACEHOLDER = re.compile(
    r"^\W*(?:\[[^\]\n]{0,80}\]|\([^)\n]{0,80}\)|<[^>\n]{0,80}>|\{[^}\n]{0,80}\})\W*$"
    r"|^\W*(?:n/?a|none|null|nil|todo|tbd|empty|placeholder|lorem ipsum.*|"
    r"summary|chapter|untitled|undefined|nothing(?: \w+){0,5}|no (?:more |"
    r"further |new )?(?:messages?|content|information|events?|summary)(?: \w+){0,4}"
    r"|无|無|暂无|無し|なし|特になし|내용 없음|없음|нет|ничего|ninguno|"
    r"nada|sin contenido|sin novedades)\W*$"
)

_LONGEST_WORD = 45
"""Letters: longer ones are in no dictionary of the six languages."""


def is_degenerate(prose: str, source_weight: int, asked_chars: int) -> bool:
    """Say whether a prose is implausibly small for its source, or a placeholder.

    source_weight: of the source as reading.weight counts it. The least is a sixth of what was
    asked for long sources, a fortieth of the source for short ones: a note of 44 characters may
    tell a span of 1,700, not one of 32,000.
    """
    folded = fold(prose).strip()
    if _PLACEHOLDER.match(folded) or _is_unbroken(folded):
        return True
    least = min(asked_chars / 6, source_weight / 40)
    return weight(prose) < least or (
        source_weight > 200 and len(words(folded)) < 2 and weight(prose) < 12
    )


def _is_unbroken(folded: str) -> bool:
    """Whether more than half of a text is one run without a blank, in a script that has blanks: a
    code, an address, a word gone wrong."""
    longest = max(map(len, folded.split()), default=0)
    return longest > _LONGEST_WORD and longest * 2 > len(folded) and not DENSE.search(folded)


def is_long(prose: str, source_weight: int, asked_chars: int) -> bool:
    """Say whether a prose is four times what was asked, or outgrows its source.

    Up to 400 characters nothing outgrows its source: three lines may need a sentence of setting.
    """
    told = weight(prose)
    return len(prose.strip()) > 4 * asked_chars or (told > 400 and told > source_weight * 1.1)
