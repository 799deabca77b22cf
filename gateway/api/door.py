"""What every request passes on its way in and out, as one plain ASGI layer.

It gives a request its number, refuses bodies that are too large before they are read, answers
browsers' preflights, adds the headers that every response has, and turns an exception that nobody
expected into an answer. It never looks into a body and adds no task: streams pass through it.
"""

from __future__ import annotations

import ipaddress
import logging
import re
from itertools import chain
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.errors import error_response, log_unexpected, unexpected
from gateway.api.watch import Exit, Watch
from gateway.errors import GatewayError, PayloadTooLarge
from gateway.randomness import random_hex

log = logging.getLogger("foldgate.api")

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_HEADER_NAMES = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4096}")
_EXPOSED = ", ".join(
    (
        "x-request-id",
        "retry-after",
        "x-should-retry",
        "x-foldgate-conversation",
        "x-foldgate-backend",
        "x-foldgate-rule",
        "x-foldgate-view",
        "x-foldgate-migration",
        "x-foldgate-dropped-params",
        "x-foldgate-lookups-failed",
    )
).encode()
_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
)
# Nothing here is a page but what stands under /admin, which needs no one else's scripts.
_NO_PAGE = (
    b"content-security-policy",
    b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
)
_PAGE = (
    b"content-security-policy",
    b"default-src 'self'; img-src 'self' data:; object-src 'none'; frame-ancestors 'none'; "
    b"base-uri 'none'; form-action 'self'",
)
# No proxy and no browser keeps people's words.
_KEPT_NOWHERE = (b"cache-control", b"no-store")
_PRIVATE_PATHS = ("/api", "/admin")
MOST_HEADER_BYTES = 128 * 1024
MOST_HEADERS = 200
MOST_ADDRESS_BYTES = 16 * 1024
"""Of a request: its header fields, and its path with what is asked in it."""
_METHODS = b"GET, POST, PUT, PATCH, DELETE, OPTIONS"
# A browser asks again after this many seconds.
_PREFLIGHT_SECONDS = b"600"

Headers = list[tuple[bytes, bytes]]


class Door:
    """The outermost layer of the app.

    keyless: no keys are set, so whoever reaches the server is trusted. Then a page of another
    site, which a person on this machine happens to look at, must not be able to read or delete
    conversations: under /api (and /metrics) only pages from this machine are let in, and only under
    this machine's own names (a name that is made to point here would pass as same-origin).
    watch: looks on, for the log, the meters and the traces.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        body_limit: int,
        keyless: bool,
        watch: Watch,
    ) -> None:
        self._app = app
        self._body_limit = body_limit
        self._keyless = keyless
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exit = Exit(send, self._prepare(scope))
        with self._watch.over(scope, exit):
            await self._serve(scope, receive, exit)

    async def _serve(self, scope: Scope, receive: Receive, exit: Exit) -> None:
        request_id = scope["state"]["request_id"]
        try:
            await self._enter(scope, receive, exit)
        except GatewayError as error:
            if exit.status is not None:
                raise
            await error_response(error)(scope, receive, exit)
        except ClientDisconnect:
            log.info("request %s: the client left before its body had come", request_id)
        except Exception as error:
            log_unexpected(request_id, error)
            if exit.status is not None:
                raise Broken(request_id) from None
            await error_response(unexpected(request_id))(scope, receive, exit)

    def _prepare(self, scope: Scope) -> Headers:
        """Number the request; the headers that its response gets."""
        headers: Headers = scope["headers"]
        number = _find(headers, b"x-request-id")
        if number is None or not _REQUEST_ID.fullmatch(number):
            number = b"req_" + random_hex(12).encode()
        scope.setdefault("state", {})["request_id"] = number.decode()
        path = scope["path"]
        added = [*_ALWAYS, (b"x-request-id", number)]
        added.append(_PAGE if path.startswith("/admin") else _NO_PAGE)
        if path.startswith(_PRIVATE_PATHS):
            added.append(_KEPT_NOWHERE)
        origin = _find(headers, b"origin")
        if origin is not None:
            added += _cross_origin(origin, self._is_closed(scope))
        return added

    def _is_closed(self, scope: Scope) -> bool:
        return self._keyless and scope["path"].startswith(("/api", "/admin", "/metrics"))

    async def _enter(self, scope: Scope, receive: Receive, send: Send) -> None:
        _check_sizes(scope)
        if scope["method"] == "OPTIONS" and _is_preflight(scope["headers"]):
            await send(_preflight(scope["headers"]))
            await send({"type": "http.response.body", "body": b""})
            return
        if self._is_closed(scope):
            _check_host(scope["headers"])
        await self._app(scope, self._limited(scope["headers"], receive), send)

    def _limited(self, headers: Headers, receive: Receive) -> Receive:
        """receive, raising PayloadTooLarge; at once where the length is announced."""
        limit = self._body_limit
        announced = _find(headers, b"content-length")
        if announced is not None:
            if int(announced) > limit:
                raise _too_large(limit)
            return receive
        if _find(headers, b"transfer-encoding") is None:
            return receive
        taken = 0

        async def receive_on() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > limit:
                raise _too_large(limit)
            return message

        return receive_on


class Broken(RuntimeError):
    """A response that had begun when something unexpected happened; it was logged already."""


def _find(headers: Headers, name: bytes) -> bytes | None:
    for key, value in headers:
        if key == name:
            return value
    return None


def _check_sizes(scope: Scope) -> None:
    """The server beneath takes fields and addresses of any length."""
    headers: Headers = scope["headers"]
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > MOST_ADDRESS_BYTES:
        raise GatewayError(
            f"The address is longer than {MOST_ADDRESS_BYTES:,} bytes.",
            status=414,
            type="invalid_request_error",
            code="address_too_long",
        )
    size = sum(map(len, chain.from_iterable(headers)))
    if size > MOST_HEADER_BYTES or len(headers) > MOST_HEADERS:
        raise GatewayError(
            f"The header fields are more than {MOST_HEADERS}, or longer than "
            f"{MOST_HEADER_BYTES:,} bytes.",
            status=431,
            type="invalid_request_error",
            code="headers_too_large",
        )


def _too_large(limit: int) -> PayloadTooLarge:
    return PayloadTooLarge(f"The body is larger than {limit:,} bytes.")


def _is_preflight(headers: Headers) -> bool:
    return (
        _find(headers, b"origin") is not None
        and _find(headers, b"access-control-request-method") is not None
    )


def _preflight(headers: Headers) -> dict[str, Any]:
    answer: Headers = [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-max-age", _PREFLIGHT_SECONDS),
        (b"vary", b"Access-Control-Request-Headers"),
    ]
    wanted = _find(headers, b"access-control-request-headers")
    if wanted is not None and _HEADER_NAMES.fullmatch(wanted):
        answer.append((b"access-control-allow-headers", wanted))
    return {"type": "http.response.start", "status": 204, "headers": answer}


def _cross_origin(origin: bytes, is_closed: bool) -> Headers:
    """Any page may ask, but without a browser's credentials; see Door for what is closed."""
    if not is_closed:
        return [
            (b"access-control-allow-origin", b"*"),
            (b"access-control-expose-headers", _EXPOSED),
        ]
    vary = (b"vary", b"Origin")
    if not _is_this_machine(origin):
        return [vary]
    return [
        (b"access-control-allow-origin", origin),
        (b"access-control-expose-headers", _EXPOSED),
        vary,
    ]


def _check_host(headers: Headers) -> None:
    host = _find(headers, b"host")
    if host is None:
        return
    if not _is_this_machine(b"//" + host):
        raise GatewayError(
            "Without keys this address answers only under localhost: set FOLDGATE_KEYS.",
            status=403,
            type="invalid_request_error",
            code="forbidden_host",
        )


def _is_this_machine(address: bytes) -> bool:
    """Whether an address (an origin, or `//host:port`) names this machine for everybody."""
    try:
        host = urlsplit(address.decode("latin-1")).hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
