"""Which tier serves a turn, decided from the rows inside the turn's first commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from gateway.errors import Forbidden
from gateway.flows.incoming import Incoming
from gateway.flows.migrate import open_migration
from gateway.flows.offers import no_backend
from gateway.flows.sites import Ground, Offer, Setting, Spot, find_ground
from gateway.flows.states import load_state
from gateway.store import attempts, transcript
from gateway.store.moves import Progress
from gateway.store.transcript import ConversationRow, Node
from policies.folding import plan_fold
from policies.routing import (
    HOME,
    MIGRATING,
    ROUTE,
    Candidate,
    Choice,
    Facts,
    Stand,
    choose,
    is_allowed,
    order_rest,
)
from policies.schema import content_tiers


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks, and what the request says that rules look at. has_tools: it offers tools."""

    owner: str
    user: str
    headers: Mapping[str, str]
    tags: frozenset[str]
    has_tools: bool = False


def asker_of(incoming: Incoming) -> Asker:
    params = incoming.request.params
    return Asker(
        incoming.owner,
        incoming.user,
        incoming.headers,
        incoming.tags,
        has_tools=bool(params.get("tools") or params.get("functions")),
    )


@dataclass(frozen=True, slots=True)
class Decision:
    """setting serves the turn; rule says why. rest: where the turn may go when that fails, in
    order. home: the backend on which the conversation lives from now on. progress: of the move
    that the turn waits for, or did not wait for although its view is not ready."""

    setting: Setting
    rule: str
    rest: tuple[Setting, ...]
    home: str | None
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class View:
    """Everything that a choice is made from, for the turn and for who asks why. last: the backend
    that answered last, where the conversation could be moved from it."""

    last: str | None
    facts: Facts
    stand: Stand
    candidates: Sequence[Candidate]


def look(connection: Connection, spot: Spot, asker: Asker, offer: Offer) -> View:
    """Gather what rules may ask from the rows: sums along the path, and no walk of it."""
    conversation = spot.conversation
    last: str | None = None
    if conversation.head_pk is not None and len(offer.settings) > 1:
        last = attempts.last_server(connection, conversation.pk)
    # A conversation of before there were homes lives where it was answered last.
    home = conversation.backend or last
    stand = Stand(conversation.route, home, conversation.private or offer.is_private)
    asked = content_tiers(offer.rules)
    candidates = []
    for setting in offer.settings:
        images, tools = False, False
        if setting.backend in asked:
            images, tools = _content(connection, spot, setting)
        candidates.append(_candidate(setting, offer, images, tools or asker.has_tools))
    facts = _facts(asker, offer, spot.head.cum_chars)
    return View(last, facts, stand, candidates)


def _facts(asker: Asker, offer: Offer, chars: int) -> Facts:
    return Facts(
        model=offer.model,
        owner=asker.owner,
        user=asker.user,
        headers=asker.headers,
        tags=asker.tags,
        chars=chars,
        minute=offer.minute,
        day=offer.day,
        usable=offer.usable,
    )


def _candidate(setting: Setting, offer: Offer, images: bool, tools: bool) -> Candidate:
    return Candidate(
        backend=setting.backend,
        policy=setting.policy.name,
        is_local=setting.backend in offer.local,
        is_usable=setting.backend in offer.usable,
        images=images,
        tools=tools,
    )


def decide(connection: Connection, spot: Spot, asker: Asker, offer: Offer) -> Decision:
    """The tier for this turn.

    Raises Forbidden where the conversation is private and the model has no tier on this machine,
    UpstreamFailed where that tier is off.
    """
    view = look(connection, spot, asker, offer)
    choice = choose(view.facts, view.stand, view.candidates, offer.rules)
    if choice is None:
        raise _refused(offer)
    settled, progress = _stay(connection, spot, view, choice, offer)
    home = view.stand.home
    # A route is kept until it is taken back: a move that it did not finish leaves nothing behind.
    if choice.settles and not (choice.rule == ROUTE and settled is not choice):
        home = offer.settings[choice.index].backend
    rest = order_rest(view.stand, view.candidates, settled.index)
    return Decision(
        setting=offer.settings[settled.index],
        rule=settled.rule,
        rest=tuple(offer.settings[at] for at in rest),
        home=home,
        progress=progress,
    )


def _stay(
    connection: Connection, spot: Spot, view: View, choice: Choice, offer: Offer
) -> tuple[Choice, Progress | None]:
    """Whether the turn stays where the conversation was answered last, if that can serve and may;
    and how far the move is for which it does.

    A conversation moves at a user message only, because a tool's result is read by the model that
    called the tool; and only to a view that is ready, unless it cannot stay.
    """
    target = offer.settings[choice.index]
    if view.last is None or view.last == target.backend:
        return choice, None
    old = _find_usable(view, view.last)
    if old is not None and not spot.head.opens:
        return Choice(old, HOME, False), None
    progress = open_move(connection, spot, view, offer, choice.index)
    if progress is None or old is None:
        return choice, progress
    return Choice(old, MIGRATING, False), progress


def open_move(
    connection: Connection, spot: Spot, view: View, offer: Offer, to: int
) -> Progress | None:
    """Ask at once for what the view of this tier lacks, where the conversation would be moved to
    it; None where it lacks nothing."""
    target = offer.settings[to]
    old = next((s for s in offer.settings if s.backend == view.last), None)
    if view.last in (None, target.backend):
        return None
    if old is not None and old.policy.name == target.policy.name:
        return None  # one view of two backends
    ground = find_ground(connection, spot, target)
    return open_migration(connection, ground.site, ground.fold, backend=target.backend)


def _find_usable(view: View, backend: str) -> int | None:
    """The place of this backend's tier, where it can serve and may."""
    for at, tier in enumerate(view.candidates):
        if tier.backend == backend and tier.is_usable and is_allowed(tier, view.stand):
            return at
    return None


def order_aside(
    asker: Asker,
    offer: Offer,
    conversation: ConversationRow | None,
    chars: int,
    *,
    is_private: bool = False,
) -> tuple[str, tuple[Setting, ...]]:
    """The rule and the tiers, in order, for a request that is no turn. conversation: to which it
    belongs, where that is known; chars: its own length; is_private: it tells of a private one.

    Raises as decide: what is private goes nowhere else by the way either.
    """
    private = offer.is_private or is_private
    stand = Stand(private=private)
    if conversation is not None:
        private = private or conversation.private
        stand = Stand(conversation.route, conversation.backend, private)
    candidates = [_candidate(setting, offer, False, asker.has_tools) for setting in offer.settings]
    choice = choose(_facts(asker, offer, chars), stand, candidates, offer.rules)
    if choice is None:
        raise _refused(offer)
    order = (choice.index, *order_rest(stand, candidates, choice.index))
    return choice.rule, tuple(offer.settings[at] for at in order)


def _refused(offer: Offer) -> Exception:
    off = {name: reason for name, reason in offer.off.items() if name in offer.local}
    return no_backend(offer.model, off) if off else _private(offer.model)


def _private(model: str) -> Forbidden:
    return Forbidden(
        f"This conversation is private and stays on this machine, where `{model}` has no backend. "
        "Ask for a model with a local one.",
        code="private_conversation",
        param="model",
    )


def _content(connection: Connection, spot: Spot, setting: Setting) -> tuple[bool, bool]:
    """Whether the turns that this tier's view will hold have images, and tool messages."""
    ground = find_ground(connection, spot, setting)
    shown = _shown(ground)
    held = _held_since(connection, spot.head, shown)
    if not any(held):
        return held  # nor behind any border that a fold of this turn may bring
    border = _border(connection, ground)
    return held if border == shown else _held_since(connection, spot.head, border)


def _shown(ground: Ground) -> int | None:
    """The last message that the view as it is does not hold; a fold may be at none."""
    return ground.fold.border_pk or None if ground.fold is not None else None


def _held_since(connection: Connection, head: Node, border_pk: int | None) -> tuple[bool, bool]:
    """Whether there are images, and tool messages, behind a border: sums along the path."""
    if border_pk is None:
        return head.cum_images > 0, head.cum_tools > 0
    border = transcript.node_by_pk(connection, border_pk)
    return head.cum_images > border.cum_images, head.cum_tools > border.cum_tools


def _border(connection: Connection, ground: Ground) -> int | None:
    """The last message that the view of this turn will not hold; None: it holds all.

    Where a fold may be due this reads what the fold itself would read: the tail, which is shorter
    than a ceiling.
    """
    fold, site, shown = ground.fold, ground.site, _shown(ground)
    if ground.total <= site.limits.start or not site.head.opens:
        return shown
    if attempts.was_asked(connection, site.head.pk, site.policy.name):
        return shown
    loaded = load_state(connection, site, fold)
    plan = plan_fold(site.limits, loaded.state)
    if plan is None or plan.border == loaded.state.border:
        return shown
    return loaded.tail[plan.border - loaded.state.border - 1].pk
