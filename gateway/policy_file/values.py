"""From nodes to plain values, with the place of each and everything that is wrong on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.policy_file.characters import find_invisible, find_look_alike
from gateway.policy_file.problems import Problem, spell_path
from gateway.policy_file.scalars import Ambiguity, resolve
from gateway.policy_file.tree import Node
from gateway.policy_file.variables import expand
from policies.schema import KeyPath

# Values that may be repeated in a message: all but keys, and addresses, which can hold one.
_SILENT = {"api_key", "url", "api_base", "headers"}
_LIKE_A_KEY = re.compile(r"(?:sk|pk|gsk|xai|hf|key)[-_].*|AIza.*|Bearer .*|(?=.*[0-9])[^/ ]{24,}")
_THREE_DIGITS = re.compile("[0-9]{3}")
_CUT = re.compile(r" +#[^\s#]")
_BROKEN = object()


@dataclass(slots=True)
class Values:
    """Plain values for validation, and where they stand.

    ``nodes`` and ``keys`` map paths to the node of the value and of its key, ``variables`` the
    paths of values that came from the environment to the names of their variables. Paths whose
    value could not be read are in ``broken``; their keys are left out of ``root``.
    """

    root: Any = None
    nodes: dict[KeyPath, Node] = field(default_factory=dict)
    keys: dict[KeyPath, Node] = field(default_factory=dict)
    variables: dict[KeyPath, tuple[str, ...]] = field(default_factory=dict)
    broken: set[KeyPath] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def add(self, path: KeyPath, node: Node, message: str, hint: str = "", shift: int = 0) -> None:
        """Note a problem at a node, or ``shift`` characters behind its beginning."""
        skipped = node.source[:shift]
        line = node.line + skipped.count("\n")
        column = shift - skipped.rfind("\n") if "\n" in skipped else node.column + shift
        self.problems.append(Problem(line, column, spell_path(path), message, hint))

    def show(self, path: KeyPath) -> str:
        """What was read at a path, fit to be printed; empty where it may be a secret."""
        node = self.nodes.get(path)
        if path in self.variables:
            return "text from " + " and ".join(f"${{{name}}}" for name in self.variables[path])
        if node is None or _SILENT.intersection(path):
            return ""
        if node.kind != "scalar":
            return f"a {node.kind}"
        if node.plain and resolve(node.text) is None:
            return "nothing" if not node.text else "null"
        return "" if _LIKE_A_KEY.fullmatch(node.text) else _quote(node)


def read_values(root: Node, text: str, environ: Mapping[str, str]) -> Values:
    """Resolve scalars, insert variables and merge ``<<``; collects problems and never raises.

    Keys that begin with x- at the top are left out: they exist to hold anchors.
    """
    values = Values()
    values.root = _Reader(values, text, environ).read(root, ())
    return values


class _Reader:
    def __init__(self, values: Values, text: str, environ: Mapping[str, str]) -> None:
        self.values = values
        self.text = text
        self.environ = environ

    def read(self, node: Node, path: KeyPath) -> Any:
        self.values.nodes[path] = node
        if node.kind == "mapping":
            return self._read_mapping(node, path)
        if node.kind == "list":
            items = [self.read(item, (*path, index)) for index, item in enumerate(node.items)]
            return tuple(None if item is _BROKEN else item for item in items)
        value = self._read_scalar(node, path)
        if value is _BROKEN:
            self.values.broken.add(path)
        return value

    def _read_mapping(self, node: Node, path: KeyPath) -> dict[str, Any]:
        entries = self._collect(node, path)
        mapping = {}
        for key, (key_node, value_node) in entries.items():
            if not path and key.startswith("x-"):
                continue
            self.values.keys[*path, key] = key_node
            value = self.read(value_node, (*path, key))
            if value is not _BROKEN:
                mapping[key] = value
        return mapping

    def _collect(self, node: Node, path: KeyPath) -> dict[str, tuple[Node, Node]]:
        """The entries of a mapping: its own, then those merged into it, each key once."""
        own: dict[str, tuple[Node, Node]] = {}
        merged: dict[str, tuple[Node, Node]] = {}
        seen: dict[str, Node] = {}
        for key, value in node.pairs():
            if not self._check_key(key, path):
                continue
            if key.text in seen:
                message = f"the key {key.text} stands twice: first in line {seen[key.text].line}"
                hint = "one of them would be lost: delete it"
                self.values.add((*path, key.text), key, message, hint)
                continue
            seen[key.text] = key
            if key.plain and key.text == "<<":
                for source in self._merge_sources(value, path):
                    merged = self._collect(source, path) | merged
            else:
                own[key.text] = (key, value)
        return own | {key: entry for key, entry in merged.items() if key not in own}

    def _merge_sources(self, value: Node, path: KeyPath) -> Iterator[Node]:
        for source in value.items if value.kind == "list" else [value]:
            if source.kind == "mapping":
                yield source
            else:
                hint = "write <<: *name, where &name stands before a mapping"
                self.values.add((*path, "<<"), source, "only a mapping can be merged", hint)

    def _check_key(self, key: Node, path: KeyPath) -> bool:
        if key.kind != "scalar":
            self.values.add(path, key, f"a key must be text, not a {key.kind}", "")
            return False
        if not self._check_characters(key, path):
            return False
        if not key.text.isprintable():
            self.values.add(path, key, "this key holds a character that cannot be seen", "")
            return False
        value = resolve(key.text) if key.plain else key.text
        if isinstance(value, str):
            return True
        kind = {bool: "a truth value", type(None): "nothing"}.get(type(value), "a number")
        message = value.message if isinstance(value, Ambiguity) else f"this is {kind}"
        hint = "put the key in quotes"
        if _THREE_DIGITS.fullmatch(key.text):
            hint = "a comma begins the next entry here: write 48_000, not 48,000"
        self.values.add(path, key, f"a key must be text: {message}", hint)
        return False

    def _read_scalar(self, node: Node, path: KeyPath) -> Any:
        if not self._check_characters(node, path):
            return _BROKEN
        if (
            (path[-1:] == ("api_key",) or "headers" in path[:-1])
            and node.plain
            and _CUT.match(self.text, node.end)
        ):
            message = "' #' begins a comment and cuts the key off here"
            hint = "put the key in quotes, or a blank behind the #"
            self.values.add(path, node, message, hint, shift=len(node.source))
            return _BROKEN
        if "$" in node.text:
            return self._expand(node, path)
        if not node.plain:
            return node.text
        value = resolve(node.text)
        if not isinstance(value, Ambiguity):
            return value
        shown = self.values.show(path)
        message = f"read {shown}; {value.message}" if shown else value.message
        self.values.add(path, node, message, value.hint)
        return _BROKEN

    def _expand(self, node: Node, path: KeyPath) -> Any:
        text, names, problems = expand(node.text, self.environ)
        for message, hint in problems:
            self.values.add(path, node, message, hint)
        if names:
            self.values.variables[path] = names
        return _BROKEN if problems else text

    def _check_characters(self, node: Node, path: KeyPath) -> bool:
        if found := find_invisible(node.source):
            offset, name = found
            message = f"an invisible character stands here: {name}"
            self.values.add(path, node, message, "delete it, or type a blank", shift=offset)
        elif node.plain and (alike := find_look_alike(node.source)):
            offset, character, sign = alike
            message = f"{character} is not the {sign} of YAML"
            hint = f"type {sign}, or put the whole text in quotes"
            self.values.add(path, node, message, hint, shift=offset)
        else:
            return True
        return False


def _quote(node: Node) -> str:
    text = "".join(letter if letter.isprintable() else "�" for letter in node.text[:60])
    text += "…" * (len(node.text) > 60)
    return text if node.plain and not isinstance(resolve(node.text), str) else f'"{text}"'
