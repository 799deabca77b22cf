"""Preparing one upstream call: the tier, its view, and that prompt + reply fit its window.

Characters do not bound tokens, so the window is checked in tokens before every call: by the ratio
this conversation has learned, and exactly, where the backend can count, once it gets near.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gateway.backends.base import Backend, Call
from gateway.backends.faults import UpstreamFault
from gateway.errors import ContextLengthExceeded, UpstreamFailed
from gateway.flows.context import Context
from gateway.flows.folds import sizes
from gateway.flows.reconcile import Incoming
from gateway.flows.turn_rows import (
    Begun,
    Ending,
    Setting,
    begin_turn,
    cut_view,
    finish_turn,
    margin_of,
    settle_view,
)
from gateway.prompts.view import assemble
from gateway.wire.json_text import dumps
from policies.budget import estimate_tokens, output_room
from policies.messages import message_chars
from policies.schema import Tier

# A prompt estimated above this share of the window is counted exactly where the backend can.
COUNT_ABOVE = 0.75
# A reply without a limit of the client's may take an eighth of a small window, not all of it.
RESERVE_SHARE = 8
DEFAULT_OUTPUT = 4_096
_CUTS = 3


@dataclass(frozen=True, slots=True)
class Prepared:
    """An attempt that is ready to be sent; dropped names the parameters that could not travel."""

    backend: Backend
    setting: Setting
    begun: Begun
    call: Call
    dropped: tuple[str, ...]
    prompt_chars: int


async def order_tiers(ctx: Context, model: str) -> list[Tier]:
    """The tiers that are switched on, the first healthy one in front.

    Where none is healthy the first is tried all the same: the client learns its real error.
    Raises NotFound for an unknown model, UpstreamFailed where every tier is off.
    """
    tiers = [tier for tier in ctx.tiers(model) if ctx.backends[tier.backend].off_reason is None]
    if not tiers:
        reasons = "; ".join(
            f"{tier.backend}: {ctx.backends[tier.backend].off_reason}" for tier in ctx.tiers(model)
        )
        raise UpstreamFailed(
            f"No backend of `{model}` is switched on ({reasons}).",
            status=503,
            code="no_backend",
        )
    for index, tier in enumerate(tiers):
        if (await ctx.backends[tier.backend].health()).ok:
            return [tier, *tiers[:index], *tiers[index + 1 :]]
    return tiers


async def setting_of(ctx: Context, tier: Tier, incoming: Incoming) -> Setting:
    """What a tier brings to a turn. Reads the backend's window (cached)."""
    backend = ctx.backends[tier.backend]
    config = ctx.policies.file.backends[tier.backend]
    window = await backend.window()
    reserve = incoming.request.max_tokens or config.max_output or DEFAULT_OUTPUT
    if window is not None:
        share = 2 if incoming.request.max_tokens else RESERVE_SHARE
        reserve = min(reserve, window // share)
    return Setting(
        backend=tier.backend,
        policy=ctx.policy(tier.policy),
        model=incoming.request.model,
        image_chars=backend.image_chars,
        keep_reasoning=getattr(config, "reasoning", "drop") == "keep",
        strict_roles=config.strict_roles,
        window=window,
        reserve=reserve,
        output=incoming.request.max_tokens or config.max_output or DEFAULT_OUTPUT,
        fixed_chars=_fixed_chars(incoming, backend.image_chars),
        revision=ctx.policies.revision,
        boot=ctx.boot,
    )


def _fixed_chars(incoming: Incoming, image_chars: int) -> int:
    """System texts, tools and schemas: what no fold can shorten, in characters."""
    system = sum(message_chars(message, image_chars) for _, message in incoming.system)
    params = incoming.request.params
    schemas = [params[name] for name in ("tools", "functions", "response_format") if name in params]
    return system + sum(len(dumps(schema)) for schema in schemas)


async def prepare_first(
    ctx: Context, incoming: Incoming, request_id: str, tiers: list[Tier]
) -> Prepared:
    """Store the request and prepare its first attempt; takes tiers from the front of the list."""
    tier = tiers.pop(0)
    setting = await setting_of(ctx, tier, incoming)
    begun = await ctx.store.write(begin_turn, incoming, setting, ctx.views, ctx.clock.now_ms())
    return await _fit(ctx, incoming, request_id, tiers, setting, begun)


async def prepare_tier(
    ctx: Context, incoming: Incoming, request_id: str, tiers: list[Tier], begun: Begun
) -> Prepared:
    """An attempt on the next tier for a request that is stored: its own view, from the rows."""
    tier = tiers.pop(0)
    setting = await setting_of(ctx, tier, incoming)
    begun = await ctx.store.write(
        settle_view,
        begun.owner_pk,
        begun.placement,
        (begun.system, begun.system_pk),
        setting,
        incoming,
        ctx.views,
        ctx.clock.now_ms(),
    )
    return await _fit(ctx, incoming, request_id, tiers, setting, begun)


async def prepare_again(
    ctx: Context, incoming: Incoming, request_id: str, tiers: list[Tier], failed: Prepared
) -> Prepared:
    """Another attempt on the same tier; the same rows give the same bytes."""
    begun = await ctx.store.write(
        settle_view,
        failed.begun.owner_pk,
        failed.begun.placement,
        (failed.begun.system, failed.begun.system_pk),
        failed.setting,
        incoming,
        ctx.views,
        ctx.clock.now_ms(),
    )
    return await _fit(ctx, incoming, request_id, tiers, failed.setting, begun)


async def prepare_smaller(
    ctx: Context,
    incoming: Incoming,
    request_id: str,
    tiers: list[Tier],
    failed: Prepared,
    fault: UpstreamFault,
) -> Prepared:
    """After an overflow that no estimate foresaw: cut to fit by the error's own numbers."""
    window = fault.window_tokens or failed.setting.window
    if window is None:
        raise fault
    tokens = fault.prompt_tokens or round(window * 1.25)
    setting = replace(
        failed.setting, window=window, reserve=min(failed.setting.reserve, window // RESERVE_SHARE)
    )
    begun = await _cut(ctx, incoming, setting, failed.begun, failed.prompt_chars, tokens)
    if begun is None:
        return await _overflow(ctx, incoming, request_id, tiers, failed.setting, failed.begun)
    return await _fit(ctx, incoming, request_id, tiers, setting, begun)


async def _fit(
    ctx: Context,
    incoming: Incoming,
    request_id: str,
    tiers: list[Tier],
    setting: Setting,
    begun: Begun,
) -> Prepared:
    """Check prompt + reply + margin against the window in tokens; cut where they do not fit."""
    backend = ctx.backends[setting.backend]
    for _ in range(_CUTS):
        messages = _messages(begun, setting)
        chars = prompt_chars(begun, setting)
        tokens = await _tokens(backend, setting, begun, messages, incoming, chars)
        asked = setting.output
        window = setting.window
        if window is None or tokens + setting.reserve + margin_of(window) <= window:
            room = output_room(tokens, asked, 0 if window is None else margin_of(window), window)
            return _prepared(backend, setting, begun, incoming, request_id, messages, room, chars)
        cut = await _cut(ctx, incoming, setting, begun, chars, tokens)
        if cut is None:
            break
        begun = cut
    return await _overflow(ctx, incoming, request_id, tiers, setting, begun)


def _messages(begun: Begun, setting: Setting) -> tuple[bytes, ...]:
    return assemble(
        begun.system,
        begun.memory,
        begun.tail,
        border=begun.border,
        strict_roles=setting.strict_roles,
    )


def prompt_chars(begun: Begun, setting: Setting) -> int:
    """Memory, verbatim, system texts and tools in characters."""
    return sum(sizes(begun.fold, begun.asked)) + setting.fixed_chars


async def _tokens(
    backend: Backend,
    setting: Setting,
    begun: Begun,
    messages: Sequence[bytes],
    incoming: Incoming,
    chars: int,
) -> int:
    estimate = estimate_tokens(chars, begun.ratio)
    if setting.window is None or estimate + setting.reserve < COUNT_ABOVE * setting.window:
        return estimate
    exact = await backend.count_tokens(messages, incoming.request.params)
    return estimate if exact is None else exact


async def _cut(
    ctx: Context, incoming: Incoming, setting: Setting, begun: Begun, chars: int, tokens: int
) -> Begun | None:
    assert setting.window is not None
    ratio = max(0.2, chars / max(1, tokens))
    fixed = estimate_tokens(setting.fixed_chars, ratio)
    room = setting.window - setting.reserve - margin_of(setting.window) - fixed
    if room <= 0:
        return None
    return await ctx.store.write(
        cut_view, begun, setting, incoming, ctx.views, room, ratio, ctx.clock.now_ms()
    )


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
    await ctx.store.write(finish_turn, begun, setting, ending, ctx.clock.now_ms())
    if tiers:
        return await prepare_tier(ctx, incoming, request_id, tiers, begun)
    tokens = estimate_tokens(begun.asked.chars + setting.fixed_chars, begun.ratio)
    raise ContextLengthExceeded(
        f"The newest message with system text and tools takes about {tokens} tokens; the largest "
        f"window here holds {setting.window} including the reply. It was stored; send less text, "
        "or use a model with a larger window.",
        param="messages",
    )


def _prepared(
    backend: Backend,
    setting: Setting,
    begun: Begun,
    incoming: Incoming,
    request_id: str,
    messages: tuple[bytes, ...],
    room: int | None,
    chars: int,
) -> Prepared:
    params: dict[str, Any] = incoming.request.params
    max_tokens = room or setting.output
    dropped = backend.dropped_params(params)
    if incoming.request.max_tokens and max_tokens < incoming.request.max_tokens:
        dropped = (*dropped, "max_tokens")
    call = Call(
        messages=messages,
        params=params,
        stream=incoming.request.stream,
        max_tokens=max_tokens,
        purpose="chat",
        request_id=request_id,
    )
    return Prepared(backend, setting, begun, call, dropped, chars)
