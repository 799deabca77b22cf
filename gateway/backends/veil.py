"""A call as a model off this machine gets it: with placeholders for what its policy hides, and its
answer with the values in their place again.

Only the prompt's own placeholders come back, in text, thinking and calls of tools; one that the
network cut in two is held for as long as it may still be one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from gateway.backends.base import Call, Chunk, Completion
from gateway.backends.faults import UpstreamFault
from gateway.randomness import random_hex
from gateway.wire.json_text import dump_bytes, loads
from policies.masking.messages import mask_message, mask_params
from policies.masking.placeholders import Masks, Restorer

# A prompt above this is masked in a thread: 200,000 characters take some 10 ms.
_BIG_PROMPT = 16 * 1024
_TEXTS = ("content", "reasoning_content", "reasoning", "refusal")

Stream = Callable[[Call], AsyncGenerator[Chunk, None]]
Complete = Callable[[Call], Awaitable[Completion]]


class Veil:
    """A call with its values hidden. Tools come before messages, as providers show them."""

    def __init__(self, call: Call) -> None:
        # Nothing that is no conversation's has a prefix to keep.
        self.masks = Masks(call.conversation or random_hex(16), call.mask)
        params = dict(mask_params(self.masks, call.params))
        messages = tuple(map(self._hide, call.messages))
        self.call = replace(call, messages=messages, params=params, mask=())

    @property
    def is_empty(self) -> bool:
        """Whether nothing was hidden, so that nothing can come back."""
        return not self.masks.placeholders

    def _hide(self, data: bytes) -> bytes:
        message = loads(data)
        masked = mask_message(self.masks, message)
        return data if masked is message else dump_bytes(masked)

    def lift(self, value: Any) -> Any:
        """A decoded answer with its values; the same object where nothing changes."""
        if isinstance(value, str):
            return self.masks.restore(value)
        if isinstance(value, list):
            items = [self.lift(item) for item in value]
            return items if any(a is not b for a, b in zip(items, value, strict=True)) else value
        if isinstance(value, dict):
            fields = {key: self.lift(field) for key, field in value.items()}
            return fields if any(fields[key] is not value[key] for key in fields) else value
        return value


async def hide(call: Call) -> Veil:
    """The veil of a call, made beside the event loop where it takes long."""
    if sum(map(len, call.messages)) < _BIG_PROMPT:
        return Veil(call)
    return await asyncio.to_thread(Veil, call)


async def stream_veiled(send: Stream, call: Call) -> AsyncGenerator[Chunk, None]:
    """As Backend.stream, of a call whose policy hides something."""
    veil = await hide(call)
    lifter = Lifter(veil.masks)
    async with aclosing(send(veil.call)) as chunks:
        try:
            async for chunk in chunks:
                lifted = chunk if veil.is_empty else lifter.lift(chunk)
                if lifted is not None:
                    yield lifted
        except UpstreamFault as fault:
            fault.received = veil.lift(fault.received)
            if (rest := lifter.close()) is not None:
                yield rest
            raise
    if (rest := lifter.close()) is not None:
        yield rest


async def complete_veiled(complete: Complete, call: Call) -> Completion:
    """As Backend.complete, of a call whose policy hides something."""
    veil = await hide(call)
    try:
        answer = await complete(veil.call)
    except UpstreamFault as fault:
        fault.received = veil.lift(fault.received)
        raise
    parsed = veil.lift(answer.parsed)
    return answer if parsed is answer.parsed else Completion(dump_bytes(parsed), parsed)


class Lifter:
    """The chunks of one streamed answer with their values; nothing of an answer's order changes."""

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._choices: dict[int, _Choice] = {}
        self._last: dict[str, Any] = {}

    def lift(self, chunk: Chunk) -> Chunk | None:
        """The chunk as it can be given now; None where all of it is held."""
        if chunk.text is not None:
            return self._lift_text(chunk, chunk.text)
        parsed = chunk.parsed
        choices = parsed.get("choices")
        if not choices:
            return chunk
        self._last = parsed
        lifted = [self._choice(choice).lift(choice) for choice in choices]
        if all(new is old for new, old in zip(lifted, choices, strict=True)):
            return chunk
        parsed = {**parsed, "choices": lifted}
        return Chunk(dump_bytes(parsed), parsed)

    def _lift_text(self, chunk: Chunk, text: str) -> Chunk | None:
        first = self._choices.setdefault(0, _Choice(self._masks))
        if not first.holds and "[" not in text:
            return chunk
        said = first.feed("content", text)
        if said == text:
            return chunk
        if not said:
            return None
        choice = chunk.parsed["choices"][0]
        choice = {**choice, "delta": {**choice["delta"], "content": said}}
        parsed = {**chunk.parsed, "choices": [choice]}
        self._last = parsed
        return Chunk(dump_bytes(parsed), parsed, said)

    def _choice(self, choice: Mapping[str, Any]) -> _Choice:
        return self._choices.setdefault(choice.get("index") or 0, _Choice(self._masks))

    def close(self) -> Chunk | None:
        """What was still held when the answer ended without a word about it."""
        choices = [
            {"index": index, "delta": rest, "finish_reason": None}
            for index, choice in self._choices.items()
            if (rest := choice.close())
        ]
        if not choices:
            return None
        top = {k: v for k, v in self._last.items() if k not in ("choices", "usage", "timings")}
        parsed = {**top, "object": "chat.completion.chunk", "choices": choices}
        return Chunk(dump_bytes(parsed), parsed)


class _Choice:
    """One choice: a restorer for each of its texts and each of its calls."""

    __slots__ = ("_calls", "_masks", "_texts")

    def __init__(self, masks: Masks) -> None:
        self._masks = masks
        self._texts: dict[str, Restorer] = {}
        self._calls: dict[Any, tuple[dict[str, Any], Restorer]] = {}

    @property
    def holds(self) -> bool:
        """Whether a piece of the text is held."""
        return "content" in self._texts and self._texts["content"].holds

    def feed(self, name: str, piece: str) -> str:
        if name not in self._texts:
            self._texts[name] = Restorer(self._masks)
        return self._texts[name].feed(piece)

    def lift(self, choice: dict[str, Any]) -> dict[str, Any]:
        delta = choice.get("delta") or {}
        lifted = self._lift_delta(delta)
        if choice.get("finish_reason"):
            lifted = _joined(lifted, self.close())
        return choice if lifted == delta else {**choice, "delta": lifted}

    def _lift_delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        lifted = dict(delta)
        for name in _TEXTS:
            if (value := delta.get(name)) is not None:
                lifted[name] = self._lift_said(name, value)
        if calls := delta.get("tool_calls"):
            lifted["tool_calls"] = [piece for call in calls for piece in self._lift_call(call)]
        if isinstance(call := delta.get("function_call"), dict):
            arguments = call.get("arguments")
            if isinstance(arguments, str):
                said = self.feed("function_call", arguments)
                lifted["function_call"] = {**call, "arguments": said}
        return lifted

    def _lift_said(self, name: str, value: Any) -> Any:
        """A text, or a list of parts of which each says some of it."""
        if isinstance(value, str):
            return self.feed(name, value)
        if isinstance(value, list):
            return [self._lift_said(name, part) for part in value]
        if isinstance(value, dict):
            inner = "reasoning_content" if value.get("type") == "thinking" else name
            return {
                key: self._lift_said(inner, part) if key in ("text", "thinking") else part
                for key, part in value.items()
            }
        return value

    def _lift_call(self, piece: dict[str, Any]) -> list[dict[str, Any]]:
        """A piece of a call, behind what was held of another that had its number before."""
        function = piece.get("function") or {}
        arguments = function.get("arguments")
        number = piece.get("index") or 0
        before = self._calls.get(number)
        pieces: list[dict[str, Any]] = []
        if before is None or (piece.get("id") and piece["id"] != before[0].get("id")):
            if before is not None and (held := before[1].close()):
                pieces.append(_piece_of(before[0], held))
            before = ({key: piece.get(key) for key in ("index", "id")}, Restorer(self._masks))
            self._calls[number] = before
        if isinstance(arguments, str):
            said = before[1].feed(arguments)
            piece = {**piece, "function": {**function, "arguments": said}}
        elif arguments is not None:
            piece = {**piece, "function": {**function, "arguments": self._lift_object(arguments)}}
        return [*pieces, piece]

    def _lift_object(self, arguments: Any) -> Any:
        """Arguments that come whole, as an object."""
        return loads(self._masks.restore(dump_bytes(arguments).decode()))

    def close(self) -> dict[str, Any]:
        """What is held, as a delta."""
        rest: dict[str, Any] = {}
        for name, restorer in self._texts.items():
            if held := restorer.close():
                rest[name] = {"arguments": held} if name == "function_call" else held
        calls = [(call, restorer.close()) for call, restorer in self._calls.values()]
        if pieces := [_piece_of(call, held) for call, held in calls if held]:
            rest["tool_calls"] = pieces
        return rest


def _piece_of(call: Mapping[str, Any], arguments: str) -> dict[str, Any]:
    named = {key: value for key, value in call.items() if value is not None}
    return {**named, "function": {"arguments": arguments}}


def _joined(delta: dict[str, Any], rest: dict[str, Any]) -> dict[str, Any]:
    """A delta and what was held behind it."""
    joined = dict(delta)
    for name, held in rest.items():
        said = joined.get(name)
        if not said:
            joined[name] = held
        elif name == "function_call":
            joined[name] = {**said, "arguments": (said.get("arguments") or "") + held["arguments"]}
        elif isinstance(said, list) and isinstance(held, str):
            joined[name] = [*said, {"type": "text", "text": held}]
        else:
            joined[name] = said + held
    return joined
