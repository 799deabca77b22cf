"""The notice rule: does a record tell that it, or a part of it, is not told?

Who records is asked to stand outside, and so refuses in the third person ("The assistant is unable
to provide a chronicle …", "[The remaining content was omitted due to policy.]"), with the names of
the span. A chapter may tell the same of somebody in the span. What tells the two apart are the
words of recording, of rules and of leaving out: in a refusal they are the recorder's own and stand
nowhere in the source. Words of every day count less: see everyday.
"""

import re

from policies.judge.everyday import Prose, is_told
from policies.judge.heard import Heard
from policies.judge.notices import GROUPS, NOTICES, Notice
from policies.judge.reading import HAN, HANGUL, KANA, QUOTE_MARK, fold, sentences, uncover, unquote
from policies.judge.refusal import is_refusal
from policies.judge.voices import VOICES

_DENSE = re.compile(f"[{HAN}{KANA}{HANGUL}]")
_STEM_LETTERS, _STEM_SIGNS = 5, 2
_END_CHARS = 10_000
"""Of what is longer than any chapter the beginning and the end are read, where notices stand."""
_PIECE_CHARS = 600
"""Three times the longest sentence of the tests' notices; a notice of half as many always stands in
one piece."""
_COLON = re.compile(r"[:：](?=\s|[^\x00-\x7f])")
"""What follows a colon is said for itself: `Here is the chapter: nothing could be …`."""
_ASSISTANTS = frozenset(
    "assistant asistente ассистент помощник 助手 助理 アシスタント 어시스턴트 ai ии ia bot".split()
)
"""Speakers, folded, of whom a chapter may tell as of an assistant."""


def is_withheld(prose: str, heard: Heard) -> bool:
    """Say whether a prose declines, in whatever person, to tell its source or a part of it.

    What an assistant of the source refused may be told; quotations are exempt.
    """
    if len(prose) > 2 * _END_CHARS:
        prose = f"{prose[:_END_CHARS]}\n{prose[-_END_CHARS:]}"
    parts = sentences(_COLON.sub("\n", unquote(uncover(prose))))
    told = [" ".join(fold(part).split()) for part in parts]
    whole = Prose(told, heard)
    return _breaks_off(told, heard) or any(
        notice.script.search(piece) and _is_notice(piece, notice, whole, at)
        for at, text in enumerate(told)
        for piece in pieces(text)
        for notice in NOTICES
    )


def pieces(text: str) -> list[str]:
    """Return a sentence whole, or, where it has no end in sight, in overlapping parts: a pattern
    looks for its words all over what it is given."""
    starts = range(0, max(1, len(text) - _PIECE_CHARS // 2), _PIECE_CHARS // 2)
    return [text[at : at + _PIECE_CHARS] for at in starts]


def _breaks_off(told: list[str], heard: Heard) -> bool:
    """Whether behind the first sentence one alone is in the first person, in which the recorder
    declines in words that nobody said."""
    for voice in VOICES:
        own = [text for text in told if voice.script.search(text) and voice.speaker.search(text)]
        if len(own) == 1 and own[0] != told[0]:
            found = voice.first.search(own[0][:_PIECE_CHARS])
            if found and found.group() not in heard.folded and QUOTE_MARK not in own[0]:
                return True
    return False


def _is_notice(text: str, notice: Notice, prose: Prose, at: int) -> bool:
    if any(_is_strange(form.search(text), notice, prose, at) for form in notice.forms):
        return True
    reported = any(_is_strange(form.search(text), notice, prose, at) for form in notice.reported)
    return reported and not _holds_refusal(prose.heard)


def _is_strange(found: re.Match[str] | None, notice: Notice, prose: Prose, at: int) -> bool:
    """Whether a form was found in the sentence `at`, a word it captured is the recorder's own, and
    it is not told of others."""
    if found is None:
        return False
    met = {name: word for name, word in found.groupdict().items() if word and name in GROUPS}
    own = not met or any(_is_own(name, word, notice, prose.heard) for name, word in met.items())
    return own and not is_told(found, notice, prose, at)


def _is_own(name: str, word: str, notice: Notice, heard: Heard) -> bool:
    if name == "rules":
        return not heard.holds(notice.rules)
    if name == "left":
        return not heard.holds(notice.left)
    if name == "telling" and heard.holds(notice.asked):
        return False
    if name == "stop":
        return word not in heard.folded
    stem = word[: _STEM_SIGNS if _DENSE.search(word) else _STEM_LETTERS]
    return stem not in heard.folded and not any(stem in name for name in heard.speakers)


def _holds_refusal(heard: Heard) -> bool:
    """Whether an assistant declines in the source."""
    return any(fold(who).strip() in _ASSISTANTS and is_refusal(text) for who, text in heard.lines)
