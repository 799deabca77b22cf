"""Lines that any terminal can show, whatever was stored or typed."""

from __future__ import annotations

import json
import re
import sys

from policies.messages import whole_letters

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_HEAD, _TAIL = 700, 300


def speakable(text: str) -> str:
    """Text as a terminal can show it: no control characters, no half letters."""
    return _CONTROL.sub("\ufffd", whole_letters(text))


def one_line(text: str) -> str:
    """Text as a terminal can show it on one line; of more than a thousand characters both ends."""
    line = speakable(text).replace("\n", " ").replace("\t", " ")
    return line if len(line) <= _HEAD + _TAIL else f"{line[:_HEAD]} … {line[-_TAIL:]}"


def printable_json(text: str) -> str:
    """JSON as standard output can write it: all in ASCII where its encoding lacks a letter."""
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return json.dumps(json.loads(text))
    return text
