"""Background work that fails: it waits, stands in, is given up, and is not begun anew."""

from __future__ import annotations

import logging

import pytest
from sqlalchemy import Connection, select

from gateway.backends.faults import FaultKind
from gateway.jobs import queue
from gateway.jobs.rows import jobs
from gateway.store import token_ratios
from policies.retries import CAP_SECONDS
from policies.standin import write_stand_in
from policies.values import Line
from tests.gateway.flows.stage import (
    CHAPTER,
    GIST,
    POLICIES,
    STORY,
    Listed,
    Outcome,
    add_chapter_job,
    add_story,
    fault,
    framed,
    job,
    versions,
)
from tests.gateway.flows.upkeep_stage import (
    REFUSAL,
    Build,
    add_version,
    clock_of,
    due,
    keep,
    setup_gist,
)
from tests.gateway.seeds import NOW


async def test_a_503_and_a_429_lose_no_summary(stage: Build) -> None:
    glm = Listed(
        "glm",
        fault(FaultKind.UNAVAILABLE),
        fault(FaultKind.OVERLOADED, retry_after=7.0),
        fault(FaultKind.OVERLOADED, retry_after=1_000.0),
        fault(FaultKind.OVERLOADED, retry_after=86_400.0),
        framed(CHAPTER),
    )
    ctx = stage(glm, policies=POLICIES.replace("[glm]}", "[glm], rounds: 9}"))
    upkeep = keep(ctx)
    due(ctx, policy="alone")
    waits = []
    for _ in range(4):
        await upkeep.run_due()
        waits.append(ctx.store.reading(job).run_at_ms - ctx.clock.now_ms())
        clock_of(ctx).advance(waits[-1] / 1000)
    await upkeep.run_due()

    assert 22_500 <= waits[0] <= 37_500
    assert 45_000 <= waits[1] <= 75_000  # our own wait is the longer one
    assert waits[2] == 1_000_000
    assert waits[3] == CAP_SECONDS["outage"] * 1_000
    assert ctx.store.reading(versions) == [("model", CHAPTER, "glm")]


async def test_after_its_rounds_a_stand_in_and_after_the_outage_the_chapter(stage: Build) -> None:
    glm = Listed("glm", *[fault(FaultKind.UNAVAILABLE)] * 4, framed(CHAPTER))
    ctx = stage(glm)
    upkeep = keep(ctx)
    due(ctx, policy="alone")
    seen = []
    for _ in range(5):
        await upkeep.run_due()
        seen.append([origin for origin, _, _ in ctx.store.reading(versions)])
        clock_of(ctx).advance(CAP_SECONDS["outage"])

    assert seen == [[], [], ["stand-in"], ["stand-in"], ["stand-in", "model"]]
    (_, text, backend), (_, chapter, _) = ctx.store.reading(versions)
    assert (backend, chapter) == (None, CHAPTER)
    speakers = ["User", "Assistant"]
    lines = [Line(speakers[at % 2], said) for at, said in enumerate(STORY)]
    assert text == write_stand_in(lines, 500)
    assert upkeep.counts.stand_ins == 1
    assert ctx.store.reading(job).state == "done"


async def test_a_model_that_refuses_for_ever_is_left_in_peace(stage: Build) -> None:
    glm = Listed("glm", REFUSAL)
    ctx = stage(glm)
    upkeep = keep(ctx)
    due(ctx, policy="alone")
    for _ in range(20):
        await upkeep.run_due()
        clock_of(ctx).advance(CAP_SECONDS["outage"])

    left = ctx.store.reading(job)
    assert (left.state, left.attempts, left.error_kind) == ("parked", 6, "refusal")
    assert len(glm.calls) == 12
    assert [origin for origin, _, _ in ctx.store.reading(versions)] == ["stand-in"]
    assert upkeep.counts.parked == 1


async def test_a_content_refusal_goes_to_one_other_model_and_is_then_parked(stage: Build) -> None:
    risk = fault(FaultKind.REFUSED, "The backend refuses the content: Content Exists Risk")
    glm = Listed("glm", risk)
    deepseek = Listed("deepseek", risk, kind="litellm")
    grok = Listed("grok", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek, grok)
    due(ctx)

    await keep(ctx).run_due()

    assert [len(backend.calls) for backend in (glm, deepseek, grok)] == [1, 1, 0]
    left = ctx.store.reading(job)
    assert (left.state, left.error_kind) == ("parked", "refused")
    assert [origin for origin, _, _ in ctx.store.reading(versions)] == ["stand-in"]


CUT_PROMPT = {
    "message": {"role": "assistant", "content": framed(CHAPTER)},
    "finish_reason": "stop",
    "usage": {"prompt_tokens": 40},  # of some 2,200 characters sent
}


@pytest.mark.parametrize(
    ("outcome", "calls"),
    [
        (fault(FaultKind.BAD_REQUEST), 3),  # by grammar, as an object, in words
        (fault(FaultKind.OVERFLOW), 2),  # whole and in halves; a quarter is below 300 characters
        (CUT_PROMPT, 2),
    ],
)
async def test_what_the_same_bytes_will_always_meet_is_not_tried_again(
    stage: Build, outcome: Outcome, calls: int
) -> None:
    glm = Listed("glm", outcome)
    ctx = stage(glm)
    due(ctx, policy="alone")

    await keep(ctx).run_due()

    assert ctx.store.reading(job).state == "parked"
    assert [origin for origin, _, _ in ctx.store.reading(versions)] == ["stand-in"]
    assert len(glm.calls) == calls
    assert len({(*call.messages, str(call.params)) for call in glm.calls}) == calls


async def test_who_refused_for_good_is_not_asked_in_later_rounds(stage: Build) -> None:
    glm = Listed("glm", fault(FaultKind.REFUSED))
    deepseek = Listed("deepseek", fault(FaultKind.UNAVAILABLE), framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    upkeep = keep(ctx)
    due(ctx)
    await upkeep.run_due()
    assert ctx.store.reading(job).error_kind == "unavailable"
    clock_of(ctx).advance(CAP_SECONDS["outage"])

    await upkeep.run_due()

    assert (len(glm.calls), len(deepseek.calls)) == (1, 2)
    assert ctx.store.reading(versions) == [("model", CHAPTER, "deepseek")]
    assert upkeep._errands._final == {}


@pytest.mark.parametrize("end", ["deleted", "an owner's text"])
async def test_who_refused_for_good_is_forgotten_with_the_job(stage: Build, end: str) -> None:
    glm = Listed("glm", fault(FaultKind.REFUSED))
    deepseek = Listed("deepseek", fault(FaultKind.UNAVAILABLE), kind="litellm")
    ctx = stage(glm, deepseek)
    upkeep = keep(ctx)
    chapter = due(ctx)
    await upkeep.run_due()
    left = ctx.store.reading(job)
    assert list(upkeep._errands._final[left.conversation_pk][left.key]) == ["glm"]

    if end == "deleted":
        ctx.store.writing(lambda c: c.exec_driver_sql("DELETE FROM conversations"))
        upkeep.forget(left.conversation_pk)
    else:
        ctx.store.writing(add_version, chapter, "An owner's own words.", "owner")
        clock_of(ctx).advance(CAP_SECONDS["outage"])
        await upkeep.run_due()

    assert upkeep._errands._final == {}


@pytest.mark.parametrize(
    ("tokens", "stored"),
    [
        (274, True),
        (273, False),
    ],
)
async def test_what_a_conversation_learned_tells_whether_a_prompt_was_cut(
    stage: Build, tokens: int, stored: bool
) -> None:
    """B07: a summary of a prompt that was cut behind our back is none."""
    glm = Listed("glm", {**CUT_PROMPT, "usage": {"prompt_tokens": tokens}})
    ctx = stage(glm)
    due(ctx, policy="alone")
    conversation_pk = ctx.store.reading(job).conversation_pk
    ctx.store.writing(token_ratios.save_token_ratio, conversation_pk, "glm", 4.0)

    await keep(ctx).run_due()

    # 2,737 characters at 4 a token: 0.4 of the estimate is a tenth of the characters, 274.
    expected = ["model"] if stored else []
    assert len(glm.prompts()[0]) == 2_737
    assert [origin for origin, _, _ in ctx.store.reading(versions)] == expected


async def test_no_error_text_becomes_history(stage: Build) -> None:
    glm = Listed("glm", fault(FaultKind.SERVER, "summary generation failed: 503"))
    ctx = stage(glm)
    upkeep = keep(ctx)
    due(ctx, policy="alone")
    for _ in range(40):
        await upkeep.run_due()
        clock_of(ctx).advance(CAP_SECONDS["outage"])

    [(origin, text, _)] = ctx.store.reading(versions)
    assert origin == "stand-in"
    assert "failed" not in text
    left = ctx.store.reading(job)
    assert (left.state, left.error) == ("parked", "summary generation failed")
    assert left.attempts == 27


async def test_turns_during_an_outage_begin_no_new_series_of_attempts(stage: Build) -> None:
    glm = Listed("glm", fault(FaultKind.UNAVAILABLE))
    ctx = stage(glm)
    upkeep = keep(ctx)
    conversation, nodes = ctx.store.writing(add_story)
    clock = clock_of(ctx)
    for _ in range(40):  # a turn every 90 s of one hour
        ctx.store.writing(
            add_chapter_job, conversation, nodes, policy="alone", now_ms=clock.now_ms()
        )
        for _ in range(3):
            clock.advance(30)
            await upkeep.run_due()

    # 30 + 60 + 120 + 240 + 480 + 960 = 1,890 s, the seventh comes after 3,810 s or a quarter less.
    assert 6 <= len(glm.calls) <= 8


async def test_a_poisoned_job_blocks_no_other_and_is_parked(
    stage: Build, caplog: pytest.LogCaptureFixture
) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    upkeep = keep(ctx)
    due(ctx, policy="alone", delay_ms=0)
    bad = ctx.store.writing(poison)
    due(ctx, policy="alone", delay_ms=0)

    with caplog.at_level(logging.ERROR):
        assert await upkeep.run_due() == 3
    states = ctx.store.reading(job_states)
    assert states == ["done", "queued", "done"]
    assert "Traceback" in caplog.text
    for _ in range(3):
        clock_of(ctx).advance(CAP_SECONDS["outage"])
        await upkeep.run_due()

    left = ctx.store.reading(job, bad)
    assert (left.state, left.attempts, left.error_kind) == ("parked", 3, "internal")
    assert left.error is not None
    assert left.error.startswith("KeyError in load_chapter, line ")


def poison(connection: Connection) -> str:
    """A chapter job without its chapter."""
    conversation, _ = add_story(connection)
    queue.enqueue(
        connection,
        key="chapter:poison",
        kind="chapter",
        conversation_pk=conversation.pk,
        policy="alone",
        payload={"secret": "ORCHID-7"},
        run_at_ms=NOW,
        backend=None,
        now_ms=NOW,
    )
    return "chapter:poison"


def job_states(connection: Connection) -> list[str]:
    return list(connection.execute(select(jobs.c.state).order_by(jobs.c.pk)).scalars())


async def test_a_renamed_policy_leaves_its_chapters_to_the_present_one(stage: Build) -> None:
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(deepseek)
    due(ctx, policy="a name of yesterday")

    await keep(ctx).run_due()

    assert ctx.store.reading(versions) == [("model", CHAPTER, "deepseek")]


async def test_a_gist_of_a_policy_that_is_gone_is_parked_with_its_reason(stage: Build) -> None:
    ctx = stage(Listed("glm", framed(GIST)))
    upkeep = keep(ctx)
    ctx.store.writing(setup_gist, policy="a name of yesterday")
    for _ in range(3):
        await upkeep.run_due()
        clock_of(ctx).advance(CAP_SECONDS["outage"])

    left = ctx.store.reading(job)
    assert (left.state, left.error_kind) == ("parked", "no-policy")


async def test_a_span_that_says_nothing_is_parked(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    due(ctx, texts=["", " "])

    await keep(ctx).run_due()

    assert (ctx.store.reading(job).error_kind, glm.calls) == ("empty", [])
