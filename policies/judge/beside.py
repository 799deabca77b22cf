"""What a frame holds beside its prose, as the summarizer wrote it: nothing is checked yet.

Only the prose is required. A list that is missing or ill-formed is empty, never a rejection.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from policies.messages import whole_letters

MOST_ITEMS = 24
"""Items of one list that are read: more than a chapter of 32,000 characters has to tell."""

LISTS = ("facts", "claims", "opened", "resolved", "quotes")
_ID = re.compile(r"T?(\d{1,9})\b", re.IGNORECASE)
_BULLET = re.compile(r"^\s*(?:[-*•・–—]|\d{1,2}[.)])\s*")
_NONE = frozenset(
    "none n/a na nothing - – — no null empty ninguno ninguna nada нет なし ない 無し 无 無 没有"
    " 없음".split()
)


@dataclass(frozen=True, slots=True)
class Beside:
    """facts: (about, text). claims: (who, to, said, truth). opened: texts. resolved: the numbers
    of threads. quotes: (who, text). Strings as they came, '' where one was missing."""

    facts: tuple[tuple[str, str], ...] = ()
    claims: tuple[tuple[str, str, str, str], ...] = ()
    opened: tuple[str, ...] = ()
    resolved: tuple[int, ...] = ()
    quotes: tuple[tuple[str, str], ...] = ()


NOTHING = Beside()


def read_beside(frame: Mapping[str, Any]) -> Beside:
    """The lists of a JSON frame. A bare string in place of an object is its text alone."""
    return Beside(
        facts=tuple(_rows(frame.get("facts"), ("about", "text"), "text")),  # type: ignore[arg-type]
        claims=tuple(_rows(frame.get("claims"), ("who", "to", "said", "truth"), "said")),  # type: ignore[arg-type]
        opened=tuple(text for (text,) in _rows(frame.get("opened"), ("text",), "text")),
        resolved=tuple(_read_ids(frame.get("resolved"))),
        quotes=tuple(_rows(frame.get("quotes"), ("who", "text"), "text")),  # type: ignore[arg-type]
    )


def _items(value: object) -> list[Any]:
    return value[:MOST_ITEMS] if isinstance(value, list) else []


def _rows(value: object, names: tuple[str, ...], main: str) -> Iterator[tuple[str, ...]]:
    for item in _items(value):
        given = item if isinstance(item, Mapping) else {main: item}
        row = tuple(_plain(given.get(name)) for name in names)
        if row[names.index(main)]:
            yield row


def _plain(value: object) -> str:
    text = " ".join(value.split()) if isinstance(value, str) else ""
    text = whole_letters(text).replace("\x00", "\ufffd")
    return "" if text.casefold() in _NONE else text


def _read_ids(value: object) -> Iterator[int]:
    for item in _items(value):
        found = _ID.match(item.strip()) if isinstance(item, str) else None
        if found is not None:
            yield int(found[1])
        elif isinstance(item, int) and not isinstance(item, bool) and item > 0:
            yield item


def read_tagged(sections: Mapping[str, str]) -> Beside:
    """The lists of plain tagged text: an item a line, its fields between upright bars."""
    rows = {name: list(_split_rows(sections.get(name, ""))) for name in LISTS}
    return read_beside(
        {
            "facts": [_named(row, ("about", "text")) for row in rows["facts"]],
            "claims": [_named(row, ("who", "to", "said", "truth")) for row in rows["claims"]],
            "opened": [" | ".join(row) for row in rows["opened"]],
            "resolved": [part for row in rows["resolved"] for part in _ids_in(row)],
            "quotes": [_named(row, ("who", "text")) for row in rows["quotes"]],
        }
    )


def _split_rows(section: str) -> Iterator[list[str]]:
    for line in section.splitlines():
        bare = _BULLET.sub("", line).strip()
        if bare:
            yield [part.strip() for part in re.split(r"[|｜]", bare)]


def _named(row: list[str], names: tuple[str, ...]) -> dict[str, str] | str:
    return row[0] if len(row) == 1 else dict(zip(names, row, strict=False))


def _ids_in(row: list[str]) -> list[str]:
    return [part for text in row for part in re.split(r"[,;、，\s]+", text)]
