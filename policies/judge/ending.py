"""Texts cut off although the provider said `stop`: a schema's maxLength cuts in mid-sentence."""

import re

from policies.judge.reading import fold, units

_ENDS = re.compile(r"[.!?。！？…｡~〜♪][\"'\u201d\u2019»」』)\]）】*_`>]*\s*$")
_CLOSED = re.compile(r"[\"\u201d»」』)\]）】|`]\s*$|[^\w\s,，、;:：(（\[「『«\u201c\-–—]\s*$")
_OPEN_END = re.compile(r"[,，、;；:：(（\[「『«\u201c\-–—/&]\s*$")
_ANY_END = re.compile(r"[.!?。！？｡](?=\s|$|[\"'\u201d»」』]|[^\x00-\x7f])")
_ITEM = re.compile(r"^\s*(?:[-*•·–—▪◦#|]|\d{1,3}[.)、:]|[^:：\n]{1,40}[:：])")
_DANGLING = frozenset(
    "the a an and or but of to in on at by for with from as that which who whose when while because"
    " if than is are was were has have had will would can could should his her their its my your"
    " our into about"
    " el la los las un una y o pero de del al en con por para que se su sus es fue como cuando"
    " porque"
    " и а но или в во на с со к ко у о об от до из за по при что чтобы который которая которые как"
    " если его ее их не"
    " 的 和 与 與 把 被 向 跟 并 而 但 或".split()
)
_DANGLING_TAIL = re.compile(
    r"(?:[はがをにへで、]|(?<!こ)と|(?<!も)の)$"
    r"|(?<=[가-힣])(?:(?<!마)(?<!가)(?<!노)을|를|는|에서|에게|으로|하고|지만|면서|려고)$"
)
_PAIRS = (
    ("(", ")"),
    ("（", "）"),
    ("「", "」"),
    ("『", "』"),
    ("«", "»"),
    ("\u201c", "\u201d"),
    ("[", "]"),
)


def is_cut(prose: str) -> bool:
    """Say whether a prose stops in mid-sentence.

    A last sentence without its full stop counts where the sentences before have theirs; list
    items, headings and telegraphic notes need none, but may not stop at a comma or a preposition.
    """
    text = prose.rstrip()
    if _ENDS.search(text):
        return _leaves_open(text)
    if _OPEN_END.search(text) or _leaves_open(text):
        return True
    last = text.rsplit("\n", 1)[-1]
    if _stops_at_joint(last):
        return True
    if _CLOSED.search(text) or _ITEM.match(last):
        return False
    before = _ANY_END.findall(text)
    return len(before) >= 1


def _leaves_open(text: str) -> bool:
    """A bracket or quotation opened in the last lines and never closed."""
    tail = text[-600:]
    return any(tail.rfind(opening) > tail.rfind(closing) for opening, closing in _PAIRS)


def _stops_at_joint(last: str) -> bool:
    row = units(fold(last))
    return bool(row) and (row[-1] in _DANGLING or bool(_DANGLING_TAIL.search(fold(last).strip())))
