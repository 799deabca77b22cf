"""recall_search and recall_expand: tools by which a model looks into the folded past by itself.

The gateway offers them beside the client's own, answers them, and shows neither the calls nor the
answers to the client. Only messages of the conversation's own path that the view does not show come
back, and no more than the view has room for.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from gateway.flows.notes import passage_line
from gateway.flows.recollection import Ask, Passage, expand, recall
from gateway.store.transcript import Node
from gateway.wire.json_text import dumps, loads
from policies.language import Language, language_of
from policies.messages import message_chars

SEARCH = "recall_search"
EXPAND = "recall_expand"
NAMES = frozenset({SEARCH, EXPAND})

MOST_LINES = 20
LINES = 8
AROUND = 3
LEAST_CHARS = 200
"""Below this an answer is not worth its place."""


def _tool(name: str, description: str, needed: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": [needed]}
    return {
        "type": "function",
        "function": {"name": name, "description": description, "parameters": parameters},
    }


TOOLS: tuple[dict[str, Any], ...] = (
    _tool(
        SEARCH,
        "Search the earlier part of this conversation, of which only a summary is shown, for what "
        "was said word for word. Returns lines with their id, date and speaker.",
        "query",
        query={"type": "string", "description": "Words that the lines may hold."},
        limit={"type": "integer", "minimum": 1, "maximum": MOST_LINES},
    ),
    _tool(
        EXPAND,
        f"Read the lines around one that {SEARCH} returned.",
        "id",
        id={"type": "string", "description": f"The id of a line, from {SEARCH}."},
        before={"type": "integer", "minimum": 0, "maximum": MOST_LINES},
        after={"type": "integer", "minimum": 0, "maximum": MOST_LINES},
    ),
)
TOOLS_CHARS = len(dumps(list(TOOLS)))

_NOTHING_LEFT = "Nothing more can be shown in this conversation now. Answer with what is known."
_BAD_QUERY = "The arguments must be a JSON object with a text under `query`."
_BAD_ID = f"No line of the past has this id. Take one that {SEARCH} returned."


def allows_tools(params: Mapping[str, Any]) -> bool:
    """Whether a request leaves room for tools of ours: not where the client has tools of the same
    names or in the old form, insists on a call, asks for several answers, or for a grammar (which
    llama-server refuses beside tools)."""
    if params.get("tool_choice") not in (None, "auto", "none") or params.get("functions"):
        return False
    if (params.get("n") or 1) != 1 or _binds_form(params):
        return False
    tools = params.get("tools") or []
    return isinstance(tools, list) and NAMES.isdisjoint(map(_name, tools))


def _binds_form(params: Mapping[str, Any]) -> bool:
    form = params.get("response_format")
    is_free = form is None or (isinstance(form, Mapping) and form.get("type") == "text")
    return not is_free or any(params.get(name) for name in ("grammar", "json_schema"))


def with_tools(params: Mapping[str, Any]) -> dict[str, Any]:
    """The client's parameters with ours behind its own tools."""
    return {**params, "tools": [*(params.get("tools") or ()), *TOOLS]}


def _name(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return name if isinstance(name, str) else ""


def is_ours(call: Any) -> bool:
    """Whether a tool call is for the gateway."""
    return _name(call) in NAMES


@dataclass(frozen=True, slots=True)
class Past:
    """What may be searched: the path to `head` up to depth `border`."""

    conversation_pk: int
    head: Node
    border: int


@dataclass(slots=True)
class Allowance:
    """What answers may still cost in characters: each of them, and all together; shown: messages
    that stand in the view already."""

    each: int
    left: int
    shown: set[int] = field(default_factory=set)

    @property
    def next(self) -> int:
        return min(self.each, self.left)


Look = Callable[..., Awaitable[list[Passage]]]
"""Runs a read of the store."""


async def answer_calls(
    look: Look, past: Past, allowance: Allowance, message: Mapping[str, Any], taken: set[str]
) -> list[dict[str, Any]]:
    """The messages behind a question after a model has searched: its calls (the text beside them
    included) and our answers. All of them are charged to the allowance.

    taken: ids of the calls before; these are added. An id that a model gave twice, or none, becomes
    one that no other call has: some providers refuse a prompt that holds one twice.
    """
    calls = [call for call in message["tool_calls"] if is_ours(call)]
    calls = [{**call, "id": _own_id(call.get("id"), past, taken)} for call in calls]
    asked = {**message, "tool_calls": calls}
    allowance.left -= message_chars(asked, 0)
    answers = []
    for call in calls:
        content = await _answer(look, past, allowance, call["function"])
        allowance.left -= len(content)
        answers.append({"role": "tool", "tool_call_id": call["id"], "content": content})
    return [asked, *answers]


def _own_id(id: Any, past: Past, taken: set[str]) -> str:
    own = id if isinstance(id, str) and id and id not in taken else ""
    own = own or f"recall_{past.head.pk}_{len(taken)}"
    taken.add(own)
    return own


async def _answer(look: Look, past: Past, allowance: Allowance, function: Mapping[str, Any]) -> str:
    if allowance.next < LEAST_CHARS:
        return dumps({"error": _NOTHING_LEFT})
    arguments = _arguments(function.get("arguments"))
    if function["name"] == SEARCH:
        query = arguments.get("query")
        if not isinstance(query, str) or not query.strip():
            return dumps({"error": _BAD_QUERY})
        shown = frozenset(allowance.shown)
        found = await look(search_past, past, query, allowance.next, shown)
        best = sorted(found, key=_strength, reverse=True)
        return _tell(best[: _count(arguments.get("limit"), LINES, 1)], allowance)
    depth = _whole(arguments.get("id"))
    if depth is None or not 1 <= depth <= past.border:
        return dumps({"error": _BAD_ID})
    before, after = (_count(arguments.get(side), AROUND, 0) for side in ("before", "after"))
    found = await look(read_around, past, depth, before, after, allowance.next)
    return _tell(sorted(found, key=lambda line: abs(line.depth - depth)), allowance)


def _strength(passage: Passage) -> tuple[bool, float]:
    return passage.hit, passage.score


def search_past(
    connection: Connection, past: Past, query: str, budget: int, shown: frozenset[int]
) -> list[Passage]:
    """Lines for a query, however weakly they answer it; oldest first."""
    ask = Ask(
        conversation_pk=past.conversation_pk,
        head=past.head,
        border=past.border,
        question=query,
        budget=budget,
        taken=shown,
        floor=False,
    )
    return recall(connection, ask)


def read_around(
    connection: Connection, past: Past, depth: int, before: int, after: int, budget: int
) -> list[Passage]:
    """The lines around one, none deeper than the border."""
    sides = {"before": before, "after": after, "border": past.border, "budget": budget}
    return expand(connection, past.head, depth, **sides)


def _tell(best: Sequence[Passage], allowance: Allowance) -> str:
    """An answer that fits, in the order of the past. best: what may be told, the last of which are
    left out first."""
    language = language_of("\n".join(passage.text for passage in best))
    kept = [(passage, _line(passage, language)) for passage in best]
    while len(answer := _spell(kept)) > allowance.next:
        kept.pop()
    allowance.shown.update(passage.pk for passage, _ in kept)
    return answer


def _spell(kept: Sequence[tuple[Passage, dict[str, str]]]) -> str:
    in_order = sorted(kept, key=lambda pair: pair[0].depth)
    return dumps({"lines": [line for _, line in in_order]})


def _line(passage: Passage, language: Language | None) -> dict[str, str]:
    line = passage_line(passage, language)
    return {"id": line.mark, "date": line.date, "who": line.who, "text": line.text}


def _arguments(raw: Any) -> Mapping[str, Any]:
    try:
        found = loads(raw) if isinstance(raw, str) else raw
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _count(value: Any, default: int, least: int) -> int:
    """How many lines are asked for, within bounds."""
    number = _whole(value)
    return default if number is None else max(least, min(number, MOST_LINES))


def _whole(value: Any) -> int | None:
    """A whole number, also where a model writes it as text."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 10:
        return int(value)
    return value if type(value) is int else None
