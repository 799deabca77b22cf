"""The measurement measures what it says: whole answers, counted once, failures told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest
import pytest_asyncio

from bench.load import NextRequest, Unserved, run_load
from bench.talk import history, newest, post
from bench.upstream import CHUNKS, REPLY, LlamaServer
from gateway.backends.answers import AnswerReader
from gateway.backends.whole_answers import read_completion
from gateway.wire.replies import ReplyBuilder


@pytest_asyncio.fixture
async def port() -> AsyncIterator[int]:
    server = await asyncio.get_running_loop().create_server(LlamaServer, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()


def source(requests: Iterable[bytes]) -> NextRequest:
    waiting = iter(requests)
    return lambda: next(waiting, None)


@pytest.mark.parametrize("stream", [False, True])
async def test_each_request_is_answered_and_counted(port: int, stream: bool) -> None:
    sources = [source([newest("c", stream=stream)] * count) for count in (3, 0, 5)]
    load = await run_load(port, sources)
    assert len(load.seconds) == 3 + 0 + 5
    assert load.rate == pytest.approx(8 / load.elapsed)


async def test_a_request_larger_than_one_packet_is_one_request(port: int) -> None:
    load = await run_load(port, [source([post(history(5_000))] * 2)])
    assert len(load.seconds) == 2


async def test_an_answer_that_is_no_success_is_told() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy")
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    with pytest.raises(Unserved, match="503 Busy"):
        await run_load(server.sockets[0].getsockname()[1], [source([newest("c")])])
    server.close()
    await server.wait_closed()


async def test_the_imitation_answers_as_a_llama_server_does(port: int) -> None:
    whole = await ask(port, newest("c"))
    assert read_completion("b", whole).parsed["choices"][0]["message"]["content"] == REPLY
    reader, reply, pieces = AnswerReader("b"), ReplyBuilder(), 0
    request = newest("c", stream=True)
    for chunk in reader.feed(await ask(port, request)):
        reply.feed(chunk.parsed)
        pieces += bool(chunk.parsed["choices"] and chunk.parsed["choices"][0]["delta"])
    assert (reader.done, reader.fault, reply.text, reply.finish_reason) == (
        True,
        None,
        REPLY,
        "stop",
    )
    assert pieces == 1 + CHUNKS  # the role comes first, alone
    assert reply.prompt_tokens == len(request) // 4


async def ask(port: int, request: bytes) -> bytes:
    """The body of the answer; a stream's chunks joined."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    body = b""
    if b"chunked" in head:
        while size := int(await reader.readuntil(b"\r\n"), 16):
            body += (await reader.readexactly(size + 2))[:-2]
    else:
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        body = await reader.readexactly(length)
    writer.close()
    await writer.wait_closed()
    return body
