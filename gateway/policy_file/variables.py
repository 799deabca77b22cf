"""``${VAR}`` in values: replaced after parsing, once, by text that is never read again.

* ``${NAME}``: the variable must be set and not empty;
* ``${NAME:-default}``: the default, which may be empty, where it is unset or empty;
* ``$$``: a literal ``$``. A lone ``$`` is refused: it is nearly always a forgotten brace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

_REFERENCE = re.compile(
    r"\$(?:(?P<dollar>\$)|\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<given>:-(?P<default>[^${}]*))?\})?"
)


class Expansion(NamedTuple):
    """The text with its variables inserted, their names, and (message, hint) of what failed."""

    text: str
    names: tuple[str, ...]
    problems: tuple[tuple[str, str], ...]


def expand(text: str, environ: Mapping[str, str]) -> Expansion:
    """Insert the variables of ``environ`` into a text; no message holds a value."""
    names: list[str] = []
    problems: list[tuple[str, str]] = []

    def insert(match: re.Match[str]) -> str:
        name = match["name"]
        if match["dollar"]:
            return "$"
        if name is None:
            hint = "write ${NAME} or ${NAME:-default} for a variable, $$ for a literal $"
            problems.append(("a $ that begins no variable", hint))
            return ""
        names.append(name)
        value = environ.get(name) or match["default"]
        if value is None:
            state = "is set but empty" if name in environ else "is not set"
            hint = f"set it, or write ${{{name}:-}} where it may be missing"
            problems.append((f"the environment variable {name} {state}", hint))
        return value or ""

    return Expansion(_REFERENCE.sub(insert, text), tuple(names), tuple(problems))
