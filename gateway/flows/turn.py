"""One turn: store, view, call, relay, store. The owner of all retries and fallbacks.

A turn has one budget of attempts over every tier. An attempt may be followed by another only
before a byte has left for the client; a fallback gets its own view, never the failed one's bytes.
A deterministic failure (refusal, overflow, bad request) is not sent again as it was.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractContextManager, aclosing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.backends.base import Call, Chunk, Completion
from gateway.backends.faults import UpstreamFault
from gateway.errors import ContextLengthExceeded
from gateway.flows.attempt import (
    GONE,
    Prepared,
    may_search,
    prepare_again,
    prepare_first,
    prepare_smaller,
    prepare_tier,
    settle,
)
from gateway.flows.circuits import Passage
from gateway.flows.commits import to_the_end
from gateway.flows.context import Context
from gateway.flows.incoming import Incoming
from gateway.flows.prefill import Newest
from gateway.flows.prefixes import Move, Used, name_cause
from gateway.flows.recall_tool import with_tools
from gateway.flows.recovery import Recovery
from gateway.flows.reports import tell_end, tell_searches, tell_span
from gateway.flows.search_rounds import SearchRounds, begin_rounds
from gateway.flows.sites import Setting
from gateway.flows.states import count_tail, sizes
from gateway.flows.turn_rows import Begun, Ending, finish_turn
from gateway.prompts.view import render_reply
from gateway.traces import Span
from gateway.wire.replies import ReplyBuilder
from policies.budget import estimate_tokens, is_half_read
from policies.schema import Tier

log = logging.getLogger("foldgate.turn")


@dataclass(slots=True)
class Turn:
    """A chat request under way. `prepared` says what serves it.

    Iterate `stream()` or await `complete()`. Once `is_sent` is set (headers left for the client,
    which name the backend) the backend does not change any more; once `is_given` (a piece of the
    reply left) nothing is tried again. `is_moving`: it is being prepared for another backend, so
    the headers that would name this one must wait.
    """

    ctx: Context
    incoming: Incoming
    request_id: str
    prepared: Prepared
    tiers: list[Tier]
    recovery: Recovery
    is_sent: bool = False
    is_given: bool = False
    is_moving: bool = False
    first_fault: UpstreamFault | None = None
    rounds: SearchRounds | None = None
    reply: ReplyBuilder = field(default_factory=ReplyBuilder)
    span: Span = field(default_factory=Span)

    async def stream(self) -> AsyncGenerator[Chunk]:
        """The reply as it comes; its end only after the reply is committed.

        Raises GatewayError. Closing or cancelling it cancels the upstream and stores what came
        as partial.
        """
        while True:
            try:
                async with aclosing(self._relay()) as chunks:
                    async for chunk in chunks:
                        self.is_given = True
                        yield chunk
                return
            except UpstreamFault as fault:
                if self.is_given or fault.partial:
                    raise
                await self._next_attempt(fault)

    async def complete(self) -> Completion:
        """The whole reply, committed. Raises GatewayError."""
        while True:
            try:
                return await self._whole()
            except UpstreamFault as fault:
                await self._next_attempt(fault)

    async def _relay(self) -> AsyncGenerator[Chunk]:
        self.reply = reply = ReplyBuilder()
        held: list[Chunk] = []
        with self._running():
            try:
                with self._circuit() as passage:
                    is_probe = passage.is_probe
                    async with aclosing(self._upstream()) as chunks:
                        async for chunk in chunks:
                            if is_probe:
                                is_probe = False
                                passage.note_beginning()
                            chunk.feed(reply)
                            if reply.finish_reason is None:
                                yield chunk
                            else:
                                held.append(chunk)  # the end is told once the reply is safe
            except BaseException as error:
                await to_the_end(self._finish_failed(error))
                raise
            await to_the_end(self._finish("done"))
        for chunk in held:
            yield chunk

    def _call(self) -> Call:
        """The attempt's call, with what is left of the client's patience."""
        return replace(self.prepared.call, deadline=self.recovery.deadline)

    def _circuit(self) -> AbstractContextManager[Passage]:
        return self.ctx.circuits.call(self.prepared.backend.name)

    def _upstream(self) -> AsyncGenerator[Chunk]:
        send: Any = self.prepared.backend.stream
        self.rounds = self._search_rounds()
        stream: Any = send(self._call()) if self.rounds is None else self.rounds.stream(send)
        return stream  # type: ignore[no-any-return]

    def _search_rounds(self) -> SearchRounds | None:
        """Of a model that may search the past by itself."""
        prepared = self.prepared
        if not prepared.begun.searches:
            return None
        place = (self.ctx, prepared.begun, prepared.setting)
        return begin_rounds(*place, self._call(), prepared.prompt_chars)

    async def _whole(self) -> Completion:
        self.reply = ReplyBuilder()
        with self._running():
            try:
                with self._circuit():
                    completion = await self._completion()
                self.reply = ReplyBuilder.from_completion(completion.parsed)
            except BaseException as error:
                await to_the_end(self._finish_failed(error))
                raise
            await to_the_end(self._finish("done"))
        return completion

    async def _completion(self) -> Completion:
        send = self.prepared.backend.complete
        self.rounds = self._search_rounds()
        return await (send(self._call()) if self.rounds is None else self.rounds.complete(send))

    async def _finish_failed(self, error: BaseException) -> None:
        """Store what came before the upstream failed or the client left, and why it ended."""
        if isinstance(error, UpstreamFault):
            if received := error.received:
                received = received if self.rounds is None else self.rounds.own_part(received)
                self.reply = ReplyBuilder.from_completion(received)
            await self._finish("failed" if self.reply.is_empty else "partial", error.kind)
        elif isinstance(error, (asyncio.CancelledError, GeneratorExit)):
            await self._finish("cancelled", GONE)
        else:
            await self._finish("failed", "internal error")

    async def _finish(self, state: str, error: str | None = None) -> None:
        reply, prepared, ctx = self.reply, self.prepared, self.ctx
        trace, prompt_chars, move = prepared.call.trace, *self._read()
        used = Used(
            prompt_chars,
            reply.prompt_tokens,
            reply.cached_tokens,
            trace.slot,
            is_cloud=prepared.backend.kind == "litellm",
            is_own=trace.is_own,
        )
        ending = Ending(
            state=state,
            reply=None if reply.is_empty else reply.message(),
            finish_reason=reply.finish_reason if state == "done" else None,
            alternatives=() if reply.is_empty else reply.alternatives,
            error=error,
            prompt_tokens=reply.prompt_tokens,
            cached_tokens=reply.cached_tokens,
            completion_tokens=reply.completion_tokens,
            prompt_chars=prompt_chars,
            slot=trace.slot,
            queued_ms=_whole_ms(trace.queued),
            first_token_ms=_whole_ms(trace.first_token),
            move=move,
            moved_by=name_cause(move, used),
            searches=() if self.rounds is None else self.rounds.exchange,
        )
        work = ctx.store.write(
            finish_turn, prepared.begun, prepared.setting, ending, ctx.clock.now_ms()
        )
        done = await settle(ctx, prepared.begun.attempt_pk, work)
        tell_end(ctx, prepared.setting, ending, done.moved_by)
        tell_span(self.span, ending)
        if done.is_gone:  # what was deleted is remembered nowhere, also what came in a moment late
            ctx.views.forget(prepared.begun.conversation.pk)
        else:
            self._keep_prefix(ending)
            if ending.reply is not None:
                self._look_ahead()
        self._warn_half_read(ending)
        if done.searched:
            tell_searches(ctx, prepared.setting, done.searched)
            self._index_past()
        if done.due_ms is not None:
            ctx.ring(done.due_ms)
            self._index_ahead()

    def _read(self) -> tuple[int, Move]:
        """The characters of the attempt's prompts, all rounds together, and what was expected of
        them."""
        prepared, rounds = self.prepared, self.rounds
        if rounds is None or not rounds.exchange:
            return prepared.prompt_chars, prepared.move
        move, expected = prepared.move, prepared.move.expected_chars
        if expected is not None:
            move = replace(move, expected_chars=expected + rounds.held_chars)
        return prepared.prompt_chars + rounds.read_chars, move

    def _index_ahead(self) -> None:
        """What will leave the view is made searchable before it does."""
        setting, begun = self.prepared.setting, self.prepared.begun
        recalls = (policy.recall for policy in (setting.policy, *setting.warm))
        if any(recall.budget or recall.tool for recall in recalls):
            self.ctx.indexing.want(begun.conversation.pk, begun.asked.pk)

    def _index_past(self) -> None:
        """What a model searched is searchable whole the next time: also on a branch that was gone
        back to before its past was indexed."""
        begun = self.prepared.begun
        if begun.fold is not None and begun.fold.border_depth > 0:
            self.ctx.indexing.want(begun.conversation.pk, begun.fold.border_pk)

    def _keep_prefix(self, ending: Ending) -> None:
        """Remember what the server holds now: the prompt, and the reply as it will be shown."""
        if ending.state == "failed":
            return
        prepared, setting = self.prepared, self.prepared.setting
        reply = None
        if ending.reply is not None:
            reply = render_reply(ending.reply, keep_reasoning=setting.keep_reasoning)
            if self.rounds is not None:
                prepared.sight.marks.extend(self.rounds.marks)
        key = prepared.begun.conversation.pk, setting.backend
        self.ctx.prefixes.keep(key, prepared.sight, reply, ending.slot)

    def _look_ahead(self) -> None:
        """Tell who reads prompts in ahead what the next turn will probably be like."""
        prepared, begun = self.prepared, self.prepared.begun
        setting = _next_setting(begun)
        newest = Newest(
            conversation=begun.conversation,
            setting=setting,
            system=begun.question.system,
            params=self._coming_params(setting),
            asked=begun.asked,
            ratio=begun.ratio,
            fixed=begun.fixed_chars,
            size=self._size_with_reply(),
            habits=prepared.move.habits,
            moves=setting is not begun.setting,
        )
        self.ctx.prefills.turn_ended(newest)

    def _coming_params(self, setting: Setting) -> dict[str, Any]:
        """The parameters of a turn behind a coming fold: its model may search then."""
        params, backend = self.prepared.call.params, self.ctx.backends[setting.backend]
        if self.prepared.begun.searches or not may_search(backend, setting, params):
            return params
        return with_tools(params)

    def _size_with_reply(self) -> int:
        """The view with the reply, in the unit of its policy."""
        begun = self.prepared.begun
        if begun.setting.policy.view.unit == "messages":
            return count_tail(begun.fold, begun.asked) + 1
        shown = sum(sizes(begun.fold, begun.asked)) + begun.noted.chars
        return shown + len(self.reply.text)

    def _warn_half_read(self, ending: Ending) -> None:
        """An alarm where the backend's own figure says that it cut the prompt. Only numbers."""
        chars, ratio = ending.prompt_chars, self.prepared.begun.ratio
        if is_half_read(chars, ratio, ending.prompt_tokens):
            log.warning(
                "%s: the backend %s read %d tokens of a prompt of about %d: it cuts unasked",
                self.request_id,
                self.prepared.backend.name,
                ending.prompt_tokens,
                estimate_tokens(chars, ratio),
            )
            self.ctx.meters.prompt_half_read(self.prepared.backend.name)

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Count a running turn of the backend: its background work stays away meanwhile."""
        backend, begun = self.prepared.backend.name, self.prepared.begun
        self.span = self.ctx.traces.begin(
            "attempt",
            backend=backend,
            policy=begun.setting.policy.name,
            view=begun.view_kind,
            rule=begun.rule,
        )
        self.ctx.turn_began(backend)
        try:
            yield
        finally:
            self.ctx.turn_ended(backend)
            self.span.end()

    async def _next_attempt(self, fault: UpstreamFault) -> None:
        """Prepare another attempt, or raise: no budget is left, or no hope.

        Where a fallback failed too, the client is told the fault that led to it.
        """
        first, failed = self.first_fault or fault, self.prepared
        tiers: list[Tier] = [] if self.is_sent else self.tiers
        step = await self.recovery.plan(fault, failed.setting, tiers)
        place = (self.ctx, self.incoming, self.request_id)
        if step.step == "give up" or (step.step == "elsewhere" and self.is_sent):
            raise first
        if step.step == "smaller":
            self.prepared = await prepare_smaller(*place, failed, fault)
        elif step.step == "again":
            tiers = [] if self.is_sent else self.tiers  # headers may have left during a wait
            self.prepared = await prepare_again(*place, tiers, failed)
        else:
            self.first_fault = first
            self.is_moving = True
            try:
                question = failed.begun.question
                self.prepared = await prepare_tier(*place, self.tiers, question)
            except ContextLengthExceeded:
                raise first from None
            finally:
                self.is_moving = False


def _next_setting(begun: Begun) -> Setting:
    """The tier of the next turn, as far as it is known: where a move under way leads, else the
    same."""
    move = begun.progress
    if move is None:
        return begun.setting
    return next((one for one in begun.rest if one.backend == move.backend), begun.setting)


def _whole_ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1000)


async def open_turn(
    ctx: Context, incoming: Incoming, request_id: str, deadline: float | None = None
) -> Turn:
    """Store a request and make its first attempt ready; nothing was sent upstream yet.

    deadline: the event loop's seconds by which the client must have been told, None where it is
    patient. Raises GatewayError: unknown model, every tier off, a message that fits no window.
    """
    tiers: list[Tier] = []
    prepared = await prepare_first(ctx, incoming, request_id, tiers)
    ctx.prefills.arrive(prepared.begun.conversation.pk)
    recovery = Recovery(ctx, request_id, incoming.request.model, deadline)
    return Turn(ctx, incoming, request_id, prepared, tiers, recovery)
