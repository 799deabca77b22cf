"""Where the values that a policy hides stand in a text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from policies.masking.checks import iban_length, iban_lengths, is_iban, is_nie
from policies.masking.kinds import KINDS, Kind
from policies.masking.numbers import find_numbers

# No letters of Chinese, Japanese or Korean: an address stands in their texts without a space.
_NAME = "A-Za-z0-9\u00c0-\u024f\u0400-\u04ff"
_MAIL = re.compile(
    rf"(?<![{_NAME}@._%+-])[{_NAME}._%+-]++[@\uff20]([{_NAME}][{_NAME}.-]*+)", re.ASCII
)
_TOP = re.compile(rf"\.(?:[{_NAME}-]+)\Z")
_LETTERS = re.compile(
    r"(?<![0-9A-Za-z])(?:(?P<iban>[A-Za-z]{2}[0-9]{2}(?=[ \u00a0]?[0-9A-Za-z]{4}))"
    r"|(?P<nie>[XYZxyz]-?[0-9]{7}-?[A-Za-z])(?![0-9A-Za-z]))"
)
_ACCOUNTS = {
    length: re.compile(rf"(?:[ \u00a0]?[0-9A-Za-z]){{{length}}}(?![0-9A-Za-z])")
    for length in iban_lengths()
}
_UNSPACED = str.maketrans("", "", " \u00a0")


class Found(NamedTuple):
    """A value in a text: from `start` to before `end`, and what it is."""

    start: int
    end: int
    kind: str


def find_values(
    text: str, kinds: Collection[Kind], known: Mapping[str, str] | None = None
) -> list[Found]:
    """The values of these kinds, in order, none within another; of two that overlap the one that
    begins first. known: numbers that are hidden wherever they stand, and what they are."""
    found: list[Found] = []
    if "mail" in kinds and ("@" in text or "\uff20" in text):
        found += _find_mails(text)
    if "iban" in kinds or "national_id" in kinds:
        found += _find_lettered(text, kinds)
    found += (Found(*number) for number in find_numbers(text, kinds, known or {}))
    found.sort(key=lambda one: (one.start, -one.end))
    return _apart(found)


def kinds_in(text: str) -> frozenset[str]:
    """The kinds of values that a text holds."""
    return frozenset(one.kind for one in find_values(text, KINDS))


def _apart(found: list[Found]) -> list[Found]:
    kept: list[Found] = []
    for one in found:
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def _find_mails(text: str) -> Iterator[Found]:
    for match in _MAIL.finditer(text):
        domain = match[1].rstrip(".-")
        end = match.start(1) + len(domain)
        start = match.start() + len(match[0]) - len(match[0].lstrip(".-+%"))
        name = text[start : match.start(1) - 1]
        if not name or name == "git" or ".." in domain:
            continue
        top = _TOP.search(domain)
        if top is not None and len(top[0]) > 2 and not top[0][1].isdigit():
            yield Found(start, end, "mail")


def _find_lettered(text: str, kinds: Collection[Kind]) -> Iterator[Found]:
    for match in _LETTERS.finditer(text):
        if match["nie"] is not None:
            if "national_id" in kinds and is_nie(match["nie"].replace("-", "")):
                yield Found(match.start(), match.end(), "national_id")
        elif "iban" in kinds and (end := _read_iban(text, match.start())):
            yield Found(match.start(), end, "iban")


def _read_iban(text: str, start: int) -> int:
    """The end of the account number that begins here, as long as its country's are; 0 where there
    is none."""
    length = iban_length(text[start : start + 2].upper())
    if length is None:
        return 0
    match = _ACCOUNTS[length].match(text, start)
    return match.end() if match and is_iban(match[0].translate(_UNSPACED).upper()) else 0
