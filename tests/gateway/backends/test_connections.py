"""HTTP over a connection: what ends a body, what may serve again, when a reader is woken."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from gateway.backends.connections import (
    HEAD_BYTES,
    HIGH_WATER_BYTES,
    BrokenOff,
    Connection,
    Connections,
    Garbled,
    NoConnection,
)
from tests.faults.server import DONE, Exchange, FaultServer, answer, delta, end, stream

CHAT = "/v1/chat/completions"
HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest_asyncio.fixture
async def connections(server: FaultServer) -> AsyncIterator[Connections]:
    connections = Connections(
        server.url + "/on é", {"X-Name": "v"}, connect_seconds=5.0, keep_seconds=60.0
    )
    yield connections
    await connections.aclose()


def far() -> float:
    return asyncio.get_running_loop().time() + 5


async def ask(connections: Connections, keep: bool = False) -> Connection:
    return await connections.ask("POST", CHAT, b"{}", far(), keep=keep)


async def read_all(connection: Connection, gather: bool = False) -> list[bytes]:
    pieces = []
    while piece := await connection.read(far(), gather=gather):
        pieces.append(piece)
    return pieces


async def test_a_request_as_it_is_sent(server: FaultServer, connections: Connections) -> None:
    server.play(answer(200, b"ok"))
    connection = await ask(connections)
    (request,) = server.requests
    assert (request.method, request.path, request.body) == ("POST", "/on%20%C3%A9" + CHAT, b"{}")
    assert request.headers == {
        "host": server.url.removeprefix("http://"),
        "accept": "*/*",
        "accept-encoding": "identity",
        "x-name": "v",
        "connection": "close",
        "content-length": "2",
    }
    assert (connection.status, connection.headers["content-length"]) == (200, "2")
    assert await read_all(connection) == [b"ok"]


ENDS: list[tuple[tuple[bytes, ...], bytes]] = [
    ((HEAD + b"Content-Length: 3\r\n\r\n", b"a", b"bc"), b"abc"),
    ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\na", b"b\r\n1\r\nc\r\n0\r\n\r\n"), b"abc"),
    ((HEAD + b"\r\n", b"abc"), b"abc"),
    ((b"HTTP/1.0 200 OK\r\n\r\nabc",), b"abc"),
    ((b"HTTP/1.1 100 Continue\r\nA: b\r\n\r\n", HEAD + b"Content-Length: 1\r\n\r\nc"), b"c"),
    ((b"HTTP/1.1 204 None\r\n\r\n",), b""),
]


@pytest.mark.parametrize("gather", [False, True])
@pytest.mark.parametrize(("pieces", "body"), ENDS)
async def test_what_ends_a_body(
    server: FaultServer,
    connections: Connections,
    pieces: tuple[bytes, ...],
    body: bytes,
    gather: bool,
) -> None:
    """Its length, its last chunk or the end of the connection."""
    server.play(Exchange(pieces, "cut"))
    connection = await ask(connections)
    assert b"".join(await read_all(connection, gather)) == body
    assert connection.is_whole
    assert "a" not in connection.headers


BROKEN: list[tuple[tuple[bytes, ...], bytes]] = [
    ((HEAD + b"Content-Length: 9\r\n\r\n", b"abc"), b"abc"),
    ((HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",), b"abc"),
]


@pytest.mark.parametrize("gather", [False, True])
@pytest.mark.parametrize("ending", ["cut", "reset"])
@pytest.mark.parametrize(("pieces", "came"), BROKEN)
async def test_what_came_before_a_break_is_given_first(
    server: FaultServer,
    connections: Connections,
    pieces: tuple[bytes, ...],
    came: bytes,
    ending: str,
    gather: bool,
) -> None:
    server.play(Exchange(pieces, "cut" if ending == "cut" else "reset"))
    connection = await ask(connections)
    assert await connection.read(far(), gather=gather) == came
    with pytest.raises(BrokenOff):
        await connection.read(far(), gather=gather)


@pytest.mark.parametrize(
    "pieces",
    [
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", b"zz\r\n"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",),
    ],
)
async def test_a_frame_that_is_garbled(
    server: FaultServer, connections: Connections, pieces: tuple[bytes, ...]
) -> None:
    server.play(Exchange(pieces, "stall"))
    connection = await ask(connections)
    assert await connection.read(far()) == b"abc"
    with pytest.raises(Garbled):
        await connection.read(far())


@pytest.mark.parametrize(
    "said", [b"SSH-2.0\r\n\r\n", HEAD + b"A: " + b"x" * (HEAD_BYTES + 1), HEAD + b"bad header\r\n"]
)
async def test_a_head_that_is_none(
    server: FaultServer, connections: Connections, said: bytes
) -> None:
    server.play(Exchange((said,), "stall"))
    with pytest.raises(Garbled):
        await ask(connections)
    await server.gone()


async def test_a_reader_of_all_is_woken_once(
    server: FaultServer, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the end of the answer wakes it, so however slowly its bytes come they are one read,
    beside what came with the head."""
    monkeypatch.setattr("gateway.backends.connections.GATHER_SECONDS", 60.0)
    events = [*map(delta, "abcdefgh"), end("stop"), DONE]
    said = stream(*events)
    server.play(said)
    connection = await ask(connections)
    pieces = await read_all(connection, gather=True)
    assert len(pieces) <= 2
    assert b"".join(pieces).count(b"data: ") == len(events)


async def test_a_reader_of_all_is_told_of_what_lies_there(
    server: FaultServer, connections: Connections
) -> None:
    """A server that falls silent in mid-answer does not hide what it said before."""
    server.play(stream(delta("a"), delta("b"), end="stall"))
    connection = await ask(connections)
    said = b""
    while said.count(b"data: ") < 2:
        said += await connection.read(far(), gather=True)
    with pytest.raises(TimeoutError):
        await connection.read(asyncio.get_running_loop().time() + 0.01, gather=True)


async def test_a_deadline_gives_what_is_being_gathered(
    server: FaultServer, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.play(stream(delta("a"), end="stall"))
    connection = await ask(connections)
    monkeypatch.setattr("gateway.backends.connections.GATHER_SECONDS", 60.0)
    soon = asyncio.get_running_loop().time() + 0.05
    assert b"data: " in await connection.read(soon, gather=True)
    with pytest.raises(TimeoutError):
        await connection.read(soon, gather=True)


async def test_a_reader_that_is_slow_holds_the_server_up(
    server: FaultServer, connections: Connections
) -> None:
    """20 MB for a reader who takes nothing: not much more than the high water is kept."""
    piece = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    server.play(Exchange((head, *[piece] * 320, b"0\r\n\r\n")))
    connection = await ask(connections)
    for _ in range(100):
        await asyncio.sleep(0)
    first = await connection.read(far())
    assert len(first) < HIGH_WATER_BYTES + 2 * 1_048_576
    assert len(first) + sum(map(len, await read_all(connection))) == 320 * 65_536


async def test_a_connection_that_was_released_serves_again(
    server: FaultServer, connections: Connections
) -> None:
    server.play(stream(delta("a")), answer(200, b"b"))
    first = await ask(connections, keep=True)
    await first.read(far())
    await first.release(5.0)
    second = await ask(connections, keep=True)
    assert second is first
    assert await read_all(second) == [b"b"]
    assert server.connections == 1


SPOILT: list[tuple[Exchange, bool]] = [
    (answer(200, b"ok"), False),  # it was asked for one answer
    (answer(200, b"ok", {"Connection": "close"}), True),
    (answer(200, b"okHTTP/1.1 200 OK\r\n\r\n", {"Content-Length": "2"}), True),
    (answer(200, b"ok", end="stall"), True),  # its end does not come
    (Exchange((HEAD + b"\r\nok",), "cut"), True),
]


@pytest.mark.parametrize(("exchange", "keep"), SPOILT)
async def test_a_connection_that_may_not_serve_again(
    server: FaultServer, connections: Connections, exchange: Exchange, keep: bool
) -> None:
    server.play(exchange, answer(200, b"fine"))
    first = await ask(connections, keep=keep)
    await first.read(far())
    await first.release(0.01)
    assert first.is_released
    second = await ask(connections, keep=True)
    assert await read_all(second) == [b"fine"]
    assert server.connections == 2


async def test_a_connection_that_was_held_up_does_not_serve_again(
    server: FaultServer, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its answer is whole and lies there unread, and the transport stands still."""
    monkeypatch.setattr("gateway.backends.connections.HIGH_WATER_BYTES", 10)
    server.play(answer(200, b"much"), answer(200, b"fine"))
    first = await ask(connections, keep=True)
    while not first.is_whole:
        await asyncio.sleep(0)
    await first.release()
    monkeypatch.undo()
    assert await read_all(await ask(connections, keep=True)) == [b"fine"]
    assert server.connections == 2


async def test_an_old_connection_is_not_believed(
    server: FaultServer, connections: Connections
) -> None:
    server.play(*[answer(200, b"ok")] * 2)
    first = await ask(connections, keep=True)
    assert await read_all(first) == [b"ok"]
    await first.release()
    first.released_at -= 61
    assert await ask(connections, keep=True) is not first
    await first.gone


async def test_a_word_that_nobody_asked_for_closes_a_kept_connection(
    server: FaultServer, connections: Connections
) -> None:
    server.play(answer(200, b"ok"))
    connection = await ask(connections, keep=True)
    assert await read_all(connection) == [b"ok"]
    await connection.release()
    connection.data_received(HEAD + b"Content-Length: 4\r\n\r\nevil")
    await connection.gone
    server.play(answer(200, b"good"))
    assert await read_all(await ask(connections, keep=True)) == [b"good"]


async def test_closing_all_breaks_off_what_is_read(
    server: FaultServer, connections: Connections
) -> None:
    server.play(stream(delta("a"), end="stall"))
    connection = await ask(connections)
    await connection.read(far())
    reading = asyncio.create_task(connection.read(far()))
    await asyncio.sleep(0)
    await connections.aclose()
    with pytest.raises(BrokenOff):
        await reading
    await server.gone()


async def test_nobody_there(server: FaultServer, connections: Connections) -> None:
    await server.__aexit__()
    with pytest.raises(NoConnection, match=r"refused|Connect call failed"):
        await ask(connections)
