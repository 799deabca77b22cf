"""One turn: what is stored when, what is tried again, what a client that leaves leaves behind."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest

from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.errors import ContextLengthExceeded, NotFound, StorageFailed, UpstreamFailed
from gateway.flows.erase import erase_conversation
from gateway.wire.json_text import loads
from tests.gateway.house import House, Say, assistant, delta, deltas, system, user

LONG = "word " * 40


def fault(kind: FaultKind, **more: Any) -> UpstreamFault:
    return UpstreamFault(kind, f"it is {kind}", **more)


def attempts(house: House) -> list[tuple[Any, ...]]:
    return house.rows("SELECT backend, state, finish_reason, error FROM attempts ORDER BY pk")


# -- when things are stored -----------------------------------------------------------------------


async def test_the_question_is_committed_before_the_call_and_the_reply_before_the_end(
    house: House,
) -> None:
    told: list[list[tuple[str, Any]]] = []
    house.local.opens = lambda: told.append(house.told("c"))
    turn = await house.open(user("hi"), id="c")
    ends = [
        (house.told("c"), attempts(house)[-1][1])
        async for chunk in turn.stream()
        if chunk.parsed["choices"][0]["finish_reason"]
    ]
    assert told == [[("user", "hi")]]
    assert ends == [([("user", "hi"), ("assistant", "Reply 1.")], "done")]


async def test_what_is_deleted_under_a_turn_is_remembered_nowhere(house: House) -> None:
    """Not by the books in memory either, whose entry would be that of nobody (law 10)."""
    house.local.can_prefill = True
    house.restart()
    turn = await house.open(system("He is a spy."), user("word " * 700), id="c")
    gone = house.conversation("c")
    stream = turn.stream()
    await anext(stream)
    await erase_conversation(house.ctx, lambda connection: gone)
    async for _ in stream:
        pass
    ctx = house.ctx
    assert (ctx.prefixes.size, ctx.prefills._newest, ctx.views._kept) == (0, {}, {})


async def test_nor_is_what_is_deleted_in_the_moment_in_which_a_turn_begins(house: House) -> None:
    """Both commits share a transaction; the view comes to the cache when it was emptied already."""
    left = []
    for hops in range(6):
        said = await house.say("hi", id=f"c{hops}")
        gone = house.conversation(f"c{hops}")
        begun = asyncio.ensure_future(house.open(user("more"), id=f"c{hops}"))
        for _ in range(hops):
            await asyncio.sleep(0)
        await erase_conversation(house.ctx, lambda connection, row=gone: row)
        turn = await begun
        if turn.prepared.begun.conversation.id == said.conversation:
            await house.relay(turn)
            tails = (key for key in house.ctx.views._kept if isinstance(key, tuple))
            left += [key for key in tails if key[0] == gone.pk]
    assert left == []


async def test_a_whole_answer_is_stored_before_it_is_given(house: House) -> None:
    turn = await house.open(user("hi"), id="c", stream=False)
    completion = await turn.complete()
    assert completion.parsed["choices"][0]["message"]["content"] == "Reply 1."
    assert house.told("c") == [("user", "hi"), ("assistant", "Reply 1.")]
    assert attempts(house) == [("local", "done", "stop", None)]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_reply_that_cannot_be_stored_is_told_and_its_attempt_ends_later(
    house: House, stream: bool
) -> None:
    def fill() -> None:
        """No page more than there are (SQLite raises a limit below that to it)."""
        kept = house.store._held  # what turns are written on
        assert kept is not None
        kept.connection.cursor().execute("PRAGMA max_page_count=1")

    house.local.answers = ["灯台" * 100_000]
    house.local.opens = fill
    turn = await house.open(user("hi"), id="c", stream=stream)
    with pytest.raises(StorageFailed, match="full"):
        await (house.relay(turn) if stream else turn.complete())
    assert house.told("c") == [("user", "hi")]
    assert [row[1] for row in attempts(house)] == ["running"]
    house.local.opens = lambda: None
    house.store._writer.dispose()  # the limit was the connection's own
    await house.say("again", id="d")
    assert attempts(house) == [
        ("local", "failed", None, "the database refused it"),
        ("local", "done", "stop", None),
    ]
    assert house.ctx.unsettled == set()


async def test_usage_is_kept_and_the_ratio_learned(house: House) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 7}
    cached = {**usage, "prompt_tokens_details": {"cached_tokens": 40}}
    house.local.answers = [deltas("Fine.", usage=cached)]  # type: ignore[arg-type]
    await house.say("x" * 500, id="c")
    assert house.rows("SELECT prompt_tokens, cached_tokens, completion_tokens FROM attempts") == [
        (100, 40, 7)
    ]
    # guessed 3.0, seen 500 / 100 = 5.0: 3.0 + 0.3 × (5.0 - 3.0)
    assert house.one("SELECT ratio FROM token_ratios") == pytest.approx(3.6)


async def test_the_ratio_stays_within_bounds_whatever_is_told(house: House) -> None:
    """D02: 0, null and impossible figures are ignored, a stray one moves it a little."""
    for tokens in (0, None, 1, 900_000, 700):
        usage = {"prompt_tokens": tokens, "completion_tokens": 1}
        house.local.answers = [deltas("Fine.", usage=usage)]  # type: ignore[arg-type]
        await house.say("x" * 400, id="c")
        for (ratio,) in house.rows("SELECT ratio FROM token_ratios"):
            assert 0.25 <= ratio <= 8.0
    assert house.one("SELECT count(*) FROM token_ratios") == 1


@pytest.mark.parametrize(
    "said", [[delta({"content": " \n​"}), delta({}, "stop")], [delta({}, "stop")]]
)
async def test_an_empty_reply_is_not_stored(house: House, said: list[Any]) -> None:
    """B22: no row without text, whatever the end says."""
    house.local.answers = [said]
    await house.say("hi", id="c")
    assert house.told("c") == [("user", "hi")]
    after = await house.say("still there?", id="c")
    assert after.prompt == [user("hi"), user("still there?")]


async def test_reasoning_alone_is_kept_and_left_out_of_prompts(house: House) -> None:
    """B21: an allowance that went into thinking."""
    house.local.answers = [[delta({"reasoning_content": "Hmm."}), delta({}, "length")]]
    await house.say("hi", id="c")
    stored = loads(house.path("c")[-1].raw)
    assert stored["reasoning_content"] == "Hmm."
    after = await house.say("go on", id="c")
    assert after.prompt == [user("hi"), user("go on")]


@pytest.mark.parametrize("end", ["length", "content_filter"])
async def test_how_a_reply_ended_is_kept(house: House, end: str) -> None:
    house.local.answers = [deltas("Half of it", finish=end)]
    await house.say("hi", id="c")
    assert attempts(house) == [("local", "done", end, None)]
    row = house.path("c")[-1]
    assert (row.finish_reason, row.partial, row.backend) == (end, 0, "local")


async def test_half_an_emoji_in_each_of_two_pieces(house: House) -> None:
    house.local.answers = [
        [delta({"content": "\ud83d"}), delta({"content": "\ude00"}), delta({}, "stop")]
    ]
    await house.say("hi", id="c")
    assert house.told("c")[-1] == ("assistant", "😀")


# -- what breaks off ------------------------------------------------------------------------------


async def test_a_break_leaves_what_came_marked(house: House) -> None:
    """B03, F01, F04: not recorded as whole."""
    broken = fault(FaultKind.INTERRUPTED, partial=True)
    house.local.answers = [[*deltas("Half of an answer")[:3], broken]]
    heard = ""
    turn = await house.open(user("hi"), id="c")
    with pytest.raises(UpstreamFault):
        async for chunk in turn.stream():
            heard += chunk.parsed["choices"][0]["delta"].get("content", "")
    assert heard == "Half of an a"
    assert house.told("c")[-1] == ("assistant", heard)
    row = house.path("c")[-1]
    assert (row.partial, row.finish_reason) == (1, None)
    assert attempts(house) == [("local", "partial", None, "interrupted")]


async def test_a_whole_answer_that_broke_off_is_kept_as_partial(house: House) -> None:
    received = {"choices": [{"message": assistant("Half"), "finish_reason": "error"}]}
    broken = fault(FaultKind.INTERRUPTED, received=received)
    house.local.answers = [broken, "All of it."]
    turn = await house.open(user("hi"), id="c", stream=False)
    await turn.complete()
    assert [(a[1], a[3]) for a in attempts(house)] == [("partial", "interrupted"), ("done", None)]
    rows = house.rows("SELECT raw, partial FROM messages WHERE role = 'assistant' ORDER BY pk")
    assert [(loads(raw)["content"], partial) for raw, partial in rows] == [
        ("Half", 1),
        ("All of it.", 0),
    ]
    assert house.told("c")[-1] == ("assistant", "All of it.")


async def test_a_client_that_leaves_cancels_the_upstream_and_keeps_what_came(
    house: House,
) -> None:
    """F12."""
    turn = await house.open(user("hi"), id="c")
    stream = turn.stream()
    await anext(stream)
    await anext(stream)
    await stream.aclose()
    assert house.local.closed == 1
    assert attempts(house) == [("local", "cancelled", None, "the client left")]
    assert house.told("c")[-1] == ("assistant", "Rep")
    assert house.path("c")[-1].partial == 1
    assert house.ctx.busy == {"local": 0}


async def test_leaving_before_the_first_byte_stores_no_reply(house: House) -> None:
    never = asyncio.Event()
    house.local.opens = never.wait
    turn = await house.open(user("hi"), id="c")
    work = asyncio.ensure_future(house.relay(turn))
    while not house.local.calls:
        await asyncio.sleep(0)
    work.cancel()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert attempts(house) == [("local", "cancelled", None, "the client left")]
    assert house.told("c") == [("user", "hi")]


async def test_leaving_while_a_whole_answer_is_made(house: House) -> None:
    """F12: without a stream too."""
    never = asyncio.Event()
    house.local.opens = never.wait
    turn = await house.open(user("hi"), id="c", stream=False)
    work = asyncio.ensure_future(turn.complete())
    while not house.local.calls:
        await asyncio.sleep(0)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert attempts(house) == [("local", "cancelled", None, "the client left")]


async def test_leaving_while_the_request_is_stored_leaves_no_running_attempt(
    house: House,
) -> None:
    """The commit cannot be taken back half-way; the attempt that it began is ended."""
    gate = threading.Event()
    busy = house.store._write_thread.submit(gate.wait)
    work = asyncio.ensure_future(house.open(user("hi"), id="c"))
    while house.store._write_thread._work_queue.qsize() == 0:
        await asyncio.sleep(0)
    work.cancel()
    await asyncio.sleep(0)
    work.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert busy.result()
    assert house.rows("SELECT state, error FROM attempts") == [("cancelled", "the client left")]
    assert house.told("c") == [("user", "hi")]


async def test_leaving_while_tokens_are_counted_leaves_no_running_attempt(house: House) -> None:
    house.local.window_tokens = 1_000
    never = asyncio.Event()
    reached = asyncio.Event()

    async def count(*_: Any) -> int | None:
        reached.set()
        await never.wait()
        return None

    house.local.count_tokens = count  # type: ignore[method-assign]
    work = asyncio.ensure_future(house.open(user("word " * 300), id="c"))
    await reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert house.rows("SELECT state, error FROM attempts") == [("cancelled", "the client left")]
    assert house.told("c")[-1][0] == "user"


async def test_a_bug_in_the_relay_is_no_running_attempt(house: House) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    house.local.events = fail
    turn = await house.open(user("hi"), id="c")
    with pytest.raises(ZeroDivisionError):
        await house.relay(turn)
    assert attempts(house) == [("local", "failed", None, "internal error")]


# -- another attempt ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        FaultKind.UNAVAILABLE,
        FaultKind.LOADING,
        FaultKind.OVERLOADED,
        FaultKind.AUTH,
        FaultKind.NOT_FOUND,
        FaultKind.TIMEOUT,
        FaultKind.SERVER,
    ],
)
async def test_before_the_first_byte_the_next_tier_serves_with_its_own_view(
    house: House, kind: FaultKind
) -> None:
    """B09: built for the window of the one that serves."""
    history: list[Say] = []
    while not house.folds():
        history.append(user(LONG + str(len(history))))
        said = await house.say(*history)
        history.append(assistant(said.text))
        house.write_chapters()
    house.local.answers = [fault(kind)]
    other = await house.say(*history, user("go on"), model="both")
    assert other.turn.prepared.backend.name == "cloud"
    assert other.view == "verbatim"
    assert other.prompt == [*history, user("go on")]
    assert [a[:2] for a in attempts(house)[-2:]] == [("local", "failed"), ("cloud", "done")]
    assert house.told(other.conversation)[-2] == ("user", "go on")


@pytest.mark.parametrize(
    "kind", [FaultKind.EMPTY, FaultKind.INTERRUPTED, FaultKind.SERVER, FaultKind.MALFORMED]
)
async def test_what_may_do_better_is_sent_once_more(house: House, kind: FaultKind) -> None:
    """B07, B22: an empty success is a failure, tried once more."""
    house.local.answers = [fault(kind)]
    said = await house.say("hi", id="c")
    assert said.text == "Reply 2."
    assert house.local.seen[0] == house.local.seen[1]
    house.local.answers = [fault(kind), fault(kind), "never"]
    with pytest.raises(UpstreamFault):
        await house.say("again", id="c")
    assert house.local.answers == ["never"]


@pytest.mark.parametrize("kind", [FaultKind.REFUSED, FaultKind.BAD_REQUEST])
async def test_what_would_fail_again_is_not_sent_again(house: House, kind: FaultKind) -> None:
    house.local.answers = [fault(kind)]
    with pytest.raises(UpstreamFault) as told:
        await house.say("hi", model="both")
    assert told.value.kind is kind
    assert (len(house.local.calls), len(house.cloud.calls)) == (1, 0)


async def test_after_the_first_byte_nothing_is_tried_again(house: House) -> None:
    """Even where a backend forgets to say that a part was given."""
    house.local.answers = [[*deltas("Half of it")[:2], fault(FaultKind.SERVER)]]
    with pytest.raises(UpstreamFault):
        await house.say("hi", model="both")
    assert (len(house.local.calls), len(house.cloud.calls)) == (1, 0)


async def test_once_headers_left_the_backend_stays(house: House) -> None:
    house.local.answers = [fault(FaultKind.UNAVAILABLE)]
    turn = await house.open(user("hi"), model="both")
    turn.is_sent = True
    with pytest.raises(UpstreamFault):
        await house.relay(turn)
    assert house.cloud.calls == []


async def test_nor_does_it_change_where_a_second_attempt_does_not_fit(house: House) -> None:
    """The server was started anew with another template between the two."""
    house.local.window_tokens = 4_000
    house.local.answers = [fault(FaultKind.EMPTY)]
    turn = await house.open(user("y " * 1_700), model="both")
    turn.is_sent = True
    house.local.counts = lambda messages: 9_000
    with pytest.raises(ContextLengthExceeded):
        await house.relay(turn)
    assert house.cloud.calls == []


async def test_one_budget_spans_retries_and_fallbacks(house: House) -> None:
    house.local.answers = [fault(FaultKind.SERVER)] * 5
    house.cloud.answers = [fault(FaultKind.SERVER)] * 5
    with pytest.raises(UpstreamFault):
        await house.say("hi", model="both")
    assert len(house.local.calls) + len(house.cloud.calls) <= 3


async def test_the_client_learns_what_was_wrong_with_the_first(house: House) -> None:
    """B09."""
    house.local.answers = [fault(FaultKind.OVERLOADED, retry_after=7)]
    house.cloud.answers = [fault(FaultKind.AUTH)]
    with pytest.raises(UpstreamFault) as told:
        await house.say("hi", model="both")
    assert (told.value.kind, told.value.retry_after) == (FaultKind.OVERLOADED, 7)


async def test_a_fallback_too_small_does_not_hide_the_first_fault(house: House) -> None:
    """B09."""
    house.cloud.window_tokens = 600
    house.local.answers = [fault(FaultKind.UNAVAILABLE)]
    with pytest.raises(UpstreamFault) as told:
        await house.say("word " * 700, model="both")
    assert told.value.kind is FaultKind.UNAVAILABLE


async def test_the_first_healthy_tier_is_taken(house: House) -> None:
    house.local.healthy = False
    said = await house.say("hi", model="both")
    assert said.turn.prepared.backend.name == "cloud"
    house.cloud.healthy = False
    said = await house.say("hi", model="both")
    assert said.turn.prepared.backend.name == "local", "its own error is the truth"


async def test_a_tier_that_is_off_is_passed_over(house: House) -> None:
    house.local.off_reason = "its api_key is not set"
    assert (await house.say("hi", model="both")).turn.prepared.backend.name == "cloud"
    with pytest.raises(UpstreamFailed) as told:
        await house.say("hi")
    assert "its api_key is not set" in told.value.message
    assert told.value.status == 503


async def test_an_unknown_model_stores_nothing(house: House) -> None:
    with pytest.raises(NotFound) as told:
        await house.say("hi", model="gpt-9")
    assert (told.value.code, told.value.param) == ("model_not_found", "model")
    assert house.one("SELECT count(*) FROM messages") == 0


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    "reply",
    [
        "I'm sorry to hear that your train was late. Did you get there in time?",
        '"I cannot open the gate," said the keeper, and turned away.',
        "I'm sorry, but I can't write that scene.",
        "ごめんなさい、それは書けません。",
    ],
)
async def test_a_chats_reply_is_the_models_whatever_it_says(
    house: House, reply: str, stream: bool
) -> None:
    """A03, A19, A21: one draw, given once and stored as it was heard; refusals are judged in
    summaries only."""
    house.local.answers = [reply]
    turn = await house.open(user("How was it?"), id="c", stream=stream)
    if stream:
        heard = (await house.relay(turn)).text
    else:
        heard = (await turn.complete()).parsed["choices"][0]["message"]["content"]
    assert heard == reply
    assert len(house.local.calls) == 1
    assert house.told("c") == [("user", "How was it?"), ("assistant", reply)]


async def test_a_filtered_answer_without_a_word_is_an_end_and_no_row(house: House) -> None:
    """A17: told as it ended, drawn once, and no empty reply in the transcript."""
    house.local.answers = [[delta({"role": "assistant"}), delta({}, "content_filter")]]
    turn = await house.open(user("hi"), id="c")
    ends = [chunk.parsed["choices"][0]["finish_reason"] async for chunk in turn.stream()]
    assert ends == [None, "content_filter"]
    assert len(house.local.calls) == 1
    assert house.told("c") == [("user", "hi")]


async def test_a_prompt_that_was_half_read_raises_an_alarm(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """B07: figures alone, no word of the conversation."""
    said = "secret " * 600  # 4,200 characters at a guessed 3 a token: 1,400 tokens
    house.cloud.answers = [deltas("Fine.", usage={"prompt_tokens": tokens}) for tokens in (900, 70)]
    with caplog.at_level(logging.WARNING, "foldgate.turn"):
        await house.say(said, model="cloudy")
        assert caplog.messages == []
        await house.say(said, model="cloudy")
    [line] = caplog.messages
    assert "the backend cloud read 70 tokens of a prompt of about 1400" in line
    assert "secret" not in line


async def test_a_window_that_narrows_a_policy_is_told_once(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """B06: at the first turn that learns it, and again only for another window."""
    with caplog.at_level(logging.WARNING, "foldgate.turn"):
        # a ceiling of 4,000 characters at 0.9 a token: 4,445 tokens
        for window in (4_445, 4_444, 4_444, 3_000):
            house.local.window_tokens = window
            await house.say("hi")
    assert [line.rpartition("window is ")[2][:5] for line in caplog.messages] == ["4,444", "3,000"]
    assert caplog.messages[0].startswith("backend local, policy small: a ceiling of 4,000 chars")


async def test_images_fill_a_view_though_they_hold_no_text(house: House) -> None:
    """D09: an allowance of 3,000 each, and two are beyond a ceiling of 4,000."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    for _ in range(2):
        said = await house.say(user([image]), id="c")
    assert 3_000 < said.turn.prepared.prompt_chars <= 4_000
    assert len(house.folds()) == 1
    assert said.prompt[-1] == user([image])
    assert sum(b"image_url" in message for message in said.bytes) == 1


# -- the window -----------------------------------------------------------------------------------


async def fill(house: House, chars: int) -> list[Say]:
    history: list[Say] = []
    while sum(len(m["content"]) for m in history) < chars:
        history.append(user(LONG + str(len(history))))
        history.append(assistant((await house.say(*history)).text))
    return history


def overflow(prompt: int, window: int) -> UpstreamFault:
    return fault(FaultKind.OVERFLOW, prompt_tokens=prompt, window_tokens=window)


async def test_an_overflow_is_cut_once_by_the_errors_numbers(house: House) -> None:
    history = await fill(house, 2_500)
    house.local.answers = [overflow(2_600, 2_000)]
    said = await house.say(*history, user("go on"))
    assert said.view == "cut"
    assert [a[1] for a in attempts(house)[-2:]] == ["failed", "done"]
    assert attempts(house)[-2][3] == "overflow"
    first, second = house.local.seen[-2:]
    assert sum(map(len, second)) < sum(map(len, first))
    assert said.prompt[-1] == user("go on")
    # prompt + output + margin fits: by the error's own ratio
    chars = said.turn.prepared.prompt_chars
    ratio = 2_500 / 2_600
    assert chars / ratio + said.turn.prepared.call.max_tokens + 64 <= 2_000 * 1.05
    again = await house.say(*history, user("go on"))
    assert again.bytes == said.bytes, "a retry stands on the same cut"


async def test_an_overflow_that_stays_is_not_sent_a_third_time(house: House) -> None:
    history = await fill(house, 2_500)
    house.local.answers = [overflow(2_600, 2_000), overflow(2_600, 2_000), "never"]
    with pytest.raises(UpstreamFault) as told:
        await house.say(*history, user("go on"))
    assert told.value.code == "context_length_exceeded"
    assert house.local.answers == ["never"]


async def test_a_newest_message_beyond_every_window_is_told_and_stored(house: House) -> None:
    house.local.window_tokens = 1_000
    with pytest.raises(ContextLengthExceeded) as told:
        await house.say("word " * 2_000, id="c")
    assert told.value.status == 400
    assert told.value.code == "context_length_exceeded"
    assert house.local.calls == []
    assert len(house.told("c")[0][1]) == 10_000
    assert house.rows("SELECT state, error FROM attempts") == [("failed", "overflow")]
    after = await house.say("what failed?", id="c")
    assert after.view == "cut", "as history it is told by a stand-in"
    assert after.prompt[-1] == user("what failed?")


async def test_a_newest_message_goes_to_the_tier_that_holds_it(house: House) -> None:
    house.local.window_tokens = 1_000
    said = await house.say("word " * 2_000, model="both")
    assert said.turn.prepared.backend.name == "cloud"
    assert [a[:2] for a in attempts(house)] == [("local", "failed"), ("cloud", "done")]


async def test_the_window_is_checked_before_the_call(house: House) -> None:
    history = await fill(house, 2_600)
    house.local.window_tokens = 900
    house.local.counts = lambda messages: sum(map(len, messages)) // 3
    said = await house.say(*history, user("go on"))
    assert said.view == "cut"
    tokens = sum(map(len, said.bytes)) // 3
    assert tokens + said.turn.prepared.call.max_tokens + 64 <= 900
    # never sent, so no attempt of its own
    assert [a[1] for a in attempts(house)[-2:]] == ["done", "done"]
    assert house.one("SELECT view_kind FROM attempts ORDER BY pk DESC") == "cut"


@pytest.mark.parametrize("window", [300, 400, 600, 1_000, 1_500, 2_000, 4_096])
@pytest.mark.parametrize("asked", [None, 1, 100, 1_000, 50_000])
@pytest.mark.parametrize("size", [10, 600, 1_100, 2_000, 8_000])
async def test_max_tokens_is_never_nothing(
    house: House, window: int, asked: int | None, size: int
) -> None:
    """B13: enough room for a reply, or a clear refusal before the call."""
    house.local.window_tokens = window
    more = {} if asked is None else {"max_tokens": asked}
    try:
        turn = await house.open(user("word " * (size // 5)), **more)
    except ContextLengthExceeded:
        assert house.local.calls == []
        return
    tokens = turn.prepared.call.max_tokens
    assert tokens >= min(256, asked or 256)
    assert tokens <= (asked or 4_096)
    estimate = turn.prepared.prompt_chars / 3
    assert estimate + tokens <= window
    if asked and tokens < asked:
        assert "max_tokens" in turn.prepared.dropped


async def test_a_system_text_that_is_remembered_counts(house: House) -> None:
    """A client that sends only what is new: its stored system text is part of the prompt."""
    lead = {"role": "system", "content": "x" * 3_000}
    await house.say(lead, user("hi"), id="c")
    said = await house.say("go on", id="c")
    assert said.prompt[0] == lead
    assert said.turn.prepared.prompt_chars == 3_000 + 2 + len("Reply 1.") + 5


async def test_tools_count_and_no_fold_is_tried_for_them(house: House) -> None:
    """D11: 20,000 characters of tools before a small window."""
    house.local.window_tokens = 2_000
    tools = [
        {"type": "function", "function": {"name": f"f{at}", "x": "y" * 100}} for at in range(150)
    ]
    with pytest.raises(ContextLengthExceeded):
        await house.say("hi", id="c", tools=tools)
    assert house.folds() == []


async def test_text_after_the_end_is_told_as_it_is_stored(house: House) -> None:
    """F19: one truth for the client and the transcript."""
    house.local.answers = [
        [delta({"content": "Hello"}), delta({}, "stop"), delta({"content": " more"})]
    ]
    said = await house.say("hi", id="c")
    assert house.told("c")[-1] == ("assistant", said.text)
