"""The ten scenarios of DESIGN.md, each walked through, and what hangs on folds beside them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.errors import Conflict
from gateway.flows.erase import erase_conversation
from gateway.jobs import leases
from gateway.store import attempts, chapter_rows, gist_rows, quarantine
from gateway.store.boots import Run, keep_boot
from gateway.store.transcript import conversation_by_pk
from gateway.wire.json_text import loads
from policies.values import Span
from tests.gateway.house import (
    POLICIES,
    House,
    Said,
    Say,
    assistant,
    call_of,
    delta,
    system,
    tool,
    user,
)

LONG = "word " * 40  # 200 characters


def line(at: int) -> str:
    return f"m{at} {LONG}"


async def talk(house: House, history: list[Say], turns: int, **more: Any) -> Said:
    """A client that resends says some more; history grows."""
    for _ in range(turns):
        history.append(user(line(len(history))))
        said = await house.say(*history, **more)
        history.append(assistant(said.text))
    return said


async def to_the_debt(house: House, history: list[Say], **more: Any) -> Said:
    """Until chapters are asked for: the view has crossed its start."""
    while not house.pending():
        said = await talk(house, history, 1, **more)
    return said


async def to_a_fold(house: House, history: list[Say], **more: Any) -> Said:
    """Until a fold is shown whose chapters are the model's."""
    before = len(house.folds())
    while len(house.folds()) == before:
        await to_the_debt(house, history, **more)
        house.write_chapters()
        said = await talk(house, history, 1, **more)
    return said


def border(said: Said) -> int:
    return said.turn.prepared.begun.border


# -- the ten --------------------------------------------------------------------------------------


async def test_1_a_retry(house: House) -> None:
    history: list[Say] = []
    said = await to_a_fold(house, history)
    rows = house.one("SELECT count(*) FROM messages")
    again = await house.say(*history[:-1])
    assert again.bytes == said.bytes
    # nothing but another reply, and a second attempt at the same question
    assert house.one("SELECT count(*) FROM messages") == rows + 1
    asked = house.rows("SELECT asked_pk, fold_pk FROM attempts ORDER BY pk DESC LIMIT 2")
    assert asked[0] == asked[1]


async def test_2_a_swipe_of_the_message_that_folded(house: House) -> None:
    history: list[Say] = []
    said = await to_a_fold(house, history)
    house.restart()
    for _ in range(3):
        swiped = await house.say(*history[:-1])
        assert swiped.bytes == said.bytes
    assert len(house.folds()) == 1
    assert house.one("SELECT count(*) FROM messages WHERE depth = :d", d=len(history)) == 4


async def test_2_a_swipe_before_the_fold_stays_as_it_was_when_chapters_come(house: House) -> None:
    history: list[Say] = []
    await to_the_debt(house, history)
    said = await talk(house, history, 1)
    assert said.view == "verbatim"
    assert house.write_chapters() > 0
    swiped = await house.say(*history[:-1])
    assert swiped.bytes == said.bytes
    assert house.folds() == []
    history[-1] = assistant(swiped.text)
    after = await talk(house, history, 1)
    assert after.view == "folded"


async def test_3_an_edit_below_the_border(house: House) -> None:
    """In the tail, before the message at which it folded: the same chapters fold again at once, as
    many of them as are needed without the edited message."""
    history: list[Say] = []
    said = await to_a_fold(house, history)
    at = border(said)
    while len(history) < at + 9:
        await talk(house, history, 1)
    old = house.folds()
    edited = [*history[: at + 2], user("edited " + LONG * 10)]
    assert len(edited) < old[0][1]
    again = await house.say(*edited)
    assert again.view in ("verbatim", "folded")
    total = sum(len(str(m["content"])) for m in edited)
    assert (again.view == "folded") == (total > 3_000)
    if again.view == "folded":
        again_told, told = loads(house.folds()[-1][4]), loads(old[0][4])
        assert again_told and again_told == told[: len(again_told)]
    # What is new is asked for behind them: nothing is told twice.
    spans = house.rows("SELECT first_depth, last_depth FROM chapters ORDER BY first_depth")
    assert [first for first, _ in spans] == [1, *(last + 1 for _, last in spans[:-1])]


async def test_3_an_edit_behind_the_fold_keeps_it(house: House) -> None:
    history: list[Say] = []
    said = await to_a_fold(house, history)
    await talk(house, history, 2)
    edited = [*history[: house.folds()[0][1] + 1], user("other " + LONG)]
    again = await house.say(*edited)
    assert again.bytes[: len(said.bytes)] == said.bytes
    assert len(house.folds()) == 1


async def test_3_an_edit_above_the_border_uses_no_chapter_that_tells_the_old_fact(
    house: House,
) -> None:
    history: list[Say] = []
    said = await to_a_fold(house, history)
    assert border(said) > 5
    edited = [*history[:4], user("I live in Lima."), *history[5:]]
    again = await house.say(*edited)
    told = b"".join(again.bytes)
    assert b"Chapter" not in told
    assert b"Lima" in told
    back = await house.say(*history, user("go on"))
    assert back.bytes[: len(said.bytes)] == said.bytes, "the old branch keeps all"


async def test_4_a_branch_under_the_gist(house: House) -> None:
    history: list[Say] = []
    while house.one("SELECT count(*) FROM gists") < 2:
        said = await to_a_fold(house, history)
        house.write_gists()
    said = await to_a_fold(house, history)
    gist = house.rows("SELECT last_depth FROM gists ORDER BY last_depth")
    assert said.turn.prepared.begun.fold.gist_pk is not None  # type: ignore[union-attr]
    # A branch inside the span of the newest gist: an older one or none, then the chapters.
    inside = gist[-1][0] - 2
    chapters = house.one("SELECT count(*) FROM chapters")
    branch = [*history[: inside - inside % 2], user("another way")]
    again = await house.say(*branch)
    fold = again.turn.prepared.begun.fold
    if fold is not None and fold.gist_pk is not None:
        last = house.one("SELECT last_depth FROM gists WHERE pk = :pk", pk=fold.gist_pk)
        assert last < inside
    assert house.one("SELECT count(*) FROM chapters") == chapters, "nothing is told twice"


async def test_5_cloud_and_back(house: House) -> None:
    history: list[Say] = []
    folded = await to_a_fold(house, history)
    cloudy = await talk(house, history, 1, model="cloudy")
    assert cloudy.view == "verbatim"
    assert cloudy.prompt == history[:-1], "the raw messages, all of them"
    chapters = house.rows("SELECT pk, first_depth, last_depth FROM chapters")
    back = await talk(house, history, 1)
    assert back.bytes[: len(folded.bytes)] == folded.bytes
    assert house.rows("SELECT pk, first_depth, last_depth FROM chapters") == chapters


async def test_5_chapters_made_elsewhere_are_used(house: House) -> None:
    """Chapters belong to the conversation: what one policy had made another folds at once."""
    history: list[Say] = []
    await to_a_fold(house, history)
    house.policies = POLICIES.replace("small", "other")
    house.restart()
    said = await talk(house, history, 1)
    while said.view == "verbatim" and len(house.folds()) == 1:
        said = await talk(house, history, 1)
    assert [fold[0] for fold in house.folds()] == ["small", "other"]
    assert house.folds()[1][4] == house.folds()[0][4]


async def test_6_two_full_histories_at_once_branch(house: House) -> None:
    """I22."""
    history: list[Say] = []
    await talk(house, history, 2)
    turns = await asyncio.gather(
        house.open(*history, user("left")), house.open(*history, user("right"))
    )
    said = await asyncio.gather(*map(house.relay, turns))
    assert [s.prompt[-1] for s in said] == [user("left"), user("right")]
    parents = house.rows("SELECT parent_pk FROM messages WHERE depth = 5")
    assert len(parents) == 2 and len(set(parents)) == 1
    for reply in house.rows(
        "SELECT r.parent_pk, a.asked_pk FROM attempts a JOIN messages r ON r.pk = a.reply_pk"
    ):
        assert reply[0] == reply[1], "no reply hangs on the other's question"


async def test_6_the_same_message_twice_at_once_is_one_row(house: House) -> None:
    turns = await asyncio.gather(*(house.open(user("hi"), id="c") for _ in range(2)))
    # The second request queues in the gateway; here both come in before either is answered.
    assert house.one("SELECT count(*) FROM conversations") == 1
    await asyncio.gather(*map(house.relay, turns))
    history = [user("hi"), assistant("Reply 1.")]
    turns = await asyncio.gather(*(house.open(*history, user("two"), id="c") for _ in range(2)))
    before = house.one("SELECT count(*) FROM messages WHERE raw LIKE '%two%'")
    assert before == 1
    assert turns[0].prepared.begun.asked.pk == turns[1].prepared.begun.asked.pk
    await asyncio.gather(*map(house.relay, turns))


async def test_7_a_kill_between_the_reply_and_its_commit(house: House) -> None:
    turn = await house.open(user("hi"), id="c")
    stream = turn.stream()
    await anext(stream)
    copy = house.rows("SELECT state, boot FROM attempts")
    assert copy == [("running", "boot1")]
    # The process dies here; another one starts.
    ended = house.store.writing(
        keep_boot, Run("boot2", 4711, "m"), is_running=lambda pid: False, now_ms=house.clock.ms
    )
    assert ended == 1
    assert house.rows("SELECT state, error FROM attempts") == [("cancelled", "the gateway stopped")]
    assert [role for role, _ in house.told("c")] == ["user"]
    house.restart()
    again = await house.say("hi", id="c", retried=True)
    assert again.bytes == turn.prepared.call.messages
    await stream.aclose()


async def delete(house: House, id: str) -> None:
    pk = house.conversation(id).pk
    owner = house.conversation(id).owner_pk

    def find(connection: Any) -> Any:
        return conversation_by_pk(connection, owner, pk)

    await erase_conversation(house.ctx, find)


async def test_8_deletion_with_a_summary_in_flight(house: House) -> None:
    """I08."""
    history: list[Say] = []
    await to_the_debt(house, history, id="c")
    house.clock.ms += 60_000
    (job, *_) = house.store.writing(
        leases.claim, now_ms=house.clock.ms, lease="mine", lease_ms=60_000
    )
    await delete(house, "c")
    assert not house.store.reading(leases.held, job.pk, "mine")
    for table in ("conversations", "messages", "attempts", "chapters", "jobs", "folds"):
        assert house.one(f"SELECT count(*) FROM {table}") == 0, table
    assert house.rows("SELECT backend, done_ms FROM kv_outbox") == [("local", None)]


async def test_8_deletion_in_the_middle_of_a_turn_writes_nothing(house: House) -> None:
    turn = await house.open(user("my code word is ORCHID-7"), id="c")
    stream = turn.stream()
    await anext(stream)
    await delete(house, "c")
    async for _ in stream:
        pass
    for table in ("conversations", "messages", "attempts"):
        assert house.one(f"SELECT count(*) FROM {table}") == 0, table
    assert house.ctx.views.tail((1, "small", None)) is None


async def test_8_deletion_before_a_fallback_is_told(house: House) -> None:
    house.local.answers = [UpstreamFault(FaultKind.UNAVAILABLE, "gone")]
    turn = await house.open(user("hi"), id="c", model="both")
    house.local.opens = lambda: delete(house, "c")
    with pytest.raises(Conflict) as told:
        await house.relay(turn)
    assert told.value.code == "conversation_deleted"
    assert house.cloud.calls == []
    assert house.one("SELECT count(*) FROM attempts") == 0


async def test_9_a_policy_changed_under_live_conversations(house: House) -> None:
    history: list[Say] = []
    folded = await to_a_fold(house, history)
    house.policies = POLICIES.replace("start: 3000, ceiling: 4000", "start: 2900, ceiling: 3900")
    house.restart()
    swiped = await house.say(*history[:-1])
    assert swiped.bytes == folded.bytes
    history[-1] = assistant(swiped.text)
    after = await talk(house, history, 1)
    assert after.bytes[: len(folded.bytes)] == folded.bytes
    revisions = house.rows("SELECT DISTINCT revision FROM folds")
    assert len(revisions) == 1


async def test_9_a_start_lowered_below_the_view_folds_at_the_next_message_only(
    house: House,
) -> None:
    history: list[Say] = []
    first = await talk(house, history, 8)
    house.policies = POLICIES.replace(
        "start: 3000, ceiling: 4000, headroom: 1200",
        "start: 1500, ceiling: 4000, headroom: 500",
    ).replace("stack: 600", "stack: 300")
    house.restart()
    swiped = await house.say(*history[:-1])
    assert swiped.bytes == first.bytes
    assert house.write_chapters() > 0
    history[-1] = assistant(swiped.text)
    assert (await talk(house, history, 1)).view == "folded"


async def test_10_the_same_opening_in_two_chats(house: House) -> None:
    house.local.answers = ["Hello.", "Hello."]
    one = await house.say("hi")
    two = await house.say("hi")
    assert one.conversation != two.conversation
    ids = [row[0] for row in house.rows("SELECT id FROM messages")]
    assert len(set(ids)) == 4


# -- beside them ----------------------------------------------------------------------------------


async def test_the_turn_that_crosses_goes_out_as_it_is(house: House) -> None:
    history: list[Say] = []
    previous = await talk(house, history, 1)
    while not house.pending():
        said = await talk(house, history, 1)
        assert said.view == "verbatim"
        assert said.bytes[: len(previous.bytes)] == previous.bytes
        previous = said
    assert said.turn.prepared.begun.asked.cum_chars + len(said.text) > 3_000


async def test_a_fold_waits_for_a_users_message(house: House) -> None:
    """In a chain of tools nothing moves; the calls and their results stay together."""
    history: list[Say] = []
    before = await to_the_debt(house, history)
    calls = delta({"tool_calls": [{**call_of("t1"), "index": 0}]})
    history.append(user("look it up"))
    house.local.answers = [[calls, delta({}, "tool_calls")]]
    first = await house.say(*history)
    assert house.write_chapters() > 0
    history += [assistant(None, tool_calls=[call_of("t1")]), tool("t1", "found")]
    second = await house.say(*history)
    assert second.view == "verbatim"
    assert second.bytes[: len(first.bytes)] == first.bytes
    assert first.bytes[: len(before.bytes)] == before.bytes
    history += [assistant(second.text), user("thanks")]
    third = await house.say(*history)
    assert third.view == "folded"
    roles = [m["role"] for m in third.prompt]
    assert roles[:3] == ["user", "assistant", "user"]
    assert roles[-5:] == ["user", "assistant", "tool", "assistant", "user"]


async def test_a_stand_ins_successor_enters_with_the_next_fold_only(house: House) -> None:
    history: list[Say] = []
    await to_the_debt(house, history)
    for chapter, conversation, _ in house.pending():
        house.write(chapter, conversation, "What was heard.", origin="stand-in")
    said = await talk(house, history, 1)
    assert said.view == "stand-in"
    for pk, conversation in house.rows("SELECT chapter_pk, conversation_pk FROM chapter_versions"):
        house.write(pk, conversation, "What really happened.")
    house.restart()
    same = await talk(house, history, 1)
    assert same.bytes[: len(said.bytes)] == said.bytes
    assert same.view == "stand-in"
    later = await to_a_fold(house, history)
    told = b"".join(later.bytes)
    assert b"What really happened." in told and b"What was heard." not in told
    assert later.view == "folded"


async def test_at_the_ceiling_stand_ins_fold_and_it_is_told(house: House) -> None:
    history: list[Say] = []
    while not house.folds():
        said = await talk(house, history, 1)
    # 200 characters and a reply a turn: the ceiling of 4,000 comes before any chapter
    assert said.view == "cut"
    assert house.folds()[0][3] == "cut"
    assert house.one("SELECT view_kind FROM attempts ORDER BY pk DESC") == "cut"
    assert "Reply 1." in said.prompt[1]["content"], "a stand-in is made of what was said"
    after = await talk(house, history, 1)
    assert after.view == "stand-in"
    assert house.one("SELECT view_kind FROM attempts ORDER BY pk DESC") == "stand-in"
    assert after.bytes[: len(said.bytes)] == said.bytes


async def test_a_cut_to_the_window_out_of_ready_chapters_is_a_cut_too(house: House) -> None:
    """A swipe whose prompt the server finds too long: it and its retries say so."""
    history: list[Say] = []
    await to_the_debt(house, history)
    await talk(house, history, 1)
    house.write_chapters()
    overflow = UpstreamFault(
        FaultKind.OVERFLOW, "too long", prompt_tokens=1_100, window_tokens=1_000
    )
    house.local.answers = [overflow]
    cut = await house.say(*history[:-1])
    again = await house.say(*history[:-1])
    assert (cut.view, again.view) == ("cut", "cut")
    assert again.bytes == cut.bytes
    assert [fold[3] for fold in house.folds()] == ["cut"]


async def test_years_without_a_summarizer_stay_below_the_ceiling(house: House) -> None:
    history: list[Say] = []
    for _ in range(90):
        said = await talk(house, history, 1, id="c")
        fold = said.turn.prepared.begun.fold
        total = said.turn.prepared.begun.asked.cum_chars
        if fold is not None:
            total += fold.memory_chars - fold.border_cum
        assert total < 4_000
    cuts = [fold for fold in house.folds() if fold[3] == "cut"]
    assert 5 <= len(cuts) <= 30
    assert house.one("SELECT count(*) FROM gists WHERE origin = 'stand-in'") > 0


@pytest.mark.parametrize("messages", [30, 200, 501, 1_500])
async def test_a_history_that_comes_in_whole_is_below_the_ceiling_at_once(
    house: House, messages: int
) -> None:
    """However long it is: 1,500 messages are some 200 chapters of 100, five times the ceiling. The
    chapters are condensed; they do not cost the tail that stays verbatim."""
    history = [assistant(line(at)) if at % 2 else user(line(at)) for at in range(messages)]
    if history[-1]["role"] == "assistant":
        history.append(user("and now?"))

    cut = await house.say(*history, id="c")
    begun = cut.turn.prepared.begun
    next_one = await house.say(*history, assistant(cut.text), user("go on"), id="c")

    assert begun.fold is not None
    verbatim = begun.asked.cum_chars - begun.fold.border_cum
    assert begun.fold.memory_chars + verbatim < 4_000
    assert verbatim >= 600
    assert (cut.view, next_one.view) == ("cut", "stand-in")
    assert next_one.bytes[: len(cut.bytes)] == cut.bytes


async def test_a_newer_gist_renews_a_memory_at_the_same_border(house: House) -> None:
    """A fold that moves nothing: its border stays the message that it was."""
    house.policies = POLICIES.replace("keep: 600", "keep: 900").replace(
        "split: 1500, length: 100", "split: 600, length: 400"
    )
    house.restart()
    history: list[Say] = []
    for _ in range(60):
        await talk(house, history, 1)
        for chapter, conversation, _ in house.pending():
            house.write(chapter, conversation, "They spoke of many things. " * 13)
        house.write_gists()
    borders = [depth for _, _, depth, _, _ in house.folds()]
    assert borders == sorted(borders)
    assert len(set(borders)) < len(borders), "a memory was renewed"
    rows = house.rows(
        "SELECT f.border_depth, f.border_cum, m.depth, m.cum_chars FROM folds f"
        " JOIN messages m ON m.pk = f.border_pk"
    )
    assert all((a, b) == (c, d) for a, b, c, d in rows)


async def test_the_turn_that_crosses_goes_out_as_it_is_though_chapters_exist(
    house: House,
) -> None:
    """On a branch back below the start the chapters are there already."""
    history: list[Say] = []
    said = await to_a_fold(house, history)
    short = history[: border(said) + 4]
    assert sum(len(m["content"]) for m in short) < 3_000
    crossing = await house.say(*short, user("word " * 300))
    assert crossing.view == "verbatim"
    after = await house.say(*short, user("word " * 300), assistant(crossing.text), user("go on"))
    assert after.view == "folded"


async def test_chapters_that_a_branch_left_do_not_break_the_memory(house: House) -> None:
    """Chapters of an older head overlap later ones on the same path (B16): each message is told
    once all the same."""
    history: list[Say] = []
    await to_a_fold(house, history)
    conversation = house.one("SELECT pk FROM conversations")
    # A chapter of another head that straddles the border.
    path = house.path(house.one("SELECT id FROM conversations"))
    at = house.folds()[0][2]
    pk, _ = house.store.writing(
        chapter_rows.add_chapter,
        conversation,
        Span(1, at + 2, 500),
        first_pk=path[0].pk,
        last_pk=path[at + 1].pk,
        now_ms=house.clock.ms,
    )
    house.write(pk, conversation, "A chapter of another head.")
    for _ in range(3):
        said = await to_a_fold(house, history)
        fold = said.turn.prepared.begun.fold
        assert fold is not None
        told = house.store.reading(chapter_rows.versions_by_pk, fold.memory)
        depths = [d for v in told for d in range(v.first_depth, v.last_depth + 1)]
        gist = house.store.reading(gist_rows.gist_by_pk, fold.gist_pk) if fold.gist_pk else None
        start = gist.last_depth if gist else 0
        assert depths == list(range(start + 1, fold.border_depth + 1))


async def test_a_refusal_that_got_into_memory_gives_way_when_it_is_read(house: House) -> None:
    history: list[Say] = []
    await to_the_debt(house, history)
    refusal = "I'm sorry, but I can't help with summarizing this conversation."
    for chapter, conversation, _ in house.pending():
        house.write(chapter, conversation, refusal)
    said = await talk(house, history, 1)
    told = said.prompt[1]["content"]
    assert said.view == "folded"
    assert "sorry" not in told
    assert "Reply 1." in told


async def test_a_refusal_as_a_gist_gives_way_too_and_nothing_is_lost(house: House) -> None:
    history: list[Say] = []
    while not house.rows("SELECT pk FROM jobs WHERE kind = 'gist'"):
        await to_a_fold(house, history)
    house.write_gists()
    refusal = "I'm sorry, but I can't help with summarizing this conversation."
    house.store.writing(
        lambda c: c.exec_driver_sql("UPDATE gists SET text = ?", (refusal,)) and None
    )
    said = await to_a_fold(house, history)
    fold = said.turn.prepared.begun.fold
    assert fold is not None and fold.gist_pk is not None
    told = said.prompt[1]["content"]
    assert "sorry" not in told
    assert "<earlier>\nAssistant: Reply 1." in told


async def test_a_failed_summary_changes_nothing(house: House) -> None:
    """A02, B20: Law 8: quarantined output, a postponed job; view and memory stay byte for byte."""
    history: list[Say] = []
    said = await to_a_fold(house, history)
    while not house.pending():
        said = await talk(house, history, 1)
    versions = house.rows("SELECT * FROM chapter_versions")
    house.clock.ms += 60_000
    (job, *_) = house.store.writing(
        leases.claim, now_ms=house.clock.ms, lease="mine", lease_ms=60_000
    )
    house.store.writing(
        quarantine.add_quarantined,
        job.conversation_pk,
        chapter_pk=job.payload["chapter"],
        kind="chapter",
        backend="local",
        reasons=["refusal"],
        text="I won't.",
        finish_reason="stop",
        now_ms=house.clock.ms,
    )
    house.store.writing(
        leases.postpone, job.pk, "mine", house.clock.ms + 9, "refusal", "x", house.clock.ms
    )
    after = await talk(house, history, 1)
    assert after.bytes[: len(said.bytes)] == said.bytes
    assert house.rows("SELECT * FROM chapter_versions") == versions
    assert b"I won't" not in b"".join(after.bytes)


async def test_ten_turns_above_start_cause_each_job_once(house: House) -> None:
    history: list[Say] = []
    await to_the_debt(house, history)
    jobs = house.rows("SELECT key, run_at_ms FROM jobs")
    await talk(house, history, 3)
    assert house.rows("SELECT key, run_at_ms FROM jobs") == jobs
    assert len(house.rings) >= 1
    # 30 seconds behind the turn that crossed
    assert jobs[0][1] == house.rings[0]


async def test_a_summary_of_a_system_text_is_never_made(house: House) -> None:
    """Nothing of the system prompt enters a chapter, whatever its place (it survives in place)."""
    history: list[Say] = []
    lead = [system("You are SYSTEM-ONE.")]
    for _ in range(18):
        history.append(user(line(len(history))))
        late = [system("From now on SYSTEM-TWO.")]
        said = await house.say(*lead, *history[:2], *late, *history[2:], id="c")
        history.append(assistant(said.text))
        house.write_chapters()
    assert said.view == "folded"
    roles = [m["role"] for m in said.prompt]
    assert roles[:4] == ["system", "user", "assistant", "system"]
    assert said.prompt[3] == late[0]
    assert "SYSTEM" not in said.prompt[2]["content"]


async def test_retries_are_no_new_question_for_the_view(house: House) -> None:
    history: list[Say] = []
    await to_the_debt(house, history)
    asked = house.one("SELECT asked_pk FROM attempts ORDER BY pk DESC")
    assert house.store.reading(attempts.was_asked, asked, "small")
    assert not house.store.reading(attempts.was_asked, asked, "wide")
    assert not house.store.reading(attempts.was_asked, asked + 99, "small")
