"""What is told of a turn as it goes on: to the meters, the log and its span. Never content."""

from __future__ import annotations

import logging
from typing import Literal

from gateway.backends.base import Call
from gateway.flows.context import Context
from gateway.flows.notes import Recalled
from gateway.flows.sites import Setting
from gateway.flows.turn_rows import Begun, Ending
from gateway.meters.memory import Migrated
from gateway.store.notes import CALLS
from gateway.traces import Span
from gateway.trail import learn_conversation
from gateway.wire.replies import ReplyBuilder
from policies.routing import MIGRATING

log = logging.getLogger("foldgate.turn")

_MADE: Literal["spot"] = "spot"


def tell_fold(ctx: Context, begun: Begun) -> None:
    """A view was committed: whose it is, and what was folded for it if anything was."""
    learn_conversation(begun.conversation.id)
    news, setting = begun.news, begun.setting
    if begun.progress is not None:
        event: Migrated = "waiting" if begun.rule == MIGRATING else "early"
        ctx.meters.migrated(begun.progress.backend, event)
    if news is None:
        return
    if news.kind == "migration":
        ctx.meters.migrated(setting.backend, "done")
    ctx.meters.folded(setting.backend, setting.policy.name, news.kind, news.span)
    if news.chapters:
        ctx.meters.stand_ins_made("chapter", _MADE, news.chapters)
    if news.gists:
        ctx.meters.stand_ins_made("gist", _MADE, news.gists)
    if news.fault is not None:
        ctx.meters.recall_failed(setting.policy.name, "index")
        log.error(
            "what was folded could not be indexed", exc_info=news.fault, extra=_place(setting)
        )
    if news.kind == "cut":
        log.warning(
            "a hard cut: %d characters left the view before their chapters were ready",
            news.span,
            extra=_place(setting),
        )


def tell_recall(ctx: Context, setting: Setting, recalled: Recalled) -> None:
    """The past was searched for a question, or other sources told something about it."""
    policy = setting.policy.name
    if recalled.seconds is not None:
        ctx.meters.recalled(policy, recalled.seconds)
    if recalled.fault is not None:
        ctx.meters.recall_failed(policy, "search")
        log.error(
            "the past could not be searched; the turn goes on without it",
            exc_info=recalled.fault,
            extra=_place(setting),
        )
    if recalled.note is not None:
        ctx.meters.noted(policy, recalled.note.kind, recalled.note.chars)


def tell_searches(ctx: Context, setting: Setting, chars: int) -> None:
    """What a model searched by itself was stored with its reply."""
    ctx.meters.noted(setting.policy.name, CALLS, chars)


def tell_ready(ctx: Context, begun: Begun, dropped: tuple[str, ...]) -> None:
    """An attempt is ready to be sent, with this view and without these parameters."""
    setting = begun.setting
    ctx.meters.view_shown(setting.backend, setting.policy.name, begun.view_kind)
    if dropped:
        ctx.meters.params_dropped(setting.backend)
        log.debug("%d parameters could not travel", len(dropped), extra=_place(setting))


def tell_end(ctx: Context, setting: Setting, ending: Ending, cause: str | None) -> None:
    """An attempt ended and is stored. cause: what moved its prefix, as stored."""
    backend, meters = setting.backend, ctx.meters
    fault = None if ending.error is None else ending.error.replace(" ", "_")
    meters.attempt_ended(backend, setting.policy.name, ending.state, fault, ending.finish_reason)
    used = ending.prompt_tokens, ending.cached_tokens, ending.completion_tokens
    meters.tokens_used(backend, "chat", *used)
    if ending.first_token_ms is not None:
        meters.first_token_came(backend, ending.first_token_ms / 1000)
    if ending.queued_ms is not None:
        meters.queue_left(backend, "chat", ending.queued_ms / 1000)
    if ending.move.expected_chars is not None:
        expected = ending.move.expected_chars
        meters.prompt_reused(backend, ending.prompt_chars, expected, _actual(ending))
    if cause is not None:
        meters.prefix_moved(backend, cause)
    if ending.finish_reason == "length":
        log.info("a reply was cut by its length", extra=_place(setting))
    if log.isEnabledFor(logging.DEBUG):
        _log_end(setting, ending, fault)


def _actual(ending: Ending) -> float | None:
    """Characters of the prompt that the backend did not read anew; None where it does not tell."""
    if ending.cached_tokens is None or not ending.prompt_tokens:
        return None
    return ending.prompt_chars * ending.cached_tokens / ending.prompt_tokens


def _log_end(setting: Setting, ending: Ending, fault: str | None) -> None:
    told = {
        **_place(setting),
        "state": ending.state,
        "fault": fault,
        "tokens_in": ending.prompt_tokens,
        "tokens_out": ending.completion_tokens,
        "ms": ending.first_token_ms,
    }
    log.debug("an attempt ended", extra=told)


def tell_span(span: Span, ending: Ending) -> None:
    """What an attempt's span says of its end."""
    span.tell(
        state=ending.state,
        finish_reason=ending.finish_reason,
        tokens_in=ending.prompt_tokens,
        tokens_cached=ending.cached_tokens,
        tokens_out=ending.completion_tokens,
        first_token_ms=ending.first_token_ms,
        queued_ms=ending.queued_ms,
    )
    if ending.error is not None:
        span.fail(ending.error)


def tell_auxiliary(
    ctx: Context, call: Call, setting: Setting, kind: str, state: str, reply: ReplyBuilder
) -> None:
    """A call for a request that is no turn ended."""
    backend, meters, trace = setting.backend, ctx.meters, call.trace
    meters.auxiliary_ended(backend, kind, state)
    used = reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens
    meters.tokens_used(backend, call.purpose, *used)
    if trace.queued is not None:
        meters.queue_left(backend, call.purpose, trace.queued)
    log.debug("an auxiliary request (%s) ended", kind, extra={**_place(setting), "state": state})


def _place(setting: Setting) -> dict[str, object]:
    return {"backend": setting.backend, "policy": setting.policy.name}
