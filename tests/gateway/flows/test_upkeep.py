"""Background work from a due row to a chapter, a stand-in or a parked job."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from gateway.backends.accounts import read_task, write_account
from gateway.backends.base import Call
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.flows.context import Context
from gateway.flows.upkeep import BEAT_SECONDS, LEASE_MS, PATIENCE_SECONDS, Upkeep
from gateway.jobs import queue
from gateway.jobs.rows import jobs
from gateway.prompts.summary import PROMPT_VERSION
from gateway.replay.stage import VirtualClock, VirtualLoop
from gateway.store import chapter_rows, fold_rows, gist_rows, ledger, quarantine, token_ratios
from gateway.store.transcript import node_by_pk, path_between
from policies.retries import CAP_SECONDS
from policies.standin import condense, split_sentences, write_stand_in
from policies.values import Line, Span
from tests.gateway.flows.stage import (
    CHAPTER,
    GIST,
    POLICIES,
    STORY,
    HandClock,
    Listed,
    Outcome,
    add_chapter_job,
    add_story,
    build,
    fault,
    framed,
    job,
    quarantined,
    setup_chapter,
    versions,
)
from tests.gateway.seeds import NOW

REFUSAL = "I can't summarise this conversation."
Build = Callable[..., Context]


async def inline(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def keep(ctx: Context) -> Upkeep:
    """An upkeep without threads: it does the same in every run."""
    return Upkeep(ctx, offload=inline)


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Build]:
    """Builds contexts whose stores are closed in the end."""
    built: list[Context] = []

    def make(*backends: Listed, **values: Any) -> Context:
        built.append(build(tmp_path, *backends, **values))
        return built[-1]

    yield make
    for ctx in built:
        ctx.store.close()


def clock_of(ctx: Context) -> HandClock:
    assert isinstance(ctx.clock, HandClock)
    return ctx.clock


def due(ctx: Context, **values: Any) -> int:
    """The story with a chapter job, at the moment it becomes due."""
    _, chapter = ctx.store.writing(setup_chapter, **values)
    clock_of(ctx).advance(30)
    return chapter


async def settle() -> None:
    """Let everything run that waits for no clock and no backend."""
    for _ in range(100):
        await asyncio.sleep(0)


# --- a chapter -----------------------------------------------------------------------------------


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


def add_version(connection: Connection, chapter: int, text: str, origin: str) -> int:
    row = connection.execute(
        select(chapter_rows.chapters.c.conversation_pk).where(chapter_rows.chapters.c.pk == chapter)
    ).scalar_one()
    return chapter_rows.add_version(
        connection, row, chapter, text=text, origin=origin, backend=None, prompt=None, now_ms=NOW
    )


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


# --- failure, waiting, giving up -----------------------------------------------------------------


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
    assert waits[3] == CAP_SECONDS * 1_000
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
        clock_of(ctx).advance(CAP_SECONDS)

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
        clock_of(ctx).advance(CAP_SECONDS)

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
    clock_of(ctx).advance(CAP_SECONDS)

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
        clock_of(ctx).advance(CAP_SECONDS)
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
        clock_of(ctx).advance(CAP_SECONDS)

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
        clock_of(ctx).advance(CAP_SECONDS)
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
        clock_of(ctx).advance(CAP_SECONDS)

    left = ctx.store.reading(job)
    assert (left.state, left.error_kind) == ("parked", "no-policy")


async def test_a_span_that_says_nothing_is_parked(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    due(ctx, texts=["", " "])

    await keep(ctx).run_due()

    assert (ctx.store.reading(job).error_kind, glm.calls) == ("empty", [])


# --- late results, deletion, shutdown ------------------------------------------------------------


class Gate:
    """Holds a backend's answers back until it is opened."""

    def __init__(self, backend: Listed) -> None:
        self.entered = asyncio.Event()
        self.opened = asyncio.Event()
        backend.hold = self.wait

    async def wait(self, call: Call) -> None:
        self.entered.set()
        await self.opened.wait()


async def test_a_late_result_does_not_replace_a_later_attempts(stage: Build) -> None:
    slow, quick = Listed("glm", framed("Too late. " + CHAPTER)), Listed("glm", framed(CHAPTER))
    ctx = stage(slow)
    gate = Gate(slow)
    due(ctx, policy="alone")
    first = asyncio.create_task(keep(ctx).run_due())
    await gate.entered.wait()
    # Its process stops beating for longer than a lease, and another one takes the job.
    clock_of(ctx).ms += LEASE_MS
    other = Context(ctx.settings, ctx.clock, ctx.store, ctx.policies, {"glm": quick}, boot="boot_2")
    assert await keep(other).run_due() == 1

    gate.opened.set()
    await first

    assert ctx.store.reading(versions) == [("model", CHAPTER, "glm")]
    assert ctx.store.reading(job).state == "done"


def test_a_summary_that_takes_too_long_is_cancelled_and_its_lease_beaten_meanwhile(
    stage: Build,
) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    due(ctx, policy="alone")
    leases: list[int] = []

    async def never(call: Call) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS + 1)
            leases.append((ctx.store.reading(job).lease_until_ms or 0) - ctx.clock.now_ms())

    glm.hold = never
    loop = VirtualLoop()
    ctx.clock = VirtualClock(loop)
    upkeep = keep(ctx)
    try:
        loop.run_until_complete(upkeep.run_due())
    finally:
        loop.close()

    assert loop.time() == 600.0  # summaries.timeout
    assert glm.cancelled == 1
    assert len(leases) == 28
    assert min(leases) >= LEASE_MS - BEAT_SECONDS * 1_000
    assert ctx.store.reading(job).error_kind == "timeout"
    assert upkeep.counts.faults == {"timeout": 1}


@pytest.mark.parametrize("rejected", [False, True])
async def test_a_summary_in_flight_cannot_bring_a_deleted_conversation_back(
    stage: Build, rejected: bool
) -> None:
    glm = Listed("glm", REFUSAL if rejected else framed(CHAPTER))
    ctx = stage(glm)
    gate = Gate(glm)
    due(ctx, policy="alone")
    running = asyncio.create_task(keep(ctx).run_due())
    await gate.entered.wait()

    ctx.store.writing(lambda c: c.exec_driver_sql("DELETE FROM conversations"))
    gate.opened.set()
    await running

    for table in (chapter_rows.chapters, chapter_rows.versions, quarantine.quarantine, jobs):
        statement = select(func.count()).select_from(table)
        assert ctx.store.reading(lambda c, s=statement: c.execute(s).scalar()) == 0


async def test_the_call_for_a_deleted_conversation_is_cancelled(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    gate = Gate(glm)
    due(ctx, policy="alone")
    upkeep = keep(ctx)
    running = asyncio.create_task(upkeep.run_due())
    await gate.entered.wait()
    conversation_pk = ctx.store.reading(job).conversation_pk
    ctx.store.writing(lambda c: c.exec_driver_sql("DELETE FROM conversations"))

    upkeep.forget(conversation_pk)
    await running

    assert glm.cancelled == 1


async def test_a_lost_lease_stops_the_work(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    gate = Gate(glm)
    due(ctx, policy="alone")
    running = asyncio.create_task(keep(ctx).run_due())
    await gate.entered.wait()

    clock_of(ctx).advance(BEAT_SECONDS)
    await settle()
    assert ctx.store.reading(job).lease_until_ms == ctx.clock.now_ms() + LEASE_MS
    ctx.store.writing(lambda c: c.exec_driver_sql("DELETE FROM conversations"))
    clock_of(ctx).advance(BEAT_SECONDS)
    await running

    assert glm.cancelled == 1


async def test_shutdown_lets_work_end_within_its_grace(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    gate = Gate(glm)
    due(ctx, policy="alone")
    upkeep = keep(ctx)
    running = asyncio.create_task(upkeep.run_due())
    await gate.entered.wait()

    draining = asyncio.create_task(upkeep.drain(60.0))
    await settle()
    gate.opened.set()
    await draining
    await running

    assert ctx.store.reading(job).state == "done"


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


# --- quiet moments -------------------------------------------------------------------------------


async def test_nothing_begins_beside_a_running_turn(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    upkeep = keep(ctx)
    due(ctx)
    ctx.turn_began("glm")

    assert await upkeep.run_due() == 0
    assert glm.calls == []
    # What waits for a quiet moment is no reason to ring: the end of the turn is.
    assert await upkeep.next_due() is None
    rings: list[int] = []
    ctx.ring = rings.append
    ctx.turn_ended("glm")
    upkeep.notice_quiet()
    upkeep.notice_quiet()
    assert rings == [ctx.clock.now_ms()]
    assert await upkeep.run_due() == 1


async def test_turns_without_a_pause_hold_a_chapter_back_five_minutes_and_not_for_ever(
    stage: Build,
) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    upkeep = keep(ctx)
    due(ctx)
    ctx.turn_began("glm")

    for _ in range(int(PATIENCE_SECONDS) // 30):
        assert await upkeep.run_due() == 0
        clock_of(ctx).advance(30)
    assert await upkeep.run_due() == 1

    assert ctx.store.reading(versions) == [("model", CHAPTER, "glm")]


async def test_a_turn_long_ago_is_no_reason_to_go_beside_this_one(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = stage(glm)
    upkeep = keep(ctx)
    due(ctx)
    ctx.turn_began("glm")
    await upkeep.run_due()

    clock_of(ctx).advance(PATIENCE_SECONDS + 1)  # nobody looked meanwhile

    assert await upkeep.run_due() == 0


async def test_the_next_summarizers_quiet_moment_is_waited_for(stage: Build) -> None:
    glm = Listed("glm", REFUSAL)
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    due(ctx)
    ctx.turn_began("deepseek")
    running = asyncio.create_task(keep(ctx).run_due())
    await settle()
    assert (len(glm.calls), len(deepseek.calls)) == (2, 0)

    ctx.turn_ended("deepseek")
    clock_of(ctx).advance(1)
    await running

    assert ctx.store.reading(versions) == [("model", CHAPTER, "deepseek")]


async def test_one_job_a_backend_at_a_time_and_backends_side_by_side(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    gate, other = Gate(glm), Gate(deepseek)
    for policy in ("alone", "alone", "own", "own"):
        due(ctx, policy=policy, delay_ms=0)
    upkeep = keep(ctx)
    running = asyncio.create_task(upkeep.run_due())
    await gate.entered.wait()
    await other.entered.wait()
    await settle()
    assert (len(glm.calls), len(deepseek.calls)) == (1, 1)

    other.opened.set()
    await settle()
    assert (len(glm.calls), len(deepseek.calls)) == (1, 2)
    gate.opened.set()
    assert await running == 4
    assert len(glm.calls) == 2


async def test_a_ring_while_it_runs_makes_it_look_again(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER))
    deepseek = Listed("deepseek", framed(CHAPTER), kind="litellm")
    ctx = stage(glm, deepseek)
    gate = Gate(glm)
    due(ctx, policy="alone")
    upkeep = keep(ctx)
    running = asyncio.create_task(upkeep.run_due())
    await gate.entered.wait()
    due(ctx, policy="own", delay_ms=0)

    assert await upkeep.run_due() == 0
    await settle()
    assert len(deepseek.calls) == 1
    gate.opened.set()
    assert await running == 2


# --- the gist ------------------------------------------------------------------------------------


def setup_gist(connection: Connection, *, policy: str = "alone", stack: int = 1) -> int:
    """The story in two chapters that a fold shows, the first of them due for the gist.

    stack: how often the second chapter's text is repeated. Returns the conversation.
    """
    conversation, nodes = add_story(connection)
    pks = []
    for first, last, text in ((0, 7, CHAPTER), (8, 10, "They rowed out at four. " * stack)):
        chapter, _ = chapter_rows.add_chapter(
            connection,
            conversation.pk,
            Span(first + 1, last + 1, nodes[last].cum_chars),
            first_pk=nodes[first].pk,
            last_pk=nodes[last].pk,
            now_ms=NOW,
        )
        pks.append(add_version(connection, chapter, text, "model"))
    fold_rows.add_fold(
        connection,
        conversation.pk,
        policy=policy,
        at=nodes[11],
        border=(nodes[10].pk, 11, nodes[10].cum_chars),
        kind="fold",
        gist_pk=None,
        memory=pks,
        memory_chars=900,
        stand_ins=0,
        revision="r1",
        now_ms=NOW,
    )
    queue.enqueue(
        connection,
        key=f"gist:{conversation.pk}:{policy}:{nodes[7].pk}",
        kind="gist",
        conversation_pk=conversation.pk,
        policy=policy,
        payload={
            "gist": None,
            "chapters": [pks[0]],
            "last_pk": nodes[7].pk,
            "last_depth": 8,
        },
        run_at_ms=NOW,
        backend=None,
        now_ms=NOW,
    )
    return conversation.pk


def gists(connection: Connection) -> list[tuple[str, str, str, int]]:
    table = gist_rows.gists
    columns = (table.c.policy, table.c.origin, table.c.text, table.c.last_depth)
    return [tuple(row) for row in connection.execute(select(*columns).order_by(table.c.pk))]


async def test_a_gist_is_folded_from_the_chapters_and_the_earlier_one(stage: Build) -> None:
    glm = Listed("glm", framed(GIST))
    ctx = stage(glm)
    upkeep = keep(ctx)
    ctx.store.writing(setup_gist)

    assert await upkeep.run_due() == 1

    assert ctx.store.reading(gists) == [("alone", "model", GIST, 8)]
    assert glm.calls[0].purpose == "gist"
    assert CHAPTER in glm.prompts()[0]
    assert "at most 250 characters" in glm.prompts()[0]
    assert (ctx.store.reading(job).state, upkeep.counts.majors) == ("done", 1)


async def test_a_gist_much_longer_than_asked_is_redrawn_shorter(stage: Build) -> None:
    glm = Listed("glm", framed(CHAPTER), framed(GIST))  # 506 > 1.25 × 250
    ctx = stage(glm)
    ctx.store.writing(setup_gist)

    await keep(ctx).run_due()

    assert ctx.store.reading(quarantined) == [("glm", "long")]
    assert ctx.store.reading(gists) == [("alone", "model", GIST, 8)]
    # 250 × 250/506 = 123; a gist needs 150 at least
    assert "at most 150 characters" in glm.prompts()[1]


async def test_a_gist_that_stays_too_long_gives_its_least_sentences_to_the_ledger(
    stage: Build,
) -> None:
    """Law 6: never a cut; each sentence is there or a note of the ledger."""
    glm = Listed("glm", framed(CHAPTER))  # 506 > 1.25 × 250, however often it is asked
    ctx = stage(glm)
    upkeep = keep(ctx)
    ctx.store.writing(setup_gist)

    await upkeep.run_due()

    assert ctx.store.reading(quarantined) == [("glm", "long"), ("glm", "long")]
    [(policy, origin, text, depth)] = ctx.store.reading(gists)
    assert (policy, origin, depth) == ("alone", "model", 8)
    assert len(text) <= 250
    notes = ctx.store.reading(
        lambda c: c.execute(
            select(ledger.entries.c.kind, ledger.entries.c.text, ledger.entries.c.gist_pk)
        ).all()
    )
    assert {(kind, gist) for kind, _, gist in notes} == {("note", 1)}
    kept, moved = split_sentences(text), [said for _, said, _ in notes]
    assert sorted([*kept, *moved]) == sorted(split_sentences(CHAPTER))
    assert (ctx.store.reading(job).state, upkeep.counts.majors) == ("done", 1)


async def test_a_gist_that_loses_an_open_thread_is_no_gist(stage: Build) -> None:
    """Where the list of open threads has no room for it; the old gist and its chapters stay."""
    glm = Listed("glm", framed(GIST))
    policies = POLICIES.replace(
        "gist: {length: 250}", "gist: {length: 250}\n    ledger: {length: 1}"
    )
    ctx = stage(glm, policies=policies)
    pk = ctx.store.writing(setup_gist)
    lost = "Tobias gave Mara the compass of Edwin and warned her of the reef."
    ctx.store.writing(add_thread, pk, lost)

    await keep(ctx).run_due()

    assert ctx.store.reading(quarantined) == [("glm", "threads"), ("glm", "threads")]
    assert ctx.store.reading(gists) == []
    assert f"Still open:\n{lost}" in glm.prompts()[0]
    glm.say(framed(f"{GIST} {lost}"))
    clock_of(ctx).advance(CAP_SECONDS)
    await keep(ctx).run_due()
    assert [text for _, _, text, _ in ctx.store.reading(gists)] == [f"{GIST} {lost}"]


async def test_a_listed_thread_need_not_stand_in_the_gist(stage: Build) -> None:
    glm = Listed("glm", framed(GIST))
    ctx = stage(glm)
    pk = ctx.store.writing(setup_gist)
    ctx.store.writing(add_thread, pk, "Tobias gave Mara the compass of Edwin and warned her.")

    await keep(ctx).run_due()

    assert [text for _, _, text, _ in ctx.store.reading(gists)] == [GIST]


def add_thread(connection: Connection, conversation_pk: int, text: str) -> None:
    """Opened by the first chapter, which ends at depth 8."""
    (chapter, _) = chapter_rows.all_chapters(connection, conversation_pk)
    ledger.add_entry(
        connection,
        conversation_pk,
        kind="thread",
        text=text,
        last_pk=chapter.last_pk,
        last_depth=chapter.last_depth,
        origin="model",
        now_ms=NOW,
    )


async def test_a_gist_on_one_that_was_undone_is_not_made(stage: Build) -> None:
    glm = Listed("glm", framed(GIST))
    ctx = stage(glm)
    pk = ctx.store.writing(setup_gist)

    def undo(connection: Connection) -> None:
        nodes = path_between(connection, 12, 0)
        gist = gist_rows.add_gist(
            connection,
            pk,
            policy="alone",
            last_pk=nodes[3].pk,
            last_depth=4,
            sources=[],
            text="Earlier.",
            origin="model",
            backend=None,
            prompt=None,
            now_ms=NOW,
        )
        gist_rows.retire(connection, pk, "alone", nodes[3].pk, NOW)
        connection.exec_driver_sql(
            "UPDATE jobs SET payload = json_set(payload, '$.gist', ?)", (gist,)
        )

    ctx.store.writing(undo)
    await keep(ctx).run_due()
    assert glm.calls == []
    assert ctx.store.reading(job).error_kind == "gone"


@pytest.mark.parametrize(
    ("stack", "expected"),
    [
        (1, []),  # 506 + 24 characters of chapters, far below 2 × 6,000
        (600, ["stand-in"]),  # 506 + 600 × 24 = 14,906 > 12,000
    ],
)
async def test_a_failed_gist_leaves_the_old_until_the_stack_is_twice_its_budget(
    stage: Build, stack: int, expected: list[str]
) -> None:
    glm = Listed("glm", REFUSAL)
    ctx = stage(glm)
    upkeep = keep(ctx)
    ctx.store.writing(setup_gist, stack=stack)
    seen = []
    for _ in range(3):
        await upkeep.run_due()
        seen.append([origin for _, origin, _, _ in ctx.store.reading(gists)])
        clock_of(ctx).advance(CAP_SECONDS)

    assert seen == [[], [], expected]
    assert ctx.store.reading(job).state == "queued"
    assert upkeep.counts.stand_ins == len(expected)


async def test_a_gist_that_stands_in_gets_its_successor(stage: Build) -> None:
    glm = Listed("glm", REFUSAL)
    ctx = stage(glm)
    upkeep = keep(ctx)
    ctx.store.writing(setup_gist, stack=600)
    for _ in range(4):
        await upkeep.run_due()
        clock_of(ctx).advance(CAP_SECONDS)
    assert [origin for _, origin, _, _ in ctx.store.reading(gists)] == ["stand-in"]

    glm.say(framed(GIST))
    await upkeep.run_due()

    # 600 × 24 = 14,400 characters of the second chapter are above the stack's 6,000 too
    assert ctx.store.reading(gists) == [
        ("alone", "stand-in", condense([CHAPTER], 250), 8),
        ("alone", "model", GIST, 8),
        ("alone", "model", GIST, 11),
    ]
    assert upkeep.counts.majors == 2


async def test_a_gist_that_is_made_is_not_made_again(stage: Build) -> None:
    glm = Listed("glm", framed(GIST))
    ctx = stage(glm)
    upkeep = keep(ctx)
    ctx.store.writing(setup_gist)
    await upkeep.run_due()
    ctx.store.writing(
        lambda c: c.exec_driver_sql("UPDATE jobs SET state = 'queued', run_at_ms = 0")
    )

    await upkeep.run_due()

    assert len(glm.calls) == 1
    assert len(ctx.store.reading(gists)) == 1


async def test_the_transcript_stays_as_it_was(stage: Build) -> None:
    ctx = stage(Listed("glm", framed(CHAPTER)))
    conversation, nodes = ctx.store.writing(add_story)
    ctx.store.writing(add_chapter_job, conversation, nodes)
    before = ctx.store.reading(path_between, nodes[-1].pk, 0)
    clock_of(ctx).advance(30)

    await keep(ctx).run_due()

    assert ctx.store.reading(path_between, nodes[-1].pk, 0) == before
    assert ctx.store.reading(node_by_pk, nodes[-1].pk) == nodes[-1]
