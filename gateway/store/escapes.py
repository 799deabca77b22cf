"""Texts that PostgreSQL cannot hold, held all the same: NUL and halves of surrogate pairs.

Clients send both, and what they send is returned exactly. On the way in such a character becomes
MARK and four hexadecimal digits, and so does MARK itself; on the way out it is what it was. The
driver does it for every text of a connection, whichever statement brings it, so that nothing above
the driver knows of it: digests, sizes and comparisons are over what was said.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from psycopg.adapt import Buffer, Loader
from psycopg.types.string import StrDumperUnknown

if TYPE_CHECKING:
    from psycopg import Connection

MARK = "\ufdd0"
"""A code point that Unicode keeps for a program's own use: no text has it, and if one does it is
escaped as well."""

_UNHELD = re.compile("[\x00\ud800-\udfff\ufdd0]")
_ESCAPED = re.compile("\ufdd0([0-9a-f]{4})")
_MARK_BYTES = MARK.encode()


def escape(said: str) -> str:
    """A text that PostgreSQL holds, for any text."""
    return _UNHELD.sub(lambda found: f"{MARK}{ord(found[0]):04x}", said)


def unescape(held: str) -> str:
    """What was escaped."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), held)


class _Dumper(StrDumperUnknown):
    """A text for the server, escaped where it must be: mostly it is encoded and looked at once."""

    def dump(self, obj: str) -> Buffer | None:
        try:
            held = obj.encode()
        except UnicodeEncodeError:
            return escape(obj).encode()
        if b"\x00" in held or _MARK_BYTES in held:
            return escape(obj).encode()
        return held


class _Loader(Loader):
    def load(self, data: Buffer) -> str:
        held = str(data, "utf-8")
        return unescape(held) if MARK in held else held


def escape_texts(connection: Connection[Any]) -> None:
    """Have every text of this connection escaped and read back."""
    connection.adapters.register_dumper(str, _Dumper)
    for name in ("text", "varchar"):
        connection.adapters.register_loader(name, _Loader)
