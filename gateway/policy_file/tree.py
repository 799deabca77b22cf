"""The text of a file as a tree of nodes that know their places, within bounds.

PyYAML's own constructors keep the last of two equal keys, guess types and expand aliases without
end, so only its parser is used: its events become nodes here, and aliases share their node.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from gateway.policy_file.problems import Problem

MAX_DEPTH = 32
"""Mappings and lists inside each other; the schema needs 6."""
MAX_NODES = 20_000
"""Keys and values after all aliases are followed; the shipped file has about 150."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_Event = Any
"""An event of PyYAML's parser. Its stubs give no fields to most and make marks optional, which
the parser always sets."""


@dataclass(slots=True, eq=False)
class Node:
    """A scalar, list or mapping; ``items`` of a mapping alternate keys and values.

    ``source`` is what stands in the file, quotes included; ``end`` is the offset behind it.
    """

    kind: str
    line: int
    column: int
    text: str = ""
    plain: bool = False
    source: str = ""
    end: int = 0
    items: list[Node] = field(default_factory=list)
    closed: bool = False
    nodes: int = 1
    height: int = 0

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """The keys and values of a mapping."""
        return zip(self.items[::2], self.items[1::2], strict=True)


class TreeError(Exception):
    """The text has no tree; says why."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def build_tree(text: str) -> Node | None:
    """The root of the one document that ``text`` holds; None if it holds none.

    Raises TreeError at the first thing that is no YAML, is not used here (tags, a second
    document) or is out of bounds.
    """
    builder = _Builder(text)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        raise TreeError(_explain(error, text)) from None
    return builder.root


class _Builder:
    """Takes the parser's events in turn; holds the open nodes and the anchors."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.root: Node | None = None
        self.open: list[Node] = []
        self.anchors: dict[str, Node] = {}

    def take(self, event: _Event) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._attach(self._follow(event), event)
        elif isinstance(event, yaml.NodeEvent):
            self._start(event)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.DocumentStartEvent) and self.root is not None:
            hint = "keep one document; '...' may only stand at the end"
            raise _fault(event, "a second document begins here", hint)

    def _start(self, event: _Event) -> None:
        if event.tag not in (None, "!"):
            raise _fault(event, "tags (words that begin with !) are not used here", "delete it")
        mark, end = event.start_mark, event.end_mark
        scalar = isinstance(event, yaml.ScalarEvent)
        kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "list"
        node = Node("scalar" if scalar else kind, mark.line + 1, mark.column + 1, closed=scalar)
        if scalar:
            node.text, node.plain = event.value, not event.style
            node.source, node.end = self.text[mark.index : end.index], end.index
        if event.anchor:
            self.anchors[event.anchor] = node
        if scalar:
            self._attach(node, event)
            return
        if len(self.open) >= MAX_DEPTH:
            raise _fault(event, f"more than {MAX_DEPTH} levels inside each other", "")
        self.open.append(node)

    def _follow(self, event: _Event) -> Node:
        node = self.anchors.get(event.anchor)
        if node is None:
            hint = "an anchor (&name) must stand above; text that begins with * needs quotes"
            raise _fault(event, "this alias names no anchor", hint)
        if not node.closed:
            raise _fault(event, "this alias stands inside its own anchor and would never end", "")
        return node

    def _close(self) -> None:
        node = self.open.pop()
        node.closed = True
        self._attach(node, None)

    def _attach(self, node: Node, event: _Event | None) -> None:
        if not self.open:
            self.root = node
            return
        parent = self.open[-1]
        parent.items.append(node)
        parent.nodes += node.nodes
        parent.height = max(parent.height, node.height + 1)
        if parent.nodes > MAX_NODES:
            text = f"more than {MAX_NODES:,} keys and values, aliases followed"
            raise TreeError(Problem(*_place(event, node), "", text, "use fewer aliases"))
        if len(self.open) + node.height > MAX_DEPTH:
            text = f"more than {MAX_DEPTH} levels inside each other, aliases followed"
            raise TreeError(Problem(*_place(event, node), "", text, ""))


def _place(event: _Event | None, node: Node) -> tuple[int, int]:
    if event is None:
        return node.line, node.column
    return event.start_mark.line + 1, event.start_mark.column + 1


def _fault(event: _Event, message: str, hint: str) -> TreeError:
    return TreeError(Problem(*_place(event, Node("", 0, 0)), "", message, hint))


_INDENTATION = "the indentation does not fit the lines above, or a ':' or '-' is missing"
_BRACKET = "inside brackets a ',' or the closing bracket is missing"
# Words of PyYAML's and libyaml's scanners, and what they mean to who edits the file. Their own
# text is never shown: it can quote the line, and the line can hold a key.
_MEANINGS = (
    ("end of stream", "a quote that opens here is never closed", ""),
    ("expected ':'", "a key without its colon", "after a key stand a colon and a blank"),
    (
        "mapping values are not allowed",
        "a ': ' where no key can stand",
        "check the indentation; a value that holds ': ' needs quotes",
    ),
    ("',' or", _BRACKET, ""),
    ("cannot start any token", "no value can begin with this character", "put it in quotes"),
    ("escape", "double quotes know no such \\ sequence", "use single quotes, or \\\\ for a \\"),
    ("nesting depth", f"more than {MAX_DEPTH} levels inside each other", ""),
    ("document start", "something stands behind the end of the document", ""),
    ("", _INDENTATION, ""),
)


def _explain(error: yaml.MarkedYAMLError, text: str) -> Problem:
    said = error.problem or ""
    mark: Any = error.problem_mark or error.context_mark
    if "end of stream" in said and "quoted" in (error.context or ""):
        mark = error.context_mark
    message, hint = next((words, hint) for key, words, hint in _MEANINGS if key in said)
    lines = text.splitlines() or [""]
    line = min(mark.line, len(lines) - 1)
    if message == _BRACKET and "${" in lines[line]:
        hint = 'inside { } and [ ] a variable needs quotes: "${NAME}"'
    column = mark.column if line == mark.line else len(lines[line])
    return Problem(line + 1, column + 1, "", message, hint)
