"""What a chapter's entries change in a ledger: which are new, and what they do to earlier ones.

A newer fact about the same thing takes the place of the older one, which stays readable. What is
known already is not written twice; what a newer text of the same chapter leaves out goes.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from policies.ledger.values import Claim, Entries, Fact

Kind = Literal["fact", "claim", "thread", "quote"]

_NUMBER = re.compile(
    r"\d+(?:[.,:/-]\d+)*|[〇零一二三四五六七八九十百千万萬两兩]+(?=[歳岁才月日年人个個匹只位])"
)
_NAME = re.compile(r"(?<!^)(?<![.!?] )\b[A-ZА-ЯЁÁÉÍÓÚÑ][\w'’-]*")


@dataclass(frozen=True, slots=True)
class Known:
    """An entry that is live already, by its row number. about: of a fact; who: of the others."""

    pk: int
    kind: str
    text: str
    about: str = ""
    who: str = ""
    number: int | None = None


@dataclass(frozen=True, slots=True)
class New:
    """An entry to be written."""

    kind: Kind
    text: str
    line: int
    about: str = ""
    who: str = ""
    target: str = ""
    truth: str | None = None


@dataclass(frozen=True, slots=True)
class Additions:
    """new: to be written, in order. superseded: (row number, index of the new one that takes its
    place). outdated: (index of a new one, row number of the later one that says otherwise).
    closed: row numbers of the threads that are resolved. left_out: row numbers of what an earlier
    text of this chapter told and this one does not."""

    new: tuple[New, ...]
    superseded: tuple[tuple[int, int], ...]
    outdated: tuple[tuple[int, int], ...]
    closed: tuple[int, ...]
    left_out: tuple[int, ...]


def plan_additions(
    entries: Entries,
    *,
    earlier: Sequence[Known],
    own: Sequence[Known] = (),
    later: Sequence[Known] = (),
) -> Additions:
    """earlier: live entries of the chapters before this one on its path, closed threads left out;
    own: of earlier texts of this chapter; later: facts of chapters behind it."""
    told = _list_new(entries)
    known = [*earlier, *own]
    new = [each for each in told if not any(_is_known(each, kept) for kept in known)]
    restated = [kept.pk for kept in own if any(_is_known(each, kept) for each in told)]
    resolved = set(entries.resolved)
    return Additions(
        tuple(new),
        tuple(
            (kept.pk, index)
            for kept in earlier
            for index, each in enumerate(new)
            if kept.kind == each.kind == "fact" and supersedes(each, kept)
        ),
        tuple(
            (index, kept.pk)
            for index, each in enumerate(new)
            for kept in later
            if kept.kind == each.kind == "fact"
            and (_key(each) == _key(kept) or supersedes(kept, each))
        ),
        tuple(k.pk for k in earlier if k.kind == "thread" and k.number in resolved),
        tuple(kept.pk for kept in own if kept.pk not in restated),
    )


def supersedes(newer: New | Known, older: New | Known) -> bool:
    """Whether one fact takes the place of another: both are about the same thing, or they are the
    same words but for numbers and names."""
    if fold_text(newer.text) == fold_text(older.text):
        return False
    about = fold_text(newer.about)
    if about and about == fold_text(older.about):
        return True
    frame = frame_of(newer.text)
    return frame == frame_of(older.text) and any(map(str.isalpha, frame))


def fold_text(text: str) -> str:
    """A text as entries are compared: letters and digits only, without case and width."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(c if c.isalnum() else " " for c in plain).split())


def frame_of(text: str) -> str:
    """A text as `fold_text` gives it, without its numbers and names."""
    plain = unicodedata.normalize("NFKC", text)
    return fold_text(_NUMBER.sub("#", _NAME.sub("#", plain)).replace("#", " \ue000 "))


def _list_new(entries: Entries) -> list[New]:
    """Each entry once; a fact told twice about one thing counts as it was told last."""
    told: list[New] = [
        *map(_of_fact, entries.facts),
        *map(_of_claim, entries.claims),
        *(New("thread", thread.text, thread.line) for thread in entries.opened),
        *(New("quote", quote.text, quote.line, who=quote.who) for quote in entries.quotes),
    ]
    return list({(each.kind, each.who, fold_text(each.text)): each for each in told}.values())


def _of_fact(fact: Fact) -> New:
    return New("fact", fact.text, fact.line, about=fact.about)


def _of_claim(claim: Claim) -> New:
    return New(
        "claim", claim.text, claim.line, who=claim.who, target=claim.target, truth=claim.truth
    )


def _is_known(new: New, kept: Known) -> bool:
    """By the words alone: two threads that are merely alike may be two, and none may get lost."""
    return new.kind == kept.kind and _key(new) == _key(kept)


def _key(entry: New | Known) -> tuple[str, str]:
    return fold_text(entry.who), fold_text(entry.text)
