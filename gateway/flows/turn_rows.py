"""The two commits of a turn, as functions over a connection.

`begin_turn`: new messages, system text, the fold if one is due, the attempt; before any upstream
is called. `finish_turn`: the reply, what it cost, the jobs that the turn causes; before the
stream's last event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from gateway.flows import folds
from gateway.flows.folds import Site
from gateway.flows.reconcile import Incoming, Placement, place, to_new_message
from gateway.flows.views import CachedTail, ViewCache
from gateway.prompts.span import span_lines
from gateway.prompts.view import Tail, TailMessage, render_memory
from gateway.store import attempts, memory, transcript
from gateway.store.memory import FoldRow
from gateway.store.transcript import ConversationRow, Node
from gateway.wire.json_text import dumps, loads
from policies.budget import first_ratio, learn_ratio, limits_of
from policies.judge import is_refusal
from policies.messages import canonical_message
from policies.schema import Policy
from policies.standin import write_stand_in

System = Sequence[tuple[int, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Setting:
    """The tier a turn runs on. Tokens: window, reserve (kept for the reply), output (asked)."""

    backend: str
    policy: Policy
    model: str
    image_chars: int
    keep_reasoning: bool
    strict_roles: bool
    window: int | None
    reserve: int
    output: int
    fixed_chars: int
    revision: str
    boot: str


@dataclass(frozen=True, slots=True)
class Begun:
    """What the first commit left: the rows' view and the attempt."""

    owner_pk: int
    placement: Placement
    fold: FoldRow | None
    memory: list[dict[str, Any]]
    tail: Tail
    system: System
    system_pk: int | None
    ratio: float
    attempt_pk: int
    cut: bool

    @property
    def asked(self) -> Node:
        return self.placement.asked

    @property
    def conversation(self) -> ConversationRow:
        return self.placement.conversation

    @property
    def border(self) -> int:
        return self.fold.border_depth if self.fold else 0

    @property
    def view_kind(self) -> str:
        """What x-foldgate-view says: cut on the turn of a hard cut, then what is shown."""
        if self.fold is None:
            return "verbatim"
        if self.cut:
            return "cut"
        return "stand-in" if self.fold.stand_ins else "folded"


def begin_turn(
    connection: Connection, incoming: Incoming, setting: Setting, views: ViewCache, now_ms: int
) -> Begun:
    """Store what the client sent and settle what the model is shown."""
    owner_pk = transcript.ensure_owner(connection, incoming.owner, incoming.user, now_ms)
    placement = place(
        connection, incoming, owner_pk, image_chars=setting.image_chars, now_ms=now_ms
    )
    transcript.touch_conversation(
        connection,
        placement.conversation.pk,
        head_pk=placement.asked.pk,
        model=setting.model,
        now_ms=now_ms,
    )
    system, system_pk = _system(connection, incoming, placement, now_ms)
    return settle_view(
        connection, owner_pk, placement, (system, system_pk), setting, incoming, views, now_ms
    )


def settle_view(
    connection: Connection,
    owner_pk: int,
    placement: Placement,
    system: tuple[System, int | None],
    setting: Setting,
    incoming: Incoming,
    views: ViewCache,
    now_ms: int,
) -> Begun:
    """The view of one tier for a placed message, and its attempt row (again for a fallback)."""
    ratio = memory.token_ratio(connection, placement.conversation.pk, setting.backend)
    if ratio is None:
        ratio = first_ratio(_sample(incoming))
    site = site_of(placement.conversation, placement.asked, setting, ratio, now_ms)
    before = memory.deepest_fold(
        connection, placement.conversation.pk, setting.policy.name, placement.asked
    )
    fold = folds.fold_if_due(connection, site, before)
    is_cut = fold is not None and fold.kind == "cut" and fold.at_pk == placement.asked.pk
    return _show(
        connection,
        owner_pk,
        placement,
        system,
        setting,
        incoming,
        views,
        fold,
        ratio,
        is_cut,
        now_ms,
    )


def cut_view(
    connection: Connection,
    begun: Begun,
    setting: Setting,
    incoming: Incoming,
    views: ViewCache,
    room: int,
    ratio: float,
    now_ms: int,
) -> Begun | None:
    """The view cut so that memory and verbatim fit `room` tokens; None where nothing fits."""
    site = site_of(begun.conversation, begun.asked, setting, ratio, now_ms)
    fold = folds.cut_to_window(connection, site, begun.fold, ratio=ratio, room=room)
    if fold is None:
        return None
    attempts.finish_attempt(
        connection,
        begun.attempt_pk,
        state="failed",
        reply_pk=None,
        finish_reason=None,
        error="overflow",
        prompt_tokens=None,
        cached_tokens=None,
        completion_tokens=None,
        now_ms=now_ms,
    )
    return _show(
        connection,
        begun.owner_pk,
        begun.placement,
        (begun.system, begun.system_pk),
        setting,
        incoming,
        views,
        fold,
        ratio,
        True,
        now_ms,
    )


def site_of(
    conversation: ConversationRow, head: Node, setting: Setting, ratio: float, now_ms: int
) -> Site:
    """A decision site; a window too small for the policy narrows its numbers in proportion."""
    room = None
    if setting.window is not None:
        fixed = round(setting.fixed_chars / ratio)
        room = setting.window - setting.reserve - fixed - margin_of(setting.window)
    limits = limits_of(setting.policy, ratio, room)
    return Site(conversation, setting.policy, limits, head, setting.revision, now_ms)


def margin_of(window: int) -> int:
    """Tokens kept free for what an estimate misses (template marks): 2 %, 64 at least."""
    return max(64, window // 50)


def _sample(incoming: Incoming) -> str:
    """Text to guess characters per token from: the newest message, and its neighbours."""
    texts = [m.get("content") for m in incoming.chain[-4:]]
    return "\n".join(text for text in texts if isinstance(text, str))


def _system(
    connection: Connection, incoming: Incoming, placement: Placement, now_ms: int
) -> tuple[System, int | None]:
    """This turn's system messages; the last known ones for a client that sends only what is new."""
    placed = [
        (0 if before == 0 else placement.offset + before, message)
        for before, message in incoming.system
    ]
    pk = placement.conversation.pk
    if placed:
        body = dumps(placed)
        return placed, transcript.ensure_system_text(connection, pk, body, now_ms)
    if placement.resent or placement.is_new:
        return [], None
    last = attempts.last_system(connection, pk)
    if last is None:
        return [], None
    stored = loads(transcript.system_text(connection, last))
    return [(int(depth), message) for depth, message in stored], last


def _show(
    connection: Connection,
    owner_pk: int,
    placement: Placement,
    system: tuple[System, int | None],
    setting: Setting,
    incoming: Incoming,
    views: ViewCache,
    fold: FoldRow | None,
    ratio: float,
    is_cut: bool,
    now_ms: int,
) -> Begun:
    memory_chars, verbatim_chars = folds.sizes(fold, placement.asked)
    shown = show_memory(connection, placement.conversation, fold, views)
    tail = _tail(connection, placement, setting, fold, views)
    kind = "verbatim" if fold is None else "cut" if is_cut else "folded"
    attempt_pk = attempts.begin_attempt(
        connection,
        conversation_pk=placement.conversation.pk,
        asked_pk=placement.asked.pk,
        system_pk=system[1],
        fold_pk=fold.pk if fold else None,
        backend=setting.backend,
        policy=setting.policy.name,
        model=setting.model,
        boot=setting.boot,
        view_kind=kind,
        state="running",
        idempotency_key=incoming.idempotency_key,
        memory_chars=memory_chars,
        verbatim_chars=verbatim_chars,
        started_ms=now_ms,
    )
    return Begun(
        owner_pk, placement, fold, shown, tail, system[0], system[1], ratio, attempt_pk, is_cut
    )


def show_memory(
    connection: Connection, conversation: ConversationRow, fold: FoldRow | None, views: ViewCache
) -> list[dict[str, Any]]:
    """The synthetic question and answer of a fold.

    Filtered once more when read: a text that is a refusal after all gives way to a stand-in
    made from the raw messages.
    """
    if fold is None:
        return []
    if (cached := views.memory(fold.pk)) is not None:
        return cached
    gist = memory.gist_by_pk(connection, fold.gist_pk) if fold.gist_pk else None
    texts = []
    for version in memory.versions_by_pk(connection, fold.memory):
        text = version.text
        if version.origin == "model" and is_refusal(text):
            rows = transcript.path_between(connection, version.last_pk, version.first_depth - 1)
            text = write_stand_in(span_lines([row.raw for row in rows]), len(text) or 1_100)
        texts.append(text)
    gist_text = gist.text if gist and not is_refusal(gist.text) else None
    shown = render_memory(gist_text, texts)
    views.keep_memory(fold.pk, shown)
    return shown


def _tail(
    connection: Connection,
    placement: Placement,
    setting: Setting,
    fold: FoldRow | None,
    views: ViewCache,
) -> Tail:
    border = fold.border_depth if fold else 0
    key = (placement.conversation.pk, setting.policy.name, setting.keep_reasoning)
    cached = views.tail(key)
    asked = placement.asked
    if (
        cached is not None
        and cached.border == border
        and transcript.on_path(connection, cached.head_pk, cached.head_depth, asked)
    ):
        tail, above = cached.tail.copy(), cached.head_depth
    else:
        tail, above = Tail(setting.keep_reasoning), border
    if above < asked.depth:
        for row in transcript.path_between(connection, asked.pk, above):
            tail.add(TailMessage(row.depth, row.role, row.raw, row.partial))
    views.keep_tail(key, CachedTail(border, asked.pk, asked.depth, tail))
    return tail


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended: the reply as it is to be stored (None: nothing came), and the figures."""

    state: str
    reply: dict[str, Any] | None
    finish_reason: str | None
    error: str | None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_chars: int = 0


def finish_turn(
    connection: Connection, begun: Begun, setting: Setting, ending: Ending, now_ms: int
) -> int | None:
    """Store the reply and what the turn causes. Returns when the next job is due, if one is new.

    Nothing at all is written where the conversation was deleted meanwhile.
    """
    reply: Node | None = None
    conversation = begun.conversation
    if not attempts.is_there(connection, begun.attempt_pk):
        return None
    if ending.reply is not None:
        new = to_new_message(
            ending.reply,
            canonical_message(ending.reply),
            setting.image_chars,
            produced=True,
            backend=setting.backend,
            finish_reason=ending.finish_reason,
            partial=ending.state != "done",
        )
        (reply,) = transcript.append_messages(connection, conversation, begun.asked, [new], now_ms)
    attempts.finish_attempt(
        connection,
        begun.attempt_pk,
        state=ending.state,
        reply_pk=reply.pk if reply else None,
        finish_reason=ending.finish_reason,
        error=ending.error,
        prompt_tokens=ending.prompt_tokens,
        cached_tokens=ending.cached_tokens,
        completion_tokens=ending.completion_tokens,
        now_ms=now_ms,
    )
    head = reply or begun.asked
    if reply is not None:
        transcript.touch_conversation(
            connection, conversation.pk, head_pk=reply.pk, model=setting.model, now_ms=now_ms
        )
    ratio = learn_ratio(begun.ratio, ending.prompt_chars, ending.prompt_tokens) or begun.ratio
    if ending.prompt_tokens and abs(ratio - begun.ratio) > 0.01:
        memory.save_token_ratio(connection, conversation.pk, setting.backend, ratio)
    site = site_of(conversation, head, setting, ratio, now_ms)
    due = folds.plan_chapters(connection, site, begun.fold)
    if due is None and begun.fold is not None and begun.fold.at_pk == begun.asked.pk:
        return site.now_ms + site.delay_ms  # the fold itself may have left a job for the gist
    return due
