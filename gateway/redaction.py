"""What of an upstream's own words may be repeated, and what no line of the log says.

Words of providers are worth repeating: they say which field is wrong, how long a prompt may be,
when to come again. They also hold keys, in whole or in part, and whatever bytes a server chose. So
they pass here before anybody is told and before they are stored: `redact` where they are read,
because there the configured keys are known, and `UpstreamFault` once more, whatever a fault is
made of.
"""

import re
from collections.abc import Iterable
from urllib.parse import quote

from policies.masking.finding import find_values
from policies.masking.kinds import KINDS

DETAIL_CHARS = 1_000
"""Characters of an upstream's own words that are passed on."""

FAULT_CHARS = DETAIL_CHARS + 400
"""Characters of a fault's account of what happened, an upstream's words among it."""

_MASK = "***"
_LEAST_SECRET = 4
"""Characters. A shorter "key", such as a lone x, would mask ordinary words."""

_CONTROLS = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # what str.split does not take for white space
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]"  # what turns the direction of a line
)
_SURROGATES = re.compile("[\ud800-\udfff]")

# Not \b: in "APIキーsk-…" there is no border of a word before the key.
_ALONE = r"(?<![A-Za-z0-9])"
_KEYS = (
    r"(?i:Bearer|Basic)\s+[A-Za-z0-9+/._~*=-]{6,}",
    r"(?:sk|xai|gsk|nvapi|pplx)[-_][A-Za-z0-9*_.-]{6,}",
    r"(?:hf|r8|fw|tgp|gh[pousr]|github_pat|xox[a-z]|[pr]k_live|[pr]k_test)[-_]"
    r"[A-Za-z0-9*-]{10,}",
    r"key[-_](?=[A-Za-z_-]*[0-9*])[A-Za-z0-9*_-]{12,}",
    r"AIza[A-Za-z0-9_*-]{6,}|ya29\.[A-Za-z0-9_-]{6,}|(?:AKIA|ASIA)[A-Z0-9]{12,}",
    r"eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*){1,2}",  # a signed token (JWT)
)
_PERHAPS_KEYS = (
    r"(?:org|proj)[-_](?=[A-Za-z]*[0-9])[A-Za-z0-9]{12,}",  # whose account it is
    r"(?=[A-Za-z]*[0-9])(?=[0-9]*[A-Za-z])[A-Za-z0-9]{32,}(?:\.[A-Za-z0-9]{8,})?",
    r"[A-Za-z0-9]{0,12}\*{3,}[A-Za-z0-9*]+",  # a key of which a provider shows the end
)
"""In an upstream's words; in our own such letters are ids."""


def _shapes(*shapes: str) -> re.Pattern[str]:
    credentials = r"(?<=://)[^\s/@]+(?=@)"  # in an address
    return re.compile(f"{credentials}|{_ALONE}(?:{'|'.join(shapes)})")


_SHAPES = _shapes(*_KEYS, *_PERHAPS_KEYS)
_SURE_SHAPES = _shapes(*_KEYS)
_NAMED = re.compile(
    _ALONE + r"(?i:((?:(?:api|access|secret|auth|account|goog)[ _-]?(?:key|token)(?: id)?"
    r"|secret|password|authorization|(?:key|token|team|organization) id)"
    r"(?: provided| used| given| is)?[\"']?\s*[=:：]\s*[\"'`]?))[^\s\"'`,;)}\]]{2,}"
    r"|"  # a bare word before it: only what is no word itself
    + _ALONE
    + r"(?i:((?:key|token|team)\s*[=:：]\s*[\"'`]?))(?=[A-Za-z_-]*[0-9*])[A-Za-z0-9*_.-]{6,}"
)


def redact(text: str, secrets: Iterable[str] = (), most: int = DETAIL_CHARS) -> str:
    """Words on one line, of at most `most` characters, with `secrets` and everything that looks
    like a key masked, and without control characters."""
    text = _SURROGATES.sub("\ufffd", _CONTROLS.sub("", text))
    for secret in secrets:
        if len(secret) >= _LEAST_SECRET:
            for form in (secret, quote(secret, safe="")):
                text = text.replace(form, _MASK)
    text = _NAMED.sub(_mask_named, _SHAPES.sub(_MASK, text))
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def _mask_named(match: re.Match[str]) -> str:
    return (match[1] or match[2]) + _MASK


def redact_line(text: str) -> str:
    """Words of the log with everything masked that looks like a key, a mail address, or a number of
    a person or of their money. Ids of ours and digests stay."""
    text = _NAMED.sub(_mask_named, _SURE_SHAPES.sub(_MASK, text))
    for start, end, _ in reversed(find_values(text, KINDS)):
        text = text[:start] + _MASK + text[end:]
    return text
