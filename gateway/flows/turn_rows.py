"""The two commits of a turn, as functions over a connection.

`begin_turn`: new messages, system text, the fold if one is due, the attempt; before any upstream
is called. `finish_turn`: the reply, what it cost, the jobs that the turn causes; before the
stream's last event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any

from sqlalchemy import Connection

from gateway.errors import Conflict
from gateway.flows import folds
from gateway.flows.align import drop_fillers
from gateway.flows.incoming import Incoming
from gateway.flows.lookups import NOTHING, Answers
from gateway.flows.memories import show_memory
from gateway.flows.migrate import plan_warm_chapters
from gateway.flows.new_messages import to_new_message
from gateway.flows.notes import NO_NOTES, Noted, Recalled, index_past
from gateway.flows.offers import sample_text
from gateway.flows.prefixes import UNCOMPARED, Move, settle_cause
from gateway.flows.purges import purge_unshown, withdraw_facts
from gateway.flows.reconcile import Placement, place
from gateway.flows.routes import Decision, asker_of, decide
from gateway.flows.sites import (
    Offer,
    Setting,
    Spot,
    System,
    find_ground,
    fixed_chars,
    last_system,
    make_site,
)
from gateway.flows.states import Site, sizes
from gateway.flows.tails import lay_tail, plan_recall
from gateway.flows.views import CachedTail, ViewCache, ViewKey
from gateway.prompts.view import Tail
from gateway.store import attempts, gist_rows, notes, token_ratios, transcript
from gateway.store.fold_rows import FoldRow
from gateway.store.moves import Progress
from gateway.store.transcript import ConversationRow, Node
from gateway.wire.json_text import dumps
from policies.budget import learn_ratio, limits_of
from policies.messages import canonical_message, message_chars


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, the same for every tier: the message in its place, the system texts of the
    turn with their row, a sample of the text, the client's key, what other sources told about it,
    and the clock by which searches are timed."""

    placement: Placement
    system: System
    system_pk: int | None
    sample: str
    idempotency_key: str | None
    answers: Answers = NOTHING
    clock: Callable[[], float] = monotonic

    def spot(self, now_ms: int) -> Spot:
        """Where the question stands, for who decides about it."""
        place = self.placement
        return Spot(place.conversation, place.asked, self.system, self.sample, now_ms)


@dataclass(frozen=True, slots=True)
class News:
    """What a commit folded. span: characters that left the view. chapters and gists: stand-ins
    made on the spot for it. fault: why those characters could not be indexed."""

    kind: str
    span: int
    chapters: int
    gists: int
    fault: Exception | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """What the first commit left: the rows' view and the attempt. rule: why this tier.
    fixed_chars: system texts and tools, which no fold can shorten. rest: where the turn may go
    when this tier fails, in order. progress: of the move to another backend that this turn comes
    before. news: the fold that this commit wrote, if it wrote one. noted: the notes in the tail;
    recalled: what was looked for just now, None for what was shown before. searches: the model may
    search the past by itself."""

    question: Question
    setting: Setting
    rule: str
    fold: FoldRow | None
    memory: list[dict[str, Any]]
    tail: Tail
    view_key: ViewKey
    ratio: float
    fixed_chars: int
    attempt_pk: int
    is_cut: bool
    rest: tuple[Setting, ...] = ()
    progress: Progress | None = None
    news: News | None = None
    noted: Noted = NO_NOTES
    recalled: Recalled | None = None
    searches: bool = False

    @property
    def asked(self) -> Node:
        return self.question.placement.asked

    @property
    def conversation(self) -> ConversationRow:
        return self.question.placement.conversation

    @property
    def border(self) -> int:
        return self.fold.border_depth if self.fold else 0

    @property
    def view_kind(self) -> str:
        return view_kind(self.fold, is_cut=self.is_cut)


def view_kind(fold: FoldRow | None, *, is_cut: bool) -> str:
    """What x-foldgate-view says: cut on the turn of a hard cut, then what is shown."""
    if fold is None or not fold.border_depth:
        return "verbatim"
    if is_cut:
        return "cut"
    return "stand-in" if fold.stand_ins else "folded"


def begin_turn(
    connection: Connection,
    incoming: Incoming,
    offer: Offer,
    views: ViewCache,
    now_ms: int,
    answers: Answers = NOTHING,
    clock: Callable[[], float] = monotonic,
) -> Begun:
    """Store what the client sent, choose the tier, and settle what its model is shown.

    answers: of other sources. clock: seconds, by which searches are timed.
    Raises Forbidden and UpstreamFailed where no tier may serve: then nothing is stored.
    """
    question, decision = place_question(connection, incoming, offer, now_ms, answers, clock)
    placement = question.placement
    moved = _move(connection, placement, decision, offer, now_ms)
    if moved is not placement:
        question = replace(question, placement=moved)
    begun = _settle(connection, question, decision.setting, views, now_ms, decision.rule)
    if not decision.rest and decision.progress is None:
        return begun
    return replace(begun, rest=decision.rest, progress=decision.progress)


def place_question(
    connection: Connection,
    incoming: Incoming,
    offer: Offer,
    now_ms: int,
    answers: Answers = NOTHING,
    clock: Callable[[], float] = monotonic,
) -> tuple[Question, Decision]:
    """Store what the client sent, and choose the tier. Takes and raises as begin_turn."""
    owner_pk = transcript.ensure_owner(connection, incoming.owner, incoming.user, now_ms)
    placement = place(
        connection, incoming, owner_pk, image_chars=offer.settings[0].image_chars, now_ms=now_ms
    )
    system, system_pk = _system(connection, incoming, placement, now_ms)
    sample = sample_text(incoming)
    question = Question(
        placement, system, system_pk, sample, incoming.idempotency_key, answers, clock
    )
    return question, decide(connection, question.spot(now_ms), asker_of(incoming), offer)


def _move(
    connection: Connection, placement: Placement, decision: Decision, offer: Offer, now_ms: int
) -> Placement:
    """Write where the conversation stands and lives now."""
    old = placement.conversation
    home = decision.home if placement.moves_head else old.backend
    private = old.private or offer.is_private
    if placement.moves_head:
        transcript.touch_conversation(
            connection, old.pk, head_pk=placement.asked.pk, model=offer.model, now_ms=now_ms
        )
    if (home, private) == (old.backend, old.private):
        return placement
    transcript.settle_conversation(connection, old.pk, backend=home, private=private)
    if private and not old.private:
        withdraw_facts(connection, old)
    return replace(placement, conversation=replace(old, backend=home, private=private))


def settle_view(
    connection: Connection,
    question: Question,
    setting: Setting,
    views: ViewCache,
    now_ms: int,
    rule: str,
) -> Begun:
    """The view of one tier for a stored message, and its attempt row: for a fallback or once more.

    Raises Conflict where the conversation was deleted meanwhile.
    """
    _check_there(connection, question)
    return _settle(connection, question, setting, views, now_ms, rule)


def cut_view(
    connection: Connection,
    begun: Begun,
    setting: Setting,
    views: ViewCache,
    room: int,
    ratio: float,
    now_ms: int,
    *,
    was_sent: bool,
) -> Begun | None:
    """The view cut so that memory and verbatim fit `room` tokens; None where nothing fits.

    was_sent: the attempt before went out and came back; otherwise its row takes the new view.
    Raises Conflict where the conversation was deleted meanwhile.
    """
    _check_there(connection, begun.question)
    site = site_of(begun, setting, begun.asked, ratio, now_ms)
    fold = folds.cut_to_window(connection, site, begun.fold, ratio=ratio, room=room)
    if fold is None:
        return None
    purge_unshown(connection, site.conversation, views, now_ms)
    fault = _index(connection, site, fold)
    cut = _show(
        connection,
        begun.question,
        setting,
        views,
        site,
        fold,
        ratio,
        rule=begun.rule,
        is_cut=True,
        most=int(room * ratio),
        attempt_pk=None if was_sent else begun.attempt_pk,
    )
    return replace(cut, rest=begun.rest, news=_news(connection, site, begun.fold, fold, fault))


def _check_there(connection: Connection, question: Question) -> None:
    if not transcript.is_there(connection, question.placement.conversation.pk):
        raise Conflict(
            "The conversation was deleted while this request was served.",
            code="conversation_deleted",
        )


def _settle(
    connection: Connection,
    question: Question,
    setting: Setting,
    views: ViewCache,
    now_ms: int,
    rule: str,
) -> Begun:
    ground = find_ground(connection, question.spot(now_ms), setting)
    fold = folds.fold_if_due(connection, ground.site, ground.fold, ground.total)
    is_cut = fold is not None and fold.kind == "cut" and fold.at_pk == question.placement.asked.pk
    place = (connection, question, setting, views, ground.site, fold, ground.ratio)
    is_new = fold is not None and fold is not ground.fold
    if is_new or _left_branch(question.placement):
        purge_unshown(connection, ground.site.conversation, views, now_ms)
    if fold is None or fold is ground.fold:
        return _show(*place, rule=rule, is_cut=is_cut)
    fault = _index(connection, ground.site, fold)
    begun = _show(*place, rule=rule, is_cut=is_cut)
    return replace(begun, news=_news(connection, ground.site, ground.fold, fold, fault))


def _left_branch(placement: Placement) -> bool:
    """Whether the question moved the head otherwise than by following it."""
    before, asked = placement.conversation.head_pk, placement.asked
    return placement.moves_head and before not in (None, asked.pk, asked.parent_pk)


def _index(connection: Connection, site: Site, fold: FoldRow) -> Exception | None:
    """What a new fold takes out of the view can be found from this turn on; else why it cannot."""
    recall = site.policy.recall
    if fold.border_depth > 0 and (recall.budget > 0 or recall.tool):
        return index_past(connection, site.conversation.pk, fold)
    return None


def _news(
    connection: Connection,
    site: Site,
    before: FoldRow | None,
    fold: FoldRow,
    fault: Exception | None,
) -> News:
    span = fold.border_cum - (before.border_cum if before else 0)
    made = gist_rows.count_stand_ins_of(connection, site.conversation.pk, site.now_ms)
    return News(fold.kind, span, *made, fault=fault)


def site_of(begun: Begun, setting: Setting, head: Node, ratio: float, now_ms: int) -> Site:
    """Where the next decision about a begun turn's view is made."""
    return make_site(begun.conversation, setting, begun.fixed_chars, head, ratio, now_ms)


def _system(
    connection: Connection, incoming: Incoming, placement: Placement, now_ms: int
) -> tuple[System, int | None]:
    """This turn's system messages; the last known ones for a client that sends only what is new."""
    pk = placement.conversation.pk
    placed = placement.place_system(incoming.system)
    if placement.offset > 0:
        placed = drop_fillers(connection, pk, placed)
    if placed:
        body = dumps(placed)
        return placed, transcript.ensure_system_text(connection, pk, body, now_ms)
    if placement.offset == 0:
        return [], None
    return last_system(connection, pk)


def _show(
    connection: Connection,
    question: Question,
    setting: Setting,
    views: ViewCache,
    site: Site,
    fold: FoldRow | None,
    ratio: float,
    *,
    rule: str,
    is_cut: bool,
    most: int | None = None,
    attempt_pk: int | None = None,
) -> Begun:
    """The view on a fold and its attempt: a new one, or the one that was not sent yet. most: where
    it was cut to its window, the characters that it has room for."""
    placement = question.placement
    memory_chars, verbatim_chars = sizes(fold, placement.asked)
    shown = show_memory(connection, fold, views, placement.conversation.renew_after)
    reasoning_of = setting.backend if setting.keep_reasoning else None
    key = (placement.conversation.pk, setting.policy.name, reasoning_of)
    laid = lay_tail(
        connection,
        placement.conversation,
        setting.policy.name,
        fold,
        placement.asked,
        reasoning_of=reasoning_of,
        kept=views.tail(key),
        recall=plan_recall(connection, site, fold, question.answers, question.clock, most=most),
    )
    if laid.noted.chars and not placement.conversation.noted:
        noted = replace(placement.conversation, noted=True)
        question = replace(question, placement=replace(placement, conversation=noted))
    seen: dict[str, Any] = {
        "fold_pk": fold.pk if fold else None,
        "view_kind": view_kind(fold, is_cut=is_cut),
        "memory_chars": memory_chars,
        "verbatim_chars": verbatim_chars,
    }
    if attempt_pk is not None:
        attempts.reshape_attempt(connection, attempt_pk, **seen)
    else:
        attempt_pk = attempts.begin_attempt(
            connection,
            conversation_pk=placement.conversation.pk,
            asked_pk=placement.asked.pk,
            system_pk=question.system_pk,
            backend=setting.backend,
            policy=setting.policy.name,
            model=setting.model,
            boot=setting.boot,
            rule=rule,
            state="running",
            idempotency_key=question.idempotency_key,
            started_ms=site.now_ms,
            **seen,
        )
    return Begun(
        question=question,
        setting=setting,
        rule=rule,
        fold=fold,
        memory=shown,
        tail=laid.tail,
        view_key=key,
        ratio=ratio,
        fixed_chars=fixed_chars(question.system, setting),
        attempt_pk=attempt_pk,
        is_cut=is_cut,
        noted=laid.noted,
        recalled=laid.recalled,
    )


def keep_view(begun: Begun, views: ViewCache) -> None:
    """Remember what was rendered, once the rows that it stands on are committed."""
    asked = begun.asked
    fold_pk = begun.fold.pk if begun.fold else None
    kept = CachedTail(
        begun.border, asked.pk, asked.depth, begun.tail, fold_pk=fold_pk, noted=begun.noted
    )
    views.keep_tail(begun.view_key, kept)
    if begun.fold is not None:
        views.keep_memory(begun.fold.pk, begun.memory)


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ended: the reply as it is to be stored (None: nothing came), and the figures.
    alternatives: further replies to the same question, each with its finish_reason. searches: what
    its model searched for it and was answered, as messages; the figures are then those of all
    rounds together."""

    state: str
    reply: dict[str, Any] | None
    finish_reason: str | None
    error: str | None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_chars: int = 0
    slot: int | None = None
    queued_ms: int | None = None
    first_token_ms: int | None = None
    move: Move = UNCOMPARED
    moved_by: str | None = None
    alternatives: Sequence[tuple[dict[str, Any], str | None]] = ()
    searches: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Finished:
    """What the second commit left. due_ms: when the next job is due, if one is new. moved_by: what
    moved the prefix, as it was stored. searched: characters of searches that were stored with the
    reply. is_gone: nothing, because the conversation was deleted."""

    due_ms: int | None = None
    moved_by: str | None = None
    searched: int = 0
    is_gone: bool = False


def _reply(
    setting: Setting, ending: Ending, message: dict[str, Any], finish_reason: str | None
) -> transcript.NewMessage:
    return to_new_message(
        message,
        canonical_message(message),
        setting.image_chars,
        produced=True,
        backend=setting.backend,
        finish_reason=finish_reason,
        partial=ending.state != "done",
    )


def finish_turn(
    connection: Connection, begun: Begun, setting: Setting, ending: Ending, now_ms: int
) -> Finished:
    """Store the reply and what the turn causes.

    Nothing at all is written where the conversation was deleted meanwhile.
    """
    conversation = begun.conversation
    if not attempts.is_there(connection, begun.attempt_pk):
        return Finished(is_gone=True)
    moved_by = _moved_by(connection, begun, setting, ending)
    reply, searched = _store_reply(connection, begun, setting, ending, now_ms)
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
        prompt_chars=ending.prompt_chars,
        slot=ending.slot,
        queued_ms=ending.queued_ms,
        first_token_ms=ending.first_token_ms,
        expected_chars=ending.move.expected_chars,
        moved_at=ending.move.at,
        moved_by=moved_by,
        now_ms=now_ms,
    )
    head = reply or begun.asked
    if reply is not None and begun.question.placement.moves_head:
        transcript.touch_conversation(
            connection, conversation.pk, head_pk=reply.pk, model=setting.model, now_ms=now_ms
        )
    ratio = learn_ratio(begun.ratio, ending.prompt_chars, ending.prompt_tokens) or begun.ratio
    if ending.prompt_tokens and abs(ratio - begun.ratio) > 0.01:
        token_ratios.save_token_ratio(connection, conversation.pk, setting.backend, ratio)
    site = site_of(begun, setting, head, ratio, now_ms)
    before, noted = begun.question.placement.chars_before, begun.noted.chars + searched
    due = folds.plan_chapters(connection, site, begun.fold, before=before, notes=noted)
    if due is None and begun.fold is not None and begun.fold.at_pk == begun.asked.pk:
        due = site.now_ms + site.delay_ms  # the fold itself may have left a job for the gist
    for policy in setting.warm:
        limits = limits_of(policy, ratio)
        warm = plan_warm_chapters(connection, replace(site, policy=policy, limits=limits))
        due = due if warm is None else min(due or warm, warm)
    return Finished(due, moved_by, searched)


def _store_reply(
    connection: Connection, begun: Begun, setting: Setting, ending: Ending, now_ms: int
) -> tuple[Node | None, int]:
    """The reply's row, if anything was said, and what its searches cost in the views to come."""
    if ending.reply is None:
        return None, 0
    said = [(ending.reply, ending.finish_reason), *ending.alternatives]
    new = [_reply(setting, ending, *each) for each in said]
    place = (connection, begun.conversation, begun.asked)
    # Whoever said the same before without a search is shown without one for ever.
    is_known = bool(ending.searches) and transcript.is_said(*place, new[0])
    (reply,) = transcript.append_messages(*place, new[:1], now_ms)
    for other in new[1:]:
        transcript.append_messages(*place, [other], now_ms)
    if is_known or not ending.searches:
        return reply, 0
    chars = sum(message_chars(message, 0) for message in ending.searches)
    notes.add(
        connection,
        begun.conversation.pk,
        begun.setting.policy.name,
        begun.fold.pk if begun.fold else None,
        reply,
        kind=notes.CALLS,
        body={"messages": list(ending.searches)},
        chars=chars,
        now_ms=now_ms,
    )
    return reply, chars


def _moved_by(connection: Connection, begun: Begun, setting: Setting, ending: Ending) -> str | None:
    return settle_cause(
        connection,
        ending.move,
        ending.moved_by,
        conversation_pk=begun.conversation.pk,
        backend=setting.backend,
        attempt_pk=begun.attempt_pk,
        boot=setting.boot,
        asked=begun.asked,
    )
