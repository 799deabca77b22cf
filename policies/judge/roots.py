"""Roots: English words without their endings, so that `planned`, `planning` and `plans` are one."""

import re

_ENDING = re.compile(
    r"(?<=\w\w\w)(?:ments?|ness|ful|ings?|ied|ies|iest|ier|ers?|ors?|ed|es|ly|y|(?<!s)s"
    r"|ions?|als?)$"
)
_ROOT_LETTERS = 5
_MOST_LETTERS = 30
"""Letters above which a word is no English one: only its beginning is read."""
_SAME = {
    "mom": "mother",
    "mum": "mother",
    "mama": "mother",
    "dad": "father",
    "papa": "father",
    "kid": "child",
    "children": "child",
    "grandma": "grandmother",
    "grandpa": "grandfather",
    "bike": "bicycle",
    "pic": "picture",
}
"""Talk says the short word, a chapter the full one."""


def root(word: str) -> str:
    """Return the root of a folded English word: no endings, no genitive, five letters at most.

    Coarser than a stemmer on purpose: unlike words may share a root, forms of one word must.
    """
    bare = _strip(word.split("'")[0])
    return _SAME_ROOTS.get(bare, bare)


def _strip(word: str) -> str:
    bare = word[:_MOST_LETTERS]
    while (shorter := _ENDING.sub("", bare)) != bare:
        bare = shorter
    if len(bare) > 3:
        bare = bare.rstrip("ei")
        bare = bare[:-1] if bare[-1:] == bare[-2:-1] else bare
    return bare[:_ROOT_LETTERS]


_SAME_ROOTS = {_strip(short): _strip(full) for short, full in _SAME.items()}
