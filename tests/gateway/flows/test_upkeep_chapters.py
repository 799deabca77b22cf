"""A due chapter from its rows to a stored text, or to none that is fit."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from sqlalchemy import Connection, select

from gateway.backends.accounts import read_task, write_account
from gateway.backends.base import Call
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.upkeep import Upkeep
from gateway.prompts.summary import PROMPT_VERSION
from gateway.store import chapter_rows, fold_rows, gist_rows, quarantine
from tests.gateway.flows.stage import (
    CHAPTER,
    POLICIES,
    STORY,
    Listed,
    Outcome,
    fault,
    framed,
    job,
    quarantined,
    setup_chapter,
    versions,
)
from tests.gateway.flows.upkeep_stage import (
    REFUSAL,
    Build,
    Gate,
    add_version,
    clock_of,
    due,
    keep,
)
from tests.gateway.seeds import NOW


@pytest.mark.parametrize("threads", [True, False])
async def test_a_chapter_is_written_judged_and_stored(stage: Build, threads: bool) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm, threads=threads)
    upkeep = Upkeep(ctx) if threads else keep(ctx)
    ctx.store.writing(setup_chapter)

    assert await upkeep.run_due() == 0
    assert await upkeep.next_due() == NOW + 30_000
    clock_of(ctx).advance(30)
    assert await upkeep.run_due() == 1

    assert ctx.store.reading(versions) == [("model", CHAPTER, "glm")]
    assert ctx.store.reading(job).state == "done"
    prompt = ctx.store.reading(lambda c: c.execute(select(chapter_rows.versions.c.prompt)).scalar())
    assert prompt == PROMPT_VERSION
    [call] = glm.calls
    assert (call.stream, call.purpose, call.max_tokens) == (False, "summary", 4_096)
    assert all(text in glm.prompts()[0] for text in STORY)
    assert "You are the recorder" in glm.prompts()[0]
    assert (upkeep.counts.asked, upkeep.counts.accepted, upkeep.counts.chapters) == (1, 1, 1)
    assert await upkeep.next_due() is None
    assert await upkeep.run_due() == 0


async def test_a_chapter_that_has_a_text_is_not_written_again(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    chapter = due(ctx)
    ctx.store.writing(add_version, chapter, "An owner's own words.", "owner")

    await keep(ctx).run_due()

    assert glm.calls == []
    assert ctx.store.reading(job).state == "done"


async def test_two_refusals_change_nothing_but_the_job(stage: Build) -> None:
    """A02: two calls, no chapter, and the next round after a wait."""
    glm = Listed("glm", REFUSAL, "I'm not able to help with that request.")
    ctx = stage(glm)
    rings: list[int] = []
    ctx.ring = rings.append
    upkeep = keep(ctx)
    due(ctx, policy="alone")

    assert await upkeep.run_due() == 1

    assert len(glm.calls) == 2
    assert [call.params["temperature"] for call in glm.calls] == [0.3, 0.8]
    assert glm.calls[0].params["seed"] != glm.calls[1].params["seed"]
    assert ctx.store.reading(versions) == []
    assert ctx.store.reading(quarantined) == [("glm", "refusal")] * 2
    left = ctx.store.reading(job)
    assert (left.state, left.attempts, left.error_kind) == ("queued", 1, "refusal")
    assert 22_500 <= left.run_at_ms - ctx.clock.now_ms() <= 37_500
    assert rings == [left.run_at_ms]
    assert upkeep.counts.rejected == {"refusal": 2}
    # Not in a tight loop: nothing is due now.
    assert await upkeep.run_due() == 0
    assert len(glm.calls) == 2


async def test_one_redraw_then_the_next_summarizer(stage: Build) -> None:
    """A14: what one model refuses for ever another one may tell."""
    glm = Listed("glm", REFUSAL)
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    due(ctx)

    await keep(ctx).run_due()

    assert (len(glm.calls), len(deepseek.calls)) == (2, 1)
    assert ctx.store.reading(versions) == [("model", CHAPTER, "deepseek")]
    assert "seed" not in deepseek.calls[0].params


@pytest.mark.parametrize("model", ["confided", "a model that was taken out of the file"])
async def test_what_is_private_is_never_sent_off_this_machine(stage: Build, model: str) -> None:
    """A14: not even where the local model refuses."""
    glm = Listed("glm", REFUSAL)
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    due(ctx, model=model)

    await keep(ctx).run_due()

    assert (len(glm.calls), len(deepseek.calls)) == (2, 0)
    assert ctx.store.reading(versions) == []


async def test_without_a_list_the_conversations_own_backend_is_asked(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    due(ctx, policy="own")

    await keep(ctx).run_due()

    assert (len(glm.calls), len(deepseek.calls)) == (0, 1)


async def test_a_backend_that_is_left_alone_is_asked_last(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    due(ctx)
    for _ in range(5):
        with pytest.raises(UpstreamFault), ctx.circuits.call("glm"):
            raise fault(FaultKind.SERVER)

    await keep(ctx).run_due()

    assert (len(glm.calls), len(deepseek.calls)) == (0, 1)


async def test_backends_that_are_off_or_unknown_are_passed_over(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    glm.off_reason = "its api_key is not set"
    ctx = stage(glm)
    due(ctx)

    await keep(ctx).run_due()

    left = ctx.store.reading(job)
    assert (left.state, left.error_kind, glm.calls) == ("queued", "no-summarizer", [])


HALF = {"message": {"role": "assistant", "content": '{"chapter": "Mara found the la'}}

REASONED = {"role": "assistant", "content": "", "reasoning_content": "h" * 4_000}


@pytest.mark.parametrize(
    "outcome",
    [
        "[nothing is left to record]",
        "The longest river of France is the Loire. Is there anything more I can look up?",
        "<tool_call>look_up<arg_key>what</arg_key><arg_value>tide table</arg_value></tool_call>",
        "<think>The user wants a recap. Let me see</think>",
        '{"name": "summarize", "arguments": {}}',
        framed(""),
        framed(REFUSAL),
        {**HALF, "finish_reason": "length"},
        {"message": {"role": "assistant", "content": None}, "finish_reason": "content_filter"},
        {"message": REASONED, "finish_reason": "stop"},
        {"message": REASONED, "finish_reason": "length"},
        fault(FaultKind.EMPTY),
        fault(FaultKind.SERVER),
        fault(FaultKind.LOADING),
        fault(FaultKind.AUTH),
        fault(FaultKind.NOT_FOUND),
        fault(
            FaultKind.INTERRUPTED,
            partial=True,
            received={"choices": [{**HALF, "finish_reason": "insufficient_system_resource"}]},
        ),
        fault(FaultKind.MALFORMED),
    ],
    ids=lambda outcome: str(getattr(outcome, "kind", outcome))[:40],
)
async def test_whatever_comes_in_place_of_a_summary_is_not_stored(
    stage: Build, outcome: Outcome
) -> None:
    """A10 to A13, A17, A18, B01, B02, B03, B20: memory stays as it was."""
    glm = Listed("glm", outcome)
    ctx = stage(glm)
    due(ctx, policy="alone")
    before = ctx.store.reading(everything_but_jobs)

    assert await keep(ctx).run_due() == 1

    assert ctx.store.reading(everything_but_jobs) == before
    left = ctx.store.reading(job)
    assert (left.state, left.attempts) == ("queued", 1)
    assert left.run_at_ms > ctx.clock.now_ms() + 20_000
    assert len(glm.calls) <= 3


def everything_but_jobs(connection: Connection) -> list[list[Any]]:
    tables = (chapter_rows.chapters, chapter_rows.versions, gist_rows.gists, fold_rows.folds)
    return [list(connection.execute(select(table))) for table in tables]


async def test_a_cut_answer_is_quarantined_with_its_native_end(stage: Build) -> None:
    """B01, B04: how it really ended is kept."""
    untrue = fault(
        FaultKind.INTERRUPTED,
        partial=True,
        received={"choices": [{**HALF, "finish_reason": "network_error"}]},
    )
    glm = Listed("glm", untrue, {**HALF, "finish_reason": "length"})
    ctx = stage(glm)
    due(ctx, policy="alone")

    await keep(ctx).run_due()

    table = quarantine.quarantine
    rows = ctx.store.reading(lambda c: c.execute(select(table.c.text, table.c.finish_reason)).all())
    text = HALF["message"]["content"]
    assert [tuple(row) for row in rows] == [(text, "network_error"), (text, "length")]


async def test_a_refused_output_is_kept_as_a_database_can_hold_it(stage: Build) -> None:
    glm = Listed("glm", "I can't help with that.\x00 \ud83d")
    ctx = stage(glm)
    due(ctx, policy="alone")

    await keep(ctx).run_due()

    texts = ctx.store.reading(
        lambda c: c.execute(select(quarantine.quarantine.c.text)).scalars().all()
    )
    assert set(texts) == {"I can't help with that.\ufffd \ufffd"}


async def test_thinking_before_the_frame_is_stripped(stage: Build) -> None:
    glm = Listed("glm", "<think>I should tell of Mara.</think>\n" + framed(CHAPTER))
    ctx = stage(glm)
    due(ctx)

    await keep(ctx).run_due()

    assert ctx.store.reading(versions) == [("model", CHAPTER, "glm")]


async def test_a_backend_that_knows_no_schema_is_asked_in_a_simpler_way(stage: Build) -> None:
    refused = fault(FaultKind.BAD_REQUEST, "This response_format type is unavailable now")
    deepseek = Listed("deepseek", refused, framed(CHAPTER), framed(CHAPTER), kind="litellm")
    ctx = stage(deepseek)
    upkeep = keep(ctx)
    due(ctx)
    await upkeep.run_due()
    due(ctx)
    await upkeep.run_due()

    forms = [call.params["response_format"]["type"] for call in deepseek.calls]
    assert forms == ["json_schema", "json_object", "json_object"]
    assert len(ctx.store.reading(versions)) == 2


def give_account(backend: Listed) -> None:
    """Let a backend answer each call with an honest account of what it was shown."""

    async def prepare(call: Call) -> None:
        backend.say(framed(write_account(read_task(backend.prompts()[-1]))))

    backend.hold = prepare


PEOPLE = ["小明", "王芳", "李雷", "陈静", "赵船长", "孙医生", "周老师", "吴掌柜"]

PLACES = ["码头", "灯塔", "茶馆", "渡口", "仓库", "石桥", "药铺", "学堂", "集市", "磨坊"]

THINGS = ["铜钥匙", "账本", "罗盘", "煤油", "渔网", "银元", "药方", "船票", "地图", "雨伞", "怀表"]


def chinese_days(count: int) -> list[str]:
    """A diary of so many days of about 180 characters each, no two alike."""
    days = []
    for at in range(count):
        one, two = PEOPLE[at % 8], PEOPLE[(at * 3 + 1) % 8]
        here, there = PLACES[at % 10], PLACES[(at * 7 + 3) % 10]
        thing, other = THINGS[at % 11], THINGS[(at * 5 + 2) % 11]
        days.append(
            f"第{at}天清早，{one}在{here}遇见了{two}，说{thing}不见了，恐怕是昨夜被人拿走的。"
            f"{two}回答说，他在{there}看见过一个陌生人，手里提着{other}，走得很急。"
            f"他们商量了很久，决定先去{there}打听，再到{here}等消息，天黑以前一定回来。"
            f"{one}付了{at + 20}个铜板，租了一条小船，可是风太大，船夫不肯开。"
            f"到了晚上，{two}写了一封信，托人带给住在{there}的亲戚，请他留心{thing}的下落。"
        )
    return days


async def test_a_long_conversation_goes_out_in_pieces_that_fit_and_none_is_lost(
    stage: Build,
) -> None:
    """A span of 32,000 Chinese characters before a window of 16,000 tokens."""
    fact = "密码是七千三百二十一。"
    texts = chinese_days(190)
    texts[95] += fact
    assert 30_000 < sum(map(len, texts)) < 33_000
    glm = Listed("glm", "", window=16_000)
    give_account(glm)
    ctx = stage(glm, policies=POLICIES.replace("length: 500}\n    gist", "length: 1100}\n    gist"))
    due(ctx, texts=texts, policy="alone")

    await keep(ctx).run_due()

    prompts = glm.prompts()
    # (16,000 − 4,000 for the reply − the instruction) × 0.9 characters a token ≈ 10,000 a piece.
    assert len(prompts) == 4
    assert sum(fact in prompt for prompt in prompts) == 1
    assert all(sum(text in prompt for prompt in prompts) == 1 for text in texts)
    for prompt, call in zip(prompts, glm.calls, strict=True):
        assert len(prompt) / 0.9 + call.max_tokens <= 16_000
    assert "用中文" in prompts[0]
    assert "约275字" in prompts[0]  # a quarter of 1,100
    [(origin, text, backend)] = ctx.store.reading(versions)
    assert (origin, backend) == ("model", "glm")
    assert text.count("\n\n") == 3


async def test_an_overflow_is_answered_with_smaller_pieces(stage: Build) -> None:
    glm = Listed("glm", fault(FaultKind.OVERFLOW))
    ctx = stage(glm)
    due(ctx, policy="alone")

    async def overflow_once(call: Call) -> None:
        if len(glm.calls) > 1:
            glm.say(framed(write_account(read_task(glm.prompts()[-1]))))

    glm.hold = overflow_once
    await keep(ctx).run_due()

    first, *rest = glm.prompts()
    assert len(rest) >= 2
    assert max(map(len, rest)) < len(first)
    assert all(sum(text in prompt for prompt in rest) == 1 for text in STORY)
    assert [origin for origin, _, _ in ctx.store.reading(versions)] == ["model"]


async def test_a_window_that_holds_nothing_is_said_and_not_asked(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER), window=512)
    ctx = stage(glm)
    due(ctx, policy="alone")

    await keep(ctx).run_due()

    assert glm.calls == []
    assert ctx.store.reading(job).error_kind == "window"


@pytest.mark.parametrize("threads", [True, False])
async def test_shutdown_gives_back_what_does_not_end(stage: Build, threads: bool) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm, threads=threads)
    gate = Gate(glm)
    due(ctx, policy="alone")
    upkeep = Upkeep(ctx) if threads else keep(ctx)
    running = asyncio.create_task(upkeep.run_due())
    await gate.entered.wait()

    await upkeep.drain(0.0)
    await running

    left = ctx.store.reading(job)
    assert (left.state, left.attempts, left.lease) == ("queued", 0, None)
    assert glm.cancelled == 1
    # A drained upkeep begins nothing more; the next start does.
    assert await upkeep.run_due() == 0
    gate.opened.set()
    assert await keep(ctx).run_due() == 1
