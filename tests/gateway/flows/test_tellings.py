"""What a chapter tells beside its prose, from the summarizer's answer to the ledger and profile."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, select

from gateway.backends.base import Call
from gateway.backends.faults import FaultKind
from gateway.flows.context import Context
from gateway.prompts.summary import TOOL
from gateway.store import chapter_rows, ledger, profile, transcript
from gateway.store.ledger_rows import EntryRow
from gateway.wire.json_text import dumps
from tests.gateway.flows.stage import (
    CHAPTER,
    POLICIES,
    STORY,
    Listed,
    Outcome,
    add_chapter_job,
    add_story,
    fault,
    job,
    quarantined,
    setup_chapter,
    versions,
)
from tests.gateway.flows.upkeep_stage import Build, clock_of, keep
from tests.gateway.test_meters import read

LISTS: dict[str, Any] = {
    "facts": [
        {"about": "promise", "text": "The user promised to bring back 40 litres of oil."},
        {"about": "home", "text": "The user lives in Vienna."},  # said nowhere
        {"about": "boat", "text": "The user said the third was the Halcyon."},  # another's words
    ],
    "claims": [
        {"who": "Edwin", "to": "Mara", "said": "Quill sold the oil for 90 crowns", "truth": ""}
    ],
    "opened": ["Who took the ledger from the blue tin box?"],
    "resolved": ["T1", "T9"],
    "quotes": [
        {"who": "Tobias", "text": "the boat from Ansel is late"},
        {"who": "Mara", "text": "Never again!"},
    ],
}
FRAME = dumps({"chapter": CHAPTER, **LISTS})


async def work(ctx: Context, rounds: int = 1) -> None:
    upkeep = keep(ctx)
    for _ in range(rounds):
        clock_of(ctx).advance(30)
        await upkeep.run_due()


def entries(connection: Connection) -> list[EntryRow]:
    return [row for row, _ in ledger.all_entries(connection, 1)]


def told(ctx: Context) -> list[tuple[str, str]]:
    return [(row.kind, row.text) for row in ctx.store.reading(entries)]


KEPT = [
    ("fact", "The user promised to bring back 40 litres of oil."),
    ("claim", "Quill sold the oil for 90 crowns"),
    ("thread", "Who took the ledger from the blue tin box?"),
    ("quote", "the boat from Ansel is late"),
]


async def test_entries_that_the_span_bears_out_are_stored_with_the_text(stage: Build) -> None:
    ctx = stage(Listed("glm", FRAME))
    ctx.store.writing(setup_chapter)
    await work(ctx)

    assert ctx.store.reading(versions) == [("model", CHAPTER, "glm")]
    assert told(ctx) == KEPT
    fact, claim, thread, quote = ctx.store.reading(entries)
    [path] = [ctx.store.reading(lambda c: transcript.path_between(c, fact.last_pk, 0))]
    assert [path.index(row) for row in path if row.pk == fact.source_pk] == [4]
    assert (thread.number, claim.who, claim.target, quote.who) == (1, "Edwin", "Mara", "Tobias")
    assert {(row.version_pk, row.last_depth) for row in (fact, claim, thread, quote)} == {(1, 12)}


async def test_what_the_span_does_not_bear_out_is_counted(stage: Build) -> None:
    ctx = stage(Listed("glm", FRAME))
    ctx.store.writing(setup_chapter)
    await work(ctx)

    series = read(ctx.meters, "foldgate_ledger_entries_total")
    assert {labels: value for labels, value in series.items() if value} == {
        "glm/facts/kept": 1,
        "glm/facts/dropped": 2,
        "glm/claims/kept": 1,
        "glm/opened/kept": 1,
        "glm/resolved/dropped": 2,
        "glm/quotes/kept": 1,
        "glm/quotes/dropped": 1,
    }


async def test_the_owners_facts_go_into_the_profile(stage: Build) -> None:
    ctx = stage(Listed("glm", FRAME))
    conversation, _ = ctx.store.writing(setup_chapter)
    await work(ctx)

    known = ctx.store.reading(profile.active, conversation.owner_pk)
    assert [(row.text, row.about) for row in known] == [
        ("The user promised to bring back 40 litres of oil.", "promise")
    ]


async def test_a_fact_with_a_value_stays_in_its_ledger_and_is_counted(stage: Build) -> None:
    """The user's fourth message promises oil; here it tells where to write as well."""
    mail = "The user promised to bring back 40 litres of oil and has the mail mara@kerrin.example."
    frame = dumps({"chapter": CHAPTER, "facts": [{"about": "promise", "text": mail}]})
    texts = [
        f"{text} Write to mara@kerrin.example." if at == 4 else text
        for at, text in enumerate(STORY)
    ]
    ctx = stage(Listed("glm", frame))
    conversation, _ = ctx.store.writing(setup_chapter, texts=texts)
    await work(ctx)

    assert told(ctx) == [("fact", mail)]
    assert ctx.store.reading(profile.active, conversation.owner_pk) == []
    series = read(ctx.meters, "foldgate_profile_facts_refused_total")
    assert {labels: value for labels, value in series.items() if value} == {"mail": 1}


@pytest.mark.parametrize("why", ["private", "policy"])
async def test_what_is_private_or_not_to_be_learned_stays_in_its_ledger(
    stage: Build, why: str
) -> None:
    quiet = POLICIES.replace("  fold:\n", "  fold:\n    profile: {learn: false}\n")
    ctx = stage(Listed("glm", FRAME), policies=quiet if why == "policy" else POLICIES)
    conversation, _ = ctx.store.writing(setup_chapter)
    if why == "private":
        ctx.store.writing(lambda c: c.exec_driver_sql("UPDATE conversations SET private = 1"))
    await work(ctx)

    assert told(ctx) == KEPT
    assert ctx.store.reading(profile.active, conversation.owner_pk) == []


async def test_a_chapter_is_told_of_the_threads_before_it_and_closes_them(stage: Build) -> None:
    glm = Listed("glm", FRAME, dumps({"chapter": CHAPTER, "resolved": ["T1", "T2", "T7"]}))
    ctx = stage(glm, policies=POLICIES)

    def setup(connection: Connection) -> Any:
        conversation, nodes = add_story(connection, [*STORY, *STORY])
        first = add_chapter_job(connection, conversation, nodes[:12], delay_ms=0)
        second = add_chapter_job(connection, conversation, nodes[12:], delay_ms=60_000)
        return conversation.pk, nodes, (first, second)

    pk, nodes, _ = ctx.store.writing(setup)
    await work(ctx, rounds=3)

    first, second = glm.prompts()
    assert "T1: " not in first
    assert "T1: Who took the ledger from the blue tin box?" in second

    def threads(connection: Connection) -> Any:
        head = nodes[-1]
        return (
            ledger.open_threads(connection, pk, nodes[11], up_to_depth=12),
            ledger.open_threads(connection, pk, head, up_to_depth=head.depth),
            ledger.read_threads(connection, pk, head, up_to_depth=head.depth).closed,
        )

    before, after, closed = ctx.store.reading(threads)
    assert [row.number for row in before] == [1]
    assert (after, [row.number for row in closed]) == ([], [1])


async def test_a_span_in_pieces_has_one_chapter_and_the_entries_of_all(stage: Build) -> None:
    small = POLICIES.replace(
        "chapters: {length: 500, split: 32000}", "chapters: {length: 1000, split: 1300}"
    )
    ctx = stage(Listed("glm", FRAME), policies=small)
    ctx.store.writing(setup_chapter, texts=[*STORY, *STORY])
    await work(ctx)

    [(origin, text, _)] = ctx.store.reading(versions)
    assert (origin, text) == ("model", "\n\n".join([CHAPTER] * (len(text) // len(CHAPTER))))
    assert text.count(CHAPTER) > 1
    assert sorted(told(ctx)) == sorted(KEPT)


@pytest.mark.parametrize(
    "outcome",
    ["I can't summarise this conversation.", fault(FaultKind.SERVER), FRAME[:-400]],
)
async def test_a_failure_changes_nothing(stage: Build, outcome: Outcome) -> None:
    """Law 8."""
    ctx = stage(Listed("glm", outcome))
    ctx.store.writing(setup_chapter, policy="alone")
    await work(ctx)

    assert (told(ctx), ctx.store.reading(versions)) == ([], [])
    assert ctx.store.reading(job).state == "queued"


async def test_a_deleted_conversation_is_told_nothing(stage: Build) -> None:
    glm = Listed("glm", FRAME)
    ctx = stage(glm)

    async def delete(_call: Call) -> None:
        ctx.store.writing(lambda c: c.exec_driver_sql("DELETE FROM conversations"))

    glm.hold = delete
    ctx.store.writing(setup_chapter)
    await work(ctx)
    assert ctx.store.reading(lambda c: c.execute(select(ledger.entries.c.pk)).all()) == []


async def test_lists_that_are_no_lists_cost_no_chapter(stage: Build) -> None:
    ctx = stage(Listed("glm", dumps({"chapter": CHAPTER, "facts": "none", "quotes": [3]})))
    ctx.store.writing(setup_chapter)
    await work(ctx)
    assert ctx.store.reading(versions) == [("model", CHAPTER, "glm")]
    assert told(ctx) == []


# --- how the frame is demanded -------------------------------------------------------------------


class Deaf(Listed):
    """A provider that leaves out what these names ask for."""

    def __init__(self, name: str, *outcomes: Outcome, leaves_out: set[str]) -> None:
        super().__init__(name, *outcomes, kind="litellm")
        self._leaves_out = leaves_out

    def dropped_params(self, params: dict[str, Any]) -> tuple[str, ...]:
        return tuple(sorted(self._leaves_out & set(params)))


def called(arguments: str, finish: str = "tool_calls", name: str = TOOL) -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {"message": message, "finish_reason": finish}


CLOUD = POLICIES.replace("backends: [glm, deepseek, grok]", "backends: [deepseek]")


async def test_a_provider_without_response_format_gets_a_tool(stage: Build) -> None:
    deepseek = Deaf("deepseek", called(FRAME), leaves_out={"response_format"})
    ctx = stage(deepseek, policies=CLOUD)
    ctx.store.writing(setup_chapter)
    await work(ctx)

    [call] = deepseek.calls
    assert "response_format" not in call.params
    assert call.params["tool_choice"]["function"]["name"] == TOOL
    assert ctx.store.reading(versions) == [("model", CHAPTER, "deepseek")]
    assert told(ctx) == KEPT


async def test_one_that_takes_neither_gets_plain_tagged_text(stage: Build) -> None:
    tagged = f"[chapter]\n{CHAPTER}\n[quotes]\nTobias | the boat from Ansel is late"
    deepseek = Deaf("deepseek", tagged, leaves_out={"response_format", "tools"})
    ctx = stage(deepseek, policies=CLOUD)
    ctx.store.writing(setup_chapter)
    await work(ctx)

    [call] = deepseek.calls
    assert not {"response_format", "tools", "tool_choice"} & set(call.params)
    assert "[chapter]" in deepseek.prompts()[0]
    assert told(ctx) == [("quote", "the boat from Ansel is late")]


async def test_a_provider_that_refuses_one_form_is_asked_in_the_next(stage: Build) -> None:
    refused = fault(FaultKind.BAD_REQUEST)
    deepseek = Listed("deepseek", refused, refused, called(FRAME), kind="litellm")
    ctx = stage(deepseek, policies=CLOUD)
    ctx.store.writing(setup_chapter)
    await work(ctx)

    asked = [sorted({"response_format", "tools"} & set(call.params)) for call in deepseek.calls]
    assert asked == [["response_format"], ["response_format"], ["tools"]]
    assert told(ctx) == KEPT


async def test_llama_cpp_is_asked_for_no_tool(stage: Build) -> None:
    refused = fault(FaultKind.BAD_REQUEST)
    glm = Listed("glm", refused, refused, f"[chapter]\n{CHAPTER}")
    ctx = stage(glm)
    ctx.store.writing(setup_chapter, policy="alone")
    await work(ctx)
    assert ["tools" in call.params for call in glm.calls] == [False] * 3
    assert ctx.store.reading(versions) == [("model", CHAPTER, "glm")]


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (called(FRAME, finish="length"), "truncated"),
        (called(FRAME[:200]), "truncated"),
        (called(FRAME, name="other"), "truncated"),
    ],
)
async def test_a_call_that_is_cut_or_of_another_tool_is_no_chapter(
    stage: Build, outcome: dict[str, Any], reason: str
) -> None:
    deepseek = Deaf("deepseek", outcome, leaves_out={"response_format"})
    ctx = stage(deepseek, policies=CLOUD)
    ctx.store.writing(setup_chapter)
    await work(ctx)
    assert ctx.store.reading(versions) == []
    assert {kind for _, kind in ctx.store.reading(quarantined)} <= {reason}


async def test_a_reply_in_json_reaches_the_summarizer_as_what_it_is(stage: Build) -> None:
    """Narration, speech and thought apart; the message itself stays as it came."""
    named = POLICIES.replace(
        "  fold:\n", "  fold:\n    reply_fields: {speech: [line], thoughts: [mind]}\n"
    )
    reply = dumps({"line": STORY[1], "mind": "She must not learn of it.", "name": "Tobias"})
    glm = Listed("glm", FRAME)
    ctx = stage(glm, policies=named)
    _, chapter = ctx.store.writing(setup_chapter, texts=[STORY[0], reply, *STORY[2:]])
    await work(ctx)

    prompt = glm.prompts()[0]
    assert f'Tobias: "{STORY[1]}"\nTobias (thinks): She must not learn of it.\n' in prompt
    row = ctx.store.reading(lambda c: chapter_rows.chapter_by_pk(c, 1, chapter))
    raws = [m.raw for m in ctx.store.reading(lambda c: transcript.path_between(c, row.last_pk, 0))]
    assert dumps({"role": "assistant", "content": reply}) in raws
