"""What is told of a round while it runs: meters, how long it took, a span, and no content."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from sqlalchemy import select

from gateway.backends.base import Call
from gateway.backends.faults import FaultKind
from gateway.flows.context import Context
from gateway.flows.upkeep import Upkeep
from gateway.logs import JsonLines
from gateway.store import chapter_rows
from gateway.traces import OpenTelemetryTraces
from tests.gateway.flows.stage import (
    CHAPTER,
    STORY,
    Listed,
    build,
    fault,
    framed,
    quarantined,
    setup_chapter,
)
from tests.gateway.flows.upkeep_stage import REFUSAL, clock_of, keep
from tests.gateway.test_meters import read


@pytest.fixture
def heard() -> Iterator[io.StringIO]:
    """The program's log as JSON lines."""
    out, ours = io.StringIO(), logging.getLogger("foldgate")
    handler, level = logging.StreamHandler(out), ours.level
    handler.setFormatter(JsonLines())
    ours.addHandler(handler)
    ours.setLevel(logging.DEBUG)
    yield out
    ours.removeHandler(handler)
    ours.setLevel(level)


async def run(ctx: Context, **values: Any) -> None:
    ctx.store.writing(setup_chapter, **values)
    clock_of(ctx).advance(30)
    await keep(ctx).run_due()
    ctx.store.close()


def slow(ctx: Context, seconds: float, backend: Listed) -> None:
    """Each call to this backend takes so long, and waited a second for its slot."""

    async def hold(call: Call) -> None:
        call.trace.queued = 1.0
        clock_of(ctx).advance(seconds)

    backend.hold = hold


async def test_each_call_ends_in_one_of_three_ways(tmp_path: Path) -> None:
    """One judged out, one failed, one accepted: 1 + 1 + 1 = 3 asked."""
    told = {"message": {"role": "assistant", "content": framed(CHAPTER)}, "finish_reason": "stop"}
    usage = {
        "prompt_tokens": 900,
        "completion_tokens": 120,
        "prompt_tokens_details": {"cached_tokens": 50},
    }
    glm = Listed("glm", REFUSAL, fault(FaultKind.UNAVAILABLE))
    deepseek = Listed("deepseek", {**told, "usage": usage}, kind="litellm")
    ctx = build(tmp_path, glm, deepseek)
    slow(ctx, 4.0, glm)
    slow(ctx, 2.5, deepseek)
    await run(ctx)

    def count(name: str) -> dict[str, float]:
        series = read(ctx.meters, f"foldgate_{name}")
        return {labels: value for labels, value in series.items() if value}

    assert count("summaries_asked_total") == {"glm/chapter": 2, "deepseek/chapter": 1}
    assert count("summaries_rejected_total") == {"glm/chapter/refusal": 1}
    assert count("summaries_failed_total") == {"glm/chapter/unavailable": 1}
    assert count("summaries_accepted_total") == {"deepseek/chapter": 1}
    assert count("prompt_tokens_total") == {"deepseek/summary": 900}
    assert count("cached_tokens_total") == {"deepseek/summary": 50}
    assert count("completion_tokens_total") == {"deepseek/summary": 120}
    waited = {"glm/summary": 1.0, "deepseek/summary": 1.0}
    assert count("queue_wait_seconds_sum") == waited
    assert count("chapter_seconds_sum") == {"chapter": 10.5}  # 4 + 4 + 2.5


async def test_a_chapter_knows_what_its_calls_took(tmp_path: Path) -> None:
    glm = Listed("glm", framed(CHAPTER))
    ctx = build(tmp_path, glm)
    slow(ctx, 3.25, glm)
    ctx.store.writing(setup_chapter)
    clock_of(ctx).advance(30)
    await Upkeep(ctx).run_due()
    took = ctx.store.reading(lambda c: c.execute(select(chapter_rows.versions.c.took_ms)).scalar())
    ctx.store.close()
    assert took == 3_250


async def test_a_content_that_a_provider_refuses_is_kept_as_a_rejection(tmp_path: Path) -> None:
    risk = fault(FaultKind.REFUSED, "The backend refuses the content: Content Exists Risk")
    ctx = build(tmp_path, Listed("glm", risk), Listed("deepseek", framed(CHAPTER), kind="litellm"))
    ctx.store.writing(setup_chapter)
    clock_of(ctx).advance(30)
    await Upkeep(ctx).run_due()
    assert ctx.store.reading(quarantined) == [("glm", "refused")]
    ctx.store.close()
    rejected = read(ctx.meters, "foldgate_summaries_rejected_total")
    assert rejected == {"glm/chapter/refused": 1}


async def test_work_that_is_given_up_is_counted_and_its_stand_in_too(tmp_path: Path) -> None:
    ctx = build(tmp_path, Listed("glm", fault(FaultKind.BAD_REQUEST)))
    await run(ctx)
    assert read(ctx.meters, "foldgate_jobs_parked_total") == {"chapter": 1}
    assert read(ctx.meters, "foldgate_stand_ins_total") == {"chapter/ahead": 1}


async def test_a_round_is_one_span(tmp_path: Path) -> None:
    exporter = InMemorySpanExporter()
    ctx = build(tmp_path, Listed("glm", REFUSAL, framed(CHAPTER)))
    ctx.traces = OpenTelemetryTraces(exporter, at_once=True)
    await run(ctx)
    (span,) = exporter.get_finished_spans()
    assert span.name == "summary"
    assert dict(span.attributes or {}) == {
        "foldgate.job": "chapter:1",
        "foldgate.kind": "chapter",
        "foldgate.round": 1,
        "foldgate.calls": 2,
        "foldgate.backend": "glm",
    }


async def test_the_log_names_the_job_and_tells_no_word_of_the_story(
    tmp_path: Path, heard: io.StringIO
) -> None:
    """Refused twice, then an error of our own whose words quote the story."""
    ctx = build(
        tmp_path,
        Listed("glm", REFUSAL, REFUSAL),
        Listed("deepseek", ValueError(STORY[0]), kind="litellm"),
    )
    await run(ctx)
    lines = [json.loads(line) for line in heard.getvalue().splitlines()]
    assert {line["job"] for line in lines} == {"chapter:1"}
    assert {line["conversation"][:5] for line in lines} == {"conv_"}
    assert any("is judged out: refusal" in line["message"] for line in lines)
    assert any("builtins.ValueError" in line.get("error", "") for line in lines)
    for text in (*STORY, REFUSAL):
        assert text not in heard.getvalue()
