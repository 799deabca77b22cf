"""The tiers that a model has on offer now, looked up before a request's first commit.

Everything here is cached by the backends: a turn waits for none of them, save the first one and
who comes after a server was found gone.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain

from gateway.backends.token_table import chars_per_token
from gateway.errors import UpstreamFailed
from gateway.flows.context import Context
from gateway.flows.incoming import Incoming
from gateway.flows.sites import Offer, Setting
from gateway.wire.json_text import dumps
from policies.budget import OUTPUT_FLOOR, is_smaller, tell_narrowing
from policies.schema import DAYS, Model, Policy, Tier

log = logging.getLogger("foldgate.turn")

# A reply without a limit of the client's may take an eighth of a small window, not all of it.
RESERVE_SHARE = 8
DEFAULT_OUTPUT = 4_096
_SAMPLE_CHARS = 10_000
# Whoever asks within one minute for the same finds the same: many requests of a busy hour do.
_KEPT_OFFERS = 256


@dataclass(frozen=True, slots=True)
class Demand:
    """What a request asks of any tier: max_tokens (None: no limit), the characters of its tools,
    a sample of its text."""

    max_tokens: int | None = None
    tools_chars: int = 0
    sample: str = ""


def demand_of(incoming: Incoming) -> Demand:
    return Demand(incoming.request.max_tokens, _tools_chars(incoming), sample_text(incoming))


def sample_text(incoming: Incoming) -> str:
    """Text to guess characters per token from: the newest message, and its neighbours."""
    texts = [m.get("content") for m in incoming.chain[-4:]]
    return "\n".join(text for text in texts if isinstance(text, str))


def _tools_chars(incoming: Incoming) -> int:
    """Tools and schemas in characters."""
    params = incoming.request.params
    schemas = [params[name] for name in ("tools", "functions", "response_format") if name in params]
    return sum(len(dumps(schema)) for schema in schemas)


async def find_offer(ctx: Context, name: str, demand: Demand) -> Offer:
    """What may serve a request for this model.

    Raises NotFound for an unknown model, UpstreamFailed where every tier is off.
    """
    model = ctx.model(name)
    off = {
        tier.backend: reason
        for tier in model.tiers
        if (reason := ctx.backends[tier.backend].off_reason) is not None
    }
    tiers = [tier for tier in model.tiers if tier.backend not in off]
    if not tiers:
        raise no_backend(name, off)
    usable = await _find_usable(ctx, model, tiers)
    ratio = await _bundled_ratio(ctx, tiers, demand)
    windows = tuple([await _window(ctx, tier, tier.backend in usable) for tier in tiers])
    clock = _local_time(ctx.clock.now_ms() // 60_000, time.tzname)
    asked = (name, demand.max_tokens, demand.tools_chars, ratio)
    key = (ctx.policies.revision, asked, tuple(off.items()), usable, windows, clock)
    offer = ctx.offers.get(key)
    if offer is None:
        settings = tuple(
            _setting(ctx, name, tier, demand, ratio, window)
            for tier, window in zip(tiers, windows, strict=True)
        )
        offer = _lay_out(ctx, name, settings, usable, off, clock)
        if len(ctx.offers) >= _KEPT_OFFERS:
            ctx.offers.clear()
        ctx.offers[key] = offer
    return offer


def _lay_out(
    ctx: Context,
    name: str,
    settings: tuple[Setting, ...],
    usable: frozenset[str],
    off: Mapping[str, str],
    clock: tuple[int, str],
) -> Offer:
    model, (minute, day) = ctx.model(name), clock
    return Offer(
        model=name,
        is_private=model.private,
        rules=model.rules,
        settings=settings,
        local=frozenset(tier.backend for tier in model.tiers if ctx.backends[tier.backend].local),
        usable=usable,
        off=off,
        minute=minute,
        day=day,
    )


async def _window(ctx: Context, tier: Tier, ask: bool) -> int | None:
    """ask: whether the backend is asked for its window, or believed what it said last."""
    backend = ctx.backends[tier.backend]
    return await backend.window() if ask else backend.window_tokens


@lru_cache(maxsize=4)
def _local_time(minutes: int, zone: tuple[str, str]) -> tuple[int, str]:
    """The minute of the day and the day by this machine's clock, so many minutes after 1970.
    zone: the clock's, under which this is remembered: asking the system costs more than all else
    here."""
    moment = datetime.fromtimestamp(minutes * 60, tz=UTC).astimezone()
    return moment.hour * 60 + moment.minute, DAYS[moment.weekday()]


def no_backend(model: str, off: Mapping[str, str]) -> UpstreamFailed:
    reasons = "; ".join(f"{backend}: {reason}" for backend, reason in off.items())
    return UpstreamFailed(
        f"No backend of `{model}` is switched on ({reasons}).", status=503, code="no_backend"
    )


async def _find_usable(ctx: Context, model: Model, tiers: Iterable[Tier]) -> frozenset[str]:
    """Of the tiers' backends and those that rules ask about: on, healthy, not left alone."""
    whens = [rule.when for rule in model.rules]
    asked = chain.from_iterable((*(w.healthy or ()), *(w.unhealthy or ())) for w in whens)
    names = list(dict.fromkeys((*(tier.backend for tier in tiers), *asked)))
    if len(names) == 1:
        found = [await _is_usable(ctx, names[0])]
    else:
        found = await asyncio.gather(*(_is_usable(ctx, name) for name in names))
    return frozenset(name for name, usable in zip(names, found, strict=True) if usable)


async def _is_usable(ctx: Context, name: str) -> bool:
    backend = ctx.backends[name]
    if backend.off_reason is not None or not ctx.circuits.is_passable(name):
        return False
    return (await backend.health()).ok


async def _bundled_ratio(ctx: Context, tiers: Iterable[Tier], demand: Demand) -> float | None:
    """Characters per token by the bundled table, until a cloud model's usage teaches better."""
    if all(ctx.backends[tier.backend].kind != "litellm" for tier in tiers):
        return None
    return await asyncio.to_thread(chars_per_token, demand.sample[-_SAMPLE_CHARS:])


async def setting_of(ctx: Context, name: str, tier: Tier, demand: Demand) -> Setting:
    """What one tier brings to a request for a model. Reads the backend's window (cached)."""
    ratio = await _bundled_ratio(ctx, [tier], demand)
    return _setting(ctx, name, tier, demand, ratio, await _window(ctx, tier, True))


def _setting(
    ctx: Context, name: str, tier: Tier, demand: Demand, ratio: float | None, window: int | None
) -> Setting:
    backend = ctx.backends[tier.backend]
    config = ctx.policies.file.backends[tier.backend]
    _warn_narrow(ctx, tier, window)
    output = demand.max_tokens or config.max_output or DEFAULT_OUTPUT
    return Setting(
        backend=tier.backend,
        policy=ctx.policy(tier.policy),
        model=name,
        image_chars=backend.image_chars,
        keep_reasoning=getattr(config, "reasoning", "drop") == "keep",
        strict_roles=config.strict_roles,
        window=window,
        reserve=reserve_of(output, window, 2 if demand.max_tokens else RESERVE_SHARE),
        output=output,
        tools_chars=demand.tools_chars,
        revision=ctx.policies.revision,
        boot=ctx.boot,
        first_ratio=ratio if config.kind == "litellm" else None,
        warm=_warm(ctx, name, tier),
    )


def _warm(ctx: Context, name: str, tier: Tier) -> tuple[Policy, ...]:
    """The policies of the model's other tiers whose views are smaller, where they are kept warm."""
    policy = ctx.policy(tier.policy)
    if not policy.keep_warm:
        return ()
    others = {other.policy: ctx.policy(other.policy) for other in ctx.model(name).tiers}
    return tuple(p for p in others.values() if is_smaller(p.view, policy.view))


def _warn_narrow(ctx: Context, tier: Tier, window: int | None) -> None:
    """Say once of each window that it does not hold the policy's ceiling in every language."""
    place = (tier.backend, tier.policy, window)
    if place in ctx.narrow:
        return
    ctx.narrow.add(place)
    if (sentence := tell_narrowing(ctx.policy(tier.policy), window)) is not None:
        log.warning("backend %s, policy %s: %s", tier.backend, tier.policy, sentence)


def reserve_of(output: int, window: int | None, share: int) -> int:
    """Tokens kept for the reply: what is asked, at most a share of the window, and never less
    than the least with which a call is worth making."""
    if window is None:
        return output
    return max(min(output, window // share), min(output, OUTPUT_FLOOR))
