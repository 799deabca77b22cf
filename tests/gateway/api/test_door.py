"""What every request passes: its number, its size, browsers, faults of ours."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import Request
from starlette.responses import Response

from tests.gateway.api.conftest import Door, Opener


async def test_every_response_has_a_number(door: Door) -> None:
    for path in ("/healthz", "/nowhere", "/v1/models"):
        answer = await door.get(path)
        assert answer.headers["x-request-id"].startswith("req_")
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert (await door.get("/healthz", x_request_id="trace.7")).headers["x-request-id"] == "trace.7"
    assert (await door.get("/healthz", x_request_id="a b")).headers["x-request-id"] != "a b"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "not_found"),
        ("PUT", "/v1/models", 405, "method_not_allowed"),
        ("GET", "/v1/models/none", 404, "model_not_found"),
        ("GET", "/docs", 404, "not_found"),
        ("GET", "/openapi.json", 404, "not_found"),
    ],
)
async def test_every_error_is_an_envelope(
    door: Door, method: str, path: str, status: int, code: str
) -> None:
    answer = await door.client.request(method, path)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["code"]) == ("invalid_request_error", code)


async def test_a_fault_of_ours_is_told_by_its_number_alone(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    said = "-".join(("ORCHID", "7"))

    async def stumble(request: Request) -> Response:
        try:
            raise ValueError(said)
        except ValueError as error:
            raise RuntimeError(said) from error

    door.app.add_api_route("/stumble", stumble)
    with caplog.at_level(logging.ERROR):
        answer = await door.get("/stumble", x_request_id="r1")
    assert answer.status_code == 500
    assert answer.json()["error"]["type"] == "server_error"
    assert "r1" in answer.json()["error"]["message"]
    assert "builtins.RuntimeError" in caplog.text
    assert "in stumble" in caplog.text
    assert "builtins.ValueError" in caplog.text
    assert said not in caplog.text + answer.text


async def chunks(sizes: list[int]) -> AsyncIterator[bytes]:
    for size in sizes:
        yield b"x" * size


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"x" * 100, 200),
        (b"x" * 101, 413),
        ([60, 40], 200),
        ([60, 41], 413),
    ],
    ids=["100 announced", "101 announced", "60+40 in pieces", "60+41 in pieces"],
)
async def test_bodies_are_bounded(opened: Opener, content: bytes | list[int], status: int) -> None:
    async def swallow(request: Request) -> Response:
        return Response(str(len(await request.body())))

    async with opened(body_limit=100) as door:
        door.app.add_api_route("/swallow", swallow, methods=["POST"])
        body = content if isinstance(content, bytes) else chunks(content)
        headers = {} if isinstance(content, bytes) else {"transfer-encoding": "chunked"}
        answer = await door.client.post("/swallow", content=body, headers=headers)
        assert answer.status_code == status
        if status == 413:
            assert answer.json()["error"]["code"] == "request_too_large"


def preflight(origin: str) -> dict[str, str]:
    return {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization, x-conversation-id",
    }


async def test_browsers_may_ask_from_anywhere(door: Door) -> None:
    headers = preflight("https://chat.example")
    answer = await door.client.options("/v1/chat/completions", headers=headers)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "*"
    assert answer.headers["access-control-allow-headers"] == "authorization, x-conversation-id"
    assert "access-control-allow-credentials" not in answer.headers
    answer = await door.get("/v1/models", origin="https://chat.example")
    exposed = answer.headers["access-control-expose-headers"]
    assert {"x-request-id", "retry-after", "x-foldgate-conversation"} <= set(exposed.split(", "))


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("https://evil.example", None),
        ("null", None),
        ("http://[", None),
        ("http://localhost.evil.example", None),
    ],
)
async def test_without_keys_a_strangers_page_reads_no_conversation(
    door: Door, origin: str, allowed: str | None
) -> None:
    answer = await door.get("/api/conversations", origin=origin)
    assert answer.headers.get("access-control-allow-origin") == allowed
    assert answer.headers["vary"] == "Origin"
    answer = await door.client.options("/api/conversations/x", headers=preflight(origin))
    assert answer.headers.get("access-control-allow-origin") == allowed


async def test_with_keys_any_page_that_has_one_may_read(opened: Opener) -> None:
    async with opened(keys={"ka": "anna"}) as door:
        answer = await door.get("/api/conversations", "ka", origin="https://chat.example")
        assert answer.headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost:8400", 200), ("127.0.0.1", 200), ("[::1]:8400", 200), ("evil.example", 403)],
)
async def test_without_keys_a_name_that_was_made_to_point_here_is_refused(
    door: Door, host: str, status: int
) -> None:
    answer = await door.client.get("/api/conversations", headers={"host": host})
    assert answer.status_code == status


async def test_a_stream_that_had_begun_is_broken_off(door: Door) -> None:
    async def half(request: Request) -> Response:
        from starlette.responses import StreamingResponse

        async def pieces() -> AsyncIterator[bytes]:
            yield b"half"
            raise RuntimeError("ORCHID-7")

        return StreamingResponse(pieces())

    door.app.add_api_route("/half", half)
    transport = httpx.ASGITransport(door.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        with pytest.raises(RuntimeError) as broken:
            await client.get("/half")
    assert "ORCHID-7" not in str(broken.value)


async def test_every_response_says_what_browsers_may_not_do(door: Door) -> None:
    for path in ("/healthz", "/nowhere", "/v1/models", "/api/policies", "/api/nowhere", "/admin"):
        headers = (await door.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-frame-options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        source = "'self'" if path == "/admin" else "'none'"
        assert headers["content-security-policy"].startswith(f"default-src {source};")
        if path.startswith(("/api", "/admin", "/healthz")):
            assert headers.get_list("cache-control") == ["no-store"]


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("/v1/models", {"x-long": "x" * 140_000}, 431, "headers_too_large"),
        ("/api/policies", {f"x-{at}": "" for at in range(250)}, 431, "headers_too_large"),
        ("/healthz?" + "x" * 20_000, {}, 414, "address_too_long"),
        ("/api/conversations/" + "x" * 20_000, {}, 414, "address_too_long"),
    ],
)
async def test_header_fields_and_addresses_have_a_bound(
    door: Door, path: str, headers: dict[str, str], status: int, code: str
) -> None:
    answer = await door.client.get(path, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


@pytest.mark.parametrize("depth", [150, 900, 100_000])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/chat/completions"),
        ("POST", "/api/memories"),
        ("POST", "/api/conversations/none/route"),
    ],
)
async def test_a_deep_body_is_a_bad_request_everywhere(
    door: Door, method: str, path: str, depth: int
) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    answer = await door.client.request(method, path, content=b'{"text":' + deep + b"}")
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["type"] == "invalid_request_error"
