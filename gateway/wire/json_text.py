"""JSON in and out, fast where possible, exact always.

orjson is several times faster but refuses lone surrogates, which are valid JSON and which clients
send (half an emoji cut by a UTF-16 editor). The standard library holds them.
"""

from __future__ import annotations

import json
import math
from typing import Any

import orjson


class NotJson(ValueError):
    """The bytes are no JSON document; the message says where."""


def _refuse_constant(name: str) -> Any:
    raise NotJson(f"{name} is not JSON")


def _read_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        # It could not be written again: JSON has no infinity.
        raise NotJson(f"{text[:20]} is larger than any number here")
    return value


def loads(data: bytes | str) -> Any:
    """The value of a JSON text. Raises NotJson."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass  # perhaps only a lone surrogate: let the exact parser decide
    try:
        return json.loads(data, parse_constant=_refuse_constant, parse_float=_read_float)
    except RecursionError:
        raise NotJson("nested too deeply") from None
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except NotJson:
        raise
    except ValueError:
        # Python converts no number of more than 4,300 digits: that would take for ever.
        raise NotJson("a number has too many digits") from None


def load_object(text: str) -> dict[str, Any] | None:
    """The JSON object that a text is; None where it is something else, or no JSON."""
    try:
        value = loads(text)
    except NotJson:
        return None
    return value if isinstance(value, dict) else None


def doubled_key(data: bytes | str) -> str | None:
    """A key that stands twice in one object of a JSON text that `loads` takes, or None: it keeps
    the last, and which one was meant nobody can tell."""
    found: list[str] = []

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        known = dict(pairs)
        if len(known) < len(pairs):
            names = [name for name, _ in pairs]
            found.append(next(name for name in names if names.count(name) > 1))
        return known

    json.loads(data, object_pairs_hook=note)
    return found[0] if found else None


def dumps(value: Any) -> str:
    """Compact JSON text in Unicode; ASCII-escaped where a lone surrogate demands it.

    Raises NotJson for lists in lists beyond what can be written.
    """
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        return _dump_exactly(value)


def dump_bytes(value: Any) -> bytes:
    """Like dumps, as UTF-8."""
    try:
        return orjson.dumps(value)
    except TypeError:
        return _dump_exactly(value).encode()


def _dump_exactly(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    except RecursionError:
        raise NotJson("nested too deeply") from None
