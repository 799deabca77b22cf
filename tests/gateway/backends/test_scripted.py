"""The scripted backend: late, refusing and breaking off by default, the same every time."""

import json
from functools import cache
from typing import Any

import pytest

from gateway.backends.base import Call, Purpose
from gateway.backends.faults import FaultKind, UpstreamFault
from gateway.backends.scripted import Scripted
from gateway.backends.scripted_texts import VOICES
from gateway.prompts.summary import ask_chapter
from gateway.wire.replies import ReplyBuilder
from policies.judge import is_refusal, judge_summary
from policies.schema import ScriptedBackend
from tests.gateway.backends.conftest import make_call, take
from tests.gateway.backends.test_accounts import SPANS, make_span


class Sleeper:
    """Remembers how long it was asked to sleep, and does not."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)


def make(
    sleep: Sleeper | None = None, *, script: Any = None, latency: Any = None, **fields: Any
) -> Scripted:
    return Scripted(
        "rehearsal",
        ScriptedBackend(**fields),
        script=script,
        summary_latency=latency,
        sleep=sleep or Sleeper(),
        now=lambda: 1_800_000_000.5,
    )


def ask(language: str, draw: int = 0, purpose: Purpose = "summary") -> Call:
    """A summary call; `draw` makes its bytes another call's."""
    prompt = ask_chapter(make_span(language), asked_chars=300, language=language, form="grammar")
    padding = json.dumps({"role": "system", "content": str(draw)}).encode()
    return Call((padding, *prompt.messages), prompt.params, False, 4096, purpose, "r")


async def summarize(backend: Scripted, call: Call) -> tuple[str, str | None]:
    reply = ReplyBuilder.from_completion((await backend.complete(call)).parsed)
    return reply.text, reply.finish_reason


async def test_a_reply_takes_up_words_of_the_newest_message() -> None:
    reply, fault = await take(make(), make_call("My dog Biscuit barked in Cardiff."))
    assert fault is None
    assert "Biscuit" in reply.text and "Cardiff" in reply.text
    assert (reply.finish_reason, reply.is_empty) == ("stop", False)


@pytest.mark.parametrize("language", SPANS)
async def test_a_reply_is_in_the_language_of_the_message(language: str) -> None:
    (line, *_) = make_span(language)
    reply, _ = await take(make(), make_call(line.text))
    templates = [template.partition("{")[0] for template in VOICES[language].replies]
    assert any(reply.text.startswith(start) for start in templates)


async def test_streamed_and_whole_say_the_same() -> None:
    streamed, _ = await take(make(), make_call("A long story about Whitby and the sea."))
    whole = await make().complete(make_call("A long story about Whitby and the sea.", stream=False))
    assert streamed.completion() == whole.parsed
    assert json.loads(whole.data) == whole.parsed
    assert whole.parsed["created"] == 1_800_000_000


async def test_it_is_late_by_the_clock_that_it_is_given() -> None:
    sleep = Sleeper()
    backend = make(sleep, latency=30.0)
    await take(backend, make_call())
    await summarize(backend, ask("en"))
    assert sleep.slept == [0.05, 30.0]


async def test_the_same_seed_gives_the_same_answers() -> None:
    first, second, other = make(), make(), make(seed=8)
    said = [[await summarize(b, ask("en", n)) for n in range(60)] for b in (first, second, other)]
    assert said[0] == said[1]
    assert said[0] != said[2]


async def test_a_redraw_of_the_same_bytes_is_another_draw() -> None:
    backend = make(refusals=50.0)
    said = [await summarize(backend, ask("en")) for _ in range(12)]
    assert 1 < len(set(said))
    again = make(refusals=50.0)
    assert said == [await summarize(again, ask("en")) for _ in range(12)]


async def test_shares_are_what_the_policy_says() -> None:
    """2,000 draws: 11 % refusals = 220 ± 14, 3 % broken off = 60 ± 8 (one standard deviation)."""
    backend, refused, cut, good = make(), 0, 0, 0
    span = make_span("en")

    @cache
    def accepts(text: str) -> bool:
        return judge_summary(text, span, finish_reason="stop", asked_chars=300).accepted

    for draw in range(2_000):
        text, finish = await summarize(backend, ask("en", draw))
        if finish == "length":
            cut += 1
        elif accepts(text):
            good += 1
        else:
            refused += 1
    assert 178 <= refused <= 262
    assert 36 <= cut <= 84
    assert good == 2_000 - refused - cut


@pytest.mark.parametrize("language", VOICES)
async def test_refusals_are_refusals_in_every_language(language: str) -> None:
    for text in VOICES[language].refusals:
        assert is_refusal(text), text
    backend = make(refusals=100.0)
    said = [await summarize(backend, ask(language, draw)) for draw in range(20)]
    framed = [text for text, _ in said if text.startswith("{")]
    assert 0 < len(framed) < 20
    assert {finish for _, finish in said} == {"stop"}
    plain = {json.loads(t)["chapter"] if t.startswith("{") else t for t, _ in said}
    assert plain <= set(VOICES[language].refusals)


async def test_what_breaks_off_says_so_and_is_no_frame() -> None:
    backend = make(refusals=0.0, truncations=100.0)
    text, finish = await summarize(backend, ask("ru"))
    assert finish == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


@pytest.mark.parametrize("purpose", ["chat", "auxiliary"])
async def test_chats_are_never_refused(purpose: Purpose) -> None:
    backend = make(refusals=100.0, truncations=0.0)
    reply, fault = await take(backend, make_call("Tell me of Whitby.", purpose=purpose))
    assert fault is None
    assert not is_refusal(reply.text)


async def test_the_frame_has_the_key_of_the_schema() -> None:
    call = ask("en")
    schema = {"type": "object", "properties": {"gist": {"type": "string"}}}
    form = {"type": "json_schema", "json_schema": {"schema": schema}}
    named = Call(call.messages, {"response_format": form}, False, 4096, "summary", "r")
    backend = make(refusals=0.0, truncations=0.0)
    text, _ = await summarize(backend, named)
    assert list(json.loads(text)) == ["gist"]


async def test_a_script_decides_what_is_said_in_a_chat() -> None:
    asked: list[Call] = []

    def script(call: Call) -> str:
        asked.append(call)
        return "你好🎉" * 20

    call = make_call()
    reply, _ = await take(make(script=script), call)
    assert (reply.text, asked) == ("你好🎉" * 20, [call])


async def test_a_script_may_fail() -> None:
    def script(call: Call) -> str:
        raise UpstreamFault(FaultKind.OVERLOADED, "busy", retry_after=7.0)

    _, fault = await take(make(script=script), make_call())
    assert fault is not None and fault.retry_after == 7.0


async def test_nothing_said_is_a_fault() -> None:
    _, fault = await take(make(script=lambda call: " "), make_call())
    assert fault is not None and fault.kind is FaultKind.EMPTY


async def test_max_tokens_ends_a_reply_by_length() -> None:
    call = Call(make_call().messages, {}, True, 2, "chat", "r")
    reply, _ = await take(make(script=lambda _: "abcdefghijkl"), call)
    assert (reply.text, reply.finish_reason) == ("abcdefgh", "length")  # 2 tokens of 4 bytes


async def test_a_prompt_beyond_its_window_overflows() -> None:
    backend = make(window=256)
    assert (await backend.window(), backend.window_tokens) == (256, 256)
    call = make_call("x" * 1_100)
    assert await backend.count_tokens(call.messages) == 283  # (1,100 + 28 of JSON) / 4 + 1
    _, fault = await take(backend, call)
    assert fault is not None
    assert (fault.kind, fault.prompt_tokens, fault.window_tokens) == (FaultKind.OVERFLOW, 283, 256)


async def test_it_is_always_there() -> None:
    backend = make()
    await backend.start()
    assert (await backend.health()).ok
    assert (backend.local, backend.off_reason) == (True, None)
    assert backend.dropped_params({"id_slot": 1}) == ()
    await backend.aclose()
