"""The marks of role-play in plain text: what is done, said, and thought, told apart.

`*waves*` is done, "speech" (and 「」, «», “”) is said, what stands in round brackets is thought or
said aside. What no mark covers is speech in a text of asterisks (`*waves* Hello`), and narration
in one that puts its speech in quotation marks, as novels do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["said", "told", "thought"]

_MARKED = re.compile(
    r"\*{1,3}(?P<told>[^*\n]{1,2000})\*{1,3}"
    r"|(?P<said>\"[^\"\n]{1,2000}\"|\u201c[^\u201d\n]{1,2000}\u201d|\u00ab[^\u00bb\n]{1,2000}\u00bb"
    r"|\u300c[^\u300d\n]{1,2000}\u300d|\u300e[^\u300f\n]{1,2000}\u300f)"
    r"|(?P<thought>\([^()\n]{1,2000}\)|\uff08[^\uff08\uff09\n]{1,2000}\uff09)"
)
_KINDS: tuple[Kind, ...] = ("told", "said", "thought")


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a text, without its marks."""

    kind: Kind
    text: str


def split_marks(text: str) -> list[Segment]:
    """The segments of one message in order, blank ones left out. Text without marks is said."""
    found: list[tuple[Kind | None, str]] = []
    at = 0
    for match in _MARKED.finditer(text):
        kind = next(name for name in _KINDS if match[name] is not None)
        marked = match[kind] if kind == "told" else match[kind][1:-1]
        found += [(None, text[at : match.start()]), (kind, marked)]
        at = match.end()
    found.append((None, text[at:]))
    quotes = any(kind == "said" for kind, _ in found)
    bare: Kind = "told" if quotes else "said"
    return [Segment(kind or bare, part.strip()) for kind, part in found if part.strip()]
