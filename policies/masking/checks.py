"""Check digits, dates and ranges by which a number is known for what it is.

Every function takes digits 0-9 (and the letters that belong to a number) without separators, of
the length that its caller has looked at.
"""

from __future__ import annotations

from collections.abc import Sequence

_AS_DIGITS = {ord("A") + at: str(10 + at) for at in range(26)}
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DNI = "TRWAGMYFPDXBNJZSQVHLCKE"
_RESIDENT = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_RRN = (2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5)
_INN_10 = (2, 4, 10, 3, 5, 9, 4, 6, 8)
_INN_11 = (7, *_INN_10)
_INN_12 = (3, *_INN_11)

# First digits of the networks' numbers, by how many digits those have (ISO/IEC 7812).
_NETWORKS: dict[int, tuple[tuple[int, int], ...]] = {
    14: ((300, 305), (36, 36), (38, 39)),
    15: ((34, 34), (37, 37)),
    16: (
        (4, 4),
        (51, 55),
        (2221, 2720),
        (6011, 6011),
        (644, 649),
        (65, 65),
        (3528, 3589),
        (62, 62),
        (2200, 2204),
        (36, 36),
    ),
    17: ((62, 62), (2200, 2204)),
    18: ((62, 62), (2200, 2204)),
    19: ((4, 4), (62, 62), (2200, 2204), (6011, 6011)),
}

_IBAN_LENGTHS = {
    **dict.fromkeys(("NO",), 15),
    **dict.fromkeys(("BE",), 16),
    **dict.fromkeys(("DK", "FO", "FI", "GL", "NL"), 18),
    **dict.fromkeys(("MK", "SI"), 19),
    **dict.fromkeys(("AT", "BA", "EE", "KZ", "LT", "LU", "XK"), 20),
    **dict.fromkeys(("HR", "LV", "LI", "CH"), 21),
    **dict.fromkeys(("BG", "BH", "CR", "DE", "GE", "IE", "ME", "RS", "GB", "VA"), 22),
    **dict.fromkeys(("AE", "GI", "IL", "IQ", "TL"), 23),
    **dict.fromkeys(("AD", "CZ", "MD", "PK", "RO", "SA", "SK", "ES", "SE", "TN", "VG"), 24),
    **dict.fromkeys(("PT", "ST"), 25),
    **dict.fromkeys(("IS", "TR"), 26),
    **dict.fromkeys(("FR", "GR", "IT", "MC", "MR", "SM"), 27),
    **dict.fromkeys(("AL", "AZ", "BY", "CY", "DO", "GT", "HU", "LB", "PL", "SV"), 28),
    **dict.fromkeys(("BR", "EG", "PS", "QA", "UA"), 29),
    **dict.fromkeys(("JO", "KW", "MU"), 30),
    **dict.fromkeys(("MT", "SC"), 31),
    **dict.fromkeys(("RU",), 33),
}
"""Characters of an account number by its country (the SWIFT registry)."""


def is_card(digits: str) -> bool:
    """A payment card: the length and first digits of a network, and Luhn's check digit."""
    ranges = _NETWORKS.get(len(digits), ())
    if not any(low <= int(digits[: len(str(low))]) <= high for low, high in ranges):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(doubled) + sum(map(int, digits[-1::-2]))) % 10 == 0


def iban_length(country: str) -> int | None:
    """Characters of an IBAN of this country (two capitals); None where there are none."""
    return _IBAN_LENGTHS.get(country)


def iban_lengths() -> frozenset[int]:
    """Every length that an IBAN may have."""
    return frozenset(_IBAN_LENGTHS.values())


def is_iban(account: str) -> bool:
    """ISO 13616: the number (in capitals), its first four characters behind, is 1 modulo 97."""
    return int((account[4:] + account[:4]).translate(_AS_DIGITS)) % 97 == 1


def is_ssn(digits: str) -> bool:
    """A number that the United States' Social Security gives out (9 digits)."""
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"


def is_dni(digits: str, letter: str) -> bool:
    """Spain's DNI: 8 digits and the letter of their remainder by 23."""
    return _DNI[int(digits) % 23] == letter.upper()


def is_nie(number: str) -> bool:
    """Spain's number of foreigners: X, Y or Z, 7 digits, the letter as of a DNI."""
    first, digits, letter = number[0].upper(), number[1:8], number[8]
    return is_dni(str("XYZ".index(first)) + digits, letter)


def is_resident_id(number: str) -> bool:
    """China's resident number: 17 digits, a date of birth among them, and a check (GB 11643)."""
    if not "1800" <= number[6:10] <= "2099" or not _is_day(number[10:12], number[12:14]):
        return False
    return "10X98765432"[_weigh(number[:17], _RESIDENT) % 11] == number[17].upper()


def is_rrn(digits: str) -> bool:
    """Korea's resident number by its date of birth and the digit of sex and century; numbers given
    out since October 2020 have no check digit."""
    return _is_day(digits[2:4], digits[4:6]) and digits[6] in "12345678"


def is_checked_rrn(digits: str) -> bool:
    """The same with the check digit of older numbers."""
    return is_rrn(digits) and (11 - _weigh(digits[:12], _RRN) % 11) % 10 == int(digits[12])


def is_my_number(digits: str) -> bool:
    """Japan's individual number: 11 digits and a check digit."""
    weights = (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)
    rest = _weigh(digits[:11], weights) % 11
    return int(digits[11]) == (0 if rest <= 1 else 11 - rest)


def is_snils(digits: str) -> bool:
    """Russia's insurance number: 9 digits and two of a check."""
    check = _weigh(digits[:9], range(9, 0, -1)) % 101 % 100
    return digits[:9] > "001001998" and int(digits[9:]) == check


def is_inn(digits: str) -> bool:
    """Russia's taxpayer number: of a company (10 digits) or a person (12)."""
    if len(digits) == 10:
        return _ends_inn(digits, _INN_10)
    return _ends_inn(digits[:11], _INN_11) and _ends_inn(digits, _INN_12)


def _ends_inn(digits: str, weights: Sequence[int]) -> bool:
    return _weigh(digits[:-1], weights) % 11 % 10 == int(digits[-1])


def is_nanp(digits: str) -> bool:
    """Ten digits as telephones of North America have them."""
    return digits[0] in "23456789" and digits[3] in "23456789" and digits[1:3] != "11"


def _weigh(digits: str, weights: Sequence[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=True))


def _is_day(month: str, day: str) -> bool:
    return "01" <= month <= "12" and 1 <= int(day) <= _DAYS[int(month) - 1]
