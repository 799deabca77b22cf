"""What a plain scalar means: only what every YAML reader agrees on.

Text that one reader takes for a number, a date or a truth value and another does not is refused,
wherever it stands: the file must mean the same to people, editors and programs.
"""

from __future__ import annotations

import re
from typing import NamedTuple

Scalar = str | int | float | bool | None


class Ambiguity(NamedTuple):
    """Why a plain scalar is refused, and how it is written instead; without its text."""

    message: str
    hint: str


_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,39}|[1-9][0-9]{0,2}(?:_[0-9]{3}){1,13})")
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+")
_WORDS: dict[str, Scalar] = {"": None, "null": None, "~": None, "true": True, "false": False}
_QUOTE = "put it in quotes if text is meant"

# In this order: the first that matches explains the scalar.
_AMBIGUOUS = tuple(
    (re.compile(pattern, re.IGNORECASE), Ambiguity(message, hint))
    for pattern, message, hint in (
        (
            r"y|n|yes|no|on|off|true|false",
            "some programs read this word as true or false, others as text",
            "write true or false, or put the word in quotes",
        ),
        ("null|=", "some programs read this as null, others as text", _QUOTE),
        (
            r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[t ].*)?",
            "some programs read this as a date, others as text",
            _QUOTE,
        ),
        (
            r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?",
            "some programs read this as a number to the base 60, others as text",
            "write a duration with its unit, such as 30s or 5m, or " + _QUOTE,
        ),
        (
            r"[-+]?0[0-9_]+",
            "some programs read a number that begins with 0 as octal, others as decimal",
            "write it without the leading 0, or " + _QUOTE,
        ),
        (
            r"[-+]?0[xob][0-9a-f_]+",
            "some programs read this as a hexadecimal, octal or binary number, others as text",
            "write it as a decimal number, or " + _QUOTE,
        ),
        (
            r"[-+]?[0-9]+(?:_[0-9]*)+(?:\.[0-9_]*)?",
            "some programs read this as a number, others as text",
            "group digits in threes, as in 48_000, or " + _QUOTE,
        ),
        (
            r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|[-+]?\.(?:inf|nan)",
            "some programs read this number differently or as text",
            "write the digits out, as in 48000 or 0.5, or " + _QUOTE,
        ),
    )
)


def resolve(text: str) -> Scalar | Ambiguity:
    """The value of a plain (unquoted) scalar, or why it has no certain value."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text.replace("_", ""))
    if _FLOAT.fullmatch(text):
        return float(text)
    return next((found for pattern, found in _AMBIGUOUS if pattern.fullmatch(text)), text)
