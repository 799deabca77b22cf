"""Runs of plain chunks, read by their form.

Nearly all chunks of an answer differ in one thing, a piece of text. Once one of them has been read
whole, the bytes around its text are known, and whatever has the same bytes around another string
is as plain as it was: only the strings are decoded, all of a run at one go.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gateway.backends.answer_shapes import plain_text
from gateway.wire.json_text import loads

_TEXT = re.compile(rb'"content"\s*:\s*("(?:[^"\\]|\\.)*")')
_PROBE = "\u2603 a text that no chunk has around its own"
_PROBE_BYTES = b'"\\u2603 a text that no chunk has around its own"'
_LINE = b"data: "
_END = b"\n\n"


class Run(NamedTuple):
    """Plain chunks in a row: the text of each decoded, and the JSON that it was decoded from."""

    texts: list[str]
    strings: list[bytes]


class PlainForm:
    """The bytes around the text of an answer's plain chunks, each an event of one line."""

    __slots__ = ("_after", "_before", "_begin", "_between", "_end")

    def __init__(self, before: bytes, after: bytes) -> None:
        self._before, self._after = before, after
        self._begin, self._end = _LINE + before, after + _END
        self._between = self._end + self._begin

    def fits(self, payload: bytes) -> bool:
        """Whether a chunk's JSON may be of this form."""
        return payload.startswith(self._before) and payload.endswith(self._after)

    def payload(self, string: bytes) -> bytes:
        """The JSON of a chunk of this form, as it came."""
        return self._before + string + self._after

    def read(self, data: bytes) -> tuple[Run | None, bytes]:
        """What of this form stands at the front of bytes that begin with an event, and the bytes
        behind it. None where nothing is, or anything of it is broken."""
        if not data.startswith(self._begin):
            return None, data
        *strings, last = data[len(self._begin) :].split(self._between)
        string, end, rest = last.partition(self._end)
        if end:
            strings.append(string)
        else:  # cut off by the network, or of another form from its text on
            rest = self._begin + last
        texts = _read_strings(strings)
        return (None, data) if texts is None else (Run(texts, strings), rest)


def _read_strings(strings: list[bytes]) -> list[str] | None:
    """Each decoded, where there are any and each is a string of JSON and nothing else."""
    if not strings:
        return None
    try:
        # No string of JSON holds a line's end: what is two halves cannot become one here.
        texts = loads(b"[" + b",\n".join(strings) + b"]")
    except ValueError:
        return None
    is_whole = len(texts) == len(strings) and all(type(text) is str for text in texts)
    return texts if is_whole else None


def learn_form(payload: bytes) -> PlainForm | None:
    """The form of a chunk whose JSON holds a text and nothing beside it, as `plain_text` has it;
    None where it cannot be told. Proved with another text in its place."""
    match = _TEXT.search(payload)
    if match is None or b"\n" in payload:
        return None
    before, after = payload[: match.start(1)], payload[match.end(1) :]
    try:
        is_form = plain_text(loads(before + _PROBE_BYTES + after)) == _PROBE
    except ValueError:
        return None
    return PlainForm(before, after) if is_form else None
