"""JSON in and out, fast where possible, exact always.

orjson is several times faster but refuses lone surrogates, which are valid JSON and which clients
send (half an emoji cut by a UTF-16 editor). The standard library holds them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
    """Where a key stands twice in one object of a JSON text that `loads` takes (`a.b[0].c`), the
    outermost first, or None: it keeps the last, and which one was meant nobody can tell.

    Raises NotJson for lists in lists beyond what the exact parser reads: `loads` takes some more.
    """
    # By identity, the objects themselves beside it: a number that is freed is given out again.
    found: dict[int, tuple[dict[str, Any], str]] = {}

    def note(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        known = dict(pairs)
        if len(known) < len(pairs):
            found[id(known)] = known, _first_doubled(pairs)
        return known

    try:
        value = json.loads(data, object_pairs_hook=note)
    except RecursionError:
        raise NotJson("nested too deeply") from None
    return _place(value, found) if found else None


def _first_doubled(pairs: list[tuple[str, Any]]) -> str:
    """The first key that stands a second time; one pass, for a body may hold many keys."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            return name
        seen.add(name)
    raise AssertionError("no key stands twice")


@dataclass(frozen=True, slots=True)
class _Part:
    """A value, by which step (`.name`, `[0]`) it hangs on another: whole paths would hold the names
    above each value once more."""

    value: Any
    step: str = ""
    above: _Part | None = None

    def parts(self) -> Iterator[_Part]:
        if isinstance(self.value, list):
            for index, item in enumerate(self.value):
                yield _Part(item, f"[{index}]", self)
        elif isinstance(self.value, dict):
            for name, item in self.value.items():
                yield _Part(item, f".{name}", self)

    def path(self, last: str) -> str:
        steps, part = [f".{last}"], self
        while part.above is not None:
            steps.append(part.step)
            part = part.above
        return "".join(reversed(steps)).removeprefix(".")


def _place(value: Any, found: Mapping[int, tuple[dict[str, Any], str]]) -> str:
    """The path of the outermost of the objects found. The value holds it: what a doubled key took
    out of the value stood in another of them."""
    level = [_Part(value)]
    while level:
        for part in level:
            if id(part.value) in found:
                return part.path(found[id(part.value)][1])
        level = [below for part in level for below in part.parts()]
    raise AssertionError("no object of the value has a key twice")


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
