"""What a prompt keeps from one turn to the next, seen by the server that reads it (law 4)."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.faults.conftest import Build
from tests.faults.server import DONE, Exchange, Request, delta, end, role, stream
from tests.faults.wall import Wall, build_wall
from tests.gateway.backends.conftest import LITELLM_WARNS

pytestmark = LITELLM_WARNS


def say(said: str) -> Exchange:
    return stream(role(), delta(said), end("stop"), DONE)


def prompts(wall: Wall) -> list[list[dict[str, Any]]]:
    """The messages of each chat request, oldest first."""
    return [request.json["messages"] for request in wall.upstream.chats]


def grows(before: list[Any], after: list[Any]) -> bool:
    """Whether a prompt is the one before it and what is new."""
    return after[: len(before)] == before


async def test_between_folds_a_prompt_only_grows(wall: Wall) -> None:
    """C02, C05: no figure, no tidying; the system text goes out byte for byte, blanks, line ends
    and all."""
    lead = {"role": "system", "content": "  Eres Ana.\r\n\r\n"}
    history: list[dict[str, Any]] = [lead]
    for number in range(4):
        history.append({"role": "user", "content": f"  pregunta {number}\n"})
        wall.upstream.play(say(f"respuesta {number}"))
        await wall.ask(*history)
        history.append({"role": "assistant", "content": f"respuesta {number}"})
    sent = prompts(wall)
    assert all(grows(before, after) for before, after in itertools.pairwise(sent))
    assert sent[-1][0] == lead
    # and not one byte of what stood before is written differently
    bodies = [request.body for request in wall.upstream.chats]
    lists = [body[body.index(b"[") : body.rindex(b"]")] for body in bodies]
    firsts = [part.split(b"respuesta 0")[0] for part in lists]
    assert len(set(firsts[1:])) == 1


async def test_a_reply_is_shown_as_it_was_said_not_as_it_is_echoed(wall: Wall) -> None:
    """C07: the client's echo has lost blanks at the end of it, and is known all the same."""
    said = "Uno\r\n\n\n  dos  \n"
    wall.upstream.play(say(said), say("ok"))
    await wall.ask("hi")
    await wall.ask("hi", {"role": "assistant", "content": said.rstrip()}, "go on")
    assert prompts(wall)[1][1] == {"role": "assistant", "content": said}
    assert [content for role_, content, _ in wall.messages() if role_ == "assistant"] == [
        said,
        "ok",
    ]
    assert len(wall.rows("SELECT pk FROM conversations")) == 1


async def test_the_prefix_changes_at_folds_alone(wall: Wall) -> None:
    """C03: thirty turns of 500 characters over a view of 3,000, under stand-ins and real chapters;
    never one message dropped a turn."""
    wall.upstream.otherwise = lambda request: say("x" * 240)
    changes, before = 0, []
    for number in range(30):
        await wall.ask(f"{number:03} " + "word " * 50, model="small")
        now = prompts(wall)[-1]
        changes += not grows(before, now)
        before = now
    folds = wall.rows("SELECT kind FROM folds")
    assert changes == len(folds)
    # 30 turns of about 490 characters are 14,700; a fold frees 1,200 at least: at most 12
    assert 1 <= changes <= 12


async def test_chapters_stand_behind_a_memory_that_stays(wall: Wall) -> None:
    """C08, C02: the memory of two turns on one fold is the same bytes, with no count in it."""
    wall.upstream.otherwise = lambda request: say("y" * 240)
    while not wall.rows("SELECT pk FROM folds"):
        await wall.ask("word " * 60, model="small")
    folded = prompts(wall)[-1]
    await wall.ask("short", model="small")
    assert grows(folded, prompts(wall)[-1])
    memory = folded[1]["content"]
    assert "<memory>" in memory
    assert not any(mark in memory for mark in ("%", "characters", "tokens"))


async def test_spans_follow_each_other_without_a_gap(wall: Wall) -> None:
    """B16: the second fold begins where the first one ended, and nothing is lost between."""
    wall.upstream.otherwise = lambda request: say("z" * 240)
    while len(wall.rows("SELECT pk FROM folds")) < 3:
        await wall.ask("word " * 60, model="small")
    spans = wall.rows("SELECT first_depth, last_depth FROM chapters ORDER BY first_depth")
    assert spans[0][0] == 1
    assert all(b[0] == a[1] + 1 for a, b in itertools.pairwise(spans))
    (border,) = wall.rows("SELECT max(border_depth) FROM folds")[0]
    shown = prompts(wall)[-1]
    # the two messages of the memory, then everything behind the border but the newest reply
    last = wall.rows("SELECT max(depth) FROM messages")[0][0]
    assert len(shown) - 2 == last - 1 - border


@pytest.mark.parametrize("way", ["llama_cpp", "openai", "deepseek"])
async def test_another_wording_of_the_policies_changes_no_prompt(
    way: str, tmp_path: Any, litellm_warm: None
) -> None:
    """C12: a file that was only commented and set differently, read by a new process."""
    bodies: list[list[Any]] = []
    for comment in ("", "# another word\n"):
        folder = tmp_path / str(len(comment))
        folder.mkdir()

        def reword(text: str, comment: str = comment) -> str:
            return comment + text.replace("headroom: 1200, keep: 600", "keep: 600, headroom: 1200")

        async with build_wall(folder, way, policies=reword) as wall:
            wall.upstream.otherwise = lambda request: say("w" * 240)
            for number in range(14):
                await wall.ask(f"{number} " + "word " * 50, model="small")
            assert wall.rows("SELECT pk FROM folds")
            bodies.append(prompts(wall))
    assert bodies[0] == bodies[1]


async def test_to_a_wide_view_everything_comes_back_and_nothing_is_told_twice(
    build: Build,
) -> None:
    """B19: folded in a small view, verbatim in a wide one, and the same chapters on return."""
    async with build() as wall:
        wall.upstream.otherwise = lambda request: say("v" * 240)
        while not wall.rows("SELECT pk FROM folds"):
            await wall.ask("word " * 60, model="small")
        chapters = wall.rows("SELECT pk FROM chapters")
        await wall.ask("Tell me all of it.", model="one")
        wide = prompts(wall)[-1]
        depth = wall.rows("SELECT max(depth) FROM messages")[0][0]
        assert len(wide) == depth - 1
        assert "<memory>" not in json.dumps(wide)
        await wall.ask("And now?", model="small")
        assert "<memory>" in json.dumps(prompts(wall)[-1])
        assert wall.rows("SELECT pk FROM chapters")[: len(chapters)] == chapters
        first = wall.rows("SELECT count(*), count(DISTINCT first_depth) FROM chapters")[0]
        assert first[0] == first[1]


async def test_answers_never_hold_another_conversations_text(wall: Wall) -> None:
    """C10: four chats at once before one server; each hears its own echo."""

    def echo(request: Request) -> Exchange:
        return say(request.json["messages"][-1]["content"] + "!")

    wall.upstream.otherwise = echo
    names = ("A", "B", "C", "D")
    for number in range(3):
        visits = [wall.visit(f"{name}{number}", id=f"chat-{name}") for name in names]
        for visit, name in zip(visits, names, strict=True):
            await visit.work
            assert visit.heard.text == f"{name}{number}!"
    for request in wall.upstream.chats:
        said = [m["content"][0] for m in request.json["messages"]]
        assert len(set(said)) == 1


# -- the window ------------------------------------------------------------------------------------


def view_of(wide: str) -> Any:
    def edit(text: str) -> str:
        return text.replace("  plain: {}", f"  plain: {{{wide}}}").replace(
            "lenient: {", f"lenient: {{{wide}, "
        )

    return edit


NARROW = view_of(
    "view: {start: 3000, ceiling: 4000, headroom: 1200, keep: 600}, "
    "chapters: {length: 100, stack: 600}, gist: {length: 150}"
)


async def test_a_window_that_only_the_error_tells_is_obeyed(wall: Wall) -> None:
    """B06: cut by the error's own figures, asked once more, told in the header."""
    wall.upstream.otherwise = lambda request: say("u" * 240)
    while wall.rows("SELECT coalesce(max(cum_chars), 0) FROM messages")[0][0] < 2_400:
        await wall.ask("word " * 60, model="small")
    error = {
        "code": 400,
        "type": "exceed_context_size_error",
        "message": "request (1400 tokens) exceeds the available context size (1000 tokens)",
        "n_prompt_tokens": 1400,
        "n_ctx": 1000,
    }
    body = json.dumps({"error": error}).encode()
    wall.upstream.play(
        Exchange(
            (
                b"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n"
                + f"Content-Length: {len(body)}\r\n\r\n".encode()
                + body,
            )
        )
    )
    heard = await wall.ask("go on", model="small")
    assert (heard.status, heard.headers["x-foldgate-view"]) == (200, "cut")
    refused, served = wall.upstream.chats[-2:]
    assert len(served.body) < len(refused.body)
    assert served.json["messages"][-1] == {"role": "user", "content": "go on"}


async def test_without_room_for_a_reply_nothing_is_sent(build: Build) -> None:
    """B13: tools that fill the window: a clear refusal, no max_tokens of 1 or less."""
    tools = [
        {"type": "function", "function": {"name": f"f{at}", "description": "y" * 200}}
        for at in range(120)
    ]
    async with build(fields=", window: 4000 tokens", policies=NARROW) as wall:
        heard = await wall.ask("hi", tools=tools)
        assert (heard.status, heard.error and heard.error["code"]) == (
            400,
            "context_length_exceeded",
        )
        assert wall.upstream.chats == []
        assert wall.messages() == [("user", "hi", 0)]


async def test_a_prompt_that_was_half_read_raises_an_alarm(
    wall: Wall, caplog: pytest.LogCaptureFixture
) -> None:
    """B07: figures alone, and the metric."""
    said = "灯台の secret " * 900
    wall.upstream.play(
        stream(
            role(),
            delta("ok"),
            end("stop"),
            {
                "choices": [],
                "usage": {"prompt_tokens": 40, "completion_tokens": 1, "total_tokens": 41},
            },
            DONE,
        )
    )
    await wall.ask(said)
    lines = [line for line in caplog.messages if "it cuts unasked" in line]
    assert len(lines) == 1
    assert "secret" not in lines[0]
