"""What a summarizer may answer in place of a summary: memory stays as it was, on every way.

Law 8: a failed summary leaves transcript, memory, view and prefix as they were.
"""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, select

from gateway.backends.accounts import read_task, write_account
from gateway.store import chapter_rows, fold_rows, gist_rows
from tests.faults.conftest import Build
from tests.faults.server import (
    DONE,
    Exchange,
    Request,
    answer,
    delta,
    encode_event,
    end,
    role,
    stream,
)
from tests.faults.wall import Wall
from tests.gateway.backends.conftest import LITELLM_WARNS
from tests.gateway.flows.stage import (
    CHAPTER,
    STORY,
    framed,
    job,
    quarantined,
    setup_chapter,
    versions,
)

pytestmark = LITELLM_WARNS

HALF = '{"chapter": "Mara found the la'
THOUGHT = "First I list who spoke. " * 160

JAPANESE = [
    "真理は岬の灯台の階段を二百十二段のぼり、灯りが冷えているのを見つけた。",
    "老いた富田は首を振った。「油は火曜日に切れた。安西からの船は遅れている」",
    "真理は、それから暗闇の中を何隻の船が通ったのかと尋ねた。",
    "「三隻だ」と富田は言った。「最後の白鷺丸は汽笛を二度鳴らした」",
    "真理は夜明け前に安西へ漕いで行き、油を四十リットル持ち帰ると約束した。",
    "富田は弟の羅針盤を渡し、櫛と呼ばれる暗礁に気をつけろと言った。",
] * 2


def set_up(wall: Wall, **values: Any) -> str:
    """A story with one chapter of it, due in half a minute. Returns its conversation's id."""

    def write(connection: Connection) -> str:
        now_ms = wall.clock.now_ms()
        found, _ = setup_chapter(connection, model="one", policy="tale", now_ms=now_ms, **values)
        connection.exec_driver_sql(
            "UPDATE conversations SET head_pk = (SELECT max(pk) FROM messages)"
        )
        return found.id

    id: str = wall.context.store.writing(write)
    return id


def stored(wall: Wall) -> list[tuple[str, str, str | None]]:
    found: list[tuple[str, str, str | None]] = wall.context.store.reading(versions)
    return found


def everything(connection: Connection) -> list[list[Any]]:
    tables = (chapter_rows.chapters, chapter_rows.versions, gist_rows.gists, fold_rows.folds)
    return [list(connection.execute(select(table))) for table in tables]


def error(**fields: Any) -> dict[str, Any]:
    return {"error": {"message": "x", **fields}}


def narrow(text: str) -> str:
    """A policies file whose views fit a window of a few thousand tokens."""
    view = "view: {start: 3000, ceiling: 4000, headroom: 1200, keep: 600}"
    memory = "chapters: {length: 100, stack: 600}, gist: {length: 150}"
    text = text.replace("  plain: {}", f"  plain: {{{view}, {memory}}}")
    return text.replace("lenient: {", f"lenient: {{{view}, {memory}, ")


async def test_an_honest_chapter_is_stored(wall: Wall) -> None:
    set_up(wall)
    wall.upstream.play(wall.whole(framed(CHAPTER), prompt=400))
    assert await wall.run_jobs() == 1
    assert stored(wall) == [("model", CHAPTER, "upstream")]


CASES: dict[str, tuple[str, str | None, dict[str, Any], str]] = {
    # what is said, its end, more of the message; why it is quarantined
    "B01": (HALF, "length", {}, "truncated"),
    "B02": ("", "length", {"reasoning_content": THOUGHT}, "truncated"),
    "B03": (HALF, "insufficient_system_resource", {}, "truncated"),
    "B04 error": (HALF, "error", {}, "truncated"),
    "B04 network_error": (HALF, "network_error", {}, "truncated"),
    "B04 abort": (HALF, "abort", {}, "truncated"),
    "B04 repetition": (HALF, "repetition_truncation", {}, "truncated"),
    "B04 null": (HALF, None, {}, "truncated"),
    "B07": ("", "stop", {}, ""),
    "B21": ("", "stop", {"reasoning_content": THOUGHT}, "empty"),
}


@pytest.mark.parametrize("case", CASES)
async def test_what_is_no_summary_leaves_memory_as_it_was(wall: Wall, case: str) -> None:
    """B01 to B04, B07, B20, B21: quarantined or forgotten, tried again later; the turn that comes
    meanwhile is served from the same rows."""
    set_up(wall)
    said, reason, more, why = CASES[case]
    wall.upstream.otherwise = lambda _: wall.whole(said, reason, 400, **more)
    before = wall.context.store.reading(everything)
    assert await wall.run_jobs() == 1
    assert wall.context.store.reading(everything) == before
    left = wall.context.store.reading(job)
    assert (left.state, left.attempts) == ("queued", 1)
    refused = {reason for _, reason in wall.context.store.reading(quarantined)}
    assert refused == ({why} if why else set())
    assert "I list who spoke" not in str(wall.rows("SELECT text FROM chapter_versions"))
    # a later draw repairs everything
    wall.upstream.play(wall.whole(framed(CHAPTER), prompt=400))
    assert await wall.run_jobs(later=120.0) == 1
    assert stored(wall) == [("model", CHAPTER, "upstream")]


async def test_a_cut_summary_is_asked_for_with_a_larger_allowance(build: Build) -> None:
    """B01: on a window that had made it small."""
    async with build(fields=", window: 4000 tokens", policies=narrow) as wall:
        set_up(wall)
        wall.upstream.play(wall.whole(HALF, "length", 400), wall.whole(framed(CHAPTER), prompt=400))
        await wall.run_jobs()
        first, second = [request.json["max_tokens"] for request in wall.upstream.chats]
        assert second > first
        assert stored(wall) == [("model", CHAPTER, "upstream")]


async def test_a_summary_of_half_a_prompt_is_none(wall: Wall) -> None:
    """B07: the backend's own figure says that it read a fraction of what was sent."""
    set_up(wall)
    wall.upstream.otherwise = lambda request: wall.whole(framed(CHAPTER), prompt=20)
    await wall.run_jobs()
    assert [origin for origin, _, _ in stored(wall)] == ["stand-in"]
    assert wall.context.store.reading(job).error_kind == "overflow"


async def test_an_overflow_told_as_a_success_is_one(wall: Wall) -> None:
    """B22: the same bytes would fare the same for ever, so an extract stands in, and no empty
    text of a model's."""
    set_up(wall)
    told = error(code=400, type="exceed_context_size_error")
    wall.upstream.otherwise = lambda _: (
        stream(encode_event(told).removeprefix(b"data: ").strip())
        if wall.way == "llama_cpp"
        else answer(200, told)
    )
    await wall.run_jobs()
    ((origin, text, _),) = stored(wall)
    assert (origin, "Kerrin Point" in text) == ("stand-in", True)
    assert wall.context.store.reading(quarantined) == []


FAULTS = {
    "B20 500": answer(500, error()),
    "503": answer(503, error()),
    "429": answer(429, error()),
    "401": answer(401, error()),
    "reset": Exchange((), "reset"),
    "F01": stream(role(), delta(HALF), end="cut"),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_a_summarizer_that_fails_leaves_memory_as_it_was(wall: Wall, name: str) -> None:
    """B20, F01: and no error's words become history."""
    set_up(wall)
    wall.upstream.otherwise = lambda _: FAULTS[name]
    before = wall.context.store.reading(everything)
    await wall.run_jobs()
    assert wall.context.store.reading(everything) == before
    left = wall.context.store.reading(job)
    assert (left.state, left.attempts) == ("queued", 1)


async def test_a_summary_in_another_language_is_none(wall: Wall) -> None:
    """B17: the instruction asks for the conversation's own; it is drawn once more."""
    set_up(wall, texts=JAPANESE)
    wall.upstream.otherwise = lambda request: wall.whole(framed(CHAPTER), prompt=900)
    await wall.run_jobs()
    assert stored(wall) == []
    assert len(wall.upstream.chats) == 2
    reasons = [reason for _, reason in wall.context.store.reading(quarantined)]
    assert len(reasons) == 2
    (prompt,) = [m["content"] for m in wall.upstream.chats[0].json["messages"]]
    assert "日本語" in prompt


async def test_a_span_too_long_for_the_summarizer_is_split_and_not_cut(build: Build) -> None:
    """B12: what was said in the middle stands in the input of exactly one call."""
    texts = [f"Mara wrote in line {number}: {said}" for number in range(12) for said in STORY]
    texts[len(texts) // 2] = "The harbour master's password was quicksilver-7731, said Mara."
    async with build(fields=", window: 6000 tokens", policies=narrow) as wall:
        set_up(wall, texts=texts)

        def write(request: Request) -> Exchange:
            (message,) = request.json["messages"]
            account = write_account(read_task(message["content"]))
            return wall.whole(framed(account), prompt=len(message["content"]) // 4)

        wall.upstream.otherwise = write
        await wall.run_jobs()
        asked = [request.json["messages"][0]["content"] for request in wall.upstream.chats]
        assert len(asked) > 1
        for text in texts:
            assert sum(text in prompt for prompt in asked) == 1
        ((origin, _, backend),) = stored(wall)
        assert (origin, backend) == ("model", "upstream")


async def test_summaries_do_not_think_where_the_template_can_be_told(wall: Wall) -> None:
    """B21."""
    set_up(wall)
    wall.upstream.play(wall.whole(framed(CHAPTER), prompt=400))
    await wall.run_jobs()
    body = wall.upstream.chats[0].json
    if wall.way == "llama_cpp":
        assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["max_tokens"] >= 1_000


async def test_a_turn_that_waits_is_served_while_a_summary_fails(wall: Wall) -> None:
    """B20."""
    id = set_up(wall)
    wall.upstream.play(*[wall.whole(HALF, "length", 400)] * 2)
    await wall.run_jobs()
    wall.upstream.play(stream(role(), delta("Go on."), end("stop"), DONE))
    sent_before = len(wall.upstream.chats)
    heard = await wall.ask("And then?", id=id)
    assert (heard.status, heard.text) == (200, "Go on.")
    said = wall.upstream.chats[sent_before].json["messages"]
    assert [m["content"] for m in said[:-1]] == STORY
    assert said[-1] == {"role": "user", "content": "And then?"}
