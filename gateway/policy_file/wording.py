"""Validation errors as problems: what was read, what is allowed, what to write instead.

pydantic's own texts are not shown, nor the input that its errors carry: both can hold secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from gateway.policy_file.problems import Problem, spell_path
from gateway.policy_file.scalars import resolve
from gateway.policy_file.tree import Node
from gateway.policy_file.values import Values
from policies.schema import (
    FAULTS,
    Attempts,
    Chapters,
    Circuit,
    Extent,
    Gist,
    KeyPath,
    Ledger,
    LiteLLMBackend,
    LlamaCppBackend,
    Lookup,
    Model,
    Part,
    Policy,
    PolicyFile,
    Profile,
    Recall,
    ReplyFields,
    Rule,
    ScriptedBackend,
    Summaries,
    Tier,
    Timeouts,
    View,
    When,
    spell_duration,
    spell_hours,
    spell_size,
    suggest,
)

KINDS: Mapping[str, type[LlamaCppBackend | LiteLLMBackend | ScriptedBackend]] = {
    "llama_cpp": LlamaCppBackend,
    "litellm": LiteLLMBackend,
    "scripted": ScriptedBackend,
}
# The parts of the file by their path, * for a name or a position.
PARTS: Mapping[tuple[str, ...], Sequence[type[Part]]] = {
    (): (PolicyFile,),
    ("backends", "*"): tuple(KINDS.values()),
    ("backends", "*", "timeouts"): (Timeouts,),
    ("backends", "*", "circuit"): (Circuit,),
    ("policies", "*"): (Policy,),
    ("policies", "*", "view"): (View,),
    ("policies", "*", "chapters"): (Chapters,),
    ("policies", "*", "gist"): (Gist,),
    ("policies", "*", "summaries"): (Summaries,),
    ("policies", "*", "recall"): (Recall,),
    ("policies", "*", "ledger"): (Ledger,),
    ("policies", "*", "profile"): (Profile,),
    ("policies", "*", "reply_fields"): (ReplyFields,),
    ("lookups", "*"): (Lookup,),
    ("models", "*"): (Model,),
    ("models", "*", "tiers", "*"): (Tier,),
    ("models", "*", "attempts"): (Attempts,),
    ("models", "*", "rules", "*"): (Rule,),
    ("models", "*", "rules", "*", "when"): (When,),
    ("models", "*", "rules", "*", "when", "chars"): (Extent,),
}
INJECTED = {(Policy, "name")}
"""Fields that the program sets; not keys of the file."""

_ALLOWED = {
    "string_type": "allowed is text",
    "string_too_short": "the text must not be empty",
    "string_too_long": "allowed are at most {max_length} characters",
    "bool_type": "allowed is true or false",
    "int_type": "allowed is a whole number",
    "int_from_float": "allowed is a whole number",
    "float_type": "allowed is a number",
    "finite_number": "allowed is a number",
    "literal_error": "allowed is {expected}",
    "dict_type": "allowed is a mapping: lines of 'key: value'",
    "model_type": "allowed is a mapping: lines of 'key: value'",
    "tuple_type": "allowed is a list",
    "too_short": "at least one entry is needed",
    "greater_than_equal": "allowed is {ge:,} or more",
    "less_than_equal": "allowed is {le:,} or less",
}
_ABOUT_CONTENT = ("twice", "too_short")
_SPELLINGS = {"size": spell_size, "duration": spell_duration, "hours": spell_hours}


def word_problems(error: ValidationError, values: Values) -> Iterator[Problem]:
    """The problems that an error of PolicyFile stands for, at their places in the file.

    What follows only from a value that could not be read is left out: that is told already.
    """
    for item in error.errors(include_url=False, include_input=False):
        path = _whole_value(_strip_tag(item["loc"]), values)
        context = item.get("ctx", {})
        if item["type"] == FAULTS:
            if not any(broken[: len(path)] == path for broken in values.broken):
                for fault in context["faults"]:
                    yield word_fault((*path, *fault.path), fault.message, fault.hint, values)
        elif item["type"].startswith("union_tag"):
            if (*path, "kind") not in values.broken:
                yield _word_kind(path, values)
        elif path not in values.broken:
            yield _word_key(item["type"], path, context, values)


def _word_key(kind: str, path: KeyPath, context: Mapping[str, Any], values: Values) -> Problem:
    if kind == "extra_forbidden":
        return _word_unknown(path, values)
    if kind == "missing":
        return _word_missing(path, values)
    # A kind of error that is not listed still says where it is, and never what was read.
    said = context.get("message") or _ALLOWED.get(kind, "this is not allowed").format(**context)
    hint = str(context.get("hint", "")) or _hint(kind, path, context, values)
    shown = values.show(path)
    if kind in _ABOUT_CONTENT and values.nodes[path].kind != "scalar":
        shown = ""
    return _place(path, _prefix(shown, said), hint, values, inline=True)


def find_misplaced(values: Values) -> Iterator[Problem]:
    """What the models let pass because the program may do it and the file may not: a policy that
    names itself, and a version left out."""
    for path in values.keys:
        if len(path) == 3 and path[0] == "policies" and path[2] == "name":
            yield _word_unknown(path, values)
    for path in values.broken:
        allowed = _allowed_keys(path[:-1], values)
        if allowed is not None and path[-1] not in allowed:
            yield _word_unknown(path, values)
    if ("version",) not in values.keys:
        yield _word_missing(("version",), values)


def word_fault(path: KeyPath, message: str, hint: str, values: Values) -> Problem:
    """A broken rule between parts; a text that broke it is shown, a number stands in the rule."""
    path = _whole_value(path, values)
    node = values.nodes.get(path)
    if node is not None and node.kind == "scalar" and not _is_number(node):
        message = _prefix(values.show(path), message)
    return _place(path, message, hint, values)


def _word_kind(path: KeyPath, values: Values) -> Problem:
    where = (*path, "kind")
    if where not in values.nodes:
        return _word_missing(where, values)
    hint = _nearest(values.nodes[where].text, KINDS) if where not in values.variables else ""
    allowed = "allowed is " + _either(list(KINDS))
    return _place(where, _prefix(values.show(where), allowed), hint, values)


def _word_missing(path: KeyPath, values: Values) -> Problem:
    key = path[-1]
    hint = {
        "version": "write 'version: 1' at the top",
        "kind": "write 'kind: llama_cpp', 'kind: litellm' or 'kind: scripted'",
        "url": "such as 'url: http://127.0.0.1:8080'",
        "model": "such as 'model: deepseek/deepseek-v4-flash'",
        "tiers": "such as 'tiers: [{backend: NAME, policy: NAME}]'",
        "name": "a rule's name is told in x-foldgate-rule",
        "tier": "the backend of one of the model's tiers",
    }.get(str(key), "")
    return _place(path, f"the key {key} is missing here", hint, values)


def _word_unknown(path: KeyPath, values: Values) -> Problem:
    key = str(path[-1])
    allowed = _allowed_keys(path[:-1], values) or []
    hint = _of_other_kinds(key, path[:-1], values) or _nearest(key, allowed)
    if not hint:
        homes = [_spell_home(home) for home in PARTS if home and key in _keys_of(PARTS[home])]
        hint = f"it belongs into {_either(homes)}" if homes else "allowed: " + ", ".join(allowed)
    node = values.keys[path]
    return Problem(node.line, node.column, spell_path(path), f"unknown key {key}", hint)


def _of_other_kinds(key: str, path: KeyPath, values: Values) -> str:
    """What to do about a key that backends of other kinds have."""
    node = values.nodes.get((*path, "kind"))
    if len(path) != 2 or path[0] != "backends" or node is None or node.text not in KINDS:
        return ""
    own = KINDS[node.text]
    others = [name for name, kind in KINDS.items() if key in kind.model_fields]
    if key in own.model_fields or not others:
        return ""
    said = f"only backends of kind {_either(others)} have it: leave it out"
    if key == "local":
        place = "never leaves" if own is ScriptedBackend else "always leaves"
        said += f"; what is sent to a {node.text} one {place} this machine"
    return said


def _allowed_keys(path: KeyPath, values: Values) -> list[str] | None:
    """The keys that the file may hold at a path, in the order of the schema; None where names
    of the owner's own stand."""
    for home, parts in PARTS.items():
        if len(home) == len(path) and all(a in ("*", b) for a, b in zip(home, path, strict=True)):
            kind = values.nodes.get((*path, "kind"))
            chosen = KINDS.get(kind.text) if kind is not None else None
            return _keys_of((chosen,) if chosen is not None and chosen in parts else parts)
    return None


def _keys_of(parts: Sequence[type[Part]]) -> list[str]:
    keys = dict.fromkeys(key for part in parts for key in part.model_fields)
    return [key for key in keys if (parts[0], key) not in INJECTED]


def _hint(kind: str, path: KeyPath, context: Mapping[str, Any], values: Values) -> str:
    node = values.nodes[path]
    shown = values.show(path)
    if path in values.variables or not shown:
        return ""
    if node.kind == "scalar" and node.plain and not node.text:
        return "write {} to take every default" if kind.startswith("model") else ""
    if node.kind != "scalar":
        return ""
    if kind in _SPELLINGS:
        spelled = _SPELLINGS[kind](node.text)
        return f"write {spelled}" if spelled not in ("", node.text) else ""
    if kind == "string_type":
        return f'put it in quotes: "{node.text}"'
    if kind == "tuple_type":
        return f"write [{shown}]"
    if kind in ("int_type", "float_type", "bool_type", "literal_error"):
        return _spell_plainly(kind, node, context)
    return ""


def _spell_plainly(kind: str, node: Node, context: Mapping[str, Any]) -> str:
    if kind == "literal_error":
        return _nearest(node.text, re.findall(r"'([^']*)'", str(context["expected"])))
    if kind == "bool_type":
        word = {"1": "true", "0": "false"}.get(node.text, node.text.lower())
        return f"write {word}" if word in ("true", "false") else ""
    number = spell_size(node.text.removesuffix("%"))
    return f"write {number}" if number.isdecimal() and number != node.text else ""


def _nearest(word: str, known: Iterable[str]) -> str:
    near = suggest(word, known)
    return f"did you mean {near}?" if near else ""


def _either(words: list[str]) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _spell_home(home: tuple[str, ...]) -> str:
    return ".".join("NAME" if part == "*" else part for part in home)


def _prefix(shown: str, message: str) -> str:
    return f"read {shown}; {message}" if shown else message


def _is_number(node: Node) -> bool:
    return node.plain and isinstance(resolve(node.text), int | float)


def _strip_tag(loc: tuple[str | int, ...]) -> KeyPath:
    """Without the kind that pydantic puts behind the name of a backend."""
    if loc[:1] == ("backends",) and len(loc) > 2 and loc[2] in KINDS:
        return loc[:2] + loc[3:]
    return loc


def _whole_value(path: KeyPath, values: Values) -> KeyPath:
    """Without the position in a list that the file writes as one value."""
    while path and isinstance(path[-1], int) and path not in values.nodes:
        path = path[:-1]
    return path


def _place(path: KeyPath, message: str, hint: str, values: Values, inline: bool = False) -> Problem:
    """At a value that is text; else at its key, or at the nearest key above that the file holds.

    ``inline`` takes a list or mapping for its beginning, where that stands beside its key.
    """
    near = path
    while near not in values.nodes:
        near = near[:-1]
    node = values.nodes[near]
    key = values.keys.get(near, node)
    beside = inline and node.line == key.line
    if near == path and node.source if node.kind == "scalar" else beside:
        key = node
    return Problem(key.line, key.column, spell_path(path), message, hint)
