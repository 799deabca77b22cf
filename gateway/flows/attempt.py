"""Preparing one upstream call: the tier, its view, and that prompt + reply fit its window.

Characters do not bound tokens, so the window is checked in tokens before every call: by the ratio
this conversation has learned, and exactly, where the backend can count, once it gets near.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from gateway.backends.base import Backend, Call
from gateway.backends.faults import UpstreamFault
from gateway.errors import ContextLengthExceeded, StorageFailed
from gateway.flows.commits import to_the_end
from gateway.flows.context import Context
from gateway.flows.incoming import Incoming
from gateway.flows.offers import RESERVE_SHARE, demand_of, find_offer, reserve_of, setting_of
from gateway.flows.prefixes import Move, Sight, look_at
from gateway.flows.prospects import consult
from gateway.flows.recall_tool import TOOLS_CHARS, allows_tools, with_tools
from gateway.flows.reports import tell_end, tell_fold, tell_ready, tell_recall
from gateway.flows.sites import Setting, margin_of
from gateway.flows.states import sizes
from gateway.flows.turn_rows import (
    Begun,
    Ending,
    Question,
    begin_turn,
    cut_view,
    finish_turn,
    keep_view,
    settle_view,
)
from gateway.prompts.view import assemble, encode_notes
from gateway.store.attempts import abandon_attempt, abandon_unsettled
from policies.budget import (
    RATIO_LEAST,
    estimate_tokens,
    limits_of,
    output_room,
)
from policies.recall.room import can_search
from policies.routing import FALLBACK
from policies.schema import Tier

log = logging.getLogger("foldgate.turn")

T = TypeVar("T")

# Where prompt and reply are estimated above this share of the window, the prompt is counted exactly
# if the backend can.
COUNT_ABOVE = 0.75
_CUTS = 3
_USUAL_RATIO = 3.0
"""Characters per token of a common text."""
GONE = "the client left"


@dataclass(frozen=True, slots=True)
class Prepared:
    """An attempt that is ready to be sent; dropped names the parameters that could not travel,
    move tells of the prompt beside the one before it there."""

    backend: Backend
    setting: Setting
    begun: Begun
    call: Call
    dropped: tuple[str, ...]
    prompt_chars: int
    sight: Sight
    move: Move


async def prepare_first(
    ctx: Context, incoming: Incoming, request_id: str, tiers: list[Tier]
) -> Prepared:
    """Store the request and prepare its first attempt; fills tiers with where it may go when that
    fails."""
    offer = await find_offer(ctx, incoming.request.model, demand_of(incoming))
    answers = await consult(ctx, incoming, offer)
    place = (incoming, offer, ctx.views, ctx.clock.now_ms())
    work = ctx.store.write(begin_turn, *place, answers, ctx.clock.monotonic)
    begun = await _commit_view(ctx, work)
    tiers[:] = (Tier(backend=rest.backend, policy=rest.policy.name) for rest in begun.rest)
    return await _fit(ctx, incoming, request_id, tiers, begun.setting, begun)


async def prepare_tier(
    ctx: Context, incoming: Incoming, request_id: str, tiers: list[Tier], question: Question
) -> Prepared:
    """An attempt on the next tier for a request that is stored: its own view, from the rows."""
    tier, model = tiers.pop(0), incoming.request.model
    setting = await setting_of(ctx, model, tier, demand_of(incoming))
    return await _prepare_stored(ctx, incoming, request_id, tiers, setting, question, FALLBACK)


async def prepare_again(
    ctx: Context, incoming: Incoming, request_id: str, tiers: list[Tier], failed: Prepared
) -> Prepared:
    """Another attempt on the same tier; the same rows give the same bytes."""
    begun, setting = failed.begun, failed.setting
    place = (ctx, incoming, request_id, tiers)
    return await _prepare_stored(*place, setting, begun.question, begun.rule)


async def _prepare_stored(
    ctx: Context,
    incoming: Incoming,
    request_id: str,
    tiers: list[Tier],
    setting: Setting,
    question: Question,
    rule: str,
) -> Prepared:
    now_ms = ctx.clock.now_ms()
    work = ctx.store.write(settle_view, question, setting, ctx.views, now_ms, rule)
    begun = await _commit_view(ctx, work)
    return await _fit(ctx, incoming, request_id, tiers, setting, begun)


async def prepare_smaller(
    ctx: Context,
    incoming: Incoming,
    request_id: str,
    failed: Prepared,
    fault: UpstreamFault,
) -> Prepared:
    """After an overflow that no estimate foresaw: cut to fit by the error's own numbers. Here or
    not at all: what a backend refused goes to another only where the policy says so."""
    window = fault.window_tokens or failed.setting.window
    if window is None:
        raise fault
    tokens = fault.prompt_tokens or round(window * 1.25)
    old = failed.setting
    reserve = min(old.reserve, reserve_of(old.output, window, RESERVE_SHARE))
    setting = replace(old, window=window, reserve=reserve)
    begun = await _cut(ctx, setting, failed.begun, tokens, was_sent=True)
    if begun is None:
        return await _overflow(ctx, incoming, request_id, [], setting, failed.begun)
    return await _fit(ctx, incoming, request_id, [], setting, begun)


async def _commit_view(ctx: Context, work: Coroutine[Any, Any, Begun]) -> Begun:
    """Commit a view with its attempt; a client that leaves meanwhile leaves no running attempt."""
    begun = await to_the_end(work, undo=lambda begun: _abandon(ctx, begun, GONE))
    keep_view(begun, ctx.views)
    if begun.progress is not None:
        ctx.ring(ctx.clock.now_ms())
    _tell_begun(ctx, begun)
    return begun


def _tell_begun(ctx: Context, begun: Begun) -> None:
    """What a committed view brought: a fold, notes, a past that is not indexed yet."""
    tell_fold(ctx, begun)
    recalled = begun.recalled
    if recalled is None:
        return
    tell_recall(ctx, begun.setting, recalled)
    if recalled.wants_index and begun.fold is not None:
        ctx.indexing.want(begun.conversation.pk, begun.fold.border_pk)


async def _abandon(ctx: Context, begun: Begun, why: str) -> None:
    work = ctx.store.write(abandon_attempt, begun.attempt_pk, why, ctx.clock.now_ms())
    await settle(ctx, begun.attempt_pk, work)


async def settle(ctx: Context, attempt_pk: int, work: Coroutine[Any, Any, T]) -> T:
    """Let work store the end of an attempt. Where the database refuses it, the attempt would
    stand as running until the next start: the next end that can be stored settles it too."""
    try:
        result = await work
    except BaseException:
        ctx.unsettled.add(attempt_pk)
        raise
    if ctx.unsettled:
        with suppress(StorageFailed):  # it was logged, and they stay for the next end
            pks = tuple(ctx.unsettled)
            await ctx.store.write(abandon_unsettled, pks, ctx.clock.now_ms())
            ctx.unsettled.difference_update(pks)
    return result


async def _fit(
    ctx: Context,
    incoming: Incoming,
    request_id: str,
    tiers: list[Tier],
    setting: Setting,
    begun: Begun,
) -> Prepared:
    """Check prompt + reply + margin against the window in tokens; cut where they do not fit."""
    try:
        prepared = await _fitted(ctx, incoming, request_id, setting, begun)
    except BaseException as error:
        why = GONE if isinstance(error, asyncio.CancelledError) else "internal error"
        await to_the_end(_abandon(ctx, begun, why))
        raise
    if prepared is not None:
        return prepared
    return await _overflow(ctx, incoming, request_id, tiers, setting, begun)


async def _fitted(
    ctx: Context, incoming: Incoming, request_id: str, setting: Setting, begun: Begun
) -> Prepared | None:
    backend = ctx.backends[setting.backend]
    for _ in range(_CUTS):
        begun = _offer_search(backend, begun, incoming)
        messages = _messages(begun, setting)
        tokens = await _tokens(backend, setting, begun, messages, incoming)
        window = setting.window
        margin = 0 if window is None else margin_of(window)
        if window is None or tokens + setting.reserve + margin <= window:
            room = output_room(tokens, setting.output, margin, window)
            return _prepared(ctx, setting, begun, incoming, request_id, messages, room)
        cut = await _cut(ctx, setting, begun, tokens, was_sent=False)
        if cut is None:
            break
        begun = cut
    return None


def _offer_search(backend: Backend, begun: Begun, incoming: Incoming) -> Begun:
    """The view with tools of ours beside it, where there is a past to search and its policy, the
    client and the backend allow it."""
    if begun.searches or begun.border == 0:
        return begun
    if not may_search(backend, begun.setting, incoming.request.params):
        return begun
    return replace(begun, searches=True, fixed_chars=begun.fixed_chars + TOOLS_CHARS)


def may_search(backend: Backend, setting: Setting, params: dict[str, Any]) -> bool:
    """Whether a model that is called with these parameters may search a past that is folded."""
    policy = setting.policy
    # By the policy alone: what a conversation learns of its tokens takes no tools away again.
    if not policy.recall.tool or not can_search(policy.recall, limits_of(policy, _USUAL_RATIO)):
        return False
    if not allows_tools(params):
        return False
    return "tools" not in backend.dropped_params(with_tools(params))


def _params(begun: Begun, incoming: Incoming) -> dict[str, Any]:
    params = incoming.request.params
    return with_tools(params) if begun.searches else params


def _messages(begun: Begun, setting: Setting) -> tuple[bytes, ...]:
    return assemble(
        begun.question.system,
        begun.memory,
        begun.tail,
        border=begun.border,
        strict_roles=setting.strict_roles,
    )


def prompt_chars(begun: Begun) -> int:
    """Memory, verbatim with its notes, system texts and tools in characters."""
    return sum(sizes(begun.fold, begun.asked)) + begun.noted.chars + begun.fixed_chars


async def _tokens(
    backend: Backend,
    setting: Setting,
    begun: Begun,
    messages: Sequence[bytes],
    incoming: Incoming,
) -> int:
    estimate = estimate_tokens(prompt_chars(begun), begun.ratio)
    if setting.window is None or estimate + setting.output < COUNT_ABOVE * setting.window:
        return estimate
    exact = await backend.count_tokens(messages, _params(begun, incoming))
    return estimate if exact is None else exact


async def _cut(
    ctx: Context, setting: Setting, begun: Begun, tokens: int, *, was_sent: bool
) -> Begun | None:
    assert setting.window is not None
    ratio = max(RATIO_LEAST, prompt_chars(begun) / max(1, tokens))
    fixed = estimate_tokens(begun.fixed_chars, ratio)
    room = setting.window - setting.reserve - margin_of(setting.window) - fixed
    if room <= 0:
        return None
    work = ctx.store.write(
        cut_view,
        begun,
        setting,
        ctx.views,
        room,
        ratio,
        ctx.clock.now_ms(),
        was_sent=was_sent,
    )
    cut = await to_the_end(work, undo=lambda made: _abandon(ctx, made or begun, GONE))
    if cut is not None:
        keep_view(cut, ctx.views)
        _tell_begun(ctx, cut)
    return cut


async def _overflow(
    ctx: Context,
    incoming: Incoming,
    request_id: str,
    tiers: list[Tier],
    setting: Setting,
    begun: Begun,
) -> Prepared:
    """Not even the newest message fits: another tier that can, else the client is told. Stored."""
    ending = Ending("failed", None, None, "overflow")
    work = ctx.store.write(finish_turn, begun, setting, ending, ctx.clock.now_ms())
    await to_the_end(settle(ctx, begun.attempt_pk, work))
    tell_end(ctx, setting, ending, None)
    if tiers:
        return await prepare_tier(ctx, incoming, request_id, tiers, begun.question)
    tokens = estimate_tokens(begun.asked.chars + begun.fixed_chars, begun.ratio)
    raise ContextLengthExceeded(
        f"The newest message with system text and tools takes about {tokens} tokens, which the "
        f"window of {setting.window} tokens does not hold beside memory and reply. It was stored; "
        "send less text, or use a model with a larger window.",
        param="messages",
    )


def _prepared(
    ctx: Context,
    setting: Setting,
    begun: Begun,
    incoming: Incoming,
    request_id: str,
    messages: tuple[bytes, ...],
    room: int | None,
) -> Prepared:
    backend, params = ctx.backends[setting.backend], _params(begun, incoming)
    max_tokens = room or setting.output
    dropped = backend.dropped_params(params)
    if incoming.request.max_tokens and max_tokens < incoming.request.max_tokens:
        dropped = (*dropped, "max_tokens")
    sight, chars = _sight(setting, begun, messages, params), prompt_chars(begun)
    key = begun.conversation.pk, setting.backend
    move = ctx.prefixes.compare(
        key, sight, messages, prompt_chars=chars, image_chars=setting.image_chars
    )
    call = Call(
        messages=messages,
        params=params,
        stream=incoming.request.stream,
        max_tokens=max_tokens,
        purpose="chat",
        request_id=request_id,
        conversation=begun.conversation.id,
        prompt_chars=chars,
        unread_chars=None if move.expected_chars is None else chars - move.expected_chars,
        stable=sight.leading + sight.memory,
        mask=setting.policy.privacy.mask,
    )
    tell_ready(ctx, begun, dropped)
    return Prepared(backend, setting, begun, call, dropped, chars, sight, move)


def _sight(
    setting: Setting, begun: Begun, messages: Sequence[bytes], params: dict[str, Any]
) -> Sight:
    # With strict roles the system texts in front stand in one message.
    leading = sum(depth <= 0 for depth, _ in begun.question.system)
    notes = encode_notes(begun.question.system)
    is_plain = not notes and not setting.strict_roles
    return look_at(
        messages,
        params,
        tail=begun.tail.marks if is_plain else None,
        leading=min(leading, 1) if setting.strict_roles else leading,
        notes=notes,
        memory=len(begun.memory),
        policy=setting.policy.name,
        fold=begun.fold,
        asked=begun.asked,
    )
