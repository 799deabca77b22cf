"""Numbers as people write them: groups of digits, by whose lengths a form is known.

A run is a digit, or a plus, and what goes on behind it in at most seven groups. It is compared as a
whole and then without its last groups, so that two numbers side by side are two. What a form alone
does not settle, such as a telephone number without any border, a word right before it does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from policies.masking import checks
from policies.masking.kinds import Kind
from policies.masking.words import (
    COUNTED,
    PASSPORT,
    SOCIAL,
    TAXPAYER,
    TELEPHONE,
    Words,
    said_before,
)

_D = "[0-9\uff10-\uff19]"
_GAP = "[ \u00a0\u2009\u202f\u3000.()\uff08\uff09\u2010-\u2015\u2212\uff0d\u30fc-]"
_PLUS = "+\uff0b"
_ASCII = {0xFF10 + digit: str(digit) for digit in range(10)}

_START = re.compile(
    rf"(?:(?<![0-9])[+\uff0b]|(?<![0-9A-Za-z+\uff0b\uff10-\uff19])"
    rf"(?<![0-9\uff10-\uff19][.:/-]))"
    rf"(?=[(\uff08]?(?:{_D}[^0-9\uff10-\uff19]{{0,3}}+){{6}}{_D})[(\uff08]?{_D}"
)
"""Where a number of at least seven digits may begin."""

_RUN = re.compile(
    rf"[+\uff0b]?[(\uff08]?({_D}{{1,19}})" + rf"(?:{_GAP}{{1,3}}({_D}{{2,19}})" * 6 + ")?" * 6
)
_GOES_ON = re.compile(rf"[0-9A-Za-z\uff10-\uff19]|[.:/-]{_D}")
_LETTER = re.compile(r"-?([A-Za-z])")

_DATE = re.compile(
    r"(?:19|20)[0-9]{2}\D{1,2}[01]?[0-9]\b"
    r"|[0-3]?[0-9]\D[01]?[0-9]\D(?:19|20)[0-9]{2}\b"
)
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:[ .\u00a0\u202f][0-9]{3})+\Z|[0-9]+000\Z")

# National digits behind the country's code: the least and the most (ITU E.164 and national plans).
_COUNTRIES = {
    "1": (10, 10),
    "7": (10, 10),
    "34": (9, 9),
    "44": (9, 10),
    "52": (10, 11),
    "54": (10, 11),
    "81": (9, 10),
    "82": (8, 10),
    "86": (9, 11),
    "886": (8, 9),
    "852": (8, 8),
}
_TRUNKS = ((2, 3, 4), (2, 4, 4), (4, 2, 4), (4, 3, 3), (4, 3, 4))
_BORDERLESS_MOBILE = re.compile(r"1[3-9][0-9]{9}|0[5789]0[0-9]{8}|010[0-9]{8}|[78]9[0-9]{9}")


class Run(NamedTuple):
    """A number as it stands in a text: its text, its digits, the lengths of its groups, what is
    said right before it, and two letters at either side."""

    text: str
    digits: str
    lengths: tuple[int, ...]
    before: str
    beside: tuple[str, str]

    @property
    def has_plus(self) -> bool:
        return self.text[0] in _PLUS

    @property
    def follows_digits(self) -> bool:
        return any(map(str.isdigit, self.beside[0]))


Rule = tuple[Kind, Callable[[Run], bool]]


def find_numbers(
    text: str, kinds: Collection[Kind], known: Mapping[str, str]
) -> Iterator[tuple[int, int, str]]:
    """(start, end, what it is) of each, in order, none within another. known: values that are
    hidden wherever they stand, and what they are."""
    at = 0
    while (start := _START.search(text, at)) is not None:
        end, kind = _read(text, start.start(), kinds, known)
        if kind:
            yield start.start(), end, kind
        at = max(end, start.end())


def _read(
    text: str, start: int, kinds: Collection[Kind], known: Mapping[str, str]
) -> tuple[int, str]:
    """The end of the number that begins here and what it is; (0, "") where it is none."""
    said = said_before(text, start)
    is_open = bool(said or known) or text[start] in _PLUS or text.startswith("00", start)
    if not is_open and not _SHAPED.match(text, start):
        return 0, ""
    match = _RUN.match(text, start)
    assert match is not None  # a start is a run of one digit
    spans = match.regs[1 : (match.lastindex or 1) + 1]
    digits = [text[begin:end].translate(_ASCII) for begin, end in spans]
    lengths = tuple(map(len, digits))
    if "national_id" in kinds and (end := _with_letter(text, spans[-1][1], digits, lengths)):
        return end, "national_id"
    for count in range(len(digits), 0, -1):
        if not is_open and lengths[:count] not in _FORMS:
            continue
        end = spans[count - 1][1]
        beside = text[max(0, start - 2) : start], text[end : end + 2]
        run = Run(text[start:end], "".join(digits[:count]), lengths[:count], said, beside)
        if (kind := known.get(run.text) or _tell(run, kinds)) and not _GOES_ON.match(text, end):
            return end, kind
    return 0, ""


def _with_letter(text: str, at: int, groups: Sequence[str], lengths: tuple[int, ...]) -> int:
    """The end of a number whose last place is a letter, behind the digits that end here; 0 where
    there is none."""
    check = _LETTERED.get(lengths)
    letter = None if check is None else _LETTER.match(text, at)
    if check is None or letter is None or _GOES_ON.match(text, letter.end()):
        return 0
    return letter.end() if check("".join(groups), letter[1]) else 0


def _tell(run: Run, kinds: Collection[Kind]) -> str:
    """What a run is; "" for nothing that is looked for."""
    is_abroad = run.has_plus or (run.digits.startswith("00") and not run.follows_digits)
    rules = _INTERNATIONAL if is_abroad else _FORMS.get(run.lengths, ())
    for kind, holds in rules:
        if kind in kinds and holds(run):
            return kind
    return "phone" if run.before and "phone" in kinds and _is_told(run) else ""


# --- rules ----------------------------------------------------------------------------------------


def _is_international(run: Run) -> bool:
    """A plus or two noughts, a country's code, and as many digits as it has. Of a country that is
    not in the table, what ITU allows."""
    digits = run.digits if run.has_plus else run.digits.removeprefix("00")
    for size in (1, 2, 3):
        if (span := _COUNTRIES.get(digits[:size])) is not None:
            behind = digits[size:].removeprefix("0")
            is_sized = span[0] <= len(behind) <= span[1]
            return is_sized and (size > 1 or digits[0] != "1" or checks.is_nanp(behind))
    return run.has_plus and 9 <= len(digits) <= 15 and not digits.endswith("0000")


def _is_borderless(run: Run) -> bool:
    """A mobile number of China, Japan, Korea or Russia, which are written in one piece."""
    found = _BORDERLESS_MOBILE.fullmatch(run.digits)
    return found is not None and not _is_counted(run)


def _is_counted(run: Run) -> bool:
    return bool(run.before) and COUNTED.are_in(run.before)


def _is_north_american(run: Run) -> bool:
    digits = run.digits
    if len(digits) == 11:
        return digits[0] == "1" and checks.is_nanp(digits[1:])
    return digits[0] != "0" and checks.is_nanp(digits)


def _has_trunk(run: Run) -> bool:
    """Japan, Korea, landlines of China: a nought in front."""
    return run.digits[0] == "0" and run.digits[1] != "0"


def _is_chinese(run: Run) -> bool:
    return run.digits[0] == "1" and run.digits[1] in "3456789"


def _is_landline(run: Run) -> bool:
    return _has_trunk(run) and "." not in run.text


def _is_russian(run: Run) -> bool:
    return run.digits[0] in "78" and run.digits[1] in "34589"


def _is_russian_short(run: Run) -> bool:
    return run.digits[0] in "34589" and "." not in run.text


def _is_spanish(run: Run) -> bool:
    return run.digits[0] in "6789"


def _is_told(run: Run) -> bool:
    """A word for a telephone right before it, and neither a date nor a sum."""
    if not 7 <= len(run.digits) <= 13 or not TELEPHONE.are_in(run.before) or _is_counted(run):
        return False
    plain = run.text.translate(_ASCII)
    if run.lengths == (3, 3, 3) and plain[0] in "6789":
        return True
    return _DATE.match(plain) is None and _THOUSANDS.match(plain) is None


def _is_ssn(run: Run) -> bool:
    return "-" in run.text and " " not in run.text and checks.is_ssn(run.digits)


def _checked(check: Callable[[str], bool]) -> Callable[[Run], bool]:
    """A number with a check digit: what is counted may have one by chance."""

    def holds(run: Run) -> bool:
        return check(run.digits) and not (len(run.lengths) == 1 and _is_counted(run))

    return holds


def _is_my_number(run: Run) -> bool:
    """Alone: twelve digits of a longer number end in a check digit often enough."""
    goes_on = any(map(str.isdigit, run.beside[1]))
    return checks.is_my_number(run.digits) and not goes_on and not run.follows_digits


def _named(words: Words, check: Callable[[str], bool]) -> Callable[[Run], bool]:
    """A number that a word before it names."""
    return lambda run: words.are_in(run.before) and check(run.digits)


def _any(_digits: str) -> bool:
    return True


_LETTERED: dict[tuple[int, ...], Callable[[str, str], bool]] = {
    (8,): checks.is_dni,
    (2, 3, 3): checks.is_dni,
    (17,): lambda digits, letter: checks.is_resident_id(digits + letter),
    (6, 8, 3): lambda digits, letter: checks.is_resident_id(digits + letter),
}

_CARD: Rule = ("card", _checked(checks.is_card))
_INTERNATIONAL: tuple[Rule, ...] = (("phone", _is_international),)
_TRUNK: Rule = ("phone", _has_trunk)

_FORMS: dict[tuple[int, ...], tuple[Rule, ...]] = {
    (9,): (("national_id", _named(SOCIAL, checks.is_ssn)),),
    (10,): (
        ("national_id", _named(TAXPAYER, checks.is_inn)),
        ("national_id", _named(PASSPORT, _any)),
    ),
    (11,): (
        ("phone", _is_borderless),
        ("national_id", _checked(checks.is_snils)),
    ),
    (12,): (
        ("national_id", _checked(checks.is_my_number)),
        ("national_id", _checked(checks.is_inn)),
    ),
    (13,): (("national_id", _checked(checks.is_checked_rrn)),),
    (14,): (_CARD,),
    (15,): (_CARD,),
    (16,): (_CARD,),
    (17,): (_CARD,),
    (18,): (("national_id", _checked(checks.is_resident_id)), _CARD),
    (19,): (_CARD,),
    (4, 4, 4, 4): (_CARD,),
    (4, 4, 4, 4, 3): (_CARD,),
    (4, 6, 5): (_CARD,),
    (4, 6, 4): (_CARD,),
    (6, 8, 4): (("national_id", _checked(checks.is_resident_id)),),
    (6, 7): (("national_id", lambda run: "." not in run.text and checks.is_rrn(run.digits)),),
    (4, 4, 4): (("national_id", _is_my_number),),
    (3, 3, 3, 2): (("national_id", _checked(checks.is_snils)),),
    (3, 2, 4): (("national_id", _is_ssn),),
    (2, 2, 6): (("national_id", _named(PASSPORT, _any)),),
    (4, 6): (("national_id", _named(PASSPORT, _any)),),
    (3, 3, 4): (("phone", _is_north_american), _TRUNK),
    (1, 3, 3, 4): (("phone", _is_north_american), ("phone", _is_russian)),
    (1, 3, 3, 2, 2): (("phone", _is_russian),),
    (1, 3, 2, 2, 3): (("phone", _is_russian),),
    (1, 3, 7): (("phone", _is_russian),),
    (1, 10): (("phone", _is_russian),),
    (3, 3, 2, 2): (("phone", _is_russian_short),),
    (3, 4, 4): (("phone", _is_chinese), _TRUNK),
    (3, 8): (("phone", _is_landline),),
    (4, 8): (("phone", _is_landline),),
    (4, 7): (("phone", _is_landline),),
    (3, 7): (("phone", _is_landline),),
    (3, 2, 2, 2): (("phone", _is_spanish),),
    (2, 3, 2, 2): (("phone", _is_spanish),),
    **dict.fromkeys(_TRUNKS, (_TRUNK,)),
}
"""What groups of these lengths may be, what is told more surely first."""


def _shape(lengths: Sequence[int]) -> str:
    return rf"{_GAP}{{1,3}}".join(rf"{_D}{{{length}}}" for length in lengths)


_SHAPED = re.compile(
    rf"[(\uff08]?(?:{'|'.join(map(_shape, sorted({*_FORMS, *_LETTERED})))})(?!{_D})"
)
"""Whether a number may be any of them, for a look that costs little."""
