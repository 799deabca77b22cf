"""When two texts say the same though a client wrote one of them down again in its own manner.

Clients echo what was said without its thinking, with other white space or quotation marks, with
the speaker's name before it, several turns in one, or with a note of their own above or below.
Texts are plain text as `policies.messages.message_text` gives it.
"""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

_MARKS = str.maketrans("", "", "*_`~\"“”„«»‘’'\u200b\u200c\u200d\ufeff")
_SPACES = re.compile(r"[^\S\n]+")
_LINES = re.compile(r" ?\n[ \n]*")
_OPENING = re.compile(r"<([A-Za-z][\w-]{0,30})(?:\s[^<>]*)?>|<!--")
_CLOSING = re.compile(r"</([A-Za-z][\w-]{0,30})\s*>|-->")
_TAG = re.compile(r"</?[A-Za-z][\w-]{0,30}(?:\s[^<>]*)?/?>")
_NAME = re.compile(r"^[^\n:：]{1,40}[:：]\s?")
_NAME_AT_END = re.compile(r"(?:(?<=\n)|^)[^\n:：]{1,40}[:：] ?$")
_NOTE_LEAST = 4
"""A shorter text is no note that could be told from a person's words inside a message."""


@dataclass(frozen=True)
class Form:
    """A text as it is compared: `lines` keeps its line breaks, `base` is one line of it."""

    text: str

    @cached_property
    def lines(self) -> str:
        return _tidy(self.text)

    @cached_property
    def base(self) -> str:
        return self.lines.replace("\n", " ")

    @cached_property
    def stripped(self) -> tuple[str, ...]:
        """`lines`, and what a client leaves of it without tagged blocks, tags, or images."""
        text = self.text
        if "<" not in text and "[image]" not in text:
            return (self.lines,)
        made = (_drop_blocks(text), _TAG.sub("", text), text.replace("[image]", ""))
        return tuple(dict.fromkeys((self.lines, *filter(None, map(_tidy, made)))))

    @cached_property
    def bases(self) -> frozenset[str]:
        return frozenset(lines.replace("\n", " ") for lines in self.stripped) - {""}

    @cached_property
    def unnamed(self) -> frozenset[str]:
        """`bases` without the speaker's name before them."""
        return frozenset(_NAME.sub("", base, count=1).strip() for base in self.bases) - {""}


def _tidy(text: str) -> str:
    text = unicodedata.normalize("NFC", text).translate(_MARKS)
    return _LINES.sub("\n", _SPACES.sub(" ", text)).strip()


def _drop_blocks(text: str) -> str:
    """A text without what stands between a tag and the next one that closes it, and without
    comments. One walk: a pattern would look for the end of each <br> through all that follows."""
    ends: dict[str | None, list[tuple[int, int]]] = {}
    for closing in _CLOSING.finditer(text):
        ends.setdefault(closing[1], []).append(closing.span())
    kept, at = [], 0
    for opening in _OPENING.finditer(text):
        if opening.start() < at:
            continue  # inside of one that is closed
        spans = ends.get(opening[1], [])
        found = bisect_left(spans, (opening.end(), 0))
        if found < len(spans):
            kept.append(text[at : opening.start()])
            at = spans[found][1]
    return "".join((*kept, text[at:]))


def is_alike(sent: Form, kept: Form) -> bool:
    """Whether a client means the kept text by the sent one. A name is at one of them only:
    "Ann: yes" and "Bob: yes" are two. A text of which nothing is left is like no other."""
    if kept.text and sent.text.endswith(kept.text):
        lead = sent.text[: -len(kept.text)]
        if _NAME.fullmatch(lead):  # by far the most frequent: nothing need be normalised
            return True
    if not sent.base:
        return False
    if sent.base in kept.bases or sent.base in kept.unnamed:
        return True
    named = _NAME.sub("", sent.base, count=1).strip()
    return named in kept.bases


def share_words(one: str, other: str) -> float:
    """What two texts have in common, from 0.0 to 1.0: of all their pairs of letters the share that
    stands in both (the coefficient of Jaccard)."""
    ours, theirs = (letter_pairs(text.casefold()) for text in (one, other))
    return len(ours & theirs) / max(1, len(ours | theirs))


def letter_pairs(text: str) -> set[str]:
    letters = "".join(filter(str.isalnum, text))
    return {letters[at : at + 2] for at in range(len(letters) - 1)}


def count_squashed(whole: Form, parts: Iterable[Form]) -> int:
    """How many parts (newest first) the whole consists of; 0 where they do not fill it.

    Each may have its speaker's name before it. One part alone is not squashed.
    """
    rest = whole.lines
    for count, part in enumerate(parts, start=1):
        end = next((lines for lines in part.stripped if lines and rest.endswith(lines)), None)
        if end is None:
            return 0
        rest = _NAME_AT_END.sub("", rest[: -len(end)]).rstrip()
        if not rest:
            return count if count > 1 else 0
    return 0


@dataclass(frozen=True, slots=True)
class Peeled:
    """A message's own text, and what stands before and after it, white space included."""

    before: str
    text: str
    after: str

    @property
    def is_bare(self) -> bool:
        return not self.before and not self.after


def peel(text: str, notes: Sequence[str]) -> Peeled:
    """Take known notes off a message: whole lines at its beginning and end."""
    before, after, found = "", "", True
    while found:
        found = False
        for note in notes:
            if len(note) < _NOTE_LEAST or len(note) >= len(text.strip()):
                continue
            if (cut := _beginning(text, note)) is not None:
                before, text, found = before + cut, text[len(cut) :], True
            elif (cut := _ending(text, note)) is not None:
                after, text, found = cut + after, text[: -len(cut)], True
    return Peeled(before, text, after)


def _beginning(text: str, note: str) -> str | None:
    lead = len(text) - len(text.lstrip())
    rest = text[lead + len(note) :]
    if not text.startswith(note, lead) or not rest.startswith("\n"):
        return None
    return text[: len(text) - len(rest.lstrip())]


def _ending(text: str, note: str) -> str | None:
    tidy = text.rstrip()
    if not tidy.endswith(note):
        return None
    own = tidy[: -len(note)]
    return text[len(own.rstrip()) :] if own.endswith("\n") else None


def find_wrapping(whole: str, inner: str) -> Peeled | None:
    """What a client put around a message: `inner` as whole lines of `whole`, or behind a colon
    or a tag. None where inner is no such part."""
    inner = inner.strip()
    at = whole.rfind(inner) if inner else -1
    if at < 0 or len(inner) == len(whole.strip()):
        return None
    before, after = whole[:at], whole[at + len(inner) :]
    opens = not before.strip() or before.endswith("\n") or before.rstrip()[-1] in ">:："
    closes = not after.strip() or after[0] in "\n<"
    return Peeled(before, inner, after) if opens and closes else None


def unwrap(text: str, wrapping: Peeled) -> Peeled:
    """Take off what stands around a message in a manner seen before: the same first line above
    it, the same last line right before it, the same first line below it."""
    before = after = ""
    if wrapping.before.strip():
        lines = wrapping.before.strip().split("\n")
        end = text.rfind(lines[-1])
        if text.lstrip().startswith(lines[0]) and end >= 0:
            own = text[end + len(lines[-1]) :]
            before, text = text[: len(text) - len(own.lstrip())], own.lstrip()
    if wrapping.after.strip():
        start = text.find(wrapping.after.strip().split("\n")[0])
        if start > 0:
            own = text[:start].rstrip()
            after, text = text[len(own) :], own
    return Peeled(before, text, after) if text.strip() else Peeled("", before + text + after, "")
