"""The quantities of policies.yaml: the grammar of sizes and durations, addresses and keys.

Sizes are characters unless the key or the written unit says otherwise; durations are seconds.
The grammar, here and nowhere else:

* size: ``48000``, ``48_000``, ``48000 chars``, ``48k chars``, ``1.5M tokens``. Digits may be
  grouped by ``_`` in threes; ``k`` is 1,000 and ``M`` is 1,000,000, and after either the unit
  (``chars``, ``tokens`` or ``messages``) is required. A number without a unit has the unit of its
  key; a view may count messages: ``40 messages``.
* duration: ``50ms``, ``30s``, ``5m``, ``2h``, ``365d``: one number, one unit, no space. A
  number without a unit is seconds in Python; in a file only 0 may stand without one.

No message written here contains a value that was read, because it may be a secret: who reads a
file adds the value, and what ``spell_size`` makes of it, where that is none.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationInfo

from policies.schema.parts import refuse

Unit = Literal["chars", "tokens", "messages"]

FROM_FILE = "from_file"
"""Key of the validation context: true where the values were written by a person in a file."""

_NUMBER = r"(?:0|[1-9][0-9]*)"
_GROUPED = r"(?:[1-9][0-9]{0,2}(?:_[0-9]{3})+)"
_DECIMAL = _NUMBER + r"(?:\.[0-9]+)?"
_UNIT = "(?:chars|tokens|messages)"
SIZE_PATTERN = rf"^(?:(?:{_NUMBER}|{_GROUPED})(?: {_UNIT})?|{_DECIMAL}[kM] {_UNIT})$"
DURATION_PATTERN = rf"^{_DECIMAL}(?:ms|s|m|h|d)$"
LONGEST_QUANTITY = 32
"""Characters: more digits than any range here allows, few enough to calculate with exactly."""

_SIZE = re.compile(rf"({_GROUPED}|{_DECIMAL})([kM]?)(?: (chars|tokens|messages))?")
_DURATION = re.compile(rf"({_DECIMAL})(ms|s|m|h|d)")
_NEARLY_SIZE = re.compile(
    r"([0-9][0-9_,' ]*|[0-9]{1,3}(?:\.[0-9]{3})+|[0-9]+\.[0-9]+) ?([kKmM]?) ?([a-z]*)", re.I
)
_NEARLY_DURATION = re.compile(rf"({_DECIMAL}) ?([a-z]*)", re.I)
_UNITS: dict[str | None, Unit] = {"chars": "chars", "tokens": "tokens", "messages": "messages"}
_FACTORS = {"": 1, "k": 1_000, "M": 1_000_000}
_SECONDS = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "h": Decimal(3_600),
    "d": Decimal(86_400),
}
_TIME_WORDS = {"": "s", "ms": "ms", "s": "s", "m": "m", "h": "h", "d": "d"} | {
    word + plural: unit
    for word, unit in (
        ("sec", "s"),
        ("second", "s"),
        ("min", "m"),
        ("minute", "m"),
        ("hr", "h"),
        ("hour", "h"),
        ("day", "d"),
        ("msec", "ms"),
        ("millisecond", "ms"),
    )
    for plural in ("", "s")
}


class Size(NamedTuple):
    """A size as written: the whole number, and the unit if one stood beside it."""

    amount: int
    unit: Unit | None


def suggest(word: str, known: Iterable[str]) -> str:
    """The one of ``known`` that ``word`` was probably meant to be, or an empty text."""
    lowered = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return lowered[near[0]] if near else ""


def parse_size(text: str) -> Size:
    """Read a size by the grammar of this module; anything else is a ValueError."""
    match = _SIZE.fullmatch(text)
    if match is None or len(text) > LONGEST_QUANTITY:
        refuse("size", "allowed is a size such as 48000, 48_000, 48k chars or 30k tokens")
    digits, factor, unit = match.groups()
    if factor and not unit:
        refuse("size", "after k or M a size needs its unit, chars or tokens")
    amount = Decimal(digits.replace("_", "")) * _FACTORS[factor]
    if amount != int(amount) or ("." in digits and not factor):
        refuse("size", "a size is a whole number of characters or tokens")
    return Size(int(amount), _UNITS.get(unit))


def parse_duration(text: str) -> float:
    """Read a duration by the grammar of this module as seconds; anything else: a ValueError."""
    match = _DURATION.fullmatch(text)
    if match is None or len(text) > LONGEST_QUANTITY:
        refuse("duration", "allowed is a duration such as 50ms, 30s, 5m, 2h or 365d")
    return float(Decimal(match[1]) * _SECONDS[match[2]])


def spell_size(text: str) -> str:
    """How a size that is nearly right is written rightly; empty where nobody can know."""
    match = _NEARLY_SIZE.fullmatch(_plain(text))
    if match is None:
        return ""
    digits, factor, word = match.groups()
    if word and "messages".startswith((factor + word).lower()):
        factor, word = "", "messages"
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{3})+", digits):
        digits = digits.replace(".", "")
    digits = re.sub(r"^0+(?=[0-9])", "", re.sub(r"[_,' ]", "", digits))
    factor = {"K": "k", "m": "M"}.get(factor, factor)
    unit = next((unit for unit in _UNITS.values() if word and unit[0] == word[0].lower()), "")
    written = [f"{digits}{factor} {unit}".rstrip()]
    if factor and not word:
        written = [f"{digits}{factor} chars", f"{digits}{factor} tokens"]
    return " or ".join(text for text in written if _is_size(text)) if unit or not word else ""


def spell_duration(text: str) -> str:
    """How a duration that is nearly right is written rightly; empty where nobody can know."""
    match = _NEARLY_DURATION.fullmatch(_plain(text))
    unit = _TIME_WORDS.get(match[2].lower()) if match else None
    return f"{match[1]}{unit}" if match and unit else ""


def _plain(text: str) -> str:
    """Full-width digits and other forms of an input method as ASCII, without blanks around."""
    return unicodedata.normalize("NFKC", text[: 2 * LONGEST_QUANTITY]).strip()


def _is_size(text: str) -> bool:
    return re.match(SIZE_PATTERN, text) is not None


def _read_size(value: object, expected: Unit, mismatch: str, hint: str = "") -> int:
    if isinstance(value, str):
        amount, unit = parse_size(value)
        if unit not in (None, expected):
            refuse("size", mismatch, hint)
        return amount
    if type(value) is not int:
        refuse("size", "allowed is a whole number such as 48000, or a size such as 48k chars")
    return value


def _read_chars(value: object) -> int:
    return _read_size(value, "chars", "this size is counted in characters", "such as 8000 chars")


def _read_tokens(value: object) -> int:
    return _read_size(value, "tokens", "this size is counted in tokens", "such as 8000 tokens")


def _read_view_size(value: object, info: ValidationInfo) -> int:
    """A size in the unit of its view, the field before the sizes."""
    unit: Unit = info.data.get("unit", "chars")
    other = parse_size(value).unit if isinstance(value, str) else None
    named = "tokens" if other in (None, "chars") else other
    hint = f"write 'unit: {named}' in this view, or the unit beside all its sizes"
    return _read_size(value, unit, f"this view counts in {unit}", hint)


def _read_duration(value: object, info: ValidationInfo) -> float:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse("duration", "allowed is a duration such as 50ms, 30s, 5m, 2h or 365d")
    if value and (info.context or {}).get(FROM_FILE):
        refuse("duration", "a duration needs its unit: ms, s, m, h or d")
    return float(value)


def _check_url(url: str, place: str = "api_key") -> str:
    """An http address without credentials; trailing slashes are taken off. place: the key of the
    file into which credentials belong instead."""
    match = re.fullmatch(r"https?://([^/?#\s\\]*)(/[^?#\s\\]*)?", url)
    if match is None:
        refuse("url", "allowed is http:// or https://, a host, and at most a port and a path")
    if "@" in match[1]:
        refuse("url", "credentials do not belong into an address", f"put the key into {place}")
    host = re.fullmatch(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?", match[1])
    if host is None or not 0 < int(host[1] or 80) < 65_536:
        refuse("url", "the host or the port of this address cannot be read")
    return url.rstrip("/")


def _check_lookup_url(url: str) -> str:
    return _check_url(url, 'headers, such as {Authorization: "${CRM_AUTHORIZATION:-}"}')


def _check_server_root(url: str) -> str:
    if url.endswith("/v1"):
        refuse("url", "allowed is the root of llama-server", "take /v1 off the end")
    return url


def _check_key(key: SecretStr) -> SecretStr:
    secret = key.get_secret_value()
    if secret and not re.fullmatch(r"[!-~]+", secret):
        refuse(
            "api_key",
            "the key holds a blank, a line break or a character outside ASCII, "
            "which no HTTP header carries",
            "look at what was copied into it or into its variable",
        )
    return key


_SizeText = Annotated[str, Field(pattern=SIZE_PATTERN)]
_DurationText = Annotated[str, Field(pattern=DURATION_PATTERN)]
Chars = Annotated[int, BeforeValidator(_read_chars, json_schema_input_type=int | _SizeText)]
Tokens = Annotated[int, BeforeValidator(_read_tokens, json_schema_input_type=int | _SizeText)]
ViewSize = Annotated[int, BeforeValidator(_read_view_size, json_schema_input_type=int | _SizeText)]
Seconds = Annotated[
    float, BeforeValidator(_read_duration, json_schema_input_type=Literal[0] | _DurationText)
]
Timeout = Annotated[Seconds, Field(ge=0.001, le=86_400)]
Window = Annotated[Tokens, Field(ge=256, le=100_000_000)]
MaxOutput = Annotated[Tokens, Field(ge=1, le=1_000_000)]
ImageChars = Annotated[Chars, Field(ge=0, le=1_000_000)]
Percent = Annotated[float, Field(ge=0, le=100)]
Url = Annotated[str, AfterValidator(_check_url)]
LookupUrl = Annotated[str, AfterValidator(_check_lookup_url)]
ServerRoot = Annotated[Url, AfterValidator(_check_server_root)]
ApiKey = Annotated[SecretStr, AfterValidator(_check_key)]
Text = Annotated[str, Field(min_length=1, max_length=256)]
