"""Numbers as values, whether written with digits or with words of the six languages."""

import re
import unicodedata

_DIGITS = re.compile(r"\d+(?:[.,' \u00a0\u202f]\d{3}(?!\d))*(?:[.,]\d+)?")
_PLAIN = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15,
    "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "thirty": 30,
    "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90,
    "once": 1, "twice": 2, "dozen": 12, "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5,
    "uno": 1, "una": 1, "dos": 2, "tres": 3, "cuatro": 4, "cinco": 5, "seis": 6, "siete": 7, "ocho": 8,
    "nueve": 9, "diez": 10, "once_es": 11, "doce": 12, "quince": 15, "veinte": 20, "treinta": 30,
    "cuarenta": 40, "cincuenta": 50, "sesenta": 60, "setenta": 70, "ochenta": 80, "noventa": 90,
    "cien": 100, "ciento": 100, "doscientos": 200, "trescientos": 300, "quinientos": 500,
    "два": 2, "две": 2, "двух": 2, "двое": 2, "три": 3, "трех": 3, "трое": 3, "четыре": 4, "четырех": 4,
    "четверо": 4, "пять": 5, "пяти": 5, "шесть": 6, "шести": 6, "семь": 7, "семи": 7, "восемь": 8,
    "восьми": 8, "девять": 9, "девяти": 9, "десять": 10, "десяти": 10, "двадцать": 20, "тридцать": 30,
    "сорок": 40, "пятьдесят": 50, "сто": 100, "двести": 200, "дважды": 2, "трижды": 3, "триста": 300,
    "하나": 1, "둘": 2, "셋": 3, "넷": 4, "다섯": 5, "여섯": 6, "일곱": 7, "여덟": 8, "아홉": 9, "열": 10,
}  # fmt: skip
_HAN_DIGITS = {c: v for v, c in enumerate("〇一二三四五六七八九")} | {"两": 2, "兩": 2, "零": 0}
_HAN_TENS = {"十": 10, "百": 100, "千": 1000, "万": 10000, "萬": 10000}
_HAN_NUMBER = re.compile("[〇零一二三四五六七八九两兩十百千万萬]+")
_WORDS = re.compile(r"[^\W\d_]+")


def values(text: str) -> set[str]:
    """Return the digit-written numbers of a folded text as plain digit strings, parts included.

    `14:35` gives 14 and 35, `1,100` gives 1100: separators of thousands are taken out.
    """
    found = set()
    for match in _DIGITS.finditer(unicodedata.normalize("NFKC", text)):
        plain = re.sub(r"[.,' \u00a0\u202f](?=\d{3}(?!\d))", "", match.group())
        found.add(plain.replace(",", ".").lstrip("0") or "0")
        found.update(part.lstrip("0") or "0" for part in re.findall(r"\d+", match.group()))
    return found


def spoken_values(text: str) -> set[str]:
    """Return the values of number words of a folded text, Chinese and Japanese numerals too."""
    found = {str(_PLAIN[word]) for word in _WORDS.findall(text) if word in _PLAIN}
    found.update(str(_read_han(match.group())) for match in _HAN_NUMBER.finditer(text))
    return found


def _read_han(numeral: str) -> int:
    total = part = digit = 0
    for sign in numeral:
        if sign in _HAN_DIGITS:
            # Years and rooms are read digit by digit: 二〇二三.
            digit = digit * 10 + _HAN_DIGITS[sign]
        elif _HAN_TENS[sign] == 10000:
            total, part, digit = total + (part + digit or 1) * 10000, 0, 0
        else:
            part, digit = part + (digit or 1) * _HAN_TENS[sign], 0
    return total + part + digit
