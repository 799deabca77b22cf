"""Numbers as values, whether written with digits or with words of the six languages."""

import re
import unicodedata

_DIGITS = re.compile(r"\d+(?:[.,' \u00a0\u202f]\d{3}(?!\d))*(?:[.,]\d+)?")
_SPOKEN = {
    0: "zero cero ноль",
    1: "one once first uno una один одна одно первый 하나 한",
    2: "two twice second dos два две двух двое дважды вдвоем 둘 두",
    3: "three third tres три трех трое трижды 셋 세",
    4: "four fourth cuatro четыре четырех четверо 넷 네",
    5: "five fifth cinco пять пяти пятеро 다섯",
    6: "six sixth seis шесть шести 여섯",
    7: "seven siete семь семи 일곱",
    8: "eight ocho восемь восьми 여덟",
    9: "nine nueve девять девяти 아홉",
    10: "ten diez десять десяти 열",
    11: "eleven once одиннадцать 열하나 열한",
    12: "twelve dozen doce docena двенадцать дюжина 열두",
    13: "thirteen trece тринадцать",
    14: "fourteen catorce четырнадцать",
    15: "fifteen quince пятнадцать 열다섯",
    16: "sixteen dieciseis шестнадцать",
    17: "seventeen diecisiete семнадцать",
    18: "eighteen dieciocho восемнадцать",
    19: "nineteen diecinueve девятнадцать",
    20: "twenty veinte двадцать 스물 스무",
    30: "thirty treinta тридцать 서른",
    40: "forty cuarenta сорок 마흔",
    50: "fifty cincuenta пятьдесят 쉰",
    60: "sixty sesenta шестьдесят 예순",
    70: "seventy setenta семьдесят 일흔",
    80: "eighty ochenta восемьдесят 여든",
    90: "ninety noventa девяносто 아흔",
    100: "hundred cien ciento сто 백",
    200: "doscientos doscientas двести",
    300: "trescientos trescientas триста",
    500: "quinientos quinientas пятьсот",
    1000: "thousand mil тысяча тысячи тысяч 천",
}
_VALUES: dict[str, set[str]] = {}
for _value, _listed in _SPOKEN.items():
    for _word in _listed.split():
        _VALUES.setdefault(_word, set()).add(str(_value))
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
    found: set[str] = set()
    for word in _WORDS.findall(text):
        found |= _VALUES.get(word, set())
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
