"""The backend that somebody chooses for a conversation, and why a conversation is where it is.

What stands here looks at a conversation between two turns: its newest message is the head, and
what the next user message will say is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from sqlalchemy import Connection

from gateway.errors import BadRequest, Forbidden, UpstreamFailed
from gateway.flows.context import Context
from gateway.flows.offers import Demand, find_offer
from gateway.flows.routes import Asker, View, look, open_move
from gateway.flows.sites import Offer, Spot, last_system
from gateway.store import attempts, transcript
from gateway.store.moves import Progress, find_progress
from gateway.store.transcript import ConversationRow
from policies.routing import FIRST, ROUTE, choose, explain
from policies.schema import Model, suggest

Find = Callable[[Connection], ConversationRow]

_TURNS = 10


@dataclass(frozen=True, slots=True)
class Rerouted:
    """Where the next turn goes and why, as far as that is known before it comes. progress: of the
    move that it will wait for."""

    backend: str | None
    policy: str | None
    rule: str
    progress: Progress | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "backend": self.backend,
            "policy": self.policy,
            "rule": self.rule,
            "migration": None if self.progress is None else self.progress.as_json(),
        }


async def reroute(ctx: Context, find: Find, backend: str | None) -> Rerouted:
    """Choose a conversation's backend until another is chosen, or none (None) again.

    Chapters that the backend's view lacks are asked for at once. What find raises is raised.
    Raises BadRequest for a backend that is no tier of the conversation's model, Forbidden where it
    is private and the backend elsewhere, UpstreamFailed where the backend is off.
    """
    conversation = await ctx.store.read(find)
    model = _model_of(ctx, conversation)
    if backend is not None:
        _check_tier(ctx, conversation.model, model, backend)
    offer = await find_offer(ctx, conversation.model, Demand())
    now_ms = ctx.clock.now_ms()

    def write(connection: Connection) -> Rerouted:
        found = find(connection)
        if backend is not None and backend not in offer.local and (found.private or model.private):
            raise Forbidden(
                f"The conversation is private and stays on this machine; `{backend}` is elsewhere.",
                code="private_conversation",
                param="backend",
            )
        transcript.route_conversation(connection, found.pk, backend)
        return _foresee(connection, replace(found, route=backend), offer, backend, now_ms)

    rerouted = await ctx.store.write(write)
    if rerouted.progress is not None:
        ctx.ring(now_ms)
    for setting in offer.settings:
        if setting.backend == rerouted.backend:
            ctx.prefills.redirect(conversation.pk, setting)
    return rerouted


def _model_of(ctx: Context, conversation: ConversationRow) -> Model:
    model = ctx.policies.file.find_model(conversation.model)
    if model is None:
        raise BadRequest(
            f"The conversation's model `{conversation.model}` is not in policies.yaml any more; "
            "it gets a model, and with it backends, with its next turn.",
            code="model_not_found",
        )
    return model


def _check_tier(ctx: Context, name: str, model: Model, backend: str) -> None:
    tiers = list(dict.fromkeys(tier.backend for tier in model.tiers))
    if backend not in tiers:
        near = suggest(backend, tiers)
        hint = f"Did you mean `{near}`?" if near else f"It has: {', '.join(tiers)}."
        raise BadRequest(
            f"`{backend}` is no backend of the model `{name}`. {hint}",
            code="backend_not_found",
            param="backend",
        )
    if (reason := ctx.backends[backend].off_reason) is not None:
        raise UpstreamFailed(
            f"The backend `{backend}` is off: {reason}.",
            status=503,
            code="no_backend",
            param="backend",
        )


def _foresee(
    connection: Connection,
    conversation: ConversationRow,
    offer: Offer,
    backend: str | None,
    now_ms: int,
) -> Rerouted:
    spot = find_spot(connection, conversation, now_ms)
    if spot is None:
        setting = next((s for s in offer.settings if s.backend == backend), None)
        policy = None if setting is None else setting.policy.name
        return Rerouted(backend, policy, FIRST if backend is None else ROUTE)
    view = look(connection, spot, _asker_of(connection, conversation), offer)
    at = next((i for i, s in enumerate(offer.settings) if s.backend == backend), None)
    rule = ROUTE
    if at is None:
        choice = choose(view.facts, view.stand, view.candidates, offer.rules)
        if choice is None:
            return Rerouted(None, None, FIRST)
        at, rule = choice.index, choice.rule
    chosen = offer.settings[at]
    progress = open_move(connection, spot, view, offer, at)
    return Rerouted(chosen.backend, chosen.policy.name, rule, progress)


def find_spot(connection: Connection, conversation: ConversationRow, now_ms: int) -> Spot | None:
    """Where the next turn of a conversation will stand; None while it has no message."""
    if conversation.head_pk is None:
        return None
    head = transcript.node_by_pk(connection, conversation.head_pk)
    system, _ = last_system(connection, conversation.pk)
    rows = transcript.path_between(connection, head.pk, max(0, head.depth - 4))
    sample = "\n".join(row.raw for row in rows)
    return Spot(conversation, head, system, sample, now_ms)


def _asker_of(
    connection: Connection,
    conversation: ConversationRow,
    headers: Mapping[str, str] | None = None,
    tags: frozenset[str] = frozenset(),
) -> Asker:
    name, user = transcript.owner_by_pk(connection, conversation.owner_pk)
    return Asker(name, user, headers or {}, tags)


def explain_route(
    connection: Connection,
    find: Find,
    offer: Offer,
    *,
    headers: Mapping[str, str],
    tags: frozenset[str],
    now_ms: int,
) -> dict[str, Any]:
    """Why the next turn of a conversation would go where it would, and how its newest turns went.

    Reads only. headers and tags: what the client would send with it.
    """
    conversation = find(connection)
    spot = find_spot(connection, conversation, now_ms)
    asker = _asker_of(connection, conversation, headers, tags)
    progress = find_progress(connection, conversation)
    shown: dict[str, Any] = {
        "conversation": conversation.id,
        "model": offer.model,
        "private": conversation.private or offer.is_private,
        "route": conversation.route,
        "home": conversation.backend,
        "choice": None,
        "ways": [],
        "backends": [],
        "migration": None if progress is None else progress.as_json(),
        "turns": attempts.list_rules(connection, conversation.pk, limit=_TURNS),
    }
    if spot is None:
        return shown
    view = look(connection, spot, asker, offer)
    return {**shown, **_tell(view, offer)}


def _tell(view: View, offer: Offer) -> dict[str, Any]:
    facts, stand, candidates = view.facts, view.stand, view.candidates
    choice = choose(facts, stand, candidates, offer.rules)
    chosen = None
    if choice is not None:
        tier = candidates[choice.index]
        chosen = {"backend": tier.backend, "policy": tier.policy, "rule": choice.rule}
    ways = [
        {**asdict(way), "misses": list(way.misses), "holds": way.holds, "chosen": False}
        for way in explain(facts, stand, candidates, offer.rules)
    ]
    for way in ways:
        if chosen is not None and (way["rule"], way["tier"]) == (chosen["rule"], chosen["backend"]):
            way["chosen"] = True
            break
    return {
        "private": stand.private,
        "home": stand.home,
        "choice": chosen,
        "ways": ways,
        "backends": [
            {
                "backend": tier.backend,
                "policy": tier.policy,
                "local": tier.is_local,
                "usable": tier.is_usable,
            }
            for tier in candidates
        ],
        "chars": facts.chars,
        "owner": facts.owner,
        "user": facts.user,
        "tags": sorted(facts.tags),
        "day": facts.day,
        "time": f"{facts.minute // 60:02}:{facts.minute % 60:02}",
    }
