"""One suite over every backend that speaks to a server: the same fault on the wire is the same
fault to the flows, and what had been received is given first."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest
import pytest_asyncio

from gateway.backends.cloud import Cloud
from gateway.backends.faults import FaultKind as K
from gateway.backends.llama_cpp import LlamaCpp
from tests.faults.server import (
    DONE,
    Exchange,
    FaultServer,
    answer,
    completion,
    delta,
    end,
    role,
    stream,
    usage,
)
from tests.gateway.backends.conftest import KEY, LITELLM_WARNS, SHORT, make_call, take, take_whole

pytestmark = LITELLM_WARNS

Remote = LlamaCpp | Cloud
Make = Callable[..., Remote]


@pytest_asyncio.fixture
async def backend(make: Make) -> AsyncIterator[Remote]:
    backend = make()
    await backend.start()
    yield backend
    await backend.aclose()


@pytest_asyncio.fixture
async def hasty(make: Make) -> AsyncIterator[Remote]:
    """A backend that waits for a fraction of a second."""
    backend = make(SHORT)
    yield backend
    await backend.aclose()


def error(message: str, **fields: Any) -> dict[str, Any]:
    return {"error": {"message": message, **fields}}


async def test_a_stream(server: FaultServer, backend: Remote) -> None:
    server.play(stream(role(), delta("你"), delta("好🎉"), end("stop"), usage(9, 2), DONE))
    reply, fault = await take(backend, make_call())
    assert fault is None
    assert (reply.text, reply.finish_reason, reply.prompt_tokens) == ("你好🎉", "stop", 9)
    body = server.chats[0].json
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_tokens"] == 100


async def test_the_bytes_of_a_stream_are_relayed(server: FaultServer, backend: Remote) -> None:
    odd = role() | {"system_fingerprint": "x", "provider_field": {"deep": [1, None]}}
    events = [odd, delta("a"), end("stop")]
    server.play(stream(*events, DONE))
    chunks = [chunk.data async for chunk in backend.stream(make_call())]
    assert chunks == [json.dumps(event).encode() for event in events]


@pytest.mark.parametrize("cut_every", [1, 2, 3, 7, 64])
async def test_a_stream_cut_anywhere(server: FaultServer, backend: Remote, cut_every: int) -> None:
    """F05: also amid a letter."""
    events = (role(), delta("你好🎉"), end("stop"), DONE)
    server.play(stream(*events, cut_every=cut_every))
    reply, fault = await take(backend, make_call())
    assert (reply.text, fault) == ("你好🎉", None)


FAULTS: list[tuple[Exchange, K, str]] = [
    (stream(), K.EMPTY, ""),
    (stream(DONE), K.EMPTY, ""),
    (stream(role(), end("stop"), DONE), K.EMPTY, ""),
    (stream(role(), delta(" \n"), end("length"), usage(), DONE), K.EMPTY, ""),
    (stream(role(), delta("Half an ans")), K.INTERRUPTED, "Half an ans"),
    (stream(role(), delta("Half an ans"), end="cut"), K.INTERRUPTED, "Half an ans"),
    (stream(role(), *map(delta, "ABC"), end="reset"), K.INTERRUPTED, "ABC"),
    (stream(role(), end="reset"), K.INTERRUPTED, ""),
    (
        stream(role(), delta("Half"), end("insufficient_system_resource"), DONE),
        K.INTERRUPTED,
        "Half",
    ),
    (stream(role(), delta("Half"), end("error"), DONE), K.INTERRUPTED, "Half"),
    (stream(role(), delta("Half"), DONE), K.INTERRUPTED, "Half"),
    (stream(error("overloaded", code=529)), K.OVERLOADED, ""),
    (stream(role(), delta("Half"), error("overloaded", code=529)), K.OVERLOADED, "Half"),
    (stream(b'{"error":{"code":400,"type":"exceed_context_size_error"}}'), K.OVERFLOW, ""),
    (
        stream(b'{"error":{"code":503,"message":"x"}}', content_type="application/json"),
        K.OVERLOADED,
        "",
    ),
    (stream(b"<html>Bad gateway</html>", content_type="text/html"), K.MALFORMED, ""),
    (stream(role(), delta("Half"), b"data: {oops\n\n", end("stop"), DONE), K.MALFORMED, "Half"),
    (answer(400, error("x", type="exceed_context_size_error")), K.OVERFLOW, ""),
    (answer(400, error("Content Exists Risk")), K.REFUSED, ""),
    (answer(403, {"code": "x", "error": "Content violates usage guidelines."}), K.REFUSED, ""),
    (answer(401, error("no")), K.AUTH, ""),
    (answer(403, error("no")), K.AUTH, ""),
    (answer(404, error("no")), K.NOT_FOUND, ""),
    (answer(422, error("no")), K.BAD_REQUEST, ""),
    (answer(429, error("no")), K.OVERLOADED, ""),
    (answer(503, error("Loading model")), K.LOADING, ""),
    (answer(500, b"<html>", content_type="text/html"), K.SERVER, ""),
    (answer(429, error("a long explanation"), end="cut"), K.OVERLOADED, ""),
    (answer(302, b"", {"Location": "http://127.0.0.1:1/"}), K.SERVER, ""),
    (Exchange((), "reset"), K.UNAVAILABLE, ""),
    (Exchange((), "cut"), K.UNAVAILABLE, ""),
    (Exchange((b"SSH-2.0-OpenSSH\r\n\r\n",), "cut"), K.MALFORMED, ""),
]


@pytest.mark.parametrize(("exchange", "kind", "given"), FAULTS)
async def test_faults_of_streams(
    server: FaultServer, backend: Remote, exchange: Exchange, kind: K, given: str
) -> None:
    """B03, B04, B22, F01, F04, F16, F20: the same on every route."""
    server.play(exchange)
    reply, fault = await take(backend, make_call())
    assert fault is not None
    assert (fault.kind, reply.text) == (kind, given)
    assert fault.partial is bool(given)
    assert reply.finish_reason is None
    assert KEY not in fault.message
    assert len(server.chats) == 1  # nobody below the flows tries again
    # and the backend is as good as new
    server.play(stream(role(), delta("fine"), end("stop"), DONE))
    assert (await take(backend, make_call()))[0].text == "fine"


STALLS: list[tuple[Exchange, str]] = [
    (Exchange((), "stall"), ""),
    (stream(end="stall"), ""),
    (stream(role(), end="stall"), ""),
    (stream(role(), delta("Hi"), end="stall"), "Hi"),
    (stream(role(), delta("Hi"), b'data: {"choi', end="stall"), "Hi"),
]


@pytest.mark.parametrize(("exchange", "given"), STALLS)
async def test_silence_ends_in_a_timeout(
    server: FaultServer, hasty: Remote, exchange: Exchange, given: str
) -> None:
    """F18."""
    server.play(exchange)
    reply, fault = await take(hasty, make_call())
    assert fault is not None
    assert (fault.kind, fault.status, reply.text) == (K.TIMEOUT, 504, given)
    await server.gone()


async def test_the_silence_after_the_end_breaks_nothing(server: FaultServer, hasty: Remote) -> None:
    server.play(stream(role(), delta("Hi"), end("stop"), end="stall"))
    reply, fault = await take(hasty, make_call())
    assert (reply.text, reply.finish_reason, fault) == ("Hi", "stop", None)


async def test_pings_count_as_life(server: FaultServer, hasty: Remote) -> None:
    """F07: forty pings in 0.4 s before the first chunk, twice the time for a first token."""
    server.play(stream(*[b": ping\n\n"] * 40, role(), delta("Hi"), end("stop"), DONE, pause=0.01))
    reply, fault = await take(hasty, make_call())
    assert (reply.text, fault) == ("Hi", None)


async def test_pings_do_not_keep_a_call_alive_for_ever(server: FaultServer, hasty: Remote) -> None:
    """F07."""
    server.play(stream(*[b": ping\n\n"] * 5_000, pause=0.01))
    _, fault = await take(hasty, make_call())
    assert fault is not None and fault.kind is K.TIMEOUT
    await server.gone()


async def test_nobody_at_the_address(server: FaultServer, make: Make) -> None:
    backend = make()
    await server.__aexit__()
    for stream_it in (True, False):
        call = make_call(stream=stream_it)
        _, fault = await (take if stream_it else take_whole)(backend, call)
        assert fault is not None
        assert (fault.kind, fault.status, fault.retryable) == (K.UNAVAILABLE, 503, True)
    await backend.aclose()


async def test_retry_after_is_read(server: FaultServer, backend: Remote) -> None:
    server.play(answer(429, error("slow"), {"Retry-After": "7"}))
    _, fault = await take(backend, make_call())
    assert fault is not None
    assert (fault.status, fault.retry_after, fault.retryable) == (429, 7.0, True)


async def test_the_figures_of_an_overflow(server: FaultServer, backend: Remote) -> None:
    body = error("x", type="exceed_context_size_error", n_prompt_tokens=9720, n_ctx=4096)
    server.play(answer(400, body))
    _, fault = await take(backend, make_call())
    assert fault is not None
    assert (fault.prompt_tokens, fault.window_tokens) == (9720, 4096)


async def test_nothing_is_lost_on_a_slow_reader(server: FaultServer, backend: Remote) -> None:
    """F16: the connection breaks while the reader is busy elsewhere: it gets what had come."""
    server.play(stream(role(), *map(delta, "ABC"), end="reset"))
    chunks = backend.stream(make_call())
    first = await anext(chunks)
    await server.gone()
    await asyncio.sleep(0.01)
    rest = []
    with pytest.raises(Exception, match="broke off"):
        async for chunk in chunks:
            rest.append(chunk)  # noqa: PERF401
    texts = [c.parsed["choices"][0]["delta"].get("content") or "" for c in [first, *rest]]
    assert "".join(texts) == "ABC"


# --- leaving -------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [True, False])
async def test_cancelling_before_the_first_byte(
    server: FaultServer, backend: Remote, streamed: bool
) -> None:
    """F12."""
    server.play(Exchange((), "stall"))
    run = take if streamed else take_whole
    task = asyncio.create_task(cast(Any, run(backend, make_call(stream=streamed))))
    await server.asked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.gone()


@pytest.mark.parametrize("streamed", [True, False])
async def test_cancelling_in_the_middle(
    server: FaultServer, backend: Remote, streamed: bool
) -> None:
    """F12: the connection is closed within a second."""
    whole = answer(200, completion("a long answer"), end="stall")
    begun = stream(role(), delta("a"), end="stall")
    server.play(begun if streamed or backend.kind == "llama_cpp" else whole)
    run = take if streamed else take_whole
    task = asyncio.create_task(cast(Any, run(backend, make_call(stream=streamed))))
    await server.asked()
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await server.gone()


async def test_closing_the_stream(server: FaultServer, backend: Remote) -> None:
    server.play(stream(role(), delta("a"), end="stall"))
    chunks = backend.stream(make_call())
    await anext(chunks)
    await cast(Any, chunks).aclose()
    await server.gone()


# --- whole answers -------------------------------------------------------------------------------


async def test_a_whole_answer(server: FaultServer, backend: Remote) -> None:
    play_whole(server, backend, "你好🎉", "stop")
    answer = await backend.complete(make_call(stream=False))
    assert json.loads(answer.data) == answer.parsed
    (choice,) = answer.parsed["choices"]
    assert choice["message"] == {"role": "assistant", "content": "你好🎉"}
    assert choice["finish_reason"] == "stop"
    assert answer.parsed["object"] == "chat.completion"
    assert answer.parsed["usage"]["prompt_tokens"] == 11


def play_whole(server: FaultServer, backend: Remote, content: str, reason: str | None) -> None:
    """A whole answer in the form in which this backend asks for it."""
    if backend.kind == "llama_cpp":
        server.play(stream(role(), delta(content), end(reason), usage(), DONE))
    else:
        server.play(answer(200, completion(content, reason)))


@pytest.mark.parametrize(
    ("content", "reason", "kind"),
    [
        ("", "stop", K.EMPTY),
        (" \n\u200b", "stop", K.EMPTY),
        ("", "length", K.EMPTY),
        ("Half of a sen", "error", K.INTERRUPTED),
        ("Half of a sen", "network_error", K.INTERRUPTED),
        ("Half of a sen", None, K.INTERRUPTED),
    ],
)
async def test_faults_of_whole_answers(
    server: FaultServer, backend: Remote, content: str, reason: str | None, kind: K
) -> None:
    """A13, B04."""
    play_whole(server, backend, content, reason)
    _, fault = await take_whole(backend, make_call(stream=False))
    assert fault is not None and fault.kind is kind
    if kind is K.INTERRUPTED:
        assert fault.received is not None
        assert fault.received["choices"][0]["message"]["content"] == content
        assert not fault.retryable


@pytest.mark.parametrize("native", ["BLOCKLIST", "SPII", "IMAGE_SAFETY", "content_filter"])
async def test_a_filter_is_relayed(server: FaultServer, backend: Remote, native: str) -> None:
    """A17: 200 and content_filter, not a fault of the gateway's."""
    play_whole(server, backend, "", native)
    reply, fault = await take_whole(backend, make_call(stream=False))
    assert fault is None and reply is not None
    assert reply.finish_reason == "content_filter"
    server.play(stream(role(), end(native), DONE))
    streamed, fault = await take(backend, make_call())
    assert (streamed.finish_reason, fault) == ("content_filter", None)


async def test_a_whole_answer_that_breaks_off(server: FaultServer, backend: Remote) -> None:
    if backend.kind == "llama_cpp":
        server.play(stream(role(), delta("Half"), end="cut"))
    else:
        server.play(answer(200, completion("Half"), end="cut"))
    _, fault = await take_whole(backend, make_call(stream=False))
    assert fault is not None and fault.kind is K.INTERRUPTED


async def test_lone_surrogates_pass_both_ways(server: FaultServer, backend: Remote) -> None:
    half = rb'data: {"choices":[{"index":0,"delta":{"content":"a\ud83c"},"finish_reason":null}]}'
    server.play(stream(role(), half + b"\n\n", delta("b"), end("stop"), DONE))
    reply, fault = await take(backend, make_call("x\ud83c"))
    assert (reply.text, fault) == ("a\ud83cb", None)


async def test_a_healthy_backend_says_so(server: FaultServer, backend: Remote) -> None:
    server.routes["/health"] = answer(200, {"status": "ok"})
    assert (await backend.health()).ok


async def test_an_error_that_swells_is_read_as_far_as_it_says_something(
    server: FaultServer, backend: Remote
) -> None:
    """50 MB of blanks in 50 KB: whoever matches patterns on all of it stands still for minutes."""
    swollen = gzip.compress(b" " * 50_000_000)
    server.play(*[answer(500, swollen, {"Content-Encoding": "gzip"})] * 2)
    for ask in (take, take_whole):
        _, fault = await ask(backend, make_call(stream=ask is take))
        assert fault is not None
        assert (fault.kind, len(fault.what) < 1_000) == (K.SERVER, True)
