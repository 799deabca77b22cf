"""Names that people give to parts of the file, and what refers to them."""

from __future__ import annotations

import re
from collections.abc import Collection

from policies.schema.parts import Fault, KeyPath
from policies.schema.quantities import suggest

NAME_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,127}"


def check_name(path: KeyPath, name: str) -> list[Fault]:
    """A fault where a name could not travel in a header."""
    if re.fullmatch(NAME_PATTERN, name):
        return []
    text = "a name is 1 to 128 letters, digits and . _ : / @ + -, a letter or digit first"
    return [Fault(path, text, "names travel in HTTP headers, so only ASCII is allowed")]


def find_missing(
    path: KeyPath, noun: str, name: str, known: Collection[str], where: str
) -> list[Fault]:
    """A fault with the nearest name, or all there are, where a name is not among the known."""
    if name in known:
        return []
    near = suggest(name, known)
    hint = f"did you mean {near}?" if near else f"{where}: {', '.join(known) or 'nothing'}"
    return [Fault(path, f"there is no {noun} of this name", hint)]
