"""How deep a JSON value is nested."""

from __future__ import annotations

from typing import Any

MOST_DEPTH = 100
"""Lists and objects within each other in what a client sends: a schema of a tool with thirty levels
fits. Deeper ones would end the program's own walks through them, and say nothing to a model."""


def is_deeper(value: Any, most: int = MOST_DEPTH) -> bool:
    """Whether more than `most` lists and objects stand within each other. It looks no deeper."""
    if isinstance(value, dict):
        return most == 0 or any(is_deeper(item, most - 1) for item in value.values())
    if isinstance(value, list):
        return most == 0 or any(is_deeper(item, most - 1) for item in value)
    return False
