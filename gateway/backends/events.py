"""Server-sent events from bytes, cut wherever the network cut them.

Tolerant where nothing can be lost: CRLF or CR for LF, no space after the colon, several data lines
in one event, comments, a last event without its blank line. What is no field of the format (a JSON
body or a web page in place of a stream) is kept apart, for the fault that it explains.
"""

from typing import Final

DATA: Final = "data"
ERROR: Final = "error"
STRAY: Final = "stray"

Event = tuple[str, bytes]
"""(field, payload): DATA, ERROR (llama.cpp of old wrote `error: {…}`; also `event: error`) or
STRAY (a line that is no field)."""

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""More than any answer that a client takes; a stream without blank lines ends here."""

_IGNORED_FIELDS = (b"id", b"retry")


class EventTooLarge(ValueError):
    """An event grew beyond MAX_EVENT_BYTES."""


class EventParser:
    """Feed bytes, take the events that they complete. Holds at most one unfinished event."""

    __slots__ = ("_after_return", "_rest", "_started")

    def __init__(self) -> None:
        # Grown in place and looked through once: a long event in small pieces costs its length.
        self._rest = bytearray()
        self._after_return = False
        self._started = False

    @property
    def is_between(self) -> bool:
        """Whether the next byte begins an event."""
        return not self._rest

    def feed(self, data: bytes) -> list[Event]:
        """The events completed by `data`, in order. Raises EventTooLarge."""
        if not self._started:
            self._started = True
            data = data.removeprefix(b"\xef\xbb\xbf")
        if self._after_return or b"\r" in data:
            data = self._unify_line_ends(data)
        blocks = self._split(data)
        if len(self._rest) > MAX_EVENT_BYTES:
            raise EventTooLarge(f"an event of more than {MAX_EVENT_BYTES} bytes")
        events: list[Event] = []
        for block in blocks:
            if block.startswith(b"data: ") and b"\n" not in block:
                events.append((DATA, block[6:]))
            else:
                _read_block(block, events)
        return events

    def close(self) -> list[Event]:
        """The events of what is left when the bytes end."""
        events: list[Event] = []
        _read_block(bytes(self._rest), events)
        self._rest.clear()
        return events

    def _split(self, data: bytes) -> list[bytes]:
        """The blocks that `data` completes; what is left is kept."""
        if self._rest:
            before = len(self._rest) - 1
            self._rest += data
            if self._rest.find(b"\n\n", before) < 0:
                return []
            data = bytes(self._rest)
        *blocks, rest = data.split(b"\n\n")
        self._rest = bytearray(rest)
        return blocks

    def _unify_line_ends(self, data: bytes) -> bytes:
        """LF for CRLF and CR; a CR at the very end stands for its line, and an LF that begins the
        next bytes is then its second half."""
        if self._after_return and data:
            data = data.removeprefix(b"\n")
        self._after_return = data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _read_block(block: bytes, events: list[Event]) -> None:
    data: list[bytes] = []
    field = DATA
    for line in block.split(b"\n"):
        name, colon, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line or (colon and not name) or name in _IGNORED_FIELDS:
            continue
        if name == b"data" and colon:
            data.append(value)
        elif name == b"event" and colon:
            field = ERROR if value.strip() == b"error" else DATA
        elif name == b"error" and colon:
            events.append((ERROR, value))
        else:
            events.append((STRAY, line))
    if data:
        events.append((field, b"\n".join(data)))
