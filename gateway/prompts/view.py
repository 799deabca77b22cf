"""L1: stored rows to the messages that one model is shown.

    [client's system] [synthetic question] [synthetic answer: see `memory`] [tail]

Everything here is a function of its arguments: the same rows give the same bytes, in every
process.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from gateway.prompts.notes import put_notes
from gateway.prompts.phrases import PHRASES
from gateway.wire.json_text import loads
from gateway.wire.letters import is_blank
from policies.language import language_of
from policies.messages import tool_calls, whole_letters

_REASONING = frozenset({"reasoning_content", "reasoning", "thinking", "reasoning_details"})
_THOUGHTS = ("thinking", "redacted_thinking", "reasoning")
NO_OUTPUT = "[no output]"
# Marks a text that a client put "before" or "after" the stored message at its depth: it is joined
# to that message. No message of a client's carries it there: its system texts are never joined.
AROUND = "foldgate_around"
_SYSTEM = ("system", "developer")


@dataclass(frozen=True, slots=True)
class TailMessage:
    """A message of the tail as stored: depth on the path, role, its JSON text, who produced it.

    notes: what was recalled for it, as rendered. searches: calls of ours and their answers, which
    led to it and stand in front of it.
    """

    depth: int
    role: str
    raw: str
    backend: str | None
    notes: str | None = None
    searches: Sequence[dict[str, Any]] = ()


@dataclass(slots=True)
class Tail:
    """The verbatim tail with its notes as message objects in JSON, grown at its end and never
    rewritten.

    depths[i] is the depth of the message that fragment i renders, marks[i] the number that stands
    for it in this process (its hash): tails are compared by these. Calls that have no result yet
    wait in `open_calls`: if something other than their results follows, an "interrupted" result
    is put in, because strict templates refuse a call without one. Results of calls that were left
    out are left out with them (`dropped_calls`). `reasoning_of` names the backend whose own
    reasoning is sent back to it; nobody is sent another's.
    """

    reasoning_of: str | None = None
    fragments: list[bytes] = field(default_factory=list)
    depths: list[int] = field(default_factory=list)
    open_calls: list[str] = field(default_factory=list)
    dropped_calls: frozenset[str] = frozenset()
    size: int = 0
    marks: array[int] = field(default_factory=lambda: array("q"))

    def add(self, stored: TailMessage) -> None:
        """Append one stored message; an empty assistant turn leaves no trace."""
        keeps = self.reasoning_of is not None and stored.backend == self.reasoning_of
        message = _for_model(loads(stored.raw), keep_reasoning=keeps)
        if stored.role == "tool":
            answered = str(message.get("tool_call_id") or "")
            if answered in self.dropped_calls:
                return
            if answered in self.open_calls:
                self.open_calls.remove(answered)
        elif self.open_calls:
            self._interrupt(stored.depth)
        for each in stored.searches:
            self._put(stored.depth, each)
        if stored.role == "assistant":
            self.dropped_calls = frozenset(_drop_broken_calls(message))
            if _says_nothing(message):
                return
            self.open_calls = [id for id, _, _ in tool_calls(message) if id]
        if stored.notes is not None:
            message = put_notes(message, stored.notes)
        self._put(stored.depth, message)

    def _interrupt(self, depth: int) -> None:
        for call in self.open_calls:
            result = {
                "role": "tool",
                "tool_call_id": call,
                "content": PHRASES["en"].interrupted,
            }
            self._put(depth, result)
        self.open_calls = []

    def _put(self, depth: int, message: dict[str, Any]) -> None:
        # A copy: orjson's own result keeps the 4 kB that it was written into.
        data = bytes(memoryview(encode_message(message)))
        self.fragments.append(data)
        self.depths.append(depth)
        self.marks.append(hash(data))
        self.size += len(data)

    def copy(self) -> Tail:
        """An independent tail with the same content."""
        return Tail(
            self.reasoning_of,
            list(self.fragments),
            list(self.depths),
            list(self.open_calls),
            self.dropped_calls,
            self.size,
            self.marks[:],
        )


def render_reply(message: dict[str, Any], *, keep_reasoning: bool) -> bytes | None:
    """A reply as a later tail shows it; None where it leaves no trace there."""
    shown = _for_model(dict(message), keep_reasoning=keep_reasoning)
    _drop_broken_calls(shown)
    return None if _says_nothing(shown) else encode_message(shown)


def encode_notes(system: Sequence[tuple[int, dict[str, Any]]]) -> list[tuple[int, bytes]]:
    """The system texts that do not lead, each with the depth after which it stood."""
    return [(depth, encode_message(message)) for depth, message in system if depth > 0]


def _for_model(message: dict[str, Any], *, keep_reasoning: bool) -> dict[str, Any]:
    if keep_reasoning:
        return message
    content = message.get("content")
    if isinstance(content, list) and any(map(_is_thought, content)):
        message["content"] = [part for part in content if not _is_thought(part)]
    if not _REASONING.isdisjoint(message):
        return {key: value for key, value in message.items() if key not in _REASONING}
    return message


def _is_thought(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in _THOUGHTS


def encode_message(message: dict[str, Any]) -> bytes:
    """A message as a prompt holds it."""
    try:
        return orjson.dumps(message)
    except TypeError:
        # A lone surrogate (no model can be sent one), a number beyond 64 bits, a deep nest.
        return whole_letters(
            json.dumps(message, ensure_ascii=False, separators=(",", ":"))
        ).encode()


def _drop_broken_calls(message: dict[str, Any]) -> list[str]:
    """Calls whose arguments were cut in mid-JSON are kept in the transcript, not in a prompt.

    Returns the ids of what was left out.
    """
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return []
    whole = [call for call in calls if _is_whole_call(call)]
    if len(whole) == len(calls):
        return []
    message.pop("tool_calls")
    if whole:
        message["tool_calls"] = whole
    kept = {call.get("id") for call in whole if isinstance(call, dict)}
    ids = [call.get("id") for call in calls if isinstance(call, dict)]
    return [id for id in ids if isinstance(id, str) and id not in kept]


def _is_whole_call(call: Any) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(arguments, str) or not arguments.strip():
        return True
    try:
        loads(arguments)
    except ValueError:
        return False
    return True


def _says_nothing(message: dict[str, Any]) -> bool:
    if message.get("tool_calls") or message.get("function_call"):
        return False
    content = message.get("content")
    if content is None or isinstance(content, str):
        return is_blank(content or "")
    return not content


def assemble(
    system: Sequence[tuple[int, dict[str, Any]]],
    memory: Sequence[dict[str, Any]],
    tail: Tail,
    *,
    border: int,
    strict_roles: bool = False,
) -> tuple[bytes, ...]:
    """The final messages, one JSON object each.

    system holds (depth after which it stood, message); those at depth 0 lead, those inside the
    folded part stand right behind the memory (they are never lost in a fold), the others at
    their place. With strict_roles the result begins with a user message, alternates, and tells
    late system messages as notes of the user. Where nothing is folded a greeting that leads is the
    answer to what the memory asks, in place of the memory's own.
    """
    leading = [message for depth, message in system if depth <= 0]
    told, placed = _join_arounds(tail, [item for item in system if item[0] > 0])
    if border == 0 and memory and told and loads(told[0])["role"] == "assistant":
        memory = memory[:-1]
    if strict_roles:
        return _assemble_strict(leading, memory, tail.depths, told, placed, border)
    head = [encode_message(message) for message in (*leading, *memory)]
    fragments = [*head, *told]
    inserted = 0
    for depth, message in placed:
        index = bisect_right(tail.depths, max(depth, border)) if depth > border else 0
        fragments.insert(len(head) + index + inserted, encode_message(message))
        inserted += 1
    return tuple(fragments)


def _join_arounds(
    tail: Tail, placed: list[tuple[int, dict[str, Any]]]
) -> tuple[list[bytes], list[tuple[int, dict[str, Any]]]]:
    """The tail with what stands around its messages, and what stands on its own. A text around a
    message that is folded stands on its own too."""
    if not any(AROUND in message for _, message in placed):
        return tail.fragments, placed
    told, rest = list(tail.fragments), []
    for depth, message in placed:
        side = message.get(AROUND)
        if side is None or message["role"] in _SYSTEM:
            rest.append((depth, message))
            continue
        at = bisect_right(tail.depths, depth) - 1  # in front of it stands what belongs to it
        if at >= 0 and tail.depths[at] == depth:
            told[at] = encode_message(
                _put_around(loads(told[at]), str(side), str(message["content"]))
            )
        else:
            rest.append((depth, {key: message[key] for key in message if key != AROUND}))
    return told, rest


def _put_around(message: dict[str, Any], side: str, text: str) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list):
        part = {"type": "text", "text": text}
        return {**message, "content": [part, *content] if side == "before" else [*content, part]}
    own = content if isinstance(content, str) else ""
    return {**message, "content": text + own if side == "before" else own + text}


def _assemble_strict(
    leading: Sequence[dict[str, Any]],
    memory: Sequence[dict[str, Any]],
    depths: Sequence[int],
    told: Sequence[bytes],
    placed: Sequence[tuple[int, dict[str, Any]]],
    border: int,
) -> tuple[bytes, ...]:
    system = [message for message in leading if message["role"] in _SYSTEM]
    body = [dict(message) for message in leading if message["role"] not in _SYSTEM]
    body += [dict(message) for message in memory]
    waiting = list(placed)
    waiting_index = 0
    for depth, fragment in zip(depths, told, strict=True):
        while waiting_index < len(waiting) and max(waiting[waiting_index][0], border) < depth:
            body.append(_as_note(waiting[waiting_index][1]))
            waiting_index += 1
        body.append(_said_something(loads(fragment)))
    body.extend(_as_note(message) for _, message in waiting[waiting_index:])
    merged = _merged(body)
    if merged and merged[0]["role"] != "user":
        # Of the first message alone: what is merged with it later must not turn the line over.
        spoken = (_content_text(message) for message in body)
        language = language_of(next((text for text in spoken if not is_blank(text)), ""))
        merged.insert(0, {"role": "user", "content": PHRASES[language or "en"].opening})
    return tuple(encode_message(message) for message in (*_joined(system), *merged))


def _said_something(message: dict[str, Any]) -> dict[str, Any]:
    """A tool's result with something in it: some providers refuse a blank one."""
    if message["role"] != "tool" or not is_blank(_content_text(message)):
        return message
    return {**message, "content": NO_OUTPUT}


def _joined(leading: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One system message out of several: strict templates take only one, in first place."""
    if len(leading) < 2:
        return list(leading)
    return [{"role": "system", "content": "\n\n".join(_content_text(m) for m in leading)}]


def _as_note(message: dict[str, Any]) -> dict[str, Any]:
    """A late system text as the user's note; a client's note of another role is what it is."""
    if message["role"] not in _SYSTEM:
        return dict(message)
    text = _content_text(message)
    note = PHRASES[language_of(text) or "en"].system_note
    return {"role": "user", "content": note.replace("{text}", text)}


def _content_text(message: dict[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _merged(body: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Neighbours of one role as one message, with a blank line between; blank ones left out.

    A blank one at the end stays where it is the turn of its role: it is all that was said.
    """
    result: list[dict[str, Any]] = []
    for position, message in enumerate(body):
        previous = result[-1] if result else None
        follows = previous is not None and previous["role"] == message["role"]
        plain = _is_plain(message)
        if plain and is_blank(message["content"]) and (follows or position + 1 < len(body)):
            continue
        if plain and follows and previous is not None and _is_plain(previous):
            result[-1] = {**previous, "content": f"{previous['content']}\n\n{message['content']}"}
        else:
            result.append(message)
    return result


def _is_plain(message: dict[str, Any]) -> bool:
    """Whether a message is a role and a text, and nothing else."""
    return set(message) == {"role", "content"} and isinstance(message["content"], str)
