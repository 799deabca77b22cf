"""JSON bodies of Foldgate's own surface, read strictly: a field that is not known is a mistake."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from gateway.errors import BadRequest
from gateway.wire.depth import MOST_DEPTH, is_deeper
from gateway.wire.json_text import NotJson, doubled_key, loads
from gateway.wire.letters import is_blank
from policies.messages import whole_letters


def read_object(body: bytes, fields: Collection[str]) -> dict[str, Any]:
    """The body's JSON object; an empty body is an object without fields.

    Raises BadRequest for what is no object in UTF-8, for a field that is not among `fields`, and
    for one that stands twice, at whatever depth.
    """
    if not body.strip():
        return {}
    try:
        _check_encoding(body)
        told = loads(body)
        doubled = doubled_key(body)
    except NotJson as error:
        raise BadRequest(f"The body is not valid JSON: {error}.", code="invalid_json") from None
    if not isinstance(told, dict):
        raise BadRequest("The body must be a JSON object.", code="invalid_json")
    if is_deeper(told):
        raise BadRequest(f"The body is nested more than {MOST_DEPTH} deep.", code="invalid_json")
    for name in told:
        if name not in fields:
            known = ", ".join(f"`{field}`" for field in fields) or "none"
            shown = whole_letters(name)[:100]
            raise BadRequest(f"`{shown}` is no field here; known: {known}.", param=shown)
    if doubled is not None:
        shown = whole_letters(doubled)[:100]
        raise BadRequest(f"`{shown}` stands twice: say which is meant.", param=shown)
    return told


def _check_encoding(body: bytes) -> None:
    """JSON between programs is UTF-8 (RFC 8259, 8.1); the exact parser would take others too. A
    byte order mark before it is passed over, as the RFC allows. Raises NotJson."""
    encoding = json.detect_encoding(body)
    if not encoding.startswith("utf-8"):
        raise NotJson(f"it is written in {encoding[:6].upper()}; send UTF-8")


def read_text(told: Mapping[str, Any], name: str, *, most: int) -> str:
    """A text that must be there and say something. Raises BadRequest in words."""
    if name not in told:
        raise BadRequest(f"`{name}` is missing: it must be a text.", param=name)
    return check_text(told.get(name), name, most=most)


def check_text(value: object, name: str, *, most: int) -> str:
    """The value as a text of at most `most` characters that a database can hold."""
    if not isinstance(value, str):
        told = ", not null" if value is None else ""
        raise BadRequest(f"`{name}` must be a text{told}.", param=name)
    if is_blank(value):
        raise BadRequest(f"`{name}` is empty.", param=name)
    if len(value) > most:
        raise BadRequest(
            f"`{name}` has {len(value):,} characters; {most:,} are the most.", param=name
        )
    if "\x00" in value:
        raise BadRequest(f"`{name}` holds a NUL character.", param=name)
    if whole_letters(value) != value:
        raise BadRequest(f"`{name}` holds half of a surrogate pair.", param=name)
    return value


def read_flag(told: Mapping[str, Any], name: str) -> bool:
    """A field that is true or false; false where it is absent."""
    value = told.get(name, False)
    if not isinstance(value, bool):
        raise BadRequest(f"`{name}` must be true or false.", param=name)
    return value


def read_number(told: Mapping[str, Any], name: str) -> int | None:
    """A whole number from 1; None where it is absent."""
    value = told.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
        raise BadRequest(f"`{name}` must be a whole number of at least 1.", param=name)
    return value
