"""Gists: folded from chapters, redrawn, standing in, or left as they were."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection, select

from gateway.store import chapter_rows, gist_rows, ledger
from gateway.store.transcript import node_by_pk, path_between
from policies.retries import CAP_SECONDS
from policies.standin import condense, split_sentences
from tests.gateway.flows.stage import (
    CHAPTER,
    GIST,
    POLICIES,
    Listed,
    add_chapter_job,
    add_story,
    framed,
    job,
    quarantined,
)
from tests.gateway.flows.upkeep_stage import (
    REFUSAL,
    Build,
    clock_of,
    keep,
    setup_gist,
)
from tests.gateway.seeds import NOW


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
    clock_of(ctx).advance(CAP_SECONDS["outage"])
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
        clock_of(ctx).advance(CAP_SECONDS["outage"])

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
        clock_of(ctx).advance(CAP_SECONDS["outage"])
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
