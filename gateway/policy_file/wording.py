"""Validation errors as problems: what was read, what is allowed, what to write instead.

pydantic's own texts are not shown, nor the input that its errors carry: both can hold secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from gateway.policy_file.problems import Problem, spell_path
from gateway.policy_file.scalars import resolve
from gateway.policy_file.tree import Node
from gateway.policy_file.values import Values
from policies.schema import (
    FAULTS,
    Chapters,
    Gist,
    KeyPath,
    LiteLLMBackend,
    LlamaCppBackend,
    Model,
    Part,
    Policy,
    PolicyFile,
    Recall,
    ScriptedBackend,
    Summaries,
    Tier,
    Timeouts,
    View,
    spell_duration,
    spell_size,
    suggest,
)

KINDS: Mapping[str, type[LlamaCppBackend | LiteLLMBackend | ScriptedBackend]] = {
    "llama_cpp": LlamaCppBackend,
    "litellm": LiteLLMBackend,
    "scripted": ScriptedBackend,
}
# The parts of the file by their path, * for a name or a position.
PARTS: Mapping[tuple[str, ...], tuple[type[Part], ...]] = {
    (): (PolicyFile,),
    ("backends", "*"): tuple(KINDS.values()),
    ("backends", "*", "timeouts"): (Timeouts,),
    ("policies", "*"): (Policy,),
    ("policies", "*", "view"): (View,),
    ("policies", "*", "chapters"): (Chapters,),
    ("policies", "*", "gist"): (Gist,),
    ("policies", "*", "summaries"): (Summaries,),
    ("policies", "*", "recall"): (Recall,),
    ("models", "*"): (Model,),
    ("models", "*", "tiers", "*"): (Tier,),
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
_SPELLINGS = {"size": spell_size, "duration": spell_duration}


def word_problems(error: ValidationError, values: Values) -> Iterator[Problem]:
    """The problems that an error of PolicyFile stands for, at their places in the file.

    What follows only from a value that could not be read is left out: that is told already.
    """
    for item in error.errors(include_url=False, include_input=False):
        path = _strip_tag(item["loc"])
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
    said = context.get("message") or _ALLOWED[kind].format(**context)
    hint = str(context.get("hint", "")) or _hint(kind, path, context, values)
    return _place(path, _prefix(values.show(path), said), hint, values)


def find_injected(values: Values) -> Iterator[Problem]:
    """Keys of the file that only the program may set."""
    for path in values.keys:
        if len(path) == 3 and path[0] == "policies" and path[2] == "name":
            yield _word_unknown(path, values)


def word_fault(path: KeyPath, message: str, hint: str, values: Values) -> Problem:
    """A broken rule between parts; a text that broke it is shown, a number stands in the rule."""
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
    }.get(str(key), "")
    return _place(path, f"the key {key} is missing here", hint, values)


def _word_unknown(path: KeyPath, values: Values) -> Problem:
    key = str(path[-1])
    allowed = allowed_keys(path[:-1], values)
    hint = _nearest(key, allowed)
    if not hint:
        homes = [_spell_home(home) for home in PARTS if home and key in _keys_of(PARTS[home])]
        hint = f"it belongs into {_either(homes)}" if homes else "allowed: " + ", ".join(allowed)
    return _place(path, f"unknown key {key}", hint, values)


def allowed_keys(path: KeyPath, values: Values) -> list[str]:
    """The keys that the file may hold at a path, in the order of the schema."""
    home = next(
        home
        for home in PARTS
        if len(home) == len(path)
        and all(want in ("*", part) for want, part in zip(home, path, strict=True))
    )
    kind = values.nodes.get((*path, "kind"))
    if home == ("backends", "*") and kind is not None and kind.text in KINDS:
        return _keys_of((KINDS[kind.text],))
    return _keys_of(PARTS[home])


def _keys_of(parts: tuple[type[Part], ...]) -> list[str]:
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
        return f"write [{node.text}]"
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


def _place(path: KeyPath, message: str, hint: str, values: Values) -> Problem:
    """At the value; else at the key; else at the nearest key above that the file holds."""
    near = path
    while near not in values.nodes:
        near = near[:-1]
    node = values.nodes[near]
    if near != path or node.kind != "scalar" or not node.source:
        node = values.keys.get(near, node)
    return Problem(node.line, node.column, spell_path(path), message, hint)
