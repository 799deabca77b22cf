"""An attempt whose model may search the past: rounds of calls that look like one to the client.

A reply that holds nothing but searches of ours is answered and the model asked once more, at most
`MOST_ROUNDS` times. Text that it says beside a search is given as it comes. Where a reply mixes our
calls with the client's own, the client gets its calls at once and ours are left out: they are for
the client to answer, and the model may search again behind their results. Rounds are not retries:
the turn's budget of attempts does not know of them.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.backends.base import Call, Chunk, Completion, Trace
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.context import Context
from gateway.flows.prefixes import mark_of
from gateway.flows.recall_tool import Allowance, Look, Past, answer_calls, is_ours
from gateway.flows.sites import Setting, margin_of
from gateway.flows.states import sizes
from gateway.flows.turn_rows import Begun, site_of
from gateway.prompts.view import encode_message
from gateway.wire.json_text import dump_bytes
from gateway.wire.letters import is_blank
from gateway.wire.replies import ReplyBuilder
from policies.messages import message_chars
from policies.recall.room import between_folds

MOST_ROUNDS = 4
PLAIN_BUDGET = 1_500
"""Characters of one answer where a policy recalls nothing unasked."""
_GAP = "\n\n"
_RATES = ("_per_second", "_per_token_ms")

Stream = Callable[[Call], AsyncIterator[Chunk]]
Complete = Callable[[Call], Awaitable[Completion]]


def begin_rounds(
    ctx: Context, begun: Begun, setting: Setting, call: Call, prompt_chars: int
) -> SearchRounds:
    """The rounds of an attempt whose model may search."""
    past = Past(begun.conversation.pk, begun.asked, begun.border)
    allowance = _allowance(begun, setting, prompt_chars)
    return SearchRounds(call, prompt_chars, ctx.store.read, past, allowance, setting.keep_reasoning)


def _allowance(begun: Begun, setting: Setting, prompt_chars: int) -> Allowance:
    """What is left until the next fold, below the ceiling, and in the window beside the reply."""
    recall = setting.policy.recall
    limits = site_of(begun, setting, begun.asked, begun.ratio, 0).limits
    rooms = [between_folds(recall, limits) - begun.noted.chars]
    if not limits.messages:
        total = sum(sizes(begun.fold, begun.asked)) + begun.noted.chars
        rooms.append(limits.ceiling - 1 - total)
    if setting.window is not None:
        tokens = setting.window - setting.reserve - margin_of(setting.window)
        rooms.append(int(tokens * begun.ratio) - prompt_chars)
    return Allowance(recall.budget or PLAIN_BUDGET, min(rooms), set(begun.noted.messages))


@dataclass(slots=True)
class SearchRounds:
    """The rounds of one attempt.

    call: of the round under way. exchange: what stands behind the question so far, calls and
    answers. read_chars, held_chars: of all prompts of further rounds, and of these what the round
    before had left with the server.
    """

    call: Call
    prompt_chars: int
    look: Look
    past: Past
    allowance: Allowance
    keep_reasoning: bool
    exchange: list[dict[str, Any]] = field(default_factory=list)
    read_chars: int = 0
    held_chars: int = 0
    _first: dict[str, Any] | None = None
    _usage: list[ReplyBuilder] = field(default_factory=list)
    _taken: set[str] = field(default_factory=set)
    _gap: bool = False
    _rounds: int = 0

    @property
    def marks(self) -> list[int]:
        """What the prefix book keeps of the exchange."""
        return [mark_of(encode_message(message)) for message in self.exchange]

    async def stream(self, send: Stream) -> AsyncGenerator[Chunk]:
        """The chunks that are the client's, of all rounds; the end of the last one alone."""
        while True:
            reply = ReplyBuilder()
            leading: list[Chunk] = []
            held: list[Chunk] = []
            chunks: Any = send(self.call)
            async with aclosing(chunks):
                async for chunk in chunks:
                    chunk.feed(reply)
                    shown = _without_calls(chunk)
                    if reply.finish_reason is not None:
                        held.append(chunk)
                    elif not _says_something(shown):
                        # Until something follows: a search is not told of.
                        leading += [shown] if any(_deltas(shown)) else []
                    else:
                        for each in (*leading, shown):
                            yield self._as_one(each)
                        leading.clear()
            if await self._search(reply):
                continue
            self._check_said(reply)
            for chunk in (*leading, *self._ending(reply, held)):
                yield self._as_one(chunk)
            return

    async def complete(self, send: Complete) -> Completion:
        """The whole reply as the client is to have it."""
        said: list[str] = []
        while True:
            parsed = (await send(self.call)).parsed
            reply = ReplyBuilder.from_completion(parsed)
            if not await self._search(reply):
                break
            said.append(reply.text)
        self._check_said(reply)
        whole = {**parsed, "choices": [_own_choice(each, said) for each in parsed["choices"]]}
        whole |= self._figures(reply)
        return Completion(dump_bytes(whole), whole)

    def own_part(self, received: Mapping[str, Any]) -> dict[str, Any]:
        """Of a whole reply that broke off, what is the client's."""
        choices = received.get("choices") or ()
        return {**received, "choices": [_own_choice(each, ()) for each in choices]}

    async def _search(self, reply: ReplyBuilder) -> bool:
        """Answer the searches of a reply; whether the model is to be asked once more."""
        message = reply.message()
        calls = message.get("tool_calls") or ()
        if not calls or not all(map(is_ours, calls)) or self._rounds == MOST_ROUNDS:
            return False
        self._rounds += 1
        self._usage.append(reply)
        asked = self._kept(message)
        added = await answer_calls(self.look, self.past, self.allowance, asked, self._taken)
        before = self.prompt_chars + _chars(self.exchange)
        self.exchange += added
        self.held_chars += before
        self.read_chars += before + _chars(added)
        self._gap = self._gap or not _ends_blank(reply.text)
        self.call = self._next_call(added, before + _chars(added))
        return True

    def _check_said(self, reply: ReplyBuilder) -> None:
        """Raises where a model does nothing but search: the client would be told nothing."""
        calls = reply.message().get("tool_calls") or ()
        if calls and all(map(is_ours, calls)) and is_blank(reply.text):
            what = f"The model searched {MOST_ROUNDS + 1} times and answered nothing"
            raise UpstreamFault(FaultKind.EMPTY, what)

    def _kept(self, message: dict[str, Any]) -> dict[str, Any]:
        return {
            key: value
            for key, value in message.items()
            if key in ("role", "content", "tool_calls")
            or (self.keep_reasoning and key == "reasoning_content")
        }

    def _next_call(self, added: Iterable[dict[str, Any]], prompt_chars: int) -> Call:
        params = self.call.params
        if self._rounds == MOST_ROUNDS:
            params = {**params, "tool_choice": "none"}  # it has searched enough: now it answers
        return replace(
            self.call,
            messages=(*self.call.messages, *map(encode_message, added)),
            params=params,
            prompt_chars=prompt_chars,
            unread_chars=_chars(added),
            trace=Trace(),
        )

    # -- what the client sees ---------------------------------------------------------------------

    def _as_one(self, chunk: Chunk) -> Chunk:
        """A chunk as part of the one reply that the client knows of."""
        if self._first is None:
            self._first = {key: chunk.parsed.get(key) for key in ("id", "created")}
        if self._rounds == 0:
            return chunk
        parsed = {**chunk.parsed, **{k: v for k, v in self._first.items() if v is not None}}
        if self._gap and (choices := _with_gap(parsed.get("choices") or ())):
            parsed["choices"], self._gap = choices, False
        return Chunk(dump_bytes(parsed), parsed)

    def _ending(self, reply: ReplyBuilder, held: Iterable[Chunk]) -> list[Chunk]:
        """The end of the last round: the client's own calls whole, then what was held back."""
        calls = reply.message().get("tool_calls") or ()
        own = [call for call in calls if not is_ours(call)]
        ending: list[Chunk] = []
        for at, chunk in enumerate(held):
            parsed = chunk.parsed
            if calls:
                parsed = _with_calls(parsed, own if at == 0 else ())
            if self._usage and (parsed.get("usage") or parsed.get("timings")):
                parsed = {**parsed, **self._figures(reply)}
            ending.append(chunk if parsed is chunk.parsed else Chunk(dump_bytes(parsed), parsed))
        return ending

    def _figures(self, last: ReplyBuilder) -> dict[str, Any]:
        """Usage and timings of all rounds together; nothing where there was one round only."""
        if not self._usage:
            return {}
        rounds = [*self._usage, last]
        usage = _sum([each.usage for each in rounds])
        timings = _sum([each.timings for each in rounds])
        return {k: v for k, v in (("usage", usage), ("timings", timings)) if v}


def _chars(messages: Iterable[dict[str, Any]]) -> int:
    return sum(message_chars(message, 0) for message in messages)


def _ends_blank(text: str) -> bool:
    return not text or text[-1].isspace()


def _deltas(chunk: Chunk) -> list[Mapping[str, Any]]:
    return [choice.get("delta") or {} for choice in chunk.parsed.get("choices") or ()]


def _without_calls(chunk: Chunk) -> Chunk:
    """A chunk without pieces of calls, which wait for the end."""
    if not any(delta.get("tool_calls") for delta in _deltas(chunk)):
        return chunk
    parsed = _with_calls(chunk.parsed, ())
    return Chunk(dump_bytes(parsed), parsed)


def _says_something(chunk: Chunk) -> bool:
    """Whether a chunk holds more than a role, with nothing taken out of it."""
    said = (value for delta in _deltas(chunk) for key, value in delta.items() if key != "role")
    return any(said)


def _with_calls(parsed: dict[str, Any], calls: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A chunk with these calls, whole, in place of the pieces that it holds. An end that nothing
    is left to be called for is a plain one."""
    choices = []
    for choice in parsed.get("choices") or ():
        delta = {k: v for k, v in (choice.get("delta") or {}).items() if k != "tool_calls"}
        if calls:
            delta["tool_calls"] = [{"index": at, **call} for at, call in enumerate(calls)]
        finish = choice.get("finish_reason")
        if finish == "tool_calls" and not calls:
            finish = "stop"
        choices.append({**choice, "delta": delta, "finish_reason": finish})
    return {**parsed, "choices": choices}


def _with_gap(choices: Sequence[dict[str, Any]]) -> list[dict[str, Any]] | None:
    """Choices whose text is set off from what was said before a search; None where none says
    anything yet."""
    for choice in choices:
        delta = choice.get("delta") or {}
        if isinstance(said := delta.get("content"), str) and said:
            return [{**choice, "delta": {**delta, "content": _GAP + said}}]
    return None


def _own_choice(choice: dict[str, Any], said: Iterable[str]) -> dict[str, Any]:
    """A choice of a whole reply as the client is to have it: without our calls, behind what was
    said beside searches before."""
    message = dict(choice.get("message") or {})
    calls = message.pop("tool_calls", None) or ()
    own = [call for call in calls if not is_ours(call)]
    if own:
        message["tool_calls"] = own
    before = [text.rstrip() for text in said if not is_blank(text)]
    if before:
        message["content"] = _GAP.join([*before, *filter(None, [message.get("content")])])
    finish = choice.get("finish_reason")
    if finish == "tool_calls" and not own:
        finish = "stop"
    return {**choice, "message": message, "finish_reason": finish}


def _sum(figures: Sequence[Any]) -> dict[str, Any]:
    """Counts added up, key by key; what is no count is as it was told last."""
    total: dict[str, Any] = {}
    for one in figures:
        for key, value in (one if isinstance(one, Mapping) else {}).items():
            if isinstance(value, Mapping):
                total[key] = _sum([total.get(key), value])
            elif type(value) in (int, float) and not key.endswith(_RATES):
                total[key] = total.get(key, 0) + value
            else:
                total[key] = value
    return total
