"""Requests that are no turns: titles, tags, follow-ups, a client's own summaries and drafts.

They are passed through as the client wrote them: no transcript, no memory, no slot of the chat's.
What they cost is kept, not what they say.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection

from gateway.backends.base import Backend, Call, Chunk, Completion
from gateway.backends.faults import UpstreamFault
from gateway.errors import ContextLengthExceeded
from gateway.flows.attempt import COUNT_ABOVE, GONE
from gateway.flows.commits import to_the_end
from gateway.flows.context import Context
from gateway.flows.incoming import Incoming
from gateway.flows.offers import demand_of, find_offer
from gateway.flows.privacy import resembles_private, tells_private
from gateway.flows.recovery import Recovery
from gateway.flows.reports import tell_auxiliary
from gateway.flows.routes import asker_of, order_aside
from gateway.flows.sites import Offer, Setting, fixed_chars, margin_of
from gateway.flows.turn import Turn, open_turn
from gateway.prompts.view import Tail, TailMessage, assemble
from gateway.store import transcript
from gateway.store.auxiliary import note_auxiliary
from gateway.store.transcript import ConversationRow
from gateway.traces import Span
from gateway.trail import learn_conversation
from gateway.wire.json_text import dumps
from gateway.wire.replies import ReplyBuilder
from policies.auxiliary import Auxiliary
from policies.budget import estimate_tokens, first_ratio, output_room
from policies.messages import message_chars
from policies.schema import Tier

RULE = "auxiliary"
"""What x-foldgate-rule says of such a request."""


@dataclass(slots=True)
class AuxiliaryReply:
    """An auxiliary request under way, served like a turn: iterate `stream()` or await `complete()`.
    Once `is_sent` is set the backend does not change any more."""

    ctx: Context
    incoming: Incoming
    request_id: str
    what: Auxiliary
    link: ConversationRow | None
    offer: Offer
    tiers: list[Tier]
    recovery: Recovery
    setting: Setting
    call: Call
    dropped: tuple[str, ...]
    started_ms: int
    is_sent: bool = False
    is_moving: bool = False
    reply: ReplyBuilder = field(default_factory=ReplyBuilder)
    span: Span = field(default_factory=Span)

    @property
    def backend(self) -> Backend:
        return self.ctx.backends[self.setting.backend]

    async def stream(self) -> AsyncGenerator[Chunk]:
        """The answer as it comes. Raises GatewayError; closing it cancels the upstream."""
        while True:
            try:
                async with aclosing(self._relay()) as chunks:
                    async for chunk in chunks:
                        self.is_sent = True
                        yield chunk
                return
            except UpstreamFault as fault:
                if self.is_sent or fault.partial:
                    raise
                await self._next_attempt(fault)

    async def complete(self) -> Completion:
        """The whole answer. Raises GatewayError."""
        while True:
            try:
                return await self._whole()
            except UpstreamFault as fault:
                await self._next_attempt(fault)

    async def _relay(self) -> AsyncGenerator[Chunk]:
        self.reply = reply = ReplyBuilder()
        with self._running():
            try:
                with self.ctx.circuits.call(self.setting.backend) as passage:
                    is_probe = passage.is_probe
                    stream: Any = self.backend.stream(self.call)
                    async with aclosing(stream) as chunks:
                        async for chunk in chunks:
                            if is_probe:
                                is_probe = False
                                passage.note_beginning()
                            chunk.feed(reply)
                            yield chunk
            except BaseException as error:
                await to_the_end(self._note_failed(error))
                raise
            await to_the_end(self._note("done"))

    async def _whole(self) -> Completion:
        self.reply = ReplyBuilder()
        with self._running():
            try:
                with self.ctx.circuits.call(self.setting.backend):
                    completion = await self.backend.complete(self.call)
                self.reply = ReplyBuilder.from_completion(completion.parsed)
            except BaseException as error:
                await to_the_end(self._note_failed(error))
                raise
            await to_the_end(self._note("done"))
        return completion

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Somebody waits: background work of the same backend stays away meanwhile."""
        backend = self.setting.backend
        self.span = self.ctx.traces.begin(
            "attempt", backend=backend, purpose="auxiliary", kind=self.what.kind
        )
        self.ctx.turn_began(backend)
        try:
            yield
        finally:
            self.ctx.turn_ended(backend)
            self.span.end()

    async def _next_attempt(self, fault: UpstreamFault) -> None:
        """Make another attempt ready, or raise: no budget is left, or no hope. Headers that would
        name the backend wait meanwhile."""
        self.is_moving = True
        try:
            await self._move(fault)
        finally:
            self.is_moving = False

    async def _move(self, fault: UpstreamFault) -> None:
        step = await self.recovery.plan(fault, self.setting, self.tiers)
        if step.step in ("give up", "smaller"):
            raise fault
        if step.step == "elsewhere":
            tier = self.tiers.pop(0)
            self.setting = _setting_of(self.offer, tier)
        place = (self.ctx, self.incoming, self.request_id)
        prepared = await _prepare(*place, self.setting, self.recovery.deadline)
        if prepared is None:
            raise fault
        self.call, self.dropped = prepared

    async def _note_failed(self, error: BaseException) -> None:
        if isinstance(error, UpstreamFault):
            await self._note("failed" if self.reply.is_empty else "partial", error.kind)
        elif isinstance(error, (asyncio.CancelledError, GeneratorExit)):
            await self._note("cancelled", GONE)
        else:
            await self._note("failed", "internal error")

    async def _note(self, state: str, error: str | None = None) -> None:
        tell_auxiliary(self.ctx, self.call, self.setting, self.what.kind, state, self.reply)
        self.span.tell(state=state)
        if error is not None:
            self.span.fail(error)
        await self.ctx.store.write(self._write, state, error, self.ctx.clock.now_ms())

    def _write(self, connection: Connection, state: str, error: str | None, now_ms: int) -> None:
        incoming, link = self.incoming, self.link
        if link is not None and not transcript.is_there(connection, link.pk):
            link = None  # it was deleted meanwhile
        note_auxiliary(
            connection,
            owner_pk=transcript.ensure_owner(connection, incoming.owner, incoming.user, now_ms),
            conversation_pk=None if link is None else link.pk,
            kind=self.what.kind,
            how=self.what.how,
            model=incoming.request.model,
            backend=self.setting.backend,
            state=state,
            finish_reason=self.reply.finish_reason if state == "done" else None,
            error=error,
            prompt_tokens=self.reply.prompt_tokens,
            completion_tokens=self.reply.completion_tokens,
            started_ms=self.started_ms,
            ended_ms=now_ms,
        )


async def open_chat(
    ctx: Context, incoming: Incoming, request_id: str, deadline: float | None = None
) -> Turn | AuxiliaryReply:
    """What serves a chat request: a turn of its conversation, or what is none.

    Raises GatewayError, as `open_turn` does.
    """
    what = incoming.auxiliary
    if what is None:
        return await open_turn(ctx, incoming, request_id, deadline)
    if what.how == "shape" and incoming.conversation is not None:
        return await open_turn(ctx, incoming, request_id, deadline)
    link, is_private = await ctx.store.read(_look_up, incoming)
    return await _open(ctx, incoming, request_id, what, link, is_private, deadline)


def _look_up(connection: Connection, incoming: Incoming) -> tuple[ConversationRow | None, bool]:
    """The conversation that the client named, if it is one of the owner's; and whether the request
    is about a private one: that, one whose replies it tells or, where none is named, one whose
    messages it tells."""
    owner_pk = transcript.find_owner(connection, incoming.owner, incoming.user)
    if owner_pk is None:
        return None, False
    if incoming.conversation is not None:
        link = transcript.find_conversation(connection, owner_pk, incoming.conversation)
        if link is not None:
            told = incoming.chain, incoming.canonicals
            return link, link.private or tells_private(connection, owner_pk, *told)
    return None, resembles_private(connection, owner_pk, incoming.chain, incoming.canonicals)


async def _open(
    ctx: Context,
    incoming: Incoming,
    request_id: str,
    what: Auxiliary,
    link: ConversationRow | None,
    is_private: bool,
    deadline: float | None,
) -> AuxiliaryReply:
    if link is not None:
        learn_conversation(link.id)
    offer = await find_offer(ctx, incoming.request.model, demand_of(incoming))
    image_chars = offer.settings[0].image_chars
    chars = sum(message_chars(message, image_chars) for message in incoming.chain)
    _, settings = order_aside(asker_of(incoming), offer, link, chars, is_private=is_private)
    for at, setting in enumerate(settings):
        prepared = await _prepare(ctx, incoming, request_id, setting, deadline)
        if prepared is None:
            continue
        rest = [Tier(backend=s.backend, policy=s.policy.name) for s in settings[at + 1 :]]
        return AuxiliaryReply(
            ctx,
            incoming,
            request_id,
            what,
            link,
            offer,
            rest,
            Recovery(ctx, request_id, incoming.request.model, deadline),
            setting,
            *prepared,
            ctx.clock.now_ms(),
        )
    raise ContextLengthExceeded(
        "The request is longer than the window of any backend that may serve it. Send less text.",
        param="messages",
    )


def _setting_of(offer: Offer, tier: Tier) -> Setting:
    return next(s for s in offer.settings if s.backend == tier.backend)


async def _prepare(
    ctx: Context,
    incoming: Incoming,
    request_id: str,
    setting: Setting,
    deadline: float | None,
) -> tuple[Call, tuple[str, ...]] | None:
    """The call and the parameters that cannot travel; None where the window does not hold it."""
    backend, request = ctx.backends[setting.backend], incoming.request
    messages = _pass_through(incoming, strict_roles=setting.strict_roles)
    tokens = await _count(backend, incoming, setting, messages)
    margin = 0 if setting.window is None else margin_of(setting.window)
    try:
        room = output_room(tokens, setting.output, margin, setting.window)
    except OverflowError:
        return None
    max_tokens = room or setting.output
    dropped = backend.dropped_params(request.params)
    if request.max_tokens and max_tokens < request.max_tokens:
        dropped = (*dropped, "max_tokens")
    call = Call(
        messages=messages,
        params=request.params,
        stream=request.stream,
        max_tokens=max_tokens,
        purpose="auxiliary",
        request_id=request_id,
        deadline=deadline,
        mask=setting.policy.privacy.mask,
    )
    return call, dropped


async def _count(
    backend: Backend, incoming: Incoming, setting: Setting, messages: Sequence[bytes]
) -> int:
    """The prompt in tokens: a guess, and the exact count where it comes near the window."""
    chars = sum(message_chars(message, setting.image_chars) for message in incoming.chain)
    chars += fixed_chars(incoming.system, setting)
    ratio = setting.first_ratio or first_ratio("\n".join(_texts(incoming)))
    estimate = estimate_tokens(chars, ratio)
    if setting.window is None or estimate + setting.output < COUNT_ABOVE * setting.window:
        return estimate
    exact = await backend.count_tokens(messages, incoming.request.params)
    return estimate if exact is None else exact


def _texts(incoming: Incoming) -> list[str]:
    texts = (message.get("content") for message in incoming.request.messages[-4:])
    return [text for text in texts if isinstance(text, str)]


def _pass_through(incoming: Incoming, *, strict_roles: bool) -> tuple[bytes, ...]:
    """The client's messages as they came, mended where a template would refuse them. System texts
    alone are a user's message where there must be one."""
    chain, system = list(incoming.chain), list(incoming.system)
    if strict_roles and not chain and system:
        _, last = system.pop()
        chain.append({**last, "role": "user"})
    tail = Tail()
    for depth, message in enumerate(chain, start=1):
        tail.add(TailMessage(depth, str(message["role"]), dumps(message), None))
    return assemble(system, [], tail, border=0, strict_roles=strict_roles)
